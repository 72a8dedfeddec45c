"""Read golden documents of every shape into series, tolerantly and without losing a byte.

A golden file is JSON in one of these shapes:

===========  ==============================================================================
metrics      ``{metric: {start_step, end_step, step_interval, values[, value_precision]}}``;
             ``values`` is an object ``{"step": number}`` or, in old files, a list whose item i
             belongs to step ``start_step + i * step_interval`` (``end_step`` exclusive)
inference    ``{request_id: record}`` plus top-level scalars and lists (``throughput``, …)
throughput   ``{"throughput": [tokens per second, one per iteration]}``
record       one flat inference record
bridge       step-keyed ``{"0": {"lm loss": …}, …, "alloc": …}``, bare or under
             ``baseline``/``current``
empty        zero bytes, or ``{}``
===========  ==============================================================================

Any of them may be encoded twice (a JSON string that holds JSON). Old files hold bare ``NaN``;
strings ``"nan"`` and ``"inf"`` stand for non-finite numbers.

Units are those of the producer: ``iteration-time`` in seconds, ``mem-*`` in bytes, ``throughput`` in
tokens per second, losses without unit. Values are float64.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

import orjson

from goldenctl.jsonnumbers import all_numbers, plain_numbers, steps_of, to_number

GRID_KEYS = ("start_step", "end_step", "step_interval")
RECORD_KEYS = frozenset(
    {
        "input_prompt", "generated_text", "generated_tokens", "latency", "logprobs", "step_count", "ttft", "tpot",
        "top_n_logprobs", "prompt_top_n_logprobs", "generated_top_n_logprobs", "prompt_logprobs", "generated_logprobs",
        "cuda_graph_request_count_map", "routing_indices", "routing_indices_token_indices", "events", "id",
    }
)  # fmt: skip
"""Keys that make an object an inference record."""


_LONGEST_STEP = 20
"""Digits of 2**64, which no training reaches."""


class Shape(StrEnum):
    """What kind of golden document a file holds."""

    METRICS = "metrics"
    INFERENCE = "inference"
    THROUGHPUT = "throughput"
    RECORD = "record"
    BRIDGE = "bridge"
    EMPTY = "empty"
    UNKNOWN = "unknown"


class DocumentError(ValueError):
    """Bytes that are no golden document.

    Attributes
    ----------
    reason
        One sentence without position.
    line, column
        Position in the text, from 1; 0 when there is none.
    """

    def __init__(self, reason: str, line: int = 0, column: int = 0) -> None:
        where = f" at line {line}, column {column}" if line else ""
        super().__init__(f"{reason}{where}")
        self.reason = reason
        self.line = line
        self.column = column


@dataclass(frozen=True, slots=True)
class Decoded:
    """JSON as Python objects, with what the decoding had to forgive."""

    value: Any
    """None stands for a zero-byte file."""
    bare_constants: bool = False
    """Bare NaN or Infinity was read; strict JSON readers refuse the file."""
    twice: bool = False
    """The document was a JSON string that holds JSON."""
    strict: bool = True
    """The strict reader took it, so that no number in it is NaN or infinite."""


@dataclass(frozen=True, slots=True)
class Series:
    """One metric of one golden file: ordered steps and values, plus its precision marker."""

    metric: str
    """Metric name; for inference ``{request id}.{field}``, for bridge documents the inner name."""
    steps: tuple[int, ...]
    """Training steps from 1; for lists without a grid the index from 0."""
    values: tuple[float, ...]
    """Same length as ``steps``. NaN and ±inf where the file says so in any spelling."""
    start_step: int | None = None
    """Grid as declared by the file; None when it declares none."""
    end_step: int | None = None
    step_interval: int | None = None
    precision: str | None = None
    """``full``, ``rounded_5_decimal_places``, or None (legacy, rounded to 5 decimals)."""
    form: str = "object"
    """``object`` or ``list`` for metric blocks, ``vector`` for lists, ``scalar`` for single numbers."""

    @property
    def non_finite(self) -> int:
        """Number of values that are NaN or infinite."""
        if math.isfinite(sum(self.values)):
            return 0
        return sum(1 for v in self.values if not math.isfinite(v))


@dataclass(frozen=True, slots=True)
class Problem:
    """A place in a document that could not be read as a number or grid."""

    metric: str
    step: int | None
    what: str
    """E.g. ``null``, ``boolean``, ``nested list``, ``non-numeric string 'abc'``, ``step key 'x'``."""


@dataclass(frozen=True, slots=True)
class Document:
    """A golden document as numbers."""

    shape: Shape
    series: tuple[Series, ...]
    """In file order."""
    texts: Mapping[str, str]
    """What is not a number, ``{request id}.{field}`` → compact JSON text."""
    problems: tuple[Problem, ...] = ()
    decoded: Decoded = Decoded(None)

    def metric(self, name: str) -> Series | None:
        """The series of one metric, or None."""
        return next((s for s in self.series if s.metric == name), None)


def decode(raw: bytes) -> Decoded:
    """Turn bytes into Python objects, forgiving bare NaN and double encoding.

    Raises
    ------
    DocumentError
        Not UTF-8, not JSON, nested too deeply.
    """
    if not raw.strip():
        return Decoded(None)
    outer = _loads(raw)
    if not isinstance(outer.value, str):
        return outer
    try:
        inner = _loads(outer.value.encode("utf-8", "surrogatepass"))
    except DocumentError:
        return outer
    return replace(inner, twice=True) if isinstance(inner.value, dict | list) else outer


def _loads(raw: bytes) -> Decoded:
    try:
        return Decoded(orjson.loads(raw))
    except orjson.JSONDecodeError:
        return _loads_tolerantly(raw)


def _loads_tolerantly(raw: bytes) -> Decoded:
    """Read what orjson refuses: bare NaN, numbers beyond float64."""
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as exc:
        before = raw[: exc.start]
        line = before.count(b"\n") + 1
        raise DocumentError("not UTF-8", line, exc.start - (before.rfind(b"\n") + 1) + 1) from exc
    seen: list[str] = []

    def constant(name: str) -> float:
        seen.append(name)
        return float(name.replace("Infinity", "inf"))

    try:
        return Decoded(json.loads(text, parse_constant=constant), bool(seen), strict=False)
    except json.JSONDecodeError as exc:
        raise DocumentError(f"not JSON: {exc.msg}", exc.lineno, exc.colno) from exc
    except RecursionError as exc:
        raise DocumentError("not a golden document: nested too deeply") from exc
    except ValueError as exc:  # integers beyond Python's digit limit
        raise DocumentError(f"not a golden document: {exc}") from exc


def shape_of(value: Any) -> Shape:
    """Classify decoded JSON; never raises."""
    if value is None or value == {}:
        return Shape.EMPTY
    if not isinstance(value, dict):
        return Shape.UNKNOWN
    objects = {k: v for k, v in value.items() if isinstance(v, dict)}
    if any("values" in v for v in objects.values()):
        return Shape.METRICS
    if "generated_tokens" in value or "generated_text" in value:
        return Shape.RECORD
    if any(not RECORD_KEYS.isdisjoint(v) for v in objects.values()):
        return Shape.INFERENCE
    if _bridge_steps(value) is not None:
        return Shape.BRIDGE
    if not objects and set(value) & {"throughput", "mem-max-allocated-bytes", "lifetime_prefill_token_count"}:
        return Shape.THROUGHPUT
    return Shape.UNKNOWN


def _bridge_steps(value: dict[str, Any]) -> dict[str, Any] | None:
    """The step-keyed object of a bridge document, unwrapped; None when it is not one."""
    for wrapper in ("baseline", "current"):
        if isinstance(value.get(wrapper), dict):
            value = value[wrapper]
            break
    steps = [v for k, v in value.items() if _is_step(k)]
    if steps and all(isinstance(v, dict) for v in steps):
        return value
    return None


def _is_step(key: str) -> bool:
    """Whether a key of a bridge document is a step; longer numbers are none, and Python refuses to read the longest."""
    return key.isdecimal() and len(key) < _LONGEST_STEP


def read(raw: bytes) -> Document:
    """Read a golden document.

    Parameters
    ----------
    raw
        The file's bytes, any shape of the corpus.

    Returns
    -------
    Document
        Series with float64 values; places that are no numbers are listed in ``problems`` and
        left out of the series.

    Raises
    ------
    DocumentError
        The bytes are not JSON, not UTF-8, or of no known shape.
    """
    decoded = decode(raw)
    shape = shape_of(decoded.value)
    if shape is Shape.UNKNOWN:
        raise DocumentError(f"no known document shape: top level is {describe(decoded.value)}")
    reader = _Reader()
    if shape is Shape.METRICS:
        reader.metrics(decoded.value)
    elif shape is Shape.BRIDGE:
        reader.bridge(_bridge_steps(decoded.value) or {})
    elif shape is not Shape.EMPTY:
        reader.fields("", decoded.value)
    return Document(shape, tuple(reader.series), reader.texts, tuple(reader.problems), decoded)


def describe(value: Any) -> str:
    """A short name of a JSON value's type for messages."""
    if isinstance(value, dict):
        keys = ", ".join(repr(k) for k in list(value)[:3])
        return f"an object with keys {keys}" if value else "an empty object"
    if isinstance(value, str):
        return f"the string {value[:20]!r}"
    return {list: "a list", bool: "a boolean", type(None): "null"}.get(type(value), "a number")


Columns = tuple[tuple[int, ...], tuple[float, ...]]
"""Steps and values of one series."""


def _split(pairs: Iterable[tuple[int, float]]) -> Columns:
    steps, numbers = tuple(zip(*pairs, strict=True)) or ((), ())
    return steps, numbers


class _Reader:
    """Collects series, texts and problems while walking a document."""

    def __init__(self) -> None:
        self.series: list[Series] = []
        self.texts: dict[str, str] = {}
        self.problems: list[Problem] = []

    def metrics(self, value: Mapping[str, Any]) -> None:
        for metric, block in value.items():
            if isinstance(block, dict) and "values" in block:
                self._block(metric, block)
            else:
                self._field(metric, block)

    def _block(self, metric: str, block: Mapping[str, Any]) -> None:
        start, end, interval = (block.get(k) if type(block.get(k)) is int else None for k in GRID_KEYS)
        precision = block.get("value_precision")
        values = block["values"]
        if isinstance(values, dict):
            form, columns = "object", self._object(metric, values)
        elif isinstance(values, list):
            form, columns = "list", self._list(metric, values, start or 0, interval or 1)
        else:
            self.problems.append(Problem(metric, None, f"values is {describe(values)}"))
            return
        marker = precision if isinstance(precision, str) else None
        self.series.append(Series(metric, *columns, start, end, interval, marker, form))

    def _object(self, metric: str, values: Mapping[str, Any]) -> Columns:
        """Whole columns at once, which is ten times faster; item by item where one needs a closer look."""
        steps, numbers = steps_of(tuple(values)), plain_numbers(list(values.values()))
        return _split(self._object_pairs(metric, values)) if steps is None or numbers is None else (steps, numbers)

    def _list(self, metric: str, values: list[Any], start: int, interval: int) -> Columns:
        steps, numbers = range(start, start + len(values) * interval, interval), plain_numbers(values)
        if numbers is None:
            return _split(pair for step, item in zip(steps, values, strict=True) for pair in self._pair(metric, step, item))
        return tuple(steps), numbers

    def _object_pairs(self, metric: str, values: Mapping[str, Any]) -> Iterator[tuple[int, float]]:
        for key, item in values.items():
            try:
                step = int(key)
            except ValueError:
                self.problems.append(Problem(metric, None, f"step key {key[:20]!r}"))
                continue
            yield from self._pair(metric, step, item)

    def _pair(self, metric: str, step: int, item: Any) -> Iterator[tuple[int, float]]:
        number = to_number(item)
        if number is None:
            self.problems.append(Problem(metric, step, describe(item)))
        else:
            yield step, number

    def fields(self, prefix: str, value: Mapping[str, Any]) -> None:
        for key, item in value.items():
            if isinstance(item, dict) and not prefix and not RECORD_KEYS.isdisjoint(item):
                self.fields(f"{key}.", item)
            else:
                self._field(prefix + key, item)

    def _field(self, name: str, item: Any) -> None:
        number = None if isinstance(item, str) else to_number(item)
        if number is not None:
            self.series.append(Series(name, (0,), (number,), form="scalar"))
        elif isinstance(item, list) and item and (numbers := all_numbers(item)) is not None:
            self.series.append(Series(name, tuple(range(len(item))), numbers, form="vector"))
        elif item is not None:
            self.texts[name] = json.dumps(item, separators=(",", ":"), ensure_ascii=False)

    def bridge(self, value: Mapping[str, Any]) -> None:
        columns: dict[str, list[tuple[int, float]]] = {}
        for key, item in value.items():
            if not _is_step(key):
                self._field(key, item)
                continue
            for metric, number in item.items():
                columns.setdefault(metric, []).extend(self._pair(metric, int(key), number))
        for metric, pairs in columns.items():
            self.series.append(Series(metric, *_split(pairs)))
