"""The harness's own view of a document: its reader keeps strings, which its comparison then takes for infinity."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from goldenctl.goldenfile import DocumentError, decode, describe

_INTEGER = re.compile(r"\s*[+-]?\d+(\.0*)?\s*")


class HarnessError(ValueError):
    """What makes a functional test end in an exception; the message is the reason."""


@dataclass(frozen=True, slots=True)
class Block:
    """One metric block as the harness holds it."""

    values: Mapping[int, float]
    """Step → value; strings of any content are +infinity, bare NaN stays NaN."""
    texts: frozenset[int]
    """Steps whose value is a string."""
    full: bool
    """The block says ``value_precision: full``."""


def blocks(raw: bytes) -> dict[str, Block]:
    """Metric blocks the way the pretraining harness validates them.

    Raises
    ------
    HarnessError
        Not JSON, or a shape its reader refuses: no object, a block without grid, values that are a list, a null.
    """
    value = _object(raw)
    return {name: _block(name, block) for name, block in value.items()}


def _object(raw: bytes) -> Mapping[str, Any]:
    try:
        decoded = decode(raw)
    except DocumentError as exc:
        raise HarnessError(f"its reader refuses the file: {exc}") from exc
    if decoded.value is None:
        raise HarnessError("its reader refuses the file: it is empty")
    if decoded.twice or not isinstance(decoded.value, dict):
        shape = "a string that holds JSON" if decoded.twice else describe(decoded.value)
        raise HarnessError(f"its reader refuses the file: it is {shape}, not an object")
    return decoded.value


def loose_object(raw: bytes) -> dict[str, Any]:
    """A document the way the inference and rl harnesses read it: decoded twice where it is a string.

    Raises
    ------
    HarnessError
        Not JSON, or no object.
    """
    try:
        decoded = decode(raw)
    except DocumentError as exc:
        raise HarnessError(f"its reader refuses the file: {exc}") from exc
    if not isinstance(decoded.value, dict):
        raise HarnessError("its reader refuses the file: it is no object")
    return decoded.value


def _block(name: str, block: Any) -> Block:
    if not isinstance(block, dict) or not isinstance(block.get("values"), dict):
        kind = describe(block.get("values")) if isinstance(block, dict) else describe(block)
        raise HarnessError(f"its reader refuses {name!r}: expected a block with values by step, found {kind}")
    for key in ("start_step", "end_step", "step_interval"):
        if not _INTEGER.fullmatch(str(block.get(key))):
            raise HarnessError(f"its reader refuses {name!r}: {key} is {describe(block.get(key))}")
    values: dict[int, float] = {}
    texts = set()
    for key, item in block["values"].items():
        step, number = _step(name, key), _value(name, key, item)
        values[step] = number
        if isinstance(item, str):
            texts.add(step)
    return Block(values, frozenset(texts), block.get("value_precision") == "full")


def _step(name: str, key: str) -> int:
    if not _INTEGER.fullmatch(key):
        raise HarnessError(f"its reader refuses {name!r}: step {key[:20]!r} is no integer")
    return int(float(key)) if "." in key else int(key)


def _value(name: str, key: str, item: Any) -> float:
    if isinstance(item, str):
        return math.inf
    if isinstance(item, int | float):
        try:
            return float(item)
        except OverflowError:
            return math.inf
    raise HarnessError(f"its reader refuses {name!r}: step {key} is {describe(item)}")
