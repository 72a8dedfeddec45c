"""One HTTP stack for every source: time limits, retries, rate limits, and errors of our own tree.

Proxies and CA bundles come from the usual environment (``HTTPS_PROXY``, ``NO_PROXY``,
``REQUESTS_CA_BUNDLE``). Tokens go to the host they are meant for and to no other; URLs are shown
without their query, where storage services keep their signatures.
"""

from __future__ import annotations

import hashlib
import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.parse import urljoin, urlsplit

import requests
import stamina
import stamina.instrumentation
import urllib3.exceptions
from requests.adapters import HTTPAdapter
from urllib3.util import Retry

from goldenctl.errors import CorruptError, RateLimitError, SourceError
from goldenctl.files import own_folder

TIMEOUT = (10.0, 60.0)
"""Seconds to connect, and to wait for the next bytes."""
TRANSFER_LIMIT = 900.0
"""Seconds one body may take."""
TRIES = 4
"""How often a request is sent when the server fails or a body is cut."""
BACKOFF = 0.5
"""Seconds before the second try; doubled for each further one."""
SECONDARY_WAIT = 60.0
"""Seconds to wait when a service says to slow down without saying for how long."""
_DIGITS = 10
"""Of seconds, in which a service names a moment or a wait; longer numbers are no time at all."""
SECRET_HEADERS = ("Authorization", "PRIVATE-TOKEN", "JOB-TOKEN", "Cookie")
CHUNK = 2**16

_BROKEN = (500, 502, 503, 504)
_SLOW_DOWN = ("secondary rate limit", "abuse detection", "rate limit exceeded")
_log = logging.getLogger(__name__)

# Both log signed URLs when they try again, and a process that configures no logging prints warnings.
stamina.instrumentation.set_on_retry_hooks(())
logging.getLogger("urllib3.connectionpool").setLevel(logging.ERROR)


class CutError(CorruptError):
    """A body that ended before its time; worth another try."""


def tries(*errors: type[SourceError]) -> Iterable[stamina.Attempt]:
    """Tries of a transfer, each to be entered, as long as it ends with one of these errors."""
    return stamina.retry_context(errors, attempts=TRIES, timeout=None, wait_initial=BACKOFF, wait_max=30.0, wait_jitter=BACKOFF)


class Patience:
    """How long to wait for a service, shared by all requests of a source.

    Parameters
    ----------
    max_wait
        Longest wait in seconds for a rate limit; a longer one is an error with the time of its end.
    """

    def __init__(self, max_wait: float) -> None:
        self._max_wait = max_wait
        self._until: dict[str, float] = {}
        self._lock = threading.Lock()

    def before(self, host: str) -> None:
        """Wait for a limit another request has met; raise when it is too long."""
        self.wait(host, self._until.get(host, 0.0) - time.time())

    def met(self, host: str, seconds: float) -> None:
        """Note a rate limit."""
        with self._lock:
            self._until[host] = max(self._until.get(host, 0.0), time.time() + seconds)

    def wait(self, host: str, seconds: float) -> None:
        """Sleep.

        Raises
        ------
        RateLimitError
            The wait is longer than allowed.
        """
        if seconds <= 0:
            return
        end = datetime.fromtimestamp(time.time() + seconds, UTC)
        if seconds > self._max_wait:
            raise RateLimitError(
                f"the rate limit is used up until {end:%Y-%m-%d %H:%M:%S} UTC, {seconds:.0f} s from now",
                place=host,
                hint=f"run the command again then, or wait with --max-wait {seconds + 1:.0f}",
            )
        if seconds >= 5:
            _log.warning("note: %s asks to wait %.0f s (rate limit), until %s UTC", host, seconds, f"{end:%H:%M:%S}")
        time.sleep(seconds)


class _Polite(HTTPAdapter):
    """Waits for rate limits, tries again when the server fails or a body is cut."""

    patience: Patience

    def send(self, request: requests.PreparedRequest, *args: Any, **kwargs: Any) -> requests.Response:
        host = urlsplit(request.url or "").netloc
        kwargs["timeout"] = kwargs.get("timeout") or TIMEOUT
        for tries_left in range(TRIES - 1, 0, -1):
            self.patience.before(host)
            try:
                response = self._whole(request, *args, **kwargs)
            except requests.exceptions.ChunkedEncodingError:
                pause = BACKOFF
            else:
                limit = rate_limit(response)
                if limit is None and response.status_code not in _BROKEN:
                    return response
                response.close()
                if limit is not None:
                    self.patience.met(host, limit)
                    continue
                pause = BACKOFF * 2 ** (TRIES - 1 - tries_left)
            time.sleep(pause)
        self.patience.before(host)
        return self._whole(request, *args, **kwargs)

    def _whole(self, request: requests.PreparedRequest, *args: Any, **kwargs: Any) -> requests.Response:
        """The response, with its body unless that is to be streamed."""
        response = super().send(request, *args, **kwargs)
        if not kwargs.get("stream") or response.status_code == HTTPStatus.FORBIDDEN:
            _ = response.content
        return response


def rate_limit(response: requests.Response) -> float | None:
    """Seconds a response asks to wait, None when it is no rate limit."""
    status, headers = response.status_code, response.headers
    if status not in (403, 429, 503):
        return None
    asked = _seconds(headers.get("Retry-After", ""), _now(headers))
    if asked is not None or status == HTTPStatus.SERVICE_UNAVAILABLE:
        return asked
    if headers.get("X-RateLimit-Remaining") == "0":
        reset = headers.get("X-RateLimit-Reset", "")
        if reset.isdecimal() and len(reset) <= _DIGITS:
            return max(int(reset) - _now(headers).timestamp(), 0.0) + 1
    body = "" if status == HTTPStatus.TOO_MANY_REQUESTS else response.text[:10_000].lower()
    slow_down = status == HTTPStatus.TOO_MANY_REQUESTS or any(text in body for text in _SLOW_DOWN)
    return SECONDARY_WAIT if slow_down else None


def _now(headers: Mapping[str, str]) -> datetime:
    """The server's time, which its limits refer to; ours where it does not say."""
    try:
        return parsedate_to_datetime(headers["Date"])
    except (KeyError, ValueError, TypeError):
        return datetime.now(UTC)


def _seconds(retry_after: str, now: datetime) -> float | None:
    """A ``Retry-After`` header, which holds seconds or a date."""
    if retry_after.strip().isdecimal():
        return float(retry_after[:_DIGITS])
    try:
        return max((parsedate_to_datetime(retry_after) - now).total_seconds(), 0.0)
    except (ValueError, TypeError):
        return None


class _Session(requests.Session):
    """A session whose tokens stay at their host."""

    def get_redirect_target(self, resp: requests.Response) -> str | None:
        """Where a redirect leads; None for what is no address, which requests would fail on even where it does not follow."""
        target = super().get_redirect_target(resp)
        with suppress(ValueError):
            if target is not None and urlsplit(urljoin(resp.url, target)).port != 0:
                return target
        return None

    def rebuild_auth(self, prepared_request: requests.PreparedRequest, response: requests.Response) -> None:
        if not same_origin(prepared_request.url or "", response.request.url or ""):
            for name in SECRET_HEADERS:
                prepared_request.headers.pop(name, None)


def origin(url: str) -> tuple[str, str, int]:
    """Scheme, host and port, which decide whether a token may go along; empty for what is no URL."""
    try:
        parts = urlsplit(url)
        return parts.scheme, parts.hostname or "", parts.port or {"https": 443, "http": 80}.get(parts.scheme, 0)
    except ValueError:
        return "", "", 0


def same_origin(one: str, two: str) -> bool:
    """Whether a token for one URL may go to the other."""
    return origin(one) == origin(two)


def joined(url: str, location: str, place: str) -> str:
    """The URL a redirect leads to.

    Raises
    ------
    CorruptError
        It is none.
    """
    try:
        target = urljoin(url, location)
    except ValueError:
        target = ""
    if origin(target)[0] not in ("http", "https"):
        raise CorruptError("the server redirects to what is no web address", place=place)
    return target


def session(patience: Patience, workers: int = 32, cache: Path | None = None) -> requests.Session:
    """A session for any number of threads.

    Parameters
    ----------
    patience
        Shared by all sessions of a source.
    workers
        Connections kept open per host.
    cache
        Folder for answers with an ETag; None keeps none.
    """
    made = _Session()
    made.auth = _no_auth
    made.headers["User-Agent"] = "goldenctl"
    # Status codes are the adapter's own business; this is for connections refused, reset or timed out.
    retry = Retry(TRIES - 1, status=0, redirect=0, other=0, backoff_factor=BACKOFF, respect_retry_after_header=False)
    sizes: dict[str, Any] = {"pool_connections": 8, "pool_maxsize": workers, "max_retries": retry}
    adapter = _Polite(**sizes) if cache is None else _cached(cache, sizes)
    adapter.patience = patience
    made.mount("https://", adapter)
    made.mount("http://", adapter)
    return made


def _no_auth(request: requests.PreparedRequest) -> requests.PreparedRequest:
    """Keeps requests from putting a password of ``.netrc`` in the place of our header."""
    return request


def _cached(folder: Path, sizes: dict[str, Any]) -> _Polite:
    try:
        own_folder(folder)
    except OSError:
        return _Polite(**sizes)  # a tree that cannot be written to has no cache
    from cachecontrol.adapter import CacheControlAdapter
    from cachecontrol.caches.file_cache import FileCache
    from cachecontrol.serialize import Serializer

    def anonymous(request: requests.PreparedRequest) -> requests.PreparedRequest:
        """The request with digests for its tokens: answers vary with them, files must not hold them."""
        copy = request.copy()
        for name in SECRET_HEADERS:
            if name in copy.headers:
                copy.headers[name] = hashlib.sha256(str(copy.headers[name]).encode()).hexdigest()
        return copy

    class Anonymous(Serializer):
        def dumps(self, request: requests.PreparedRequest, response: Any, body: bytes | None = None) -> bytes:
            dumped: bytes = super().dumps(anonymous(request), response, body)
            return dumped

        def loads(self, request: requests.PreparedRequest, data: bytes, body_file: Any = None) -> Any:
            try:
                return super().loads(anonymous(request), data, body_file)
            except Exception:  # a file cut or written by something else is as good as none
                return None

    class Forgiving(FileCache):
        """A cache whose folder cannot be read or written only costs time."""

        def get(self, key: str) -> Any:
            with suppress(OSError):
                return super().get(key)
            return None

        def set(self, key: str, value: bytes, expires: Any = None) -> None:
            with suppress(OSError):
                super().set(key, value, expires)

        def delete(self, key: str) -> None:
            with suppress(OSError):
                super().delete(key)

    class Cached(_Polite, CacheControlAdapter):
        pass

    store = Forgiving(str(folder), filemode=0o600, dirmode=0o700)
    made: _Polite = Cached(cache=store, serializer=Anonymous(), **sizes)
    return made


@contextmanager
def mapped(place: str) -> Iterator[None]:
    """Errors of requests and urllib3 as errors of our tree; ``place`` must hold no token.

    Raises
    ------
    SourceError, CorruptError
        In the place of the foreign error, which is its cause.
    """
    try:
        yield
    except requests.exceptions.SSLError as exc:
        hint = "name the authority's certificates in REQUESTS_CA_BUNDLE"
        raise SourceError("the server's certificate is not trusted", place=place, hint=hint) from exc
    except requests.exceptions.ProxyError as exc:
        raise SourceError("the proxy cannot be used", place=place, hint="check HTTPS_PROXY and NO_PROXY") from exc
    except (requests.exceptions.Timeout, urllib3.exceptions.TimeoutError) as exc:
        raise SourceError("no answer in time", place=place, hint="try again later") from exc
    except (requests.exceptions.ChunkedEncodingError, urllib3.exceptions.ProtocolError) as exc:
        raise CutError("the answer was cut short", place=place, hint="try again") from exc
    except (requests.exceptions.ContentDecodingError, urllib3.exceptions.DecodeError) as exc:
        raise CorruptError("the answer cannot be decoded", place=place) from exc
    except requests.exceptions.ConnectionError as exc:
        hint = "check the network, the proxy settings and the address"
        raise SourceError(f"cannot be reached{_reason(exc)}", place=place, hint=hint) from exc
    except (requests.exceptions.RequestException, urllib3.exceptions.HTTPError) as exc:
        raise SourceError(f"the request failed: {type(exc).__name__}", place=place) from exc


def _reason(exc: BaseException | None) -> str:
    """What the operating system said; the text of requests itself would show the whole URL."""
    while exc is not None:
        if isinstance(exc, OSError) and exc.strerror:
            return f": {exc.strerror}"
        exc = exc.__cause__ or exc.__context__
    return ""


def shown(url: str) -> str:
    """A URL without user, query and fragment, where tokens and signatures are."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return "an address that cannot be read"
    host = parts.netloc.rpartition("@")[2]
    return f"{parts.scheme}://{host}{parts.path}"


def body(response: requests.Response, take: Callable[[bytes], object], limit: int, place: str) -> int:
    """Give a streamed body to ``take`` piece by piece and return its length in bytes.

    Raises
    ------
    CutError
        It ended before its announced length.
    CorruptError
        It is longer than ``limit`` bytes.
    SourceError
        It took longer than the time limit.
    """
    end = time.monotonic() + TRANSFER_LIMIT
    length = 0
    with mapped(place), response:
        while piece := response.raw.read1(CHUNK):
            length += len(piece)
            if length > limit:
                raise CorruptError(f"the answer is longer than {limit} bytes", place=place)
            if time.monotonic() > end:
                raise SourceError(f"the transfer took longer than {TRANSFER_LIMIT:.0f} s", place=place, hint="try again")
            take(piece)
    announced = response.headers.get("Content-Length", "")
    if announced.isdecimal() and str(length) != announced.lstrip("0").rjust(1, "0"):
        raise CutError(f"the answer was cut short after {length} of {announced} bytes", place=place, hint="try again")
    return length
