"""One HTTP stack: what goes wrong becomes an error of our own, waits are bounded, tokens stay at their host."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import pytest
import requests
import urllib3.exceptions
from github import GithubException

from goldenctl.errors import CorruptError, RateLimitError, SourceError
from goldenctl.sources import http
from goldenctl.sources.github_api import Api
from goldenctl.sources.http import Patience, mapped, origin, rate_limit, session, shown
from goldenctl.sources.parallel import side_by_side
from tests.doubles.certificate import make
from tests.doubles.server import Reply, Request, Service
from tests.sources.conftest import every


def bare(kind: type[BaseException]) -> BaseException:
    """An exception whose constructor was not called: many need arguments of their own."""
    return kind.__new__(kind)


@pytest.mark.parametrize("kind", every(requests.exceptions.RequestException), ids=lambda k: k.__name__)
def test_every_error_of_requests_is_mapped(kind: type[BaseException]) -> None:
    with pytest.raises(SourceError) as caught, mapped("host"):
        raise bare(kind)
    assert isinstance(caught.value.__cause__, kind)


@pytest.mark.parametrize("kind", every(urllib3.exceptions.HTTPError), ids=lambda k: k.__name__)
def test_every_error_of_urllib3_is_mapped(kind: type[BaseException]) -> None:
    with pytest.raises(SourceError), mapped("host"):
        raise bare(kind)


@pytest.mark.parametrize("kind", every(GithubException), ids=lambda k: k.__name__)
@pytest.mark.parametrize("status", [401, 403, 404, 410, 418, 500])
def test_every_error_of_pygithub_is_mapped(kind: Any, status: int) -> None:
    api = Api("https://api.github.com", "o/r", "secret", requests.Session())
    made = bare(kind)
    GithubException.__init__(made, status, {"message": "no"}, {})  # type: ignore[arg-type]
    with pytest.raises(SourceError) as caught, api._mapped("run 1"):
        raise made
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("error", [RuntimeError("redirected"), AssertionError(), ValueError()])
def test_what_pygithub_lets_through_is_mapped(error: Exception) -> None:
    api = Api("https://api.github.com", "o/r", "", requests.Session())
    with pytest.raises(CorruptError), api._mapped("run 1"):
        raise error


def test_urls_are_shown_without_their_secrets() -> None:
    assert shown("https://user:pw@blob.example:8443/a/b.zip?sig=secret#x") == "https://blob.example:8443/a/b.zip"


def test_a_token_belongs_to_scheme_host_and_port() -> None:
    assert origin("https://a.example/x") == origin("https://A.example:443/y")
    assert (
        len({origin(u) for u in ("https://a.example", "http://a.example", "https://a.example:444", "https://b.example")}) == 4
    )


def answer(status: int, headers: dict[str, str], body: bytes = b"") -> requests.Response:
    made = requests.Response()
    made.status_code = status
    made.headers.update(headers)
    made._content = body
    return made


NOW = datetime(2026, 5, 1, 10, 0, tzinfo=UTC)
DATE = {"Date": format_datetime(NOW, usegmt=True)}


@pytest.mark.parametrize(
    ("status", "headers", "body", "seconds"),
    [
        (200, {"Retry-After": "9"}, b"", None),
        (404, {"Retry-After": "9"}, b"", None),
        (403, {"Retry-After": "9"}, b"", 9.0),
        (429, {"Retry-After": format_datetime(NOW + timedelta(seconds=40), usegmt=True)}, b"", 40.0),
        (503, {"Retry-After": "2"}, b"", 2.0),
        (503, {}, b"", None),
        (403, {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": str(int(NOW.timestamp()) + 30)}, b"", 31.0),
        (403, {"X-RateLimit-Remaining": "7", "X-RateLimit-Reset": str(int(NOW.timestamp()) + 30)}, b"", None),
        (403, {}, b"You have exceeded a secondary rate limit.", 60.0),
        (403, {}, b"Resource not accessible", None),
        (429, {"Retry-After": "soon"}, b"", 60.0),
        (429, {}, b"", 60.0),
        (403, {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "never"}, b"", None),
    ],
)
def test_what_an_answer_asks_to_wait(status: int, headers: dict[str, str], body: bytes, seconds: float | None) -> None:
    assert rate_limit(answer(status, {**DATE, **headers}, body)) == seconds


def test_a_wait_longer_than_allowed_is_an_error_and_a_shorter_one_a_sleep(monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []
    monkeypatch.setattr("time.sleep", slept.append)
    patience = Patience(10)
    patience.wait("h", 9)
    assert slept == [9]
    with pytest.raises(RateLimitError):
        patience.wait("h", 11)
    assert slept == [9]


@pytest.fixture
def serve() -> Iterator[Callable[..., Service]]:
    made: list[Service] = []

    def start(answered: Callable[[Request], Reply], **more: Any) -> Service:
        made.append(Service(answered, **more))
        return made[-1]

    yield start
    for service in made:
        service.close()


def test_a_redirect_to_another_host_takes_no_secret_along(serve: Callable[..., Service]) -> None:
    there = serve(lambda _: Reply(200))
    here = serve(lambda _: Reply(302, b"", {"Location": there.url}))
    headers = {"Authorization": "token s", "PRIVATE-TOKEN": "s", "JOB-TOKEN": "s"}
    assert session(Patience(1)).get(here.url, headers=headers).status_code == 200
    assert not {"Authorization", "PRIVATE-TOKEN", "JOB-TOKEN"} & set(there.requests[0].headers)


def test_a_password_of_netrc_never_replaces_the_token(
    serve: Callable[..., Service], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "netrc").write_text("machine 127.0.0.1 login a password b\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    service = serve(lambda _: Reply(200))
    session(Patience(1)).get(service.url, headers={"Authorization": "token s"})
    assert service.requests[0].headers["Authorization"] == "token s"


def test_a_certificate_is_trusted_by_the_bundle_that_holds_it(
    serve: Callable[..., Service], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    context, bundle = make(tmp_path)
    service = serve(lambda _: Reply(200, b"hello"), tls=context)
    with pytest.raises(SourceError, match="certificate is not trusted") as caught, mapped(service.url):
        session(Patience(1)).get(service.url)
    assert "REQUESTS_CA_BUNDLE" in caught.value.hint
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(bundle))
    assert session(Patience(1)).get(service.url).content == b"hello"


def test_a_body_that_takes_too_long_is_an_error(serve: Callable[..., Service], monkeypatch: pytest.MonkeyPatch) -> None:
    service = serve(lambda _: Reply(200, b"hello"))
    monkeypatch.setattr(http, "TRANSFER_LIMIT", -1.0)
    response = session(Patience(1)).get(service.url, stream=True)
    with pytest.raises(SourceError, match="took longer"):
        http.body(response, lambda _: None, 100, "host")


def test_a_body_longer_than_allowed_is_corrupt(serve: Callable[..., Service]) -> None:
    service = serve(lambda _: Reply(200, b"hello"))
    response = session(Patience(1)).get(service.url, stream=True)
    with pytest.raises(CorruptError, match="longer than 4 bytes"):
        http.body(response, lambda _: None, 4, "host")


def test_work_side_by_side_gives_every_result_once() -> None:
    assert sorted(side_by_side(lambda n: n * n, range(100), 8)) == [n * n for n in range(100)]


def test_an_exception_of_the_work_is_raised_where_results_are_taken() -> None:
    with pytest.raises(ZeroDivisionError):
        list(side_by_side(lambda n: 1 // n, [1, 0], 2))


def test_an_interrupt_ends_the_process_at_once_whatever_the_threads_wait_for() -> None:
    code = (
        "import time, sys\nfrom goldenctl.sources.parallel import side_by_side\n"
        "try:\n    print('ready', flush=True)\n    list(side_by_side(lambda n: time.sleep(60), range(9), 4))\n"
        "except KeyboardInterrupt:\n    sys.exit(130)\n"
    )
    environment = {**os.environ, "PYTHONPATH": "src"}
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, env=environment)
    assert process.stdout is not None
    process.stdout.readline()
    start = time.monotonic()
    process.send_signal(signal.SIGINT)
    assert process.wait(10) == 130
    assert time.monotonic() - start < 1
    process.stdout.close()
