"""Compare two golden documents metric by metric: what differs, by how much, and whether a tolerance allows it.

A difference is ``obtained - golden``, relative to ``|golden|``. NaN equals NaN and an infinity equals the
same infinity at the same step; any other pair with a non-finite side differs and is never close.
Standard library only: the diff of two revisions pays for it on every changed file.
"""

from __future__ import annotations

import math
import statistics
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from goldenctl.config import Tolerance
from goldenctl.goldenfile import Document, Series

ToleranceFor = Callable[[str], Tolerance]
"""Metric name → its tolerance."""

RECORD_TOLERANCES = {
    "generated_tokens": Tolerance(rtol=0.0, exact=True, bad_steps=0),
    "routing_indices": Tolerance(rtol=0.0, exact=True, bad_steps=0),
    "routing_indices_token_indices": Tolerance(rtol=0.0, exact=True, bad_steps=0),
    "logprobs": Tolerance(rtol=0.0, atol=0.001, bad_steps=0),
    "prompt_logprobs": Tolerance(rtol=0.0, atol=0.001, bad_steps=0),
    "generated_logprobs": Tolerance(rtol=0.0, atol=0.001, bad_steps=0),
    "throughput": Tolerance(rtol=0.10, window="median"),
    "mem-max-allocated-bytes": Tolerance(rtol=0.05, window="median"),
}
"""Tolerances of an inference record's fields, whatever request they belong to; log-probabilities by absolute difference."""
VOLATILE_FIELDS = frozenset({"latency", "ttft", "tpot", "step_count", "events", "id"})
"""Record fields that no rule compares: any value is approximately right."""
MEDIAN_STEPS = 4
"""Steps taken when the window of iteration-time holds none."""


@dataclass(frozen=True, slots=True)
class MetricDiff:
    """One metric on both sides, or on one."""

    metric: str
    n_golden: int
    """Steps (list items) of the golden side; 0 when the metric is not there."""
    n_obtained: int
    """Steps of the obtained side; 0 when the metric is not there."""
    n_common: int
    """Steps both sides have."""
    missing_steps: int
    """Golden steps the obtained side lacks."""
    extra_steps: int
    """Obtained steps the golden side lacks."""
    nonfinite_golden: int
    nonfinite_obtained: int
    max_abs_diff: float | None
    """In the metric's unit, over common steps finite on both sides; None when there is no such step."""
    max_rel_diff: float | None
    """Over common finite steps whose golden value is not 0; None when there is no such step."""
    mean_abs_diff: float | None
    mean_rel_diff: float | None
    signed_mean_rel_diff: float | None
    """Mean of ``(obtained - golden) / |golden|``; positive and negative ones cancel out."""
    worst_step: int | None
    """Step of the largest relative difference; of the largest absolute one where a golden 0 changed; else the first
    step whose sides are not both finite and differ. None when nothing differs on a common step."""
    worst_golden: float | None
    worst_obtained: float | None
    first_differing: int | None
    """First step (list index, character of a text) at which the sides differ, missing and extra steps included."""
    median_golden: float | None
    """Median of the finite values; None without any."""
    median_obtained: float | None
    exact: bool
    """Same steps, same values."""
    approximate: bool
    """Every golden step is there, and the tolerance allows the differences."""
    kind: str = "object"
    """Form of the series (``object``, ``list``, ``vector``, ``scalar``), or ``text``."""


def equal(a: Document, b: Document) -> bool:
    """Whether two documents hold the same metrics, steps, values and texts, in any order of metrics.

    NaN equals NaN and 1 equals 1.0; spelling, precision markers and declared grids do not count. Documents with
    places that could not be read as numbers are equal only when those places agree too.
    """
    if a.texts != b.texts or len(a.series) != len(b.series) or set(a.problems) != set(b.problems):
        return False
    others = {s.metric: s for s in b.series}
    return all(s.metric in others and same_series(s, others[s.metric]) for s in a.series)


def same_series(a: Series, b: Series) -> bool:
    """Whether two series hold the same steps and values in any order, NaN equal to NaN."""
    if a.steps != b.steps:
        ours, theirs = points(a), points(b)
        return ours.keys() == theirs.keys() and all(same_value(v, theirs[s]) for s, v in ours.items())
    return a.values == b.values or all(map(same_value, a.values, b.values))


def points(series: Series) -> dict[int, float]:
    """Step → value; of a step given twice (``"1"`` and ``"01"``) the last, as every reader of JSON has it."""
    return dict(zip(series.steps, series.values, strict=True))


def same_value(a: float, b: float) -> bool:
    """Equality in which NaN equals NaN."""
    return a == b or (math.isnan(a) and math.isnan(b))


def compare(obtained: Document, golden: Document, tolerance_for: ToleranceFor) -> tuple[MetricDiff, ...]:
    """Compare every metric and text that either side has.

    Parameters
    ----------
    obtained, golden
        The two sides, read by :func:`goldenctl.goldenfile.read`.
    tolerance_for
        Tolerance of a metric; the fields of inference records have their own (:data:`RECORD_TOLERANCES`).

    Returns
    -------
    tuple of MetricDiff
        In the golden's file order, then what only the obtained side has.
    """
    got, want = {s.metric: s for s in obtained.series}, {s.metric: s for s in golden.series}
    names = list(dict.fromkeys([*want, *got]))
    diffs = [_compare(got.get(n), want.get(n), _tolerance(n, got.get(n) or want[n], tolerance_for)) for n in names]
    texts = dict.fromkeys([*golden.texts, *obtained.texts])
    return (*diffs, *(_compare_text(n, obtained.texts.get(n), golden.texts.get(n)) for n in texts))


def field_of(metric: str) -> str:
    """The record field of ``{request id}.{field}``; the metric itself where there is no request."""
    head, dot, tail = metric.partition(".")
    return tail if dot and head.isdecimal() else metric


def _tolerance(metric: str, series: Series, tolerance_for: ToleranceFor) -> Tolerance:
    field = field_of(metric)
    if field in VOLATILE_FIELDS:
        return Tolerance(rtol=0.0, atol=math.inf)
    if series.form in ("vector", "scalar") and field in RECORD_TOLERANCES:
        return RECORD_TOLERANCES[field]
    return tolerance_for(metric)


def compare_series(obtained: Series, golden: Series, tolerance: Tolerance) -> MetricDiff:
    """Compare one metric that both sides have; see :func:`compare`."""
    return _compare(obtained, golden, tolerance)


def _compare(obtained: Series | None, golden: Series | None, tolerance: Tolerance) -> MetricDiff:
    if obtained is None or golden is None:
        return _one_sided(obtained, golden)
    exact = same_series(obtained, golden)
    pairs = _pairs(obtained, golden)
    lonely_golden, lonely_obtained = set(golden.steps) - set(obtained.steps), set(obtained.steps) - set(golden.steps)
    numbers = _Differences(pairs)
    return MetricDiff(
        metric=golden.metric,
        n_golden=len(golden.steps),
        n_obtained=len(obtained.steps),
        n_common=len(pairs),
        missing_steps=len(lonely_golden),
        extra_steps=len(lonely_obtained),
        nonfinite_golden=golden.non_finite,
        nonfinite_obtained=obtained.non_finite,
        max_abs_diff=numbers.max_abs,
        max_rel_diff=numbers.max_rel,
        mean_abs_diff=numbers.mean_abs,
        mean_rel_diff=numbers.mean_rel,
        signed_mean_rel_diff=numbers.signed_mean_rel,
        worst_step=numbers.worst[0] if numbers.worst else None,
        worst_golden=numbers.worst[1] if numbers.worst else None,
        worst_obtained=numbers.worst[2] if numbers.worst else None,
        first_differing=None if exact else _first_differing(obtained, golden, pairs),
        median_golden=_median(golden.values),
        median_obtained=_median(obtained.values),
        exact=exact,
        approximate=exact or approximate(obtained, golden, tolerance),
        kind=golden.form,
    )


def _one_sided(obtained: Series | None, golden: Series | None) -> MetricDiff:
    series = obtained or golden
    assert series is not None  # noqa: S101 - one of the two is always given
    n_golden, n_obtained = len(golden.steps) if golden else 0, len(obtained.steps) if obtained else 0
    return MetricDiff(
        metric=series.metric,
        n_golden=n_golden,
        n_obtained=n_obtained,
        n_common=0,
        missing_steps=n_golden,
        extra_steps=n_obtained,
        nonfinite_golden=golden.non_finite if golden else 0,
        nonfinite_obtained=obtained.non_finite if obtained else 0,
        max_abs_diff=None,
        max_rel_diff=None,
        mean_abs_diff=None,
        mean_rel_diff=None,
        signed_mean_rel_diff=None,
        worst_step=None,
        worst_golden=None,
        worst_obtained=None,
        first_differing=series.steps[0] if series.steps else None,
        median_golden=_median(golden.values) if golden else None,
        median_obtained=_median(obtained.values) if obtained else None,
        exact=False,
        approximate=False,
        kind=series.form,
    )


def _compare_text(name: str, obtained: str | None, golden: str | None) -> MetricDiff:
    same = obtained == golden
    both = obtained is not None and golden is not None
    return MetricDiff(
        metric=name,
        n_golden=int(golden is not None),
        n_obtained=int(obtained is not None),
        n_common=int(both),
        missing_steps=int(obtained is None),
        extra_steps=int(golden is None),
        nonfinite_golden=0,
        nonfinite_obtained=0,
        max_abs_diff=None,
        max_rel_diff=None,
        mean_abs_diff=None,
        mean_rel_diff=None,
        signed_mean_rel_diff=None,
        worst_step=None,
        worst_golden=None,
        worst_obtained=None,
        first_differing=None if same else _common_prefix(obtained or "", golden or ""),
        median_golden=None,
        median_obtained=None,
        exact=same,
        approximate=same or field_of(name) in VOLATILE_FIELDS,
        kind="text",
    )


def _common_prefix(a: str, b: str) -> int:
    """Number of characters before the first difference, the opening quote of the JSON text left out."""
    n = next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
    return n - 1 if a[:1] == b[:1] == '"' else n


Pair = tuple[int, float, float]
"""Step, golden value, obtained value."""


def _pairs(obtained: Series, golden: Series) -> list[Pair]:
    if obtained.steps == golden.steps:
        return list(zip(golden.steps, golden.values, obtained.values, strict=True))
    have = points(obtained)
    return [(s, g, have[s]) for s, g in points(golden).items() if s in have]


def _median(values: Sequence[float]) -> float | None:
    finite = [v for v in values if math.isfinite(v)]
    return statistics.median(finite) if finite else None


def _first_differing(obtained: Series, golden: Series, pairs: Iterable[Pair]) -> int | None:
    lonely = set(golden.steps) ^ set(obtained.steps)
    changed = (s for s, g, o in pairs if not same_value(g, o))
    return min([*lonely, *list(changed)[:1]], default=None)


class _Differences:
    """Differences over the common steps that are finite on both sides."""

    def __init__(self, pairs: Sequence[Pair]) -> None:
        finite = [p for p in pairs if math.isfinite(p[1]) and math.isfinite(p[2])]
        absolute = [abs(o - g) for _, g, o in finite]
        signed = [(o - g) / abs(g) for _, g, o in finite if g != 0]
        relative = [abs(r) for r in signed]
        self.max_abs = max(absolute, default=None)
        self.max_rel = max(relative, default=None)
        self.mean_abs = _mean(absolute)
        self.mean_rel = _mean(relative)
        self.signed_mean_rel = _mean(signed)
        self.worst = self._worst(finite) or next((p for p in pairs if not same_value(p[1], p[2])), None)

    def _worst(self, finite: Sequence[Pair]) -> Pair | None:
        changed = [p for p in finite if p[1] != p[2]]
        by_absolute = any(g == 0 for _, g, _ in changed)
        return max(changed, key=lambda p: abs(p[2] - p[1]) / (1 if by_absolute else abs(p[1])), default=None)


def _mean(numbers: Sequence[float]) -> float | None:
    """The mean; None of nothing, and of opposite infinities (differences of huge values can overflow)."""
    try:
        return math.fsum(x / len(numbers) for x in numbers) if numbers else None
    except ValueError:
        return None


def approximate(obtained: Series, golden: Series, tolerance: Tolerance) -> bool:
    """Whether the obtained series has every golden step and stays within the tolerance.

    Lists must have the same length. With ``window="median"`` the medians over the iteration-time window are
    compared, and golden steps without a finite value (warm-up) may be left out; otherwise each step is compared,
    of which :func:`allowed_bad_steps` may exceed.
    """
    if tolerance.window == "median":
        return _median_within(obtained, golden, tolerance)
    if not golden.steps or not set(golden.steps) <= set(obtained.steps):
        return False
    if golden.form == "vector" and len(obtained.steps) != len(golden.steps):
        return False
    return len(exceeding(obtained, golden, tolerance)) <= allowed_bad_steps(len(golden.steps), tolerance)


def exceeding(obtained: Series, golden: Series, tolerance: Tolerance) -> list[int]:
    """Golden steps present on both sides whose difference the tolerance does not allow."""
    return [s for s, g, o in _pairs(obtained, golden) if not within(o, g, tolerance)]


def within(obtained: float, golden: float, tolerance: Tolerance) -> bool:
    """``|obtained - golden| <= atol + rtol * |golden|``; NaN only beside NaN, an infinity only beside itself."""
    if not (math.isfinite(obtained) and math.isfinite(golden)):
        return same_value(obtained, golden)
    if tolerance.direction == "lower" and obtained < golden:
        return True
    if tolerance.direction == "higher" and obtained > golden:
        return True
    return abs(obtained - golden) <= tolerance.atol + tolerance.rtol * abs(golden)


def allowed_bad_steps(steps: int, tolerance: Tolerance) -> int:
    """How many of ``steps`` golden steps may exceed: the setting, else ``min(max(T // 100, 1), 50)``, none of one."""
    if tolerance.bad_steps is not None:
        return tolerance.bad_steps
    return 0 if steps <= 1 else min(max(steps // 100, 1), 50)


def _median_within(obtained: Series, golden: Series, tolerance: Tolerance) -> bool:
    steps, want, have = median_window(golden), points(golden), points(obtained)
    if not steps or not {s for s, v in want.items() if math.isfinite(v)} <= have.keys():
        return bool(golden.steps) and same_series(obtained, golden)
    values = [have[s] for s in steps]
    if not all(map(math.isfinite, values)):
        return False
    return within(statistics.median(values), statistics.median(want[s] for s in steps), tolerance)


def median_window(golden: Series) -> tuple[int, ...]:
    """The finite golden steps over which medians are taken.

    Lists leave out their first item (warm-up). Step-keyed series take steps 5 to 20 when they end by step 25,
    else 30 to 45; without a step there the first four from 30 on, else those from 5 on.
    """
    finite = sorted(s for s, v in points(golden).items() if math.isfinite(v))
    if golden.form in ("vector", "scalar"):
        return tuple(finite[1:] or finite)
    if not finite:
        return ()
    first, last = (5, 20) if finite[-1] <= 25 else (30, 45)
    inside = finite[bisect_left(finite, first) : bisect_right(finite, last)]
    later = finite[bisect_left(finite, first) :][:MEDIAN_STEPS]
    early = finite[bisect_left(finite, 5) : bisect_right(finite, 20)]
    return tuple(inside or later or early or finite[-MEDIAN_STEPS:])
