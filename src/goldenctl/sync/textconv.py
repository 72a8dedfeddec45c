"""A golden as a short table of its metrics, for ``git diff`` and ``git log -p``."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

from goldenctl.goldenfile import Document, DocumentError, Series, read

_COLUMNS = ("metric", "steps", "first", "last", "min", "max", "nan", "precision")


def as_text(raw: bytes) -> str:
    """One line a metric: grid, first, last, smallest and largest value, number of non-finite values.

    Texts (inference) follow with their length. Bytes that are no golden document are shown as they are,
    below the reason.
    """
    try:
        document = read(raw)
    except DocumentError as exc:
        return f"not a golden document: {exc}\n{raw.decode('utf-8', 'replace')}"
    return "".join(f"{line}\n" for line in [*_table(document), *_texts(document), *_problems(document)])


def _table(document: Document) -> list[str]:
    rows = [_row(series) for series in document.series]
    if not rows:
        return [f"no metrics ({document.shape.value})"]
    widths = [max(len(row[i]) for row in (_COLUMNS, *rows)) for i in range(len(_COLUMNS))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in (_COLUMNS, *rows)]


def _row(series: Series) -> tuple[str, ...]:
    finite = [v for v in series.values if math.isfinite(v)]
    ends = (series.values[0], series.values[-1]) if series.values else ()
    spread = (min(finite), max(finite)) if finite else ()
    cells = [repr(v) for v in ends] or ["", ""]
    cells += [repr(v) for v in spread] or ["", ""]
    bad = len(series.values) - len(finite)
    return _printable(series.metric), _grid(series.steps), *cells, str(bad) if bad else "", series.precision or ""


def _printable(name: str) -> str:
    """A name whose line breaks and control characters are written as escapes: a metric keeps its one line."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in name)


def _grid(steps: Sequence[int]) -> str:
    """``1…100 (21, every 5)``; the distance is left out where it varies."""
    if not steps:
        return "none"
    gaps = {b - a for a, b in itertools.pairwise(steps[1:])}  # from step 1 to the grid is often shorter by one
    every = f", every {gaps.pop()}" if len(gaps) == 1 else ""
    return f"{steps[0]}…{steps[-1]} ({len(steps)}{every})"


def _texts(document: Document) -> list[str]:
    return [f"{_printable(name)}: {len(text)} characters: {_printable(text[:60])}" for name, text in document.texts.items()]


def _problems(document: Document) -> list[str]:
    steps = ["" if p.step is None else f" at step {p.step}" for p in document.problems]
    return [f"{_printable(p.metric)}: {p.what}{step}" for p, step in zip(document.problems, steps, strict=True)]
