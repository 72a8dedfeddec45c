"""Curves in one line of text."""

from __future__ import annotations

import math
from collections.abc import Sequence

BARS = "▁▂▃▄▅▆▇█"
WIDTH = 40
"""Most characters of a sparkline."""


def sizes(profile: Sequence[float]) -> str:
    """Sizes from 0 up as bars, each the largest of its share of steps; ``!`` where one is no number.

    Empty when nothing is larger than 0.
    """
    if not profile or not any(profile):
        return ""
    top = max((v for v in profile if math.isfinite(v)), default=0.0)
    return "".join("!" if any(map(math.isnan, g)) else _bar(max(g), 0.0, top) for g in _shares(profile, WIDTH))


def curve(values: Sequence[float], width: int = WIDTH) -> str:
    """A curve between its smallest and largest value, each bar the mean of its share of steps; ``!`` where one is no number."""
    finite = [v for v in values if math.isfinite(v)]
    low, high = min(finite, default=0.0), max(finite, default=0.0)
    return "".join(
        _bar(math.fsum(g) / len(g), low, high) if all(map(math.isfinite, g)) else "!" for g in _shares(values, width)
    )


def _shares(values: Sequence[float], width: int) -> list[Sequence[float]]:
    share = max(1, math.ceil(len(values) / width))
    return [values[i : i + share] for i in range(0, len(values), share)]


def _bar(value: float, low: float, high: float) -> str:
    place = (value - low) / (high - low) if high > low else 0.0
    return BARS[min(len(BARS) - 1, int(place * len(BARS)))]
