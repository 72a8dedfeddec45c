"""An artifact belongs to the job and attempt in whose time it was made, and the newest attempt of a job wins."""

from __future__ import annotations

from typing import Any

import pytest

from goldenctl.errors import CorruptError, NotFoundError
from goldenctl.model import Conclusion, Run
from goldenctl.sources.attribution import case_of, describe
from tests.sources.runs import RUN, artifact, artifact_name, job, run

CASE = "tiny_ep8"
NAME = "moe/tiny_ep8 - latest"


def described(jobs: list[dict[str, Any]], artifacts: list[dict[str, Any]], **more: Any) -> Run:
    said = run(run_attempt=max((j["run_attempt"] for j in jobs), default=1))
    return describe("github:1", said, jobs, artifacts, **more)


def pairs(found: Run) -> list[tuple[str, str]]:
    return [(a.id, a.job.id if a.job else "") for a in found.artifacts]


def test_the_display_name_says_model_and_case() -> None:
    assert case_of("moe/tiny_ep8 - latest") == ("moe", "tiny_ep8")


@pytest.mark.parametrize(
    "name", ["CICD / moe/tiny_ep8 - latest", "a / b / moe/tiny_ep8 - latest", "moe/tiny_ep8 - latest / run"]
)
def test_names_of_reusable_workflows_are_understood(name: str) -> None:
    assert case_of(name) == ("moe", "tiny_ep8")


@pytest.mark.parametrize(
    "name",
    ["tests/unit_tests/dist/**/*.py - latest", "tests/unit_tests - latest", "tests/unit_tests/a.py - gb200 latest",
     "Nemo_CICD_Test", "cicd-container-build", "moe/tiny_ep8", "../../x/y - latest", "/y - latest", ""],
)  # fmt: skip
def test_other_jobs_are_no_cases(name: str) -> None:
    assert case_of(name) == ("", "")


def test_a_job_gets_the_artifact_of_its_case_and_run() -> None:
    found = described([job(1, NAME), job(2, "moe/tiny - latest")], [artifact(11, CASE, "10:29"), artifact(12, "tiny", "10:28")])
    assert pairs(found) == [("12", "2"), ("11", "1")]
    assert found.artifacts[1].job is not None
    assert (found.artifacts[1].job.model, found.artifacts[1].job.test_case) == ("moe", "tiny_ep8")


@pytest.mark.parametrize(
    "name",
    ["coverage-unit-test-34695381473-8c4f1f0e-1b1a-5f6b-9c8d-000000000001", "coverage-unit-test-aggregated", "build-log",
     f"logs-tests-unit_tests-dist-----.py-{RUN}-8c4f1f0e-1b1a-5f6b-9c8d-000000000001",
     "logs-tiny_ep8-999-8c4f1f0e-1b1a-5f6b-9c8d-000000000001"],
)  # fmt: skip
def test_artifacts_of_other_jobs_and_runs_are_left_out(name: str) -> None:
    jobs = [job(1, NAME), job(2, "tests/unit_tests/dist/**/*.py - latest")]
    assert pairs(described(jobs, [artifact(11, "", "10:20", name=name)])) == []


def test_both_legs_of_a_case_are_kept_and_told_apart_by_time() -> None:
    jobs = [job(1, NAME, "10:00", "10:20"), job(2, NAME, "10:10", "10:40", conclusion="failure")]
    found = described(jobs, [artifact(11, CASE, "10:39"), artifact(12, CASE, "10:19:50")])
    assert pairs(found) == [("12", "1"), ("11", "2")]


def test_legs_with_the_same_window_each_get_one_artifact() -> None:
    found = described([job(1, NAME), job(2, NAME)], [artifact(11, CASE, "10:29"), artifact(12, CASE, "10:29")])
    assert sorted(j for _, j in pairs(found)) == ["1", "2"]


def test_the_newest_attempt_wins_whatever_the_order_of_the_list() -> None:
    jobs = [job(2, NAME, "11:00", "11:30", run_attempt=2), job(1, NAME, conclusion="failure")]
    for artifacts in ([artifact(11, CASE, "10:29"), artifact(12, CASE, "11:29")],) * 2:
        artifacts.reverse()
        found = described(jobs, artifacts)
        assert pairs(found) == [("12", "2")]
        assert [j.id for j in found.jobs] == ["2"]
        assert found.attempt == 2


def test_an_attempt_asked_for_is_taken_as_it_was() -> None:
    jobs = [job(1, NAME, conclusion="failure"), job(2, NAME, "11:00", "11:30", run_attempt=2)]
    found = described(jobs, [artifact(11, CASE, "10:29"), artifact(12, CASE, "11:29")], attempt=1)
    assert pairs(found) == [("11", "1")]
    assert (found.attempt, found.problems) == (1, ())


def test_an_attempt_that_does_not_exist_is_an_error() -> None:
    with pytest.raises(NotFoundError, match="no attempt 3"):
        described([job(1, NAME)], [], attempt=3)


def test_a_newest_attempt_without_artifact_does_not_fall_back_to_an_older_one() -> None:
    jobs = [job(1, NAME), job(2, NAME, "11:00", "11:30", run_attempt=2, conclusion="failure")]
    assert pairs(described(jobs, [artifact(11, CASE, "10:29")])) == []


def test_a_partial_rerun_leaves_the_other_leg_in_its_attempt() -> None:
    jobs = [
        job(1, NAME, labels=["aws-h100"], conclusion="failure"),
        job(2, NAME, labels=["gb-gpu"]),
        job(3, NAME, "11:00", "11:30", labels=["aws-h100"], run_attempt=2),
    ]
    artifacts = [artifact(11, CASE, "10:29"), artifact(12, CASE, "10:29:30"), artifact(13, CASE, "11:29")]
    found = described(jobs, artifacts)
    assert sorted(j.id for j in found.jobs) == ["2", "3"]
    assert sorted(j for _, j in pairs(found)) == ["2", "3"]


def test_without_labels_the_leg_that_failed_is_the_one_that_ran_again() -> None:
    jobs = [
        job(1, NAME, "10:00", "10:20"),
        job(2, NAME, "10:25", "10:30", conclusion="failure"),
        job(3, NAME, "11:00", "11:30", run_attempt=2),
    ]
    artifacts = [artifact(11, CASE, "10:19"), artifact(12, CASE, "10:29"), artifact(13, CASE, "11:29")]
    found = described(jobs, artifacts)
    assert pairs(found) == [("11", "1"), ("13", "3")]
    assert found.problems == ()


def test_a_rerun_whose_leg_cannot_be_told_takes_the_newest_attempt_and_says_so() -> None:
    jobs = [
        job(1, NAME, conclusion="failure"),
        job(2, NAME, conclusion="failure"),
        job(3, NAME, "11:00", "11:30", run_attempt=2),
    ]
    found = described(jobs, [artifact(13, CASE, "11:29")])
    assert pairs(found) == [("13", "3")]
    assert [(p.kind, p.message) for p in found.problems] == [
        ("unplaced", "2 jobs have this name and only 1 ran again; which cannot be told")
    ]


def test_jobs_that_a_later_attempt_only_lists_again_keep_their_artifact() -> None:
    jobs = [job(1, NAME), job(2, NAME, run_attempt=2)]
    assert pairs(described(jobs, [artifact(11, CASE, "10:29")])) == [("11", "2")]


def test_an_earlier_attempt_keeps_what_a_later_one_only_lists_again() -> None:
    jobs = [job(1, NAME), job(2, NAME, run_attempt=2)]
    found = described(jobs, [artifact(11, CASE, "10:29")], attempt=1)
    assert (pairs(found), found.problems) == ([("11", "1")], ())


def test_of_an_upload_and_its_retry_the_retry_is_taken() -> None:
    first = artifact(11, CASE, "10:28")
    again = artifact(12, CASE, "10:29", name=artifact_name(CASE, 11) + "-retry")
    assert pairs(described([job(1, NAME)], [again, first])) == [("12", "1")]


@pytest.mark.parametrize("case", ["logs-tiny", "tiny-logs-x", "Tiny_EP8"])
def test_case_names_are_compared_whole_and_by_case(case: str) -> None:
    jobs = [job(1, f"moe/{case} - latest"), job(2, "moe/tiny - latest"), job(3, NAME)]
    assert pairs(described(jobs, [artifact(11, case, "10:29")])) == [("11", "1")]


def test_two_models_with_one_test_case_are_told_apart_by_time() -> None:
    jobs = [job(1, "moe/tiny - latest", "10:00", "10:10"), job(2, "gpt/tiny - latest", "10:20", "10:30")]
    found = described(jobs, [artifact(11, "tiny", "10:29"), artifact(12, "tiny", "10:09")])
    assert pairs(found) == [("12", "1"), ("11", "2")]


def test_two_models_at_the_same_time_are_never_guessed() -> None:
    jobs = [job(1, "moe/tiny - latest"), job(2, "gpt/tiny - latest")]
    found = described(jobs, [artifact(11, "tiny", "10:29")])
    assert pairs(found) == []
    [problem] = found.problems
    assert problem.kind == "unplaced"
    assert problem.message == "could be of any of moe/tiny - latest (attempt 1), gpt/tiny - latest (attempt 1)"


def test_surer_evidence_than_time_is_taken_where_there_is_some() -> None:
    jobs = [job(1, "moe/tiny - latest"), job(2, "gpt/tiny - latest")]
    found = described(jobs, [artifact(11, "tiny", "10:29")], tell=lambda _, fitting: fitting[1])
    assert pairs(found) == [("11", "2")]


def test_an_artifact_outside_every_attempt_is_named() -> None:
    jobs = [job(1, NAME), job(2, NAME, "11:00", "11:30", run_attempt=2)]
    found = described(jobs, [artifact(11, CASE, "10:45")])
    assert pairs(found) == []
    assert [p.kind for p in found.problems] == ["unplaced"]


def test_clocks_may_differ_by_some_seconds() -> None:
    jobs = [job(1, NAME), job(2, NAME, "11:00", "11:30", run_attempt=2)]
    assert pairs(described(jobs, [artifact(11, CASE, "11:30:03")])) == [("11", "2")]


def test_one_job_of_a_run_can_be_asked_for() -> None:
    jobs = [job(1, NAME, "10:00", "10:10"), job(2, NAME, "10:20", "10:30"), job(3, "moe/tiny - latest")]
    artifacts = [artifact(11, CASE, "10:09"), artifact(12, CASE, "10:29"), artifact(13, "tiny", "10:29")]
    found = described(jobs, artifacts, job_id="2")
    assert (pairs(found), [j.id for j in found.jobs]) == ([("12", "2")], ["2"])


def test_a_job_that_does_not_exist_is_an_error() -> None:
    with pytest.raises(NotFoundError, match="no job 9"):
        described([job(1, NAME)], [], job_id="9")


def test_jobs_not_done_yet_are_named() -> None:
    said = run(status="in_progress", conclusion=None)
    found = describe("github:1", said, [job(1, NAME, end=None), job(2, "moe/tiny - latest")], [])
    assert found.conclusion is Conclusion.RUNNING
    assert [j.conclusion for j in found.jobs] == [Conclusion.RUNNING, Conclusion.SUCCESS]
    [problem] = found.problems
    assert (problem.kind, problem.message) == ("running", "the run is still in progress; not done yet: moe/tiny_ep8 - latest")


@pytest.mark.parametrize(
    ("said", "meant"),
    [("success", Conclusion.SUCCESS), ("timed_out", Conclusion.TIMED_OUT), ("startup_failure", Conclusion.FAILURE),
     ("neutral", Conclusion.UNKNOWN), (None, Conclusion.UNKNOWN), ("cancelled", Conclusion.CANCELLED)],
)  # fmt: skip
def test_conclusions_have_one_vocabulary(said: str | None, meant: Conclusion) -> None:
    assert [j.conclusion for j in described([job(1, NAME, conclusion=said)], []).jobs] == [meant]


@pytest.mark.parametrize(
    "broken", [{"id": 1}, {"id": 1, "name": None}, {"name": NAME, "id": 1, "started_at": "yesterday"}, {"name": NAME}]
)
def test_a_description_of_another_form_is_corrupt(broken: dict[str, Any]) -> None:
    with pytest.raises(CorruptError, match="not of the form of GitHub's API"):
        describe("x", run(), [broken], [])
