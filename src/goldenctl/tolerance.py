"""Set tolerances from repeated runs of one case: what the noise is, and what a tolerance above it would still catch.

For every ordered pair of runs, one playing golden, the *critical* tolerance is the smallest ``rtol`` that lets the
other pass: the relative difference of the step after the allowed bad ones, or of the medians. Critical tolerances are
maxima over many steps, so a Gumbel distribution is fitted to them by moments; its upper quantile, widened for the few
runs it was learned from, is the proposal; it is never below a critical tolerance that was seen.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import permutations

from goldenctl.compare import Common, allowed_bad_steps, median_window, points, same_series
from goldenctl.config import Tolerance
from goldenctl.goldenfile import Series

Sample = Mapping[str, Mapping[str, Series]]
"""One run: golden path (empty where only one case is meant) → metric → series."""

ENOUGH = 3
"""Runs below which no spread can be told."""
COMFORTABLE = 5
"""Runs from which a proposal needs no warning."""
EULER = 0.5772156649015329
CONFIDENCE = 0.95
SCALE_CONFIDENCE = 0.90


@dataclass(frozen=True, slots=True)
class Proposal:
    """What the runs say about one metric."""

    path: str
    """Golden path; empty where only one case is meant."""
    metric: str
    n_runs: int
    n_steps: int
    exact: bool = False
    """Every run has the same bits: exact comparison is right."""
    problem: str = ""
    """Why no tolerance can be given; empty when one is."""
    undetected_rate: float | None = None
    """For identical runs: a rate of deviating runs up to this cannot be excluded at 95 % confidence. Else None."""
    spread: float | None = None
    """Largest relative difference of two runs at one step; None without a tolerance."""
    typical: float | None = None
    """Median critical tolerance over all pairs of runs."""
    rtol: float | None = None
    """Proposed relative tolerance, rounded up to two digits; None when exact or without a proposal."""
    atol: float = 0.0
    """Proposed absolute tolerance in the metric's unit, for goldens of 0."""
    bad_steps: int = 0
    """Steps that may exceed under the proposal."""
    window: str = "all"
    false_alarm: float | None = None
    """Predicted share of sound runs that would fail."""
    held_out_failed: int = 0
    """Of ``n_runs`` runs, each left out in turn, those that fail a tolerance set from the others."""
    catches: float | None = None
    """A relative change of all steps at least this large fails, whichever runs meet; None when none up to 10 does."""
    catches_late: float | None = None
    """The same for a change of the second half of the run only; None when it is not seen."""

    @property
    def warning(self) -> str:
        """What the reader should doubt; empty when nothing."""
        if self.problem or self.exact:
            return self.problem
        if self.n_runs < COMFORTABLE:
            return f"only {self.n_runs} runs: the tolerance is wide and uncertain, {COMFORTABLE} or more are better"
        if self.catches_late is None:
            return "a change in the second half of the run is not seen"
        return ""


def propose(samples: Sequence[Sample], alpha: float, tolerance_for: Callable[[str], Tolerance]) -> list[Proposal]:
    """What repeated runs say about each metric they share.

    Parameters
    ----------
    samples
        Runs of the same code on the same lane.
    alpha
        Largest predicted share of sound runs that may fail, between 0 and 1.
    tolerance_for
        The tolerance in force: its window, direction and allowed bad steps are kept, its size is replaced.
    """
    return [
        _propose(path, metric, [s.get(path, {}).get(metric) for s in samples], alpha, tolerance_for(metric))
        for path, metric in _names(samples)
    ]


def _names(samples: Sequence[Sample]) -> Iterator[tuple[str, str]]:
    found = {(path, metric): None for s in samples for path, metrics in s.items() for metric in metrics}
    yield from found


def _propose(path: str, metric: str, runs: Sequence[Series | None], alpha: float, tolerance: Tolerance) -> Proposal:
    present = [r for r in runs if r is not None]
    base = Proposal(path, metric, len(present), len(present[0].steps), window=tolerance.window)
    problem = _problem(runs, present)
    if problem:
        return replace(base, problem=problem)
    if all(same_series(present[0], other) for other in present[1:]):
        return replace(base, exact=True, undetected_rate=1 - (1 - CONFIDENCE) ** (1 / (len(present) - 1)))
    if len(present) < ENOUGH:
        return replace(base, problem=f"{len(present)} runs that differ are too few to tell noise: give {ENOUGH} or more")
    return _measured(base, present, alpha, tolerance)


def _problem(runs: Sequence[Series | None], present: Sequence[Series]) -> str:
    if len(present) < 2:
        return "too few: only one run has it" if len(runs) > 1 else "too few: one run says nothing of repeatability"
    if len(present) < len(runs):
        return f"{len(runs) - len(present)} of {len(runs)} runs lack it"
    if any(r.non_finite for r in present) and _scattered(present):
        return "a run holds values that are not finite"
    steps = set(present[0].steps)
    if any(set(r.steps) != steps for r in present):
        return "the runs do not have the same steps"
    return ""


def _scattered(runs: Sequence[Series]) -> bool:
    """Whether non-finite values stand at different steps, so that they are no common warm-up."""
    places = [{s for s, v in points(r).items() if not math.isfinite(v)} for r in runs]
    return any(p != places[0] for p in places) or len(places[0]) == len(runs[0].steps)


def _measured(base: Proposal, runs: Sequence[Series], alpha: float, tolerance: Tolerance) -> Proposal:
    atol = round_up(_largest_at_zero(runs))
    pairs = list(permutations([_finite(r) for r in runs], 2))
    critical = [critical_tolerance(obtained, golden, tolerance, atol) for golden, obtained in pairs]
    rtol = round_up(quantile(critical, len(runs), alpha))
    chosen = Tolerance(rtol, atol, bad_steps=tolerance.bad_steps, window=tolerance.window)
    return replace(
        base,
        spread=max(_relative_spread(o, g) for g, o in pairs),
        typical=statistics.median(critical),
        rtol=rtol,
        atol=atol,
        bad_steps=0 if tolerance.window == "median" else allowed_bad_steps(len(runs[0].steps), tolerance),
        false_alarm=exceedance(critical, rtol),
        held_out_failed=_held_out(runs, alpha, tolerance),
        catches=_caught(pairs, chosen, after=0),
        catches_late=_caught(pairs, chosen, after=_middle(runs[0])),
    )


def _middle(series: Series) -> int:
    return sorted(series.steps)[(len(series.steps) - 1) // 2]


def _finite(series: Series) -> Series:
    kept = {s: v for s, v in points(series).items() if math.isfinite(v)}
    return replace(series, steps=tuple(kept), values=tuple(kept.values()))


def _largest_at_zero(runs: Sequence[Series]) -> float:
    """Largest value at a step where some run has 0, twice as large for what was not seen; 0 where no run differs there."""
    columns = zip(*(r.values for r in runs), strict=True)
    return 2 * max((max(map(abs, c)) for c in columns if 0.0 in c), default=0.0)


def _relative_spread(obtained: Series, golden: Series) -> float:
    return max((abs(o - g) / abs(g) for _, g, o in Common.of(obtained, golden) if g), default=0.0)


def critical_tolerance(obtained: Series, golden: Series, tolerance: Tolerance, atol: float = 0.0) -> float:
    """The smallest relative tolerance with which ``obtained`` passes against ``golden``."""
    if tolerance.window == "median":
        return _median_difference(obtained, golden)
    sizes = sorted((_needed(o, g, atol) for _, g, o in Common.of(obtained, golden)), reverse=True)
    allowed = allowed_bad_steps(len(sizes), tolerance)
    return sizes[allowed] if allowed < len(sizes) else 0.0


def _needed(obtained: float, golden: float, atol: float) -> float:
    beyond = max(abs(obtained - golden) - atol, 0.0)
    return beyond / abs(golden) if golden else 0.0 if beyond == 0 else math.inf


def _medians(obtained: Series, golden: Series) -> tuple[float, float]:
    have, want, steps = points(obtained), points(golden), median_window(golden)
    return statistics.median(have[s] for s in steps), statistics.median(want[s] for s in steps)


def _median_difference(obtained: Series, golden: Series) -> float:
    have, want = _medians(obtained, golden)
    return abs(have - want) / abs(want) if want else 0.0 if have == 0 else math.inf


def quantile(critical: Sequence[float], runs: int, alpha: float) -> float:
    """The tolerance that a sound run exceeds with probability ``alpha``, and at least the largest one seen.

    The scale is its 90 % upper confidence bound for so few runs, so that an unlucky sample does not give a tight tolerance.
    """
    mean, scale = _gumbel(critical)
    return max(*critical, math.expm1(mean + _few(runs) * scale * (-math.log(-math.log1p(-alpha)) - EULER)))


def _few(runs: int) -> float:
    """How much larger a spread may be than the one seen in this many runs: ``sqrt(df / chi2)`` by Wilson and Hilferty."""
    df = runs - 1
    z = statistics.NormalDist().inv_cdf(1 - SCALE_CONFIDENCE)
    chi2 = df * (1 - 2 / (9 * df) + z * math.sqrt(2 / (9 * df))) ** 3
    return math.sqrt(df / chi2)


def exceedance(critical: Sequence[float], rtol: float) -> float:
    """Predicted probability that a sound run needs more than ``rtol``."""
    mean, scale = _gumbel(critical)
    if scale == 0:
        return 0.0 if math.log1p(rtol) >= mean else 1.0
    return -math.expm1(-math.exp(-((math.log1p(rtol) - mean) / scale + EULER)))


def _gumbel(critical: Sequence[float]) -> tuple[float, float]:
    """Mean and scale of a Gumbel distribution with the moments of ``log(1 + critical)``.

    The logarithm makes twice as slow and half as fast equally far; small differences do not notice it.
    """
    logs = [math.log1p(c) for c in critical]
    return statistics.fmean(logs), statistics.stdev(logs) * math.sqrt(6) / math.pi


def _held_out(runs: Sequence[Series], alpha: float, tolerance: Tolerance) -> int:
    """Runs that fail against some other run under the tolerance set without them."""
    if len(runs) <= ENOUGH:
        return 0
    failed = 0
    for i, left in enumerate(runs):
        others = [_finite(r) for j, r in enumerate(runs) if j != i]
        atol = round_up(_largest_at_zero(others))
        known = [critical_tolerance(o, g, tolerance, atol) for g, o in permutations(others, 2)]
        limit = round_up(quantile(known, len(others), alpha))
        failed += any(critical_tolerance(_finite(left), g, tolerance, atol) > limit for g in others)
    return failed


def _caught(pairs: Sequence[tuple[Series, Series]], tolerance: Tolerance, after: int) -> float | None:
    """The smallest relative change of the steps after ``after`` that fails for every pair and both signs."""
    needed = max(_smallest_change(o, g, tolerance, after, sign) for g, o in pairs for sign in (1.0, -1.0))
    return round_up(needed) if needed <= 10 else None


def _smallest_change(obtained: Series, golden: Series, tolerance: Tolerance, after: int, sign: float) -> float:
    if tolerance.window == "median":
        steps = median_window(golden)
        if sum(s > after for s in steps) * 2 <= len(steps):
            return math.inf  # the median stays among the steps before the change
        have, want = _medians(obtained, golden)
        return _change_needed(have, want, tolerance, sign)
    rows = Common.of(obtained, golden)
    sizes = sorted(_change_needed(o, g, tolerance, sign) for s, g, o in rows if s > after)
    allowed = allowed_bad_steps(len(rows), tolerance)
    return sizes[allowed] if allowed < len(sizes) else math.inf


def _change_needed(obtained: float, golden: float, tolerance: Tolerance, sign: float) -> float:
    """The change ``d`` from which ``obtained * (1 + sign * d)`` is beyond the tolerance."""
    if obtained == 0:
        return math.inf
    limit = tolerance.atol + tolerance.rtol * abs(golden)
    toward = math.copysign(1.0, obtained) * sign
    return max((limit + toward * (golden - obtained)) / abs(obtained), 0.0)


def round_up(value: float) -> float:
    """To two significant digits, never down."""
    if value == 0 or not math.isfinite(value):
        return value
    digits = 1 - math.floor(math.log10(value))
    shifted = value * 10**digits if digits >= 0 else value / 10**-digits
    whole = math.ceil(shifted - 1e-9)
    return whole / 10**digits if digits >= 0 else float(whole * 10**-digits)


def settings_block(proposals: Sequence[Proposal], scope: str = "", root: str = "") -> str:
    """A settings block to paste into ``pyproject.toml``.

    Parameters
    ----------
    scope
        Glob of golden paths below root that the entries hold for; empty takes each proposal's own path.
    root
        Folder of golden files, left out of the paths.
    """
    lines = ["[tool.goldenctl.tolerance]"]
    for p in proposals:
        glob = scope or p.path.removeprefix(f"{root}/")
        name = f'"{p.metric}@{glob}"' if glob else f'"{p.metric}"'
        if p.problem:
            lines.append(f"# {name}: {p.problem}")
        elif p.exact:
            lines.append(f"{name} = {{ exact = true }}  # {p.n_runs} runs are bit-identical")
        else:
            atol = f", atol = {p.atol:g}" if p.atol else ""
            lines.append(f"{name} = {{ exact = false, rtol = {p.rtol:g}{atol} }}  # {p.n_runs} runs, catches {said(p.catches)}")
    return "\n".join(lines) + "\n"


def said(catches: float | None) -> str:
    """A planted change in words."""
    return "no uniform change" if catches is None else f"a change of {catches * 100:.3g} %"
