"""Numbers as golden documents write them: JSON numbers, and the words that stand for NaN and infinity."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

NON_FINITE = {
    "nan": math.nan, "+nan": math.nan, "-nan": math.nan,
    "inf": math.inf, "+inf": math.inf, "-inf": -math.inf,
    "infinity": math.inf, "+infinity": math.inf, "-infinity": -math.inf,
}  # fmt: skip
"""Lower-cased spellings of non-finite numbers."""


_LONGEST = 20
"""Characters of -2**63; no training counts further, and Python refuses to read numbers of thousands of digits."""


def is_step(key: str) -> bool:
    """Whether a key of ``values`` is a step: an integer in decimal digits."""
    return len(key) <= _LONGEST and key.isascii() and key.removeprefix("-").isdecimal()


def to_number(value: Any) -> float | None:
    """The float64 of a JSON value, non-finite spellings included; None when it is no number.

    Booleans are no numbers; numeric strings other than the non-finite spellings are none either,
    as the harness takes them for infinity.
    """
    if type(value) is float:
        return value
    if type(value) is int:
        try:
            return float(value)
        except OverflowError:
            return math.inf if value > 0 else -math.inf
    if type(value) is str:
        return NON_FINITE.get(value.strip().lower())
    return None


def plain_numbers(items: list[Any]) -> tuple[float, ...] | None:
    """The float64 of every item, or None when one is no number."""
    kinds = set(map(type, items))
    if kinds <= {float}:
        return tuple(items)
    if not kinds <= {float, int, str}:
        return None
    try:
        if str not in kinds:
            return tuple(map(float, items))
        return tuple([x if type(x) is float else NON_FINITE[x] if type(x) is str else float(x) for x in items])
    except (KeyError, OverflowError):
        return None


def all_numbers(items: list[Any]) -> tuple[float, ...] | None:
    """As :func:`plain_numbers`, item by item where one is another spelling of NaN."""
    whole = plain_numbers(items)
    if whole is not None:
        return whole
    numbers = [number for number in map(to_number, items) if number is not None]
    return tuple(numbers) if len(numbers) == len(items) else None


@lru_cache(maxsize=64)
def steps_of(keys: tuple[str, ...]) -> tuple[int, ...] | None:
    """Step keys as integers, or None when one is none; the metrics of a file, and of its neighbours, share them."""
    try:
        return tuple(map(int, keys))
    except ValueError:
        return None
