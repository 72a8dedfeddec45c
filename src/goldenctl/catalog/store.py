"""Open the catalog: one writer at a time, a bounded wait, the schema migrated forward.

A DuckDB file open for writing shuts out every other process, so nobody keeps it open: each writing is one
short transaction and each reading one question. A lock file beside the catalog is the turnstile. A writer
keeps it until its transaction is over; a reader only while it opens, so that readers share the file.
"""

from __future__ import annotations

import json
import os
import re
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from importlib.resources import files
from pathlib import Path
from types import ModuleType
from typing import Any

import duckdb
from filelock import FileLock, Timeout

from goldenctl.catalog.places import Lake, Place
from goldenctl.errors import CatalogBusyError, CatalogError, UsageError
from goldenctl.files import OWN, own_folder, refuse_link, write_own

WAIT = 30.0
"""Seconds a command waits for another process before it says who holds the catalog."""
_PAUSE = 0.02
"""Seconds between two attempts to open a file that a reader still has open."""
_VERSION_LINE = re.compile(r"^-- version (\d+)$", re.MULTILINE)
_PID = re.compile(r"\(PID (\d+)\)")
_OPENING = threading.Lock()
"""Two connections of one process share their settings, and the first to open makes them."""
_SAFE = {
    "enable_external_access": False,
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
    "allow_community_extensions": False,
}
"""A catalog reads and writes itself and nothing else: no file, no network, no variable of ours."""


@cache
def migrations() -> tuple[str, ...]:
    """The blocks of ``schema.sql``; number i takes version i to version i + 1."""
    text = files("goldenctl.catalog").joinpath("schema.sql").read_text("utf-8")
    return tuple(_VERSION_LINE.split(text)[2::2])


@contextmanager
def writing(
    place: Place, wait: float = WAIT, done: Callable[[], None] = lambda: None, about: str = ""
) -> Iterator[duckdb.DuckDBPyConnection]:
    """One transaction: committed at the end, rolled back when anything is raised.

    Parameters
    ----------
    place
        The catalog file or the lake; made when there is none.
    wait
        Seconds to wait for other processes.
    done
        Called after a commit, when the file is closed and the lock still held.
    about
        What a lake's version says of itself; a file keeps no versions.

    Raises
    ------
    CatalogBusyError
        Another process held it longer than ``wait``; the message names it.
    CatalogError
        The file is no catalog, is newer than this program, or cannot be written.
    """
    if isinstance(place, Lake):
        with _lake().writing(place, wait, about) as connection:
            yield connection
        done()
        return
    _make_folder(place)
    with turnstile(place, wait) as deadline:
        connection = _connect(place, deadline, wait, read_only=False)
        try:
            migrate(connection, str(place))
            connection.execute("BEGIN")
            yield connection
            connection.execute("COMMIT")
        except duckdb.Error as exc:
            raise CatalogError(f"cannot be written: {first_line(exc)}", place=str(place)) from exc
        finally:
            connection.close()
        done()


@contextmanager
def reading(place: Place, wait: float = WAIT) -> Iterator[duckdb.DuckDBPyConnection]:
    """A read-only connection; others may read at the same time, writers of a file wait until it is closed.

    Raises
    ------
    CatalogBusyError
        A writer held the catalog longer than ``wait``.
    CatalogError
        There is no catalog, or it cannot be read by this program.
    """
    if isinstance(place, Lake):
        with _lake().reading(place, wait) as connection:
            yield connection
        return
    connection = _readable(place, wait)
    try:
        yield connection
    except duckdb.Error as exc:
        raise CatalogError(f"cannot be read: {first_line(exc)}", place=str(place)) from exc
    finally:
        connection.close()


def _lake() -> ModuleType:
    from goldenctl.catalog import lake  # a file needs none of it

    return lake


def _readable(path: Path, wait: float) -> duckdb.DuckDBPyConnection:
    """A read-only connection to a file of the newest schema."""
    if not path.exists():
        raise CatalogError("there is no catalog yet", place=str(path), hint="goldenctl catalog build")
    with turnstile(path, wait) as deadline:
        connection = _connect(path, deadline, wait, read_only=True)
        try:
            found = version(connection, str(path))
        except duckdb.Error as exc:
            raise _unusable(path, exc) from exc
        if found < len(migrations()):
            connection.close()
            _upgrade(path, deadline, wait)
            connection = _connect(path, deadline, wait, read_only=True)
    return connection


def _make_folder(path: Path) -> None:
    """The catalog's folder, ignored by git when it is ours."""
    try:
        if path.parent.name == OWN:
            own_folder(path.parent)
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as exc:
        raise CatalogError(f"its folder cannot be made: {exc.strerror}", place=str(path)) from exc


@contextmanager
def turnstile(path: Path, wait: float) -> Iterator[float]:
    """Hold the lock file; yields the moment at which the wait is over."""
    if path.is_dir():
        raise UsageError("is a folder, and a catalog is a file", place=str(path), hint="name a file in it, or one to be made")
    deadline = time.monotonic() + wait
    lock = FileLock(f"{path}.lock")
    try:
        for own in (path, Path(f"{path}.lock")):
            refuse_link(own)
        lock.acquire(timeout=wait)
    except Timeout:
        raise _busy(path, wait, _holder(path)) from None
    except OSError as exc:
        raise CatalogError(f"its lock file cannot be made: {exc.strerror}", place=f"{path}.lock") from exc
    try:
        _announce(path)
        yield deadline
    finally:
        lock.release()


def _announce(path: Path) -> None:
    """Leave a note on who holds the lock; without it the message is poorer and nothing else is wrong."""
    words = [Path(sys.argv[0]).name, *sys.argv[1:3]]
    command = " ".join(w for w in words if re.fullmatch(r"[\w.\-]+", w))
    with suppress(OSError):
        write_own(Path(f"{path}.holder"), json.dumps({"pid": os.getpid(), "command": command}))


def _holder(path: Path) -> str:
    with suppress(OSError, ValueError, KeyError, TypeError):
        note = json.loads(Path(f"{path}.holder").read_text("utf-8"))
        return f"process {int(note['pid'])} ({note['command']})"
    return "another process"


def _busy(path: Path, wait: float, holder: str) -> CatalogBusyError:
    return CatalogBusyError(
        f"{holder} has held the catalog for more than {wait:g} s", place=str(path), hint="try again when it is done"
    )


def _connect(path: Path, deadline: float, wait: float, *, read_only: bool) -> duckdb.DuckDBPyConnection:
    while True:
        try:
            return _open(path, read_only)
        except duckdb.Error as exc:
            holder = _conflict(exc)
            if not holder:
                raise _unusable(path, exc) from exc
            if time.monotonic() >= deadline:
                raise _busy(path, wait, holder) from exc
            time.sleep(_PAUSE)


def _conflict(exc: duckdb.Error) -> str:
    """Who has the file open, when that is all that is wrong."""
    if "different configuration" in str(exc):
        return f"this process ({os.getpid()})"
    held = _PID.search(str(exc)) if isinstance(exc, duckdb.IOException) and "lock" in str(exc) else None
    return f"process {held[1]}{_command_of(held[1])}" if held else ""


def _open(path: Path, read_only: bool) -> duckdb.DuckDBPyConnection:
    config: dict[str, Any] = dict(_SAFE)
    if not read_only:
        config["threads"] = 1  # the other cores parse; more threads take a third more work for one stream of rows
    with _OPENING:
        connection = duckdb.connect(str(path), read_only=read_only, config=config)
        if first_row(connection, "SELECT current_setting('lock_configuration')") == (False,):
            # not so when another connection of this process has the file open: it did this already
            connection.execute("SET python_enable_replacements = false")
            connection.execute("SET lock_configuration = true")
    return connection


def _unusable(path: Path, exc: duckdb.Error) -> CatalogError:
    hint = "move it away; goldenctl catalog build makes it again from git"
    return CatalogError(f"cannot be opened: {first_line(exc)}", place=str(path), hint=hint)


def _command_of(pid: str) -> str:
    """What a reader's process is called, where the system tells."""
    with suppress(OSError):
        name = Path(f"/proc/{pid}/comm").read_text("utf-8", "replace").strip()
        return f" ({name}, reading)"
    return ""


def first_line(exc: BaseException) -> str:
    """The first line of a foreign error's message."""
    return str(exc).partition("\n")[0]


def first_row(connection: duckdb.DuckDBPyConnection, query: str) -> tuple[Any, ...] | None:
    """The only or first row of a query; it is read to its end, which DuckDB 2 asks for before anything else is done."""
    return next(iter(connection.execute(query).fetchall()), None)


def version(connection: duckdb.DuckDBPyConnection, place: str) -> int:
    """The schema version of an open catalog; 0 for an empty one.

    Raises
    ------
    CatalogError
        It is newer than this program, or no catalog of ours.
    """
    try:
        row = first_row(connection, "SELECT \"value\" FROM meta WHERE key = 'schema_version'")
    except (duckdb.CatalogException, duckdb.BinderException):  # no such table, or one of another make
        tables = "SELECT 1 FROM duckdb_tables() WHERE database_name = current_database()"
        row = None
        if not first_row(connection, tables):
            return 0
    if row is None or not str(row[0]).isdecimal():
        raise CatalogError("is a DuckDB file, but no catalog of goldenctl", place=place, hint="name another file")
    found = int(row[0])
    if found > len(migrations()):
        raise CatalogError(
            f"has schema version {found}, and this goldenctl knows up to {len(migrations())}",
            place=place,
            hint="upgrade goldenctl, or move the file away and run goldenctl catalog build",
        )
    return found


def _upgrade(path: Path, deadline: float, wait: float) -> None:
    connection = _connect(path, deadline, wait, read_only=False)
    try:
        migrate(connection, str(path))
    finally:
        connection.close()


def migrate(connection: duckdb.DuckDBPyConnection, place: str, besides: str = "SELECT 1") -> None:
    """Bring the schema to the newest version, all of it or nothing; ``besides`` is done in the same transaction."""
    found = version(connection, place)
    if found == len(migrations()):
        return
    connection.execute("BEGIN")
    for block in migrations()[found:]:
        connection.execute(block)
    # no parameter: it would make DuckDB import pandas where that is installed, which takes longer than all the rest
    connection.execute("DELETE FROM meta WHERE key = 'schema_version'")
    connection.execute(f"INSERT INTO meta VALUES ('schema_version', '{len(migrations())}')")  # noqa: S608
    connection.execute(besides)
    connection.execute("COMMIT")
