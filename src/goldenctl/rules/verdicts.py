"""The values every rule set returns."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum


class Rules(StrEnum):
    """Whose rules decide."""

    STRICT = "strict"
    """What the harness's rules mean to be."""
    HARNESS = "harness"
    """Megatron-LM's own verdict, its traps included."""


@dataclass(frozen=True, slots=True)
class MetricVerdict:
    """The verdict on one metric, or on one field of one inference request."""

    metric: str
    passed: bool
    reason: str = ""
    """Why it failed; empty when it passed without remark."""
    exact: bool | None = None
    """Result of the exact lane; None when it was not run."""
    approximate: bool | None = None
    """Result of the approximate lane; None when it was not run."""
    n_steps: int = 0
    """Golden steps (list items) looked at."""
    n_exceeding: int = 0
    """Steps beyond the tolerance, missing ones included."""
    n_allowed: int = 0
    """Steps that may exceed."""
    n_inexact: int = 0
    """Steps that are not bit-equal (after rounding, where the golden is rounded)."""
    first_bad_step: int | None = None
    """First step beyond the tolerance, else the first that is not bit-equal; None without either."""
    worst_step: int | None = None
    """Step of the largest relative difference; None when nothing differs."""
    worst_golden: float | None = None
    worst_obtained: float | None = None
    max_rel_diff: float | None = None
    """Largest ``|obtained - golden| / |golden|`` of finite steps with a golden other than 0; None without any."""
    max_abs_diff: float | None = None
    """Largest ``|obtained - golden|`` of finite steps; None without any."""
    tolerance: str = ""
    """The approximate rule in words, e.g. ``5 % per step, 1 of 50 steps may exceed``."""
    note: str = ""
    """A remark on a metric that passed, e.g. that it became better and the golden wants a refresh."""
    profile: tuple[float, ...] = ()
    """Relative difference per golden step in order, NaN where there is none; for the sparkline."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a functional test would say of an obtained document."""

    rules: Rules
    mode: str
    """``pretraining``, ``resume``, ``inference`` or ``rl``."""
    metrics: tuple[MetricVerdict, ...] = ()
    reason: str = ""
    """Why the whole document failed before or beside its metrics; empty otherwise."""
    notes: tuple[str, ...] = ()
    """What the reader should know, e.g. that the harness would compare nothing."""

    @property
    def passed(self) -> bool:
        """Whether the test would pass."""
        return not self.reason and all(m.passed for m in self.metrics)

    @property
    def failed(self) -> tuple[MetricVerdict, ...]:
        """The metrics that failed."""
        return tuple(m for m in self.metrics if not m.passed)


Points = Mapping[int, float]
"""Step → value."""


def measured(
    verdict: MetricVerdict, obtained: Points, golden: Points, bad: Iterable[int], inexact: Iterable[int] = ()
) -> MetricVerdict:
    """A verdict with the numbers a person needs filled in.

    Parameters
    ----------
    obtained, golden
        Step → value of the golden's steps; a step the obtained side lacks is left out there.
    bad
        Steps beyond the tolerance.
    inexact
        Steps that are not bit-equal.
    """
    absolute = {s: abs(obtained[s] - g) for s, g in golden.items() if s in obtained and _finite(g, obtained[s])}
    relative = {s: d / abs(golden[s]) for s, d in absolute.items() if golden[s]}
    worst = _worst(absolute, relative, golden)
    beyond, unequal = sorted(bad), sorted(inexact)
    return replace(
        verdict,
        n_steps=len(golden),
        n_exceeding=len(beyond),
        n_inexact=len(unequal),
        first_bad_step=next(iter(beyond or unequal), None),
        worst_step=worst,
        worst_golden=None if worst is None else golden[worst],
        worst_obtained=None if worst is None else obtained[worst],
        max_rel_diff=max(relative.values(), default=None),
        max_abs_diff=max(absolute.values(), default=None),
        profile=tuple(relative.get(s, 0.0 if s in absolute and absolute[s] == 0 else math.nan) for s in golden),
    )


def _worst(absolute: Points, relative: Points, golden: Points) -> int | None:
    """The same choice as :class:`goldenctl.compare.MetricDiff`: absolute once a golden of 0 changed, else relative."""
    zero_changed = any(d and not golden[s] for s, d in absolute.items())
    sizes = absolute if zero_changed else relative
    step = max(sizes, key=sizes.__getitem__, default=None)
    return step if step is not None and sizes[step] else None


def _finite(*numbers: float) -> bool:
    return all(map(math.isfinite, numbers))


def percent(rtol: float) -> str:
    """A relative tolerance in percent, as short as it can be said."""
    return f"{rtol * 100:.4g} %"
