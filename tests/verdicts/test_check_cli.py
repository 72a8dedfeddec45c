"""``check`` reads the case's configuration and the settings, and shows what a person needs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from goldenctl.cli.spark import sizes as sparkline
from tests.conftest import ScratchRepo, golden_json
from tests.verdicts.cli import Run

GOLDEN = "goldens/moe/tiny/golden_values_dev_dgx_h100.json"
STEPS = range(1, 51)


@pytest.fixture
def repo(make_repo: Callable[..., ScratchRepo]) -> ScratchRepo:
    """One golden, a run that drifted by 1 % at step 7, and one that is 10 % off from step 40."""
    made = make_repo("repo", {GOLDEN: golden_json(4, **{"lm loss": dict.fromkeys(STEPS, 10.0), "num-zeros": {1: 5.0}})})
    drift = {s: 10.1 if s == 7 else 10.0 for s in STEPS}
    wrong = {s: 11.0 if s >= 40 else 10.0 for s in STEPS}
    made.write({"drift.json": golden_json(4, **{"lm loss": drift, "num-zeros": {1: 5.0}})})
    made.write({"wrong.json": golden_json(4, **{"lm loss": wrong, "num-zeros": {1: 5.0}})})
    return made


def test_the_json_has_the_keys_scripts_rely_on(run: Run, repo: ScratchRepo) -> None:
    got = run(repo.top, "check", "wrong.json", GOLDEN, "--format", "json")
    assert got.code == 1
    assert (got.json["pass"], got.json["rules"]) == (False, "strict")
    loss = got.json["metrics"][0]
    keys = ("metric", "pass", "exact", "approximate", "n_steps", "n_exceeding", "worst_step", "max_rel_diff")
    assert [loss[k] for k in keys] == ["lm loss", False, False, False, 50, 11, 40, 0.1]
    assert loss["reason"].endswith("11 of 50 steps exceed where 1 may: 40, 41, 42, 43, 44, … (11 in all)")


def test_the_same_run_passes(run: Run, repo: ScratchRepo) -> None:
    got = run(repo.top, "check", GOLDEN, GOLDEN)
    assert got.code == 0
    assert "pass by strict rules" in got.out


def test_a_failure_names_steps_values_tolerance_and_the_next_command(run: Run, repo: ScratchRepo) -> None:
    out = run(repo.top, "check", "wrong.json", GOLDEN).out
    for said in (
        "FAIL",
        "10 → 11",
        "5 % per step, 1 of 50 steps may exceed",
        "goldenctl refresh --from-job RUN --case moe/tiny",
    ):
        assert said in out
    assert "▁▁▁▁▁▁▁▁" in out


def test_a_case_declared_nondeterministic_skips_the_exact_lane(run: Run, repo: ScratchRepo) -> None:
    assert run(repo.top, "check", "drift.json", GOLDEN).code == 1
    repo.write({"goldens/moe/tiny/model_config.yaml": "ENV_VARS:\n  NON_DETERMINSTIC_RESULTS: 1\n"})
    got = run(repo.top, "check", "drift.json", GOLDEN, "--format", "json")
    assert (got.code, got.json["metrics"][0]["exact"]) == (0, None)


def test_metrics_come_from_the_configuration_or_the_command_line(run: Run, repo: ScratchRepo) -> None:
    repo.write({"other.yaml": "METRICS: [num-zeros]\n"})
    named = run(repo.top, "check", "wrong.json", GOLDEN, "--config", "other.yaml", "--format", "json")
    assert (named.code, [m["metric"] for m in named.json["metrics"]]) == (0, ["num-zeros"])
    chosen = run(repo.top, "check", "wrong.json", GOLDEN, "--metric", "lm loss", "--format", "json")
    assert (chosen.code, [m["metric"] for m in chosen.json["metrics"]]) == (1, ["lm loss"])


def test_a_broken_configuration_is_said_and_the_defaults_are_used(run: Run, repo: ScratchRepo) -> None:
    repo.write({"goldens/moe/tiny/model_config.yaml": "METRICS: ["})
    got = run(repo.top, "check", GOLDEN, GOLDEN)
    assert got.code == 0
    assert "is not readable YAML" in got.err


def test_strict_tolerances_come_from_the_settings_by_case(run: Run, repo: ScratchRepo) -> None:
    repo.write({"goldenctl.toml": '[tolerance]\n"lm loss@moe/*" = { rtol = 0.2, exact = false }\n'})
    assert run(repo.top, "check", "wrong.json", GOLDEN).code == 0
    assert run(repo.top, "check", "wrong.json", GOLDEN, "--rules", "harness").code == 1


def test_where_the_rules_differ_the_output_says_why(run: Run, repo: ScratchRepo) -> None:
    short = {s: 10.0 for s in STEPS if s < 50}
    repo.write({"goldens/moe/tiny/model_config.yaml": "ENV_VARS:\n  NON_DETERMINSTIC_RESULTS: 1\n"})
    repo.write({"short.json": golden_json(4, **{"lm loss": short, "num-zeros": {1: 5.0}})})
    got = run(repo.top, "check", "short.json", GOLDEN, "--rules", "harness")
    assert got.code == 0
    assert "lm loss passes by harness rules, fails by strict ones: 1 of 50 steps are missing: 50" in got.out
    differs = run(repo.top, "check", "short.json", GOLDEN, "--format", "json").json["differs"]
    assert [(d["metric"], d["harness"], d["strict"]) for d in differs] == [("lm loss", True, False)]


def test_a_resume_is_compared_after_the_middle(run: Run, repo: ScratchRepo) -> None:
    half = {s: 10.0 for s in STEPS if s > 25}
    repo.write({"phase2.json": golden_json(4, **{"lm loss": half, "num-zeros": {40: 5.0}}), "c.yaml": "METRICS: [lm loss]"})
    assert run(repo.top, "check", "phase2.json", GOLDEN, "--config", "c.yaml").code == 1
    assert run(repo.top, "check", "phase2.json", GOLDEN, "--config", "c.yaml", "--resume", "--train-iters", "50").code == 0
    unknown = run(repo.top, "check", "phase2.json", GOLDEN, "--config", "c.yaml", "--resume")
    assert (unknown.code, "--train-iters" in unknown.err) == (2, True)


@pytest.mark.parametrize("arguments", [["no.json", GOLDEN], [GOLDEN, "no.json"], [GOLDEN, GOLDEN, "--config", "no.yaml"]])
def test_a_file_that_is_not_there_is_wrong_use(run: Run, repo: ScratchRepo, arguments: list[str]) -> None:
    got = run(repo.top, "check", *arguments)
    assert (got.code, got.out) == (2, "")


def test_an_obtained_file_that_is_no_document_fails_the_check(run: Run, repo: ScratchRepo, tmp_path: Path) -> None:
    (tmp_path / "cut.json").write_bytes((repo.top / GOLDEN).read_bytes()[:200])
    got = run(repo.top, "check", str(tmp_path / "cut.json"), GOLDEN, "--format", "json")
    assert (got.code, got.json["pass"]) == (1, False)
    assert "the obtained document cannot be read: not JSON" in got.json["reason"]


def test_a_sparkline_keeps_the_largest_of_each_share() -> None:
    assert sparkline(()) == ""
    assert sparkline((0.0, 0.0)) == ""
    assert sparkline((0.0, 0.5, 1.0, float("nan"))) == "▁▅█!"
    assert len(sparkline(tuple(float(i) for i in range(1000)))) == 40
