"""Commands in processes of their own: without the power to write, or with an interrupt at a chosen moment.

``python -m tests.product.child`` reads one request a line and answers with one result a line. Each command runs
in a fork, which has what every command loads at once.
"""

from __future__ import annotations

import ctypes
import importlib
import json
import os
import signal
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from goldenctl.cli import app, entry

CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH, CAP_FOWNER = 1, 2, 3
PR_CAPBSET_DROP = 24
CAPABILITY_VERSION_3 = 0x20080522
MOMENTS = ("open", "os.mkdir", "os.rename", "os.remove", "subprocess.Popen")
"""Audit events at which an interrupt can arrive."""


@dataclass(frozen=True)
class Asked:
    """One command."""

    folder: str
    arguments: Sequence[str]
    powerless: bool = False
    """Bound by file modes even as root."""
    interrupt: int = 0
    """Moment at which the interrupt arrives, counted from 1; 0 for none."""


def obey_modes() -> None:
    """Give up what lets root write everywhere, for this process and all it starts."""
    libc = ctypes.CDLL(None, use_errno=True)
    for capability in (CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH, CAP_FOWNER):
        libc.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0)
    header = (ctypes.c_uint32 * 2)(CAPABILITY_VERSION_3, 0)
    data = (ctypes.c_uint32 * 6)()
    libc.capget(header, data)
    keep = ~(1 << CAP_DAC_OVERRIDE | 1 << CAP_DAC_READ_SEARCH | 1 << CAP_FOWNER) & 0xFFFFFFFF
    for word in range(3):
        data[word] &= keep
    if libc.capset(header, data):
        raise OSError(ctypes.get_errno(), "capset")


class Moments:
    """Counts what the command does to the file system below a folder, and interrupts it at one of these moments."""

    def __init__(self, folder: str, at: int) -> None:
        self.count, self._folder, self._at, self._main = 0, folder, at, os.getpid()

    def __call__(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event not in MOMENTS or os.getpid() != self._main:
            return
        if event != "subprocess.Popen" and not self._inside(arguments[0]):
            return
        self.count += 1
        if self.count == self._at:
            os.kill(self._main, signal.SIGINT)

    def _inside(self, path: object) -> bool:
        return isinstance(path, str | os.PathLike) and os.path.abspath(os.fspath(path)).startswith(self._folder)  # noqa: PTH100


def run(asked: Asked, out: int, err: int, report: int) -> int:
    """Run the command in this process; the number of moments goes to ``report``."""
    os.dup2(out, 1)
    os.dup2(err, 2)
    os.chdir(asked.folder)
    sys.argv = ["goldenctl", *asked.arguments]
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if asked.powerless:
        obey_modes()
    moments = Moments(asked.folder, asked.interrupt)
    sys.addaudithook(moments)
    try:
        code = entry.main(asked.arguments)
    except BaseException as exc:
        sys.excepthook(type(exc), exc, exc.__traceback__)
        code = 70
    sys.stdout.flush()
    sys.stderr.flush()
    os.write(report, str(moments.count).encode())
    return code


def answer(asked: Asked) -> dict[str, Any]:
    """The result of the command, run in a fork."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err, tempfile.TemporaryFile() as report:
        pid = os.fork()
        if pid == 0:
            os._exit(run(asked, out.fileno(), err.fileno(), report.fileno()))
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        said = []
        for stream in (out, err, report):
            stream.seek(0)
            said.append(stream.read().decode())
    return {"code": code, "out": said[0], "err": said[1], "moments": int(said[2] or 0)}


def main() -> None:
    """Answer requests until there are none."""
    app.build(app.COMMANDS)
    for heavy in ("duckdb", "polars", "rich.table", "requests"):
        importlib.import_module(heavy)
    for line in sys.stdin:
        sys.stdout.write(json.dumps(answer(Asked(**json.loads(line)))) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    if not Path("src/goldenctl").is_dir():
        sys.exit("run it from the project's top")
    main()
