"""What a fuzzed process may do: count its cases, and write into its own folder only."""

from __future__ import annotations

import mmap
import os
import struct
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

_COUNTS = "counts"
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_FORBIDDEN = ("subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "socket.connect", "socket.bind")
_CHANGES = (
    "os.mkdir",
    "os.remove",
    "os.rmdir",
    "os.rename",
    "os.link",
    "os.symlink",
    "os.truncate",
    "os.chmod",
    "shutil.rmtree",
)


class OutsideError(BaseException):
    """The code under test reached out of its folder; no ``except Exception`` of it may hide that."""


def environment(folder: Path) -> dict[str, str]:
    """The environment of a process that keeps to a folder."""
    (folder / _COUNTS).write_bytes(bytes(8))
    return os.environ | {"GOLDENCTL_FUZZ_TMP": str(folder), "TMPDIR": str(folder)}


def counted(folder: Path) -> int:
    """Cases that were what they claim to be: a golden document, a zip, a settings file."""
    (count,) = struct.unpack("<Q", (folder / _COUNTS).read_bytes())
    return int(count)


@contextmanager
def counter() -> Iterator[Callable[[bool], None]]:
    """Count into a file that outlives the process however it ends; from here on nothing else is written outside."""
    folder = Path(os.environ["GOLDENCTL_FUZZ_TMP"])
    with (folder / _COUNTS).open("r+b") as file, mmap.mmap(file.fileno(), 8) as memory:
        total = 0

        def count(whole: bool) -> None:
            nonlocal total
            total += whole
            struct.pack_into("<Q", memory, 0, total)

        sys.addaudithook(keeper(folder))
        yield count


def keeper(folder: Path) -> Callable[[str, tuple[Any, ...]], None]:
    """An audit hook that refuses programs, connections, and writing outside of a folder."""
    inside = os.path.realpath(folder) + os.sep

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if event in _FORBIDDEN:
            raise OutsideError(f"{event} {arguments!r}")
        if event in _CHANGES or (event == "open" and isinstance(arguments[2], int) and arguments[2] & _WRITES):
            for path in arguments[: 2 if event == "os.rename" else 1]:
                if not isinstance(path, int) and not _lies(path, inside):
                    raise OutsideError(f"{event} {path!r}")

    return hook


def _lies(path: Any, inside: str) -> bool:
    return path == os.devnull or (os.path.realpath(os.fsdecode(path)) + os.sep).startswith(inside)
