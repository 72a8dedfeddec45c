"""Parse many documents in processes of their own, while this one loads the database and writes.

A process gets blob ids on stdin, appends pickled batches to a file without a name and says their sizes on
stdout, so that it never waits for its reader. It needs neither duckdb nor polars, and is ended with its reader.
"""

from __future__ import annotations

import gc
import os
import pickle
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from goldenctl.catalog.rows import Batch, batches
from goldenctl.errors import RepoError
from goldenctl.git import Repo

WORTH_A_PROCESS = 500
"""Documents; below it, starting a process costs more than it saves."""
_PROGRAM = "import sys; sys.path[:0] = [sys.argv[1]]; from goldenctl.catalog.parsing import main; main()"


class Parsing:
    """Batches of the documents with these blob ids; begins at once.

    Parameters
    ----------
    repo
        Where the blobs are.
    blobs
        Git blob ids, each once.
    """

    def __init__(self, repo: Repo, blobs: Sequence[str]) -> None:
        self._repo, self._blobs = repo, blobs
        half = len(blobs) // 2
        parts = (blobs[:half], blobs[half:]) if len(blobs) >= WORTH_A_PROCESS else ()
        self._workers = [_Worker(repo, part) for part in parts]

    def __iter__(self) -> Iterator[Batch]:
        """Yield the batches in order.

        Raises
        ------
        RepoError
            A blob cannot be read, or a process was ended from outside.
        """
        if not self._workers:
            yield from batches(self._repo.blobs(self._blobs))
            return
        try:
            for worker in self._workers:
                yield from worker.batches()
        finally:
            for worker in self._workers:
                worker.end()


class _Worker:
    """One parsing process."""

    def __init__(self, repo: Repo, blobs: Sequence[str]) -> None:
        self._place = str(repo.top)
        self._results = tempfile.TemporaryFile()  # noqa: SIM115 - closed by end()
        with tempfile.TemporaryFile() as ids:
            ids.write("\n".join(blobs).encode())
            ids.seek(0)
            number = self._results.fileno()
            command = [sys.executable, "-c", _PROGRAM, str(Path(__file__).parents[2]), os.fspath(repo.top), str(number)]
            self._process = subprocess.Popen(
                command, stdin=ids, stdout=subprocess.PIPE, stderr=subprocess.PIPE, pass_fds=(number,)
            )

    def batches(self) -> Iterator[Batch]:
        at = 0
        if self._process.stdout is not None:
            for line in self._process.stdout:
                size = int(line) if line.strip().isdigit() else -1
                if size == 0:
                    return
                if size < 0:
                    break
                batch: Batch = pickle.loads(os.pread(self._results.fileno(), size, at))  # noqa: S301 - our own child wrote it
                at += size
                yield batch
        said = self._process.stderr.read().decode("utf-8", "replace").strip().splitlines() if self._process.stderr else []
        raise RepoError(said[-1] if said else "the parsing process ended early", place=self._place)

    def end(self) -> None:
        self._process.kill()
        self._process.communicate()
        self._results.close()


def main() -> None:
    """The process: blob ids on stdin, batches to the file whose number is the third argument, sizes on stdout, 0 last."""
    gc.disable()  # nothing here makes cycles, and the process is short-lived
    blobs = sys.stdin.read().split()
    try:
        with os.fdopen(int(sys.argv[3]), "wb", buffering=0) as out:
            for batch in batches(Repo(Path(sys.argv[2])).blobs(blobs)):
                packed = pickle.dumps(batch, protocol=pickle.HIGHEST_PROTOCOL)
                out.write(packed)
                print(len(packed), flush=True)  # noqa: T201 - the reader waits for it
        print(0, flush=True)  # noqa: T201
    except BrokenPipeError:
        os._exit(0)  # the reader is gone, and so is the use of anything more
    except RepoError as exc:
        sys.stderr.write(exc.fact)
        sys.exit(1)
