"""Documents of every shape are read into series, tolerantly, and nothing is lost."""

from __future__ import annotations

import json
import math
import struct
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goldenctl.git import Repo
from goldenctl.goldenfile import DocumentError, Problem, Shape, decode, read, shape_of
from tests.conftest import golden_json


def test_metric_blocks_give_steps_values_grid_and_precision() -> None:
    raw = golden_json(lm_loss={1: 10.5, 5: "nan", 10: 9}).replace(b'"values"', b'"value_precision": "full", "values"')
    document = read(raw)
    (series,) = document.series
    assert document.shape is Shape.METRICS
    assert (series.metric, series.steps, series.precision, series.form) == ("lm loss", (1, 5, 10), "full", "object")
    assert (series.start_step, series.end_step, series.step_interval, series.non_finite) == (1, 10, 5, 1)
    assert (series.values[0], math.isnan(series.values[1]), series.values[2]) == (10.5, True, 9.0)


def test_the_list_form_counts_its_steps_from_the_grid() -> None:
    block = {"start_step": 0, "end_step": 15, "step_interval": 5, "values": [3.5, 2.5, 1.5]}
    raw = json.dumps({"lm loss": block, "iteration_timing_avg": 0.25}).encode()
    losses, average = read(raw).series
    assert (losses.steps, losses.values, losses.form) == ((0, 5, 10), (3.5, 2.5, 1.5), "list")
    assert (average.metric, average.values, average.form) == ("iteration_timing_avg", (0.25,), "scalar")


def test_inference_records_give_numbers_lists_and_texts() -> None:
    record = {
        "generated_text": "nan",
        "generated_tokens": [3, 4],
        "logprobs": [-0.5, -1.5],
        "latency": None,
        "top_n_logprobs": {"a": 1},
    }
    document = read(json.dumps({"0": record, "throughput": [1.0, 2.0], "mem-max-allocated-bytes": 7}).encode())
    assert document.shape is Shape.INFERENCE
    assert {s.metric: (s.form, s.values) for s in document.series} == {
        "0.generated_tokens": ("vector", (3.0, 4.0)),
        "0.logprobs": ("vector", (-0.5, -1.5)),
        "throughput": ("vector", (1.0, 2.0)),
        "mem-max-allocated-bytes": ("scalar", (7.0,)),
    }
    assert document.texts["0.generated_text"] == '"nan"'
    assert document.texts["0.top_n_logprobs"] == '{"a":1}'


def test_throughput_alone_and_one_flat_record_are_documents() -> None:
    assert read(b'{"throughput": [1.5, 2.5]}').shape is Shape.THROUGHPUT
    flat = read(b'{"id": "0", "generated_text": "x", "generated_tokens": [1], "logprobs": [-1.0]}')
    assert flat.shape is Shape.RECORD
    assert [s.metric for s in flat.series] == ["generated_tokens", "logprobs"]


@pytest.mark.parametrize("wrapper", ["", "baseline", "current"])
def test_the_step_keyed_form_is_turned_into_series_by_metric(wrapper: str) -> None:
    inner: dict[str, Any] = {"0": {"lm loss": 3.5, "grad norm": 1.0}, "1": {"lm loss": 3.25, "grad norm": "nan"}, "alloc": 12.5}
    document = read(json.dumps({wrapper: inner} if wrapper else inner).encode())
    found = {s.metric: (s.steps, s.values) for s in document.series}
    assert document.shape is Shape.BRIDGE
    assert found["lm loss"] == ((0, 1), (3.5, 3.25))
    assert found["alloc"] == ((0,), (12.5,))
    assert math.isnan(found["grad norm"][1][1])


@pytest.mark.parametrize("raw", [b"", b"  \n", b"{}"])
def test_empty_files_are_empty_documents(raw: bytes) -> None:
    assert (read(raw).shape, read(raw).series) == (Shape.EMPTY, ())


def test_a_document_encoded_twice_is_read_and_said() -> None:
    inner = golden_json(None, lm_loss={1: 1.5})
    document = read(json.dumps(inner.decode()).encode())
    assert (document.decoded.twice, document.series) == (True, read(inner).series)


def test_bare_constants_are_read_and_said() -> None:
    document = read(
        b'{"a": {"start_step": 1, "end_step": 3, "step_interval": 1, "values": {"1": NaN, "2": -Infinity, "3": 1e999}}}'
    )
    assert document.decoded.bare_constants
    assert [str(v) for v in document.series[0].values] == ["nan", "-inf", "inf"]


def test_what_is_no_number_is_a_problem_with_metric_and_step() -> None:
    document = read(golden_json(lm_loss={1: 1.0, 2: None, 3: True, 4: [1.0], 5: "1.5", 6: 2.0}))
    assert [(p.metric, p.step) for p in document.problems] == [("lm loss", 2), ("lm loss", 3), ("lm loss", 4), ("lm loss", 5)]
    assert document.series[0].steps == (1, 6)
    assert read(golden_json(lm_loss={1: 1.0}).replace(b'"1"', b'"x"')).problems == (Problem("lm loss", None, "step key 'x'"),)


def test_unknown_extra_keys_do_no_harm() -> None:
    raw = golden_json(lm_loss={1: 1.0}).replace(b'"start_step"', b'"producer": "abc", "start_step"')
    assert read(raw).series == read(golden_json(lm_loss={1: 1.0})).series


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (b"{", "not JSON"),
        (b"\xff\xfe", "not UTF-8 at line 1, column 1"),
        (b"[1]", "no known document shape: top level is a list"),
        (b'{"a": 1}', "no known document shape: top level is an object with keys 'a'"),
        (b"[" * 100_000, "not"),
        (b'{"a": ' + b"9" * 5000 + b"}", "no"),
    ],
)
def test_what_is_no_document_is_an_error_with_reason_and_place(raw: bytes, reason: str) -> None:
    with pytest.raises(DocumentError, match=reason):
        read(raw)


@given(st.binary(max_size=200))
def test_any_bytes_give_a_document_or_a_document_error(raw: bytes) -> None:
    try:
        read(raw)
    except DocumentError:
        pass
    else:
        assert shape_of(decode(raw).value) is not Shape.UNKNOWN


finite = st.floats(allow_nan=False, allow_infinity=False)


@given(st.dictionaries(st.integers(0, 10**6), finite, min_size=1, max_size=30), st.sampled_from([None, 1, 4]))
def test_every_float_survives_bit_for_bit(values: dict[int, float], indent: int | None) -> None:
    (series,) = read(golden_json(indent, lm_loss=values)).series
    assert series.steps == tuple(values)
    assert struct.pack(f"{len(values)}d", *series.values) == struct.pack(f"{len(values)}d", *values.values())


json_values = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=8), inner, max_size=5),
    max_leaves=25,
)


@given(st.dictionaries(st.sampled_from(["lm loss", "0", "throughput", "baseline"]), json_values))
def test_any_json_object_gives_a_document_or_a_document_error(value: dict[str, Any]) -> None:
    try:
        read(json.dumps(value).encode())
    except DocumentError as exc:
        assert exc.reason


@pytest.mark.corpus
def test_every_document_of_the_history_is_read_or_said_to_be_none(corpus: Path) -> None:
    repo = Repo(corpus)
    listed = repo.text("log", "--all", "--format=", "--raw", "-m", "--no-renames", "--no-abbrev").splitlines()
    blobs = {r.split("\t")[0].split()[3] for r in listed if r.startswith(":")} - {"0" * 40}
    shapes: dict[str, int] = {}
    for _, raw in repo.blobs(sorted(blobs)):
        shape = read(raw).shape
        shapes[shape.value] = shapes.get(shape.value, 0) + 1
    # 4385 + 180 + 88 with blocks, 122 + 38 + 30 + 27 + 10 + 3 + 1 of inference, 3 flat and 5 encoded twice
    assert shapes == {"metrics": 4653, "inference": 231, "throughput": 4, "record": 8, "empty": 2}
