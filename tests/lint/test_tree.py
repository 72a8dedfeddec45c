"""Files are linted together: twins, many processes, the whole corpus."""

from __future__ import annotations

import os
import subprocess
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from goldenctl import config, lint
from goldenctl.errors import UsageError
from goldenctl.git import Repo
from goldenctl.lint import tree
from tests.conftest import ScratchRepo, golden_json

A = golden_json(lm_loss={1: 1.0, 2: 2.0})
B = golden_json(lm_loss={1: 1.0, 2: 2.5})
CASE = "goldens/gpt/gpt3_tp1"


def checked(repo: ScratchRepo, workers: int = 1) -> lint.Checked:
    settings = config.load(repo.top)
    return lint.check_files(lint.golden_files(settings), settings, workers=workers)


def test_the_same_content_under_two_platforms_is_found_on_both(make_repo: Callable[..., ScratchRepo]) -> None:
    files = {f"{CASE}/golden_values_dev_dgx_h100.json": A, f"{CASE}/golden_values_dev_dgx_a100.json": A}
    found = checked(make_repo("r", files)).findings
    assert [(f.rule, f.path.rsplit("_", 1)[1], f.kind) for f in found] == [
        ("GV006", "a100.json", "same content"),
        ("GV006", "h100.json", "same content"),
    ]


def test_the_second_phase_of_a_case_may_repeat_its_first(make_repo: Callable[..., ScratchRepo]) -> None:
    files = {f"{CASE}/golden_values_dev_dgx_h100.json": A, f"{CASE}/golden_values_dev_dgx_h100_2nd.json": A}
    assert checked(make_repo("r", files)).findings == ()


def test_a_folder_with_a_letter_missing_is_a_twin(make_repo: Callable[..., ScratchRepo]) -> None:
    files = {
        "goldens/gpt/release_gb200_sm/golden_values_dev_dgx_gb200.json": A,
        "goldens/gpt/release_gb200_sm/golden_values_dev_dgx_h100.json": B,
        "goldens/gpt/release_g200_sm/golden_values_dev_dgx_gb200.json": golden_json(lm_loss={1: 3.0}),
    }
    (found,) = checked(make_repo("r", files)).findings
    assert (found.path, found.message) == (
        "goldens/gpt/release_g200_sm/golden_values_dev_dgx_gb200.json",
        "folder 'release_g200_sm' is nearly 'release_gb200_sm': one of them may be a slip",
    )


def test_cases_that_differ_by_a_number_are_no_twins(make_repo: Callable[..., ScratchRepo]) -> None:
    files = {f"goldens/gpt/gpt3_tp{n}/golden_values_dev_dgx_h100.json": golden_json(lm_loss={1: float(n)}) for n in (1, 2, 22)}
    assert checked(make_repo("r", files)).findings == ()


def test_two_processes_find_what_one_finds(make_repo: Callable[..., ScratchRepo], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tree, "PARALLEL_BYTES", 0)
    bad = golden_json(lm_loss={1: "nan", 2: 2.0})
    files = {f"goldens/gpt/case{n}x/golden_values_dev_dgx_h100.json": bad if n % 3 else A for n in range(30)}
    repo = make_repo("r", files)
    assert checked(repo, workers=2).findings == checked(repo, workers=1).findings
    assert Counter(f.rule for f in checked(repo, workers=2).findings) == {"GV001": 20, "GV006": 30}


def test_a_file_that_cannot_be_read_is_a_finding_and_the_others_are_checked(
    make_repo: Callable[..., ScratchRepo], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tree, "PARALLEL_BYTES", 0)
    bad = golden_json(lm_loss={1: "nan"})
    repo = make_repo("r", {f"{CASE}/golden_values_dev_dgx_h100.json": A, f"{CASE}/golden_values_dev_dgx_gb200.json": bad})
    (repo.top / CASE / "golden_values_dev_dgx_a100.json").symlink_to("nowhere.json")
    (repo.top / CASE / "golden_values_lts_dgx_a100.json").mkdir()
    found = [(f.path.rpartition("/")[2], f.rule, f.message) for f in checked(repo, workers=2).findings]
    assert [f[:2] for f in found] == [
        ("golden_values_dev_dgx_a100.json", "GV002"),
        ("golden_values_dev_dgx_gb200.json", "GV001"),
    ]
    assert found[0][2] == "cannot be read: No such file or directory"


def test_a_step_of_five_thousand_digits_is_a_finding_of_its_file(make_repo: Callable[..., ScratchRepo]) -> None:
    block = b'{"start_step": 1, "end_step": 1, "step_interval": 1, "values": {"%s": 1.0}}' % (b"9" * 5000)
    repo = make_repo("r", {f"{CASE}/golden_values_dev_dgx_h100.json": b'{"lm loss": %s}' % block})
    assert [f.rule for f in checked(repo).findings] == ["GV004"]


def test_a_pipe_among_the_goldens_is_no_reason_to_wait(make_repo: Callable[..., ScratchRepo]) -> None:
    repo = make_repo("r", {f"{CASE}/golden_values_dev_dgx_h100.json": A})
    os.mkfifo(repo.top / CASE / "golden_values_dev_dgx_a100.json")
    assert [(f.rule, f.message) for f in checked(repo).findings] == [("GV003", "the file is empty")]


def test_no_root_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no folder of golden files here"):
        lint.golden_files(config.load(tmp_path))


@pytest.mark.corpus
@pytest.mark.parametrize(("branch", "figures"), [("dev", (910, 250_416, 470, 9)), ("main", (905, 250_164, 468, 7))])
def test_the_tips_of_the_corpus_have_the_known_figures(
    corpus: Path, tmp_path: Path, branch: str, figures: tuple[int, ...]
) -> None:
    subprocess.run(["git", "worktree", "add", "-q", "--detach", str(tmp_path / branch), branch], cwd=corpus, check=True)
    settings = config.load(tmp_path / branch)
    done = lint.check_files(lint.golden_files(settings), settings, workers=2)
    non_finite = [f for f in done.findings if f.rule == "GV001"]
    empty = {f.path for f in done.findings if f.rule == "GV003"}
    assert (len(done.files), sum(f.count for f in non_finite), len({f.path for f in non_finite}), len(empty)) == figures


@pytest.mark.corpus
def test_every_document_of_the_history_parses_or_has_a_finding_that_says_why(corpus: Path) -> None:
    repo = Repo(corpus)
    settings = config.load(corpus)
    records = repo.text("log", "--all", "--format=", "--raw", "-m", "--no-renames", "--no-abbrev").splitlines()
    blobs = {r.split("\t")[0].split()[3] for r in records if r.startswith(":")} - {"0" * 40}
    assert len(blobs) == 4898
    rules: Counter[str] = Counter()
    for _, raw in repo.blobs(sorted(blobs)):
        findings = lint.check("tests/functional_tests/test_cases/a/b/golden_values_dev_dgx_h100.json", raw, settings)
        assert all(f.message for f in findings)
        rules.update({f.rule for f in findings})
    assert rules["GV003"] == 2  # the zero-byte blob and {}
    assert rules["GV002"] == 5  # the five that are encoded twice


ANOMALIES = [
    ("918579ae", "hybrid/hybrid_mr_mcore_te_tp1_pp1_dgx_a100_1N8G/golden_values_dev.json", "GV004", "lm loss"),
    ("918579ae", "hybrid/hybrid_mr_mcore_te_tp1_pp1_dgx_a100_1N8G/golden_values_dev.json", "GV011", "num-zeros"),
    (
        "7af74a0c",
        "moe/gpt3_moe_mcore_te_tp2_pp2_ep4_etp1_fine_grained_offloading/golden_values_dev_dgx_h100.json",
        "GV001",
        "lm loss",
    ),
    ("91e8c887", "gpt/gpt_grpo_tp4_pp1_dp2_8b_throughput/golden_values_dev_dgx_h100.json", "GV007", "lm loss"),
    ("eff4e3f1", "gpt/gpt3_mcore_te_tp2_pp2_ep4_etp1_memory_speed/golden_values_dev_dgxh100_dgxc.json", "GV003", ""),
    ("8a5ff2c8", "gpt/gpt3_mcore_te_tp2_zp_z3_resume_fsdp_dtensor/golden_values_lts_dgx_a100.json", "GV003", ""),
    ("f257e7a2", "moe/gpt_inference_tp1_pp1_ep1_16B_logitsmatch/golden_values_dev_dgx_h100.json", "GV002", ""),
]
ROOT = "tests/functional_tests/test_cases/"


@pytest.mark.corpus
@pytest.mark.parametrize(("commit", "path", "rule", "metric"), ANOMALIES)
def test_an_anomaly_of_the_corpus_is_caught_by_its_rule(corpus: Path, commit: str, path: str, rule: str, metric: str) -> None:
    raw = Repo(corpus).show(commit, ROOT + path)
    assert raw is not None
    assert (rule, metric) in {(f.rule, f.metric) for f in lint.check(ROOT + path, raw, config.load(corpus))}


@pytest.mark.corpus
def test_one_platforms_file_under_anothers_name_is_caught(corpus: Path, tmp_path: Path) -> None:
    subprocess.run(["git", "worktree", "add", "-q", "--detach", str(tmp_path / "w"), "6fa372e9"], cwd=corpus, check=True)
    settings = config.load(tmp_path / "w")
    done = lint.check_files(lint.golden_files(settings), settings, workers=2)
    twins = {f.path.removeprefix(ROOT) for f in done.findings if f.rule == "GV006" and f.kind == "same content"}
    case = "hybrid/hybrid_mr_mcore_te_tp2_pp1_cp4_dgx_a100_1N8G"
    assert {f"{case}/golden_values_dev_dgx_{p}.json" for p in ("a100", "h100")} <= twins


LOSSES = [
    ("5433bf90", "nemotron/nemotron3_super_release_gb200_sm/golden_values_dev_dgx_gb200.json", "shrank"),
    (
        "7af74a0c",
        "moe/gpt3_moe_mcore_te_tp2_pp2_ep4_etp1_fine_grained_offloading/golden_values_dev_dgx_h100.json",
        "non-finite",
    ),
    ("05c033c6", "gpt/gpt3_mr_mcore_te_tp1_pp2_cp4_a2a_p2p_nondeterministic_dgx_a100_1N8G/golden_values_dev.json", "vanished"),
    ("82fa7aa1", "gpt/gpt3_15b_8t_release_sm/golden_values_dev_dgx_h100.json", "non-finite"),
]


@pytest.mark.corpus
@pytest.mark.parametrize(("commit", "path", "kind"), LOSSES)
def test_a_loss_in_the_corpus_is_caught_against_the_commit_before(corpus: Path, commit: str, path: str, kind: str) -> None:
    repo = Repo(corpus)
    new, old = repo.show(commit, ROOT + path), repo.show(f"{commit}^1", ROOT + path)
    assert new is not None
    found = lint.check_against(ROOT + path, new, old, "before", config.load(corpus))
    assert kind in {f.kind for f in found if f.rule == "GV010"}
