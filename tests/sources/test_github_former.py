"""What the former download script for GitHub got wrong, one test each."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from goldenctl.errors import (
    NotFoundError,
)
from goldenctl.model import Conclusion
from tests.doubles.github import GithubDouble
from tests.doubles.server import cut, short, status
from tests.sources.conftest import Taken
from tests.sources.jobs import NAME, REF, many, one
from tests.sources.runs import RUN, SHA, artifact, artifact_name, job, run
from tests.sources.zips import GB200, GOLDEN, H100, with_link, zipped

Take = Callable[..., Taken]


def test_g1_a_case_in_two_legs_keeps_both_and_each_its_own_conclusion(github: GithubDouble, take: Take) -> None:
    jobs = [job(1, NAME, "10:00", "10:20", conclusion="failure"), job(2, NAME, "10:30", "10:50")]
    artifacts = [artifact(12, "tiny", "10:49"), artifact(11, "tiny", "10:19")]
    github.add(run(), jobs, artifacts, {11: zipped({H100: b"h"}), 12: zipped({GB200: b"g"})})
    taken = take(REF)
    assert taken.contents == {f"1:{H100}": b"h", f"2:{GB200}": b"g"}
    ended = {f.artifact.id: f.artifact.job.conclusion for f in taken.fetched if f.artifact.job}
    assert ended == {"11": Conclusion.FAILURE, "12": Conclusion.SUCCESS}


def test_g1_two_models_with_one_test_case_keep_their_own(github: GithubDouble, take: Take) -> None:
    jobs = [job(1, "moe/tiny - latest", "10:00", "10:20"), job(2, "gpt/tiny - latest", "10:30", "10:50")]
    artifacts = [artifact(12, "tiny", "10:49"), artifact(11, "tiny", "10:19")]
    github.add(run(), jobs, artifacts, {11: zipped({H100: b"moe"}), 12: zipped({H100: b"gpt"})})
    assert take(REF).contents == {f"1:{H100}": b"moe", f"2:{H100}": b"gpt"}


def test_g1_the_log_of_a_job_tells_what_times_cannot(github: GithubDouble, take: Take) -> None:
    jobs = [job(1, "moe/tiny - latest"), job(2, "gpt/tiny - latest")]
    artifacts = [artifact(11, "tiny", "10:29"), artifact(12, "tiny", "10:29")]
    github.add(run(), jobs, artifacts, {11: zipped({H100: b"gpt"}), 12: zipped({H100: b"moe"})})
    github.logs = {1: b"2026 Finalizing\n2026 Artifact ID is 12\n", 2: b"Artifact ID is 11\n"}
    assert take(REF).contents == {f"1:{H100}": b"moe", f"2:{H100}": b"gpt"}


def test_g2_jobs_are_told_by_their_display_name_not_by_labels(github: GithubDouble, take: Take) -> None:
    jobs = [
        job(1, NAME, labels=["self-hosted", "nvidia-aws-h100"]),
        job(2, "tests/unit_tests/dist/**/*.py - latest"),
        job(3, "Nemo_CICD_Test"),
    ]
    artifacts = [
        artifact(11, "tiny", "10:29"),
        artifact(12, "tests-unit_tests-dist-----.py", "10:29"),
        artifact(13, "", "10:29", name=f"coverage-unit-test-{RUN}-{artifact_name('', 1)[-36:]}"),
    ]
    github.add(run(), jobs, artifacts, {n: zipped({H100: GOLDEN}) for n in (11, 12, 13)})
    assert [a.id for a in take(REF).run.artifacts] == ["11"]
    assert github.api.seen("/12/|/13/") == []


def test_g3_the_newest_attempt_wins_in_any_order_of_the_list(github: GithubDouble, take: Take) -> None:
    jobs = [job(1, NAME, conclusion="failure"), job(2, NAME, "11:00", "11:30", run_attempt=2)]
    artifacts = [artifact(12, "tiny", "11:29"), artifact(11, "tiny", "10:29")]
    zips = {11: zipped({H100: b"old"}), 12: zipped({H100: b"new"})}
    for listed in (artifacts, artifacts[::-1]):
        github.add(run(run_attempt=2), jobs, listed, zips)
        assert take(REF).contents == {f"2:{H100}": b"new"}


def test_g3_a_retried_upload_replaces_the_first(github: GithubDouble, take: Take) -> None:
    again = artifact(12, "tiny", "10:29", name=artifact_name("tiny", 11) + "-retry")
    zips = {11: zipped({H100: b"cut"}), 12: zipped({H100: b"whole"})}
    github.add(run(), [job(1, NAME)], [again, artifact(11, "tiny", "10:28")], zips)
    assert take(REF).contents == {f"1:{H100}": b"whole"}


@pytest.mark.parametrize(("attempt", "content"), [(1, b"old"), (2, b"new"), (None, b"new")])
def test_g4_an_attempt_can_be_asked_for(github: GithubDouble, take: Take, attempt: int | None, content: bytes) -> None:
    jobs = [job(1, NAME, conclusion="failure"), job(2, NAME, "11:00", "11:30", run_attempt=2)]
    artifacts = [artifact(12, "tiny", "11:29"), artifact(11, "tiny", "10:29")]
    attempts = {"1": {"conclusion": "failure"}}
    zips = {11: zipped({H100: b"old"}), 12: zipped({H100: b"new"})}
    github.add(run(run_attempt=2, attempts=attempts), jobs, artifacts, zips)
    taken = take(REF, attempt=attempt)
    assert list(taken.contents.values()) == [content]
    assert taken.run.attempt == (attempt or 2)
    assert taken.run.conclusion is (Conclusion.FAILURE if attempt == 1 else Conclusion.SUCCESS)
    if attempt:
        by_url = take(f"https://github.com/o/r/actions/runs/{RUN}/attempts/{attempt}")
        assert by_url.contents == taken.contents


def test_g4_a_failed_newest_attempt_never_takes_the_artifact_of_an_older_one(github: GithubDouble, take: Take) -> None:
    jobs = [job(1, NAME), job(2, NAME, "11:00", "11:30", run_attempt=2, conclusion="failure")]
    github.add(run(run_attempt=2), jobs, [artifact(11, "tiny", "10:29")], {11: zipped({H100: b"old"})})
    assert take(REF).contents == {}


@pytest.mark.parametrize(
    ("said", "meant"),
    [("cancelled", Conclusion.CANCELLED), ("timed_out", Conclusion.TIMED_OUT), ("failure", Conclusion.FAILURE),
     ("skipped", Conclusion.SKIPPED)],
)  # fmt: skip
def test_g5_how_a_job_ended_is_kept_apart(github: GithubDouble, take: Take, said: str, meant: Conclusion) -> None:
    github.add(run(), [job(1, NAME, conclusion=said)], [artifact(11, "tiny", "10:29")], {11: zipped({H100: GOLDEN})})
    [fetched] = take(REF).fetched
    assert fetched.artifact.job is not None
    assert fetched.artifact.job.conclusion is meant
    assert meant.cut_short == (said in ("cancelled", "timed_out"))


def test_g6_every_artifact_that_fails_is_a_problem_and_none_stops_the_others(github: GithubDouble, take: Take) -> None:
    many(github, 6)
    github.artifacts[RUN][0]["expired"] = True
    del github.zips[1002]
    github.zips[1003] = b"no zip at all"
    github.blob.fault("zip/1004", status(404))
    github.api.fault("artifacts/1005/zip", status(500))
    taken = take(REF)
    assert taken.contents == {f"6:{H100}": b"6"}
    kinds = {p.subject.split("-")[1]: p.kind for p in taken.problems}
    assert kinds == {"case_1": "expired", "case_2": "expired", "case_3": "corrupt", "case_4": "missing", "case_5": "network"}


def test_g7_only_the_golden_members_are_transferred(github: GithubDouble, take: Take) -> None:
    one(github, zipped({H100: GOLDEN, "logs/0": os.urandom(5_000_000)}))
    taken = take(REF)
    assert taken.contents == {f"1:{H100}": GOLDEN}
    assert taken.fetched[0].bytes_transferred == github.blob.bytes_sent < 80_000


def test_g7_without_ranges_the_whole_file_gives_the_same(github: GithubDouble, take: Take) -> None:
    one(github)
    by_ranges = take(REF)
    github.honours_ranges = False
    github.blob.requests.clear()
    whole = take(REF)
    assert whole.contents == by_ranges.contents
    assert len(github.blob.requests) == 1, "the answer to the first range is the file"
    assert whole.fetched[0].bytes_transferred > 400_000


def test_g7_all_pages_are_read(github: GithubDouble, take: Take) -> None:
    many(github, 23)
    github.page_size = 10
    taken = take(REF)
    assert len(taken.run.jobs) == len(taken.run.artifacts) == len(taken.contents) == 23
    assert len(github.api.seen("/jobs$")) == 3


def test_g7_downloads_run_side_by_side_and_report_how_far_they_are(take: Take, monkeypatch: pytest.MonkeyPatch) -> None:
    double = GithubDouble(latency=0.02)
    monkeypatch.setenv("GITHUB_API_URL", double.url)
    many(double, 40)
    seen: list[tuple[int, int, int]] = []
    start = time.monotonic()
    taken = take(REF, workers=20, on_progress=lambda *state: seen.append(state))
    assert time.monotonic() - start < 40 * 2 * 0.02
    assert [s[:2] for s in seen] == [(i, 40) for i in range(1, 41)]
    assert seen[-1][2] == sum(f.bytes_transferred for f in taken.fetched)
    double.close()


def test_g8_nothing_is_written_into_the_work_tree(
    github: GithubDouble, take: Take, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "tmp").mkdir()
    (tmp_path / "tmp/mine").write_text("mine")
    monkeypatch.chdir(tmp_path)
    one(github)
    github.honours_ranges = False
    take(REF)
    assert sorted(p.name for p in tmp_path.rglob("*")) == ["mine", "tmp"]


def test_g9_members_and_job_names_that_lead_out_are_refused(github: GithubDouble, take: Take) -> None:
    jobs = [job(1, NAME), job(2, "../../x/y - latest"), job(3, "gpt/linked - latest")]
    artifacts = [artifact(11, "tiny", "10:29"), artifact(12, "y", "10:29"), artifact(13, "linked", "10:29")]
    raw = zipped({f"../../{H100}": b"evil", f"/abs/{H100}": b"evil", H100: GOLDEN})
    github.add(run(), jobs, artifacts, {11: raw, 12: zipped({H100: b"evil"}), 13: with_link(H100, "/etc/passwd")})
    taken = take(REF)
    assert taken.contents == {f"1:{H100}": GOLDEN, f":{H100}": b"evil"}
    assert [j.test_case for j in taken.run.jobs] == ["tiny", "", "linked"], "such a name is no case"
    assert sorted(p.message for p in taken.problems) == [
        f"../../{H100}: its name leads out of the artifact",
        f"/abs/{H100}: its name leads out of the artifact",
        f"{H100}: is a link",
    ]


@pytest.mark.parametrize("case", ["logs-tiny", "tiny-logs-deep", "TINY", f"tiny-{RUN}"])
def test_g10_case_names_are_compared_whole_and_by_case(github: GithubDouble, take: Take, case: str) -> None:
    jobs = [job(1, NAME), job(2, f"moe/{case} - latest")]
    github.add(run(), jobs, [artifact(12, case, "10:29")], {12: zipped({H100: GOLDEN})})
    assert take(REF).contents == {f"2:{H100}": GOLDEN}


def test_g11_goldens_in_folders_are_found(github: GithubDouble, take: Take) -> None:
    one(github, zipped({f"assets/{H100}": GOLDEN, f"assets/{H100[:-5]}_2nd.json": b"{}"}))
    assert sorted(take(REF).contents) == [f"1:assets/{H100}", f"1:assets/{H100[:-5]}_2nd.json"]


def test_g12_the_bytes_are_given_as_they_are_for_others_to_judge(github: GithubDouble, take: Take) -> None:
    one(github, zipped({H100: b'{"lm loss": NaN}\r\n', GB200: b""}))
    assert take(REF).contents == {f"1:{H100}": b'{"lm loss": NaN}\r\n', f"1:{GB200}": b""}


def test_g13_every_job_is_listed_whether_it_delivered_or_not(github: GithubDouble, take: Take) -> None:
    jobs = [job(1, NAME), job(2, "moe/silent - latest", conclusion="skipped")]
    github.add(run(), jobs, [artifact(11, "tiny", "10:29")], {11: zipped({H100: GOLDEN})})
    assert [(j.test_case, j.conclusion.value) for j in take(REF).run.jobs] == [("tiny", "success"), ("silent", "skipped")]


def test_g14_provenance_is_complete(github: GithubDouble, take: Take) -> None:
    one(github)
    taken = take(REF)
    [fetched] = taken.fetched
    assert (taken.run.provider, taken.run.id, taken.run.repository) == ("github", str(RUN), "o/r")
    assert taken.run.url == f"https://github.com/o/r/actions/runs/{RUN}"
    assert fetched.artifact.job is not None
    assert fetched.artifact.job.url == f"https://github.com/o/r/actions/runs/{RUN}/job/1"
    assert f"sha256:{fetched.artifact.sha256}" == github.artifacts[RUN][0]["digest"]


def test_g15_commit_and_branch_of_the_run_are_known(github: GithubDouble, take: Take) -> None:
    one(github)
    assert (take(REF).run.commit, take(REF).run.branch) == (SHA, "pull-request/7")


@pytest.mark.parametrize("ranges", [True, False])
def test_g16_a_wrong_digest_is_corrupt(github: GithubDouble, take: Take, ranges: bool) -> None:
    one(github, zipped({H100: GOLDEN}))
    github.honours_ranges = ranges
    github.artifacts[RUN][0]["digest"] = "sha256:" + "0" * 64
    taken = take(REF)
    assert taken.contents == {}
    assert taken.kinds == ["corrupt"]
    assert f"{'0' * 64} was promised" in taken.problems[0].message


@pytest.mark.parametrize("ranges", [True, False])
@pytest.mark.parametrize("fault", [cut(50_000), short(50_000)])
def test_g16_a_truncated_body_is_fetched_again(github: GithubDouble, take: Take, fault: Any, ranges: bool) -> None:
    one(github)
    github.honours_ranges = ranges
    github.blob.fault("zip/11", fault, times=2)
    taken = take(REF)
    assert (taken.contents, taken.problems) == ({f"1:{H100}": GOLDEN}, [])


@pytest.mark.parametrize("fault", [cut(50_000), short(50_000)])
def test_g16_a_body_that_is_always_truncated_is_said(github: GithubDouble, take: Take, fault: Any) -> None:
    one(github)
    github.blob.fault("zip/11", fault)
    taken = take(REF)
    assert taken.kinds == ["corrupt"]
    assert "cut short" in taken.problems[0].message


def connections(github: GithubDouble) -> int:
    """Connections of clients to the double that are still open."""
    ports = {urlsplit(service.url).port for service in (github.api, github.blob)}
    rows = [line.split() for line in Path("/proc/self/net/tcp").read_text().splitlines()[1:]]
    return sum(int(row[2].rpartition(":")[2], 16) in ports and row[3] in ("01", "08") for row in rows)


def test_g17_no_file_and_no_connection_is_left_open(github: GithubDouble, take: Take) -> None:
    many(github, 12)
    github.honours_ranges = False
    take(REF)
    for _ in range(3):
        take(REF)
    gc.collect()
    assert connections(github) == 0


def test_g18_the_settings_beat_the_environment_and_the_url_beats_both(
    github: GithubDouble, take: Take, monkeypatch: pytest.MonkeyPatch
) -> None:
    one(github)
    monkeypatch.setenv("GITHUB_REPOSITORY", "fork/elsewhere")
    assert take(REF, repository="o/r").run.repository == "o/r"
    assert take(f"https://github.com/o/r/actions/runs/{RUN}", repository="x/y").run.repository == "o/r"
    with pytest.raises(NotFoundError, match="of fork/elsewhere is not found, or there is no access"):
        take(REF, repository="")


def test_g18_github_enterprise_is_reached_by_its_api_url(
    github: GithubDouble, take: Take, monkeypatch: pytest.MonkeyPatch
) -> None:
    one(github)
    monkeypatch.setenv("GITHUB_API_URL", f"{github.url}/api/v3")
    assert take(REF).contents == {f"1:{H100}": GOLDEN}
    assert all(r.path.startswith("/api/v3/repos/o/r/") for r in github.api.requests)


def test_g19_no_gitlab_client_is_loaded_for_github() -> None:
    code = "import sys, goldenctl.sources.github; sys.exit('gitlab' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": "src"}, check=False).returncode == 0


def test_g20_names_of_reusable_workflows_are_understood(github: GithubDouble, take: Take) -> None:
    github.add(run(), [job(1, f"CICD / legs / {NAME}")], [artifact(11, "tiny", "10:29")], {11: zipped({H100: GOLDEN})})
    assert take(REF).contents == {f"1:{H100}": GOLDEN}
