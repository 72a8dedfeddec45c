"""Open the catalog file: one writer at a time, a bounded wait, the schema migrated forward.

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
from typing import Any

import duckdb
from filelock import FileLock, Timeout

from goldenctl.config import own_folder
from goldenctl.errors import CatalogBusyError, CatalogError

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
def writing(path: Path, wait: float = WAIT, done: Callable[[], None] = lambda: None) -> Iterator[duckdb.DuckDBPyConnection]:
    """One transaction: committed at the end, rolled back when anything is raised.

    Parameters
    ----------
    path
        The catalog file; made with its folder when there is none.
    wait
        Seconds to wait for other processes.
    done
        Called after a commit, when the file is closed and the lock still held.

    Raises
    ------
    CatalogBusyError
        Another process held it longer than ``wait``; the message names it.
    CatalogError
        The file is no catalog, is newer than this program, or cannot be written.
    """
    _make_folder(path)
    with _turnstile(path, wait) as deadline:
        connection = _connect(path, deadline, wait, read_only=False)
        try:
            _migrate(connection, path)
            connection.execute("BEGIN")
            yield connection
            connection.execute("COMMIT")
        except duckdb.Error as exc:
            raise CatalogError(f"cannot be written: {_first_line(exc)}", place=str(path)) from exc
        finally:
            connection.close()
        done()


@contextmanager
def reading(path: Path, wait: float = WAIT) -> Iterator[duckdb.DuckDBPyConnection]:
    """A read-only connection; others may read at the same time, writers wait until it is closed.

    Raises
    ------
    CatalogBusyError
        A writer held the catalog longer than ``wait``.
    CatalogError
        There is no catalog, or it cannot be read by this program.
    """
    if not path.exists():
        raise CatalogError("there is no catalog yet", place=str(path), hint="goldenctl catalog build")
    with _turnstile(path, wait) as deadline:
        connection = _connect(path, deadline, wait, read_only=True)
        if _version(connection, path) < len(migrations()):
            connection.close()
            _upgrade(path, deadline, wait)
            connection = _connect(path, deadline, wait, read_only=True)
    try:
        yield connection
    except duckdb.Error as exc:
        raise CatalogError(f"cannot be read: {_first_line(exc)}", place=str(path)) from exc
    finally:
        connection.close()


def _make_folder(path: Path) -> None:
    """The catalog's folder, ignored by git when it is ours."""
    try:
        if path.parent.name == ".goldenctl":
            own_folder(path.parent)
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as exc:
        raise CatalogError(f"its folder cannot be made: {exc.strerror}", place=str(path)) from exc


@contextmanager
def _turnstile(path: Path, wait: float) -> Iterator[float]:
    """Hold the lock file; yields the moment at which the wait is over."""
    deadline = time.monotonic() + wait
    lock = FileLock(f"{path}.lock")
    try:
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
        Path(f"{path}.holder").write_text(json.dumps({"pid": os.getpid(), "command": command}), "utf-8")


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
        if connection.execute("SELECT current_setting('lock_configuration')").fetchone() == (False,):
            # not so when another connection of this process has the file open: it did this already
            connection.execute("SET python_enable_replacements = false")
            connection.execute("SET lock_configuration = true")
    return connection


def _unusable(path: Path, exc: duckdb.Error) -> CatalogError:
    hint = "move it away; goldenctl catalog build makes it again from git"
    return CatalogError(f"cannot be opened: {_first_line(exc)}", place=str(path), hint=hint)


def _command_of(pid: str) -> str:
    """What a reader's process is called, where the system tells."""
    with suppress(OSError):
        name = Path(f"/proc/{pid}/comm").read_text("utf-8", "replace").strip()
        return f" ({name}, reading)"
    return ""


def _first_line(exc: BaseException) -> str:
    return str(exc).partition("\n")[0]


def _version(connection: duckdb.DuckDBPyConnection, path: Path) -> int:
    """The schema version of an open catalog; 0 for an empty file.

    Raises
    ------
    CatalogError
        It is newer than this program, or no catalog of ours.
    """
    try:
        row = connection.execute("SELECT \"value\" FROM meta WHERE key = 'schema_version'").fetchone()
    except duckdb.Error:
        row = None
        if not connection.execute("SELECT table_name FROM duckdb_tables()").fetchall():
            return 0
    if row is None or not str(row[0]).isdecimal():
        raise CatalogError("is a DuckDB file, but no catalog of goldenctl", place=str(path), hint="name another file")
    version = int(row[0])
    if version > len(migrations()):
        raise CatalogError(
            f"has schema version {version}, and this goldenctl knows up to {len(migrations())}",
            place=str(path),
            hint="upgrade goldenctl, or move the file away and run goldenctl catalog build",
        )
    return version


def _upgrade(path: Path, deadline: float, wait: float) -> None:
    connection = _connect(path, deadline, wait, read_only=False)
    try:
        _migrate(connection, path)
    finally:
        connection.close()


def _migrate(connection: duckdb.DuckDBPyConnection, path: Path) -> None:
    """Bring the schema to the newest version, all of it or nothing."""
    version = _version(connection, path)
    if version == len(migrations()):
        return
    connection.execute("BEGIN")
    for block in migrations()[version:]:
        connection.execute(block)
    # no parameter: it would make DuckDB import pandas where that is installed, which takes longer than all the rest
    connection.execute(f"INSERT OR REPLACE INTO meta VALUES ('schema_version', '{len(migrations())}')")  # noqa: S608
    connection.execute("COMMIT")
