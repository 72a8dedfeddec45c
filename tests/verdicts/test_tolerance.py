"""Tolerances come from the noise of repeated runs, keep what they promise, and still catch planted faults."""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from goldenctl import config, repeats, rules
from goldenctl.config import HARNESS_TOLERANCES, Tolerance
from goldenctl.goldenfile import Series
from goldenctl.testconfig import TestConfig
from goldenctl.tolerance import Proposal, critical_tolerance, propose, round_up, settings_block
from tests.conftest import ScratchRepo, golden_json
from tests.verdicts.cli import Run
from tests.verdicts.events import write_events

LOOSE = Tolerance(bad_steps=0)


def series(*values: float) -> Series:
    return Series("lm loss", tuple(range(1, len(values) + 1)), values)


def one(*runs: Series, tolerance: Tolerance = LOOSE, alpha: float = 0.01) -> Proposal:
    (found,) = propose([{"": {"lm loss": r}} for r in runs], alpha, lambda _: tolerance)
    return found


def test_identical_runs_mean_exact_comparison_and_say_what_they_cannot_exclude() -> None:
    got = one(*[series(1.0, 2.0)] * 5)
    assert (got.exact, got.rtol, got.warning) == (True, None, "")
    assert got.undetected_rate == pytest.approx(1 - 0.05 ** (1 / 4))  # four further runs agreed with the first


def test_two_identical_runs_are_exact_and_two_different_ones_too_few() -> None:
    assert one(series(1.0), series(1.0)).exact
    assert one(series(1.0), series(1.1)).problem == "2 runs that differ are too few to tell noise: give 3 or more"
    assert one(series(1.0)).problem == "too few: one run says nothing of repeatability"


@pytest.mark.parametrize(
    ("runs", "problem"),
    [
        ([series(1.0, 2.0), series(1.0), series(1.0, 2.0)], "the runs do not have the same steps"),
        ([series(1.0, math.nan), series(1.0, 2.0), series(1.0, 2.1)], "a run holds values that are not finite"),
        ([series(math.nan), series(math.nan), series(math.nan)], "a run holds values that are not finite"),
    ],
)
def test_runs_that_cannot_be_compared_get_no_tolerance(runs: list[Series], problem: str) -> None:
    got = one(*runs)
    assert (got.rtol, got.problem) == (None, problem)


def test_a_common_warm_up_without_values_does_not_matter() -> None:
    assert one(*(series(math.nan, 1.0 + i / 1000) for i in range(5))).rtol is not None


def test_a_metric_that_a_run_lacks_gets_no_tolerance() -> None:
    samples: list[Mapping[str, Mapping[str, Series]]] = [{"": {"lm loss": series(1.0)}} for _ in range(3)]
    samples.append({"": {}})
    (got,) = propose(samples, 0.01, lambda _: LOOSE)
    assert got.problem == "1 of 4 runs lack it"


def test_the_critical_tolerance_is_the_step_after_the_allowed_bad_ones() -> None:
    golden, obtained = series(10.0, 10.0, 10.0, 10.0), series(10.0, 11.0, 12.0, 9.5)
    assert critical_tolerance(obtained, golden, Tolerance(bad_steps=0)) == pytest.approx(0.2)
    assert critical_tolerance(obtained, golden, Tolerance(bad_steps=1)) == pytest.approx(0.1)
    assert critical_tolerance(obtained, golden, Tolerance()) == pytest.approx(0.1)  # four steps allow one
    assert critical_tolerance(obtained, golden, Tolerance(bad_steps=4)) == 0.0


def test_goldens_of_zero_get_an_absolute_tolerance() -> None:
    got = one(*(series(0.0 if i else 3.0, 100.0 + i) for i in range(5)))
    assert got.atol == 6.0
    assert got.rtol is not None
    assert math.isfinite(got.rtol)


def test_the_proposal_is_never_below_what_was_seen_and_warns_of_few_runs() -> None:
    got = one(series(1.0), series(1.01), series(1.02))
    assert got.rtol is not None
    assert got.rtol >= 0.02
    assert got.warning == "only 3 runs: the tolerance is wide and uncertain, 5 or more are better"


@pytest.mark.parametrize(("runs", "seeds"), [(4, 8), (8, 8), (16, 5)])
def test_fresh_runs_fail_no_more_often_than_asked(runs: int, seeds: int) -> None:
    alarms = []
    for seed in range(seeds):
        draw = random.Random(seed)
        known = [series(*(10 * (1 + draw.gauss(0, 1e-3)) for _ in range(100))) for _ in range(runs)]
        got = one(*known, tolerance=Tolerance())
        assert got.rtol is not None
        assert got.rtol < 0.009  # the largest of a hundred differences of two such runs is about 0.004
        for _ in range(60):
            fresh = series(*(10 * (1 + draw.gauss(0, 1e-3)) for _ in range(100)))
            alarms.append(critical_tolerance(fresh, draw.choice(known), Tolerance()) > got.rtol)
    assert statistics.fmean(alarms) <= 0.01


def test_the_smallest_caught_change_is_caught_and_half_of_it_is_not() -> None:
    draw = random.Random(7)
    runs = [series(*(10 * (1 + draw.gauss(0, 1e-4)) for _ in range(50))) for _ in range(6)]
    got = one(*runs)
    assert got.rtol is not None
    assert got.catches is not None
    limit = Tolerance(got.rtol, bad_steps=0)
    case = TestConfig(metrics=("lm loss",), metrics_given=True, approximate_only=True)
    for change, passes in ((got.catches * 1.01, False), (-got.catches * 1.01, False), (got.catches / 2, True)):
        for obtained in runs[1:]:
            curve = dict(zip(obtained.steps, obtained.values, strict=True))
            planted = golden_json(4, **{"lm loss": {s: v * (1 + change) for s, v in curve.items()}})
            verdict = rules.check(planted, _document(runs[0]), case, tolerance_for=lambda _: limit)
            assert verdict.passed is passes


def _document(run: Series) -> bytes:
    return golden_json(4, **{"lm loss": dict(zip(run.steps, run.values, strict=True))})


def test_a_median_that_ends_before_the_change_does_not_see_it() -> None:
    timing = HARNESS_TOLERANCES["iteration-time"]
    runs = [Series("iteration-time", tuple(range(1, 101)), tuple([2.0 + i / 100] * 100)) for i in range(6)]
    (got,) = propose([{"": {"iteration-time": r}} for r in runs], 0.01, lambda _: timing)
    assert got.catches is not None
    assert got.catches_late is None
    assert got.warning == "a change in the second half of the run is not seen"


@pytest.mark.parametrize(
    ("value", "rounded"), [(0.00012345, 0.00013), (0.00013, 0.00013), (0.5, 0.5), (0.501, 0.51), (123.4, 130.0), (0.0, 0.0)]
)
def test_tolerances_are_rounded_up_to_two_digits(value: float, rounded: float) -> None:
    assert round_up(value) == rounded


def test_the_block_can_be_pasted_into_the_settings(tmp_path: Path) -> None:
    proposals = [one(*[series(1.0)] * 5), Proposal("", "num-zeros", 5, 1, rtol=0.013, atol=4.0, catches=0.02)]
    block = settings_block(proposals, "moe/tiny/*")
    (tmp_path / "pyproject.toml").write_text(block)
    settings = config.load(tmp_path)
    assert settings.tolerance_for("lm loss", "moe/tiny/golden_values_dev_dgx_h100.json").exact
    zeros = settings.tolerance_for("num-zeros", "moe/tiny/golden_values_dev_dgx_h100.json")
    assert (zeros.rtol, zeros.atol, zeros.exact) == (0.013, 4.0, False)


def test_runs_are_log_folders_documents_and_folders_of_log_folders(run: Run, tmp_path: Path) -> None:
    for i in range(4):
        write_events(tmp_path / "runs" / str(i) / "events.out.tfevents.1.h", {"lm loss": {1: 1.0 + i / 128, 2: 2.0}})
    (tmp_path / "five.json").write_bytes(golden_json(4, **{"lm loss": {1: 1.0 + 5 / 128, 2: 2.0}}))
    got = run(tmp_path, "tolerance", "--from-runs", "runs", "five.json", "--format", "json")
    assert (got.code, len(got.json["runs"]), got.json["metrics"][0]["n_runs"]) == (0, 5, 5)
    assert '"lm loss" = { exact = false, rtol = ' in got.json["settings"]


def test_revisions_are_runs_whose_goldens_keep_their_paths(run: Run, make_repo: Callable[..., ScratchRepo]) -> None:
    path = "goldens/moe/tiny/golden_values_dev_dgx_h100.json"
    repo = make_repo("repo", {path: golden_json(4, **{"lm loss": {1: 1.0}})})
    repo.commit({path: golden_json(4, **{"lm loss": {1: 1.001}})})
    got = run(repo.top, "tolerance", "--from-runs", "git:HEAD", "git:HEAD^", "git:HEAD", "--format", "json").json
    (found,) = got["metrics"]
    assert (found["path"], found["metric"], found["n_runs"]) == (path, "lm loss", 3)
    assert '"lm loss@moe/tiny/golden_values_dev_dgx_h100.json"' in got["settings"]


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ([], 2),
        (["--from-runs", "nowhere"], 2),
        (["--from-runs", "bad.json"], 3),
        (["--from-runs", "x.json", "--alpha", "2"], 2),
    ],
)
def test_wrong_runs_are_said(run: Run, tmp_path: Path, arguments: list[str], code: int) -> None:
    (tmp_path / "bad.json").write_bytes(b"[")
    got = run(tmp_path, "tolerance", *arguments)
    assert (got.code, got.out) == (code, "")


def test_too_few_runs_end_in_1(run: Run, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_bytes(golden_json(a={1: 1.0}))
    got = run(tmp_path, "tolerance", "--from-runs", "a.json")
    assert got.code == 1
    assert "too few" in got.out


@pytest.mark.corpus
@pytest.mark.parametrize("case", ["gpt_tiny_deterministic", "moe_tiny_deterministic", "gpt_tiny_nondeterministic"])
def test_real_runs_that_agree_bit_for_bit_are_exact(run: Run, gpu_runs: Path, tmp_path: Path, case: str) -> None:
    got = run(tmp_path, "tolerance", "--from-runs", str(gpu_runs / case), "--metric", "lm loss", "--format", "json").json
    assert [m["exact"] for m in got["metrics"]] == [True]


Curves = dict[str, dict[int, float]]


@pytest.fixture(scope="module")
def noisy(gpu_runs: Path) -> list[Curves]:
    """The twelve runs of a mixture of experts with real noise."""
    return [_curves(gpu_runs / "moe_tiny_nondeterministic" / f"run_{i}") for i in range(12)]


def _curves(folder: Path) -> Curves:
    (repeat,) = repeats.open_repeats([str(folder)], config.Settings(folder), ("lm loss", "grad-norm", "iteration-time"))
    return {m: dict(zip(s.steps, s.values, strict=True)) for m, s in repeat.sample[""].items()}


def _verdict(obtained: Curves, golden: Curves, limits: Mapping[str, Tolerance], metric: str) -> bool:
    case = TestConfig(metrics=(metric,), metrics_given=True, approximate_only=True)
    have, want = (golden_json(4, **{metric: side[metric]}) for side in (obtained, golden))
    return rules.check(have, want, case, tolerance_for=limits.__getitem__).passed


def _limits(runs: list[Curves]) -> dict[str, Tolerance]:
    samples = [{"": {m: Series(m, tuple(c), tuple(c.values())) for m, c in r.items()}} for r in runs]
    base = {"iteration-time": HARNESS_TOLERANCES["iteration-time"]}
    found = propose(samples, 0.01, lambda m: base.get(m, Tolerance()))
    return {p.metric: Tolerance(p.rtol or 0.0, p.atol, window=p.window) for p in found}


@pytest.mark.corpus
def test_each_held_out_repeat_passes_a_tolerance_set_without_it(noisy: list[Curves]) -> None:
    for i, left in enumerate(noisy):
        rest = noisy[:i] + noisy[i + 1 :]
        limits = _limits(rest)
        assert limits["lm loss"].rtol < 0.001
        for golden in rest:
            for metric in ("lm loss", "grad-norm", "iteration-time"):
                assert _verdict(left, golden, limits, metric)


@pytest.mark.corpus
@pytest.mark.parametrize(
    ("fault", "metric"), [("overflow", "lm loss"), ("scaled_loss", "lm loss"), ("grad_norm_undercount", "grad-norm")]
)
def test_planted_faults_fail_against_every_repeat(gpu_runs: Path, noisy: list[Curves], fault: str, metric: str) -> None:
    sound, faulty = (
        _curves(gpu_runs / "gpt_tiny_deterministic" / "run_0"),
        _curves(gpu_runs / f"gpt_tiny_fault_{fault}" / "run_0"),
    )
    factor = {s: faulty[metric][s] / v for s, v in sound[metric].items()}
    limits = _limits(noisy)
    for obtained in noisy:
        planted = {metric: {s: v * factor[s] for s, v in obtained[metric].items()}}
        for golden in noisy:
            assert not _verdict(planted, golden, limits, metric)


@pytest.mark.corpus
def test_a_slow_second_half_is_said_not_to_be_seen(run: Run, gpu_runs: Path, tmp_path: Path) -> None:
    words = ("tolerance", "--from-runs", str(gpu_runs / "gpt_tiny_deterministic"), "--metric", "iteration-time")
    (got,) = run(tmp_path, *words, "--format", "json").json["metrics"]
    assert (got["catches_late"], got["warning"]) == (None, "a change in the second half of the run is not seen")


def test_runs_come_from_the_catalog(run: Run, make_repo: Callable[..., ScratchRepo]) -> None:
    path = "goldens/moe/tiny/golden_values_dev_dgx_h100.json"
    repo = make_repo("repo", {path: golden_json(4, **{"lm loss": {1: 1.0}})})
    for i in range(3):
        place = repo.top / f"run{i}" / "moe" / "tiny" / "golden_values_dev_dgx_h100.json"
        place.parent.mkdir(parents=True)
        place.write_bytes(golden_json(4, **{"lm loss": {1: 1.0 + i / 1024}}))
        assert run(repo.top, "record", "--from-job", f"run{i}").code == 0
    names = [f"catalog:run{i}" for i in range(3)]
    got = run(repo.top, "tolerance", "--from-runs", *names, "--format", "json")
    assert (got.code, [(m["path"], m["n_runs"]) for m in got.json["metrics"]]) == (0, [(path, 3)])
    unknown = run(repo.top, "tolerance", "--from-runs", "catalog:run9")
    assert (unknown.code, "the catalog has no values of run run9" in unknown.err) == (2, True)


def test_nothing_of_the_catalog_is_changed_by_a_hostile_name(run: Run, make_repo: Callable[..., ScratchRepo]) -> None:
    repo = make_repo("repo", {"goldens/moe/tiny/golden_values_dev_dgx_h100.json": b"{}"})
    assert run(repo.top, "tolerance", "--from-runs", "catalog:x'; DROP TABLE run; --").code == 4
