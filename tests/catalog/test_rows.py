"""Documents become columns as the one reader of goldens reads them, however plain or odd they are."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from goldenctl import goldenfile
from goldenctl.catalog.rows import batches, plain, together
from tests.catalog.world import BROKEN, FIRST

NUMBERS = st.one_of(
    st.floats(),
    st.integers(-(10**9), 10**9),
    st.sampled_from(["nan", "NaN", " inf", "-Infinity", "x", "1.5", None, True, 10**400]),
)
STEPS = st.one_of(st.integers(-5, 10**6).map(str), st.sampled_from(["1_0", " 7", "x", "", "9" * 30]))
BLOCKS = st.fixed_dictionaries(
    {"values": st.one_of(st.dictionaries(STEPS, NUMBERS, max_size=5), st.lists(NUMBERS, max_size=4), st.just("none"))},
    optional={
        "start_step": st.one_of(st.integers(0, 9), st.just("1")),
        "end_step": st.integers(),
        "step_interval": st.sampled_from([1, 5, 2.5, None, 2**70]),
        "value_precision": st.sampled_from(["full", 5, "rounded_5_decimal_places"]),
        "extra": st.integers(),
    },
)
DOCUMENTS = st.dictionaries(st.sampled_from(["lm loss", "mem", "ü"]), st.one_of(BLOCKS, BLOCKS, st.just(7)), max_size=3)


def same(a: float, b: float) -> bool:
    return a == b or (math.isnan(a) and math.isnan(b))


@settings(max_examples=400, deadline=None)
@example({"a": {"values": {"1": True}}})
@example({"a": {"values": {"1": 1.5, "2": None}}})
@given(DOCUMENTS)
def test_the_short_cut_for_plain_documents_says_what_the_reader_says(document: dict[str, object]) -> None:
    raw = json.dumps(document).encode()
    try:
        blocks = plain(raw, goldenfile.decode(raw))
    except OverflowError:
        return
    if blocks is None:
        return
    read = goldenfile.read(raw)
    assert (read.shape, read.texts, read.problems) == (goldenfile.Shape.METRICS, {}, ())
    assert len(read.series) == len(blocks)
    for series, block in zip(read.series, blocks, strict=True):
        assert (series.metric, series.precision, series.form) == (block.metric, block.precision, block.form)
        assert (series.start_step, series.end_step, series.step_interval) == block.grid
        assert list(series.steps) == list(block.steps)
        assert all(map(same, series.values, block.values))
        assert len(series.values) == len(block.values)
        assert block.n_nonfinite in (None, series.non_finite)


@settings(max_examples=300, deadline=None)
@given(st.one_of(DOCUMENTS.map(lambda d: json.dumps(d).encode()), st.binary(max_size=30)))
def test_no_document_whatever_is_in_it_stops_a_batch(raw: bytes) -> None:
    (batch,) = batches([("b" * 40, raw)])
    assert len(batch.documents) == 1
    assert sum(len(c.values) for c in batch.contents) == sum(len(c.steps) for c in batch.contents)


def test_nan_and_infinity_are_counted_apart() -> None:
    values = b'{"a": {"values": {"1": "nan", "2": "inf", "3": "-inf", "4": 1.5, "5": "NaN"}}, "b": {"values": {"1": "nan"}}}'
    (batch,) = batches([("b", values)])
    assert [row[8:11] for row in batch.series] == [(5, 2, 2), (1, 1, 0)]


@pytest.mark.parametrize("number", ["1e999", "-1e999", "NaN", "Infinity", "1e308"])
def test_a_number_beyond_float64_is_counted_as_infinite(number: str) -> None:
    (batch,) = batches([("b", b'{"a": {"values": {"1": %s}}}' % number.encode())])
    (row,) = batch.series
    assert row[9:11] == {"NaN": (1, 0), "1e308": (0, 0)}.get(number, (0, 1))


def test_plain_documents_take_the_short_cut() -> None:
    blocks = plain(BROKEN, goldenfile.decode(BROKEN))
    assert blocks is not None
    assert [(b.metric, list(b.steps)) for b in blocks] == [("lm loss", [1, 2]), ("iteration time", [1, 2])]
    assert [math.isnan(v) for b in blocks for v in b.values] == [True, True, True, False]


@pytest.mark.parametrize("limit", [1, 10**6])
def test_a_content_is_given_out_once_whatever_the_batches(limit: int) -> None:
    found = list(batches([("1", FIRST), ("2", BROKEN), ("3", FIRST + b"\n")], limit))
    assert len(found) == (3 if limit == 1 else 1)
    assert [c.metric for batch in found for c in batch.contents] == ["lm loss", "iteration time", "lm loss"]


def test_batches_put_together_hold_each_content_once_and_all_documents() -> None:
    parts = [next(batches([(blob, raw)])) for blob, raw in (("1", FIRST), ("2", BROKEN), ("3", FIRST + b"\n"))]
    whole = together(parts)
    assert [row[0] for row in whole.documents] == ["1", "2", "3"]
    assert whole.raw_bytes == 2 * len(FIRST) + len(BROKEN) + 1
    assert len(whole.series) == sum(len(part.series) for part in parts)
    assert [c.metric for c in whole.contents] == ["lm loss", "iteration time", "lm loss"]


@pytest.mark.corpus
def test_nearly_every_value_of_the_corpus_takes_the_short_cut(corpus: object) -> None:
    from goldenctl.config import load
    from goldenctl.git import Repo

    repo = Repo(load(corpus).top)  # type: ignore[arg-type]
    entries = repo.tree("dev", "tests/functional_tests/test_cases")
    contents = [content for _, content in repo.blobs(e.blob for e in entries.values())]
    short = [plain(content, goldenfile.decode(content)) for content in contents]
    assert sum(b is not None for b in short) > 0.8 * len(contents)
