"""Golden documents as columns: parsed outside any transaction, each distinct series content once.

Light on purpose (standard library only), so that parsing can run in a process of its own.
"""

from __future__ import annotations

import hashlib
import math
from array import array
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from goldenctl import goldenfile
from goldenctl.goldenfile import Document, DocumentError, Series, Shape

DOCUMENT = (
    "id", "content", "size", "shape", "n_series", "n_values", "n_nonfinite", "n_problems", "bare_constants", "twice", "error",
)  # fmt: skip
SERIES = (
    "document", "metric", "position", "start_step", "end_step", "step_interval", "precision", "form", "n_values", "n_nan",
    "n_inf", "first_step", "last_step", "content",
)  # fmt: skip
TEXT = ("document", "name", "text")
BATCH_BYTES = 32 << 20
"""Raw bytes of documents in one batch, which is one transaction: the most a kill can cost."""


Grid = tuple["array[int]", bytes]
"""Steps as int64, and their digest."""


class Rows(list[tuple[object, ...]]):
    """Rows of a table, with the names of their columns.

    Parameters
    ----------
    names
        In the order of the items of every row.
    """

    def __init__(self, names: tuple[str, ...]) -> None:
        super().__init__()
        self.names = names


class Content(NamedTuple):
    """One distinct series content, first met in this batch."""

    metric: str
    """Where it was met; alike values side by side take a fifth less room."""
    id: int
    steps: array[int]
    """int64; the contents of a file mostly share it."""
    values: array[float]
    """float64, as many as steps; NaN and infinities as they are."""


@dataclass
class Batch:
    """Documents with their series, texts and values, ready to be written."""

    documents: Rows = field(default_factory=lambda: Rows(DOCUMENT))
    series: Rows = field(default_factory=lambda: Rows(SERIES))
    texts: Rows = field(default_factory=lambda: Rows(TEXT))
    contents: list[Content] = field(default_factory=list)
    raw_bytes: int = 0
    """Size of the documents as files."""


def batches(documents: Iterable[tuple[str, bytes]], limit: int = BATCH_BYTES) -> Iterator[Batch]:
    """Parse documents into batches of about ``limit`` raw bytes.

    Parameters
    ----------
    documents
        Git blob id and bytes, each id once.
    """
    reader = _Reader()
    for blob, raw in documents:
        reader.add(blob, raw)
        if reader.batch.raw_bytes >= limit:
            yield reader.take()
    if len(reader.batch.documents):
        yield reader.take()


class _Reader:
    """Adds documents to a batch and remembers the series contents it has given out."""

    def __init__(self) -> None:
        self.batch = Batch()
        self.counts: dict[int, tuple[int, int]] = {}
        self.last: tuple[tuple[int, ...] | None, Grid] = None, (array("q"), b"")

    def take(self) -> Batch:
        full, self.batch = self.batch, Batch()
        return full

    def add(self, blob: str, raw: bytes) -> None:
        self.batch.raw_bytes += len(raw)
        try:
            document = goldenfile.read(raw)
            grids = [self._grid(series) for series in document.series]
        except (DocumentError, OverflowError) as exc:
            error = utf8(str(exc)) if isinstance(exc, DocumentError) else "a step or grid number does not fit 64 bits"
            content = _digest(raw)
            self.batch.documents.append((blob, content, len(raw), str(Shape.UNKNOWN), 0, 0, 0, 0, False, False, error))
            return
        self._add(blob, raw, document, grids)

    def _grid(self, series: Series) -> Grid:
        """Steps as int64; the metrics of a file mostly share them, and are then given the same."""
        array("q", (series.start_step or 0, series.end_step or 0, series.step_interval or 0))  # refuses what is too large
        if series.steps is not self.last[0]:
            packed = array("q", series.steps)
            self.last = series.steps, (packed, hashlib.blake2b(packed.tobytes(), digest_size=16).digest())
        return self.last[1]

    def _add(self, blob: str, raw: bytes, document: Document, grids: list[Grid]) -> None:
        parts, n_values, n_nonfinite = [], 0, 0
        for position, (series, steps) in enumerate(zip(document.series, grids, strict=True)):
            content, (n_nan, n_inf) = self._content(series, steps)
            n_values += len(series.values)
            n_nonfinite += n_nan + n_inf
            name = utf8(series.metric)
            parts.append(f"{name}\0{content}")
            first, last = (series.steps[0], series.steps[-1]) if series.steps else (None, None)
            grid = (series.start_step, series.end_step, series.step_interval)
            marker = None if series.precision is None else utf8(series.precision)
            counts = (len(series.values), n_nan, n_inf)
            self.batch.series.append((blob, name, position, *grid, marker, series.form, *counts, first, last, content))
        for name, text in document.texts.items():
            self.batch.texts.append((blob, utf8(name), utf8(text)))
            parts.append(f"{utf8(name)}\1{utf8(text)}")
        decoded = document.decoded
        self.batch.documents.append(
            (blob, _digest("\n".join(sorted(parts)).encode()), len(raw), str(document.shape), len(document.series),
             n_values, n_nonfinite, len(document.problems), decoded.bare_constants, decoded.twice, None)
        )  # fmt: skip

    def _content(self, series: Series, grid: Grid) -> tuple[int, tuple[int, int]]:
        """Content id, and the numbers of NaN and infinite values; a new content is added to the batch."""
        steps, key = grid
        values = array("d", series.values)
        content = _digest(values.tobytes(), key)
        counts = self.counts.get(content)
        if counts is None:
            counts = self.counts[content] = _non_finite(series.values)
            self.batch.contents.append(Content(series.metric, content, steps, values))
        return content, counts


def _digest(content: bytes, key: bytes = b"") -> int:
    """64-bit id of a content; among a million contents two agree by chance once in thirty million catalogs."""
    return int.from_bytes(hashlib.blake2b(content, digest_size=8, key=key).digest(), "little", signed=True)


def _non_finite(values: tuple[float, ...]) -> tuple[int, int]:
    if math.isfinite(sum(values)):
        return 0, 0
    return sum(map(math.isnan, values)), sum(map(math.isinf, values))


def utf8(text: str) -> str:
    """``text`` with lone surrogates replaced, which no database stores."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()
