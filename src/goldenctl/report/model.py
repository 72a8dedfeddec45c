"""What a report says, before it is drawn."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from goldenctl.compare import VOLATILE_FIELDS, MetricDiff, field_of
from goldenctl.goldenfile import Series
from goldenctl.model import GoldenKey

SAME = ("identical", "equal")
"""Statuses of goldens that hold the same numbers on both sides."""

WORRYING = ("refused", "missing", "overwritten", "mixed")
"""Labels of goldens that somebody has to look at."""


@dataclass(frozen=True, slots=True)
class Fact:
    """One thing to know about a report or a golden, e.g. the run its values come from."""

    name: str
    text: str
    url: str = ""
    """Where it leads; empty without a link. Shown as a link only when it is http or https."""


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric on both sides: the figures and the curves."""

    diff: MetricDiff
    golden: Series | None = None
    """None when the old side lacks the metric, or it is text."""
    obtained: Series | None = None
    """None when the new side lacks the metric, or it is text."""
    by_median: bool = False
    """The tolerance compares medians: single steps (warm-up) do not count."""
    lost: int = 0
    """Steps with a finite value on the old side that the new side does not have."""
    repaired: bool = False
    """Non-finite values went, and what was finite passes the tolerance."""

    @property
    def size(self) -> float | None:
        """The relative difference that counts: of the medians, or the largest of all steps; None when there is none."""
        diff = self.diff
        if not self.by_median or diff.median_golden is None or diff.median_obtained is None or diff.median_golden == 0:
            return diff.max_rel_diff
        return abs(diff.median_obtained - diff.median_golden) / abs(diff.median_golden)

    @property
    def name(self) -> str:
        """Name of the metric."""
        return self.diff.metric

    @property
    def new_nonfinite(self) -> int:
        """Non-finite values the new side has more than the old one; negative when some were repaired."""
        return self.diff.nonfinite_obtained - self.diff.nonfinite_golden

    @property
    def gravity(self) -> tuple[bool, int, int, float, float]:
        """What puts a metric first: beyond tolerance, lost steps, new non-finite values, relative and absolute size."""
        diff, volatile = self.diff, field_of(self.name) in VOLATILE_FIELDS
        sizes = (0.0, 0.0) if volatile else (self.size or 0.0, diff.max_abs_diff or 0.0)
        return self.verdict == "different", self.lost, max(self.new_nonfinite, 0), *sizes

    @property
    def verdict(self) -> str:
        """``same``, ``repaired``, ``within tolerance`` or ``different``."""
        if self.diff.exact or self.repaired:
            return "same" if self.diff.exact else "repaired"
        return "within tolerance" if self.diff.approximate else "different"


@dataclass(frozen=True)
class Entry:
    """One golden file of a report."""

    path: str
    key: GoldenKey | None
    """None when the path does not fit the layout."""
    status: str
    """``identical``, ``equal``, ``changed``, ``added``, ``removed``, ``unreadable``; empty when there is nothing to compare."""
    metrics: tuple[Metric, ...] = ()
    label: str = ""
    """What a refresh or a sync did with it, e.g. ``written`` or ``from-upstream``; empty for a plain comparison."""
    note: str = ""
    """Why it was refused, is missing or unreadable; empty otherwise."""
    facts: tuple[Fact, ...] = ()
    """Where its content comes from."""

    @cached_property
    def differing(self) -> tuple[Metric, ...]:
        """Metrics that are not the same on both sides, worst first."""
        return tuple(sorted((m for m in self.metrics if not m.diff.exact), key=lambda m: m.gravity, reverse=True))

    @property
    def worst(self) -> Metric | None:
        """The metric that is furthest off; None when nothing differs."""
        return self.differing[0] if self.differing else None

    @property
    def nonfinite(self) -> tuple[int, int]:
        """Non-finite values on the old and the new side, over all metrics."""
        return sum(m.diff.nonfinite_golden for m in self.metrics), sum(m.diff.nonfinite_obtained for m in self.metrics)

    @property
    def case(self) -> str:
        """``{model}/{test_case}`` with the variant; the path when it does not fit the layout."""
        return self.key.case + self.key.variant.replace("_", " ") if self.key else self.path

    @property
    def platform(self) -> str:
        """Platform with the environment where it is not the usual one."""
        if self.key is None:
            return ""
        return " ".join(filter(None, (self.key.platform, self.key.environment if self.key.environment != "dev" else "")))

    @property
    def gravity(self) -> tuple[int, tuple[bool, int, int, float, float]]:
        """What puts a golden first: unreadable, removed, worrying ones, then those whose worst metric is furthest off."""
        worst = self.worst.gravity if self.worst else (False, 0, 0, 0.0, 0.0)
        rank = {"unreadable": 4, "removed": 3, "changed": 1}.get(self.status, 0)
        return max(rank, 2 if self.label in WORRYING else 0), worst


@dataclass(frozen=True)
class Report:
    """Two sides compared, ready to be drawn."""

    title: str
    old: str
    """Name of the old side, the golden."""
    new: str
    """Name of the new side, the obtained."""
    entries: tuple[Entry, ...]
    """Goldens worth showing, worst first."""
    same: int = 0
    """Goldens that are the same on both sides and are not among ``entries``."""
    facts: tuple[Fact, ...] = ()
    problems: tuple[str, ...] = ()
    """What could not be had, one sentence each."""

    @cached_property
    def counts(self) -> Mapping[str, int]:
        """Label (or status, for a plain comparison) → number of entries, in order of appearance."""
        return Counter(e.label or e.status for e in self.entries)

    @property
    def labelled(self) -> bool:
        """Whether the entries say what a refresh or a sync did with them."""
        return any(e.label for e in self.entries)
