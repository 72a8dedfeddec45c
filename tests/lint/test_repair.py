"""Repairs are mechanical, say what they did and lose nothing."""

from __future__ import annotations

import json
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from goldenctl import lint
from goldenctl.config import Settings
from goldenctl.goldenfile import read
from tests.conftest import golden_json

PATH = "goldens/gpt/case/golden_values_dev_dgx_h100.json"
SETTINGS = Settings(Path("/repo"), root="goldens")


def test_leading_non_finite_steps_are_left_out_and_start_step_moves() -> None:
    fixed = lint.fix(PATH, golden_json(lm_loss={1: "nan", 2: "nan", 3: 3.0, 4: 4.0}), SETTINGS)
    assert fixed.content == golden_json(lm_loss={3: 3.0, 4: 4.0})
    assert fixed.repairs == ("'lm loss': 2 leading non-finite steps left out, start_step now 3",)


def test_holes_and_tails_are_never_filled() -> None:
    raw = golden_json(lm_loss={1: 1.0, 2: "nan", 3: 3.0, 4: "nan"})
    assert lint.fix(PATH, raw, SETTINGS).content == raw


def test_a_grid_is_recomputed_from_the_steps() -> None:
    wrong = golden_json(lm_loss={1: 1.0, 5: 2.0, 10: 3.0, 15: 4.0}).replace(b'"step_interval": 5', b'"step_interval": 1')
    fixed = lint.fix(PATH, wrong, SETTINGS)
    assert fixed.content == golden_json(lm_loss={1: 1.0, 5: 2.0, 10: 3.0, 15: 4.0})
    assert fixed.repairs == ("'lm loss': grid recomputed, start_step 1, end_step 15, step_interval 5",)


def test_double_encoding_is_undone() -> None:
    inner = golden_json(None, lm_loss={1: 1.0, 2: 2.0})
    fixed = lint.fix(PATH, json.dumps(inner.decode()).encode(), SETTINGS)
    assert (fixed.content, fixed.repairs) == (inner, ("double encoding undone",))


def test_what_cannot_be_read_is_left_as_it_is() -> None:
    for raw in (b"", b"{", b"\xff", b'"text"', b"[]"):
        assert lint.fix(PATH, raw, SETTINGS).content == raw


steps = st.lists(st.integers(1, 60), min_size=1, max_size=12, unique=True).map(sorted)
items = st.floats(-1e6, 1e6) | st.sampled_from(["nan", "inf"])


@given(steps, st.data())
def test_repairs_keep_every_finite_value_at_its_step(numbers: list[int], data: st.DataObject) -> None:
    values: dict[int, object] = {s: data.draw(items) for s in numbers}
    fixed = lint.fix(PATH, golden_json(lm_loss=values), SETTINGS)
    (series,) = read(fixed.content).series
    kept = {s: v for s, v in zip(series.steps, series.values, strict=True) if v - v == 0}
    assert kept == {s: v for s, v in values.items() if isinstance(v, float)}
    assert lint.fix(PATH, fixed.content, SETTINGS).content == fixed.content
