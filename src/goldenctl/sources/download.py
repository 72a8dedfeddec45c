"""One artifact zip from a server: by ranges where it answers them, whole where it does not."""

from __future__ import annotations

import hashlib
import io
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from http import HTTPStatus
from typing import IO
from urllib.parse import urlsplit

import requests

from goldenctl.errors import AuthError, CorruptError, ExpiredError, NotFoundError, SourceError
from goldenctl.model import Artifact, Fetched, Member, SourceProblem
from goldenctl.sources import http
from goldenctl.sources.artifact import RangeReader, members, problem

_Read = Callable[[IO[bytes] | RangeReader], tuple[tuple[Member, ...], tuple[SourceProblem, ...]]]
MAX_WHOLE = 4 * 2**30
"""Bytes of an artifact that is taken whole."""


@dataclass(frozen=True, slots=True)
class Location:
    """Where the bytes of an artifact are at the moment."""

    url: str
    headers: Mapping[str, str]
    """Headers of the request; a token only where the bytes are at the service itself."""


class StaleLinkError(AuthError):
    """A signed link whose short life is over; the service gives a new one."""


class _WholeError(Exception):
    """The server sends the whole file instead of a range."""

    def __init__(self, response: requests.Response) -> None:
        super().__init__()
        self.response = response


class _SizeError(Exception):
    """The file has another size than listed."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.size = size


def fetch_zip(
    artifact: Artifact,
    locate: Callable[[], Location],
    session: requests.Session,
    *,
    since: datetime | None = None,
    renamed: Callable[[str], str] = str,
) -> Fetched:
    """The golden members of an artifact; what is wrong with it is a problem, never an exception.

    Parameters
    ----------
    artifact
        As listed; its digest is checked when the whole file was transferred.
    locate
        Asks the service where the bytes are; called again for every new try.
    session
        A session without any token.
    since
        When the job started, to tell stale restarts; None when that does not matter.
    renamed
        Present name of a file of the past.
    """
    if artifact.expired:
        gone = ExpiredError(
            "the artifact has expired", hint="run the job again, or take it from an archive: --from-job archive:…"
        )
        return Fetched(artifact, problems=(problem(artifact.name, gone),))
    transfer = _Transfer(artifact, session, partial(members, subject=artifact.name, since=since, renamed=renamed))
    try:
        for attempt in http.tries(http.CutError, StaleLinkError):
            with attempt:
                return transfer.run(locate())
    except SourceError as exc:
        return Fetched(artifact, problems=(problem(artifact.name, exc),), bytes_transferred=transfer.transferred)
    raise AssertionError("unreachable: the last try returns or raises")


class _Transfer:
    """The tries of fetching one artifact."""

    def __init__(self, artifact: Artifact, session: requests.Session, read: _Read) -> None:
        self._artifact = artifact
        self._session = session
        self._read = read
        self._place = ""
        self.transferred = 0
        """Bytes received in all tries."""

    def run(self, location: Location) -> Fetched:
        """One try."""
        self._place = http.shown(location.url)
        size = self._artifact.size
        try:
            try:
                return self._ranged(location, size) if size > 0 else self._whole(self._get(location, {}))
            except _SizeError as exc:
                return self._ranged(location, exc.size)
        except _WholeError as exc:
            return self._whole(exc.response)
        except _SizeError as exc:
            raise CorruptError("the server says a different size each time", place=self._place) from exc

    def _ranged(self, location: Location, size: int) -> Fetched:
        reader = RangeReader(lambda start, end: self._range(location, start, end, size), size)
        found, problems = self._read(reader)
        whole = reader.whole()
        artifact = self._checked(hashlib.sha256(whole).hexdigest()) if whole is not None else self._artifact
        return Fetched(artifact, found, problems, self.transferred)

    def _range(self, location: Location, start: int, end: int, size: int) -> bytes:
        response = self._get(location, {"Range": f"bytes={start}-{end - 1}"})
        if response.status_code != HTTPStatus.PARTIAL_CONTENT:
            raise _WholeError(response)
        first, total = _content_range(response.headers.get("Content-Range", ""))
        if total not in (None, size):
            response.close()
            raise _SizeError(total or 0)
        if first != start:
            response.close()
            raise CorruptError(f"the server sent bytes from {first} on, {start} was asked for", place=self._place)
        pieces: list[bytes] = []
        self.transferred += http.body(response, pieces.append, end - start, self._place)
        content = b"".join(pieces)
        if len(content) < end - start:
            raise http.CutError(f"the answer was cut short after {len(content)} of {end - start} bytes", place=self._place)
        return content

    def _get(self, location: Location, headers: Mapping[str, str]) -> requests.Response:
        """A response whose body is the file or a part of it."""
        sent = {"Accept-Encoding": "identity", **location.headers, **headers}
        with http.mapped(self._place):
            response = self._session.get(location.url, headers=sent, stream=True, allow_redirects=False)
        if response.status_code in (HTTPStatus.OK, HTTPStatus.PARTIAL_CONTENT):
            return response
        with response:
            raise self._refusal(location, response)

    def _refusal(self, location: Location, response: requests.Response) -> Exception:
        status = response.status_code
        if status == HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
            total = _content_range(response.headers.get("Content-Range", ""))[1]
            if total:
                return _SizeError(total)
        if status == HTTPStatus.GONE:
            return ExpiredError("the artifact has expired", hint="run the job again")
        if status == HTTPStatus.NOT_FOUND:
            return NotFoundError("the storage has no such file", place=self._place)
        if status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
            refusal = AuthError if location.headers else StaleLinkError
            return refusal("the storage refuses access", place=self._place, hint="try again")
        return SourceError(f"the storage answers {status}", place=self._place, hint="try again later")

    def _whole(self, response: requests.Response) -> Fetched:
        """The members of a file that is taken whole, through a temporary file so that memory stays small."""
        digest = hashlib.sha256()
        try:
            with tempfile.TemporaryFile(prefix="goldenctl-") as stream:

                def take(piece: bytes) -> None:
                    digest.update(piece)
                    stream.write(piece)

                self.transferred += http.body(response, take, MAX_WHOLE, self._place)
                self._refuse_page(stream, response)
                artifact = self._checked(digest.hexdigest(), stream.tell())
                found, problems = self._read(stream)
        except OSError as exc:
            hint = f"make room in {tempfile.gettempdir()} or set TMPDIR"
            raise SourceError(f"cannot be stored: {exc.strerror}", place=self._artifact.name, hint=hint) from exc
        return Fetched(artifact, found, problems, self.transferred)

    def _refuse_page(self, stream: IO[bytes], response: requests.Response) -> None:
        end = stream.seek(0, io.SEEK_END)
        stream.seek(0)
        head = stream.read(100).lstrip().lower()
        stream.seek(end)
        if head.startswith((b"<!doctype html", b"<html")) or "html" in response.headers.get("Content-Type", ""):
            hint = "look whether a proxy or a login page answers for the server"
            raise CorruptError("an HTML page was sent instead of the zip", place=self._place, hint=hint)

    def _checked(self, digest: str, length: int | None = None) -> Artifact:
        """The artifact with its digest.

        Raises
        ------
        CutError
            The file is shorter than listed.
        CorruptError
            It has another digest than listed.
        """
        promised = self._artifact.sha256
        if promised and digest != promised:
            if length is not None and length < self._artifact.size:
                fact = f"the answer was cut short after {length} of {self._artifact.size} bytes"
                raise http.CutError(fact, place=self._place, hint="try again")
            raise CorruptError(f"its sha256 is {digest}, {promised} was promised", place=self._place, hint="run the job again")
        return replace(self._artifact, sha256=digest)


def _content_range(header: str) -> tuple[int | None, int | None]:
    """First byte and size of the whole of ``bytes 0-99/1234`` or ``bytes */1234``."""
    span, _, total = header.removeprefix("bytes ").partition("/")
    first = span.partition("-")[0]
    return _size(first), _size(total)


def _size(text: str) -> int | None:
    return int(text) if text.isdecimal() and len(text) < 20 else None


def host_of(url: str) -> str:
    """Host and port of a URL, without user."""
    return urlsplit(url).netloc.rpartition("@")[2]
