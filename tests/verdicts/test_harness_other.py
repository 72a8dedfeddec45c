"""Megatron-LM's rules for inference and reinforcement learning, traps included, with values worked out by hand."""

from __future__ import annotations

import json
from typing import Any

import pytest

from goldenctl.rules import Rules, Verdict, check
from goldenctl.testconfig import TestConfig

TOKENS_AND_LOGPROBS = ("generated_tokens", "logprobs")
RECORD = {
    "input_prompt": "a",
    "generated_text": "one two",
    "generated_tokens": [5, 6, 7],
    "logprobs": [-1.0, -2.0],
    "latency": 1,
}


def inference(obtained: Any, golden: Any, *metrics: str, **config: Any) -> Verdict:
    case = TestConfig(metrics=metrics, metrics_given=True, mode="inference", **config)
    return check(json.dumps(obtained).encode(), json.dumps(golden).encode(), case, rules=Rules.HARNESS)


def record(**changed: Any) -> dict[str, Any]:
    return {"0": RECORD | changed}


# --- inference


@pytest.mark.parametrize(
    ("changed", "passes"),
    [
        ({}, True),
        ({"generated_tokens": [5, 6, 8]}, False),
        ({"generated_tokens": [5, 6]}, False),
        ({"generated_tokens": [5, 6, 7, 8]}, False),
        ({"logprobs": [-1.0009, -2.0]}, True),
        ({"logprobs": [-1.0011, -2.0]}, False),
        ({"logprobs": [-1.0]}, False),
        ({"logprobs": [-1.0, None]}, False),
        ({"latency": 99.0, "step_count": 3, "generated_text": "x"}, True),
    ],
)
def test_tokens_are_equal_and_log_probabilities_within_a_thousandth(changed: dict[str, Any], passes: bool) -> None:
    assert inference(record(**changed), record(), *TOKENS_AND_LOGPROBS).passed is passes


def test_nan_log_probabilities_fail_and_equal_infinities_pass() -> None:
    nan, inf = (json.dumps({"0": {"logprobs": [float(v)]}}).encode() for v in ("nan", "-inf"))
    case = TestConfig(metrics=("logprobs",), metrics_given=True, mode="inference")
    assert not check(nan, nan, case, rules=Rules.HARNESS).passed
    assert check(inf, inf, case, rules=Rules.HARNESS).passed


@pytest.mark.parametrize(
    ("obtained", "golden", "passes"),
    [
        ("one two", "one two", True),
        ("one", "one two", True),  # only the shorter length counts
        ("one two three", "one two", True),
        ("one too", "one two", False),
        ("", "one two", False),
        ("one", "", False),
    ],
)
def test_texts_are_equal_over_the_shorter_one(obtained: str, golden: str, passes: bool) -> None:
    got = inference(record(generated_text=obtained), record(generated_text=golden), "generated_text")
    assert got.passed is passes


@pytest.mark.parametrize(
    ("obtained", "golden", "passes"),
    [
        ([9.0, 100.0, 100.0], [1.0, 100.0, 100.0], True),  # the first item is warm-up
        ([9.0, 90.0], [1.0, 100.0], True),
        ([9.0, 89.9], [1.0, 100.0], False),
        ([9.0, 119.9], [1.0, 100.0], True),
        ([9.0, 120.0], [1.0, 100.0], False),  # too fast fails as well
        ([100.0], [100.0], False),  # nothing left without the warm-up
        (100.0, [1.0, 100.0], False),
    ],
)
def test_throughput_lies_between_0_9_and_1_2_of_the_median(obtained: Any, golden: Any, passes: bool) -> None:
    got = inference({**record(), "throughput": obtained}, {**record(), "throughput": golden}, "throughput", "generated_tokens")
    assert got.passed is passes


@pytest.mark.parametrize(
    ("obtained", "golden", "passes"),
    [
        (1050, 1000, True), (1051, 1000, False), (950, 1000, True), (949, 1000, False), (0, 0, False),
        ([1, 1000, 1000], 1000, True), ([1000], 1000, True), ([], 1000, False), (None, 1000, False),
    ],
)  # fmt: skip
def test_memory_is_within_5_percent_of_a_positive_golden(obtained: Any, golden: Any, passes: bool) -> None:
    name = "mem-max-allocated-bytes"
    assert inference({**record(), name: obtained}, {**record(), name: golden}, name, "logprobs").passed is passes


def test_memory_is_looked_at_only_when_golden_and_metrics_have_it() -> None:
    golden = {**record(), "mem-max-allocated-bytes": 1000}
    assert inference(record(), golden, "generated_tokens").passed
    missing = inference(record(), golden, "generated_tokens", "mem-max-allocated-bytes")
    assert [m.reason for m in missing.failed] == ["KeyError: 'mem-max-allocated-bytes'"]


@pytest.mark.parametrize(
    ("obtained", "golden", "reason"),
    [
        ({"0": RECORD, "1": RECORD}, {"0": RECORD}, "request '1' is not in the golden"),
        ({"0": RECORD}, {"0": RECORD, "1": RECORD}, "KeyError: the request was not obtained"),
        ({}, {}, "the golden is empty"),
        ({"0": RECORD}, {"0": {"latency": 1}}, "holds none of METRICS"),
        ({"0": {"logprobs": [-1.0]}}, {"0": RECORD}, "KeyError: 'generated_tokens'"),
    ],
)
def test_the_golden_ids_must_all_be_there_and_each_be_compared(obtained: Any, golden: Any, reason: str) -> None:
    got = inference(obtained, golden, *TOKENS_AND_LOGPROBS)
    assert not got.passed
    assert any(reason in r for r in (got.reason, *(m.reason for m in got.failed)))


def test_empty_metrics_and_lightweight_mode_pass_without_looking() -> None:
    assert inference({"0": {}}, {"0": RECORD}).passed
    assert inference({"0": {}}, {"0": RECORD}, "logprobs", lightweight=True).passed


def test_the_unused_prefill_metric_always_fails() -> None:
    name = "lifetime_prefill_token_count"
    golden = {**record(), name: 4}
    assert inference(golden, golden, "logprobs").passed
    assert not inference(golden, golden, "logprobs", name).passed


def test_routing_compares_the_golden_token_rows_as_sets() -> None:
    golden = record(routing_indices=[[3, 1], [2, 5]], routing_indices_token_indices=[0, 2])
    rows = [[1, 3], [9, 9], [5, 2]]
    assert inference(record(routing_indices=rows), golden, "routing_indices").passed
    assert not inference(record(routing_indices=[[1, 3], [5, 2], [9, 9]]), golden, "routing_indices").passed
    assert not inference(record(routing_indices=rows[:2]), golden, "routing_indices").passed
    assert not inference(record(routing_indices=rows), record(routing_indices=rows), "routing_indices").passed  # no row list


def test_a_document_encoded_twice_is_read() -> None:
    assert inference(json.dumps(record()), json.dumps(record()), *TOKENS_AND_LOGPROBS).passed


# --- reinforcement learning


def rl(obtained: dict[str, dict[str, Any]], golden: dict[str, dict[str, Any]], *metrics: str, start: int = 1) -> Verdict:
    case = TestConfig(metrics=metrics, metrics_given=True, mode="rl", throughput_start=start)
    have, want = ({k: {"values": v} for k, v in side.items()} for side in (obtained, golden))
    return check(json.dumps(have).encode(), json.dumps(want).encode(), case, rules=Rules.HARNESS)


def steps(*values: Any) -> dict[str, Any]:
    return {str(i): v for i, v in enumerate(values, 1)}


@pytest.mark.parametrize(("value", "passes"), [(114.9, True), (115.1, False), (85.1, True), (84.9, False)])
def test_iteration_times_have_medians_within_15_percent(value: float, passes: bool) -> None:
    got = rl({"iteration-time": steps(999.0, value)}, {"iteration-time": steps(1.0, 100.0)}, "iteration-time")
    assert got.passed is passes


def test_the_start_step_is_a_place_in_the_list() -> None:
    golden = {"iteration-time": {"10": 1.0, "11": 1.0, "12": 100.0}}
    assert rl({"iteration-time": {"10": 9.0, "11": 9.0, "12": 100.0}}, golden, "iteration-time", start=2).passed
    assert not rl(golden, golden, "iteration-time", start=3).passed  # an empty list has no median


def test_a_string_among_numbers_is_a_type_error() -> None:
    got = rl({"iteration-time": steps("nan", 1.0, "nan", 1.0)}, {"iteration-time": steps(1.0, 1.0, 1.0, 1.0)}, "iteration-time")
    assert got.failed[0].reason.startswith("TypeError")


@pytest.mark.parametrize(("value", "passes"), [(110.0, True), (110.1, False), (1.0, True)])
def test_memory_has_an_upper_bound_only(value: float, passes: bool) -> None:
    name = "mem-max-allocated-bytes"
    assert rl({name: steps(999.0, 5.0, value)}, {name: steps(1.0, 100.0, 50.0)}, name).passed is passes


def test_the_loss_is_never_compared_under_its_real_name() -> None:
    got = rl({"lm loss": steps(99.0)}, {"lm loss": steps(1.0)}, "lm loss", "num-zeros")
    assert (got.passed, got.metrics) == (True, ())
    assert got.notes == ("never compared by the harness: lm loss, num-zeros",)


@pytest.mark.parametrize(
    ("obtained", "golden", "passes"),
    [
        (steps(1.009), steps(1.0), True), (steps(1.011), steps(1.0), False),
        (steps(0.0000009), steps(0.0), True), (steps(0.0000011), steps(0.0), False),
        ({}, steps(1.0), False), (steps(1.0, 9.0), steps(1.0), True),
        (steps(float("nan")), steps(1.0), True), (steps(1.0), steps(float("nan")), True),
        (steps("nan"), steps(1.0), False),
    ],
)  # fmt: skip
def test_a_hyphenated_loss_may_be_one_percent_off_and_nan_passes(obtained: Any, golden: Any, passes: bool) -> None:
    assert rl({"lm-loss": obtained}, {"lm-loss": golden}, "lm-loss").passed is passes


def test_every_golden_metric_must_be_obtained() -> None:
    assert rl({"a": steps(1.0)}, {"a": steps(1.0), "b": steps(1.0)}, "a").reason == "not obtained: b"
    assert rl({"a": steps(1.0), "c": steps(1.0)}, {"a": steps(1.0)}, "a").passed
    assert rl({}, {}, "a").reason == "the golden is empty"
