"""Objects written once and read back: a folder, or a bucket with conditional puts."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

from goldenctl.errors import NotFoundError, RepoError, SourceError, UsageError
from goldenctl.sources import lacking


class ObjectStore(Protocol):
    """A flat space of keys with ``/`` in them."""

    def put_once(self, key: str, content: bytes) -> bool:
        """Store an object unless its key exists; whether this call stored it.

        Raises
        ------
        RepoError
            A folder cannot be written.
        SourceError
            A bucket cannot be reached or written.
        """

    def get(self, key: str) -> bytes:
        """The object's bytes.

        Raises
        ------
        NotFoundError
            There is none.
        """

    def names(self, prefix: str) -> Iterator[str]:
        """Keys that begin with ``prefix``, in order."""


def plain(name: str) -> str:
    """A run's id as one part of a key."""
    return "".join(c if c.isalnum() or c in "-_." else "-" for c in name).strip(".") or "run"


def open_store(location: str) -> ObjectStore:
    """The store at a folder or ``s3://BUCKET/PREFIX``.

    Raises
    ------
    UsageError
        It is neither, or boto3 is not installed.
    """
    if location.startswith("s3://"):
        try:
            from goldenctl.sources import s3  # boto3 only for those who use it
        except ModuleNotFoundError as exc:
            raise lacking(location, exc, "s3") from exc
        bucket, prefix, _ = s3.split(location)
        return s3.BucketStore(s3.client(), bucket, prefix)
    if "://" in location or not location:
        raise UsageError(f"{location!r} is no place for an archive", hint="a folder, or s3://BUCKET/PREFIX")
    return FolderStore(Path(location))


class FolderStore:
    """Objects as files below a folder; several processes may write at once."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def put_once(self, key: str, content: bytes) -> bool:
        """Store by a hard link from a finished file, which only one writer can win."""
        target = self._folder / key
        if target.exists():
            return False
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            handle, name = tempfile.mkstemp(dir=target.parent, prefix=".put-")
            try:
                with os.fdopen(handle, "wb") as stream:
                    stream.write(content)
                    stream.flush()
                    os.fsync(stream.fileno())
                Path(name).chmod(0o644)
                os.link(name, target)
            except FileExistsError:
                return False
            finally:
                Path(name).unlink()
        except OSError as exc:
            raise RepoError(
                f"cannot be written: {exc.strerror}", place=str(target), hint="make room, or name another --to"
            ) from exc
        return True

    def get(self, key: str) -> bytes:
        """The file's bytes."""
        try:
            return (self._folder / key).read_bytes()
        except FileNotFoundError as exc:
            raise NotFoundError("is not in the archive", place=str(self._folder / key)) from exc
        except OSError as exc:
            raise SourceError(f"cannot be read: {exc.strerror}", place=str(self._folder / key)) from exc

    def names(self, prefix: str) -> Iterator[str]:
        """Keys of the finished files."""
        base = self._folder / prefix.rpartition("/")[0]
        for path in sorted(p for p in base.rglob("*") if p.is_file() and not p.name.startswith(".put-")):
            key = path.relative_to(self._folder).as_posix()
            if key.startswith(prefix):
                yield key
