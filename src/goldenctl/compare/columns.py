"""Two series side by side as columns: one pass of C code each where a loop would take most of a diff's time."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from operator import sub, truediv

from goldenctl.goldenfile import Series


def same_series(a: Series, b: Series) -> bool:
    """Whether two series hold the same steps and values in any order, NaN equal to NaN."""
    if a.steps != b.steps:
        ours, theirs = points(a), points(b)
        return ours.keys() == theirs.keys() and all(same_value(v, theirs[s]) for s, v in ours.items())
    return a.values == b.values or all(map(same_value, a.values, b.values))


def points(series: Series) -> dict[int, float]:
    """Step → value; of a step given twice (``"1"`` and ``"01"``) the last, as every reader of JSON has it."""
    return dict(zip(series.steps, series.values, strict=True))


def same_value(a: float, b: float) -> bool:
    """Equality in which NaN equals NaN."""
    return a == b or (math.isnan(a) and math.isnan(b))


def lonely(one: Series, other: Series) -> int:
    """Number of steps that only one of two series has."""
    return 0 if one.steps == other.steps else len(set(one.steps) - set(other.steps))


class Common:
    """The steps two series share, with their values on both sides."""

    def __init__(self, steps: Sequence[int], golden: Sequence[float], obtained: Sequence[float]) -> None:
        self.steps = steps
        self.golden = golden
        self.obtained = obtained

    @classmethod
    def of(cls, obtained: Series, golden: Series) -> Common:
        """The shared steps in the golden's order."""
        if obtained.steps == golden.steps:
            return cls(golden.steps, golden.values, obtained.values)
        want, have = points(golden), points(obtained)
        steps = [s for s in want if s in have]
        return cls(steps, [want[s] for s in steps], [have[s] for s in steps])

    def __len__(self) -> int:
        return len(self.steps)

    def __iter__(self) -> Iterator[tuple[int, float, float]]:
        """Step, golden value, obtained value."""
        return zip(self.steps, self.golden, self.obtained, strict=True)

    def finite(self) -> Common:
        """The same without the steps where a side is not finite."""
        if math.isfinite(sum(self.golden)) and math.isfinite(sum(self.obtained)):
            return self
        rows = [(s, g, o) for s, g, o in self if math.isfinite(g) and math.isfinite(o)]
        return Common([s for s, _, _ in rows], [g for _, g, _ in rows], [o for _, _, o in rows])

    def first_changed(self) -> tuple[int, float, float] | None:
        """The first step whose sides differ."""
        return next((row for row in self if not same_value(row[1], row[2])), None)


@dataclass(slots=True)
class Differences:
    """Differences over the common steps that are finite on both sides; None where there is no such step."""

    max_abs: float | None
    max_rel: float | None
    mean_abs: float | None
    mean_rel: float | None
    signed_mean_rel: float | None
    worst: tuple[int, float, float] | None
    """Step, golden value, obtained value."""

    @classmethod
    def of(cls, common: Common) -> Differences:
        """Subtract the golden column from the obtained one."""
        finite = common.finite()
        differences: Sequence[float] = list(map(sub, finite.obtained, finite.golden))
        absolute = list(map(abs, differences))
        if 0.0 in finite.golden:
            differences = [d for d, g in zip(differences, finite.golden, strict=True) if g]
        signed = list(map(truediv, differences, (abs(g) for g in finite.golden if g)))
        relative = list(map(abs, signed))
        worst = cls._worst(finite, absolute, relative) or common.first_changed()
        return cls(
            max(absolute, default=None), max(relative, default=None), mean(absolute), mean(relative), mean(signed), worst
        )

    @classmethod
    def none(cls, golden: Series) -> Differences:
        """The differences of a series to itself."""
        finite = [v for v in golden.values if math.isfinite(v)]
        absolute = 0.0 if finite else None
        relative = 0.0 if any(finite) else None
        return cls(absolute, relative, absolute, relative, relative, None)

    @staticmethod
    def _worst(finite: Common, absolute: list[float], relative: list[float]) -> tuple[int, float, float] | None:
        sizes = relative
        if len(relative) < len(absolute):  # a golden of zero: where one changed, the absolute difference counts
            changed_zero = any(d for d, g in zip(absolute, finite.golden, strict=True) if g == 0)
            sizes = absolute if changed_zero else [d / (abs(g) or 1.0) for d, g in zip(absolute, finite.golden, strict=True)]
        largest = max(sizes, default=0.0)
        place = sizes.index(largest) if largest else -1
        return None if place < 0 else (finite.steps[place], finite.golden[place], finite.obtained[place])


def mean(numbers: Sequence[float]) -> float | None:
    """The mean; None of nothing, and of opposite infinities (differences of huge values can overflow)."""
    try:
        return math.fsum(numbers) / len(numbers) if numbers else None
    except OverflowError:
        return math.fsum(x / len(numbers) for x in numbers)
    except ValueError:
        return None


def median(values: Sequence[float]) -> float | None:
    """Median of the finite values; None without any."""
    finite = values if math.isfinite(sum(values)) else [v for v in values if math.isfinite(v)]
    return statistics.median(finite) if finite else None
