"""Each rule finds what it names and leaves what is in order."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from goldenctl import lint
from goldenctl.config import LintSettings, Settings
from goldenctl.model import Finding
from tests.conftest import golden_json

PATH = "goldens/gpt/case/golden_values_dev_dgx_h100.json"


def settings(**own: object) -> Settings:
    return Settings(Path("/repo"), root="goldens", lint=LintSettings(**own))  # type: ignore[arg-type]


def found(raw: bytes, path: str = PATH, **own: object) -> list[tuple[str, str, str, int]]:
    return [(f.rule, f.metric, f.kind, f.count) for f in lint.check(path, raw, settings(**own))]


def only(raw: bytes, path: str = PATH) -> Finding:
    (one,) = lint.check(path, raw, settings())
    return one


GOOD = golden_json(lm_loss={1: 10.5, 2: 10.25, 3: 10.0}, num_zeros={1: 5.0, 2: 6.0, 3: 7.0})


def test_a_good_file_has_no_findings() -> None:
    assert found(GOOD) == []


@pytest.mark.parametrize("spelled", ["nan", "NaN", "-nan", "inf", "-Infinity", "+INF", " infinity "])
def test_gv001_finds_every_spelling_of_a_non_finite_number(spelled: str) -> None:
    assert found(golden_json(lm_loss={1: 1.0, 2: spelled, 3: 2.0})) == [("GV001", "lm loss", "scattered", 1)]


def test_gv001_finds_bare_constants_and_numbers_that_overflow() -> None:
    raw = golden_json(lm_loss={1: 0, 2: 8, 3: 3.0, 4: 1.0}).replace(b" 0", b" NaN").replace(b" 8", b" 1e999")
    assert found(raw) == [("GV001", "lm loss", "leading", 2)]


def test_gv001_names_metric_steps_and_the_repair() -> None:
    one = only(golden_json(lm_loss={1: 1.0, 5: "nan", 10: "nan", 15: 1.0, 20: "nan", 25: 3.0}))
    assert one.message == (
        "3 of 6 values of 'lm loss' are not finite, scattered: steps 5, 10, 20; "
        "repair: goldenctl refresh --from-job RUN --only nonfinite"
    )
    assert one.steps == (5, 10, 20)


def test_gv001_classes_the_places() -> None:
    series: dict[str, dict[int, object]] = {
        "leading": {s: "nan" if s < 3 else 1.5 * s for s in range(1, 9)},
        "tail": {s: "nan" if s > 6 else 1.5 * s for s in range(1, 9)},
        "off-grid": {s: 1.5 * s if s % 4 == 0 else "nan" for s in range(1, 17)},
        "scattered": {s: "nan" if s == 4 else 1.5 * s for s in range(1, 9)},
    }
    for kind, values in series.items():
        assert found(golden_json(lm_loss=values))[0][2] == kind


def test_gv001_tells_warm_up_from_a_hole_in_the_same_series() -> None:
    assert found(golden_json(lm_loss={1: "nan", 2: 2.0, 3: 3.0, 4: "nan", 5: 5.0, 6: "nan"})) == [
        ("GV001", "lm loss", "leading", 1),
        ("GV001", "lm loss", "scattered", 1),
        ("GV001", "lm loss", "tail", 1),
    ]


def test_gv001_knows_the_leading_half_of_a_second_phase() -> None:
    raw = golden_json(lm_loss={1: "nan", 2: "nan", 3: 3.0, 4: 4.0})
    assert found(raw, PATH.replace("h100", "h100_2nd")) == [("GV001", "lm loss", "second-phase", 2)]


def test_gv001_a_series_without_any_finite_value_ended_early() -> None:
    assert found(golden_json(lm_loss={1: "nan", 2: "nan"})) == [("GV001", "lm loss", "tail", 2)]


def test_gv001_looks_into_records_and_lists_but_not_into_generated_text() -> None:
    record = {"generated_text": "nan", "input_prompt": "inf", "logprobs": [-0.5, "nan", -1.0], "latency": "inf"}
    raw = json.dumps({"0": record, "throughput": [1.0, "inf"]}).encode()
    assert found(raw) == [("GV001", "0", "record", 2), ("GV001", "throughput", "record", 1)]


@pytest.mark.parametrize(
    ("raw", "kind"),
    [
        (b'{"lm loss": ', "unreadable"),
        (b'{"lm loss": "\xff"}', "unreadable"),
        (b"[1, 2]", "shape"),
        (b'"just text"', "shape"),
        (b"null", "shape"),
        (b'{"lm loss": 3}', "shape"),
        (b'<<<<<<< ours\n{"a": 1}\n=======\n{"a": 2}\n>>>>>>> theirs\n', "conflict"),
    ],
)
def test_gv002_finds_what_is_no_golden_document(raw: bytes, kind: str) -> None:
    assert found(raw) == [("GV002", "", kind, 1)]


def test_gv002_says_where() -> None:
    assert only(b'{\n "lm loss": oops}').message == "not JSON: Expecting value at line 2, column 13"
    assert only(b'{\n"a": "\xff"}').line == 2


def test_gv002_finds_double_encoding_and_the_nan_inside_it() -> None:
    inner = golden_json(None, lm_loss={1: 1.0, 2: "nan", 3: 2.0})
    assert found(json.dumps(inner.decode()).encode()) == [("GV002", "", "twice", 1), ("GV001", "lm loss", "scattered", 1)]


@pytest.mark.parametrize(
    ("raw", "kind"),
    [
        (b"", "zero-byte"),
        (b" \n", "zero-byte"),
        (b"{}", "empty object"),
        (golden_json().replace(b"{}", b'{"a": {"values": {}}}'), "no values"),
    ],
)
def test_gv003_finds_nothing_where_values_should_be(raw: bytes, kind: str) -> None:
    assert [(r, k) for r, _, k, _ in found(raw)] == [("GV003", kind)]


def grid(start: object, end: object, interval: object, values: object) -> bytes:
    return json.dumps({"lm loss": {"start_step": start, "end_step": end, "step_interval": interval, "values": values}}).encode()


@pytest.mark.parametrize(
    ("raw", "kind"),
    [
        (grid(1, 10, 1, {"1": 1.0, "5": 2.0, "10": 3.0}), "interval"),
        (grid(2, 3, 1, {"1": 1.0, "2": 2.0, "3": 3.0}), "start"),
        (grid(1, 4, 1, {"1": 1.0, "2": 2.0, "3": 3.0}), "end"),
        (grid(1, 3, 1, {"1": 1.0, "3": 2.0, "2": 3.0}), "steps"),
        (grid(1, 3, 1, {"1": 1.0, "2.5": 2.0, "3": 3.0}), "steps"),
        (grid(0, 100, 5, [1.0] * 19), "length"),
        (grid(1, 3, 0, {"1": 1.0, "2": 2.0, "3": 3.0}), "grid"),
        (grid("1", 3, 1, {"1": 1.0, "2": 2.0, "3": 3.0}), "grid"),
        (grid(None, 3, 1, {"1": 1.0, "2": 2.0, "3": 3.0}), "grid"),
    ],
)
def test_gv004_finds_a_grid_that_does_not_describe_the_steps(raw: bytes, kind: str) -> None:
    assert [(r, k) for r, _, k, _ in found(raw) if r == "GV004"] == [("GV004", kind)]


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (grid(1, 3, 1, {"1": 1.0, "2": 2.0, "03": 3.0}), "'lm loss': step '03' is to be written '3'"),
        (grid(0, 2, 1, {"-0": 1.0, "1": 2.0, "2": 3.0}), "'lm loss': step '-0' is to be written '0'"),
        (grid(1, 1e30, 1, {"1": 1.0, "2": 2.0, "3": 3.0}), "'lm loss': end_step is 1e+30, not an integer"),
        (grid(1.0, 3, 1, {"1": 1.0, "2": 2.0, "3": 3.0}), "'lm loss': start_step is 1.0, not an integer"),
        (grid(1, "3", 1, {"1": 1.0, "2": 2.0, "3": 3.0}), "'lm loss': end_step is the string '3', not an integer"),
        (grid(1, 3, None, {"1": 1.0, "2": 2.0, "3": 3.0}), "'lm loss': step_interval is missing"),
    ],
)
def test_gv004_says_what_is_not_written_as_the_harness_writes_it(raw: bytes, said: str) -> None:
    (only,) = (f for f in lint.check(PATH, raw, settings()) if f.rule == "GV004")
    assert only.message == said


@pytest.mark.parametrize(
    "raw",
    [
        grid(1, 10, 5, {"1": 1.0, "5": 2.0, "10": 3.0}),
        grid(5, 15, 5, {"5": 1.0, "10": 2.0, "15": 3.0}),
        grid(0, 100, 5, [1.5, 2.5] * 10),
        grid(1, 1, 1, {"1": 1.0}),
        grid(1, 5, 1, {"1": 1.0, "2": 2.0, "3": 3.0, "5": 4.0}),
        grid(1, 400, 100, {"1": 1.0, "100": 2.0, "200": 3.0, "400": 4.0}),
    ],
)
def test_gv004_takes_the_grids_the_harness_writes(raw: bytes) -> None:
    assert [f for f in found(raw) if f[0] == "GV004"] == []


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("goldens/gpt/case/golden_values_dev.json", "legacy"),
        ("goldens/gpt/case/golden_values_dev_dgx_h200.json", "platform"),
        ("goldens/gpt/case/golden_values_prod_dgx_h100.json", "environment"),
        ("goldens/gpt/deep/case/golden_values_dev_dgx_h100.json", "layout"),
    ],
)
def test_gv005_finds_paths_that_are_no_golden(path: str, kind: str) -> None:
    assert found(GOOD, path) == [("GV005", "", kind, 1)]


def test_gv005_says_nothing_of_files_outside_root() -> None:
    assert found(GOOD, "/tmp/anything.json") == []


@pytest.mark.parametrize(
    ("raw", "kind"),
    [
        (golden_json(lm_loss={1: 0.0, 2: 0.0, 3: 0.0}), "all-zero"),
        (golden_json(lm_loss={1: 10.0, 2: 10001.0, 3: 10.0}), "jump"),
        (golden_json(iteration_time={1: 1.5, 2: 1.5, 3: 1.5}).replace(b"iteration time", b"iteration-time"), "constant"),
    ],
)
def test_gv007_finds_implausible_values(raw: bytes, kind: str) -> None:
    assert [(r, k) for r, _, k, _ in found(raw)] == [("GV007", kind)]


@pytest.mark.parametrize(
    "raw",
    [
        golden_json(lm_loss={1: 10.0, 2: 9000.0, 3: 10.0}),
        golden_json(mem={1: 7.0, 2: 7.0, 3: 7.0}),
        golden_json(lm_loss={1: 50000.0, 2: 10.0, 3: 10.5}),
    ],
)
def test_gv007_leaves_what_happens_in_real_runs(raw: bytes) -> None:
    assert found(raw) == []


def test_gv009_finds_a_key_that_stands_twice() -> None:
    raw = GOOD.replace(b'"2": 10.25', b'"2": 10.25, "2": 11.0', 1)
    assert found(raw) == [("GV009", "2", "duplicate", 1)]
    assert found(b'{"0" : {"latency": 1.0, "latency": 2.0, "generated_text": "a\\": b"}}') == [
        ("GV009", "latency", "duplicate", 1)
    ]


def test_gv011_finds_metrics_on_different_grids_but_not_a_later_first_step() -> None:
    values: dict[int, object] = {s: float(s) for s in range(1, 6)}
    later = {s: v for s, v in values.items() if s > 1}
    hole = {s: v for s, v in values.items() if s != 3}
    assert found(golden_json(lm_loss=values, num_zeros=later)) == []
    assert found(golden_json(lm_loss=values, num_zeros=hole)) == [("GV011", "num zeros", "grid", 1)]


@pytest.mark.parametrize(
    ("value", "kind"),
    [(None, "null"), (True, "boolean"), ([1.0], "list"), ("abc", "string"), ("1.5", "numeric text"), ({"a": 1}, "object")],
)
def test_gv012_finds_values_that_are_no_numbers(value: object, kind: str) -> None:
    raw = golden_json(lm_loss={1: 1.0, 2: value, 3: 2.0})
    assert [(r, c) for r, _, _, c in found(raw)] == [("GV012", 1)]
    assert kind in f"{only(raw).kind} {only(raw).message}"


def test_gv013_finds_a_file_over_the_limit() -> None:
    assert found(GOOD, max_bytes=len(GOOD) - 1) == [("GV013", "", "", 1)]
    assert found(GOOD, max_bytes=len(GOOD)) == []


def test_rules_are_chosen_by_select_ignore_and_per_file() -> None:
    raw = golden_json(lm_loss={1: 1.0, 2: "nan", 3: None})
    assert {r for r, *_ in found(raw)} == {"GV001", "GV012"}
    assert {r for r, *_ in found(raw, select=("GV012",))} == {"GV012"}
    assert {r for r, *_ in found(raw, ignore=("GV012",))} == {"GV001"}
    assert {r for r, *_ in found(raw, per_file_ignores={"goldens/gpt/*": ("GV001",)})} == {"GV012"}
    assert {r for r, *_ in found(raw, per_file_ignores={"goldens/moe/*": ("GV001",)})} == {"GV001", "GV012"}
