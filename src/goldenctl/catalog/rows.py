"""Golden documents as columns: parsed outside any transaction, each distinct series content once.

Light on purpose (standard library only), so that parsing can run in a process of its own.
"""

from __future__ import annotations

import hashlib
import math
from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple

from goldenctl import goldenfile
from goldenctl.goldenfile import GRID_KEYS, Decoded, Document, DocumentError, Series, Shape
from goldenctl.jsonnumbers import NON_FINITE

BATCH_BYTES = 32 << 20
"""Raw bytes of documents in one batch, which is one transaction: the most a kill can cost."""


class Block(NamedTuple):
    """One series as packed columns."""

    metric: str
    grid: tuple[int | None, ...]
    """start_step, end_step and step_interval as declared; None where they are not."""
    precision: str | None
    form: str
    steps: array[int]
    """int64; the metrics of a file, and of its neighbours, mostly share it."""
    digest: bytes
    """Of the steps."""
    values: array[float]
    """float64, as many as steps."""
    n_nonfinite: int | None = None
    """How many of them are NaN or infinite; None means that somebody has to look."""


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

    documents: list[tuple[object, ...]] = field(default_factory=list)
    """Rows of the table, as the next two."""
    series: list[tuple[object, ...]] = field(default_factory=list)
    texts: list[tuple[object, ...]] = field(default_factory=list)
    contents: list[Content] = field(default_factory=list)
    raw_bytes: int = 0
    """Size of the documents as files."""


def together(parts: Sequence[Batch]) -> Batch:
    """The batches as one, a content that several gave out once."""
    whole = Batch(contents=list({content.id: content for part in parts for content in part.contents}.values()))
    for part in parts:
        whole.documents += part.documents
        whole.series += part.series
        whole.texts += part.texts
        whole.raw_bytes += part.raw_bytes
    return whole


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

    def take(self) -> Batch:
        full, self.batch = self.batch, Batch()
        return full

    def add(self, blob: str, raw: bytes) -> None:
        self.batch.raw_bytes += len(raw)
        try:
            decoded = goldenfile.decode(raw)
            blocks = plain(raw, decoded)
            if blocks is not None:
                document = Document(Shape.METRICS, (), {}, decoded=decoded)
            else:
                document = goldenfile.read(raw)
                blocks = [_block(series) for series in document.series]
        except (DocumentError, OverflowError) as exc:
            error = utf8(str(exc)) if isinstance(exc, DocumentError) else "a step or grid number does not fit 64 bits"
            content = _digest(raw)
            self.batch.documents.append((blob, content, len(raw), str(Shape.UNKNOWN), 0, 0, 0, 0, False, False, error))
            return
        self._add(blob, len(raw), document, blocks)

    def _add(self, blob: str, size: int, document: Document, blocks: list[Block]) -> None:
        parts, n_values, n_nonfinite = [], 0, 0
        for position, block in enumerate(blocks):
            content, (n_nan, n_inf) = self._content(block)
            n_values += len(block.values)
            n_nonfinite += n_nan + n_inf
            name = utf8(block.metric)
            parts.append(f"{name}\0{content}")
            first, last = (block.steps[0], block.steps[-1]) if block.steps else (None, None)
            marker = None if block.precision is None else utf8(block.precision)
            counts = (len(block.values), n_nan, n_inf)
            self.batch.series.append((blob, name, position, *block.grid, marker, block.form, *counts, first, last, content))
        for name, text in document.texts.items():
            self.batch.texts.append((blob, utf8(name), utf8(text)))
            parts.append(f"{utf8(name)}\1{utf8(text)}")
        decoded = document.decoded
        self.batch.documents.append(
            (blob, _digest("\n".join(sorted(parts)).encode()), size, str(document.shape), len(blocks),
             n_values, n_nonfinite, len(document.problems), decoded.bare_constants, decoded.twice, None)
        )  # fmt: skip

    def _content(self, block: Block) -> tuple[int, tuple[int, int]]:
        """Content id, and the numbers of NaN and infinite values; a new content is added to the batch."""
        content = _digest(block.values, block.digest)
        counts = self.counts.get(content)
        if counts is None:
            counts = self.counts[content] = _non_finite(block)
            self.batch.contents.append(Content(block.metric, content, block.steps, block.values))
        return content, counts


def plain(raw: bytes, decoded: Decoded) -> list[Block] | None:
    """The blocks of a document that holds nothing but metrics with numbers by step, as nearly all do.

    What :func:`goldenctl.goldenfile.read` says of them, in a third of its time; None for any other document.

    Raises
    ------
    OverflowError
        A step or grid number does not fit 64 bits.
    """
    if type(decoded.value) is not dict or b"true" in raw or b"false" in raw:
        return None
    out = []
    keys, steps = None, None
    for metric, content in decoded.value.items():
        values = content.get("values") if type(content) is dict else None
        if type(values) is not dict:
            return None
        mine = tuple(values)
        if mine != keys:
            keys, steps = mine, _steps(mine)
        numbers, words = _numbers(values)
        if steps is None or numbers is None:
            return None
        marker = content.get("value_precision")
        precision = marker if type(marker) is str else None
        non_finite = words if decoded.strict else None  # a strict reader lets no other non-finite number pass
        out.append(Block(metric, _grid(content), precision, "object", *steps, numbers, non_finite))
    return out or None


def _numbers(values: dict[str, Any]) -> tuple[array[float] | None, int]:
    """The values, no boolean among them, and how many are spelled in words; None for what is no number."""
    try:
        return array("d", values.values()), 0
    except TypeError:  # a word among them, at the least
        pass
    except OverflowError:  # an integer beyond float64
        return None, 0
    try:
        words = list(map(type, values.values())).count(str)
        return array("d", map(NON_FINITE.get, values.values(), values.values())), words
    except (TypeError, OverflowError):  # not a spelling of NaN or infinity, or no text at all
        return None, 0


def _grid(content: dict[str, Any]) -> tuple[int | None, ...]:
    start, end, interval = map(content.get, GRID_KEYS)
    if type(start) is type(end) is type(interval) is int and max(abs(start), abs(end), abs(interval)) < 2**63:
        return start, end, interval
    return _fitting(tuple(number if type(number) is int else None for number in (start, end, interval)))


@lru_cache(maxsize=256)
def _steps(keys: tuple[str, ...]) -> tuple[array[int], bytes] | None:
    try:
        return _packed(map(int, keys))
    except ValueError:
        return None


def _packed(steps: Iterable[int]) -> tuple[array[int], bytes]:
    packed = array("q", steps)
    return packed, hashlib.blake2b(packed, digest_size=16).digest()


def _block(series: Series) -> Block:
    grid = _fitting((series.start_step, series.end_step, series.step_interval))
    return Block(series.metric, grid, series.precision, series.form, *_packed(series.steps), array("d", series.values))


def _fitting(grid: tuple[int | None, ...]) -> tuple[int | None, ...]:
    """The same numbers; OverflowError for one that no column of the catalog holds."""
    if not all(number is None or -(2**63) <= number < 2**63 for number in grid):
        raise OverflowError
    return grid


def _digest(content: bytes | array[float], key: bytes = b"") -> int:
    """64-bit id of a content; among a million contents two agree by chance once in thirty million catalogs."""
    return int.from_bytes(hashlib.blake2b(content, digest_size=8, key=key).digest(), "little", signed=True)


def _non_finite(block: Block) -> tuple[int, int]:
    """Numbers of NaN and of infinite values."""
    if block.n_nonfinite == 0 or (block.n_nonfinite is None and math.isfinite(sum(block.values))):
        return 0, 0
    infinite = block.values.count(math.inf) + block.values.count(-math.inf)
    if block.n_nonfinite is not None:
        return block.n_nonfinite - infinite, infinite
    return sum(map(math.isnan, block.values)), infinite


def utf8(text: str) -> str:
    """``text`` with lone surrogates replaced, which no database stores."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()
