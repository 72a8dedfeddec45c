"""Answers of CI services: cut, of wrong types, with foreign redirects; served in this process, without a socket.

An answer is a true one in which a few places hold junk, so that a fuzzer gets beyond the first check.
"""

from __future__ import annotations

import copy
import json
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from io import BytesIO
from pathlib import Path
from typing import Any
from unittest import mock
from urllib.parse import urlsplit

import requests
import stamina
import urllib3
from requests.adapters import HTTPAdapter

from goldenctl.config import CiSettings, Settings
from goldenctl.errors import GoldenctlError
from goldenctl.sources import FetchOptions, Source, open_source
from tests.fuzz.chosen import Chosen

RUN = Path(__file__).parents[2] / "data/runs/github-17000000001"
TOKEN = "secret-of-the-fuzzer"
JUNK: tuple[Any, ...] = (
    None, True, -1, 0, 2**63, 1e308, "", "x", "\x1b[31m\r\n::error::", [], {}, [[]], [None], {"id": None}, "../../../etc",
    "2026-13-45T99:99:99Z", "9999-12-31T23:59:59-23:59", "0001-01-01T00:00:00+23:59", "sha256:", "٣", "\ud800", "9" * 5000,
)  # fmt: skip
_HEADERS: tuple[dict[str, str], ...] = (
    {}, {"Content-Type": "text/html"}, {"Content-Range": "bytes 5-9/3"}, {"Content-Range": "bytes */0"},
    {"Content-Length": "7"}, {"Content-Length": "x"}, {"Content-Encoding": "gzip"}, {"Location": "https://evil.example/a"},
    {"Location": "//evil.example:99999/"}, {"Location": "http://[::1"}, {"Retry-After": "0"}, {"Retry-After": "9" * 400},
    {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "٣"}, {"Link": '<https://evil.example/?page=2>; rel="next"'},
    {"X-Next-Page": "x", "X-Total": "x", "X-Page": "x", "X-Per-Page": "x"}, {"ETag": "x", "Cache-Control": "max-age=x"},
    {"Date": "yesterday", "Retry-After": "Thu, 99 Foo 2026"},
)  # fmt: skip
_STATUS = (200, 206, 204, 301, 302, 307, 400, 401, 403, 404, 410, 416, 429, 500, 503)


@cache
def _recorded(name: str) -> Any:
    return json.loads((RUN / f"{name}.json").read_bytes())


@cache
def _zip() -> bytes:
    return next(p for p in sorted(RUN.glob("*.zip"))).read_bytes()


@contextmanager
def _served(answer: Callable[[str, str | None], tuple[int, bytes, dict[str, str]]]) -> Iterator[None]:
    """All requests of this process answered by a function of URL and ``Range``; nobody waits."""

    def send(_self: HTTPAdapter, request: requests.PreparedRequest, **_more: Any) -> requests.Response:
        host = urlsplit(request.url or "").hostname
        secret = any(TOKEN in str(v) for v in request.headers.values())
        assert not secret or host in ("api.github.com", "gitlab.example"), f"the token went to {host}"
        status, body, headers = answer(request.url or "", request.headers.get("Range"))
        response = requests.Response()
        response.status_code, response.url, response.request = status, request.url or "", request
        response.headers.update(headers)
        response.raw = urllib3.HTTPResponse(BytesIO(body), headers, status, preload_content=False)
        response.connection = None  # type: ignore[assignment]
        return response

    stamina.set_testing(True, attempts=2)
    try:
        with mock.patch.object(HTTPAdapter, "send", send), mock.patch("time.sleep", lambda _s: None):
            yield
    finally:
        stamina.set_testing(False)


def _damaged(value: Any, chosen: Chosen) -> Any:
    """A copy with junk in some places."""
    value = copy.deepcopy(value)
    for _ in range(chosen.below(4)):
        holder: Any = value
        while isinstance(holder, dict | list) and holder:
            keys: list[Any] = list(holder) if isinstance(holder, dict) else list(range(len(holder)))
            key = chosen.of(keys)
            if not isinstance(holder[key], dict | list) or not holder[key] or chosen.byte() < 40:
                if chosen.byte() < 30 and isinstance(holder, dict):
                    del holder[key]
                else:
                    holder[key] = chosen.of(JUNK)
                break
            holder = holder[key]
    return value


def _said(value: Any, chosen: Chosen) -> tuple[int, bytes, dict[str, str]]:
    how = chosen.byte()
    body = json.dumps(_damaged(value, chosen)).encode()
    if how < 200:
        return 200, body, {"Content-Type": "application/json"}
    headers = {"Content-Type": "application/json", **chosen.of(_HEADERS)}
    return chosen.of(_STATUS), body[: len(body) // (1 + chosen.below(3))], headers


def _content(chosen: Chosen, asked: str | None) -> tuple[int, bytes, dict[str, str]]:
    raw = _zip()
    first, _, last = (asked or "").removeprefix("bytes=").partition("-")
    part = raw[int(first) : int(last) + 1] if asked else raw
    headers = {"Content-Range": f"bytes {first}-{last}/{len(raw)}"} if asked else {}
    if chosen.byte() < 160:
        return (206 if asked else 200), part, headers
    return chosen.of(_STATUS), part[: len(part) - chosen.below(9)] + chosen.some(chosen.below(9)), headers | chosen.of(_HEADERS)


def _used(source: Source, chosen: Chosen) -> None:
    try:
        run = source.describe()
    except GoldenctlError as exc:
        assert TOKEN not in str(exc)
        return
    for fetched in source.fetch(run.artifacts[: 1 + chosen.below(2)]):
        assert TOKEN not in repr(fetched.problems)
    assert TOKEN not in repr(run)


def _settings(provider: str) -> Settings:
    api = "https://gitlab.example" if provider == "gitlab" else ""
    return Settings(Path("/nowhere"), root="goldens", ci=CiSettings(provider, "example/megatron", api, "7"))


def github(data: bytes) -> None:
    """A run of GitHub Actions, listed and fetched from."""
    chosen = Chosen(data)
    jobs, artifacts = _few("jobs"), _few("artifacts")

    def answer(url: str, asked: str | None) -> tuple[int, bytes, dict[str, str]]:
        path = urlsplit(url).path
        if path.endswith("/zip"):
            where = {"Location": "https://storage.example/a?sig=1"} if chosen.byte() < 220 else chosen.of(_HEADERS)
            return (302 if chosen.byte() < 220 else chosen.of(_STATUS)), b"", where
        if path.endswith("/jobs"):
            return _said(jobs, chosen)
        if path.endswith("/artifacts"):
            return _said(artifacts, chosen)
        return _said(_recorded("run"), chosen) if "api.github.com" in url else _content(chosen, asked)

    _run("github:17000000001", _settings("github"), chosen, answer)


def _few(name: str) -> dict[str, Any]:
    items = _recorded(name)[name][:6]
    return {"total_count": len(items), name: items}


def gitlab(data: bytes) -> None:
    """A pipeline of GitLab with one child, listed and fetched from."""
    chosen = Chosen(data)

    def answer(url: str, asked: str | None) -> tuple[int, bytes, dict[str, str]]:
        path = urlsplit(url).path
        if path.endswith("/artifacts") or "gitlab.example" not in url:
            return _content(chosen, asked)
        if path.endswith("/bridges"):
            return _said(_BRIDGES, chosen)
        return _said(_JOBS if path.endswith("/jobs") else _PIPELINE, chosen)

    _run("gitlab:5", _settings("gitlab"), chosen, answer)


def _run(ref: str, settings: Settings, chosen: Chosen, answer: Any) -> None:
    secrets = {"GITHUB_TOKEN": TOKEN, "GITLAB_TOKEN": TOKEN, "GITLAB_ENDPOINT": "https://gitlab.example"}
    with mock.patch.dict("os.environ", secrets), _served(answer), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        _used(open_source(ref, settings, FetchOptions(workers=1)), chosen)


_PIPELINE: dict[str, Any] = {
    "id": 5, "project_id": 7, "status": "success", "sha": "a" * 40, "ref": "main", "created_at": "2026-05-01T10:00:00.000Z",
    "web_url": "https://gitlab.example/g/p/-/pipelines/5", "started_at": None, "finished_at": "2026-05-01T12:00:00.000Z",
}  # fmt: skip
_BRIDGES: list[dict[str, Any]] = [
    {
        "id": 1, "name": "functional:run_dev_dgx_h100", "status": "success",
        "downstream_pipeline": {"id": 6, "project_id": 7, "web_url": "https://gitlab.example/g/p/-/pipelines/6"},
    }
]  # fmt: skip
_JOBS: list[dict[str, Any]] = [
    {
        "id": number, "name": "a", "stage": "moe", "status": "failed", "failure_reason": "job_execution_timeout",
        "started_at": "2026-05-01T10:00:00.000Z", "finished_at": "2026-05-01T11:00:00.000Z", "allow_failure": False,
        "web_url": f"https://gitlab.example/g/p/-/jobs/{number}", "artifacts_expire_at": None,
        "artifacts_file": {"filename": "artifacts.zip", "size": 3341}, "pipeline": {"id": 6},
    }
    for number in (11, 12)
]  # fmt: skip
