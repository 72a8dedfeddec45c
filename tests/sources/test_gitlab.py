"""A GitLab pipeline gives the golden files of its child pipelines, and names all that it cannot give."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import gitlab as client_library
import pytest
from gitlab import exceptions

from goldenctl import candidates
from goldenctl.config import CiSettings, Settings
from goldenctl.errors import AuthError, CorruptError, GoldenctlError, NotFoundError, RateLimitError, SourceError, UsageError
from goldenctl.model import Conclusion, SourceProblem
from goldenctl.sources import FetchOptions, http, open_source
from goldenctl.sources.gitlab import parse
from goldenctl.sources.gitlab_api import Api
from tests.conftest import ScratchRepo
from tests.doubles.certificate import make
from tests.doubles.gitlab import GitlabDouble, Project
from tests.doubles.server import cut, page, status
from tests.sources.conftest import Taken, every
from tests.sources.zips import GOLDEN, H100, zipped, zipped_at

TOKEN = "glpat-secretsecret"
GROUP = "dl/team/megatron"
SHA = "0123456789abcdef0123456789abcdef01234567"
FOLDER = "results/iteration={}/restart={}/assets/basic/{}/golden_values_dev_dgx_h100.json"
Take = Callable[..., Taken]


def at(clock: str) -> str:
    return f"2026-05-01T{clock}:00.000Z"


def when(clock: str) -> datetime:
    return datetime.fromisoformat(at(clock)).astimezone(UTC)


def job(number: int, model: str, case: str, start: str = "10:00", end: str | None = "11:00", **more: Any) -> dict[str, Any]:
    done = {"status": "success" if end else "running", "started_at": at(start), "finished_at": at(end) if end else None}
    return {"id": number, "stage": model, "name": case, **done, **more}


def bridge(
    double: GitlabDouble, number: int, name: str, project: Project | None, pipeline: int = 0, **more: Any
) -> dict[str, Any]:
    started = None
    if project is not None:
        url = f"{double.url}/{project.path}/-/pipelines/{pipeline}"
        started = {"id": pipeline, "project_id": project.number, "status": "success", "web_url": url}
    return {"id": number, "name": name, "stage": "functional", "status": "success", "downstream_pipeline": started, **more}


def packed(case: str, content: bytes = GOLDEN, iteration: int = 0, restart: int = 0) -> bytes:
    folder = f"{case}_dev_dgx_h100".replace("_", "-").lower()
    return zipped_at({FOLDER.format(iteration, restart, folder): when("10:30")}, content)


@pytest.fixture
def gitlab(monkeypatch: pytest.MonkeyPatch) -> Iterator[GitlabDouble]:
    double = GitlabDouble(TOKEN)
    monkeypatch.setenv("GITLAB_ENDPOINT", double.url)
    monkeypatch.setenv("RO_API_TOKEN", TOKEN)
    yield double
    double.close()


@pytest.fixture
def take(tmp_path: Path) -> Take:
    def taken(ref: str = "gitlab:1", project: str = GROUP, **options: Any) -> Taken:
        source = open_source(ref, Settings(tmp_path, root="goldens", ci=CiSettings(project=project)), FetchOptions(**options))
        run = source.describe()
        return Taken(run, list(source.fetch(run.artifacts)))

    return taken


def parent(double: GitlabDouble, **more: Any) -> Project:
    """Pipeline 1 with one child pipeline 2 for dev on h100."""
    project = double.project(42, GROUP)
    project.pipelines = {1: {"sha": SHA, "ref": "main", "started_at": at("09:00"), **more}, 2: {}}
    project.bridges = {1: [bridge(double, 900, "functional:run_dev_dgx_h100", project, 2)]}
    project.jobs = {2: []}
    return project


def deliver(double: GitlabDouble, project: Project, said: dict[str, Any], raw: bytes, pipeline: int = 2) -> None:
    double.zips[said["id"]] = raw
    project.jobs.setdefault(pipeline, []).append(said)


def test_the_double_is_walked_by_python_gitlab(gitlab: GitlabDouble) -> None:
    project = parent(gitlab)
    for number in range(45):
        deliver(gitlab, project, job(100 + number, "gpt", f"case_{number}"), packed("x"))
    found = client_library.Gitlab(gitlab.url, private_token=TOKEN).projects.get(GROUP, lazy=True)
    [started] = [b.downstream_pipeline for b in found.pipelines.get(1).bridges.list(iterator=True)]
    jobs = found.pipelines.get(started["id"]).jobs.list(iterator=True)
    assert sorted(j.name for j in jobs) == sorted(f"case_{n}" for n in range(45))
    gitlab.direct = True
    assert found.jobs.get(100).artifacts() == packed("x")


def test_a_pipeline_gives_the_goldens_of_its_child_pipelines(gitlab: GitlabDouble, take: Take, tmp_path: Path) -> None:
    project = parent(gitlab)
    deliver(gitlab, project, job(101, "moe", "tiny_ep8"), packed("tiny_ep8"))
    taken = take()
    [member] = [m for f in taken.fetched for m in f.members]
    assert (member.content, member.replicate) == (GOLDEN, "iteration=0/restart=0")
    assert (taken.run.provider, taken.run.id, taken.run.commit, taken.run.branch) == ("gitlab", "1", SHA, "main")
    [found] = taken.run.jobs
    assert (found.model, found.test_case, found.environment, found.platform) == ("moe", "tiny_ep8", "dev", "dgx_h100")
    known = candidates.Known(Settings(tmp_path, root="goldens"), frozenset())
    assert [c.path for c in candidates.resolve(taken.run, taken.fetched, known).candidates] == [f"goldens/moe/tiny_ep8/{H100}"]


@pytest.mark.parametrize("ref", ["{url}/dl/team/megatron/-/pipelines/1", "gitlab:1", "{url}/dl/team/megatron/-/pipelines/1?x"])
def test_every_form_of_reference_leads_to_the_pipeline(gitlab: GitlabDouble, take: Take, ref: str) -> None:
    deliver(gitlab, parent(gitlab), job(101, "moe", "tiny"), packed("tiny"))
    taken = take(ref.format(url=gitlab.url))
    assert taken.run.id == "1"
    assert list(taken.contents.values()) == [GOLDEN]


def test_a_child_pipeline_can_be_named_itself(gitlab: GitlabDouble, take: Take) -> None:
    deliver(gitlab, parent(gitlab), job(101, "moe", "tiny"), packed("tiny"))
    taken = take("gitlab:2")
    assert list(taken.contents.values()) == [GOLDEN]
    assert taken.run.jobs[0].platform == "", "only the file name tells"


def test_one_job_can_be_named(gitlab: GitlabDouble, take: Take) -> None:
    project = parent(gitlab)
    deliver(gitlab, project, job(101, "moe", "tiny", retried=True), packed("tiny", b"old"))
    deliver(gitlab, project, job(102, "moe", "tiny"), packed("tiny", b"new"))
    deliver(gitlab, project, job(103, "moe", "other"), packed("other"))
    for number, content, attempt in ((102, b"new", 2), (101, b"old", 1)):
        taken = take(f"{gitlab.url}/{GROUP}/-/jobs/{number}")
        assert list(taken.contents.values()) == [content]
        assert [j.attempt for j in taken.run.jobs] == [attempt]


# What the former download script got wrong, one test each.


@pytest.mark.parametrize("hidden", [True, False])
def test_l1_a_forbidden_child_of_another_project_is_a_problem_and_stops_nothing(
    gitlab: GitlabDouble, take: Take, hidden: bool
) -> None:
    project = parent(gitlab)
    other = gitlab.project(77, "dl/joc/nemo-ci", closed=not hidden, hidden=hidden)
    project.bridges[1].insert(0, bridge(gitlab, 901, "functional:run_nemo", other, 5))
    deliver(gitlab, project, job(101, "moe", "tiny"), packed("tiny"))
    taken = take()
    assert list(taken.contents.values()) == [GOLDEN]
    [problem] = taken.problems
    assert (problem.subject, problem.kind) == ("pipeline 5 of dl/joc/nemo-ci", "auth")


def test_l1_a_child_of_another_project_is_followed_there(gitlab: GitlabDouble, take: Take) -> None:
    project = parent(gitlab)
    other = gitlab.project(77, "dl/joc/other")
    other.pipelines = {5: {}}
    project.bridges[1].append(bridge(gitlab, 901, "functional:run_lts_dgx_a100", other, 5, allow_failure=True))
    deliver(gitlab, other, job(501, "gpt", "far"), packed("far"), 5)
    taken = take()
    assert list(taken.contents.values()) == [GOLDEN]
    assert [(j.environment, j.platform) for j in taken.run.jobs] == [("lts", "dgx_a100")]


def test_l1_a_bridge_that_was_never_started_is_no_fault(gitlab: GitlabDouble, take: Take) -> None:
    project = parent(gitlab)
    project.bridges[1].append(bridge(gitlab, 901, "functional:run_nemo", None, status="manual"))
    project.bridges[1].append(bridge(gitlab, 902, "unit-tests", None, status="running"))
    assert take().problems == []


def test_l2_a_smoke_bridge_gives_no_environment_and_the_file_name_tells(
    gitlab: GitlabDouble, take: Take, tmp_path: Path
) -> None:
    project = parent(gitlab)
    project.bridges[1] = [bridge(gitlab, 900, "functional:smoke-h100", project, 2)]
    deliver(gitlab, project, job(101, "moe", "tiny"), packed("tiny"))
    taken = take()
    assert [(j.environment, j.platform) for j in taken.run.jobs] == [("", "")]
    known = candidates.Known(Settings(tmp_path, root="goldens"), frozenset())
    assert [c.path for c in candidates.resolve(taken.run, taken.fetched, known).candidates] == [f"goldens/moe/tiny/{H100}"]


def test_l3_an_artifact_without_results_stops_nothing(gitlab: GitlabDouble, take: Take) -> None:
    project = parent(gitlab)
    deliver(gitlab, project, job(101, "moe", "crashed", status="failed"), zipped({"jet_workload.log": b"x"}))
    deliver(gitlab, project, job(102, "moe", "tiny"), packed("tiny"))
    taken = take()
    assert (list(taken.contents.values()), taken.problems) == ([GOLDEN], [])


def test_l4_iterations_and_restarts_are_ordered_by_number(gitlab: GitlabDouble, take: Take) -> None:
    project = parent(gitlab)
    names = {FOLDER.format(*n, "tiny-dev-dgx-h100"): b"%d %d" % n for n in ((9, 0), (10, 9), (10, 10), (2, 11))}
    deliver(gitlab, project, job(101, "moe", "tiny"), zipped(names, at=when("10:30")))
    [member] = [m for f in take().fetched for m in f.members]
    assert (member.content, member.replicate) == (b"10 10", "iteration=10/restart=10")


def test_l5_a_restart_left_over_from_an_earlier_attempt_is_not_taken(gitlab: GitlabDouble, take: Take) -> None:
    project = parent(gitlab)
    names = {FOLDER.format(0, n, "tiny-dev-dgx-h100"): when(clock) for n, clock in ((0, "12:30"), (1, "10:30"))}
    deliver(gitlab, project, job(101, "moe", "tiny", "10:00", "11:00", retried=True, status="failed"), packed("tiny"))
    deliver(gitlab, project, job(102, "moe", "tiny", "12:00", "13:00"), zipped_at(names))
    taken = take()
    assert [m.replicate for f in taken.fetched for m in f.members] == ["iteration=0/restart=0"]
    assert taken.problems == []


def test_l5_when_only_left_over_restarts_have_goldens_that_is_said(gitlab: GitlabDouble, take: Take) -> None:
    project = parent(gitlab)
    left = FOLDER.format(0, 1, "tiny-dev-dgx-h100")
    deliver(gitlab, project, job(102, "moe", "tiny", "12:00", "13:00"), zipped_at({left: when("10:30")}))
    taken = take()
    assert taken.contents == {}
    text = f"only restarts of an earlier attempt hold golden files: {left}"
    assert taken.problems == [SourceProblem("moe/tiny dev dgx_h100 #102", "missing", text)]


def test_l6_a_newest_restart_without_goldens_leaves_the_one_before(gitlab: GitlabDouble, take: Take) -> None:
    project = parent(gitlab)
    crashed = "results/iteration=0/restart=1/assets/basic/tiny-dev-dgx-h100/logs/std.log"
    good = FOLDER.format(0, 0, "tiny-dev-dgx-h100")
    deliver(gitlab, project, job(101, "moe", "tiny"), zipped({good: GOLDEN, crashed: b"x"}, at=when("10:30")))
    assert [m.replicate for f in take().fetched for m in f.members] == ["iteration=0/restart=0"]


def test_l7_a_failed_download_leaves_no_file_behind(
    gitlab: GitlabDouble, take: Take, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    project = parent(gitlab)
    deliver(gitlab, project, job(101, "moe", "tiny"), packed("tiny"))
    deliver(gitlab, project, job(102, "moe", "cut"), zipped({"logs": os.urandom(90_000)}))
    gitlab.blob.fault("artifacts/102", cut(10))
    taken = take()
    assert list(taken.contents.values()) == [GOLDEN]
    assert [(p.subject, p.kind) for p in taken.problems] == [("moe/cut dev dgx_h100 #102", "corrupt")]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("said", "meant"),
    [({"status": "failed"}, Conclusion.FAILURE), ({"status": "skipped"}, Conclusion.SKIPPED),
     ({"status": "manual"}, Conclusion.SKIPPED), ({"status": "canceled"}, Conclusion.CANCELLED),
     ({"status": "failed", "failure_reason": "job_execution_timeout"}, Conclusion.TIMED_OUT),
     ({"status": "success", "allow_failure": True}, Conclusion.SUCCESS), ({"status": "odd"}, Conclusion.UNKNOWN)],
)  # fmt: skip
def test_l8_how_a_job_ended_is_told_apart(gitlab: GitlabDouble, take: Take, said: Any, meant: Conclusion) -> None:
    project = parent(gitlab)
    project.jobs[2].append(job(101, "moe", "tiny", **said))
    [found] = take().run.jobs
    assert (found.conclusion, found.allow_failure) == (meant, bool(said.get("allow_failure")))


def test_l9_other_json_files_that_begin_with_g_are_no_goldens(gitlab: GitlabDouble, take: Take) -> None:
    folder = "results/iteration=0/restart=0/assets/basic/tiny-dev-dgx-h100"
    raw = zipped({f"{folder}/{n}.json": b"{}" for n in ("gpu", "gradients", "golden", "generations")}, at=when("10:30"))
    deliver(gitlab, parent(gitlab), job(101, "moe", "tiny"), raw)
    assert take().contents == {}


def test_l10_generations_of_the_past_get_their_present_name_and_nothing_else(gitlab: GitlabDouble, take: Take) -> None:
    folder = "results/iteration=0/restart=0/assets/basic/generations-dev-dgx-h100"
    files = {f"{folder}/generations_dev_dgx_h100.json": b"old name", f"{folder}/more_generations_x.json": b"other"}
    deliver(gitlab, parent(gitlab), job(101, "gpt", "generations"), zipped(files, at=when("10:30")))
    assert take().contents == {f"101:{folder}/{H100}": b"old name"}


def test_l10_a_golden_goes_before_generations_of_the_past(gitlab: GitlabDouble, take: Take) -> None:
    folder = "results/iteration=0/restart=0/assets/basic/tiny-dev-dgx-h100"
    files = {f"{folder}/generations_dev_dgx_h100.json": b"old", f"{folder}/{H100}": b"new"}
    deliver(gitlab, parent(gitlab), job(101, "gpt", "tiny"), zipped(files, at=when("10:30")))
    assert (take().contents, take().problems) == ({f"101:{folder}/{H100}": b"new"}, [])


def test_l11_of_retried_jobs_the_newest_is_taken_or_the_attempt_asked_for(gitlab: GitlabDouble, take: Take) -> None:
    project = parent(gitlab)
    deliver(gitlab, project, job(103, "moe", "tiny"), packed("tiny", b"3"))
    deliver(gitlab, project, job(101, "moe", "tiny", status="failed", retried=True), packed("tiny", b"1"))
    deliver(gitlab, project, job(102, "moe", "tiny", status="failed", retried=True), packed("tiny", b"2"))
    deliver(gitlab, project, job(104, "gpt", "tiny"), packed("tiny", b"other model"))
    assert sorted(take().contents.values()) == [b"3", b"other model"]
    assert sorted(take(attempt=2).contents.values()) == [b"2", b"other model"]
    assert {(j.model, j.attempt) for j in take().run.jobs} == {("moe", 3), ("gpt", 1)}


def test_l12_a_bare_number_needs_no_option_where_the_settings_say_the_provider(gitlab: GitlabDouble, tmp_path: Path) -> None:
    deliver(gitlab, parent(gitlab), job(101, "moe", "tiny"), packed("tiny"))
    ci = CiSettings(provider="gitlab", project=GROUP)
    assert open_source("1", Settings(tmp_path, root="goldens", ci=ci)).describe().id == "1"


def test_l13_without_project_or_token_the_error_says_what_to_set(
    gitlab: GitlabDouble, take: Take, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    parent(gitlab)
    with pytest.raises(UsageError, match="nothing says which project"):
        take(project="")
    monkeypatch.delenv("RO_API_TOKEN")
    with pytest.raises(AuthError, match="GitLab wants a token") as caught:
        take()
    assert "export GITLAB_TOKEN" in caught.value.hint
    assert capsys.readouterr().out == ""


# Tokens and hosts.


@pytest.mark.parametrize(
    ("name", "header"),
    [
        ("RO_API_TOKEN", "PRIVATE-TOKEN"),
        ("GITLAB_TOKEN", "PRIVATE-TOKEN"),
        ("CI_JOB_TOKEN", "JOB-TOKEN"),
    ],
)
@pytest.mark.parametrize("direct", [True, False])
def test_the_token_goes_to_the_host_and_never_to_the_storage(
    gitlab: GitlabDouble, take: Take, name: str, header: str, direct: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("RO_API_TOKEN")
    monkeypatch.setenv(name, TOKEN)
    gitlab.direct = direct
    deliver(gitlab, parent(gitlab), job(101, "moe", "tiny"), packed("tiny"))
    taken = take()
    assert list(taken.contents.values()) == [GOLDEN]
    assert all(r.headers.get(header) == TOKEN for r in gitlab.api.requests)
    assert all(TOKEN not in str(r.headers) for r in gitlab.blob.requests)
    assert TOKEN not in repr(taken)


def test_a_host_nobody_configured_never_gets_the_token(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITLAB_TOKEN", TOKEN)
    settings = Settings(tmp_path)
    assert parse("https://evil.example/g/p/-/pipelines/1", settings).headers == {}
    assert parse("https://gitlab.com/g/p/-/pipelines/1", settings).headers == {"PRIVATE-TOKEN": TOKEN}
    monkeypatch.setenv("GITLAB_ENDPOINT", "gitlab.corp")
    assert parse("https://gitlab.corp/g/p/-/pipelines/1", settings).headers == {"PRIVATE-TOKEN": TOKEN}
    assert parse("https://gitlab.com/g/p/-/pipelines/1", settings).headers == {}


def test_the_remote_says_host_and_project(make_repo: Callable[..., ScratchRepo]) -> None:
    repo = make_repo("r", {"a": b""})
    repo.git("remote", "add", "origin", "git@gitlab.corp:dl/team/megatron.git")
    found = parse("gitlab:7", Settings(repo.top))
    assert (found.url, found.project, found.number) == ("https://gitlab.corp", "dl/team/megatron", 7)


def test_an_installation_below_a_path_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITLAB_ENDPOINT", "https://corp/gitlab/")
    found = parse("https://corp/gitlab/g/p/-/jobs/7", Settings(tmp_path))
    assert (found.url, found.project, found.is_job) == ("https://corp/gitlab", "g/p", True)


@pytest.mark.parametrize("ref", ["gitlab:", "gitlab:x", "https://host/g/p/-/pipelines/x"])
def test_a_reference_of_another_form_is_wrong_use(ref: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no reference of a GitLab pipeline"):
        parse(ref, Settings(tmp_path))


def test_a_self_hosted_server_is_trusted_by_its_ca_bundle(take: Take, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    context, bundle = make(tmp_path)
    double = GitlabDouble(TOKEN, tls=context)
    double.direct = True
    deliver(double, parent(double), job(101, "moe", "tiny"), packed("tiny"))
    monkeypatch.setenv("GITLAB_ENDPOINT", double.url)
    monkeypatch.setenv("GITLAB_TOKEN", TOKEN)
    with pytest.raises(SourceError, match="certificate is not trusted"):
        take()
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(bundle))
    assert list(take().contents.values()) == [GOLDEN]
    double.close()


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
