"""Parse many documents in a process of its own, while this one loads the database and writes.

The process gets blob ids on stdin and answers with pickled batches on stdout. It needs neither duckdb nor
polars, and ends by itself when its reader goes away.
"""

from __future__ import annotations

import gc
import os
import pickle
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

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
        self._process = self._start() if len(blobs) >= WORTH_A_PROCESS else None

    def _start(self) -> subprocess.Popen[bytes]:
        package = str(Path(__file__).parents[2])
        command = [sys.executable, "-c", _PROGRAM, package, os.fspath(self._repo.top)]
        return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def __iter__(self) -> Iterator[Batch]:
        """Yield the batches in order.

        Raises
        ------
        RepoError
            A blob cannot be read, or the process was ended from outside.
        """
        if self._process is None:
            yield from batches(self._repo.blobs(self._blobs))
            return
        with self._process as process:
            try:
                yield from self._receive(process)
            finally:
                process.kill()

    def _receive(self, process: subprocess.Popen[bytes]) -> Iterator[Batch]:
        if process.stdin is None or process.stdout is None or process.stderr is None:
            raise RepoError("the parsing process has no pipes")
        try:
            process.stdin.write("\n".join(self._blobs).encode())
            process.stdin.close()
            while (batch := pickle.load(process.stdout)) is not None:  # noqa: S301 - our own child wrote it
                yield batch
        except (EOFError, pickle.UnpicklingError, BrokenPipeError) as exc:
            said = process.stderr.read().decode("utf-8", "replace").strip().splitlines()
            raise RepoError(said[-1] if said else "the parsing process ended early", place=str(self._repo.top)) from exc


def main() -> None:
    """The process: blob ids on stdin, pickled batches and a final None on stdout."""
    gc.disable()  # nothing here makes cycles, and the process is short-lived
    blobs = sys.stdin.read().split()
    out: BinaryIO = sys.stdout.buffer
    try:
        for batch in batches(Repo(Path(sys.argv[2])).blobs(blobs)):
            pickle.dump(batch, out, protocol=pickle.HIGHEST_PROTOCOL)
            out.flush()
        pickle.dump(None, out)
        out.flush()
    except BrokenPipeError:
        os._exit(0)  # the reader is gone, and so is the use of anything more
    except RepoError as exc:
        sys.stderr.write(exc.fact)
        sys.exit(1)
