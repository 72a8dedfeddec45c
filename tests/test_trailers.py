"""Provenance survives in commit messages."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goldenctl import trailers
from goldenctl.errors import RepoError
from goldenctl.git import Repo
from goldenctl.model import Action, FileResult, GoldenKey, Match, MatchLevel, RefreshResult, Run
from goldenctl.trailers import ArtifactTrailer, MatchTrailer, RunTrailer

from .conftest import ScratchRepo

KEY = GoldenKey("moe", "a", "dev", "dgx_h100")
RUN = Run("github:7", "github", "7", 2, url="https://github.com/o/r/actions/runs/7")
COMMIT = "1" * 40


def result(*files: FileResult, run: Run = RUN) -> RefreshResult:
    return RefreshResult("20260428T120000-abcdef", (run,), files)


def written(path: str, *matches: Match, digest: str = "ab" * 32) -> FileResult:
    return FileResult(path, KEY, Action.WRITTEN, sha256=digest, matches=matches)


def test_a_message_has_subject_platforms_and_trailers() -> None:
    files = (
        written("goldens/a.json", Match("main", MatchLevel.IDENTICAL, COMMIT)),
        FileResult("goldens/b.json", KEY, Action.REFUSED, "a finding"),
    )
    assert trailers.message(result(*files)).splitlines() == [
        "Refresh 1 golden file from github:7",
        "",
        "1 dgx_h100",
        "",
        "Golden-Run: github:7 attempt=2 https://github.com/o/r/actions/runs/7",
        f"Golden-Artifact: goldens/a.json sha256:{'ab' * 32}",
        "Golden-Match: goldens/a.json main identical",
        f"Golden-Rev: main {COMMIT}",
    ]


def test_a_path_with_a_blank_is_quoted_as_git_quotes_it() -> None:
    text = trailers.message(result(written('goldens/a "b"\n\udcff.json')))
    assert f'Golden-Artifact: "goldens/a \\"b\\"\\n\\377.json" sha256:{"ab" * 32}\n' in text


ODD = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1) | st.binary(min_size=1).map(
    lambda b: b.replace(b"\0", b"x").decode("utf-8", "surrogateescape")
)


@given(ODD, ODD, st.sampled_from(MatchLevel), st.integers(1, 9))
def test_what_a_message_says_is_read_back(path: str, rev: str, level: MatchLevel, attempt: int) -> None:
    run = dataclasses.replace(RUN, attempt=attempt, id="7 of 9", provider="tree")
    found = trailers.parse(trailers.message(result(written(path, Match(rev, level, COMMIT)), run=run)))
    assert found.artifacts == (ArtifactTrailer(path, "ab" * 32),)
    assert found.matches == (MatchTrailer(path, rev, level, COMMIT),)
    assert found.runs == (RunTrailer("tree", "7 of 9", attempt, RUN.url),)


@given(st.text())
def test_any_message_can_be_read(text: str) -> None:
    for name in ("Run", "Artifact", "Match", "Rev"):
        trailers.parse(f"subject\n\nGolden-{name}: {text}\nGolden-{name}: x {text}\n{text}")


def test_lines_in_the_middle_of_a_squash_count() -> None:
    lines = ("* first", "Golden-Run: gitlab:5\r", "* second", f"Golden-Artifact: a.json sha256:{'c' * 64}", "Signed-off-by: A")
    text = "\n\n".join(("Sync (#1)", *lines))
    found = trailers.parse(text)
    assert found.runs == (RunTrailer("gitlab", "5"),)
    assert found.artifacts == (ArtifactTrailer("a.json", "c" * 64),)


@pytest.fixture
def repo(make_repo: Callable[..., ScratchRepo]) -> ScratchRepo:
    return make_repo("repo", {"goldens/a.json": "old", "other.txt": "old", "half.txt": "old"})


def test_a_commit_holds_the_written_files_and_leaves_the_index_alone(repo: ScratchRepo) -> None:
    repo.write({"other.txt": "staged", "half.txt": "staged"})
    repo.git("add", "other.txt", "half.txt")
    repo.write({"half.txt": "not staged", "goldens/a.json": "new", "goldens/[x] y.json": "first", "goldens/x.json": "not ours"})
    made = trailers.commit(Repo(repo.top), result(written("goldens/a.json"), written("goldens/[x] y.json")))
    assert repo.git("rev-parse", "HEAD") == made
    assert repo.git("show", "--format=", "--name-status", made).splitlines() == ["A\tgoldens/[x] y.json", "M\tgoldens/a.json"]
    status = repo.git("status", "--porcelain=v1").splitlines()
    assert status == ["MM half.txt", "M  other.txt", "?? goldens/x.json"]
    assert trailers.parse(repo.git("log", "-1", "--format=%B")).artifacts[1].path == "goldens/[x] y.json"


def test_a_refused_commit_leaves_files_written_and_nothing_staged(repo: ScratchRepo) -> None:
    hook = repo.top / ".git/hooks/pre-commit"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\necho no; exit 1\n")
    hook.chmod(0o755)
    head = repo.git("rev-parse", "HEAD")
    repo.write({"goldens/a.json": "new", "goldens/b.json": "first"})
    with pytest.raises(RepoError, match="written, but not committed"):
        trailers.commit(Repo(repo.top), result(written("goldens/a.json"), written("goldens/b.json")))
    assert repo.git("rev-parse", "HEAD") == head
    assert repo.git("status", "--porcelain=v1").splitlines() == ["M goldens/a.json", "?? goldens/b.json"]


def test_an_empty_refresh_makes_no_commit(repo: ScratchRepo, tmp_path: Path) -> None:
    with pytest.raises(RepoError, match="nothing to commit"):
        trailers.commit(Repo(repo.top), result())
