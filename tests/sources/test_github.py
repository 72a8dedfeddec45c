"""A GitHub run gives the golden files of its newest attempts, and names all that it cannot give."""

from __future__ import annotations

import gc
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import requests

from goldenctl.config import CiSettings, Settings
from goldenctl.errors import (
    AuthError,
    CorruptError,
    GoldenctlError,
    NotFoundError,
    RateLimitError,
    SourceError,
    UsageError,
)
from goldenctl.model import Conclusion
from goldenctl.sources import provider_of
from goldenctl.sources.github import parse
from tests.conftest import ScratchRepo
from tests.doubles.github import GithubDouble, primary_limit, secondary_limit
from tests.doubles.openapi import validate
from tests.doubles.server import Reply, cut, page, ranged, reset, short, status
from tests.sources.conftest import TOKEN, Taken
from tests.sources.runs import RUN, SHA, artifact, artifact_name, job, record, run
from tests.sources.zips import GB200, GOLDEN, H100, with_link, zipped

Take = Callable[..., Taken]
REF = f"github:{RUN}"
NAME = "moe/tiny - latest"
LOGS = os.urandom(400_000)


def one(double: GithubDouble, raw: bytes | None = None, **more: Any) -> None:
    """A run of one job with one artifact, large enough that it is read by ranges."""
    raw = zipped({H100: GOLDEN, "logs/0": LOGS}) if raw is None else raw
    double.add(run(), [job(1, NAME)], [artifact(11, "tiny", "10:29", **more)], {11: raw})


def many(double: GithubDouble, count: int) -> None:
    """A run of some jobs ``moe/case_N`` with one artifact each."""
    jobs = [job(i, f"moe/case_{i} - latest") for i in range(1, count + 1)]
    artifacts = [artifact(1000 + i, f"case_{i}", "10:29") for i in range(1, count + 1)]
    double.add(run(), jobs, artifacts, {1000 + i: zipped({H100: b"%d" % i}) for i in range(1, count + 1)})


# The double itself.


def test_the_double_answers_in_the_form_of_githubs_openapi_description(github: GithubDouble) -> None:
    one(github)
    github.runs[RUN] = run(status="in_progress", conclusion=None)
    base = f"{github.url}/repos/o/r/actions/runs/{RUN}"
    for name, url in (("run", base), ("jobs", f"{base}/jobs?filter=all"), ("artifacts", f"{base}/artifacts")):
        validate(name, requests.get(url, timeout=5).json())
    validate("error", requests.get(f"{github.url}/repos/o/r/actions/runs/1", timeout=5).json())


def test_the_double_serves_a_recorded_run_from_a_shell(take: Take, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    raw = {11: zipped({H100: GOLDEN})}
    folder = record(tmp_path / "run", run(), [job(1, NAME)], [artifact(11, "tiny", "10:29")], raw)
    command = [sys.executable, "-m", "tests.doubles.github", "--run", str(folder), "--port-file", str(tmp_path / "port")]
    process = subprocess.Popen(command, cwd=Path(__file__).parents[2])
    try:
        end = time.monotonic() + 20
        while not (tmp_path / "port").exists() and time.monotonic() < end:
            process.poll()
        monkeypatch.setenv("GITHUB_API_URL", f"http://127.0.0.1:{(tmp_path / 'port').read_text().strip()}")
        assert take(REF).contents == {f"1:{H100}": GOLDEN}
    finally:
        process.kill()
        process.wait()


# References.


@pytest.mark.parametrize(
    ("ref", "attempt", "number"),
    [
        (f"https://github.com/o/r/actions/runs/{RUN}", None, ""),
        (f"https://github.com/o/r/actions/runs/{RUN}/attempts/2", 2, ""),
        (f"https://github.com/o/r/actions/runs/{RUN}/job/55", None, "55"),
        (f"https://github.com/o/r/actions/runs/{RUN}/attempts/2/job/55?pr=7#step:3:1", 2, "55"),
        (f"github:{RUN}", None, ""),
        (str(RUN), None, ""),
    ],
)
def test_a_reference_names_run_attempt_and_job(ref: str, attempt: int | None, number: str, tmp_path: Path) -> None:
    found = parse(ref, Settings(tmp_path, ci=CiSettings(repository="o/r")))
    assert (found.run, found.repository, found.attempt, found.job) == (str(RUN), "o/r", attempt, number)
    assert found.api_url == "https://api.github.com"


@pytest.mark.parametrize("ref", ["github:", "github:abc", f"https://github.com/o/actions/runs/{RUN}", "github:12/attempts/x"])
def test_a_reference_of_another_form_is_an_error(ref: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is no reference of a GitHub run"):
        parse(ref, Settings(tmp_path))


@pytest.mark.parametrize(
    "url",
    ["git@github.com:own/er.git", "https://user:pw@github.com/own/er", "ssh://git@ghe.corp:22/own/er.git", "https://g/own/er/"],
)
def test_the_origin_remote_says_the_repository(url: str, make_repo: Callable[..., ScratchRepo]) -> None:
    repo = make_repo("repo", {"a": b""})
    repo.git("remote", "add", "origin", url)
    assert parse("12", Settings(repo.top)).repository == "own/er"


@pytest.mark.parametrize(("host", "provider"), [("github.com", "github"), ("gitlab.corp", "gitlab")])
def test_the_origin_remote_says_the_provider_of_a_bare_number(
    host: str, provider: str, make_repo: Callable[..., ScratchRepo], monkeypatch: pytest.MonkeyPatch
) -> None:
    repo = make_repo("repo", {"a": b""})
    repo.git("remote", "add", "origin", f"git@{host}:own/er.git")
    assert provider_of("12", Settings(repo.top)) == provider
    monkeypatch.setenv("GITLAB_CI", "true")
    assert provider_of("12", Settings(repo.top)) == "gitlab"
    assert provider_of("12", Settings(repo.top, ci=CiSettings(provider="github"))) == "github"


def test_without_any_word_on_the_repository_it_is_asked_for(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="nothing says which repository"):
        parse("12", Settings(tmp_path))


def test_a_host_nobody_configured_never_gets_the_token_of_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_TOKEN", TOKEN)
    found = parse(f"https://evil.example/o/r/actions/runs/{RUN}", Settings(tmp_path))
    assert (found.api_url, found.token) == ("https://evil.example/api/v3", "")
    monkeypatch.setenv("GH_ENTERPRISE_TOKEN", "own")
    assert parse(f"https://ghe.corp/o/r/actions/runs/{RUN}", Settings(tmp_path)).token == "own"


def test_user_and_token_of_a_url_are_not_shown(tmp_path: Path) -> None:
    found = parse(f"https://x:{TOKEN}@github.com/o/r/actions/runs/{RUN}?token={TOKEN}", Settings(tmp_path))
    assert TOKEN not in found.shown


# What the former download script got wrong, one test each.


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


# Tokens.


def test_the_storage_never_sees_the_token_and_nothing_shows_it(github: GithubDouble, take: Take, capfd: Any) -> None:
    many(github, 5)
    github.zips[1001] = b"broken"
    github.blob.fault("zip/1002", status(404))
    taken = take(REF)
    assert github.blob.requests
    assert all(TOKEN not in str(r.headers) for r in github.blob.requests)
    assert all(r.token == TOKEN for r in github.api.requests)
    said = repr(taken) + "".join(capfd.readouterr())
    assert TOKEN not in said
    assert "sig=" not in said


def test_a_redirect_that_stays_at_the_api_keeps_the_token_and_one_that_leaves_does_not(
    github: GithubDouble, take: Take
) -> None:
    one(github)
    github.renamed_from = "old/name"
    taken = take(f"https://github.com/old/name/actions/runs/{RUN}")
    assert taken.contents == {f"1:{H100}": GOLDEN}
    assert taken.run.repository == "o/r"
    assert [r.query.get("filter") for r in github.api.seen("/jobs$")] == ["all"]


def test_artifacts_stored_at_the_api_itself_are_taken_there(github: GithubDouble, take: Take) -> None:
    one(github)
    github.api.fault("/zip$", lambda request, _: ranged(github.zips[11], request.headers.get("Range")))
    assert take(REF).contents == {f"1:{H100}": GOLDEN}
    assert github.blob.requests == []


def test_a_signed_link_whose_life_is_over_is_asked_for_again(github: GithubDouble, take: Take) -> None:
    one(github)
    github.blob.fault("zip/11", status(403), times=1)
    assert take(REF).contents == {f"1:{H100}": GOLDEN}
    assert len(github.api.seen("/zip$")) == 2


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


# Runs in progress, and answers kept.


def test_a_run_in_progress_gives_what_is_done_and_names_the_rest(github: GithubDouble, take: Take) -> None:
    jobs = [job(1, NAME), job(2, "moe/slow - latest", end=None)]
    said = run(status="in_progress", conclusion=None)
    github.add(said, jobs, [artifact(11, "tiny", "10:29")], {11: zipped({H100: GOLDEN})})
    taken = take(REF)
    assert taken.contents == {f"1:{H100}": GOLDEN}
    [problem] = taken.problems
    assert problem.kind == "running"
    assert "not done yet: moe/slow - latest" in problem.message
    assert "--wait" in problem.hint


def test_a_run_is_waited_for_when_asked(github: GithubDouble, take: Take, monkeypatch: pytest.MonkeyPatch) -> None:
    github.add(run(status="in_progress", conclusion=None), [job(1, NAME, end=None)], [], {})

    def finish(_seconds: float) -> None:
        github.add(run(), [job(1, NAME)], [artifact(11, "tiny", "10:29")], {11: zipped({H100: GOLDEN})})

    monkeypatch.setattr("time.sleep", finish)
    taken = take(REF, wait=True)
    assert (taken.contents, taken.problems) == ({f"1:{H100}": GOLDEN}, [])


def test_one_job_of_a_run_can_be_taken(github: GithubDouble, take: Take) -> None:
    many(github, 3)
    assert take(f"https://github.com/o/r/actions/runs/{RUN}/job/2").contents == {f"2:{H100}": b"2"}


def test_answers_kept_by_their_etags_are_not_sent_again_and_hold_no_token(
    github: GithubDouble, take: Take, tmp_path: Path
) -> None:
    one(github)
    first = take(REF, cache=tmp_path / "cache")
    sent = github.api.bytes_sent
    second = take(REF, cache=tmp_path / "cache")
    assert second.contents == first.contents
    assert github.api.bytes_sent == sent, "every answer of the second time is a 304 or a link"
    files = [p for p in (tmp_path / "cache").rglob("*") if p.is_file()]
    assert files
    assert all(TOKEN.encode() not in p.read_bytes() for p in files)
    github.runs[RUN]["conclusion"] = "failure"
    assert take(REF, cache=tmp_path / "cache").run.conclusion is Conclusion.FAILURE


def test_a_cache_that_cannot_be_used_only_costs_time(github: GithubDouble, take: Take, tmp_path: Path) -> None:
    one(github)
    (tmp_path / "file").write_bytes(b"")
    assert take(REF, cache=tmp_path / "file").contents == {f"1:{H100}": GOLDEN}
    take(REF, cache=tmp_path / "cache")
    for path in (p for p in (tmp_path / "cache").rglob("*") if p.is_file()):
        path.write_bytes(b"cc=4,\x81\xa1a\x01")
    assert take(REF, cache=tmp_path / "cache").contents == {f"1:{H100}": GOLDEN}


def test_answers_kept_for_one_token_are_not_given_to_another(
    github: GithubDouble, take: Take, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one(github)
    take(REF, cache=tmp_path / "cache")
    monkeypatch.setenv("GITHUB_TOKEN", "another")
    with pytest.raises(AuthError, match="refuses the token"):
        take(REF, cache=tmp_path / "cache")
