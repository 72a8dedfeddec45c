"""Two documents are compared step by step, and nothing that differs is lost."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goldenctl import compare
from goldenctl.compare import MetricDiff
from goldenctl.config import HARNESS_TOLERANCES, Tolerance
from goldenctl.goldenfile import Document, read
from tests.conftest import golden_json

NAN = "nan"


def doc(**metrics: dict[int, Any]) -> Document:
    return read(golden_json(4, **metrics))


def only(obtained: Document, golden: Document, tolerance: Tolerance | None = None) -> MetricDiff:
    diffs = compare.compare(obtained, golden, lambda _: tolerance or Tolerance())
    assert len(diffs) == 1
    return diffs[0]


def test_differences_are_obtained_minus_golden_relative_to_the_golden() -> None:
    diff = only(doc(lm_loss={1: 9.0, 2: 5.0, 3: 2.0}), doc(lm_loss={1: 10.0, 2: 4.0, 3: 2.0}))
    assert (diff.n_golden, diff.n_obtained, diff.n_common) == (3, 3, 3)
    assert (diff.max_abs_diff, diff.max_rel_diff) == (1.0, 0.25)
    assert diff.mean_abs_diff == pytest.approx(2 / 3)
    assert diff.mean_rel_diff == pytest.approx(0.35 / 3)
    assert diff.signed_mean_rel_diff == pytest.approx(0.15 / 3)
    assert (diff.worst_step, diff.worst_golden, diff.worst_obtained) == (2, 4.0, 5.0)
    assert diff.first_differing == 1
    assert (diff.median_golden, diff.median_obtained) == (4.0, 5.0)
    assert not diff.exact
    assert not diff.approximate


def test_a_golden_of_zero_has_no_relative_difference_and_the_absolute_one_counts() -> None:
    diff = only(doc(num_zeros={1: 0, 2: 3.0}), doc(num_zeros={1: 0, 2: 0}))
    assert (diff.max_rel_diff, diff.mean_rel_diff, diff.max_abs_diff) == (None, None, 3.0)
    assert (diff.worst_step, diff.approximate) == (2, True)  # one of two steps may exceed


def test_the_worst_step_goes_by_absolute_difference_once_a_golden_zero_changed() -> None:
    diff = only(doc(num_zeros={1: 5.0, 2: 1.1}), doc(num_zeros={1: 0.0, 2: 1.0}))
    assert diff.worst_step == 1
    assert diff.max_rel_diff == pytest.approx(0.1)


def test_a_zero_in_the_golden_must_be_met_exactly() -> None:
    assert compare.within(0.0, 0.0, Tolerance())
    assert not compare.within(5e-324, 0.0, Tolerance())


def test_a_step_at_the_edge_of_the_tolerance_passes_and_the_tolerance_is_the_goldens() -> None:
    assert compare.within(105.0, 100.0, Tolerance(rtol=0.05))
    assert not compare.within(100.0, 105.3, Tolerance(rtol=0.05))  # 5.3 > 5.265
    assert compare.within(105.3, 100.0, Tolerance(rtol=0.05, atol=0.5))


@pytest.mark.parametrize(
    ("obtained", "golden", "allowed"),
    [
        (math.nan, math.nan, True),
        (math.inf, math.inf, True),
        (-math.inf, -math.inf, True),
        (math.inf, -math.inf, False),
        (math.nan, 1.0, False),
        (1.0, math.nan, False),
        (math.inf, 1e308, False),
        (1.0, math.inf, False),
        (math.nan, math.inf, False),
    ],
)
def test_a_non_finite_value_is_close_to_itself_only(obtained: float, golden: float, allowed: bool) -> None:
    assert compare.within(obtained, golden, Tolerance(rtol=0.5, atol=math.inf)) is allowed


def test_nan_on_both_sides_at_one_step_is_equal_and_counted() -> None:
    diff = only(doc(lm_loss={1: NAN, 2: 1.0}), doc(lm_loss={1: "NaN", 2: 1.0}))
    assert (diff.exact, diff.approximate) == (True, True)
    assert (diff.nonfinite_golden, diff.nonfinite_obtained, diff.worst_step, diff.first_differing) == (1, 1, None, None)


def test_finite_that_became_nan_differs_and_names_its_step() -> None:
    diff = only(doc(lm_loss={1: 1.0, 2: NAN}), doc(lm_loss={1: 1.0, 2: 2.0}), Tolerance(bad_steps=0))
    assert (diff.exact, diff.approximate) == (False, False)
    assert (diff.nonfinite_golden, diff.nonfinite_obtained, diff.worst_step) == (0, 1, 2)
    assert (diff.max_abs_diff, diff.max_rel_diff) == (0.0, 0.0)


def test_missing_and_extra_steps_are_counted_on_their_sides() -> None:
    diff = only(doc(lm_loss={2: 1.0, 3: 1.0}), doc(lm_loss={1: 1.0, 2: 1.0, 4: 1.0}))
    assert (diff.n_common, diff.missing_steps, diff.extra_steps, diff.first_differing) == (1, 2, 1, 1)
    assert (diff.exact, diff.approximate) == (False, False)


def test_an_extra_step_alone_keeps_a_metric_approximately_right() -> None:
    diff = only(doc(lm_loss={1: 1.0, 2: 1.0}), doc(lm_loss={1: 1.0}))
    assert (diff.extra_steps, diff.exact, diff.approximate) == (1, False, True)


def test_a_metric_on_one_side_is_reported_with_no_common_step() -> None:
    diffs = compare.compare(doc(lm_loss={1: 1.0}), doc(num_zeros={1: 7.0, 2: 8.0}), lambda _: Tolerance())
    assert [(d.metric, d.n_golden, d.n_obtained, d.n_common, d.missing_steps, d.extra_steps) for d in diffs] == [
        ("num-zeros".replace("-", " "), 2, 0, 0, 2, 0),
        ("lm loss", 0, 1, 0, 0, 1),
    ]
    assert not any(d.exact or d.approximate for d in diffs)


@pytest.mark.parametrize(
    ("steps", "allowed"), [(1, 0), (2, 1), (99, 1), (199, 1), (200, 2), (4999, 49), (5000, 50), (20001, 50)]
)
def test_the_number_of_steps_that_may_exceed_follows_the_length(steps: int, allowed: int) -> None:
    assert compare.allowed_bad_steps(steps, Tolerance()) == allowed


@pytest.mark.parametrize("steps", [3, 7, 19, 27, 63])
def test_exactly_the_allowed_number_of_bad_steps_passes(steps: int) -> None:
    golden = doc(lm_loss=dict.fromkeys(range(1, steps + 1), 1.0))
    one = doc(lm_loss={s: 2.0 if s == 2 else 1.0 for s in range(1, steps + 1)})
    two = doc(lm_loss={s: 2.0 if s <= 2 else 1.0 for s in range(1, steps + 1)})
    assert only(one, golden).approximate
    assert not only(two, golden).approximate


def test_a_direction_lets_the_better_side_pass() -> None:
    golden, faster, slower = doc(a={1: 10.0}), doc(a={1: 5.0}), doc(a={1: 15.0})
    assert only(faster, golden, Tolerance(direction="lower")).approximate
    assert not only(slower, golden, Tolerance(direction="lower")).approximate
    assert only(slower, golden, Tolerance(direction="higher")).approximate


def test_medians_are_taken_over_the_window_and_not_over_warm_up() -> None:
    golden = doc(iteration_time={s: 50.0 if s < 5 else 2.0 for s in range(1, 21)})
    obtained = doc(iteration_time={s: 90.0 if s < 5 else 2.0625 for s in range(1, 21)})
    worse = doc(iteration_time={s: 50.0 if s < 5 else 2.11 for s in range(1, 21)})
    assert only(obtained, golden, Tolerance(window="median")).approximate
    assert not only(worse, golden, Tolerance(window="median")).approximate


def test_warm_up_steps_without_a_value_may_be_left_out_of_a_median_metric() -> None:
    golden = doc(iteration_time={1: NAN} | dict.fromkeys(range(2, 21), 2.0))
    kept, lost = (doc(iteration_time=dict.fromkeys(range(first, 21), 2.0)) for first in (2, 3))
    assert only(kept, golden, Tolerance(window="median")).approximate
    assert not only(kept, golden, Tolerance()).approximate
    assert not only(lost, golden, Tolerance(window="median")).approximate


@pytest.mark.parametrize(
    ("steps", "window"),
    [
        (range(1, 26), range(5, 21)),
        (range(1, 51), range(30, 46)),
        (range(1, 30), range(5, 21)),  # ends between the windows: the harness cannot judge it, we take the early one
        (range(100, 1001, 100), [100, 200, 300, 400]),
        ([1, 2], [1, 2]),
    ],
)
def test_the_window_follows_the_last_finite_step(steps: Any, window: Any) -> None:
    series = doc(iteration_time=dict.fromkeys(steps, 1.0)).series[0]
    assert compare.median_window(series) == tuple(window)


def test_generated_tokens_are_exact_and_log_probabilities_within_a_thousandth() -> None:
    def record(tokens: list[int], logprobs: list[float], text: str, latency: float) -> Document:
        body = {"generated_tokens": tokens, "logprobs": logprobs, "generated_text": text, "latency": latency}
        return read(json.dumps({"0": body}).encode())

    golden = record([5, 6, 7], [-1.0, -2.0], "one two", 3.0)
    diffs = {
        d.metric: d
        for d in compare.compare(record([5, 9, 7], [-1.001, -2.0005], "one too", 9.0), golden, lambda _: Tolerance())
    }
    tokens, logprobs, text = diffs["0.generated_tokens"], diffs["0.logprobs"], diffs["0.generated_text"]
    assert (tokens.approximate, tokens.first_differing) == (False, 1)
    assert (logprobs.approximate, logprobs.exact) == (True, False)
    assert (text.kind, text.exact, text.first_differing) == ("text", False, 5)
    assert diffs["0.latency"].approximate
    further = record([5, 6, 7], [-1.002, -2.0], "one two", 3.0)
    assert not compare.compare(further, golden, lambda _: Tolerance(rtol=0.5))[1].approximate


def test_lists_of_unequal_length_are_never_close() -> None:
    golden, longer = read(b'{"0": {"generated_tokens": [1, 2]}}'), read(b'{"0": {"generated_tokens": [1, 2, 3]}}')
    assert not only(longer, golden).approximate


@pytest.mark.parametrize(
    ("a", "b", "same"),
    [
        (b'{"m":{"values":{"1":1,"2":"nan"}}}', b'{"m":{"start_step":1,"values":{"1":1.0,"2":NaN}}}', True),
        (b'{"m":{"values":{"1":1}},"n":{"values":{"1":2}}}', b'{"n":{"values":{"1":2}},"m":{"values":{"1":1}}}', True),
        (b'{"m":{"values":{"1":1}}}', b'{"m":{"values":{"2":1}}}', False),
        (b'{"m":{"values":{"1":1}}}', b'{"n":{"values":{"1":1}}}', False),
        (b'{"m":{"values":{"1":1}}}', b'{"m":{"values":{"1":1,"2":1}}}', False),
        (b'{"m":{"values":{"1":"1.5"}}}', b'{"m":{"values":{"1":"9.9"}}}', False),
        (b'{"0":{"generated_text":"a"}}', b'{"0":{"generated_text":"b"}}', False),
        (b"", b"{}", True),
    ],
)
def test_equal_means_the_same_metrics_steps_values_and_texts(a: bytes, b: bytes, same: bool) -> None:
    assert compare.equal(read(a), read(b)) is same


values = st.floats() | st.sampled_from([0.0, math.nan, math.inf, 1e308, -1e308])
curves = st.dictionaries(st.integers(1, 12), values, min_size=1)


@given(curves, curves)
def test_any_two_curves_are_accounted_for_step_by_step(obtained: dict[int, float], golden: dict[int, float]) -> None:
    diff = only(doc(m=obtained), doc(m=golden))
    assert diff.n_common + diff.missing_steps == len(golden)
    assert diff.n_common + diff.extra_steps == len(obtained)
    assert diff.exact == (diff.first_differing is None)
    assert diff.approximate or not diff.exact


@given(curves)
def test_a_curve_is_exactly_itself(curve: dict[int, float]) -> None:
    diff = only(doc(m=curve), doc(m=curve))
    assert diff.exact
    assert diff.approximate
    assert diff.worst_step is None


def test_the_harness_defaults_know_which_metrics_are_exact() -> None:
    exact = {m for m, t in HARNESS_TOLERANCES.items() if t.exact}
    assert exact == {"lm loss", "num-zeros", "mtp_1 loss", "mtp_2 loss", "total loss"}
