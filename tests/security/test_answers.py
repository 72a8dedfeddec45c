"""Answers of a CI service that lies: where they may send a request, what goes along, what they cannot make fail."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator, Mapping
from io import BytesIO
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import requests
import stamina
import urllib3
from requests.adapters import HTTPAdapter

from goldenctl.config import CiSettings, Settings
from goldenctl.errors import CorruptError, GoldenctlError, RateLimitError
from goldenctl.model import Fetched
from goldenctl.sources import FetchOptions, http, open_source

TOKEN = "token-of-the-user"
EVIL = "evil.example"
RUN = Path(__file__).parents[2] / "data/runs/github-17000000001"
Reply = tuple[int, bytes, Mapping[str, str]]


class Net:
    """All requests of the process, answered by a function of the URL and remembered."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, bool]] = []
        """URL, and whether the token went along."""
        self.answer: Callable[[str], Reply] = lambda _url: (404, b"{}", {})

    def send(self, request: requests.PreparedRequest) -> requests.Response:
        url = request.url or ""
        self.asked.append((url, TOKEN in repr(dict(request.headers)) or TOKEN in url))
        status, body, headers = self.answer(url)
        response = requests.Response()
        response.status_code, response.url, response.request = status, url, request
        response.headers.update(headers)
        response.raw = urllib3.HTTPResponse(BytesIO(body), headers, status, preload_content=False)
        return response

    @property
    def told(self) -> set[str]:
        """Hosts and schemes that were sent the token."""
        return {"{}://{}:{}".format(*http.origin(url)) for url, secret in self.asked if secret}


@pytest.fixture
def net(monkeypatch: pytest.MonkeyPatch) -> Iterator[Net]:
    made = Net()
    monkeypatch.setattr(HTTPAdapter, "send", lambda _self, request, **_more: made.send(request))
    monkeypatch.setattr(http, "BACKOFF", 0.0)
    for name in ("GITHUB_TOKEN", "GITLAB_TOKEN"):
        monkeypatch.setenv(name, TOKEN)
    stamina.set_testing(True, attempts=1)
    yield made
    stamina.set_testing(False)


def said(value: Any, **headers: str) -> Reply:
    return 200, json.dumps(value).encode(), {"Content-Type": "application/json", **headers}


def recorded(url: str) -> Reply:
    path = urlsplit(url).path
    name = next((n for n in ("jobs", "artifacts") if path.endswith(f"/{n}")), "run")
    return 200, (RUN / f"{name}.json").read_bytes(), {"Content-Type": "application/json"}


def taken(settings: Settings, ref: str) -> list[Fetched]:
    source = open_source(ref, settings, FetchOptions(workers=1, max_wait=5))
    return list(source.fetch(source.describe().artifacts[:1]))


@pytest.fixture
def github(tmp_path: Path) -> Settings:
    return Settings(tmp_path, root="goldens", ci=CiSettings("github", "example/megatron"))


@pytest.fixture
def gitlab(tmp_path: Path) -> Settings:
    return Settings(tmp_path, root="goldens", ci=CiSettings("gitlab", project="7"))


ODD = [
    f"https://{EVIL}/a.zip", f"//{EVIL}:99999/a.zip", "http://[::1", "file:///etc/passwd", "ftp://evil.example/a", "",
    f"http://{EVIL}/a.zip", "https://api.github.com@evil.example/a", "https://api.github.com.evil.example/a",
    "http://api.github.com/a.zip",
]  # fmt: skip


@pytest.mark.parametrize("status", [301, 302, 307])
@pytest.mark.parametrize("where", ODD)
def test_a_redirect_of_an_artifact_takes_no_token_along_and_stops_nothing(
    where: str, status: int, net: Net, github: Settings
) -> None:
    net.answer = lambda url: (status, b"", {"Location": where}) if "/zip" in urlsplit(url).path else recorded(url)
    (fetched,) = taken(github, "github:17000000001")
    assert fetched.problems
    assert net.told == {"https://api.github.com:443"}


@pytest.mark.parametrize("where", ODD)
def test_a_redirect_of_githubs_api_takes_no_token_along(where: str, net: Net, github: Settings) -> None:
    net.answer = lambda _url: (301, b"{}", {"Location": where})
    with pytest.raises(GoldenctlError):
        taken(github, "github:17000000001")
    assert net.told == {"https://api.github.com:443"}


@pytest.mark.parametrize("where", [*ODD, "http://gitlab.com/api/v4/projects/7/pipelines/5"])
def test_a_redirect_of_gitlabs_api_takes_no_token_along(where: str, net: Net, gitlab: Settings) -> None:
    net.answer = lambda url: (302, b"{}", {"Location": where}) if "gitlab.com" in url else said({"id": 5})
    with pytest.raises(GoldenctlError):
        taken(gitlab, "gitlab:5")
    assert net.told == {"https://gitlab.com:443"}


def test_the_next_page_of_a_list_is_asked_of_the_same_host(net: Net, gitlab: Settings) -> None:
    pages = {"x-next-page": "2", "Link": f'<https://{EVIL}/api/v4/projects/7/pipelines/5/bridges?page=2>; rel="next"'}

    def answer(url: str) -> Reply:
        if "page=2" in url or EVIL in url:
            return said([])
        return said([], **pages) if "bridges" in url or "jobs" in url else said({"id": 5})

    net.answer = answer
    taken(gitlab, "gitlab:5")
    assert net.told == {"https://gitlab.com:443"}
    assert not any(urlsplit(url).hostname == EVIL for url, _ in net.asked)


def test_a_list_without_end_is_not_read_for_ever(net: Net, gitlab: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("goldenctl.sources.gitlab_api.MAX_ITEMS", 250)
    following = {"x-next-page": "2", "Link": '<https://gitlab.com/api/v4/projects/7/pipelines/5/bridges?page=2>; rel="next"'}
    full = [{"id": n, "name": "x"} for n in range(100)]
    net.answer = lambda url: said(full, **following) if "bridges" in url else said({"id": 5})
    with pytest.raises(CorruptError, match="does not end after 250"):
        taken(gitlab, "gitlab:5")
    assert len(net.asked) < 6


def test_the_token_is_in_no_error_whatever_the_service_answers(net: Net, github: Settings, gitlab: Settings) -> None:
    echo = json.dumps({"message": f"bad token {TOKEN}"}).encode()
    for status in (401, 404, 410, 500):
        for settings, ref in ((github, "github:1"), (gitlab, "gitlab:5")):
            net.answer = lambda _url, status=status: (status, echo, {"Content-Type": "application/json"})  # type: ignore[misc]
            with pytest.raises(GoldenctlError) as caught:
                taken(settings, ref)
            assert TOKEN not in str(caught.value)


@pytest.mark.parametrize("header", ["Retry-After", "X-RateLimit-Reset"])
def test_a_wait_of_a_thousand_digits_is_too_long_and_no_failure(header: str, net: Net, github: Settings) -> None:
    net.answer = lambda _url: (429, b"{}", {header: "9" * 1000, "X-RateLimit-Remaining": "0"})
    with pytest.raises(RateLimitError):
        taken(github, "github:1")


@pytest.mark.parametrize("body", [b"[" * 100_000, b'{"a":' * 100_000, b'{"id": ' + b"9" * 10_000 + b"}", b"\xff\xfe", b"nul"])
def test_json_that_breaks_readers_is_an_error_of_ours(body: bytes, net: Net, github: Settings, gitlab: Settings) -> None:
    for settings, ref in ((github, "github:1"), (gitlab, "gitlab:5")):
        for status in (200, 403):
            net.answer = lambda _url, status=status: (status, body, {"Content-Type": "application/json"})  # type: ignore[misc]
            with pytest.raises(GoldenctlError):
                taken(settings, ref)


def test_the_id_of_a_recorded_artifact_leads_out_of_no_folder(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    for name in ("run.json", "jobs.json"):
        shutil.copy(RUN / name, folder)
    listed = json.loads((RUN / "artifacts.json").read_bytes())["artifacts"][:1]
    shutil.copy(RUN / f"{listed[0]['id']}.zip", tmp_path / "outside.zip")
    (folder / "link.zip").symlink_to(tmp_path / "outside.zip")
    for ident in ("../outside", str(tmp_path / "outside"), "link"):
        (folder / "artifacts.json").write_text(json.dumps([listed[0] | {"id": ident, "digest": ""}]))
        (fetched,) = taken(Settings(tmp_path, root="goldens"), str(folder))
        assert (fetched.members, [p.kind for p in fetched.problems]) == ((), ["corrupt"])


def test_an_address_that_cannot_be_read_has_no_origin_and_is_not_followed() -> None:
    assert http.origin("http://[::1") == ("", "", 0)
    assert http.origin("https://a:99999/") == ("", "", 0)
    with pytest.raises(CorruptError, match="redirects to what is no web address"):
        http.joined("https://a/", "javascript:alert(1)", "a")
