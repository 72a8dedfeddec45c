"""Rules about one metric block: GV001, GV003, GV004, GV007 and GV012.

A lint reads hundreds of thousands of values at every commit, so each rule has a screen that runs in
C (types, minimum, equality of whole lists); only a block that a screen stops is looked at value by
value.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, reduce
from itertools import pairwise
from typing import Any

from goldenctl.goldenfile import GRID_KEYS, describe
from goldenctl.jsonnumbers import NON_FINITE, is_step, to_number
from goldenctl.lint import places
from goldenctl.lint.rules import finding
from goldenctl.model import Finding

_NUMBERS = frozenset({float, int})
REPAIR = "; repair: goldenctl refresh --from-job RUN --only nonfinite"
"""How messages of GV001 end."""
JUMP = 1000.0
"""A value this many times both its neighbours is implausible."""


@dataclass(frozen=True, slots=True)
class Block:
    """One metric block as decoded."""

    path: str
    metric: str
    keys: list[str]
    """Step keys of the object form, in file order; empty for the list form."""
    items: list[Any]
    """Values in file order."""
    start: Any
    end: Any
    interval: Any
    is_list: bool
    second_phase: bool
    bad: Sequence[int]
    """Indices of the values that are not finite, ascending."""
    numbers: list[Any]
    """The finite values, in file order."""
    wrong: Sequence[int]
    """Indices of the values that are no numbers at all."""

    def steps(self) -> tuple[int, ...]:
        """Step of each value; keys that are no integers count as 0."""
        if self.is_list:
            return self.steps_at(range(len(self.items)))
        try:
            return tuple(map(int, self.keys))
        except ValueError:
            return tuple(int(k) if is_step(k) else 0 for k in self.keys)

    def steps_at(self, places: Iterable[int]) -> tuple[int, ...]:
        """Steps of the values at these indices."""
        if self.is_list:
            start, interval = (v if type(v) is int else d for v, d in ((self.start, 0), (self.interval, 1)))
            return tuple(start + i * interval for i in places)
        return tuple(int(self.keys[i]) if is_step(self.keys[i]) else 0 for i in places)


def read(path: str, metric: str, block: Mapping[str, Any], *, second_phase: bool, strict: bool) -> Block | None:
    """The block of a metric, or None when its ``values`` is neither object nor list.

    ``strict`` says that no number in the document can be NaN or infinite; only text can say so.
    """
    values = block["values"]
    if type(values) is dict:
        keys, items = list(values), list(values.values())
    elif type(values) is list:
        keys, items = [], values
    else:
        return None
    start, end, interval = (block.get(k) for k in GRID_KEYS)
    bad, numbers, wrong = _sorted_out(items, strict)
    return Block(
        path, metric, keys, items, start, end, interval, not keys and items is values, second_phase, bad, numbers, wrong
    )


def _sorted_out(items: list[Any], strict: bool) -> tuple[Sequence[int], list[Any], Sequence[int]]:
    """Indices that are not finite, the finite values, indices that are no numbers."""
    if strict:
        if _NUMBERS.issuperset(map(type, items)):
            return (), items, ()
        texts, numbers = _text_and_numbers(items)
        if {items[i] for i in texts} <= NON_FINITE.keys() and _NUMBERS.issuperset(map(type, numbers)):
            return texts, numbers, ()
    bad = [i for i, v in enumerate(items) if _non_finite(v)]
    known = set(bad)
    wrong = [i for i, v in enumerate(items) if type(v) not in _NUMBERS and i not in known]
    left_out = known.union(wrong)
    return bad, [v for i, v in enumerate(items) if i not in left_out], wrong


def _text_and_numbers(items: list[Any]) -> tuple[Sequence[int], list[Any]]:
    """Indices of text, and what is no text; one run of text at either end, the usual case, is told without a loop."""
    kinds = list(map(type, items))
    count, size = kinds.count(str), len(items)
    if count and str not in kinds[count:]:
        return range(count), items[count:]
    if count and str not in kinds[: size - count]:
        return range(size - count, size), items[: size - count]
    return [i for i, kind in enumerate(kinds) if kind is str], [v for v in items if v.__class__ is not str]


def _non_finite(value: Any) -> bool:
    if type(value) is str:
        return value.strip().lower() in NON_FINITE
    return type(value) in _NUMBERS and not math.isfinite(to_number(value) or 0.0)


def value_rules(block: Block) -> Iterator[Finding]:
    """GV001 and GV012: values that are not finite, or no numbers at all."""
    if block.bad:
        yield from _non_finite_findings(block)
    if block.wrong:
        yield _wrong_types(block)


def _non_finite_findings(block: Block) -> Iterator[Finding]:
    total = len(block.items)
    for kind, where in places.classify(block.steps_at, total, block.bad, second_phase=block.second_phase).items():
        steps = block.steps_at(where[:5])
        shown = ", ".join(map(str, steps)) + (", …" if len(where) > 5 else "")
        message = (
            f"{len(where)} of {total} values of {block.metric!r} are not finite, "
            f"{places.EXPLAINED[kind]}: step{'s' if len(where) > 1 else ''} {shown}{REPAIR}"
        )
        yield finding("GV001", block.path, block.metric, message, count=len(where), steps=steps, kind=kind)


def _wrong_types(block: Block) -> Finding:
    steps = block.steps_at(block.wrong[:5])
    first = block.items[block.wrong[0]]
    numeric = type(first) is str and _is_numeric(first)
    kind = "numeric text" if numeric else describe(first).removeprefix("the ").removeprefix("a ").split(" ")[0]
    message = (
        f"{len(block.wrong)} of {len(block.items)} values of {block.metric!r} are no numbers; "
        f"step {steps[0]} is {describe(first)}"
    )
    return finding("GV012", block.path, block.metric, message, count=len(block.wrong), steps=steps, kind=kind)


def _is_numeric(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


@lru_cache(maxsize=512)
def _grid_keys(start: int, end: int, interval: int) -> tuple[list[str], list[str]]:
    """Step keys of a plain grid and of the harness's sampling grid, where step 1 stands before the multiples."""
    plain = [str(s) for s in range(start, end + 1, interval)]
    sampled = [str(start), *(str(s) for s in range((start // interval + 1) * interval, end + 1, interval))]
    return plain, sampled


def grid_rules(block: Block) -> Iterator[Finding]:
    """GV004: the declared grid describes the steps, and the steps ascend."""
    grid = (block.start, block.end, block.interval)
    if all(type(g) is int for g in grid) and block.interval > 0 and not block.is_list and _sane(block):
        plain, sampled = _grid_keys(block.start, block.end, block.interval)
        if block.keys in (plain, sampled):
            return
    wrong = _grid_mistake(block, grid)
    if wrong:
        message, kind = wrong
        yield finding("GV004", block.path, block.metric, f"{block.metric!r}: {message}", kind=kind)


def _sane(block: Block) -> bool:
    """Whether the declared grid is about as long as the values, so that listing it costs no more than they do."""
    length: int = (block.end - block.start) // block.interval
    return 0 <= length <= len(block.items) + 1


def _grid_mistake(block: Block, grid: Sequence[Any]) -> tuple[str, str] | None:
    for name, value in zip(GRID_KEYS, grid, strict=True):
        if type(value) is not int:
            told = repr(value) if type(value) is float else describe(value)
            return f"{name} is {'missing' if value is None else f'{told}, not an integer'}", "grid"
    start, end, interval = grid
    if interval <= 0:
        return f"step_interval is {interval}", "grid"
    if block.is_list:
        length = max(0, -(-(end - start) // interval))
        told = f"the grid from {start} to {end} by {interval} has {length} steps, the list {len(block.items)}"
        return None if length == len(block.items) else (told, "length")
    return _key_mistake(block, start, end, interval)


def _key_mistake(block: Block, start: int, end: int, interval: int) -> tuple[str, str] | None:
    bad = next((k for k in block.keys if not is_step(k)), None)
    if bad is not None:
        return f"step {bad[:20]!r} is no integer", "steps"
    steps = block.steps()
    odd = next((k for k, step in zip(block.keys, steps, strict=True) if k != str(step)), None)
    if odd is not None:
        return f"step {odd!r} is to be written {str(int(odd))!r}", "steps"
    out = next(((a, b) for a, b in pairwise(steps) if a >= b), None)
    if out:
        return f"steps do not ascend: {out[1]} stands behind {out[0]}", "steps"
    if start != steps[0]:
        return f"start_step is {start}, the first step {steps[0]}", "start"
    if end != steps[-1]:
        return f"end_step is {end}, the last step {steps[-1]}", "end"
    own = interval_of(steps)
    if own and own != interval:
        return f"step_interval is {interval}, the steps are {own} apart", "interval"
    return None


def interval_of(steps: Sequence[int]) -> int:
    """Greatest common distance of the steps, step 1 left out as the harness does; 0 for fewer than two."""
    rest = [s for s in steps if s != 1]
    return reduce(math.gcd, (b - a for a, b in pairwise(rest)), 0)


def plausible_rules(block: Block) -> Iterator[Finding]:
    """GV007: all-zero loss, a jump of 1000, a constant iteration-time."""
    values = block.numbers
    if len(values) < 3:
        return
    low, high = min(values), max(values)
    if low == high:
        yield from _constant(block, low, len(values))
    elif block.metric != "num-zeros" and (low <= 0 or high > JUMP * low):
        yield from _jumps(block)


def _constant(block: Block, value: float, count: int) -> Iterator[Finding]:
    if value == 0 and "loss" in block.metric and not block.metric.startswith("loss-scale"):
        message = f"{block.metric!r} is 0 in all {count} steps"
        yield finding("GV007", block.path, block.metric, message, count=count, kind="all-zero")
    elif block.metric == "iteration-time":
        message = f"'iteration-time' is {value} in all {count} steps; measured times differ"
        yield finding("GV007", block.path, block.metric, message, count=count, kind="constant")


def _jumps(block: Block) -> Iterator[Finding]:
    pairs = [(s, float(v)) for s, v in zip(block.steps(), block.items, strict=True) if type(v) in _NUMBERS]
    found = []
    for i in range(1, len(pairs)):
        around = [abs(pairs[j][1]) for j in (i - 1, i + 1) if j < len(pairs)]
        if 0 < max(around) < math.inf and abs(pairs[i][1]) > JUMP * max(around):
            found.append(pairs[i])
    if found:
        step, value = found[0]
        message = f"{block.metric!r} is {value} at step {step}, over 1000 times its neighbours"
        steps = tuple(s for s, _ in found)
        yield finding("GV007", block.path, block.metric, message, count=len(found), steps=steps, kind="jump")


def empty_rule(block: Block) -> Iterator[Finding]:
    """GV003: a metric without values."""
    if not block.items:
        yield finding("GV003", block.path, block.metric, f"{block.metric!r} has no values", kind="no values")


BlockRule = Callable[[Block], Iterator[Finding]]
BLOCK_RULES: tuple[tuple[frozenset[str], BlockRule], ...] = (
    (frozenset({"GV001", "GV012"}), value_rules),
    (frozenset({"GV004"}), grid_rules),
    (frozenset({"GV007"}), plausible_rules),
)
"""Codes a function may report → the function."""
