"""Questions to the catalog: status, SQL that can harm nothing, Parquet."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

from goldenctl.catalog import export, record_refresh, sql, status, store
from goldenctl.cli.entry import main
from goldenctl.errors import CatalogError, UsageError
from goldenctl.model import RefreshResult
from tests.catalog.test_record import PATH, TIMES, refresh


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / ".git").mkdir()
    monkeypatch.chdir(tmp_path)
    path = tmp_path / ".goldenctl" / "catalog.duckdb"
    record_refresh(path, refresh(), {PATH: TIMES})
    return path


def test_status_counts_the_rows_of_every_table(path: Path) -> None:
    found = status(path)
    assert found.rows["value"] == 4
    assert found.rows["refresh_file"] == 2
    assert found.schema_version == len(store.migrations())
    assert found.size == path.stat().st_size


def test_status_json_names_its_keys(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["catalog", "status", "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert set(found) == {"path", "size", "schema_version", "rows", "branches"}
    assert found["rows"]["golden"] == 2


def test_sql_prints_csv_with_nan_and_inf_as_they_are(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["catalog", "sql", 'SELECT step, "value" FROM "value" ORDER BY "value"', "--format", "csv"]) == 0
    assert capsys.readouterr().out == "step,value\n2,0.5\n1,10.5\n1,inf\n2,NaN\n"


def test_sql_prints_json_and_a_table(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["catalog", "sql", "SELECT 1 AS a, NULL AS b", "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out) == [{"a": 1, "b": None}]
    assert main(["catalog", "sql", "SELECT metric FROM series ORDER BY metric"]) == 0
    assert [line.strip() for line in capsys.readouterr().out.splitlines() if line.strip()][2:] == ["iteration time", "lm loss"]


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM read_csv('/etc/passwd')",
        "SELECT * FROM '/etc/passwd'",
        "SELECT * FROM read_text('/etc/passwd')",
        "COPY golden TO '/tmp/goldenctl-leak.csv'",
        "EXPORT DATABASE '/tmp/goldenctl-leak'",
        "ATTACH '/tmp/goldenctl-leak.duckdb'",
        "INSTALL httpfs",
        "LOAD httpfs",
        "SELECT * FROM 'https://example.invalid/x.parquet'",
        "SET enable_external_access = true",
        "INSERT INTO meta VALUES ('a', 'b')",
        "DELETE FROM golden",
        "DROP TABLE golden",
        "SELECT * FROM connection",
        "SELEC 1",
        "SELECT nothing FROM golden",
        "SELECT 1 / 'a'",
        "CREATE TEMP TABLE mine (x INTEGER)",
        "EXPLAIN ANALYZE COPY golden TO '/tmp/goldenctl-leak.csv'",
        "explain analyze explain analyze DELETE FROM golden",
        "COPY (PIVOT series ON metric USING count(*)) TO '/tmp/goldenctl-leak.csv'",
        "EXPLAIN ANALYZE COPY (PIVOT series ON metric USING count(*)) TO '/tmp/goldenctl-leak.csv'",
        "COPY FROM DATABASE catalog TO memory",
        "IMPORT DATABASE '/tmp/goldenctl-leak'",
        "EXPLAIN ANALYZE (SELECT 1); DELETE FROM golden",
        "SELECT 1 AS a, 2 AS a",
    ],
)
def test_sql_that_writes_or_reaches_out_or_is_wrong_is_wrong_use(path: Path, query: str) -> None:
    before = path.read_bytes()
    with pytest.raises(UsageError, match=r"the query failed|is no question|2 statements|two columns"):
        sql(path, query)
    assert path.read_bytes() == before
    assert not list(Path("/tmp").glob("goldenctl-leak*"))


@pytest.mark.parametrize("query", ["EXPLAIN SELECT 1", "explain  analyze SELECT 1", "SHOW TABLES", "FROM golden", "VALUES (1)"])
def test_every_kind_of_question_is_answered(path: Path, query: str) -> None:
    assert sql(path, query).height > 0


KINDS = """SELECT INTERVAL 3 DAY AS age, [INTERVAL 1 DAY] AS ages, sum(n)::HUGEINT AS total, 1e20::HUGEINT AS large,
    1.5::DECIMAL(4, 1) AS half, [1, 2] AS list, 'x'::BLOB AS bytes, {'a': 1} AS struct, union_value(k := 1) AS one,
    '101'::BIT AS bits, 'a'::ENUM ('a') AS word, MAP {'k': 1} AS map, DATE '2026-05-01' AS day FROM range(4) AS t (n)"""


def test_every_kind_of_value_is_printed_in_every_format(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["catalog", "sql", KINDS, "--format", "json"]) == 0
    said = json.loads(capsys.readouterr().out)[0]
    assert (said["age"], said["total"], said["large"], said["half"]) == ("3 days", 6, 1e20, 1.5)
    assert (said["list"], said["bytes"], said["struct"], said["one"], said["bits"]) == ([1, 2], "78", {"a": 1}, "1", "101")
    assert main(["catalog", "sql", KINDS, "--format", "csv"]) == 0
    assert capsys.readouterr().out.splitlines()[1].startswith('3 days,[1 day],6,100000000000000000000,1.5,"[1, 2]",x')
    assert main(["catalog", "sql", KINDS]) == 0
    assert "3 days" in capsys.readouterr().out


def test_export_writes_every_table_with_its_rows(path: Path, tmp_path: Path) -> None:
    files = export(path, tmp_path / "out")
    assert len(files) == 15
    assert pl.read_parquet(tmp_path / "out" / "refresh_file.parquet")["action"].sort().to_list() == ["refused", "written"]
    values = pl.read_parquet(tmp_path / "out" / "value.parquet")["value"]
    assert values.is_nan().sum() == 1
    assert values.null_count() == 0


def test_export_into_a_file_is_an_error(path: Path, tmp_path: Path) -> None:
    (tmp_path / "out").write_text("")
    with pytest.raises(CatalogError, match="cannot be written"):
        export(path, tmp_path / "out")


def test_a_missing_catalog_ends_with_exit_code_4(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["catalog", "status", "--catalog", str(tmp_path / "none.duckdb")]) == 4
    assert "goldenctl catalog build" in capsys.readouterr().err


def test_a_catalog_with_nothing_but_a_schema_answers(tmp_path: Path) -> None:
    record_refresh(tmp_path / "c.duckdb", RefreshResult("r", (), ()), {})
    assert sql(tmp_path / "c.duckdb", "SELECT * FROM golden_value").rows() == []


@pytest.mark.parametrize(
    ("query", "count"),
    [("", 0), (" ", 0), ("/* nothing */", 0), (";", 0), ("SELECT 1; SELECT 2", 2), ("SELECT 1; SELEC", None)],
)
def test_a_query_is_one_statement(query: str, count: int | None, path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["catalog", "sql", query]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("error: the query failed: " if count is None else f"error: {count} statements, and one is answered")
    assert "  next: " in err


@pytest.mark.parametrize(
    "query", ["SELECT 1;", "SELECT ';'", "SELECT 1 -- one; two", "FROM (PIVOT series ON metric USING count(*))"]
)
def test_one_statement_is_answered_however_it_is_written(query: str, path: Path) -> None:
    assert len(sql(path, query)) >= 1
