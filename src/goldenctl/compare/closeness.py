"""How far an obtained series may be from its golden, one tolerance at a time."""

from __future__ import annotations

import math
import statistics
from bisect import bisect_left, bisect_right
from operator import sub

from goldenctl.compare.columns import Common, lonely, points, same_series, same_value
from goldenctl.config import Tolerance
from goldenctl.goldenfile import Series

MEDIAN_STEPS = 4
"""Steps taken when the window of iteration-time holds none."""


def approximate(obtained: Series, golden: Series, tolerance: Tolerance) -> bool:
    """Whether the obtained series has every golden step and stays within the tolerance.

    Lists must have the same length. With ``window="median"`` the medians over the iteration-time window are
    compared, and golden steps without a finite value (warm-up) may be left out; otherwise each step is compared,
    of which :func:`allowed_bad_steps` may exceed. A step that is finite on one side only is never one of these.
    """
    if tolerance.window == "median":
        return _median_within(obtained, golden, tolerance)
    if not golden.steps or lonely(golden, obtained):
        return False
    if golden.form == "vector" and len(obtained.steps) != len(golden.steps):
        return False
    bad = exceeding(obtained, golden, tolerance)
    if not bad:
        return True
    have, want = points(obtained), points(golden)
    damaged = any(math.isfinite(have[s]) != math.isfinite(want[s]) for s in bad)
    return not damaged and len(bad) <= allowed_bad_steps(len(golden.steps), tolerance)


def exceeding(obtained: Series, golden: Series, tolerance: Tolerance) -> list[int]:
    """Golden steps present on both sides whose difference the tolerance does not allow."""
    common, atol, rtol = Common.of(obtained, golden), tolerance.atol, tolerance.rtol
    differences = map(abs, map(sub, common.obtained, common.golden))
    limits = [atol + rtol * abs(g) for g in common.golden]
    suspects = [i for i, (d, limit) in enumerate(zip(differences, limits, strict=True)) if not d <= limit < math.inf]
    return [common.steps[i] for i in suspects if not within(common.obtained[i], common.golden[i], tolerance)]


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
    lost = (s for s, v in want.items() if s not in have and math.isfinite(v))
    if not steps or any(True for _ in lost):
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
