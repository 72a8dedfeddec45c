"""Parse many documents in processes of their own, while this one loads the database and writes.

Each process gets blob ids on stdin, reads them through one ``git cat-file --batch`` and answers with pickled batches
on stdout. It needs neither duckdb nor polars, and ends by itself when its reader goes away.
"""

from __future__ import annotations

import gc
import os
import pickle
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from typing import BinaryIO

from goldenctl.catalog.rows import Batch, batches, together
from goldenctl.errors import RepoError
from goldenctl.git import Repo

WORTH_A_PROCESS = 500
"""Documents; below it, starting a process costs more than it saves."""
_MOST = 4
"""Processes at most: one writes what all parse, and more would wait for it."""
_RUN = 64
"""Neighbouring documents that stay together: they share delta bases in the pack, and grids."""
_PORTION = 24 << 20
"""Raw bytes of documents that travel together; what has arrived while the last were being written is written together."""
_PROGRAM = "import sys; sys.path[:0] = [sys.argv[1]]; from goldenctl.catalog.parsing import main; main()"
_Message = Batch | RepoError | None
"""A batch, what went wrong, or the end."""


class Parsing:
    """Batches of the documents with these blob ids, in no particular order; begins at once.

    Parameters
    ----------
    repo
        Where the blobs are.
    blobs
        Git blob ids, each once.
    """

    def __init__(self, repo: Repo, blobs: Sequence[str]) -> None:
        self._repo, self._blobs = repo, blobs
        self._queue: SimpleQueue[_Message] = SimpleQueue()
        self._workers = [self._start(share) for share in _shares(blobs)] if len(blobs) >= WORTH_A_PROCESS else []

    def _start(self, blobs: Sequence[str]) -> subprocess.Popen[bytes]:
        package = str(Path(__file__).parents[2])
        # -P: a folder named by the repository is no place to import from
        command = [sys.executable, "-P", "-c", _PROGRAM, package, os.fspath(self._repo.top)]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        Thread(target=self._receive, args=(process, blobs), daemon=True).start()
        return process

    def __iter__(self) -> Iterator[Batch]:
        """Yield the batches.

        Raises
        ------
        RepoError
            A blob cannot be read, or a process was ended from outside.
        """
        if not self._workers:
            yield from batches(self._repo.blobs(self._blobs))
            return
        with ExitStack() as stack:
            for process in self._workers:
                stack.callback(process.wait)
                stack.callback(process.kill)
            open_ends = len(self._workers)
            while open_ends:
                messages = [self._queue.get()]
                while not self._queue.empty():
                    messages.append(self._queue.get())
                open_ends -= messages.count(None)
                for message in messages:
                    if isinstance(message, RepoError):
                        raise message
                arrived = [message for message in messages if isinstance(message, Batch)]
                if arrived:
                    yield together(arrived)

    def _receive(self, process: subprocess.Popen[bytes], blobs: Sequence[str]) -> None:
        """Pass on what a process sends, until its end."""
        if process.stdin is None or process.stdout is None or process.stderr is None:
            self._queue.put(RepoError("a parsing process has no pipes"))
            return
        try:
            with process.stdin as stdin:
                stdin.write("\n".join(blobs).encode())
            while (batch := pickle.load(process.stdout)) is not None:  # noqa: S301 - our own child wrote it
                self._queue.put(batch)
            self._queue.put(None)
        except (EOFError, pickle.UnpicklingError, OSError):
            said = process.stderr.read().decode("utf-8", "replace").strip().splitlines()
            fact, hint = said[-1] if said else "a parsing process ended early", "run the command again: what is stored is kept"
            self._queue.put(RepoError(fact, place=str(self._repo.top), hint=hint))
        finally:
            process.stdout.close()
            process.stderr.close()


def _shares(blobs: Sequence[str]) -> list[list[str]]:
    """Blob ids for each process, in runs of neighbours."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    number = min(_MOST, cores)
    runs = [blobs[start : start + _RUN] for start in range(0, len(blobs), _RUN)]
    return [[blob for run in runs[i::number] for blob in run] for i in range(number)]


def main() -> None:
    """The process: blob ids on stdin, pickled batches and a final None on stdout."""
    gc.disable()  # nothing here makes cycles, and the process is short-lived
    blobs = sys.stdin.read().split()
    out: BinaryIO = sys.stdout.buffer
    try:
        for batch in batches(Repo(Path(sys.argv[2])).blobs(blobs), _PORTION):
            pickle.dump(batch, out, protocol=pickle.HIGHEST_PROTOCOL)
            out.flush()
        pickle.dump(None, out)
        out.flush()
    except BrokenPipeError:
        os._exit(0)  # the reader is gone, and so is the use of anything more
    except RepoError as exc:
        sys.stderr.write(exc.fact)
        sys.exit(1)
