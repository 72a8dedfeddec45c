"""Change single values and metrics of a golden file and keep every other byte of it.

A document is scanned into nodes that know their place in the text; a change is a list of places and
their new text. Numbers are copied as they are spelled, never through a float.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from goldenctl.goldenfile import GRID_KEYS, DocumentError
from goldenctl.jsonnumbers import is_step

_BLANK = re.compile(r"[ \t\n\r]*")
_SCALAR = re.compile(r"-?Infinity|NaN|true|false|null|-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?")
_scan_string: Callable[[str, int, bool], tuple[str, int]] = json.decoder.scanstring  # type: ignore[attr-defined]
MAX_DEPTH = 64
"""Golden files nest five deep; more is an attack on the stack."""


@dataclass(slots=True)
class Node:
    """One JSON value and its place in the text."""

    start: int
    """Offset of its first character."""
    end: int
    """Offset behind its last character."""
    members: list[Member] | None = None
    """Members of an object, in file order; None for other values."""
    items: list[Node] = field(default_factory=list)
    """Items of a list; empty for other values."""
    is_list: bool = False

    def get(self, key: str) -> Node | None:
        """The value of the last member with this key, as JSON readers take it."""
        return next((m.value for m in reversed(self.members or []) if m.key == key), None)


@dataclass(slots=True)
class Member:
    """One key of an object with its value."""

    start: int
    """Offset of the key's opening quote."""
    key: str
    value: Node


@dataclass(frozen=True)
class Text:
    """A golden file's text with the places of its values."""

    text: str
    root: Node

    def of(self, node: Node) -> str:
        """The text of a node."""
        return self.text[node.start : node.end]

    def line(self, node: Node) -> int:
        """Line of a node, from 1."""
        return self.text.count("\n", 0, node.start) + 1

    def find(self, metric: str, step: int | None = None) -> Node | None:
        """The block of a metric, or the value of one of its steps; None when it is not there."""
        block = self.root.get(metric)
        if step is None or block is None:
            return block
        return self.steps(metric).get(step)

    def steps(self, metric: str) -> dict[int, Node]:
        """Step → value node of a metric block, of the object and of the list form."""
        if metric not in self._steps:
            self._steps[metric] = _steps(self.text, self.root.get(metric))
        return self._steps[metric]

    @cached_property
    def _steps(self) -> dict[str, dict[int, Node]]:
        return {}


def _steps(text: str, block: Node | None) -> dict[int, Node]:
    values = block.get("values") if block else None
    if block is None or values is None:
        return {}
    if values.members is not None:
        return {int(m.key): m.value for m in values.members if is_step(m.key)}
    start, interval = (_integer(text, block.get(k)) for k in ("start_step", "step_interval"))
    return {(start or 0) + i * (interval or 1): node for i, node in enumerate(values.items)}


def _integer(text: str, node: Node | None) -> int | None:
    spelled = text[node.start : node.end] if node else ""
    return int(spelled) if is_step(spelled) else None


class _Scanner:
    """Recursive descent over JSON text; bare NaN and Infinity are values, as in old files."""

    def __init__(self, text: str) -> None:
        self._text = text

    def document(self) -> Node:
        root = self._value(self._blank(0), 0)
        rest = self._blank(root.end)
        if rest != len(self._text):
            raise self._error("more text behind the document", rest)
        return root

    def _blank(self, at: int) -> int:
        match = _BLANK.match(self._text, at)
        return match.end() if match else at

    def _error(self, reason: str, at: int) -> DocumentError:
        line = self._text.count("\n", 0, at) + 1
        return DocumentError(reason, line, at - (self._text.rfind("\n", 0, at) + 1) + 1)

    def _value(self, at: int, depth: int) -> Node:
        if depth > MAX_DEPTH:
            raise self._error("nested too deeply", at)
        first = self._text[at : at + 1]
        if first == "{":
            return self._object(at, depth)
        if first == "[":
            return self._list(at, depth)
        if first == '"':
            return Node(at, self._string(at)[1])
        match = _SCALAR.match(self._text, at)
        if match is None:
            raise self._error("not JSON", at)
        return Node(at, match.end())

    def _string(self, at: int) -> tuple[str, int]:
        try:
            return _scan_string(self._text, at + 1, False)
        except ValueError as exc:
            raise self._error("not JSON: a string has no end", at) from exc

    def _object(self, at: int, depth: int) -> Node:
        members: list[Member] = []
        here = self._blank(at + 1)
        while self._text[here : here + 1] != "}" or members:
            if self._text[here : here + 1] != '"':
                raise self._error("not JSON: a key is expected", here)
            key, end = self._string(here)
            colon = self._blank(end)
            if self._text[colon : colon + 1] != ":":
                raise self._error("not JSON: a colon is expected", colon)
            value = self._value(self._blank(colon + 1), depth + 1)
            members.append(Member(here, key, value))
            here, done = self._next(value.end, "}")
            if done:
                return Node(at, here, members)
        return Node(at, here + 1, members)

    def _list(self, at: int, depth: int) -> Node:
        items: list[Node] = []
        here = self._blank(at + 1)
        while self._text[here : here + 1] != "]" or items:
            value = self._value(here, depth + 1)
            items.append(value)
            here, done = self._next(value.end, "]")
            if done:
                return Node(at, here, None, items, is_list=True)
        return Node(at, here + 1, None, items, is_list=True)

    def _next(self, at: int, closing: str) -> tuple[int, bool]:
        """Offset of the next member, or behind the closing bracket."""
        here = self._blank(at)
        found = self._text[here : here + 1]
        if found == closing:
            return here + 1, True
        if found != ",":
            raise self._error(f"not JSON: a comma or {closing} is expected", here)
        return self._blank(here + 1), False


def spans(raw: bytes) -> Text:
    """Scan a golden file.

    Raises
    ------
    DocumentError
        Not UTF-8 or not JSON, with line and column.
    """
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as exc:
        raise DocumentError("not UTF-8", raw.count(b"\n", 0, exc.start) + 1) from exc
    return Text(text, _Scanner(text).document())


def _apply(text: str, edits: Iterable[tuple[int, int, str]]) -> bytes:
    out: list[str] = []
    at = 0
    for start, end, new in sorted(edits):
        out += [text[at:start], new]
        at = end
    return "".join([*out, text[at:]]).encode("utf-8")


def replace_values(raw: bytes, values: Mapping[tuple[str, int], str]) -> bytes:
    """Replace single values by their new text.

    Parameters
    ----------
    raw
        The golden file.
    values
        (metric, step) → text of the new value, as it is to stand in the file.

    Raises
    ------
    KeyError
        The file has no such metric or step.
    DocumentError
        The file is not JSON.
    """
    document = spans(raw)
    edits = []
    for (metric, step), new in values.items():
        node = document.find(metric, step)
        if node is None:
            raise KeyError((metric, step))
        edits.append((node.start, node.end, new))
    return _apply(document.text, edits)


def replace_metric(raw: bytes, metric: str, other: bytes) -> bytes:
    """Take one metric's block from another golden file, in the first file's indent.

    Number spelling is the other file's. A metric the first file lacks is added at its end.

    Raises
    ------
    KeyError
        The other file has no such metric.
    DocumentError
        One of the files is not JSON, or the first is no object.
    """
    document, source = spans(raw), spans(other)
    block = source.find(metric)
    if block is None:
        raise KeyError(metric)
    if document.root.members is None:
        raise DocumentError("not a golden document: the top level is no object")
    style = _Style.of(document.text)
    new = style.emit(source, block, 1)
    old = document.find(metric)
    if old is not None:
        return _apply(document.text, [(old.start, old.end, new)])
    return _append(document, style, f"{json.dumps(metric)}{style.colon}{new}")


def _append(document: Text, style: _Style, member: str) -> bytes:
    members = document.root.members or []
    at = members[-1].value.end if members else document.root.start + 1
    tail = "" if members else style.line(0)
    return _apply(document.text, [(at, at, ("," if members else "") + style.line(1, bool(members)) + member + tail)])


@dataclass(frozen=True, slots=True)
class _Style:
    """How a file is laid out."""

    indent: str | None
    """Blanks per level; None for one line."""
    colon: str
    comma: str
    """Separator of one-line files."""

    @classmethod
    def of(cls, text: str) -> _Style:
        first = re.match(r"\s*\{\r?\n([ \t]*)", text)
        colon = ":" if re.search(r'":[^\s]', text[:2000]) else ": "
        comma = "," if re.search(r',"', text[:2000]) or (colon == ":" and ', "' not in text[:2000]) else ", "
        return cls(first.group(1) if first else None, colon, comma)

    def line(self, level: int, after: bool = False) -> str:
        """What stands before a member: a new line with its indent, or the blank of a one-line file."""
        if self.indent is None:
            return self.comma[1:] if after else ""
        return "\n" + self.indent * level

    def emit(self, source: Text, node: Node, level: int) -> str:
        """A node of another file in this style; scalars keep their spelling."""
        if node.members is not None:
            parts = [
                f"{source.text[m.start : self._key_end(source, m)]}{self.colon}{self.emit(source, m.value, level + 1)}"
                for m in node.members
            ]
            return self._bracket(parts, "{}", level)
        if node.is_list:
            return self._bracket([self.emit(source, i, level + 1) for i in node.items], "[]", level)
        return source.of(node)

    @staticmethod
    def _key_end(source: Text, member: Member) -> int:
        return _scan_string(source.text, member.start + 1, False)[1]

    def _bracket(self, parts: Sequence[str], brackets: str, level: int) -> str:
        if not parts:
            return brackets
        if self.indent is None:
            return brackets[0] + self.comma.join(parts) + brackets[1]
        return brackets[0] + self.line(level + 1) + ("," + self.line(level + 1)).join(parts) + self.line(level) + brackets[1]


def set_grid(raw: bytes, grids: Mapping[str, Mapping[str, int]]) -> bytes:
    """Set ``start_step``, ``end_step`` or ``step_interval`` of metrics.

    Parameters
    ----------
    raw
        The golden file.
    grids
        Metric → grid key → its new number. Keys the block lacks are left out.

    Raises
    ------
    DocumentError
        The file is not JSON.
    """
    document = spans(raw)
    edits = []
    for metric, grid in grids.items():
        block = document.find(metric)
        for key, number in grid.items():
            node = block.get(key) if block and key in GRID_KEYS else None
            if node is not None:
                edits.append((node.start, node.end, str(number)))
    return _apply(document.text, edits)


def drop_leading(raw: bytes, counts: Mapping[str, int]) -> bytes:
    """Leave out the first values of metrics in the object form; at least one value is kept.

    Parameters
    ----------
    raw
        The golden file.
    counts
        Metric → number of leading values to leave out.

    Raises
    ------
    DocumentError
        The file is not JSON.
    """
    document = spans(raw)
    edits = []
    for metric, count in counts.items():
        block = document.find(metric)
        values = block.get("values") if block else None
        if values is not None and values.members is not None and 0 < count < len(values.members):
            edits.append((values.members[0].start, values.members[count].start, ""))
    return _apply(document.text, edits)
