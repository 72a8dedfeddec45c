"""A small tree, what a write-back does to it, and processes that die on the way."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

from goldenctl.model import Change
from goldenctl.writeback import apply, recover

ROOT = "goldens"
OLD = {"goldens/a.json": b"old a", "goldens/sub/b.json": b"old b", "goldens/gone.json": b"old gone"}
NEW = {"goldens/a.json": b"new a, longer", "goldens/sub/b.json": b"new b", "goldens/fresh/deep/c.json": b"new c"}
CHANGES = tuple(Change(path, OLD.get(path), NEW.get(path)) for path in sorted(OLD | NEW))
MODES = {"goldens/a.json": 0o640, "goldens/sub/b.json": 0o755}


def build(top: Path) -> Path:
    """The tree before."""
    for path, content in OLD.items():
        (top / path).parent.mkdir(parents=True, exist_ok=True)
        (top / path).write_bytes(content)
    for path, mode in MODES.items():
        (top / path).chmod(mode)
    return top


def files(top: Path) -> dict[str, bytes]:
    """Every file below the golden folder with its content."""
    return {p.relative_to(top).as_posix(): p.read_bytes() for p in sorted((top / ROOT).rglob("*")) if p.is_file()}


def goldens(top: Path) -> dict[str, bytes]:
    """The golden files alone, without temporary files."""
    return {path: content for path, content in files(top).items() if path.endswith(".json")}


def untouched(top: Path) -> bool:
    """Whether the tree is as :func:`build` made it: contents, modes, no folder more, no journal."""
    modes = {path: (top / path).stat().st_mode & 0o777 for path in MODES}
    left = (top / ".goldenctl/journal").exists() or (top / "goldens/fresh").exists()
    return files(top) == OLD and modes == MODES and not left


def written(top: Path) -> bool:
    """Whether every change arrived, modes kept, nothing left behind."""
    modes = {path: (top / path).stat().st_mode & 0o777 for path in MODES}
    return files(top) == NEW and modes == MODES and not (top / ".goldenctl/journal").exists()


def killed_at_step(work: Callable[[Callable[[str], None]], Any], number: int) -> str:
    """Run ``work(step)`` in a child that kills itself with SIGKILL after step ``number``; the step's word, or ``""``."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:  # pragma: no cover
        count = 0

        def step(word: str) -> None:
            nonlocal count
            count += 1
            if count == number:
                os.write(write, word.encode())
                os.kill(os.getpid(), signal.SIGKILL)

        _leave(lambda: work(step))
    os.close(write)
    with os.fdopen(read) as stream:
        word = stream.read()
    return word if _died(child) else ""


def killed_at_line(work: Callable[[], Any], number: int) -> bool:
    """Run ``work()`` in a child that kills itself before line ``number`` of the write-back; whether it got that far."""
    child = os.fork()
    if child == 0:  # pragma: no cover
        count = 0

        def line(_frame: FrameType, event: str, _argument: Any) -> Any:
            nonlocal count
            count += event == "line"
            if count == number:
                os.kill(os.getpid(), signal.SIGKILL)
            return line

        def call(frame: FrameType, _event: str, _argument: Any) -> Any:
            return line if "goldenctl/writeback/" in frame.f_code.co_filename else None

        sys.settrace(call)
        _leave(work)
    return _died(child)


def _leave(work: Callable[[], Any]) -> None:  # pragma: no cover
    try:
        work()
    except BaseException:
        os._exit(1)
    os._exit(0)


def _died(child: int) -> bool:
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0
    return os.WIFSIGNALED(status)


def write(top: Path, step: Callable[[str], None] | None = None) -> None:
    """The write-back of :data:`CHANGES`."""
    apply(top, ROOT, CHANGES, **({"step": step} if step else {}))


def repair(top: Path, step: Callable[[str], None] | None = None) -> list[str]:
    """The next command's recovery."""
    return recover(top, **({"step": step} if step else {}))
