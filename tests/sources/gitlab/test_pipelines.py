"""A GitLab pipeline gives the golden files of its child pipelines, and names all that it cannot give."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gitlab as client_library
import pytest

from goldenctl import candidates
from goldenctl.config import CiSettings, Settings
from goldenctl.errors import AuthError, SourceError, UsageError
from goldenctl.model import Conclusion, SourceProblem
from goldenctl.sources import open_source
from goldenctl.sources.gitlab import parse
from tests.conftest import ScratchRepo
from tests.doubles.certificate import make
from tests.doubles.gitlab import GitlabDouble
from tests.doubles.server import cut
from tests.sources.gitlab.pipelines import FOLDER, GROUP, SHA, TOKEN, Take, bridge, deliver, job, packed, parent, when
from tests.sources.zips import GOLDEN, H100, zipped, zipped_at


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
