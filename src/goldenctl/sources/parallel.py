"""Work side by side, results as they come."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from goldenctl.model import Artifact, Fetched
    from goldenctl.sources import FetchOptions

T = TypeVar("T")
R = TypeVar("R")


def side_by_side(action: Callable[[T], R], items: Sequence[T], workers: int) -> Iterator[R]:
    """Results of ``action`` on each item, in the order they are done.

    The threads are daemons: an interrupt ends the process at once, whatever a server makes them wait for.
    An exception of ``action`` ends the iteration with it.
    """
    pending: SimpleQueue[T] = SimpleQueue()
    done: SimpleQueue[tuple[R | None, BaseException | None]] = SimpleQueue()
    stopped = threading.Event()
    for item in items:
        pending.put(item)

    def work() -> None:
        while not stopped.is_set():
            try:
                item = pending.get_nowait()
            except Empty:
                return
            try:
                done.put((action(item), None))
            except BaseException as exc:
                done.put((None, exc))

    for _ in range(min(max(workers, 1), len(items))):
        threading.Thread(target=work, daemon=True).start()
    try:
        for _ in items:
            result, failure = done.get()
            if failure is not None:
                raise failure
            yield result  # type: ignore[misc]
    finally:
        stopped.set()


def fetch_all(fetch: Callable[[Artifact], Fetched], artifacts: Sequence[Artifact], options: FetchOptions) -> Iterator[Fetched]:
    """What ``fetch`` makes of each artifact, in the order they are done, the progress told."""
    total = 0
    for done, fetched in enumerate(side_by_side(fetch, artifacts, options.workers), 1):
        total += fetched.bytes_transferred
        if options.on_progress:
            options.on_progress(done, len(artifacts), total)
        yield fetched
