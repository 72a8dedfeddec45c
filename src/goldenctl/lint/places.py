"""Where in a series the non-finite values sit: the class that tells warm-up from damage."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import reduce
from itertools import pairwise

LEADING = "leading"
"""The first values: warm-up steps that were not measured."""
SECOND_PHASE = "second-phase"
"""The leading half of a ``_2nd`` file: steps before the checkpoint it resumed from."""
TAIL = "tail"
"""The last values, or all of them: the run ended early."""
OFF_GRID = "off-grid"
"""All but a coarser grid: the metric is sampled less often than the file says."""
SCATTERED = "scattered"
"""Anywhere else: holes in the curve."""

EXPLAINED = {
    LEADING: "leading (warm-up)",
    SECOND_PHASE: "in the leading half of a _2nd file",
    TAIL: "at the end (ended early)",
    OFF_GRID: "off the metric's own grid (sampled)",
    SCATTERED: "scattered",
}


def classify(
    steps_at: Callable[[Sequence[int]], Sequence[int]], total: int, bad: Sequence[int], *, second_phase: bool
) -> dict[str, Sequence[int]]:
    """Sort non-finite places into classes.

    Parameters
    ----------
    steps_at
        Gives the steps at some indices; asked only when the places alone do not tell.
    total
        Number of values.
    bad
        Indices of the non-finite values, ascending, not empty.
    second_phase
        Whether the file is of the ``_2nd`` variant.

    Returns
    -------
    dict
        Class → the indices in it, classes without any left out.
    """
    leading, count = SECOND_PHASE if second_phase else LEADING, len(bad)
    if bad[0] == total - count:  # also when there is nothing but non-finite values
        return {TAIL: bad}
    if bad[-1] == count - 1:
        return {leading: bad}
    if _sampled(steps_at, total, bad):
        return {OFF_GRID: bad}
    head = next(i for i, place in enumerate(bad) if place != i)
    tail = count
    while bad[tail - 1] == total - 1 - (count - tail):
        tail -= 1
    parts = {leading: bad[:head], SCATTERED: bad[head:tail], TAIL: bad[tail:]}
    return {kind: places for kind, places in parts.items() if places}


def _sampled(steps_at: Callable[[Sequence[int]], Sequence[int]], total: int, bad: Sequence[int]) -> bool:
    """Whether the finite steps form a grid of their own, at least twice as coarse as the file's."""
    if total - len(bad) < 4 or len(bad) < total - len(bad):
        return False
    finite = steps_at(sorted(set(range(total)).difference(bad)))
    own = reduce(math.gcd, (b - a for a, b in pairwise(steps_at(range(1, min(total, 20))))), 0) or 1
    return reduce(math.gcd, (b - a for a, b in pairwise(finite[1:])), 0) >= 2 * own
