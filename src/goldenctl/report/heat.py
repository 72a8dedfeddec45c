"""The heat map: one row a golden, one column a metric, the largest relative difference as a shade."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from goldenctl.compare import field_of
from goldenctl.report.figures import percent
from goldenctl.report.model import Entry, Metric

COLUMNS = 16
"""Most metrics shown; those that differ least often give way."""
SHADES = (1e-6, 1e-4, 0.01, 0.05)
"""Upper limits of the first shades; what is larger has the last one."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One golden and metric."""

    kind: str
    """``none`` (no such metric), ``same``, ``s1`` … ``s5`` (shade), ``nan``, ``repaired``, ``lost``, ``new``, ``text``."""
    text: str
    metric: str = ""
    """The metric behind it, the worst of an inference golden's requests."""


@dataclass(frozen=True, slots=True)
class HeatMap:
    """Cells by golden and metric."""

    metrics: tuple[str, ...]
    """Names of the columns, those that differ most often first; fields of inference records without their request."""
    rows: tuple[tuple[int, tuple[Cell, ...]], ...]
    """Index of the entry, and its cells."""
    left_out: int = 0
    """Metrics that differ and have no column."""


def heat_map(entries: Sequence[Entry]) -> HeatMap:
    """The heat map of all entries that have been compared."""
    places = [(i, _by_field(e)) for i, e in enumerate(entries) if e.metrics and e.status == "changed"]
    seen: Counter[str] = Counter()
    for _, fields in places:
        seen.update(name for name, m in fields.items() if not m.diff.exact)
    names = [name for name, _ in seen.most_common()]
    shown = tuple(names[:COLUMNS])
    rows = tuple((i, tuple(cell(fields.get(name)) for name in shown)) for i, fields in places)
    return HeatMap(shown, rows, len(names) - len(shown))


def _by_field(entry: Entry) -> dict[str, Metric]:
    """Field → its metric, of an inference golden's requests the one that is furthest off."""
    worst = {}
    for metric in sorted(entry.metrics, key=lambda m: (not m.diff.exact, m.gravity)):
        worst[field_of(metric.name)] = metric
    return worst


def cell(metric: Metric | None) -> Cell:
    """The cell of a metric; what is lost comes before any size."""
    if metric is None:
        return Cell("none", "")
    diff = metric.diff
    if diff.exact:
        return Cell("same", "=", metric.name)
    if metric.new_nonfinite > 0:
        return Cell("nan", f"+{metric.new_nonfinite} NaN", metric.name)
    if diff.n_obtained == 0 or metric.lost:
        return Cell("lost", f"-{metric.lost} steps" if diff.n_obtained else "gone", metric.name)
    if metric.new_nonfinite < 0:
        return Cell("repaired", f"-{-metric.new_nonfinite} NaN", metric.name)
    if diff.kind == "text":
        return Cell("text", "text", metric.name)
    if diff.n_golden == 0 or metric.size is None:
        return Cell("new", "new" if diff.n_golden == 0 else "≠", metric.name)
    return Cell(f"s{1 + sum(metric.size > limit for limit in SHADES)}", percent(metric.size), metric.name)
