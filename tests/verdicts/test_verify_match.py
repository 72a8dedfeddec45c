"""The level of a match says exactly how far two versions of a golden agree."""

from __future__ import annotations

import pytest

from goldenctl.config import Tolerance
from goldenctl.model import Match, MatchLevel
from goldenctl.verify import match
from tests.conftest import golden_json

GOLDEN = golden_json(lm_loss={1: 10.0, 2: 8.0}, iteration_time={1: 5.0, 2: 4.0})


def of(content: bytes, other: bytes | None, required: tuple[str, ...] | None = None) -> Match:
    return match(content, other, rev="main", commit="c" * 40, tolerance_for=lambda _: Tolerance(bad_steps=0), required=required)


def test_no_such_golden_there_is_absent() -> None:
    assert of(GOLDEN, None) == Match("main", MatchLevel.ABSENT, "c" * 40)


def test_the_same_bytes_are_identical_even_when_they_are_no_document() -> None:
    assert of(GOLDEN, GOLDEN).level is MatchLevel.IDENTICAL
    assert of(b"{{{", b"{{{").level is MatchLevel.IDENTICAL


def test_other_bytes_with_the_same_numbers_are_equal() -> None:
    assert of(golden_json(None, lm_loss={1: 10, 2: 8}, iteration_time={1: 5, 2: 4}), GOLDEN).level is MatchLevel.EQUAL


def test_within_every_tolerance_is_close_and_names_the_worst_metric() -> None:
    got = of(golden_json(lm_loss={1: 10.0, 2: 8.2}, iteration_time={1: 5.0, 2: 4.0}), GOLDEN)
    assert got.level is MatchLevel.CLOSE
    assert got.detail == "lm loss differs by up to 0.025 relative at step 2 (8.0 → 8.2)"


def test_one_metric_beyond_its_tolerance_is_different() -> None:
    got = of(golden_json(lm_loss={1: 10.0, 2: 8.0}, iteration_time={1: 5.0, 2: 8.0}), GOLDEN)
    assert got.level is MatchLevel.DIFFERENT
    assert got.detail == "iteration time differs by up to 1 relative at step 2 (4.0 → 8.0)"


def test_a_metric_that_is_not_required_does_not_decide() -> None:
    content = golden_json(lm_loss={1: 10.0, 2: 8.0}, iteration_time={1: 5.0, 2: 8.0})
    assert of(content, GOLDEN, ("lm loss",)).level is MatchLevel.CLOSE
    assert of(content, GOLDEN, ("lm loss", "num-zeros")).detail == "num-zeros is required and on neither side"


@pytest.mark.parametrize(
    ("content", "detail"),
    [
        (golden_json(lm_loss={1: 10.0, 2: 8.0}), "iteration time is only on the side at main"),
        (golden_json(lm_loss={1: 10.0}, iteration_time={1: 5.0, 2: 4.0}), "lm loss lacks 1 of 2 steps"),
        (golden_json(lm_loss={1: 10.0, 2: 8.0}, iteration_time={1: 5.0, 2: "nan"}), "non-finite values 0 → 1"),
        (
            b'{"lm loss":{"values":{"1":10,"2":"8.0"}},"iteration time":{"values":{"1":5,"2":4}}}',
            "this side holds the string '8.0'",
        ),
        (b"\xff", "this side is unreadable: not UTF-8"),
        (b"<<<<<<< HEAD", "this side is unreadable: not JSON"),
    ],
)
def test_what_is_lost_is_different_and_said(content: bytes, detail: str) -> None:
    got = of(content, GOLDEN)
    assert got.level is MatchLevel.DIFFERENT
    assert detail in got.detail


def test_an_unreadable_other_side_is_named() -> None:
    assert of(GOLDEN, b"[").detail.startswith("the side at main is unreadable")


def test_volatile_fields_of_inference_records_do_not_decide() -> None:
    a, b = (b'{"0":{"generated_tokens":[1,2],"latency":%s}}' % x for x in (b"1.5", b"9.5"))
    assert of(a, b).level is MatchLevel.CLOSE
