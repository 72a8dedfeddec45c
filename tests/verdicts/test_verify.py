"""Each golden is matched with the same golden at other revisions, and with what runs have delivered."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

import pytest

from goldenctl import config, sides, verify
from goldenctl.errors import RepoError
from tests.conftest import ScratchRepo, golden_json
from tests.verdicts.cli import Run

MakeRepo = Callable[..., ScratchRepo]
H100 = "goldens/moe/tiny/golden_values_dev_dgx_h100.json"
GB200 = "goldens/moe/tiny/golden_values_dev_dgx_gb200.json"
GPT = "goldens/gpt/small/golden_values_dev_dgx_h100.json"
NEW = "goldens/gpt/new/golden_values_dev_dgx_h100.json"


@pytest.fixture
def repo(make_repo: MakeRepo) -> ScratchRepo:
    """Main has three goldens; the branch work changes two of them and adds one."""
    one = golden_json(4, **{"lm loss": {1: 10.0, 2: 9.0}})
    made = make_repo("repo", {H100: one, GB200: one, GPT: one})
    made.git("switch", "-q", "-c", "work")
    close = golden_json(4, **{"lm loss": {1: 10.25, 2: 9.0}})
    made.commit({GB200: close, GPT: golden_json(None, **{"lm loss": {1: 10, 2: 9}}), NEW: one}, "work")
    return made


def levels(outcome_json: dict[str, list[dict[str, list[dict[str, str]]]]]) -> dict[str, list[str]]:
    return {str(f["path"]): [m["level"] for m in f["matches"]] for f in outcome_json["files"]}


def test_every_level_is_told_apart(run: Run, repo: ScratchRepo) -> None:
    got = run(repo.top, "verify", "--against", "main", "--format", "json")
    assert got.code == 0
    assert levels(got.json) == {H100: ["identical"], GB200: ["close"], GPT: ["equal"], NEW: ["absent"]}
    assert got.json["summary"] == {"identical": 1, "close": 1, "equal": 1, "absent": 1}


def test_portion_by_portion_gives_what_all_at_once_gives(run: Run, repo: ScratchRepo, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = run(repo.top, "verify", "--against", "main", "--format", "json").json
    monkeypatch.setattr(verify, "PORTION", 1)
    assert run(repo.top, "verify", "--against", "main", "--format", "json").json == whole


def test_the_goldens_of_the_work_tree_are_not_held_and_a_change_meanwhile_is_said(repo: ScratchRepo) -> None:
    side = sides.worktree(config.load(repo.top))
    asked = [side.entries[path] for path in (H100, GB200)]
    assert [content for _, content in side.contents(asked)] == [(repo.top / path).read_bytes() for path in (H100, GB200)]
    (repo.top / H100).write_bytes(b"{}")
    with pytest.raises(RepoError, match=r"golden_values_dev_dgx_h100\.json: was changed while it was compared"):
        list(side.contents(asked))
    (repo.top / H100).unlink()
    with pytest.raises(RepoError, match="cannot be read: No such file"):
        list(side.contents(asked))


@pytest.mark.parametrize(
    ("paths", "required", "code"),
    [
        ([H100], "identical", 0),
        ([GPT], "identical", 1),
        (["gpt/small"], "equal", 0),
        (["moe/*"], "equal", 1),
        (["goldens/moe"], "close", 0),
        ([NEW], "close", 1),
        ([], "close", 1),
    ],
)
def test_a_level_can_be_required(run: Run, repo: ScratchRepo, paths: list[str], required: str, code: int) -> None:
    assert run(repo.top, "verify", *paths, "--against", "main", "--require", required).code == code


def test_every_revision_must_meet_what_is_required(run: Run, repo: ScratchRepo) -> None:
    args = ("verify", GB200, "--against", "HEAD", "--against", "main", "--format", "json")
    got = run(repo.top, *args, "--require", "identical")
    assert (levels(got.json), got.code) == ({GB200: ["identical", "close"]}, 1)


def test_the_goldens_of_a_revision_are_verified_without_the_work_tree(run: Run, repo: ScratchRepo) -> None:
    repo.write({H100: b"changed since"})
    got = run(repo.top, "verify", "--at", "HEAD", "--against", "main", "--format", "json").json
    assert levels(got)[H100] == ["identical"]
    assert levels(run(repo.top, "verify", "--against", "main", "--format", "json").json)[H100] == ["different"]


def test_only_the_metrics_the_case_requires_decide(run: Run, repo: ScratchRepo) -> None:
    both = golden_json(4, **{"lm loss": {1: 10.0, 2: 9.0}, "num-zeros": {1: 5.0, 2: 5.0}, "iteration-time": {1: 1.0, 2: 1.0}})
    repo.commit({H100: both})
    slow = both.replace(b'"1": 1.0', b'"1": 9.0').replace(b'"2": 1.0', b'"2": 9.0')
    repo.write({H100: slow})
    args = ("verify", H100, "--against", "HEAD", "--format", "json")
    assert levels(run(repo.top, *args).json) == {H100: ["different"]}
    repo.write({"goldens/moe/tiny/model_config.yaml": b"TEST_TYPE: regular\nMODE: pretraining\n"})
    got = run(repo.top, *args)
    assert levels(got.json) == {H100: ["close"]}


def test_goldens_that_are_gone_are_said(run: Run, repo: ScratchRepo) -> None:
    (repo.top / H100).unlink()
    assert f"1 goldens of main are not here, first {H100}" in run(repo.top, "verify", "--against", "main").err


def test_bytes_of_a_recorded_artifact_have_an_origin(run: Run, repo: ScratchRepo) -> None:
    content = (repo.top / GB200).read_bytes()
    digest = hashlib.sha256(content).hexdigest()
    repo.commit({}, f"Refresh\n\nGolden-Run: github:42 https://example.invalid/42\nGolden-Artifact: {GB200} sha256:{digest}\n")
    got = run(repo.top, "verify", GB200, "--origin", "--format", "json")
    assert (got.code, got.json["files"][0]["origin"]) == (0, "github:42")
    repo.write({GB200: content + b"\n"})
    changed = run(repo.top, "verify", GB200, "--origin", "--format", "json")
    assert (changed.code, changed.json["files"][0]["origin"]) == (1, "")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["verify"], "nothing to verify against"),
        (["verify", "--against", "no-such"], "no such revision: no-such"),
        (["verify", "moe/tyni", "--against", "main"], "did you mean moe/tiny?"),
        (["verify", "--against", "main", "--require", "perfect"], "perfect"),
    ],
)
def test_wrong_use_ends_in_2_with_the_next_step(run: Run, repo: ScratchRepo, arguments: list[str], said: str) -> None:
    got = run(repo.top, *arguments)
    assert (got.code, got.out) == (2, "")
    assert said in got.err


def test_a_pull_request_gets_sentences_and_only_what_differs(run: Run, repo: ScratchRepo) -> None:
    text = run(repo.top, "verify", "--against", "main", "--format", "markdown").out
    assert "4 goldens of WORKTREE against main (" in text
    assert "1 identical, 1 equal, 1 close, 1 absent" in text
    assert "golden\\_values\\_dev\\_dgx\\_gb200.json | main | close |" in text
    assert H100.replace("_", "\\_") not in text


@pytest.mark.corpus
def test_the_tips_of_the_corpus_match_as_its_profile_says(run: Run, corpus: Path) -> None:
    got = run(corpus, "verify", "--against", "main", "--format", "json")
    counts = got.json["summary"]
    assert (counts["identical"], counts["absent"]) == (754, 7)
    assert counts["equal"] + counts["close"] + counts["different"] == 149
    assert "2 goldens of main are not here" in got.err
