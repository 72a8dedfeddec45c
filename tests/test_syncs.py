"""Landings are told from look-alikes by topology and subject; sync:DATE and sync:SHA name one of them."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from goldenctl.config import Settings, SyncSettings, load
from goldenctl.errors import UsageError
from goldenctl.git import Repo
from goldenctl.syncs import landings, resolve
from tests.conftest import ScratchRepo

LANDED = "2026-03-01T23:30:00-02:00"  # 2026-03-02 in UTC


@pytest.fixture
def parted(make_repo: Callable[..., ScratchRepo], monkeypatch: pytest.MonkeyPatch) -> ScratchRepo:
    """main and dev with one commit of their own each, then main merged into dev at ``LANDED``."""
    repo = make_repo("parted", {"a": "1"})
    repo.git("checkout", "-q", "-b", "dev")
    repo.commit({"b": "1"}, "own work")
    repo.git("checkout", "-q", "main")
    repo.commit({"a": "2"}, "upstream work")
    repo.git("checkout", "-q", "dev")
    monkeypatch.setenv("GIT_COMMITTER_DATE", LANDED)
    repo.git("merge", "-q", "--no-ff", "-m", "bring it in", "main")
    monkeypatch.delenv("GIT_COMMITTER_DATE")
    return repo


def of(repo: ScratchRepo, **sync: object) -> list[tuple[str, str]]:
    settings = Settings(repo.top, sync=SyncSettings(**sync))  # type: ignore[arg-type]
    return [(s.kind, s.subject) for s in landings(Repo(repo.top), settings)]


def test_a_merge_that_brings_upstream_commits_is_a_landing_with_its_three_parents(parted: ScratchRepo) -> None:
    (landing,) = landings(Repo(parted.top), Settings(parted.top))
    assert (landing.kind, landing.sha) == ("merge", parted.git("rev-parse", "dev"))
    assert landing.base == parted.git("rev-parse", "dev~2")
    assert landing.downstream == parted.git("rev-parse", "dev^1")
    assert landing.upstream == parted.git("rev-parse", "main")


def test_a_merge_of_a_topic_branch_is_no_landing(parted: ScratchRepo) -> None:
    parted.git("checkout", "-q", "-b", "topic", "dev~1")
    parted.commit({"c": "1"}, "topic work")
    parted.git("checkout", "-q", "dev")
    parted.git("merge", "-q", "--no-ff", "-m", "merge main into dev, says the topic", "topic")
    assert of(parted) == [("merge", "bring it in")]


def test_a_merge_that_only_mends_the_graph_after_a_squash_is_no_landing(parted: ScratchRepo) -> None:
    parted.git("checkout", "-q", "main")
    parted.commit({"a": "3"}, "more upstream work")
    parted.git("checkout", "-q", "dev")
    parted.commit({"a": "3"}, "[dev] pull main 260122 (#3045)")
    parted.git("merge", "-q", "-s", "ours", "-m", "Merge branch 'main' into topic", "main")
    assert of(parted) == [("merge", "bring it in"), ("squash", "[dev] pull main 260122 (#3045)")]


@pytest.mark.parametrize(
    "subject",
    [
        "chore/merge main into dev20251025 (#1943)",
        "chore/sync main to dev (#2018)",
        "[20251111] chore/main to dev (#2211)",
        "[DEV] pull main Nov 25 (#2395)",
        "chore: nightly sync main into dev (14_04_2026)",
    ],
)
def test_a_single_parent_commit_with_a_landing_subject_is_a_squash(parted: ScratchRepo, subject: str) -> None:
    parted.commit({"a": "4"}, subject)
    assert of(parted)[1:] == [("squash", subject)]


@pytest.mark.parametrize(
    "subject",
    [
        "[dev] fixes for pull main 260122 (#3103)",
        "Fixes of Merge main into dev",
        "ci: Update gb200 golden value test after merge from main to dev (#4216)",
        "[Dev] Remove duplicated `bias_act_func` from main to dev sync (#4927)",
        "chore: keep CODEOWNERS unchanged in main→dev sync",
        "pull maintenance scripts",
        'Revert "own work"',
    ],
)
def test_a_fix_that_speaks_of_a_sync_is_no_landing(parted: ScratchRepo, subject: str) -> None:
    parted.commit({"a": "4"}, subject)
    assert of(parted)[1:] == []


def test_a_revert_of_a_landing_is_one_of_kind_revert(parted: ScratchRepo) -> None:
    parted.commit({"a": "4"}, "[DEV] pull main Nov 25 (#2395)")
    parted.commit({"a": "2"}, 'Revert "[DEV] pull main Nov 25 (#2395)" (#2400)')
    assert [kind for kind, _ in of(parted)] == ["merge", "squash", "revert"]


def test_subjects_of_the_settings_replace_the_built_in_ones(parted: ScratchRepo) -> None:
    parted.commit({"a": "4"}, "integrate trunk week 12")
    parted.commit({"a": "5"}, "[dev] pull main 260122 (#3045)")
    assert of(parted, subjects=(r"^integrate \w+",))[1:] == [("squash", "integrate trunk week 12")]


def test_a_bad_subject_pattern_is_wrong_use(parted: ScratchRepo) -> None:
    with pytest.raises(UsageError, match="not a regular expression"):
        of(parted, subjects=("(",))


def test_a_branch_without_a_local_name_is_taken_from_origin(parted: ScratchRepo, tmp_path: Path) -> None:
    parted.git("clone", "-q", "-b", "dev", str(parted.top), str(tmp_path / "clone"))
    clone = Repo(tmp_path / "clone")
    assert len(landings(clone, Settings(clone.top))) == 1
    assert resolve(clone, Settings(clone.top), "main") == parted.git("rev-parse", "main")


def test_a_missing_branch_is_wrong_use_with_the_command_that_gets_it(parted: ScratchRepo) -> None:
    with pytest.raises(UsageError, match="no branch 'trunk'") as caught:
        of(parted, upstream="trunk")
    assert "git fetch origin trunk" in caught.value.hint


def test_sync_date_is_the_day_of_the_committer_date_in_utc(parted: ScratchRepo) -> None:
    assert resolve(Repo(parted.top), Settings(parted.top), "sync:2026-03-02") == parted.git("rev-parse", "dev")


def test_sync_date_without_a_landing_names_the_nearest(parted: ScratchRepo) -> None:
    with pytest.raises(UsageError, match="sync:2026-03-01: no such landing on dev") as caught:
        resolve(Repo(parted.top), Settings(parted.top), "sync:2026-03-01")
    assert "sync:2026-03-02" in caught.value.hint


def test_sync_sha_takes_an_abbreviated_landing_and_nothing_else(parted: ScratchRepo) -> None:
    repo, settings, landing = Repo(parted.top), Settings(parted.top), parted.git("rev-parse", "dev")
    assert resolve(repo, settings, f"sync:{landing[:8]}") == landing
    with pytest.raises(UsageError, match="no such landing"):
        resolve(repo, settings, f"sync:{parted.git('rev-parse', 'main')[:8]}")


@pytest.mark.parametrize("name", ["sync:", "sync:2026-13-01", "sync:abcz", "sync:2026-03-2", "no/such", "--all", ""])
def test_a_name_that_means_nothing_is_wrong_use(parted: ScratchRepo, name: str) -> None:
    with pytest.raises(UsageError):
        resolve(Repo(parted.top), Settings(parted.top), name)


@pytest.mark.corpus
def test_every_landing_of_the_corpus_is_found_and_no_branch_merge_is_taken_for_one(corpus: Path) -> None:
    truth = json.loads((Path(os.environ["GOLDENCTL_CORPUS"]) / "syncs.json").read_text())
    expected = {e["rewritten"]: e["kind"] for e in truth if e["rewritten"]}
    named = {"merge": "merge-landing", "squash": "squash-landing", "revert": "revert"}
    found = {s.sha: named[s.kind] for s in landings(Repo(corpus), load(corpus))}
    assert found == {sha: kind for sha, kind in expected.items() if kind in named.values()}
    assert len(found) == 20


@pytest.mark.corpus
def test_the_sync_of_a_date_is_found_on_the_corpus(corpus: Path) -> None:
    assert resolve(Repo(corpus), load(corpus), "sync:2026-04-28").startswith("e2d9e48029")
