"""Numbers as a person reads them."""

from __future__ import annotations

import math

from goldenctl.compare import MetricDiff
from goldenctl.report.model import Metric


def number(value: float | None) -> str:
    """A value, large whole ones (bytes) with thousands separated; empty for None."""
    if value is not None and 1e6 <= abs(value) < 1e15 and value.is_integer():
        return f"{value:,.0f}"
    return "" if value is None else f"{value:.9g}"


def percent(value: float | None) -> str:
    """A relative difference in percent with two digits that count; empty for None."""
    if value is None or not math.isfinite(value):
        return ""
    if value == 0:
        return "0 %"
    size = abs(value) * 100
    if size < 0.001:
        return f"{value * 100:.0e} %".replace("e-0", "e-")
    places = max(0, 1 - math.floor(math.log10(size))) if size < 100 else 0
    return f"{value * 100:,.{places}f} %"


def steps(diff: MetricDiff) -> str:
    """Common of golden steps, and how many more the obtained side has."""
    return f"{diff.n_common}/{diff.n_golden}" + (f" +{diff.extra_steps}" if diff.extra_steps else "")


def size(metric: Metric) -> str:
    """The relative difference that counts, and that it is of medians where it is."""
    text = percent(metric.size)
    return f"{text} (median)" if text and metric.by_median else text


def pair(metric: Metric) -> str:
    """The values at the worst place or the medians, old → new, or why there are none."""
    diff = metric.diff
    if diff.n_golden == 0 or diff.n_obtained == 0:
        return "only on the new side" if diff.n_golden == 0 else "only on the old side"
    if diff.worst_golden is None or diff.worst_obtained is None:
        return "text differs" if diff.kind == "text" else "steps differ"
    if metric.by_median and diff.median_golden is not None and diff.median_obtained is not None:
        return f"{number(diff.median_golden)} → {number(diff.median_obtained)}"
    return f"{number(diff.worst_golden)} → {number(diff.worst_obtained)}"
