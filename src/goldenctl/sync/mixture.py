"""Tell whether a content is a textual mix of two others: each part from one of them, and parts from both."""

from __future__ import annotations

from collections.abc import Hashable

from goldenctl.goldenfile import DocumentError, read

_MARKERS = (b"<<<<<<< ", b">>>>>>> ", b"||||||| ")


def is_mixture(result: bytes, ours: bytes, theirs: bytes) -> bool:
    """Whether ``result`` takes some of its parts from ``ours`` alone and some from ``theirs`` alone, and none of its own.

    Parts are values by metric and step; lines, where one of the three cannot be read. A file with conflict
    markers is a mixture.
    """
    if any(line.startswith(_MARKERS) for line in result.splitlines()):
        return True
    sides = [_points(content) for content in (result, ours, theirs)]
    if None in sides:
        sides = [_lines(content) for content in (result, ours, theirs)]
    mixed, left, right = (side or frozenset() for side in sides)
    return mixed <= left | right and bool(mixed & (left - right)) and bool(mixed & (right - left))


def _points(content: bytes) -> frozenset[Hashable] | None:
    """(metric, step, value) of every value and (name, text) of every text; None when it cannot be read."""
    try:
        document = read(content)
    except DocumentError:
        return None
    values = {(s.metric, step, repr(v)) for s in document.series for step, v in zip(s.steps, s.values, strict=True)}
    return frozenset(values | set(document.texts.items()))


def _lines(content: bytes) -> frozenset[Hashable]:
    return frozenset(line.strip().rstrip(b",") for line in content.splitlines() if line.strip())
