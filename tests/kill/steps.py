"""Each step with which a command changes the disk, and a kill before one of them; installed in the process that is to die."""

from __future__ import annotations

import builtins
import io
import os
import signal
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import duckdb

from goldenctl.catalog import parsing

CALLS = ("fsync", "replace", "rename", "link", "unlink", "remove", "rmdir", "mkdir")
STATEMENTS = ("ATTACH", "BEGIN", "COMMIT", "INSERT", "DELETE", "UPDATE", "CREATE", "CALL")
_OWN = ("journal", "pending", "lake", "catalog")


class Steps:
    """Counts the steps below a folder; before number ``at`` the process is killed, 0 kills none.

    What is on the disk after one step is what is there before the next, so that every state is met.
    """

    def __init__(self, folder: Path, at: int) -> None:
        self.words: list[str] = []
        self._folder, self._at = os.fspath(folder), at
        self._told = os.open(f"{folder}.steps", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)

    def due(self, word: str) -> bool:
        """Whether this is the step before which the process is to die."""
        self.words.append(word)
        return len(self.words) == self._at

    def step(self, word: str) -> None:
        """Go past a step, or die."""
        if self.due(word):
            self.die()

    def die(self) -> None:
        """Leave the words behind and die as by ``kill -9``."""
        self.tell()
        os.kill(os.getpid(), signal.SIGKILL)

    def tell(self) -> None:
        """Leave the words of the steps behind."""
        os.pwrite(self._told, "\n".join(self.words).encode(), 0)

    def where(self, place: object) -> str:
        """Which part of the repository a path or handle belongs to; empty for anything outside and for git's own."""
        try:
            path = os.readlink(f"/proc/self/fd/{place}") if isinstance(place, int) else os.path.abspath(os.fsdecode(place))  # type: ignore[arg-type]  # noqa: PTH100, PTH115
        except (OSError, TypeError):
            return ""
        inside = path.removeprefix(f"{self._folder}/") if path.startswith(f"{self._folder}/") else ""
        if not inside or inside.startswith(".git/"):
            return ""
        if not inside.startswith(".goldenctl"):
            return "golden"
        return next((name for name in _OWN if inside.startswith(f".goldenctl/{name}")), "own folder")

    def install(self) -> None:
        """Put a step before every call that changes the disk, every statement and every process that parses."""
        for name in CALLS:
            setattr(os, name, partial(self._called, name, getattr(os, name)))
        os.open = partial(self._opened, os.open)
        builtins.open = io.open = partial(self._stream, io.open)
        connect: Callable[..., Any] = duckdb.connect
        setattr(duckdb, "connect", lambda *a, **k: _Connection(connect(*a, **k), self))  # noqa: B010
        start = parsing.Parsing._start
        setattr(parsing.Parsing, "_start", lambda *a: self._parsed(start(*a)))  # noqa: B010

    def _called(self, name: str, call: Callable[..., Any], place: object, *more: Any, **options: Any) -> Any:
        where = self.where(more[0] if name in ("replace", "rename", "link") and more else place)
        if where:
            self.step(f"{name} {where}")
        return call(place, *more, **options)

    def _opened(self, call: Callable[..., int], path: object, flags: int, *more: Any, **options: Any) -> int:
        where = self.where(path) if flags & os.O_CREAT else ""
        if where:
            self.step(f"create {where}")
        return call(path, flags, *more, **options)

    def _stream(self, call: Callable[..., Any], file: object, mode: str = "r", *more: Any, **options: Any) -> Any:
        where = self.where(file) if set(mode) & set("wax+") else ""
        if not where:
            return call(file, mode, *more, **options)
        if not isinstance(file, int):
            self.step(f"create {where}")
        return _Stream(call(file, mode, *more, **options), self, where)

    def _parsed(self, process: Any) -> Any:
        if self.due("parsing process"):
            os.kill(process.pid, signal.SIGKILL)
        return process


class _Stream:
    """An open file; a kill before a write leaves half of it written."""

    def __init__(self, stream: Any, steps: Steps, where: str) -> None:
        self._stream, self._steps, self._where = stream, steps, where

    def write(self, content: Any) -> Any:
        if self._steps.due(f"write {self._where}"):
            self._stream.write(content[: len(content) // 2])
            self._stream.flush()
            self._steps.die()
        return self._stream.write(content)

    def __enter__(self) -> _Stream:
        return self

    def __exit__(self, *_: object) -> None:
        self._stream.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


class _Connection:
    """A connection of DuckDB with a step before each statement that writes, and before it is closed."""

    def __init__(self, connection: Any, steps: Steps) -> None:
        self._connection, self._steps = connection, steps

    def execute(self, query: str, *more: Any) -> Any:
        word = query.split(None, 1)[0].upper()
        if word in STATEMENTS:
            self._steps.step(word)
        return self._connection.execute(query, *more)

    def close(self) -> None:
        self._steps.step("close")
        self._connection.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)
