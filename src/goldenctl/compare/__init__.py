"""Compare two golden documents metric by metric: what differs, by how much, and whether a tolerance allows it.

A difference is ``obtained - golden``, relative to ``|golden|``. NaN equals NaN and an infinity equals the
same infinity at the same step; any other pair with a non-finite side differs and is never close.
Standard library only: the diff of two revisions pays for it on every changed file.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from goldenctl.compare.closeness import allowed_bad_steps, approximate, exceeding, median_window, within
from goldenctl.compare.columns import Common, Differences, lonely, median, points, same_series, same_value
from goldenctl.config import Tolerance
from goldenctl.goldenfile import Document, Series

__all__ = [
    "RECORD_TOLERANCES", "VOLATILE_FIELDS", "Common", "MetricDiff", "ToleranceFor", "allowed_bad_steps", "approximate",
    "compare", "compare_series", "equal", "exceeding", "field_of", "median_window", "points", "same_series", "same_value",
    "within",
]  # fmt: skip

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


@dataclass(frozen=True, slots=True, kw_only=True)
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
    nonfinite_golden: int = 0
    nonfinite_obtained: int = 0
    max_abs_diff: float | None = None
    """In the metric's unit, over common steps finite on both sides; None when there is no such step."""
    max_rel_diff: float | None = None
    """Over common finite steps whose golden value is not 0; None when there is no such step."""
    mean_abs_diff: float | None = None
    mean_rel_diff: float | None = None
    signed_mean_rel_diff: float | None = None
    """Mean of ``(obtained - golden) / |golden|``; positive and negative ones cancel out."""
    worst_step: int | None = None
    """Step of the largest relative difference; of the largest absolute one where a golden 0 changed; else the first
    step whose sides are not both finite and differ. None when nothing differs on a common step."""
    worst_golden: float | None = None
    worst_obtained: float | None = None
    first_differing: int | None = None
    """First step (list index, character of a text) at which the sides differ, missing and extra steps included."""
    median_golden: float | None = None
    """Median of the finite values; None without any."""
    median_obtained: float | None = None
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
    common = Common.of(obtained, golden)
    lonely_golden, lonely_obtained = lonely(golden, obtained), lonely(obtained, golden)
    numbers = Differences.none(golden) if exact else Differences.of(common)
    return MetricDiff(
        metric=golden.metric,
        n_golden=len(golden.steps),
        n_obtained=len(obtained.steps),
        n_common=len(common),
        missing_steps=lonely_golden,
        extra_steps=lonely_obtained,
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
        first_differing=None if exact else _first_differing(obtained, golden, common),
        median_golden=median(golden.values),
        median_obtained=median(obtained.values),
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
        first_differing=series.steps[0] if series.steps else None,
        median_golden=median(golden.values) if golden else None,
        median_obtained=median(obtained.values) if obtained else None,
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
        first_differing=None if same else _common_prefix(obtained or "", golden or ""),
        exact=same,
        approximate=same or field_of(name) in VOLATILE_FIELDS,
        kind="text",
    )


def _common_prefix(a: str, b: str) -> int:
    """Number of characters before the first difference, the opening quote of the JSON text left out."""
    n = next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
    return n - 1 if a[:1] == b[:1] == '"' else n


def _first_differing(obtained: Series, golden: Series, common: Common) -> int | None:
    alone = set() if golden.steps == obtained.steps else set(golden.steps) ^ set(obtained.steps)
    changed = common.first_changed()
    return min([*alone, *([changed[0]] if changed else [])], default=None)
