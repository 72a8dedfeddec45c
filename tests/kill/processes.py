"""Commands in processes that are killed: at a step of theirs, after some seconds, or when a file is seen to change."""

from __future__ import annotations

import ctypes
import importlib
import json
import os
import signal
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from goldenctl.cli import app
from tests.kill.steps import Steps
from tests.product.child import Asked
from tests.product.child import run as run_here

PR_SET_CHILD_SUBREAPER = 36
PATIENCE = 10.0
"""Seconds in which the processes of a killed command must have ended."""


@dataclass(frozen=True)
class Moment:
    """When a command is killed; the moment that never comes by default."""

    step: int = 0
    """Before this step, counted from 1."""
    seconds: float = 0.0
    changes: int = 0
    """At this change of the watched files' sizes."""


@dataclass(frozen=True)
class Ended:
    """How a command came to its end."""

    code: int
    """Exit code; -9 after a kill."""
    out: str
    err: str
    words: tuple[str, ...]
    """The steps it got to."""
    seconds: float

    @property
    def killed(self) -> bool:
        """Whether the kill came before its own end."""
        return self.code == -signal.SIGKILL


NEVER = Moment()


def load() -> None:
    """Load what every command needs, so that forks have it, and let orphans of killed commands come to this process."""
    app.build(app.COMMANDS)
    for heavy in ("duckdb", "polars", "rich.table", "goldenctl.catalog.build", "goldenctl.catalog.transfer"):
        importlib.import_module(heavy)
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def run(
    folder: Path,
    arguments: Sequence[str],
    moment: Moment = NEVER,
    ease: Callable[[], None] = lambda: None,
    watched: Sequence[Path] = (),
) -> Ended:
    """Run one command in a fork and end it at the moment; all processes it started are gone afterwards."""
    started = time.monotonic()
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        child = os.fork()
        if child == 0:
            os._exit(_child(folder, arguments, moment.step, ease, (out.fileno(), err.fileno())))
        status = _wait(child, moment, watched)
        seconds = time.monotonic() - started
        _until_gone(child)
        said = [_text(stream.fileno()) for stream in (out, err)]
    words = Path(f"{folder}.steps")
    told = tuple(words.read_text().splitlines()) if words.exists() else ()
    words.unlink(missing_ok=True)
    return Ended(os.waitstatus_to_exitcode(status), said[0], said[1], told, seconds)


def _child(folder: Path, arguments: Sequence[str], at: int, ease: Callable[[], None], streams: tuple[int, int]) -> int:
    os.setpgid(0, 0)
    os.environ.update(NO_COLOR="1", COLUMNS="120")
    ease()
    steps = Steps(folder, at)
    steps.install()
    code = run_here(Asked(str(folder), tuple(arguments)), *streams, os.open(os.devnull, os.O_WRONLY))
    steps.tell()
    return code


def _text(handle: int) -> str:
    os.lseek(handle, 0, os.SEEK_SET)
    return os.read(handle, 1 << 20).decode("utf-8", "replace")


def _wait(child: int, moment: Moment, watched: Sequence[Path]) -> int:
    """The child's status, after it was killed when the moment comes from outside."""
    if not (moment.seconds or moment.changes):
        return os.waitpid(child, 0)[1]
    due, seen, before = time.monotonic() + (moment.seconds or 3600), 0, _sizes(watched)
    while not (ended := os.waitpid(child, os.WNOHANG))[0]:
        now = _sizes(watched)
        seen, before = seen + (now != before), now
        if time.monotonic() >= due or 0 < moment.changes <= seen:
            os.kill(child, signal.SIGKILL)
            return os.waitpid(child, 0)[1]
    return ended[1]


def _sizes(watched: Sequence[Path]) -> list[int]:
    found = []
    for path in watched:
        try:
            found.append(path.stat().st_size)
        except FileNotFoundError:
            found.append(-1)
    return found


def _until_gone(group: int) -> None:
    """Wait for what the command has started: git, processes that parse."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        with suppress(ChildProcessError):
            while os.waitpid(-group, os.WNOHANG)[0]:
                pass
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return
        time.sleep(0.002)
    raise AssertionError(f"processes it started still run after {PATIENCE:g} s")


def computed(work: Callable[[], Any]) -> Any:
    """What a function returns in a fork, as JSON tells it: this process opens no database, so that it can go on forking."""
    with tempfile.TemporaryFile() as stream:
        child = os.fork()
        if child == 0:
            code = 1
            try:
                os.write(stream.fileno(), json.dumps(work()).encode())
                code = 0
            except BaseException as exc:
                os.write(stream.fileno(), repr(exc).encode())
            os._exit(code)
        status = os.waitpid(child, 0)[1]
        said = _text(stream.fileno())
    assert status == 0, said
    return json.loads(said)
