"""Rules about everything that is no metric block: inference records, lists, scalars, step-keyed documents."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from typing import Any

from goldenctl.goldenfile import describe
from goldenctl.jsonnumbers import NON_FINITE
from goldenctl.lint.block import REPAIR
from goldenctl.lint.rules import finding
from goldenctl.model import Finding

TEXTS = frozenset({"generated_text", "input_prompt", "id"})
"""Fields that hold text: a model may well generate the word ``inf``."""
NUMBERS = frozenset({"throughput", "mem-max-allocated-bytes", "lifetime_prefill_token_count"})
"""Top-level fields that hold numbers and nothing else."""
_PLAIN = frozenset({float, int})
_NESTED = frozenset({dict, list})


def rules(path: str, value: Mapping[str, Any], *, strict: bool) -> Iterator[Finding]:
    """GV001 and GV012 of the fields and records of a document, metric blocks left out."""
    for key, item in value.items():
        if key in TEXTS or (isinstance(item, dict) and "values" in item):
            continue
        bad = list(_non_finite(item, (), strict))
        if bad:
            yield _non_finite_finding(path, key, bad)
        if key in NUMBERS:
            yield from _wrong_types(path, key, item)


def _non_finite(item: Any, where: tuple[str | int, ...], strict: bool) -> Iterator[tuple[str | int, ...]]:
    """Places below an item, as keys and indices, where a value is not finite."""
    kind = type(item)
    if kind is dict:
        for key, inner in item.items():
            if key not in TEXTS:
                yield from _non_finite(inner, (*where, key), strict)
    elif kind is list:
        if strict and set(map(type, item)) <= _PLAIN:
            return
        for i, inner in enumerate(item):
            yield from _non_finite(inner, (*where, i), strict)
    elif kind is str:
        if item.strip().lower() in NON_FINITE:
            yield where
    elif kind is float and not math.isfinite(item):
        yield where


def _non_finite_finding(path: str, key: str, bad: list[tuple[str | int, ...]]) -> Finding:
    first = "".join(f"[{w!r}]" for w in (key, *bad[0]))
    message = f"{len(bad)} value{'s are' if len(bad) > 1 else ' is'} not finite in {key!r}, first {first}{REPAIR}"
    steps = tuple(w[-1] for w in bad if w and isinstance(w[-1], int))
    return finding("GV001", path, key, message, count=len(bad), steps=steps, kind="record")


def _wrong_types(path: str, key: str, item: Any) -> Iterator[Finding]:
    items = item if isinstance(item, list) else [item]
    wrong = [(i, v) for i, v in enumerate(items) if type(v) not in _PLAIN and not _is_non_finite_text(v)]
    if wrong:
        message = (
            f"{len(wrong)} of {len(items)} values of {key!r} are no numbers; number {wrong[0][0]} is {describe(wrong[0][1])}"
        )
        yield finding("GV012", path, key, message, count=len(wrong), steps=tuple(i for i, _ in wrong), kind="field")


def _is_non_finite_text(value: Any) -> bool:
    return isinstance(value, str) and value.strip().lower() in NON_FINITE


def count_keys(value: Any) -> int:
    """Number of keys in all objects of a decoded document."""
    if type(value) is dict:
        items = value.values()
        return len(value) + (0 if _NESTED.isdisjoint(map(type, items)) else sum(map(count_keys, items)))
    if type(value) is list and not _NESTED.isdisjoint(map(type, value)):
        return sum(map(count_keys, value))
    return 0


def duplicate_keys(raw: bytes) -> list[str]:
    """Keys that stand twice in one object, by a reader that sees every pair; empty when the file cannot be read."""
    found: list[str] = []

    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        out = dict(items)
        if len(out) < len(items):
            seen: set[str] = set()
            found.extend(k for k, _ in items if k in seen or seen.add(k))  # type: ignore[func-returns-value]
        return out

    try:
        json.loads(raw, object_pairs_hook=pairs)
    except (ValueError, RecursionError):
        return []
    return found
