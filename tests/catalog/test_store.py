"""The catalog file: one writer at a time, readers side by side, a schema that only moves forward."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import duckdb
import pytest

from goldenctl.catalog import store
from goldenctl.errors import CatalogBusyError, CatalogError

SOURCE = str(Path(store.__file__).parents[2])


def start(program: str, *arguments: str) -> subprocess.Popen[str]:
    """A process that runs ``program`` and has said its first line."""
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(program), *arguments],
        env=os.environ | {"PYTHONPATH": SOURCE}, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stdout.readline().strip() == "ready"
    return process


def stop(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.communicate()


WRITER = """
    import sys
    from pathlib import Path
    from goldenctl.catalog import store
    sys.argv = ["goldenctl", "catalog", "build", "--token=secret"]
    with store.writing(Path("{path}")) as connection:
        connection.execute("INSERT INTO meta VALUES ('k', 'half')")
        print("ready", flush=True)
        sys.stdin.read()
"""
READER = """
    import sys
    from pathlib import Path
    from goldenctl.catalog import store
    with store.reading(Path("{path}")) as connection:
        print("ready", flush=True)
        sys.stdin.read()
"""


def value_of(path: Path, key: str) -> object:
    with store.reading(path) as connection:
        return connection.execute(f"SELECT \"value\" FROM meta WHERE key = '{key}'").fetchone()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / ".goldenctl" / "catalog.duckdb"
    with store.writing(path):
        pass
    return path


def test_a_new_catalog_has_the_newest_schema_and_is_ignored_by_git(path: Path) -> None:
    assert value_of(path, "schema_version") == (str(len(store.migrations())),)
    assert (path.parent / ".gitignore").read_text() == "*\n"


def test_a_transaction_that_fails_leaves_nothing(path: Path) -> None:
    with pytest.raises(ValueError, match="half way"), store.writing(path) as connection:
        connection.execute("INSERT INTO meta VALUES ('k', 'v')")
        raise ValueError("half way")
    assert value_of(path, "k") is None


def test_a_second_writer_waits_and_then_says_who_holds_the_catalog(path: Path) -> None:
    holder = start(WRITER.format(path=path))
    try:
        with pytest.raises(CatalogBusyError) as caught, store.writing(path, wait=0.1):
            pass
    finally:
        stop(holder)
    assert caught.value.fact == f"process {holder.pid} (goldenctl catalog build) has held the catalog for more than 0.1 s"


def test_a_reader_waits_for_a_writer_and_then_says_who_holds_the_catalog(path: Path) -> None:
    holder = start(WRITER.format(path=path))
    try:
        with pytest.raises(CatalogBusyError, match=f"process {holder.pid} "), store.reading(path, wait=0.1):
            pass
    finally:
        stop(holder)


def test_a_writer_waits_for_a_reader_and_then_says_who_reads(path: Path) -> None:
    holder = start(READER.format(path=path))
    try:
        with pytest.raises(CatalogBusyError, match=rf"process {holder.pid} \(.*, reading\)"), store.writing(path, wait=0.1):
            pass
    finally:
        stop(holder)


def test_readers_share_the_catalog(path: Path) -> None:
    other = start(READER.format(path=path))
    try:
        with store.reading(path, wait=0.1) as connection:
            assert connection.execute("SELECT count(*) FROM golden").fetchone() == (0,)
    finally:
        stop(other)


def test_threads_of_one_process_read_side_by_side_and_a_writer_among_them_waits(path: Path) -> None:
    with store.reading(path), ThreadPoolExecutor(4) as pool:
        assert list(pool.map(lambda _: value_of(path, "k"), range(8))) == [None] * 8
        with pytest.raises(CatalogBusyError, match=f"this process \\({os.getpid()}\\)"), store.writing(path, wait=0.1):
            pass
    with store.writing(path, wait=1):
        pass


def test_a_killed_writer_leaves_the_state_before_its_transaction_and_no_lock(path: Path) -> None:
    holder = start(WRITER.format(path=path))
    os.kill(holder.pid, signal.SIGKILL)
    holder.communicate()
    assert value_of(path, "k") is None
    with store.writing(path, wait=1) as connection:
        connection.execute("INSERT INTO meta VALUES ('k', 'whole')")
    assert value_of(path, "k") == ("whole",)


def test_many_processes_write_and_none_is_lost(path: Path) -> None:
    program = """
        import sys
        from pathlib import Path
        from goldenctl.catalog import store
        print("ready", flush=True)
        for i in range(5):
            with store.writing(Path(sys.argv[1])) as connection:
                connection.execute(f"INSERT INTO meta VALUES ('{sys.argv[2]}-{i}', '')")
    """
    writers = [start(program, str(path), str(n)) for n in range(3)]
    assert [w.communicate(timeout=60) and w.returncode for w in writers] == [0, 0, 0]
    with store.reading(path) as connection:
        assert connection.execute("SELECT count(*) FROM meta WHERE key LIKE '%-%'").fetchone() == (15,)


def test_without_a_catalog_reading_names_the_command_that_makes_one(tmp_path: Path) -> None:
    with pytest.raises(CatalogError, match="there is no catalog yet") as caught, store.reading(tmp_path / "c.duckdb"):
        pass
    assert caught.value.hint == "goldenctl catalog build"


def test_a_newer_catalog_is_refused_and_left_alone(path: Path) -> None:
    with store.writing(path) as connection:
        connection.execute("UPDATE meta SET \"value\" = '99' WHERE key = 'schema_version'")
    before = path.read_bytes()
    for opened in (store.reading, store.writing):
        with pytest.raises(CatalogError, match="has schema version 99") as caught, opened(path):
            pass
        assert "upgrade goldenctl" in caught.value.hint
    assert path.read_bytes() == before


@pytest.mark.parametrize("opened", [store.reading, store.writing])
def test_an_older_catalog_is_migrated_when_it_is_opened(path: Path, opened: object, monkeypatch: pytest.MonkeyPatch) -> None:
    newer = (*store.migrations(), "ALTER TABLE run ADD COLUMN queue VARCHAR DEFAULT 'main'")
    monkeypatch.setattr(store, "migrations", lambda: newer)
    with opened(path) as connection:  # type: ignore[operator]
        assert connection.execute("SELECT queue FROM run").fetchall() == []
    assert value_of(path, "schema_version") == (str(len(newer)),)


def test_a_migration_that_fails_changes_nothing(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = (*store.migrations(), "ALTER TABLE run ADD COLUMN queue VARCHAR; SELECT * FROM nowhere")
    with monkeypatch.context() as patch:
        patch.setattr(store, "migrations", lambda: broken)
        with pytest.raises(CatalogError), store.writing(path):
            pass
    with store.reading(path) as connection:
        assert "queue" not in [c[0] for c in connection.execute("DESCRIBE run").fetchall()]


@pytest.mark.parametrize("content", [b"this is no database", b"\0" * 5000, b'{"lm loss": {}}'])
def test_a_file_that_is_no_catalog_is_an_error_and_stays_as_it_is(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "c.duckdb"
    path.write_bytes(content)
    for opened in (store.reading, store.writing):
        with pytest.raises(CatalogError), opened(path):
            pass
    assert path.read_bytes() == content


def test_a_foreign_database_is_an_error(tmp_path: Path) -> None:
    duckdb.connect(str(tmp_path / "c.duckdb")).execute("CREATE TABLE other (a INT)").close()
    with pytest.raises(CatalogError, match="no catalog of goldenctl"), store.writing(tmp_path / "c.duckdb"):
        pass


def test_a_cut_catalog_is_an_error(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:20000])
    with pytest.raises(CatalogError), store.reading(path) as connection:
        connection.execute("SELECT * FROM golden_value").fetchall()


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes everywhere")
def test_a_folder_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(CatalogError, match="cannot be made"), store.writing(tmp_path / ".goldenctl" / "c.duckdb"):
        pass


def test_a_catalog_below_a_file_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(CatalogError, match="cannot be made"), store.writing(tmp_path / "file" / "c.duckdb"):
        pass
