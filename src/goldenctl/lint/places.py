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
    steps: Callable[[], Sequence[int]], total: int, bad: Sequence[int], *, second_phase: bool
) -> dict[str, Sequence[int]]:
    """Sort non-finite places into classes.

    Parameters
    ----------
    steps
        Gives all steps of the series, ascending; called only when the places alone do not tell.
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
    count = len(bad)
    head = _leading_run(bad) if count < total else 0
    tail = count
    while tail > head and bad[tail - 1] == total - 1 - (count - tail):
        tail -= 1
    if head < tail and _sampled(steps(), bad):
        return {OFF_GRID: bad}
    parts = {_head(second_phase): bad[:head], SCATTERED: bad[head:tail], TAIL: bad[tail:]}
    return {kind: places for kind, places in parts.items() if places}


def _head(second_phase: bool) -> str:
    return SECOND_PHASE if second_phase else LEADING


def _leading_run(bad: Sequence[int]) -> int:
    """Number of non-finite values before the first finite one."""
    return next((i for i, place in enumerate(bad) if place != i), len(bad))


def _sampled(steps: Sequence[int], bad: Sequence[int]) -> bool:
    """Whether the finite steps form a grid of their own, at least twice as coarse as the file's."""
    missing = set(bad)
    finite = [s for i, s in enumerate(steps) if i not in missing]
    if len(finite) < 4 or len(bad) < len(finite):
        return False
    gaps = [b - a for a, b in pairwise(finite)]
    own = reduce(math.gcd, (b - a for a, b in pairwise(steps[1:])), 0) or 1
    return reduce(math.gcd, gaps[1:], 0) >= 2 * own
