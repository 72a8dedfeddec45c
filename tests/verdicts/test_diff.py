"""Any two sides can be compared, and what is the same on both is never read."""

from __future__ import annotations

import os
import signal
import subprocess
import zipfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from goldenctl import collect, config, sides
from goldenctl.diff import Status, diff, rows
from goldenctl.errors import RepoError
from goldenctl.forked import side_by_side
from tests.conftest import ScratchRepo, golden_json
from tests.verdicts.cli import Run

MakeRepo = Callable[..., ScratchRepo]
H100 = "goldens/moe/tiny/golden_values_dev_dgx_h100.json"
GB200 = "goldens/moe/tiny/golden_values_dev_dgx_gb200.json"
GPT = "goldens/gpt/small/golden_values_dev_dgx_h100.json"
LANDING = "e2d9e480297189473e36aa900c025c1c5403a7d0"


@pytest.fixture
def repo(make_repo: MakeRepo) -> ScratchRepo:
    """Three goldens; the second commit changes one of them by 10 %."""
    one = golden_json(4, **{"lm loss": {1: 10.0}, "num-zeros": {1: 5.0}})
    made = make_repo("repo", {H100: one, GB200: one, GPT: golden_json(4, **{"lm loss": {1: 3.0}})})
    made.commit({H100: golden_json(4, **{"lm loss": {1: 11.0}, "num-zeros": {1: 5.0}})}, "second")
    return made


def statuses(files: Iterable[Any]) -> dict[str, str]:
    return {f["path"]: f["status"] for f in files}


def test_two_revisions_list_every_golden_with_its_status(run: Run, repo: ScratchRepo) -> None:
    got = run(repo.top, "diff", "HEAD^", "HEAD", "--format", "json").json
    assert (got["old"], got["new"]) == ("HEAD^", "HEAD")
    assert statuses(got["files"]) == {H100: "changed", GB200: "identical", GPT: "identical"}
    assert got["summary"] == {"changed": 1, "identical": 2}


def test_the_work_tree_is_compared_with_untracked_goldens(run: Run, repo: ScratchRepo) -> None:
    new = "goldens/gpt/new/golden_values_dev_dgx_h100.json"
    repo.write({new: golden_json(a={1: 1.0})})
    got = run(repo.top, "diff", "HEAD", "WORKTREE", "--format", "json").json
    assert statuses(got["files"])[new] == "added"
    assert got["summary"] == {"identical": 3, "added": 1}


def test_content_that_is_the_same_on_both_sides_is_never_read(repo: ScratchRepo) -> None:
    settings = config.load(repo.top)
    asked: list[str] = []

    def spy(side: sides.Side) -> sides.Side:
        def contents(ids: Iterable[str]) -> Iterator[tuple[str, bytes]]:
            wanted = list(ids)
            asked.extend(wanted)
            return side.contents(wanted)

        return replace(side, contents=contents)

    old, new = (collect.revision_side(rev, settings) for rev in ("HEAD^", "HEAD"))
    result = diff(spy(old), spy(new), settings)
    assert asked == [old.entries[H100], new.entries[H100]]
    assert [f.status for f in result.files] == [Status.IDENTICAL, Status.IDENTICAL, Status.CHANGED]


def test_a_content_shared_by_many_goldens_is_read_once_for_all(repo: ScratchRepo) -> None:
    same = golden_json(a={1: 1.0})
    repo.commit({H100: same, GB200: same, GPT: same})
    settings = config.load(repo.top)
    old, new = (collect.revision_side(rev, settings) for rev in ("HEAD^", "HEAD"))
    result = diff(old, new, settings)
    assert [f.metrics[-1].metric for f in result.files] == ["a", "a", "a"]


def test_two_processes_give_what_one_gives(repo: ScratchRepo, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("goldenctl.diff.WORTH_FORKING", 1)
    repo.commit({GB200: golden_json(a={1: 1.0}), GPT: b"{"})
    settings = config.load(repo.top)
    old, new = (collect.revision_side(rev, settings) for rev in ("HEAD~2", "HEAD"))
    alone, together = (diff(old, new, settings, workers=n) for n in (1, 3))
    assert alone.files == together.files
    assert [f.status for f in alone.files] == [Status.UNREADABLE, Status.CHANGED, Status.CHANGED]


def test_an_error_in_the_second_process_is_raised_in_the_first() -> None:
    def broken() -> int:
        raise RepoError("the object is missing", hint="git fsck")

    def killed() -> int:
        os.kill(os.getpid(), signal.SIGKILL)
        return 0

    with pytest.raises(RepoError, match="the object is missing"):
        side_by_side([lambda: 1, broken])
    with pytest.raises(RepoError, match="a worker process ended early"):
        side_by_side([lambda: 1, killed])
    assert side_by_side([lambda: 1, lambda: 2, lambda: 3]) == [1, 2, 3]


def test_a_single_file_is_compared_with_the_golden_it_stands_for(run: Run, repo: ScratchRepo) -> None:
    got = run(repo.top, "diff", "HEAD^", H100, "--format", "json").json
    assert statuses(got["files"]) == {H100: "changed"}


def test_a_folder_of_goldens_is_placed_by_its_last_levels(run: Run, repo: ScratchRepo, tmp_path: Path) -> None:
    place = tmp_path / "download" / "moe" / "tiny"
    place.mkdir(parents=True)
    (place / "golden_values_dev_dgx_h100.json").write_bytes(golden_json(4, **{"lm loss": {1: 12.0}, "num-zeros": {1: 5.0}}))
    got = run(repo.top, "diff", "HEAD", str(tmp_path / "download"), "--metric", "lm loss", "--format", "json").json
    assert statuses(got["files"]) == {H100: "changed", GB200: "removed", GPT: "removed"}
    assert next(f for f in got["files"] if f["path"] == H100)["metrics"][0]["max_abs_diff"] == 1.0


def test_a_run_restricts_the_comparison_to_what_it_delivered(run: Run, repo: ScratchRepo, tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "run.zip", "w") as archive:
        archive.writestr("moe/tiny/golden_values_dev_dgx_gb200.json", golden_json(4, **{"lm loss": {1: 10.5}}))
    got = run(repo.top, "diff", "HEAD", str(tmp_path / "run.zip"), "--format", "json").json
    assert statuses(got["files"]) == {GB200: "changed"}
    assert [(m["metric"], m["missing_steps"]) for m in got["files"][0]["metrics"]] == [("lm loss", 0), ("num-zeros", 1)]


def test_a_run_that_could_not_be_read_whole_ends_in_3(run: Run, repo: ScratchRepo, tmp_path: Path) -> None:
    folder = tmp_path / "artifacts"
    folder.mkdir()
    (folder / "golden_values_dev_dgx_h100.json").write_bytes(golden_json(a={1: 1.0}))
    with zipfile.ZipFile(tmp_path / "run.zip", "w") as archive:
        archive.writestr("nowhere/golden_values_dev_dgx_h100.json", b"{}")
    got = run(repo.top, "diff", "HEAD", str(tmp_path / "run.zip"), "--format", "json")
    assert got.code == 3
    assert "has no golden path" in got.err


def test_a_name_that_is_a_revision_and_a_path_must_be_made_plain(run: Run, repo: ScratchRepo) -> None:
    repo.git("branch", "goldens")
    got = run(repo.top, "diff", "goldens", "HEAD")
    assert got.code == 2
    assert "write ./goldens for the path, refs/heads/goldens for the branch" in got.err
    assert run(repo.top, "diff", "./goldens", "HEAD").code == 0
    assert run(repo.top, "diff", "refs/heads/goldens", "HEAD").code == 0


def test_cases_platforms_and_metrics_can_be_chosen(run: Run, repo: ScratchRepo) -> None:
    args = ("diff", "HEAD^", "HEAD", "--format", "json")
    assert set(statuses(run(repo.top, *args, "--case", "moe/*").json["files"])) == {H100, GB200}
    assert set(statuses(run(repo.top, *args, "--platform", "dgx_gb200").json["files"])) == {GB200}
    named = run(repo.top, *args, "--metric", "num-zeros").json["files"]
    assert [m["metric"] for f in named for m in f["metrics"]] == ["num-zeros"]
    wrong = run(repo.top, *args, "--case", "moe/tyni")
    assert (wrong.code, "did you mean 'moe/tiny'?" in wrong.err) == (2, True)
    assert "did you mean 'lm loss'?" in run(repo.top, *args, "--metric", "lm los").err


def test_losses_come_before_sizes_and_the_largest_first(make_repo: MakeRepo) -> None:
    repo = make_repo("repo", {H100: golden_json(a={1: 1.0, 2: 1.0}, b={1: 1.0}, c={1: 1.0}), GPT: b"{}"})
    repo.commit({H100: golden_json(a={1: 1.0}, b={1: 1.1}, c={1: 5.0}), GPT: b"{"})
    settings = config.load(repo.top)
    old, new = (collect.revision_side(rev, settings) for rev in ("HEAD^", "HEAD"))
    result = diff(old, new, settings)
    assert [r.metric and r.metric.metric for r in rows(result)] == [None, "a", "c", "b"]
    assert [r.metric and r.metric.metric for r in rows(result, top=2)] == [None, "a"]
    assert [r.metric and r.metric.metric for r in rows(result, sort="path")] == [None, "a", "b", "c"]


@pytest.mark.parametrize("format", ["table", "markdown"])
def test_a_person_sees_the_worst_step_with_both_values(run: Run, repo: ScratchRepo, format: str) -> None:
    got = run(repo.top, "diff", "HEAD^", "HEAD", "--format", format)
    assert (got.code, got.err) == (0, "")
    assert "10 → 11" in got.out
    assert "1 of 3 goldens differ: 1 changed" in got.out


def test_links_and_files_that_cannot_be_read_are_no_goldens(run: Run, repo: ScratchRepo, tmp_path: Path) -> None:
    (tmp_path / "outside.json").write_bytes(golden_json(a={1: 1.0}))
    link = repo.top / "goldens/gpt/small/golden_values_dev_dgx_gb200.json"
    link.symlink_to(tmp_path / "outside.json")
    got = run(repo.top, "diff", "HEAD", "WORKTREE", "--format", "json").json
    assert got["summary"] == {"identical": 3}


@pytest.mark.corpus
def test_the_two_parents_of_the_april_sync_are_compared_whole(run: Run, corpus: Path) -> None:
    got = run(corpus, "diff", f"{LANDING}^1", f"{LANDING}^2", "--format", "json")
    assert got.code == 0
    assert got.json["summary"] == {"identical": 492, "changed": 325, "added": 56}
    landed = run(corpus, "diff", f"{LANDING}^1", LANDING, "--format", "json").json["summary"]
    assert landed["changed"] + landed["added"] == 381
    git = subprocess.run(
        ["git", "diff", "--name-only", "--no-renames", f"{LANDING}^1", LANDING], cwd=corpus, check=True, capture_output=True
    )
    assert len(git.stdout.splitlines()) == 381
