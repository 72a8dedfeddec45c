"""Edits change what they name and keep every other byte."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goldenctl import edit
from goldenctl.goldenfile import DocumentError
from tests.conftest import golden_json

INDENTED = b"""{
    "lm loss": {
        "start_step": 1,
        "end_step": 3,
        "step_interval": 1,
        "values": {
            "1": 10.50000,
            "2": "nan",
            "3": 1e-05
        }
    },
    "num-zeros": {
        "start_step": 1,
        "end_step": 2,
        "step_interval": 1,
        "values": {
            "1": "nan",
            "2": 7.0
        }
    }
}"""


def test_one_value_is_replaced_and_every_other_byte_stays() -> None:
    assert edit.replace_values(INDENTED, {("lm loss", 2): "9.25"}) == INDENTED.replace(
        b'"2": "nan",\n            "3"', b'"2": 9.25,\n            "3"'
    )


def test_a_step_that_is_not_there_is_a_key_error() -> None:
    with pytest.raises(KeyError, match="lm loss"):
        edit.replace_values(INDENTED, {("lm loss", 9): "1.0"})


def test_a_metric_from_a_one_line_file_takes_the_indent_of_the_file_it_goes_to() -> None:
    other = b'{"num-zeros": {"start_step": 1, "end_step": 2, "step_interval": 1, "values": {"1": 6.0, "2": 7.50}}}'
    assert edit.replace_metric(INDENTED, "num-zeros", other) == INDENTED.replace(
        b'"1": "nan",\n            "2": 7.0', b'"1": 6.0,\n            "2": 7.50'
    )


def test_a_metric_the_file_lacks_is_added_at_its_end() -> None:
    assert edit.replace_metric(b'{"a": {"values": {"1": 1.0}}}', "b", b'{"b": {"values": {}}}') == (
        b'{"a": {"values": {"1": 1.0}}, "b": {"values": {}}}'
    )
    assert edit.replace_metric(b"{}", "b", b'{"b": [1, 2]}') == b'{"b": [1, 2]}'


def test_a_compact_file_without_blanks_stays_without_blanks() -> None:
    assert edit.replace_metric(b'{"a":{"values":{"1":"nan"}}}', "a", b'{"a": {"values": {"1": 2.0, "2": 3.0}}}') == (
        b'{"a":{"values":{"1":2.0,"2":3.0}}}'
    )


def test_leading_steps_are_left_out_in_both_styles() -> None:
    assert edit.drop_leading(INDENTED, {"num-zeros": 1}) == INDENTED.replace(b'"1": "nan",\n            "2": 7.0', b'"2": 7.0')
    assert edit.drop_leading(b'{"a": {"values": {"1": "nan", "2": 2.0}}}', {"a": 1}) == b'{"a": {"values": {"2": 2.0}}}'


def test_all_values_are_never_left_out() -> None:
    assert edit.drop_leading(INDENTED, {"num-zeros": 2}) == INDENTED


def test_a_grid_number_is_set_in_its_place() -> None:
    assert edit.set_grid(INDENTED, {"num-zeros": {"start_step": 2}}) == INDENTED.replace(
        b'"num-zeros": {\n        "start_step": 1', b'"num-zeros": {\n        "start_step": 2'
    )


def test_the_line_of_a_value_is_counted_from_one() -> None:
    text = edit.spans(INDENTED)
    node = text.find("num-zeros", 2)
    assert node is not None
    assert (text.line(node), text.of(node)) == (18, "7.0")


def test_values_of_the_list_form_are_found_by_their_step() -> None:
    text = edit.spans(b'{"a": {"start_step": 0, "step_interval": 5, "values": [1.5, 2.5, 3.5]}}')
    node = text.find("a", 10)
    assert node is not None
    assert text.of(node) == "3.5"


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (b'{"a": ', "line 1, column 7"),
        (b'{"a": 1,}', "a key is expected at line 1, column 9"),
        (b'{"a" 1}', "a colon is expected at line 1, column 6"),
        (b"[1 2]", "a comma or ] is expected at line 1, column 4"),
        (b'{"a": 1} x', "more text behind the document at line 1, column 10"),
        (b'{"a', "a string has no end at line 1, column 2"),
        (b"\xff", "not UTF-8 at line 1"),
        (b"[" * 100, "nested too deeply"),
    ],
)
def test_what_is_no_json_is_said_with_its_place(raw: bytes, reason: str) -> None:
    with pytest.raises(DocumentError, match=reason.replace("[", r"\[").replace("]", r"\]")):
        edit.spans(raw)


def test_bare_nan_and_infinity_are_values() -> None:
    text = edit.spans(b'{"a": [NaN, -Infinity, Infinity, -1.5E+3]}')
    node = text.find("a")
    assert node is not None
    assert [text.of(i) for i in node.items] == ["NaN", "-Infinity", "Infinity", "-1.5E+3"]


def plain(text: edit.Text, node: edit.Node) -> Any:
    if node.members is not None:
        return {m.key: plain(text, m.value) for m in node.members}
    if node.is_list:
        return [plain(text, i) for i in node.items]
    return json.loads(text.of(node))


json_values = st.recursive(
    st.none() | st.booleans() | st.floats(allow_nan=False, allow_infinity=False) | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@given(json_values, st.sampled_from([None, 1, 4]), st.booleans())
def test_every_json_text_is_scanned_into_the_same_values(value: Any, indent: int | None, ascii_only: bool) -> None:
    raw = json.dumps(value, indent=indent, ensure_ascii=ascii_only).encode("utf-8", "surrogatepass")
    try:
        text = edit.spans(raw)
    except DocumentError:
        assert b"\xed" in raw  # a lone surrogate is not UTF-8
        return
    assert plain(text, text.root) == value


@given(
    st.dictionaries(st.integers(1, 40), st.floats(allow_nan=False, allow_infinity=False), min_size=1),
    st.sampled_from([None, 4]),
    st.data(),
)
def test_replacing_a_value_by_its_own_text_changes_nothing(
    values: dict[int, float], indent: int | None, data: st.DataObject
) -> None:
    raw = golden_json(indent, lm_loss=dict(sorted(values.items())))
    step = data.draw(st.sampled_from(sorted(values)))
    text = edit.spans(raw)
    node = text.find("lm loss", step)
    assert node is not None
    assert edit.replace_values(raw, {("lm loss", step): text.of(node)}) == raw
    assert edit.replace_metric(raw, "lm loss", raw) == raw
