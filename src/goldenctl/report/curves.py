"""Curves thinned to what a screen shows, extremes kept, and the places without a number."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise

from goldenctl.compare import points
from goldenctl.goldenfile import Series

Line = Sequence[float]
"""Values by index; NaN where there is none."""


@dataclass(frozen=True, slots=True)
class Curve:
    """One metric on both sides on a common grid, thinned."""

    steps: tuple[int, ...]
    """Ascending."""
    golden: tuple[float, ...]
    """NaN where the old side has no finite value; empty when it lacks the metric."""
    obtained: tuple[float, ...]
    """NaN where the new side has no finite value; empty when it lacks the metric."""
    relative: tuple[float, ...]
    """``(obtained - golden) / |golden|``; NaN where a side has no finite value or golden is 0; empty with one side."""
    marks_golden: tuple[tuple[int, int], ...] = ()
    """First and last step of each stretch of non-finite values on the old side."""
    marks_obtained: tuple[tuple[int, int], ...] = ()


def curve(golden: Series | None, obtained: Series | None, limit: int) -> Curve:
    """The curves of a metric with about ``limit`` steps.

    Every line keeps its smallest and largest value in each stretch of the grid, so that no spike is lost,
    and its first and last.
    """
    old, new = points(golden) if golden else {}, points(obtained) if obtained else {}
    steps = sorted({*old, *new})
    lines = [[side.get(s, math.nan) for s in steps] if side else [] for side in (old, new)]
    relative = [_relative(a, b) for a, b in zip(*lines, strict=True)] if old and new else []
    kept = thin([line for line in (*lines, relative) if line], len(steps), limit)
    gap = len(steps) // limit
    marks = [_stretches([s in side and not math.isfinite(side[s]) for s in steps], steps, gap) for side in (old, new)]
    chosen = [tuple(_finite(line[i]) for i in kept) if line else () for line in (*lines, relative)]
    return Curve(tuple(steps[i] for i in kept), chosen[0], chosen[1], chosen[2], *marks)


def _finite(value: float) -> float:
    return value if math.isfinite(value) else math.nan


def _relative(golden: float, obtained: float) -> float:
    if not (math.isfinite(golden) and math.isfinite(obtained)) or golden == 0:
        return math.nan
    return (obtained - golden) / abs(golden)


def thin(lines: Sequence[Line], count: int, limit: int) -> list[int]:
    """Ascending indices to keep: all of them up to ``limit``, else the extremes of each line in each bucket.

    The first and last index are always kept, and one non-finite index a bucket and line, where a line breaks.
    """
    if count <= limit:
        return list(range(count))
    buckets = max(1, limit // (2 * max(1, len(lines))))
    edges = [count * i // buckets for i in range(buckets + 1)]
    kept = {0, count - 1}
    for start, end in pairwise(edges):
        for line in lines:
            kept.update(_extremes(line, start, end))
    return sorted(kept)


def _extremes(line: Line, start: int, end: int) -> Iterator[int]:
    finite = [i for i in range(start, end) if math.isfinite(line[i])]
    if len(finite) < end - start:
        yield next(i for i in range(start, end) if not math.isfinite(line[i]))
    if finite:
        yield min(finite, key=line.__getitem__)
        yield max(finite, key=line.__getitem__)


def _stretches(flags: Sequence[bool], steps: Sequence[int], gap: int) -> tuple[tuple[int, int], ...]:
    """First and last step of each stretch of flags; stretches up to ``gap`` indices apart are one."""
    found: list[tuple[int, int]] = []
    for flag, group in groupby(range(len(flags)), key=flags.__getitem__):
        if flag:
            indices = list(group)
            if found and indices[0] - found[-1][1] <= gap:
                found[-1] = (found[-1][0], indices[-1])
            else:
                found.append((indices[0], indices[-1]))
    return tuple((steps[a], steps[b]) for a, b in found)
