"""Refusals, rate limits and broken answers of GitHub are told apart, waited for where that helps, and said."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import pytest

from goldenctl.errors import (
    AuthError,
    CorruptError,
    GoldenctlError,
    NotFoundError,
    RateLimitError,
    SourceError,
)
from tests.doubles.github import GithubDouble, primary_limit, secondary_limit
from tests.doubles.server import Reply, cut, page, reset, status
from tests.sources.conftest import TOKEN, Taken
from tests.sources.jobs import REF, many, one
from tests.sources.runs import RUN
from tests.sources.zips import GOLDEN, H100

Take = Callable[..., Taken]


# Refusals, told apart.


def refused(take: Take) -> GoldenctlError:
    with pytest.raises(SourceError) as caught:
        take(REF)
    assert TOKEN not in str(caught.value)
    return caught.value


def test_a_bad_token_is_said(github: GithubDouble, take: Take, monkeypatch: pytest.MonkeyPatch) -> None:
    one(github)
    monkeypatch.setenv("GITHUB_TOKEN", "wrong")
    error = refused(take)
    assert isinstance(error, AuthError)
    assert "GitHub refuses the token" in error.fact


def test_a_download_without_a_token_says_that_one_is_wanted(
    github: GithubDouble, take: Take, monkeypatch: pytest.MonkeyPatch
) -> None:
    one(github)
    monkeypatch.delenv("GITHUB_TOKEN")
    taken = take(REF)
    assert [(p.kind, p.hint) for p in taken.problems] == [("auth", "export GITHUB_TOKEN=$(gh auth token)")]


def test_a_private_repository_is_not_found_or_not_accessible(
    github: GithubDouble, take: Take, monkeypatch: pytest.MonkeyPatch
) -> None:
    one(github)
    github.private = True
    monkeypatch.delenv("GITHUB_TOKEN")
    error = refused(take)
    assert isinstance(error, NotFoundError)
    assert "is not found, or there is no access to it" in error.fact
    assert "GITHUB_TOKEN" in error.hint


@pytest.mark.parametrize(
    ("headers", "message", "fact"),
    [
        ({"X-GitHub-SSO": "required; url=https://github.com/orgs/o/sso?authorization_request=A"}, "No", "single sign-on"),
        ({"X-Accepted-OAuth-Scopes": "repo", "X-OAuth-Scopes": ""}, "Resource not accessible by integration", "lacks a scope"),
        ({"X-Accepted-GitHub-Permissions": "actions=read"}, "Resource not accessible by token", "lacks a scope"),
        ({}, "Although you appear to have the correct authorization", "refuses access: Although you appear"),
    ],
)  # fmt: skip
def test_a_403_says_why(github: GithubDouble, take: Take, headers: dict[str, str], message: str, fact: str) -> None:
    one(github)
    github.api.fault(f"/runs/{RUN}$", status(403, json.dumps({"message": message}).encode(), headers))
    error = refused(take)
    assert isinstance(error, AuthError)
    assert fact in error.fact
    assert "authorization_request" not in str(error)


def test_a_run_that_does_not_exist_is_not_found(github: GithubDouble, take: Take) -> None:
    assert isinstance(refused(take), NotFoundError)


def test_a_missing_attempt_names_the_newest(github: GithubDouble, take: Take) -> None:
    one(github)
    with pytest.raises(NotFoundError, match="has no attempt 3") as caught:
        take(REF, attempt=3)
    assert caught.value.hint == "the newest is 1"


# Rate limits.


@pytest.mark.parametrize("limit", [primary_limit(-1), secondary_limit(0), status(429, b"{}", {"Retry-After": "0"})])
def test_a_short_rate_limit_is_waited_for(
    github: GithubDouble, take: Take, limit: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    one(github)
    monkeypatch.setattr("time.sleep", lambda _: None)
    github.api.fault("/jobs", limit, times=1)
    github.api.fault("/zip$", limit, times=1)
    assert take(REF, max_wait=5).contents == {f"1:{H100}": GOLDEN}


def test_a_long_rate_limit_is_an_error_with_the_time_of_its_end(github: GithubDouble, take: Take) -> None:
    one(github)
    github.api.fault("/jobs", primary_limit(1800))
    with pytest.raises(
        RateLimitError, match=r"used up until \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC, 1[78]\d\d s from now"
    ) as caught:
        take(REF, max_wait=300)
    assert "--max-wait" in caught.value.hint


def test_a_limit_met_while_downloading_is_a_problem_and_the_service_is_left_alone(github: GithubDouble, take: Take) -> None:
    many(github, 30)
    github.api.fault("/zip$", secondary_limit(900))
    taken = take(REF, workers=4)
    assert taken.kinds == ["rate-limit"] * 30
    assert len(github.api.seen("/zip$")) <= 4


def test_a_secondary_limit_without_a_time_waits_a_minute(
    github: GithubDouble, take: Take, monkeypatch: pytest.MonkeyPatch
) -> None:
    one(github)
    slept: list[float] = []
    monkeypatch.setattr("time.sleep", slept.append)
    github.api.fault("/artifacts", secondary_limit(None), times=1)
    with pytest.raises(RateLimitError, match="60 s from now"):
        take(REF, max_wait=30)
    assert slept == []


# Broken answers.


@pytest.mark.parametrize(
    "fault", [status(500), status(502), status(503), reset, cut(40), status(503, b"", {"Retry-After": "0"})]
)
def test_a_service_that_fails_for_a_moment_is_asked_again(github: GithubDouble, take: Take, fault: Any) -> None:
    one(github)
    for pattern in (f"/runs/{RUN}$", "/jobs", "/artifacts\\?", "/zip$"):
        github.api.fault(pattern, fault, times=2)
    github.blob.fault("zip/11", fault, times=1)
    assert take(REF).contents == {f"1:{H100}": GOLDEN}


def test_a_service_that_keeps_failing_is_an_error_that_says_the_status(github: GithubDouble, take: Take) -> None:
    one(github)
    github.api.fault("/jobs", status(502))
    assert "GitHub answers 502" in refused(take).fact


@pytest.mark.parametrize("path", [f"/runs/{RUN}$", "/jobs", "/artifacts\\?"])
def test_a_login_page_instead_of_the_api_is_said(github: GithubDouble, take: Take, path: str) -> None:
    one(github)
    github.api.fault(path, page)
    error = refused(take)
    assert isinstance(error, CorruptError)
    assert "the answer is not of GitHub's API" in error.fact


def test_a_login_page_instead_of_the_zip_is_said(github: GithubDouble, take: Take) -> None:
    many(github, 3)
    github.blob.fault("zip/1001", page)
    github.api.fault("1002/zip", page)
    taken = take(REF)
    assert taken.contents == {f"3:{H100}": b"3"}
    texts = sorted(p.message.partition(": ")[2] for p in taken.problems)
    assert texts[0] == "an HTML page was sent instead of the zip"
    assert re.fullmatch(r"artifact logs-case_2\S+: the API answers 200 instead of a link", texts[1])


@pytest.mark.parametrize("body", [b"[]", b"null", b'{"total_count": 1}', b'{"jobs": [1]}', b"{", b'{"jobs": {}}'])
def test_json_of_another_form_is_said(github: GithubDouble, take: Take, body: bytes) -> None:
    one(github)
    github.api.fault("/jobs", lambda _, __: Reply(200, body, {"Content-Type": "application/json"}))
    assert isinstance(refused(take), CorruptError)


def test_a_list_that_ends_too_early_is_said(github: GithubDouble, take: Take) -> None:
    many(github, 15)
    github.page_size = 10
    github.api.fault("/jobs.*page=2", lambda _, __: Reply(200, b'{"total_count": 15, "jobs": []}'))
    assert "the list of jobs ends after 10 of 15" in refused(take).fact


def test_a_service_that_is_not_there_is_said(take: Take, monkeypatch: pytest.MonkeyPatch) -> None:
    double = GithubDouble()
    double.close()
    monkeypatch.setenv("GITHUB_API_URL", double.url)
    error = refused(take)
    assert error.fact == "cannot be reached: Connection refused"
    assert error.place == double.url.removeprefix("http://")


def test_a_file_of_another_size_than_listed_is_read_all_the_same(github: GithubDouble, take: Take) -> None:
    one(github)
    github.artifacts[RUN][0] |= {"size_in_bytes": 9_999_999, "digest": None}
    assert take(REF).contents == {f"1:{H100}": GOLDEN}
