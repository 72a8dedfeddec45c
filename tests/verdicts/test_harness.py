"""Megatron-LM's rules for pretraining and resume, each with values worked out by hand, its traps included."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

from goldenctl.rules import MetricVerdict, Rules, Verdict, check
from goldenctl.rules.harness import allowed_bad_steps, enough_close, window
from goldenctl.testconfig import TestConfig

Values = dict[int, Any]


def block(values: Values, **extra: Any) -> dict[str, Any]:
    steps = list(values)
    grid = {"start_step": steps[0] if steps else 1, "end_step": steps[-1] if steps else 1, "step_interval": 1}
    return grid | {"values": {str(k): v for k, v in values.items()}} | extra


def document(**metrics: Any) -> bytes:
    """Underscores stand for blanks: ``lm_loss``; hyphens come from double underscores: ``iteration__time``."""
    named = {k.replace("__", "-").replace("_", " "): v for k, v in metrics.items()}
    return json.dumps({k: block(v) if all(isinstance(s, int) for s in v) else v for k, v in named.items()}).encode()


def judge(obtained: bytes, golden: bytes, *metrics: str, approximate: bool = False, **config: Any) -> Verdict:
    case = TestConfig(metrics=metrics, metrics_given=bool(metrics), approximate_only=approximate, **config)
    return check(obtained, golden, case, rules=Rules.HARNESS)


def loss(obtained: Values, golden: Values, *, approximate: bool = True, full: bool = False) -> MetricVerdict:
    precision = {"value_precision": "full"} if full else {}
    have = json.dumps({"lm loss": block(obtained)}).encode()
    want = json.dumps({"lm loss": block(golden, **precision)}).encode()
    (verdict,) = judge(have, want, "lm loss", approximate=approximate).metrics
    return verdict


def flat(steps: int, bad: int, value: float = 2.0) -> Values:
    """1.0 at every step, and another value at the first ``bad`` ones."""
    return {s: value if s <= bad else 1.0 for s in range(1, steps + 1)}


# --- the number of bad steps, and the floating-point trap


@pytest.mark.parametrize(
    ("steps", "bad", "passes"),
    [
        (1, 0, True), (1, 1, False),
        (2, 1, True), (2, 2, False),
        (3, 0, True), (3, 1, False),
        (4, 1, True), (4, 2, False),
        (7, 1, False), (8, 1, True),
        (19, 1, False), (20, 1, True), (20, 2, False),
        (27, 0, True), (27, 1, False), (28, 1, True),
        (50, 1, True), (50, 2, False),
        (100, 1, True), (100, 2, False), (199, 1, True), (199, 2, False),
        (200, 2, True), (200, 3, False),
        (435, 4, False), (435, 3, True),
        (2000, 20, True), (2000, 21, False),
        (5000, 50, True), (9537, 50, True), (9537, 51, False),
    ],
)  # fmt: skip
def test_the_allowed_bad_steps_pass_except_where_floating_point_refuses_them(steps: int, bad: int, passes: bool) -> None:
    got = loss(flat(steps, bad), flat(steps, 0))
    assert (got.approximate, got.passed, got.n_exceeding) == (passes, passes, bad)


def test_the_trap_refuses_exactly_the_allowed_number_for_69_lengths_up_to_20000() -> None:
    trapped = [t for t in range(2, 20001) if not enough_close(t, allowed_bad_steps(t))]
    assert (len(trapped), trapped[:12]) == (69, [3, 7, 19, 27, 63, 171, 435, 511, 536, 556, 567, 870])


def test_the_trap_is_named_as_the_reason() -> None:
    assert "rounding refuses exactly that many" in loss(flat(19, 1), flat(19, 0)).reason
    assert "rounding" not in loss(flat(19, 2), flat(19, 0)).reason


# --- closeness


@pytest.mark.parametrize(
    ("obtained", "golden", "passes"),
    [
        (1.05, 1.0, False),  # 1.05 - 1.0 is 0.050000000000000044 in float64
        (1.04999, 1.0, True),
        (0.95, 1.0, False),  # and 1.0 - 0.95 is 0.050000000000000044
        (0.95001, 1.0, True),
        (100.0, 105.2, True),  # 5.2 <= 5.26, the golden's 5 %
        (105.2, 100.0, False),  # 5.2 > 5.0
        (0.0, 0.0, True),
        (0.00001, 0.0, False),
        (0.000004, 0.0, True),  # rounded to five decimals first
        (-1.04, -1.0, True),
        (-1.0, 1.0, False),
    ],
)
def test_closeness_is_one_sided_on_the_golden_and_rounds_first(obtained: float, golden: float, passes: bool) -> None:
    assert loss({1: obtained}, {1: golden}).approximate is passes


@pytest.mark.parametrize(
    ("obtained", "golden", "passes"),
    [
        ({}, {1: "nan"}, True),  # missing counts as "nan", and both strings as infinity
        ({1: "nan"}, {1: "nan"}, True),
        ({1: 5.0}, {1: "nan"}, False),
        ({1: 1.5}, {1: "1.5"}, False),
        ({1: "9.9"}, {1: "1.5"}, True),
        ({1: "abc"}, {1: "inf"}, True),
        ({1: math.inf}, {1: "1.5"}, True),
        ({1: math.inf}, {1: math.inf}, True),
        ({1: -math.inf}, {1: -math.inf}, True),
        ({1: -math.inf}, {1: math.inf}, False),
        ({1: math.nan}, {1: math.nan}, False),
        ({1: math.nan}, {1: "nan"}, False),
        ({1: 1.0}, {1: math.nan}, False),
        ({1: math.nan}, {1: 1.0}, False),
        ({1: math.inf}, {1: 1e300}, False),
        ({}, {1: 1.0}, False),
        ({1: True}, {1: 1.0}, True),  # its reader turns true into 1
    ],
)
def test_strings_and_missing_steps_are_infinity_and_nan_is_never_close(obtained: Values, golden: Values, passes: bool) -> None:
    got = loss({2: 1.0, **obtained}, {**golden, 2: 1.0, 3: 1.0, 4: 1.0} | {})
    # of steps 1 to 4 the obtained side has 2 and perhaps 1: steps 3 and 4 exceed in every row
    assert got.n_exceeding == (2 if passes else 3)


def test_a_curve_one_step_short_passes_the_approximate_lane() -> None:
    short = dict.fromkeys(range(1, 50), 1.0)
    assert loss(short, flat(50, 0)).passed
    assert not loss(short, flat(50, 0), approximate=False).passed


def test_extra_steps_of_the_run_are_ignored() -> None:
    assert loss(flat(60, 0), flat(50, 0), approximate=False).passed


# --- the exact lane and the precision marker


@pytest.mark.parametrize(
    ("obtained", "golden", "full", "passes"),
    [
        (10.123456789, 10.12346, False, True),
        (10.123454, 10.12346, False, False),  # rounds to 10.12345
        (10.123456789, 10.12346, True, False),
        (0.5, 0.5, True, True),
        (0.5000000596046448, 0.5, True, False),  # one float32 ulp away
        (0.5000000596046448, 0.5, False, True),
        (math.inf, "nan", False, True),
    ],
)
def test_the_marker_decides_how_exact_exact_is(obtained: float, golden: Any, full: bool, passes: bool) -> None:
    assert loss({1: obtained}, {1: golden}, approximate=False, full=full).exact is passes


def test_the_exact_lane_allows_no_step_and_a_declared_case_skips_it() -> None:
    got = loss({s: 1.0 if s > 1 else 1.001 for s in range(1, 51)}, flat(50, 0), approximate=False)
    assert (got.passed, got.exact, got.approximate, got.n_inexact, got.first_bad_step) == (False, False, True, 1, 1)
    assert got.reason == "exact comparison: 1 of 50 steps differ, first step 1"
    skipped = loss({s: 1.0 if s > 1 else 1.001 for s in range(1, 51)}, flat(50, 0))
    assert (skipped.passed, skipped.exact) == (True, None)


@pytest.mark.parametrize(
    ("metric", "rtol", "exact"),
    [
        ("mem-allocated-bytes", 0.05, False), ("mem-max-allocated-bytes", 0.05, False),
        ("lm loss", 0.05, True), ("mtp_1 loss", 0.05, True), ("mtp_2 loss", 0.05, True), ("total loss", 0.05, True),
        ("num-zeros", 0.20, True),
    ],
)  # fmt: skip
def test_each_metric_has_its_tolerance_and_lanes(metric: str, rtol: float, exact: bool) -> None:
    want = json.dumps({metric: block({1: 1000.0})}).encode()
    inside, outside = (json.dumps({metric: block({1: 1000.0 * (1 + rtol) + d})}).encode() for d in (-0.01, 0.01))
    assert judge(inside, want, metric, approximate=True).passed
    assert not judge(outside, want, metric, approximate=True).passed
    assert judge(inside, want, metric).passed is not exact


# --- iteration-time


def times(steps: Any, value: float = 2.0) -> Values:
    return dict.fromkeys(steps, value)


def timing(obtained: Values, golden: Values) -> MetricVerdict:
    have = json.dumps({"iteration-time": block(obtained)}).encode()
    (verdict,) = judge(have, json.dumps({"iteration-time": block(golden)}).encode(), "iteration-time").metrics
    return verdict


@pytest.mark.parametrize("last", [26, 27, 28, 29])
def test_a_golden_that_ends_between_the_windows_always_fails(last: int) -> None:
    got = timing(times(range(1, last + 1)), times(range(1, last + 1)))
    assert not got.passed
    assert got.reason == f"the golden ends at step {last}, before the window of steps 30 to 45: the harness can only fail"


@pytest.mark.parametrize(
    ("finite", "steps"),
    [
        (range(1, 26), list(range(5, 21))),
        (range(1, 5), []),
        ([1, 22, 23, 24, 25], [22, 23, 24, 25]),
        ([1, 2, 3, 4, 5], [5]),
        (range(1, 31), [30]),
        (range(1, 51), list(range(30, 46))),
        (range(100, 2001, 100), [100, 200, 300, 400]),
        ([1, 50, 60], [50, 60]),
        ([], []),
    ],
)
def test_the_window_is_steps_5_to_20_up_to_step_25_and_30_to_45_after(finite: Any, steps: list[int]) -> None:
    assert window(list(finite)) == steps


def test_only_finite_golden_steps_make_the_window() -> None:
    golden = {1: "nan", **times(range(2, 51)), 50: "nan"}
    obtained = times(range(2, 46), 2.0)
    assert timing(obtained, golden).passed
    assert (
        timing(obtained, dict.fromkeys(range(1, 51), "nan")).reason
        == "the golden has no finite step: the harness can only fail"
    )


@pytest.mark.parametrize(("value", "passes"), [(2.09, True), (2.11, False), (1.91, True), (1.89, False)])
def test_the_median_may_be_5_percent_off_both_ways(value: float, passes: bool) -> None:
    assert timing(times(range(1, 51), value), times(range(1, 51))).passed is passes


def test_a_median_hides_half_of_the_window_and_missing_steps_are_infinite() -> None:
    golden = times(range(1, 51))  # sixteen steps, 30 to 45
    assert timing({s: 99.0 if 30 <= s < 37 else 2.0 for s in golden}, golden).passed
    assert not timing({s: 99.0 if 30 <= s < 39 else 2.0 for s in golden}, golden).passed
    assert timing({s: 2.0 for s in golden if not 30 <= s < 37}, golden).passed
    assert not timing({s: 2.0 for s in golden if not 30 <= s < 39}, golden).passed
    assert not timing({s: math.nan if s == 30 else 2.0 for s in golden}, golden).passed


# --- which metrics, and what ends the test


def test_without_metrics_loss_and_zeros_are_required() -> None:
    both = document(lm_loss={1: 1.0}, num__zeros={1: 5.0}, iteration__time={1: 1.0})
    assert [m.metric for m in judge(both, both).metrics] == ["lm loss", "num-zeros"]
    assert judge(both, document(lm_loss={1: 1.0})).reason == "required but not in the golden: num-zeros"


def test_a_metric_the_run_lacks_ends_the_test_at_once() -> None:
    golden = document(lm_loss={1: 1.0}, num__zeros={1: 5.0}, total_loss={1: 1.0})
    got = judge(document(lm_loss={1: 1.0}, total_loss={1: 9.0}), golden, "lm loss", "num-zeros", "total loss")
    assert [m.metric for m in got.metrics] == ["lm loss"]
    assert got.reason.startswith("'num-zeros' was not obtained")


def test_an_unknown_metric_is_a_key_error() -> None:
    both = json.dumps({"grad-norm": block({1: 1.0})}).encode()
    assert judge(both, both, "grad-norm").reason == "KeyError: the harness has no check for 'grad-norm'"


@pytest.mark.parametrize(
    ("golden", "reason"),
    [
        (b'{"lm loss": {"start_step": 1, "end_step": 2, "step_interval": 1, "values": [1.0, 2.0]}}', "expected a block"),
        (b'{"lm loss": {"start_step": 1, "end_step": 1, "step_interval": 1, "values": {"1": null}}}', "step 1 is null"),
        (b'{"lm loss": {"start_step": 1, "end_step": 1, "step_interval": 1, "values": {"a": 1.0}}}', "no integer"),
        (b'{"lm loss": {"end_step": 1, "step_interval": 1, "values": {"1": 1.0}}}', "start_step is null"),
        (b'{"iteration_timing_avg": 1.5}', "found a number"),
        (b'"{}"', "a string that holds JSON"),
        (b"", "it is empty"),
        (b"[", "not JSON"),
    ],
)
def test_a_document_its_reader_refuses_fails_whole(golden: bytes, reason: str) -> None:
    got = judge(document(lm_loss={1: 1.0}), golden, "lm loss")
    assert (got.passed, got.metrics) == (False, ())
    assert reason in got.reason


def test_step_keys_like_numbers_are_accepted() -> None:
    golden = b'{"lm loss": {"start_step": "1", "end_step": 2.0, "step_interval": 1, "values": {"2.0": 1.0}}}'
    assert judge(document(lm_loss={2: 1.0}), golden, "lm loss").passed


def test_skip_pytest_compares_nothing() -> None:
    got = judge(b"{}", b"[", skip_pytest=True)
    assert (got.passed, got.notes) == (True, ("SKIP_PYTEST=1: the harness compares nothing",))


# --- resume: phase 1 plays golden


def resumed(phase2: Values, phase1: Values, iters: int) -> Verdict:
    case = TestConfig(metrics=("lm loss",), metrics_given=True, test_type="ckpt-resume")
    one, two = (json.dumps({"lm loss": block(v)}).encode() for v in (phase1, phase2))
    return check(two, one, case, rules=Rules.HARNESS, resume_iters=iters)


def test_only_steps_after_the_middle_count_in_a_resume() -> None:
    first = {s: float(s) for s in range(1, 11)}
    assert resumed({s: "nan" if s <= 5 else float(s) for s in first}, first, 10).passed
    assert resumed({s: float(s) for s in range(6, 11)}, first, 10).passed
    wrong = resumed({s: 99.0 if s == 6 else float(s) for s in first}, first, 10)
    assert (wrong.passed, wrong.metrics[0].n_steps) == (False, 5)
    assert resumed({s: 99.0 if s == 5 else float(s) for s in first}, first, 11).passed  # 11 // 2 = 5


def test_a_resume_without_a_step_after_the_middle_fails() -> None:
    assert resumed({1: 1.0}, {1: 1.0}, 10).reason == "no step of 'lm loss' is after step 5"
