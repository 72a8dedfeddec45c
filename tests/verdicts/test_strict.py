"""Strict rules are what the harness's rules mean to be, and where the two differ the reason is given."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goldenctl.config import HARNESS_TOLERANCES, Tolerance
from goldenctl.rules import MetricVerdict, Rules, Verdict, check, disagreements
from goldenctl.testconfig import TestConfig

Values = dict[int, Any]


def document(metrics: dict[str, Values], **extra: Any) -> bytes:
    blocks = {}
    for name, values in metrics.items():
        steps = list(values) or [1]
        grid = {"start_step": steps[0], "end_step": steps[-1], "step_interval": 1}
        blocks[name] = grid | {"values": {str(k): v for k, v in values.items()}} | extra
    return json.dumps(blocks).encode()


def loss(
    obtained: Values,
    golden: Values,
    *,
    approximate: bool = True,
    tolerance: Tolerance | None = None,
    metric: str = "lm loss",
    **extra: Any,
) -> MetricVerdict:
    case = TestConfig(metrics=(metric,), metrics_given=True, approximate_only=approximate)
    chosen = tolerance or HARNESS_TOLERANCES.get(metric, Tolerance())
    got = check(document({metric: obtained}), document({metric: golden}, **extra), case, tolerance_for=lambda _: chosen)
    return got.metrics[0]


def flat(steps: int, bad: int) -> Values:
    return {s: 2.0 if s <= bad else 1.0 for s in range(1, steps + 1)}


@pytest.mark.parametrize("steps", [2, 3, 7, 19, 27, 63, 171, 199])
def test_exactly_one_bad_step_passes_below_200_steps(steps: int) -> None:
    assert loss(flat(steps, 1), flat(steps, 0)).passed
    assert not loss(flat(steps, 2), flat(steps, 0)).passed


@pytest.mark.parametrize(("steps", "allowed"), [(200, 2), (435, 4), (5000, 50), (9537, 50)])
def test_long_curves_allow_one_percent_up_to_fifty(steps: int, allowed: int) -> None:
    assert loss(flat(steps, allowed), flat(steps, 0)).passed
    assert not loss(flat(steps, allowed + 1), flat(steps, 0)).passed


@pytest.mark.parametrize(
    ("obtained", "golden", "reason"),
    [
        ({1: 1.0}, {1: 1.0, 2: 1.0, 3: 1.0}, "2 of 3 steps are missing: 2, 3"),
        ({1: "nan", 2: 1.0}, {1: 1.0, 2: 1.0}, "the obtained value is not finite at steps 1"),
        ({1: "nan", 2: 1.0}, {1: "nan", 2: 1.0}, "the golden itself is not finite at steps 1"),
        ({1: "inf", 2: 1.0}, {1: "inf", 2: 1.0}, "the golden itself is not finite at steps 1"),
        ({2: 1.0}, {1: "nan", 2: 1.0}, "1 of 2 steps are missing: 1"),
        ({1: "1.5"}, {1: "1.5"}, "the golden holds the string '1.5'"),
        ({}, {1: 1.0}, "1 of 1 steps are missing: 1"),
    ],
)
def test_non_finite_is_never_close_and_a_missing_step_fails(obtained: Values, golden: Values, reason: str) -> None:
    got = loss(obtained, golden)
    assert (got.passed, got.reason) == (False, reason)


def test_the_marker_full_makes_the_exact_lane_exact() -> None:
    near, golden = {1: 0.5000000596046448}, {1: 0.5}
    assert loss(near, golden, approximate=False).passed
    assert not loss(near, golden, approximate=False, value_precision="full").passed


def test_a_failure_shows_the_numbers_a_person_needs() -> None:
    got = loss({1: 1.0, 2: 1.2, 3: 3.0, 4: 1.0}, flat(4, 0))
    assert got.reason == "2 of 4 steps exceed where 1 may: 2, 3"
    assert (got.n_steps, got.n_exceeding, got.n_allowed, got.first_bad_step) == (4, 2, 1, 2)
    assert (got.worst_step, got.worst_golden, got.worst_obtained, got.max_rel_diff, got.max_abs_diff) == (3, 1.0, 3.0, 2.0, 2.0)
    assert got.tolerance == "5 % per step, 1 of 4 steps may exceed"
    assert got.profile == pytest.approx((0.0, 0.2, 2.0, 0.0))


def test_a_better_value_passes_where_the_direction_says_so_and_asks_for_a_refresh() -> None:
    lower = Tolerance(exact=True, direction="lower")
    got = loss({1: 0.5, 2: 1.0}, {1: 1.0, 2: 1.0}, approximate=False, tolerance=lower)
    assert (got.passed, got.note) == (True, "better than the golden at 1 steps: refresh it to keep the gain")
    assert not loss({1: 1.5, 2: 1.5}, {1: 1.0, 2: 1.0}, tolerance=lower).passed
    assert not loss({1: "nan", 2: 1.0}, {1: 1.0, 2: 1.0}, tolerance=lower).passed


@pytest.mark.parametrize("last", [26, 29])
def test_iteration_time_is_judged_where_the_harness_can_only_fail(last: int) -> None:
    golden = dict.fromkeys(range(1, last + 1), 2.0)
    assert loss(golden, golden, metric="iteration-time").passed
    slow = dict.fromkeys(golden, 3.0)
    assert not loss(slow, golden, metric="iteration-time").passed


def test_iteration_time_ignores_warm_up_in_the_golden_but_no_lost_step() -> None:
    golden = {1: "nan", **dict.fromkeys(range(2, 51), 2.0)}
    assert loss(dict.fromkeys(range(2, 51), 2.0), golden, metric="iteration-time").passed
    lost = loss(dict.fromkeys(range(2, 50), 2.0), golden, metric="iteration-time")
    assert lost.reason == "1 of 49 steps are missing: 50"
    broken = loss({**dict.fromkeys(range(2, 50), 2.0), 50: "nan"}, golden, metric="iteration-time")
    assert broken.reason == "1 of 49 steps are not finite: 50"


def test_every_required_metric_is_checked_even_after_one_is_missing() -> None:
    golden = document({"lm loss": {1: 1.0}, "num-zeros": {1: 1.0}, "total loss": {1: 1.0}})
    case = TestConfig(metrics=("lm loss", "num-zeros", "total loss", "grad-norm"), metrics_given=True)
    got = check(document({"lm loss": {1: 1.0}, "total loss": {1: 9.0}}), golden, case)
    assert [(m.metric, m.passed) for m in got.metrics] == [
        ("lm loss", True), ("num-zeros", False), ("total loss", False), ("grad-norm", False),
    ]  # fmt: skip


def test_without_a_configuration_the_usual_metrics_or_else_all_are_checked() -> None:
    usual = document({"iteration-time": {1: 1.0}, "lm loss": {1: 1.0}})
    assert [m.metric for m in check(usual, usual).metrics] == ["lm loss"]
    other = document({"kd loss": {1: 1.0}})
    assert [m.metric for m in check(other, other).metrics] == ["kd loss"]


@pytest.mark.parametrize("raw", [b"", b"{}", b"[", b"\xff", b"[1]"])
def test_a_document_that_cannot_be_read_fails_with_its_reason(raw: bytes) -> None:
    sound = document({"lm loss": {1: 1.0}})
    for obtained, golden, who in ((raw, sound, "obtained document"), (sound, raw, "golden")):
        got = check(obtained, golden, TestConfig())
        assert not got.passed
        assert who in got.reason


def test_a_resumed_run_is_compared_after_the_middle_only() -> None:
    case = TestConfig(metrics=("lm loss",), metrics_given=True)
    first = document({"lm loss": {s: float(s) for s in range(1, 11)}})
    second = document({"lm loss": {s: "nan" if s <= 5 else float(s) for s in range(1, 11)}})
    assert check(second, first, case, resume_iters=10).passed
    assert not check(second, first, case).passed


# --- reinforcement learning


def rl(obtained: dict[str, Values], golden: dict[str, Values], *metrics: str) -> Verdict:
    return check(document(obtained), document(golden), TestConfig(metrics=metrics, metrics_given=True, mode="rl"))


@pytest.mark.parametrize("name", ["lm loss", "lm-loss"])
def test_the_loss_is_really_compared_whatever_its_spelling(name: str) -> None:
    assert rl({"lm loss": {1: 1.009}}, {"lm loss": {1: 1.0}}, name).passed
    assert not rl({"lm loss": {1: 1.02}}, {"lm loss": {1: 1.0}}, name).passed
    assert not rl({"lm loss": {1: "nan"}}, {"lm loss": {1: 1.0}}, name).passed


def test_rl_memory_may_shrink_and_time_counts_from_the_second_value() -> None:
    memory, time = "mem-allocated-bytes", "iteration-time"
    assert rl({memory: {1: 900.0, 2: 10.0}}, {memory: {1: 1.0, 2: 100.0}}, memory).passed
    assert not rl({memory: {1: 1.0, 2: 111.0}}, {memory: {1: 1.0, 2: 100.0}}, memory).passed
    assert rl({time: {1: 9.0, 2: 1.14}}, {time: {1: 1.0, 2: 1.0}}, time).passed
    assert not rl({time: {1: 1.0, 2: 1.16}}, {time: {1: 1.0, 2: 1.0}}, time).passed


# --- inference


RECORD = {"generated_tokens": [5, 6], "logprobs": [-1.0], "generated_text": "one two"}


def inference(obtained: Any, golden: Any, *metrics: str) -> Verdict:
    case = TestConfig(metrics=metrics, metrics_given=True, mode="inference")
    return check(json.dumps(obtained).encode(), json.dumps(golden).encode(), case)


@pytest.mark.parametrize(
    ("obtained", "golden", "metrics", "passes"),
    [
        ({"0": RECORD}, {"0": RECORD}, (), True),
        ({"0": {**RECORD, "generated_tokens": [5, 7]}}, {"0": RECORD}, (), False),  # empty METRICS compare all the same
        ({"0": {**RECORD, "generated_text": "one"}}, {"0": RECORD}, ("generated_text",), False),
        ({"0": {**RECORD, "generated_text": "one two three"}}, {"0": RECORD}, ("generated_text",), True),
        ({"0": {**RECORD, "logprobs": ["nan"]}}, {"0": {**RECORD, "logprobs": ["nan"]}}, ("logprobs",), False),
        ({"0": RECORD, "1": RECORD}, {"0": RECORD}, ("logprobs",), False),
        ({"0": RECORD}, {"0": RECORD, "1": RECORD}, ("logprobs",), False),
        ({"throughput": [100.0]}, {"throughput": [100.0]}, ("throughput",), True),
        ({"throughput": [1.0, 89.0]}, {"throughput": [1.0, 100.0]}, ("throughput",), False),
        ({"throughput": [1.0, "nan"]}, {"throughput": [1.0, 100.0]}, ("throughput",), False),
        (RECORD, RECORD, ("generated_tokens",), True),
        ({**RECORD, "generated_tokens": [1]}, RECORD, ("generated_tokens",), False),
        ({"0": RECORD}, {"0": RECORD}, ("routing_indices",), False),
        ({}, {}, ("logprobs",), False),
    ],
)
def test_every_request_is_compared_whole(obtained: Any, golden: Any, metrics: tuple[str, ...], passes: bool) -> None:
    assert inference(obtained, golden, *metrics).passed is passes


# --- where the two differ


def both(obtained: Values, golden: Values) -> tuple[Verdict, Verdict]:
    case = TestConfig(metrics=("lm loss",), metrics_given=True, approximate_only=True)
    have, want = document({"lm loss": obtained}), document({"lm loss": golden})
    return check(have, want, case, rules=Rules.HARNESS), check(have, want, case)


@pytest.mark.parametrize(
    ("obtained", "golden", "harness", "why"),
    [
        (flat(19, 1), flat(19, 0), False, "the harness's rounding refuses exactly that many"),
        ({1: 1.0}, {1: 1.0, 2: "nan"}, True, "1 of 2 steps are missing: 2 (steps 2 hold no number on either side"),
        (dict.fromkeys(range(1, 50), 1.0), flat(50, 0), True, "1 of 50 steps are missing: 50"),
    ],
)
def test_a_difference_between_the_rules_is_explained(obtained: Values, golden: Values, harness: bool, why: str) -> None:
    (found,) = disagreements(*both(obtained, golden))
    assert (found.metric, found.harness, found.strict) == ("lm loss", harness, not harness)
    assert why in found.why


def test_what_the_harness_never_looks_at_is_a_difference_too() -> None:
    case = TestConfig(metrics=("lm loss",), metrics_given=True, mode="rl")
    have, want = document({"lm loss": {1: 9.0}}), document({"lm loss": {1: 1.0}})
    (found,) = disagreements(check(have, want, case, rules=Rules.HARNESS), check(have, want, case))
    assert (found.harness, found.strict) == (None, False)


def test_rules_that_agree_have_nothing_to_explain() -> None:
    assert disagreements(*both(flat(50, 0), flat(50, 0))) == ()
    assert disagreements(*both(flat(50, 9), flat(50, 0))) == ()


numbers = st.floats(allow_nan=False, allow_infinity=False, width=32)
curves = st.dictionaries(st.integers(1, 60), numbers, min_size=1, max_size=40)


@given(curves)
def test_a_finite_run_always_passes_against_itself(curve: Values) -> None:
    assert loss(curve, curve, approximate=False).passed


@given(curves, st.data())
def test_losing_a_step_or_a_number_never_passes(curve: Values, data: st.DataObject) -> None:
    step = data.draw(st.sampled_from(sorted(curve)))
    assert not loss({s: v for s, v in curve.items() if s != step}, curve).passed
    assert not loss({**curve, step: data.draw(st.sampled_from(["nan", math.inf, "-inf"]))}, curve).passed
