"""The shared catalog: versions, time travel, upkeep, and what it says when something is wrong."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import goldenctl
from goldenctl.catalog import lake as lakes
from goldenctl.catalog import places, query, record_refresh, record_run, store, upkeep
from goldenctl.catalog.places import Lake
from goldenctl.errors import CatalogBusyError, CatalogError, ConfigError, UsageError
from tests.catalog.test_record import LOSS, OTHER, PATH, RUN, TIMES, candidate, refresh
from tests.conftest import golden_json


def observe(lake: Lake, run: str, content: bytes = LOSS) -> int:
    of = replace(RUN, id=run)
    return record_run(lake, of, [replace(candidate(content), run=of)])


def long_loss(start: float) -> bytes:
    """Too many values to lie in the metadata."""
    return golden_json(lm_loss={step: start + step / 4 for step in range(1, 1001)})


def at(lake: Lake, as_of: object) -> Lake:
    return replace(lake, as_of=str(as_of))


def ask(lake: Lake, text: str) -> list[tuple[object, ...]]:
    return query.sql(lake, text).rows()


def test_a_store_holds_the_tables_of_a_catalog_file_and_non_finite_values_as_they_are(lake: Lake) -> None:
    assert observe(lake, "1", TIMES) == 1
    found = query.status(lake)
    assert found.rows["observation"] == 1
    assert found.rows["value"] == 4
    assert found.schema_version == len(store.migrations())
    values = [row[0] for row in ask(lake, 'SELECT "value" FROM "value" ORDER BY step, "value"')]
    assert values[:2] == [10.5, math.inf]
    assert values[2] == 0.5
    assert math.isnan(values[3])  # type: ignore[arg-type]


def test_what_is_recorded_twice_is_there_once(lake: Lake) -> None:
    assert observe(lake, "1") == 1
    assert observe(lake, "1") == 0
    assert ask(lake, "SELECT run, path FROM observation") == [("github:1#2", PATH)]
    assert ask(lake, "SELECT count(*) FROM document") == [(1,)]


def test_a_refresh_is_recorded_with_its_matches(lake: Lake) -> None:
    record_refresh(lake, refresh(), {PATH: LOSS})
    assert ask(lake, "SELECT path, action, matches[1].level FROM refresh_file ORDER BY path DESC") == [
        (PATH, "written", "identical"),
        (OTHER, "refused", None),
    ]


def test_a_version_says_who_made_it_and_with_what(lake: Lake) -> None:
    observe(lake, "7")
    newest = upkeep.status(lake).last[0]
    assert newest.message == "record github:7#2"
    assert "@" in newest.author
    assert abs(newest.at - datetime.now(UTC)) < timedelta(minutes=1)


def test_a_version_or_a_moment_shows_the_store_as_it_was(lake: Lake) -> None:
    observe(lake, "1")
    first = upkeep.status(lake).last[0]
    observe(lake, "2")
    count = "SELECT count(*) FROM observation"
    assert ask(lake, count) == [(2,)]
    assert ask(at(lake, first.id), count) == [(1,)]
    assert ask(at(lake, (first.at + timedelta(milliseconds=1)).isoformat()), count) == [(1,)]
    catalog = goldenctl.open_catalog(store=lake.metadata, as_of=first.id)
    assert catalog.runs()["id"].to_list() == ["github:1#2"]


@pytest.mark.parametrize("as_of", ["999", "2001-01-01"])
def test_a_version_the_store_never_had_is_wrong_use(alone: Lake, as_of: str) -> None:
    observe(alone, "1")
    with pytest.raises(UsageError, match=f"no version {as_of}"):
        query.status(at(alone, as_of))


def test_what_was_cannot_be_written(alone: Lake) -> None:
    observe(alone, "1")
    with pytest.raises(UsageError, match="only read"):
        observe(at(alone, "1"), "2")


def test_compacting_merges_files_and_changes_no_row_and_no_earlier_version(lake: Lake) -> None:
    for run in range(4):
        observe(lake, str(run), long_loss(run))
    early = at(lake, upkeep.status(lake).last[1].id)
    rows = 'SELECT content, step, "value" FROM "value" ORDER BY ALL'
    before, earlier = ask(lake, rows), ask(early, rows)
    assert (len(before), len(earlier)) == (4000, 3000)
    upkeep.compact(lake)
    files = {t.table: t.files for t in upkeep.status(lake).tables}
    assert files["value"] == 1
    assert files["observation"] == 1
    assert ask(lake, rows) == before
    assert ask(early, rows) == earlier


def test_cleaning_removes_old_versions_and_keeps_the_newest_rows(lake: Lake) -> None:
    for run in range(3):
        observe(lake, str(run), long_loss(run))
    upkeep.compact(lake)
    soon = datetime.now(UTC) + timedelta(seconds=1)
    kept = upkeep.clean(lake, datetime.now(UTC) - timedelta(hours=1))
    assert (kept.versions, kept.old_files, kept.orphans) == (0, (), ())
    would = upkeep.clean(lake, soon, dry_run=True)
    assert upkeep.status(lake).versions > 1
    done = upkeep.clean(lake, soon)
    assert len(done.old_files) == len(would.old_files) == 3
    assert upkeep.status(lake).versions == 1
    assert ask(lake, 'SELECT count(*), sum(step)::BIGINT FROM "value"') == [(3000, 3 * 500500)]


def test_a_file_no_version_has_is_an_orphan_and_goes_when_old_enough(lake: Lake) -> None:
    observe(lake, "1", long_loss(1))
    orphan = Path(lake.data) / "main" / "value" / "left-by-a-killed-writer.parquet"
    kept = next(Path(lake.data).rglob("*.parquet"))
    orphan.write_bytes(kept.read_bytes())
    assert upkeep.clean(lake, datetime.now(UTC) - timedelta(hours=1)).orphans == ()
    done = upkeep.clean(lake, datetime.now(UTC) + timedelta(seconds=1))
    assert [Path(file).name for file in done.orphans] == [orphan.name]
    assert not orphan.exists()
    assert kept.exists()


def test_the_values_of_one_case_are_read_from_files_of_their_own(lake: Lake) -> None:
    for start, case in enumerate(("tiny", "small", "large")):
        key = replace(candidate(LOSS).key, test_case=case)
        of = replace(RUN, id=case)
        one = replace(candidate(long_loss(start), f"goldens/moe/{case}/golden_values_dev_dgx_h100.json"), run=of, key=key)
        record_run(lake, of, [one])
    upkeep.compact(lake)
    files = {t.table: t.files for t in upkeep.status(lake).tables}
    assert files["value"] == 3
    found = goldenctl.open_catalog(store=lake.metadata).observations("moe/tiny", "lm loss")
    assert found.height == 1000
    assert found["value"][0] == 0.25


def test_a_query_reaches_neither_files_nor_other_databases(lake: Lake, tmp_path: Path) -> None:
    observe(lake, "1")
    for text in (
        "FROM read_csv('/etc/hostname')",
        f"COPY observation TO '{tmp_path}/out.parquet'",
        f"ATTACH '{tmp_path}/other.duckdb'",
        "DELETE FROM observation",
        "SET enable_external_access = true",
    ):
        with pytest.raises((UsageError, CatalogError)):
            query.sql(lake, text)
    assert ask(lake, "SELECT count(*) FROM observation") == [(1,)]


def test_a_transaction_that_fails_leaves_no_version(lake: Lake) -> None:
    observe(lake, "1")
    before = upkeep.status(lake).current
    with pytest.raises(RuntimeError), store.writing(lake) as connection:
        connection.execute("INSERT INTO meta VALUES ('k', 'half')")
        raise RuntimeError
    assert upkeep.status(lake).current == before
    assert ask(lake, "SELECT 1 FROM meta WHERE key = 'k'") == []


def test_a_writer_waits_a_bounded_time_for_its_turn(lake: Lake) -> None:
    observe(lake, "1")
    with lakes.maintaining(lake, 5), pytest.raises(CatalogBusyError, match=r"for more than 0\.2 s"), store.writing(lake, 0.2):
        pass


def test_without_a_store_the_error_names_the_command_that_makes_one(lake: Lake) -> None:
    with pytest.raises(CatalogError, match="there is no store yet") as caught:
        query.status(lake)
    assert caught.value.hint == "goldenctl store push"


def test_a_server_that_is_down_is_an_error_with_its_host_and_no_secret(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PGPASSWORD", "hunter2hunter2")
    down = places.lake("postgres://someone@127.0.0.1:9/lake", str(tmp_path))
    for attempt in (lambda: query.status(down), lambda: observe(down, "1")):
        with pytest.raises(CatalogError, match="cannot be reached") as caught:
            attempt()
        assert "127.0.0.1:9/lake" in str(caught.value)
        assert "hunter2" not in str(caught.value)
        assert caught.value.exit_code == 4


def test_another_data_folder_than_the_stores_is_refused(lake: Lake, tmp_path: Path) -> None:
    observe(lake, "1")
    with pytest.raises(CatalogError, match="its files were written to"):
        observe(replace(lake, data=f"{tmp_path}/elsewhere/"), "2")


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("postgres://me:hunter2@host/db", "a password does not belong"),
        ("postgres://host/db?password=hunter2", "a password does not belong"),
        ("postgres://host", "names no database"),
        ("postgres://host:port/db", "no URL"),
        ("mysql://host/db", "no scheme of a store"),
    ],
)
def test_a_url_with_a_secret_or_without_a_database_is_refused(url: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said) as caught:
        places.lake(url, "data")
    assert "hunter2" not in str(caught.value)


def test_options_of_the_url_reach_the_server(tmp_path: Path) -> None:
    lake = places.lake("postgres://me@db.example:5433/golden%20s?sslmode=verify-full&sslrootcert=/a/b", str(tmp_path))
    assert lake.conninfo == (
        "connect_timeout='10' application_name='goldenctl' dbname='golden s' host='db.example' port='5433' user='me' "
        "sslmode='verify-full' sslrootcert='/a/b'"
    )
    assert str(lake) == "postgres://db.example:5433/golden%20s"


def test_an_older_store_is_migrated_when_it_is_opened(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    observe(lake, "1")
    newer = (*store.migrations(), "ALTER TABLE run ADD COLUMN queue VARCHAR DEFAULT 'main'")
    monkeypatch.setattr(store, "migrations", lambda: newer)
    assert ask(lake, "SELECT queue FROM run") == [("main",)]


def test_a_newer_store_is_refused(lake: Lake) -> None:
    with store.writing(lake) as connection:
        connection.execute("UPDATE meta SET \"value\" = '99' WHERE key = 'schema_version'")
    with pytest.raises(CatalogError, match="has schema version 99"):
        query.status(lake)


@pytest.mark.parametrize("text", ["COPY (SELECT 1) TO '{}x.parquet'", "EXPORT DATABASE '{}x'", "DELETE FROM golden"])
def test_sql_on_a_store_changes_no_file_of_it(alone: Lake, text: str) -> None:
    record_run(alone, RUN, [candidate(long_loss(1.0))])
    before = sorted(Path(alone.data).rglob("*"))
    with pytest.raises(UsageError, match="is no question"):
        ask(alone, text.format(alone.data))
    assert sorted(Path(alone.data).rglob("*")) == before


def test_a_store_in_a_folder_goes_on_where_both_are_moved(alone: Lake, tmp_path: Path) -> None:
    record_run(alone, RUN, [candidate(long_loss(1.0))])
    (tmp_path / "elsewhere").mkdir()
    for name in ("store.ducklake", "data"):
        (tmp_path / name).rename(tmp_path / "elsewhere" / name)
    moved = places.lake(str(tmp_path / "elsewhere/store.ducklake"), str(tmp_path / "elsewhere/data"))
    assert observe(moved, "2", long_loss(2.0)) == 1
    assert ask(moved, 'SELECT count(*) FROM "value"') == [(2000,)]
    assert not Path(alone.data).exists()


def test_a_folder_without_the_files_of_the_store_is_refused(alone: Lake, tmp_path: Path) -> None:
    record_run(alone, RUN, [candidate(long_loss(1.0))])
    other = places.lake(alone.metadata, str(tmp_path / "other"))
    (tmp_path / "other").mkdir()
    with pytest.raises(CatalogError, match="its files were written to"):
        observe(other, "2")
    with pytest.raises(CatalogError, match="its files were written to"):
        query.status(other)
