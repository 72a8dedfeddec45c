"""Progress on stderr: a bar on a terminal, a line every ten seconds elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from goldenctl.cli import output

Tell = Callable[[int, int, int], None]
"""Called with things done, things in all, bytes so far."""
EVERY = 10.0
"""Seconds between two lines where there is no terminal."""


@contextmanager
def shown(what: str) -> Iterator[Tell]:
    """Show how far a transfer is while the block runs; ``what`` names the things counted."""
    if output.terminal(sys.stderr):
        with _bar(what) as tell:
            yield tell
    else:
        yield _Lines(what).tell


class _Lines:
    def __init__(self, what: str) -> None:
        self._what = what
        self._next = time.monotonic() + EVERY

    def tell(self, done: int, total: int, size: int) -> None:
        """Say a line when the last is ten seconds old."""
        if time.monotonic() >= self._next:
            self._next = time.monotonic() + EVERY
            output.note(f"{done} of {total} {self._what}, {size:,} bytes")


@contextmanager
def _bar(what: str) -> Iterator[Tell]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    columns = (TextColumn(what), BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[size]}"))
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=None, size="")

        def tell(done: int, total: int, size: int) -> None:
            bar.update(task, completed=done, total=total, size=f"{size:,} bytes")

        yield tell
