"""A test compares with a golden; an update is a proposal that only a review turns into the golden."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from goldenctl import config, pending, pytest_plugin
from goldenctl.errors import RepoError
from goldenctl.model import GoldenKey
from goldenctl.pytest_plugin import assert_matches_golden, document
from tests.conftest import ScratchRepo, golden_json
from tests.verdicts.cli import Run

H100 = "goldens/moe/tiny/golden_values_dev_dgx_h100.json"
GB200 = "goldens/moe/tiny/golden_values_dev_dgx_gb200.json"
GOLDEN = golden_json(4, **{"lm loss": {1: 10.0, 2: 9.0}})
TEST = """\
def test_loss(golden):
    golden.assert_matches({{"lm loss": {{1: 10.0, 2: {value}}}}}, "{path}")
"""


@pytest.fixture(autouse=True)
def _no_session(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if outside pytest, whether or not our own plugin is installed here."""
    monkeypatch.setattr(pytest_plugin, "_sessions", [])


@pytest.fixture
def repo(make_repo: Callable[..., ScratchRepo]) -> ScratchRepo:
    return make_repo("repo", {H100: GOLDEN})


def pytest_in(repo: ScratchRepo, *options: str) -> subprocess.CompletedProcess[str]:
    """A real pytest run in the repository, with the plugin as an installed one is loaded."""
    command = [sys.executable, "-m", "pytest", "-p", "goldenctl.pytest_plugin", "-p", "no:cacheprovider", *options]
    env = {"PYTHONPATH": str(Path("src").resolve()), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PATH": "/usr/bin:/bin"}
    env["PYTHONDONTWRITEBYTECODE"] = "1"
    return subprocess.run(command, cwd=repo.top, capture_output=True, text=True, env=env)


def test_a_test_that_matches_passes_and_one_that_does_not_shows_the_numbers(repo: ScratchRepo) -> None:
    repo.write({"test_a.py": TEST.format(value=9.0, path=H100)})
    assert pytest_in(repo).returncode == 0
    repo.write({"test_a.py": TEST.format(value=9.5, path=H100)})
    failed = pytest_in(repo)
    assert failed.returncode == 1
    for said in (
        f"does not match {H100} by strict rules",
        "lm loss: exact comparison: 1 of 2 steps differ, first step 2",
        "worst at step 2: 9.0 → 9.5, max relative 0.0556, max absolute 0.5",
        "run again with --golden-update, then goldenctl review",
    ):
        assert said in failed.stdout
    assert pytest_in(repo, "--golden-rules", "harness").returncode == 1


def test_an_update_proposes_and_leaves_the_golden_alone(repo: ScratchRepo) -> None:
    repo.write({"test_a.py": TEST.format(value=9.5, path=H100) + TEST.format(value=1.0, path=GB200).replace("_loss", "_new")})
    done = pytest_in(repo, "--golden-update")
    assert done.returncode == 0
    assert f"pending: {H100}" in done.stdout
    assert f"pending: {GB200}" in done.stdout
    assert "next: goldenctl review" in done.stdout
    assert (repo.top / H100).read_bytes() == GOLDEN
    assert not (repo.top / GB200).exists()
    found = pending.waiting(config.load(repo.top))
    assert [(p.path, p.origin) for p in found] == [(GB200, "test_a.py::test_new"), (H100, "test_a.py::test_loss")]
    assert json.loads(found[1].content)["lm loss"]["values"] == {"1": 10.0, "2": 9.5}
    assert repo.git("status", "--short") == "?? test_a.py"


def test_the_function_follows_the_session_it_is_called_in(repo: ScratchRepo) -> None:
    head = "from goldenctl.pytest_plugin import assert_matches_golden\n\n\n"
    body = TEST.format(value=9.5, path=H100).replace("(golden)", "()").replace("golden.assert_matches", "assert_matches_golden")
    repo.write({"test_a.py": head + body})
    assert pytest_in(repo).returncode == 1
    done = pytest_in(repo, "--golden-update")
    assert (done.returncode, f"pending: {H100}" in done.stdout) == (0, True)
    assert pending.waiting(config.load(repo.top))[0].origin == "test_a.py::test_loss"


def test_without_the_fixture_the_same_check_is_a_function(repo: ScratchRepo, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(repo.top)
    assert_matches_golden({"lm loss": {1: 10.0, 2: 9.0}}, H100)
    assert_matches_golden(GOLDEN, GoldenKey("moe", "tiny", "dev", "dgx_h100"))
    assert_matches_golden(repo.top / H100, repo.top / H100)
    with pytest.raises(AssertionError, match="2 of 2 steps exceed where 1 may"):
        assert_matches_golden({"lm loss": {1: 20.0, 2: 20.0}}, H100)
    with pytest.raises(AssertionError, match="was not obtained"):
        assert_matches_golden({"num-zeros": {1: 1.0}}, H100)
    with pytest.raises(AssertionError, match="there is no golden"):
        assert_matches_golden({"lm loss": {1: 20.0}}, GB200)


def test_without_a_configuration_every_golden_metric_is_compared(repo: ScratchRepo, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(repo.top)
    repo.write({H100: golden_json(4, **{"lm loss": {1: 1.0}, "my metric": {1: 5.0}})})
    with pytest.raises(AssertionError, match="my metric"):
        assert_matches_golden({"lm loss": {1: 1.0}, "my metric": {1: 50.0}}, H100)
    assert_matches_golden({"lm loss": {1: 1.0}, "my metric": {1: 50.0}}, H100, metrics=("lm loss",))


def test_obtained_mappings_become_documents_of_full_precision() -> None:
    assert json.loads(document({"lm loss": {1: 0.1, 5: 0.2, 10: 0.3}}))["lm loss"] == {
        "start_step": 1,
        "end_step": 10,
        "step_interval": 5,
        "values": {"1": 0.1, "5": 0.2, "10": 0.3},
        "value_precision": "full",
    }
    assert json.loads(document({"0": {"generated_tokens": [1]}})) == {"0": {"generated_tokens": [1]}}


# --- review


@pytest.fixture
def proposed(repo: ScratchRepo) -> ScratchRepo:
    """Three proposals: a changed golden, a new one, and one with a NaN."""
    settings = config.load(repo.top)
    pending.propose(settings, pending.Pending(H100, golden_json(4, **{"lm loss": {1: 10.0, 2: 9.5}}), "t::a", "differs"))
    pending.propose(settings, pending.Pending(GB200, GOLDEN, "t::b"))
    bad = "goldens/gpt/nan/golden_values_dev_dgx_h100.json"
    pending.propose(settings, pending.Pending(bad, golden_json(4, **{"lm loss": {1: 1.0, 2: "nan"}}), "t::c"))
    return repo


def states(run: Run, repo: ScratchRepo, *options: str) -> tuple[int, dict[str, str]]:
    got = run(repo.top, "review", *options, "--format", "json")
    return got.code, {f["path"]: f["state"] for f in got.json["files"]}


def test_a_review_without_decisions_lists_what_waits(run: Run, proposed: ScratchRepo) -> None:
    code, found = states(run, proposed)
    assert (code, set(found.values())) == (1, {"pending"})
    text = run(proposed.top, "review").out
    assert "3 pending" in text
    assert "t::a" in text


def test_globs_accept_and_reject_and_rejection_wins(run: Run, proposed: ScratchRepo) -> None:
    code, found = states(run, proposed, "--accept", "moe/*", "--reject", "*gb200*")
    assert (code, found[H100], found[GB200]) == (1, "accepted", "rejected")
    assert json.loads((proposed.top / H100).read_bytes())["lm loss"]["values"] == {"1": 10.0, "2": 9.5}
    assert not (proposed.top / GB200).exists()
    assert [p.path for p in pending.waiting(config.load(proposed.top))] == ["goldens/gpt/nan/golden_values_dev_dgx_h100.json"]


def test_a_proposal_with_lint_errors_is_refused_and_kept(run: Run, proposed: ScratchRepo) -> None:
    got = run(proposed.top, "review", "--accept", "*", "--format", "json")
    refused = [f for f in got.json["files"] if f["state"] == "refused"]
    assert (got.code, [f["reason"][:5] for f in refused]) == (1, ["GV001"])
    assert (proposed.top / GB200).read_bytes() == GOLDEN
    assert states(run, proposed, "--accept", "*", "--allow", "GV001:lm loss") == (0, {refused[0]["path"]: "accepted"})
    assert states(run, proposed) == (0, {})


def test_a_golden_with_uncommitted_changes_is_not_overwritten(run: Run, proposed: ScratchRepo) -> None:
    proposed.write({H100: b"{}"})
    code, found = states(run, proposed, "--accept", "moe/tiny/*h100*")
    assert (code, found[H100], (proposed.top / H100).read_bytes()) == (1, "refused", b"{}")


def test_a_proposal_that_a_killed_review_has_written_already_is_accepted(run: Run, proposed: ScratchRepo) -> None:
    proposed.write({H100: golden_json(4, **{"lm loss": {1: 10.0, 2: 9.5}})})
    _, found = states(run, proposed, "--accept", "moe/tiny/*h100*")
    assert found[H100] == "accepted"
    assert H100 not in [p.path for p in pending.waiting(config.load(proposed.top))]


def test_a_person_is_asked_one_by_one(proposed: ScratchRepo) -> None:
    pexpect = pytest.importorskip("pexpect")
    child = pexpect.spawn(
        sys.executable,
        ["-m", "goldenctl", "review"],
        cwd=str(proposed.top),
        env={"PYTHONPATH": str(Path("src").resolve()), "PATH": "/usr/bin:/bin", "TERM": "dumb", "COLUMNS": "200"},
        timeout=30,
        encoding="utf-8",
    )
    for answer in ("s", "a", "r"):
        child.expect(r"\[a/r/s/q\]")
        child.sendline(answer)
    child.expect("1 pending")
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 1
    assert (proposed.top / GB200).read_bytes() == GOLDEN
    assert (proposed.top / H100).read_bytes() == GOLDEN
    assert not pending.folder(config.load(proposed.top)).joinpath("goldens/moe").exists()


def test_a_glob_that_matches_nothing_is_wrong_use(run: Run, proposed: ScratchRepo) -> None:
    got = run(proposed.top, "review", "--accept", "gtp/*")
    assert (got.code, "no proposal matches 'gtp/*'" in got.err) == (2, True)


@pytest.mark.parametrize("path", ["/etc/passwd", "../x.json", "other/x.json", "goldens/../../x.json"])
def test_a_proposal_never_leads_out_of_root(repo: ScratchRepo, path: str) -> None:
    with pytest.raises(RepoError):
        pending.propose(config.load(repo.top), pending.Pending(path, b"{}"))
