"""Open the shared catalog: DuckLake on PostgreSQL or a file, one writer's transaction at a time.

DuckLake has no primary keys: two writers that each look before they insert would both insert. A lock of
PostgreSQL around every writing makes looking and inserting one step, and spares the retries of DuckLake,
whose slowest writer waits ten times as long. Readers take no lock and see one version.
"""

from __future__ import annotations

import getpass
import json
import os
import platform
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import duckdb

from goldenctl.catalog import extensions, objects, store
from goldenctl.catalog.places import Lake
from goldenctl.errors import CatalogBusyError, CatalogError, UsageError

_LOCK = 0x676F6C64
"""Key of the advisory lock in the metadata's database."""
_PAUSE = 0.05
"""Seconds before the second attempt to connect; doubled each time."""
_LATER = re.compile(r"too many clients|connection slots|starting up|shutting down|Conflicting lock|database is locked")
_SECRETS = ("AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_ACCESS_KEY_ID", "PGPASSWORD")
_SAFE = {"autoinstall_known_extensions": False, "autoload_known_extensions": False, "allow_community_extensions": False}
_SQLITE = (".sqlite", ".sqlite3", ".db")
_LAYOUT = 'ALTER TABLE "value" SET PARTITIONED BY (home)'
_INLINE = 200
"""Rows of one table in one commit that go into the metadata instead of a file, until the store is compacted."""
_REPAIR = "check store.metadata and store.data in the settings; `goldenctl store push` to another place makes it anew"
Connection = duckdb.DuckDBPyConnection


@contextmanager
def reading(lake: Lake, wait: float) -> Iterator[Connection]:
    """One version of the lake, read only; its tables have the names they have in a catalog file.

    Raises
    ------
    CatalogError
        There is no store, its server is down, or it cannot be read.
    UsageError
        It has no such version.
    """
    _check_there(lake)
    with _connected(lake, "read") as connection:
        _attach(connection, lake, time.monotonic() + wait, read_only=True)
        if store.version(connection, str(lake)) < len(store.migrations()):
            connection.execute("USE memory")
            connection.execute("DETACH lake")
            _upgrade(lake, wait)
            _attach(connection, lake, time.monotonic() + wait, read_only=True)
        _shut_in(connection, lake)
        connection.execute("BEGIN")
        yield connection


@contextmanager
def writing(lake: Lake, wait: float, about: str = "") -> Iterator[Connection]:
    """One transaction of the lake, committed with an author and a message when nothing is raised.

    Raises
    ------
    CatalogBusyError
        Other writers kept the turn longer than ``wait``.
    CatalogError
        The server is down, or the lake cannot be written.
    """
    with maintaining(lake, wait) as (connection, waited):
        connection.execute("BEGIN")
        yield connection
        sign(connection, about, waited)
        connection.execute("COMMIT")


@contextmanager
def maintaining(lake: Lake, wait: float) -> Iterator[tuple[Connection, float]]:
    """A connection while no other process writes, and the seconds waited for that.

    The turn ends with the connection, or when the process dies.
    """
    if lake.as_of:
        raise UsageError("what was is only read", place=str(lake), hint="leave --as-of out")
    with _connected(lake, "written") as connection:
        deadline = time.monotonic() + wait
        early = lake.server and _is_made(connection, lake, deadline)
        if early:
            _attach(connection, lake, deadline, read_only=False)  # takes a third of a second, others may write meanwhile
        started = time.monotonic()
        with _turn(connection, lake, wait):
            waited = time.monotonic() - started
            if not early:
                _make_folders(lake)
                _attach(connection, lake, deadline, read_only=False)
            _shut_in(connection, lake)
            store.migrate(connection, str(lake), _LAYOUT)
            yield connection, waited


def sign(connection: Connection, about: str, waited: float) -> None:
    """Put an author and a message on the version that the open transaction makes."""
    extra = json.dumps({"waited_s": round(waited, 3), "pid": os.getpid()})
    connection.execute("CALL lake.set_commit_message(?, ?, extra_info => ?)", [_author(), about, extra])


def _author() -> str:
    with suppress(OSError, KeyError):
        return f"{getpass.getuser()}@{platform.node()}"
    return platform.node()


def _check_there(lake: Lake) -> None:
    if not lake.server and not Path(lake.metadata).exists():
        raise _none(lake)


def _none(lake: Lake) -> CatalogError:
    return CatalogError("there is no store yet", place=str(lake), hint="goldenctl store push")


def _make_folders(lake: Lake) -> None:
    folders = [] if lake.objects or not lake.data else [Path(lake.data)]
    folders += [] if lake.server else [Path(lake.metadata).parent]
    for folder in folders:
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as exc:
            raise CatalogError(f"cannot be made: {exc.strerror}", place=str(folder), hint="name another folder") from exc


@contextmanager
def _connected(lake: Lake, verb: str) -> Iterator[Connection]:
    """An empty database with the extensions; errors of DuckDB become ours, without a secret in them."""
    names = ("ducklake", *(("postgres_scanner",) if lake.server else ()))
    names += ("sqlite_scanner",) if lake.metadata.endswith(_SQLITE) and not lake.server else ()
    # The installer has checked the wheels; DuckDB would read all 80 MB again each time, for a third of a second.
    config: dict[str, Any] = _SAFE | {"allow_unsigned_extensions": extensions.bundled((*names, "httpfs"))}
    connection = duckdb.connect(config=config)
    try:
        extensions.load(connection, names)
        connection.execute("SET ducklake_max_retry_count = 100")
        yield connection
    except duckdb.Error as exc:
        raise _explained(exc, lake, verb) from exc
    finally:
        connection.close()


def _attach(connection: Connection, lake: Lake, deadline: float, *, read_only: bool) -> None:
    options = ["READ_ONLY", lake.version_clause] if read_only else []
    folder = bool(lake.data) and not lake.objects
    options += [f"DATA_PATH '{_quoted(lake.data)}'"] if lake.data else []
    options += ["OVERRIDE_DATA_PATH true"] if folder else []  # it may have been moved, or be mounted elsewhere here
    options += [] if read_only else [f"DATA_INLINING_ROW_LIMIT {_INLINE}"]
    where = f"postgres:{lake.conninfo}" if lake.server else lake.metadata
    if lake.metadata.endswith(_SQLITE) and not lake.server:
        where = f"sqlite:{where}"
    text = f"ATTACH 'ducklake:{_quoted(where)}' AS lake ({', '.join(o for o in options if o)})"
    if lake.objects:
        extensions.load(connection, ("httpfs",))
    try:
        _patiently(lambda: connection.execute(text), deadline)
    except duckdb.Error as exc:
        if "httpfs" not in str(exc) or lake.objects:
            raise
        extensions.load(connection, ("httpfs",))  # only the metadata knows that the data is in object storage
        connection.execute(text)
    connection.execute("USE lake")
    if folder:
        _check_folder(connection, lake)
    data = lake.data or _data_path(connection)
    if data.startswith("s3://"):  # before the first question: after a compaction no table lies in the metadata any more
        extensions.load(connection, ("httpfs",))
        objects.prepare(connection, data)
    if read_only:
        connection.execute("SET disabled_optimizers = 'join_order'")  # which multiplies the time over long tables


def _check_folder(connection: Connection, lake: Lake) -> None:
    """Refuse a folder that is not where the store's files were written, and holds none of them."""
    written = _data_path(connection)
    if lake.data == written or Path(lake.data, "main").is_dir():
        return
    files = store.first_row(connection, "SELECT count(*) FROM __ducklake_metadata_lake.ducklake_data_file")
    if lake.server or Path(written).exists() or (files and files[0]):
        hint = "name the folder that holds them as store.data"
        raise CatalogError(f"its files were written to {written}, and are not in {lake.data}", place=str(lake), hint=hint)


def _patiently(attempt: Callable[[], object], deadline: float) -> None:
    """Try again while the server or the file says that it has no room just now."""
    pause = _PAUSE
    while True:
        try:
            attempt()
        except duckdb.Error as exc:
            if not _LATER.search(str(exc)) or time.monotonic() + pause > deadline:
                raise
            time.sleep(pause)
            pause = min(2 * pause, 2.0)
        else:
            return


def _is_made(connection: Connection, lake: Lake, deadline: float) -> bool:
    """Whether the server has the tables of a lake; attaches it as ``turn`` to hold the lock with."""
    text = f"ATTACH '{_quoted(lake.conninfo)}' AS turn (TYPE postgres, READ_ONLY)"
    _patiently(lambda: connection.execute(text), deadline)
    return bool(_ask(connection, "SELECT 1 FROM pg_tables WHERE tablename = 'ducklake_metadata'"))


def _ask(connection: Connection, query: str) -> list[tuple[object, ...]]:
    return connection.execute(f"FROM postgres_query('turn', '{_quoted(query)}')").fetchall()


@contextmanager
def _turn(connection: Connection, lake: Lake, wait: float) -> Iterator[None]:
    """Hold the lock: in PostgreSQL until a transaction of its own ends, or a file beside the metadata."""
    if not lake.server:
        _make_folders(lake)
        with store.turnstile(Path(lake.metadata), wait):
            yield
        return
    holder = connection.cursor()
    holder.execute("SET threads = 1")  # with more, the one that waits for the others would take a whole core meanwhile
    holder.execute("BEGIN")
    try:
        _ask(holder, f"SELECT set_config('lock_timeout', '{max(1, int(wait * 1000))}', true)")
        _ask(holder, f"SELECT pg_advisory_xact_lock({_LOCK})")
    except duckdb.Error as exc:
        if "lock timeout" not in str(exc):
            raise
        fact = f"other writers have held the store for more than {wait:g} s"
        raise CatalogBusyError(fact, place=str(lake), hint="goldenctl store status") from exc
    connection.execute("RESET threads")
    try:
        yield
    finally:
        with suppress(duckdb.Error):
            holder.execute("ROLLBACK")
        holder.close()


def _shut_in(connection: Connection, lake: Lake) -> None:
    """From here on the connection reaches the lake and nothing else."""
    folders = [lake.data or _data_path(connection), *([] if lake.server else [lake.metadata])]
    quoted = ", ".join(f"'{_quoted(folder)}'" for folder in folders)
    connection.execute(f"SET allowed_directories = [{quoted}]")
    connection.execute("SET enable_external_access = false")
    connection.execute("SET python_enable_replacements = false")
    connection.execute("SET lock_configuration = true")


def _data_path(connection: Connection) -> str:
    query = "SELECT \"value\" FROM __ducklake_metadata_lake.ducklake_metadata WHERE key = 'data_path'"
    row = store.first_row(connection, query)
    return str(row[0]) if row else ""


def _upgrade(lake: Lake, wait: float) -> None:
    if lake.as_of:
        raise UsageError("the store had another schema then, or none", place=str(lake), hint="name a later version or time")
    with maintaining(lake, wait):
        pass


def _explained(exc: duckdb.Error, lake: Lake, verb: str) -> Exception:
    """Our error for one of DuckDB's: which part failed, and what to do."""
    text = _scrubbed(str(exc))
    line = text.partition("\n")[0]
    if "SNAPSHOT" in text.upper() and lake.as_of:
        return UsageError(f"the store has no version {lake.as_of}: {line}", hint="goldenctl store status")
    if "not exist" in text and "DuckLake" in text:
        return _none(lake)
    if "HTTP" in text or "s3://" in text:
        hint = "AWS_ENDPOINT_URL_S3, AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY; local catalogs work without it"
        return CatalogError(f"its data cannot be {verb}: {line}", place=lake.data or str(lake), hint=hint)
    if "onnect" in text and lake.server:
        said = re.search(r"connection to server .*|could not translate .*|FATAL: .*", text)
        fact = f"its server cannot be reached: {said[0].strip() if said else line}"
        return CatalogError(fact, place=str(lake), hint="pg_isready, PGHOST and PGPASSWORD; local catalogs work without it")
    return CatalogError(f"cannot be {verb}: {line}", place=str(lake), hint=_REPAIR)


def _scrubbed(text: str) -> str:
    for name in _SECRETS:
        secret = os.environ.get(name)
        if secret:
            text = text.replace(secret, "***")
    return text


def _quoted(text: str) -> str:
    return text.replace("'", "''")
