"""Refusals and faults of GitLab are told apart and said; what one job lacks stops no other."""

from __future__ import annotations

import os
from typing import Any

import pytest
from gitlab import exceptions

from goldenctl.errors import AuthError, CorruptError, GoldenctlError, NotFoundError, RateLimitError, SourceError
from goldenctl.sources import http
from goldenctl.sources.gitlab_api import Api
from tests.doubles.gitlab import GitlabDouble
from tests.doubles.server import cut, page, status
from tests.sources.conftest import every
from tests.sources.gitlab.pipelines import FOLDER, GROUP, TOKEN, Take, bridge, deliver, job, packed, parent, when
from tests.sources.zips import GOLDEN, zipped

# Refusals and faults.


def refused(take: Take, ref: str = "gitlab:1") -> GoldenctlError:
    with pytest.raises(SourceError) as caught:
        take(ref)
    assert TOKEN not in str(caught.value)
    return caught.value


def test_a_pipeline_that_does_not_exist_is_not_found(gitlab: GitlabDouble, take: Take) -> None:
    parent(gitlab)
    error = refused(take, "gitlab:9")
    assert isinstance(error, NotFoundError)
    assert error.fact == f"pipeline 9 of {GROUP} is not found, or there is no access to it"


@pytest.mark.parametrize(
    ("code", "kind", "fact"),
    [(401, AuthError, "GitLab refuses the token"), (403, AuthError, "GitLab refuses access"), (500, SourceError, "answers 500"),
     (429, RateLimitError, "rate limit is used up")],
)  # fmt: skip
def test_refusals_are_told_apart(gitlab: GitlabDouble, take: Take, code: int, kind: type, fact: str) -> None:
    parent(gitlab)
    gitlab.api.fault("pipelines/1$", status(code, b"{}", {"Retry-After": "0"} if code == 429 else {}))
    error = refused(take)
    assert type(error) is kind
    assert fact in error.fact


def test_a_long_rate_limit_is_an_error_with_the_time_of_its_end(gitlab: GitlabDouble, take: Take) -> None:
    parent(gitlab)
    gitlab.api.fault("pipelines/1$", status(429, b"Retry later", {"Retry-After": "1800"}))
    with pytest.raises(RateLimitError, match="used up until"):
        take()


def test_a_service_that_fails_for_a_moment_is_asked_again(gitlab: GitlabDouble, take: Take) -> None:
    deliver(gitlab, parent(gitlab), job(101, "moe", "tiny"), packed("tiny"))
    for pattern in ("pipelines/1$", "bridges", "jobs\\?", "101/artifacts"):
        gitlab.api.fault(pattern, status(502), times=2)
    gitlab.blob.fault("101", cut(5), times=1)
    assert list(take().contents.values()) == [GOLDEN]


@pytest.mark.parametrize("path", ["pipelines/1$", "bridges"])
def test_a_login_page_instead_of_the_api_is_said(gitlab: GitlabDouble, take: Take, path: str) -> None:
    parent(gitlab)
    gitlab.api.fault(path, page)
    error = refused(take)
    assert isinstance(error, CorruptError)
    assert "the answer is not of GitLab's API" in error.fact


@pytest.mark.parametrize("body", [b"[]", b"null", b'{"id": "x"}', b"{", b'{"id": 1, "started_at": 7}'])
def test_json_of_another_form_is_said(gitlab: GitlabDouble, take: Take, body: bytes) -> None:
    parent(gitlab)
    gitlab.api.fault("pipelines/1$", status(200, body, {"Content-Type": "application/json"}))
    assert isinstance(refused(take), CorruptError)


@pytest.mark.parametrize("body", [b'[{"id": 1}]', b'[{"id": "x"}]', b"[1]", b'{"message": "no"}'])
def test_a_list_of_another_form_is_said(gitlab: GitlabDouble, take: Take, body: bytes) -> None:
    parent(gitlab)
    gitlab.api.fault("bridges", status(200, body, {"Content-Type": "application/json"}))
    assert isinstance(refused(take), CorruptError)


@pytest.mark.parametrize("fault", [page, status(200, b"[1]", {"Content-Type": "application/json"}), status(500)])
def test_a_child_whose_jobs_cannot_be_listed_is_a_problem_and_stops_nothing(
    gitlab: GitlabDouble, take: Take, fault: Any
) -> None:
    project = parent(gitlab)
    project.bridges[1].append(bridge(gitlab, 901, "functional:run_dev_dgx_gb200", project, 3))
    project.pipelines[3] = {}
    deliver(gitlab, project, job(101, "moe", "tiny"), packed("tiny"), 3)
    gitlab.api.fault("pipelines/2/jobs", fault)
    taken = take()
    assert list(taken.contents.values()) == [GOLDEN]
    assert [p.subject for p in taken.problems] == [f"pipeline 2 of {GROUP}"]


def test_all_pages_are_read(gitlab: GitlabDouble, take: Take) -> None:
    project = parent(gitlab)
    gitlab.page_size = 7
    for number in range(20):
        deliver(gitlab, project, job(100 + number, "gpt", f"case_{number}"), packed(f"case_{number}"))
    assert len(take().contents) == 20


def test_an_expired_artifact_is_named(gitlab: GitlabDouble, take: Take) -> None:
    project = parent(gitlab)
    project.jobs[2].append(job(101, "moe", "tiny", artifacts_expire_at="2020-01-01T00:00:00.000Z"))
    project.jobs[2].append(job(102, "moe", "none"))
    assert [(p.subject, p.kind) for p in take().problems] == [("moe/tiny dev dgx_h100 #101", "expired")]


def test_jobs_and_bridges_not_done_yet_are_named(gitlab: GitlabDouble, take: Take) -> None:
    project = parent(gitlab, status="running")
    project.bridges[1].append(bridge(gitlab, 901, "functional:run_lts_dgx_h100", None, status="created"))
    project.jobs[2].append(job(101, "moe", "slow", end=None))
    project.jobs[2].append(job(102, "moe", "later", status="manual"))
    texts = [p.message for p in take().problems]
    assert [p.partition("not done yet: ")[2] for p in texts] == ["functional:run_lts_dgx_h100", "moe/slow dev dgx_h100"]


def test_a_pipeline_is_waited_for_when_asked(gitlab: GitlabDouble, take: Take, monkeypatch: pytest.MonkeyPatch) -> None:
    project = parent(gitlab, status="running")
    project.jobs[2].append(job(101, "moe", "tiny", end=None))

    def finish(_seconds: float) -> None:
        project.jobs[2] = []
        deliver(gitlab, project, job(101, "moe", "tiny"), packed("tiny"))

    monkeypatch.setattr("time.sleep", finish)
    assert list(take(wait=True).contents.values()) == [GOLDEN]


def test_only_what_is_needed_of_an_artifact_is_transferred(gitlab: GitlabDouble, take: Take) -> None:
    name = FOLDER.format(0, 0, "tiny-dev-dgx-h100")
    raw = zipped({name: GOLDEN, "results/logs/0": os.urandom(2_000_000)}, at=when("10:30"))
    for gitlab.direct in (False, True):
        gitlab.projects.clear()
        deliver(gitlab, parent(gitlab), job(101, "moe", "tiny"), raw)
        taken = take()
        assert list(taken.contents.values()) == [GOLDEN]
        assert taken.fetched[0].bytes_transferred < 70_000


@pytest.mark.parametrize("kind", every(exceptions.GitlabError), ids=lambda k: k.__name__)
def test_every_error_of_python_gitlab_is_mapped(kind: type[exceptions.GitlabError]) -> None:
    api = Api("https://gitlab.corp", {"PRIVATE-TOKEN": TOKEN}, http.session(http.Patience(1)))
    with pytest.raises(SourceError) as caught, api._mapped("pipeline 1", "g/p"):
        raise kind("no", 418)
    assert TOKEN not in str(caught.value)
