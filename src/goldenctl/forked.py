"""For commands whose work is one long loop of Python: tasks side by side in forked children, and no garbage collection."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

from goldenctl.errors import RepoError

Result = TypeVar("Result")


@contextmanager
def no_collections() -> Iterator[None]:
    """Keep the garbage collector from walking documents and rows, which hold no cycles; it takes a tenth of the time."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def side_by_side(tasks: Sequence[Callable[[], Result]]) -> list[Result]:
    """Results of the tasks in their order, all but the first computed in forked children.

    A program with threads must give one task only: a fork copies their locks, not the threads. Where the system
    cannot fork, the tasks run one after the other.

    Raises
    ------
    Exception
        What a task raised, as it raised it.
    """
    if len(tasks) == 1 or not hasattr(os, "fork"):
        return [task() for task in tasks]
    import pickle

    children = [_fork(task) for task in tasks[1:]]
    results = [_guarded(tasks[0])]
    for pid, reading in children:
        with os.fdopen(reading, "rb") as stream:
            payload = stream.read()
        os.waitpid(pid, 0)
        ended = RepoError("a worker process ended early", hint="run the command again")
        results.append(pickle.loads(payload) if payload else ended)  # noqa: S301 - from our own child
    for result in results:
        if isinstance(result, Exception):
            raise result
    return [r for r in results if not isinstance(r, Exception)]


def _guarded(task: Callable[[], Result]) -> Result | Exception:
    try:
        return task()
    except Exception as exc:
        return exc


def _fork(task: Callable[[], Result]) -> tuple[int, int]:
    """A child that computes the task and writes its pickled result: its pid, and the pipe to read from."""
    import pickle

    reading, writing = os.pipe()
    pid = os.fork()
    if pid:
        os.close(writing)
        return pid, reading
    os.close(reading)
    with os.fdopen(writing, "wb") as stream:
        stream.write(pickle.dumps(_guarded(task), protocol=5))
    os._exit(0)
