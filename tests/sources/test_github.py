"""A GitHub run gives the golden files of its newest attempts, and names all that it cannot give."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import requests

from goldenctl.config import CiSettings, Settings
from goldenctl.errors import (
    AuthError,
    UsageError,
)
from goldenctl.model import Conclusion
from goldenctl.sources import provider_of
from goldenctl.sources.github import parse
from tests.conftest import ScratchRepo
from tests.doubles.github import GithubDouble
from tests.doubles.openapi import validate
from tests.doubles.server import ranged, status
from tests.sources.conftest import TOKEN, Taken
from tests.sources.jobs import NAME, REF, many, one
from tests.sources.runs import RUN, artifact, job, record, run
from tests.sources.zips import GOLDEN, H100, zipped

Take = Callable[..., Taken]


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
