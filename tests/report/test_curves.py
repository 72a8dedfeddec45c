"""Thinned curves lose no extreme and hide no gap."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from goldenctl.goldenfile import Series
from goldenctl.report.curves import curve, thin

VALUES = st.floats(-1e12, 1e12) | st.just(math.nan) | st.just(math.inf)


def series(values: dict[int, float]) -> Series:
    return Series("lm loss", tuple(values), tuple(values.values()))


@given(st.lists(VALUES, min_size=30, max_size=200), st.integers(2, 29))
def test_a_thinned_line_keeps_its_ends_its_extremes_and_its_order(values: list[float], limit: int) -> None:
    kept = thin([values], len(values), limit)
    assert kept == sorted(set(kept))
    assert {0, len(values) - 1} <= set(kept)
    finite = [v for v in values if math.isfinite(v)]
    if finite:
        assert min(finite) in {values[i] for i in kept}
        assert max(finite) in {values[i] for i in kept}
    assert any(not math.isfinite(values[i]) for i in kept) == any(not math.isfinite(v) for v in values)


@given(st.integers(1, 5000), st.integers(6, 200), st.integers(1, 3))
def test_thinning_keeps_about_as_many_steps_as_it_may(count: int, limit: int, lines: int) -> None:
    kept = thin([[float(i * 7919 % 101) for i in range(count)] for _ in range(lines)], count, limit)
    assert len(kept) <= limit + 2 if count > limit else len(kept) == count


def test_a_single_spike_among_ten_thousand_steps_stays() -> None:
    golden = series(dict.fromkeys(range(10000), 2.0))
    obtained = series({s: 2.0 if s != 6_543 else 3.0 for s in range(10_000)})
    drawn = curve(golden, obtained, 100)
    assert len(drawn.steps) <= 102
    place = drawn.steps.index(6_543)
    assert (drawn.golden[place], drawn.obtained[place], drawn.relative[place]) == (2.0, 3.0, 0.5)


def test_places_without_a_number_are_marked_on_the_side_that_has_them() -> None:
    golden = series({1: math.nan, 2: math.nan, 3: 5.0, 4: 5.0, 5: math.inf})
    obtained = series({3: 5.0, 4: 6.0, 5: 6.0})
    drawn = curve(golden, obtained, 100)
    assert drawn.marks_golden == ((1, 2), (5, 5))
    assert drawn.marks_obtained == ()  # steps that a side lacks are not non-finite
    assert [r for r in drawn.relative if not math.isnan(r)] == [0.0, 0.2]


def test_a_golden_of_zero_has_no_relative_difference() -> None:
    drawn = curve(series({1: 0.0, 2: 4.0}), series({1: 1.0, 2: 3.0}), 100)
    assert math.isnan(drawn.relative[0])
    assert drawn.relative[1] == -0.25


def test_a_metric_of_one_side_is_drawn_alone() -> None:
    drawn = curve(None, series({1: 1.0, 2: 2.0}), 100)
    assert (drawn.golden, drawn.obtained, drawn.relative) == ((), (1.0, 2.0), ())


def test_many_scattered_marks_join_to_what_a_plot_can_show() -> None:
    values = {s: math.nan if s % 2 else 1.0 for s in range(2000)}
    drawn = curve(series(values), None, 100)
    assert drawn.marks_golden == ((1, 1999),)
