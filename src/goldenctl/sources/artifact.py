"""Golden members of an artifact zip, read by ranges and within bounds.

Nothing is ever extracted to disk. A member that cannot be trusted is refused with its name; it
never stops the others. What is read is bounded before it is expanded, whatever the zip says of itself.
"""

from __future__ import annotations

import io
import re
import stat
import struct
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from typing import IO

from goldenctl.errors import (
    AuthError,
    CorruptError,
    ExpiredError,
    NotFoundError,
    RateLimitError,
    SourceError,
)
from goldenctl.model import Member, SourceProblem
from goldenctl.sources import restarts

MAX_ENTRIES = 100_000
"""Members of one zip; an artifact with all its logs has some thousands."""
MAX_DIRECTORY = 32 * 2**20
"""Bytes of the zip's own directory, which is held in memory."""
MAX_MEMBER = 64 * 2**20
"""Expanded bytes of one golden file; the largest known has 5 MB."""
MAX_TOTAL = 256 * 2**20
"""Expanded bytes of all golden files of one artifact."""
MAX_RATIO = 200
"""Expanded ÷ packed bytes of a golden file of 1 MiB or more; JSON packs about 10 times."""
READ_AHEAD = 64 * 2**10
"""Bytes taken at the end of a zip at once: there its directory is, and the whole of a small zip."""

_GOLDEN = re.compile(r"golden_values.*\.json", re.DOTALL)
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_ENCRYPTED = 0x1
_TIMESTAMP = 0x5455
_KINDS: tuple[tuple[type[SourceError], str], ...] = (
    (AuthError, "auth"),
    (NotFoundError, "missing"),
    (ExpiredError, "expired"),
    (RateLimitError, "rate-limit"),
    (CorruptError, "corrupt"),
)


def is_golden_name(name: str) -> bool:
    """Whether the last part of a path is ``golden_values*.json``.

    >>> is_golden_name("a/golden_values_dev_dgx_h100.json"), is_golden_name("generations_dev_dgx_h100.json")
    (True, False)
    """
    return _GOLDEN.fullmatch(name.replace("\\", "/").rpartition("/")[2]) is not None


def problem(subject: str, exc: SourceError) -> SourceProblem:
    """An error about one artifact or job as a problem that stops nothing else."""
    kind = next((kind for known, kind in _KINDS if isinstance(exc, known)), "network")
    message = f"{exc.place}: {exc.fact}" if exc.place and exc.place != subject else exc.fact
    return SourceProblem(subject, kind, message, exc.hint)


class RangeReader(io.RawIOBase):
    """A seekable file over a server that answers ranges.

    Parameters
    ----------
    get_range
        Gives the bytes ``[start, end)``; raises a :class:`~goldenctl.errors.SourceError` when it cannot.
    size
        Bytes of the whole file.
    """

    def __init__(self, get_range: Callable[[int, int], bytes], size: int) -> None:
        super().__init__()
        self._get_range = get_range
        self._size = size
        self._at = 0
        self._parts: list[tuple[int, bytes]] = []
        self.bytes_transferred = 0
        """Bytes asked of the server so far."""

    def readable(self) -> bool:
        """Always."""
        return True

    def seekable(self) -> bool:
        """Always."""
        return True

    def tell(self) -> int:
        """Position in bytes from the start."""
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Move; a position before the start is an OSError as with any file."""
        at = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        if at < 0:
            raise OSError(22, "negative seek position")
        self._at = at
        return at

    def read(self, size: int = -1) -> bytes:
        """Bytes from the position on, fewer at the end of the file."""
        end = self._size if size < 0 else min(self._size, self._at + size)
        content = self.load(self._at, end) if end > self._at else b""
        self._at += len(content)
        return content

    def load(self, start: int, end: int) -> bytes:
        """Bytes ``[start, end)``, from the server only when they are not here yet.

        Raises
        ------
        CorruptError
            The server sent another number of bytes.
        """
        for at, part in self._parts:
            if at <= start and end <= at + len(part):
                return part[start - at : end - at]
        tail = max(0, self._size - READ_AHEAD)
        first, last = (min(start, tail), self._size) if end > tail else (start, end)
        part = self._get_range(first, last)
        self.bytes_transferred += len(part)
        if len(part) != last - first:
            raise CorruptError(f"the server sent {len(part)} of {last - first} bytes asked for")
        self._parts.append((first, part))
        return part[start - first : end - first]

    def whole(self) -> bytes | None:
        """All bytes of the file when they came in one part, else None."""
        return next((part for at, part in self._parts if at == 0 and len(part) == self._size), None)


class _RefusedError(Exception):
    """Something that is not taken; the message is the reason."""

    def __init__(self, reason: str, kind: str = "refused") -> None:
        super().__init__(reason)
        self.reason = reason
        self.kind = kind


def members(
    stream: IO[bytes] | RangeReader,
    *,
    subject: str,
    since: datetime | None = None,
    renamed: Callable[[str], str] = str,
) -> tuple[tuple[Member, ...], tuple[SourceProblem, ...]]:
    """Golden members of a zip, and what is wrong with it.

    Parameters
    ----------
    stream
        The zip, seekable.
    subject
        The artifact's name, for the problems.
    since
        When the job started: restarts written before it belong to an earlier attempt and are not
        taken. None when unknown.
    renamed
        Present name of a file of the past; a file that has its present name already goes before.

    Returns
    -------
    tuple
        Members in the order of the zip (of several restarts only the newest), and one problem for
        each member refused.

    Raises
    ------
    SourceError
        The stream's server fails.
    """
    try:
        _check_directory(stream)
        with zipfile.ZipFile(stream) as archive:
            return _golden_members(archive, stream, subject, since, renamed)
    except _RefusedError as exc:
        return (), (SourceProblem(subject, exc.kind, exc.reason),)
    except (zipfile.BadZipFile, struct.error, ValueError, NotImplementedError, OverflowError, OSError) as exc:
        return (), (SourceProblem(subject, "corrupt", f"is not a zip that can be read: {_first(stream)}{exc}"),)


def _first(stream: IO[bytes] | RangeReader) -> str:
    """A word on what the bytes are instead, where that is plain."""
    try:
        stream.seek(0)
        head = stream.read(64).lstrip().lower()
    except (OSError, ValueError, SourceError):
        return ""
    return "an HTML page was sent instead; " if head.startswith((b"<!doctype html", b"<html")) else ""


def _check_directory(stream: IO[bytes] | RangeReader) -> None:
    """Refuse a directory too large to hold, before it is read."""
    size = stream.seek(0, io.SEEK_END)
    start = max(0, size - READ_AHEAD)
    stream.seek(start)
    tail = stream.read(size - start)
    at = tail.rfind(b"PK\x05\x06")
    if at < 0 or len(tail) < at + 22:
        return
    entries, length = struct.unpack("<HL", tail[at + 10 : at + 16])
    locator = tail[at - 20 : at] if at >= 20 else b""
    if locator.startswith(b"PK\x06\x07"):
        stream.seek(struct.unpack("<Q", locator[8:16])[0])
        record = stream.read(56)
        if len(record) == 56:
            entries, length = struct.unpack("<QQ", record[32:48])
    if entries > MAX_ENTRIES or length > MAX_DIRECTORY:
        raise _RefusedError(f"the zip has {entries} entries, more than {MAX_ENTRIES}, and is not opened")


def _golden_members(
    archive: zipfile.ZipFile,
    stream: IO[bytes] | RangeReader,
    subject: str,
    since: datetime | None,
    renamed: Callable[[str], str],
) -> tuple[tuple[Member, ...], tuple[SourceProblem, ...]]:
    infos = [i for i in archive.infolist() if not i.filename.endswith("/")]  # is_dir() fails on an empty name
    problems = [SourceProblem(subject, "refused", text) for text in _hostile(infos)]
    golden = _golden(infos, renamed)
    choice = restarts.choose({name: _written(i) for i, name in golden}, since)
    if choice.only_stale:
        text = f"only restarts of an earlier attempt hold golden files: {', '.join(choice.only_stale)}"
        problems.append(SourceProblem(subject, "missing", text))
    counts = Counter(name for _, name in golden)
    found: list[Member] = []
    room = MAX_TOTAL
    for info, name in ((i, n) for i, n in golden if n in choice.taken):
        try:
            _check(info, counts[name], room)
            content = _read(archive, info, stream)
        except _RefusedError as exc:
            problems.append(SourceProblem(subject, exc.kind, f"{_shown(name)}: {exc.reason}"))
        else:
            room -= len(content)
            found.append(Member(name, content, restarts.replicate_of(name)))
    return tuple(found), tuple(dict.fromkeys(problems))


def _golden(infos: Sequence[zipfile.ZipInfo], renamed: Callable[[str], str]) -> list[tuple[zipfile.ZipInfo, str]]:
    """Golden members with their present names."""
    there = {_plain(i.filename) for i in infos}
    named = [(i, _plain(i.filename), renamed(_plain(i.filename))) for i in infos if not _unsafe(i.filename)]
    return [(i, new) for i, old, new in named if is_golden_name(new) and (new == old or new not in there)]


def _hostile(infos: Sequence[zipfile.ZipInfo]) -> Iterator[str]:
    """One sentence for each member whose mere presence is a reason for distrust."""
    for info in infos:
        if _unsafe(info.filename):
            yield f"{_shown(info.filename)}: its name leads out of the artifact"
        elif info.filename.lower().endswith(".zip"):
            yield f"{_shown(info.filename)}: a zip inside the zip is not opened"


def _unsafe(name: str) -> bool:
    parts = _plain(name).split("/")
    return not parts[0] or ".." in parts or ":" in parts[0] or any(ord(c) < 32 or ord(c) == 127 for c in name)


def _plain(name: str) -> str:
    return name.replace("\\", "/")


def _shown(name: str) -> str:
    """The name without control characters, at most 200 characters."""
    return "".join(c if c.isprintable() else "?" for c in name)[:200]


def _written(info: zipfile.ZipInfo) -> datetime | None:
    """When a member was written: its UTC time stamp where it has one, else its DOS time read as UTC."""
    extra = info.extra
    while len(extra) >= 4:
        kind, length = struct.unpack("<HH", extra[:4])
        if kind == _TIMESTAMP and length >= 5 and len(extra) >= 9 and extra[4] & 1:
            return datetime.fromtimestamp(struct.unpack("<l", extra[5:9])[0], UTC)
        extra = extra[4 + length :]
    try:
        return datetime(*info.date_time, tzinfo=UTC)
    except ValueError:
        return None


def _check(info: zipfile.ZipInfo, count: int, room: int) -> None:
    if count > 1:
        raise _RefusedError(f"the zip has this member {count} times")
    if stat.S_ISLNK(info.external_attr >> 16):
        raise _RefusedError("is a link")
    if info.flag_bits & _ENCRYPTED:
        raise _RefusedError("is encrypted")
    if info.compress_type not in _METHODS:
        raise _RefusedError(f"is packed by method {info.compress_type}, only stored and deflated are read")
    if info.file_size > min(MAX_MEMBER, room):
        raise _RefusedError(f"expands to {info.file_size} bytes, more than allowed ({min(MAX_MEMBER, room)})")
    if info.file_size >= 2**20 and info.file_size > MAX_RATIO * max(info.compress_size, 1):
        raise _RefusedError(f"expands {info.file_size // max(info.compress_size, 1)} times, more than {MAX_RATIO}")


def _read(archive: zipfile.ZipFile, info: zipfile.ZipInfo, stream: IO[bytes] | RangeReader) -> bytes:
    """The member's bytes, its CRC checked; in pieces, so that a size that lies cannot expand without bound."""
    if isinstance(stream, RangeReader):
        header = 30 + len(info.orig_filename.encode()) + len(info.extra) + 64
        end = stream.seek(0, io.SEEK_END)
        stream.load(info.header_offset, min(end, info.header_offset + header + info.compress_size))
    pieces: list[bytes] = []
    try:
        with archive.open(info) as member:
            while piece := member.read(2**20):
                pieces.append(piece)
    except (zipfile.BadZipFile, zlib.error, EOFError, struct.error) as exc:
        raise _RefusedError(f"cannot be unpacked: {exc}", "corrupt") from exc
    except (RuntimeError, NotImplementedError) as exc:
        raise _RefusedError(f"cannot be unpacked: {exc}") from exc
    content = b"".join(pieces)
    if len(content) != info.file_size:
        raise _RefusedError(f"has {len(content)} bytes, {info.file_size} were promised", "corrupt")
    return content
