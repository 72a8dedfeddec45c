"""What the campaigns found, each as the smallest case that showed it."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import requests

from goldenctl import lint, testconfig
from goldenctl.config import Settings
from goldenctl.errors import CorruptError
from goldenctl.goldenfile import DocumentError, read
from goldenctl.layout import DEFAULT_LAYOUT, Layout
from goldenctl.model import GoldenKey
from goldenctl.sources import attribution, gitlab_api
from goldenctl.sources.artifact import RangeReader, members
from goldenctl.sources.github_api import Api
from goldenctl.sources.http import Patience, rate_limit, session
from tests.fuzz.answers import served
from tests.sources.zips import GB200, GOLDEN, H100, zipped

PATH = "goldens/gpt/case/golden_values_dev_dgx_h100.json"
SETTINGS = Settings(Path("/repo"), root="goldens")
LONG = b"9" * 5000
"""Python reads no integer of so many digits."""


def test_a_block_that_has_a_step_twice_is_not_shortened() -> None:
    raw = b'{"a": {"start_step": 1, "end_step": 3, "step_interval": 1, "values": {"1": "nan", "1": "nan", "2": 1.5, "3": 2}}}'
    assert lint.fix(PATH, raw, SETTINGS).content == raw


def test_a_block_with_one_step_and_one_key_that_is_no_step_is_left_as_it_is() -> None:
    raw = b'{"a": {"values": {"1": 1e400, "}": 99999999999999999999}}}'
    assert lint.fix(PATH, raw, SETTINGS).content == raw


def test_a_bridge_step_of_five_thousand_digits_is_no_step() -> None:
    with pytest.raises(DocumentError, match="no known document shape"):
        read(b'{"' + LONG + b'": {"lm loss": 1}}')


def test_a_member_without_a_name_does_not_stop_the_others() -> None:
    found, _ = members(io.BytesIO(zipped({"": b"x", H100: GOLDEN})), subject="a")
    assert [m.name for m in found] == [H100]


@pytest.mark.parametrize("ranges", [True, False])
def test_a_member_before_the_start_of_a_cut_zip_is_corrupt_and_stops_no_other(ranges: bool) -> None:
    raw = zipped({H100: GOLDEN, GB200: GOLDEN})[5:]
    stream = RangeReader(lambda a, b: raw[a:b] if a >= 0 else b"", len(raw)) if ranges else io.BytesIO(raw)
    found, problems = members(stream, subject="a")
    assert [m.name for m in found] == [GB200]
    assert [(p.kind, p.message) for p in problems] == [("corrupt", f"{H100}: lies before the start of the zip")]


@pytest.mark.parametrize(
    "key", [GoldenKey("m", "a", "dev", "x_2nd"), GoldenKey("m", "a", "dev", "x+"), GoldenKey("m", "a", "d.v", "x")]
)
def test_a_key_whose_path_would_be_read_as_another_has_no_path(key: GoldenKey) -> None:
    with pytest.raises(ValueError, match="would not be read as the golden it is for"):
        Layout(DEFAULT_LAYOUT).path(key)


def test_a_hexadecimal_number_too_long_to_spell_is_no_mode() -> None:
    found = testconfig.parse(b"MODE: 0x" + b"f" * 5000)
    assert found.config is not None
    assert found.config.mode == "pretraining"


@pytest.mark.parametrize("body", [b'{"total_count": 1, "jobs": [{"id": [1]}]}', b'{"jobs": [{"id": null}]}'])
def test_a_list_of_jobs_without_numbers_is_no_answer_of_github(body: bytes) -> None:
    with served(lambda _url, _range: (200, body, {"Content-Type": "application/json"})), pytest.raises(CorruptError):
        Api("https://api.github.com", "o/r", "", requests.Session()).pages("actions/runs/1/jobs", "jobs", "jobs")


@pytest.mark.parametrize(
    ("place", "key"), [("artifacts", "name"), ("artifacts", "url"), ("jobs", "html_url"), ("run", "head_sha")]
)
def test_a_number_where_text_belongs_is_no_answer_of_github(place: str, key: str) -> None:
    said: dict[str, dict[str, Any]] = {
        "run": {"id": 1},
        "jobs": {"id": 2, "name": "moe/a - latest"},
        "artifacts": {"id": 3, "name": "a", "size_in_bytes": 1},
    }
    said[place][key] = 7
    with pytest.raises(CorruptError, match="int where text belongs"):
        attribution.describe("github:1", said["run"], [said["jobs"]], [said["artifacts"]], attempt=None)


def test_a_next_page_at_another_host_is_not_asked_for_and_the_token_stays() -> None:
    asked: list[str | None] = []

    def answer(url: str, _range: str | None) -> tuple[int, bytes, dict[str, str]]:
        asked.append(urlsplit(url).hostname)
        link = {"Link": '<https://evil.example/?page=2>; rel="next"'} if len(asked) == 1 else {}
        return 200, b'[{"id": 1}]', {"Content-Type": "application/json", **link}

    api = gitlab_api.Api("https://gitlab.example", {"PRIVATE-TOKEN": "secret"}, session(Patience(1)))
    with served(answer), pytest.raises(CorruptError, match="goes on at another host"):
        api.jobs("7", 5)
    assert asked == ["gitlab.example"]


def test_a_list_of_gitlab_that_never_ends_is_corrupt(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gitlab_api, "MAX_ITEMS", 3)
    link = {"Link": '<https://gitlab.example/api/v4/x?page=2>; rel="next"', "Content-Type": "application/json"}
    api = gitlab_api.Api("https://gitlab.example", {}, session(Patience(1)))
    with (
        served(lambda _url, _range: (200, b'[{"id": 1}]', link)),
        pytest.raises(CorruptError, match="does not end after 3 items"),
    ):
        api.jobs("7", 5)


@pytest.mark.parametrize("location", ["http://[::1", "//evil.example:99999/"])
def test_a_redirect_to_what_is_no_address_is_corrupt(location: str) -> None:
    api = Api("https://api.github.com", "o/r", "", session(Patience(1)))
    with served(lambda _url, _range: (302, b"", {"Location": location})), pytest.raises(CorruptError, match="no web address"):
        api.locate("actions/artifacts/1/zip", "artifact 1")


@pytest.mark.parametrize(
    "headers", [{"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": LONG.decode()}, {"Retry-After": LONG.decode()}]
)
def test_a_wait_of_five_thousand_digits_is_no_reason_to_fail(headers: dict[str, str]) -> None:
    answer = requests.Response()
    answer.status_code, answer._content = 429, b""
    answer.headers.update(headers)
    wait = rate_limit(answer)
    assert wait is not None
    assert 0 < wait < float("inf")
