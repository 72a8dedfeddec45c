"""What the harness's rules mean to be.

A value that is not finite is never close, a step or metric that is missing fails, exactly the allowed number of
steps may exceed, losses are compared whatever the spelling of their name, and a golden that ends between the two
iteration-time windows is judged on what it has.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from goldenctl.compare import allowed_bad_steps, median_window, points, within
from goldenctl.config import Tolerance
from goldenctl.goldenfile import Document, DocumentError, Series, read
from goldenctl.rules.verdicts import MetricVerdict, Rules, Verdict, measured, percent
from goldenctl.testconfig import TestConfig
from goldenctl.words import first_steps

DECIMALS = 5
RL_TOLERANCES = {
    "iteration-time": Tolerance(rtol=0.15, window="median"),
    "lm loss": Tolerance(rtol=0.01, atol=1e-6, bad_steps=0),
    "mem-allocated-bytes": Tolerance(rtol=0.10, window="max", direction="lower"),
    "mem-max-allocated-bytes": Tolerance(rtol=0.10, window="max", direction="lower"),
}
"""Tolerances of rl cases; other metrics follow the settings. ``max`` compares the largest values."""


@dataclass(frozen=True, slots=True)
class Context:
    """What decides beside the two documents."""

    config: TestConfig
    tolerance_for: Callable[[str], Tolerance]
    after: int = 0
    """Only steps after this one count (resume); 0 for all."""


def documents(obtained: bytes, golden: bytes) -> tuple[Document, Document] | str:
    """Both documents, or why one cannot be read."""
    read_ones = []
    for name, raw in (("golden", golden), ("obtained document", obtained)):
        try:
            document = read(raw)
        except DocumentError as exc:
            return f"the {name} cannot be read: {exc}"
        if not document.series and not document.texts:
            return f"the {name} is empty"
        read_ones.append(document)
    return read_ones[1], read_ones[0]


def training(obtained: bytes, golden: bytes, context: Context, mode: str) -> Verdict:
    """The strict verdict on metric blocks: pretraining, resume and rl.

    Parameters
    ----------
    obtained, golden
        Documents with metric blocks.
    context
        Required metrics, tolerances, and the step after which a resumed run counts.
    mode
        ``pretraining``, ``resume`` or ``rl``.
    """
    found = documents(obtained, golden)
    if isinstance(found, str):
        return Verdict(Rules.STRICT, mode, reason=found)
    have, want = found
    unreadable = {p.metric: f"the obtained document holds {p.what}" for p in have.problems}
    unreadable |= {p.metric: f"the golden holds {p.what}" for p in want.problems}
    metrics = []
    for asked in required_metrics(want, context.config, mode):
        name = spelling(asked, want)
        if name in unreadable:
            metrics.append(MetricVerdict(name, False, unreadable[name]))
        else:
            tolerance = RL_TOLERANCES.get(name) if mode == "rl" else None
            metrics.append(_metric(name, have.metric(spelling(asked, have)), want.metric(name), context, tolerance))
    return Verdict(Rules.STRICT, mode, tuple(metrics))


def required_metrics(golden: Document, config: TestConfig, mode: str) -> list[str]:
    """The metrics asked for; the golden's own where the configuration names none."""
    names = [s.metric for s in golden.series]
    if config.metrics:
        return list(config.metrics)
    usual = [m for m in config.required if m in names]
    return usual if usual and mode != "rl" else names


def spelling(metric: str, document: Document) -> str:
    """A metric's name in a document: ``lm-loss`` finds ``lm loss``."""
    alike = {s.metric.replace("-", " "): s.metric for s in document.series}
    return metric if document.metric(metric) else alike.get(metric.replace("-", " "), metric)


def _metric(
    name: str, obtained: Series | None, golden: Series | None, context: Context, own: Tolerance | None
) -> MetricVerdict:
    if golden is None or obtained is None:
        return MetricVerdict(name, False, "required but not in the golden" if golden is None else "was not obtained")
    want = {s: v for s, v in points(golden).items() if s > context.after}
    have = {s: v for s, v in points(obtained).items() if s in want}
    tolerance = own or context.tolerance_for(name)
    if not want:
        return MetricVerdict(name, False, f"the golden has no step after step {context.after}")
    if tolerance.window in ("median", "max"):
        start = None if own is None else context.config.throughput_start if tolerance.window == "median" else 1
        return _whole(name, have, _limited(golden, want), tolerance, start)
    return _per_step(name, have, _limited(golden, want), tolerance, exact_lane=not context.config.approximate_only)


def _limited(series: Series, kept: Mapping[int, float]) -> Series:
    return series if len(kept) == len(series.steps) else replace(series, steps=tuple(kept), values=tuple(kept.values()))


def _per_step(name: str, have: Mapping[int, float], golden: Series, tolerance: Tolerance, *, exact_lane: bool) -> MetricVerdict:
    want = points(golden)
    missing = [s for s in want if s not in have]
    undefined = [s for s, g in want.items() if s in have and not (math.isfinite(g) and math.isfinite(have[s]))]
    bad = [s for s, g in want.items() if s not in have or s in undefined or not within(have[s], g, tolerance)]
    same = _raw if golden.precision == "full" else _rounded
    unequal = [s for s, g in want.items() if s not in have or not same(have[s], g)]
    better = [s for s in unequal if s in have and _is_better(have[s], want[s], tolerance)]
    exact = not set(unequal) - set(better) if exact_lane and tolerance.exact else None
    allowed = allowed_bad_steps(len(want), tolerance)
    approximate = not missing and not undefined and len(bad) <= allowed
    base = MetricVerdict(
        name,
        approximate and exact is not False,
        exact=exact,
        approximate=approximate,
        n_allowed=allowed,
        tolerance=_words(tolerance, allowed, len(want)),
    )
    verdict = measured(base, have, want, bad, () if exact is None else set(unequal) - set(better))
    note = _better_note(better) if verdict.passed else ""
    return replace(verdict, reason=_reason(verdict, missing, undefined, bad, want), note=note)


def _raw(a: float, b: float) -> bool:
    return a == b


def _rounded(a: float, b: float) -> bool:
    return math.isfinite(a) and math.isfinite(b) and round(a, DECIMALS) == round(b, DECIMALS)


def _is_better(obtained: float, golden: float, tolerance: Tolerance) -> bool:
    if not (math.isfinite(obtained) and math.isfinite(golden)):
        return False
    return (tolerance.direction == "lower" and obtained < golden) or (tolerance.direction == "higher" and obtained > golden)


def _better_note(better: list[int]) -> str:
    return f"better than the golden at {len(better)} steps: refresh it to keep the gain" if better else ""


def _words(tolerance: Tolerance, allowed: int, steps: int) -> str:
    size = percent(tolerance.rtol) + (f" + {tolerance.atol:.3g}" if tolerance.atol else "")
    side = {"lower": ", only higher counts", "higher": ", only lower counts"}.get(tolerance.direction, "")
    return f"{size} per step{side}, {allowed} of {steps} steps may exceed"


def _reason(
    verdict: MetricVerdict, missing: list[int], undefined: list[int], bad: list[int], golden: Mapping[int, float]
) -> str:
    parts = []
    if missing:
        parts.append(f"{len(missing)} of {len(golden)} steps are missing: {first_steps(missing)}")
    if undefined:
        own = [s for s in undefined if not math.isfinite(golden[s])]
        whose = "the golden itself is" if own else "the obtained value is"
        parts.append(f"{whose} not finite at steps {first_steps(own or undefined)}")
    if verdict.exact is False and not missing and not undefined:
        parts.append(
            f"exact comparison: {verdict.n_inexact} of {verdict.n_steps} steps differ, first step {verdict.first_bad_step}"
        )
    if len(bad) > verdict.n_allowed and not missing and not undefined:
        parts.append(f"{len(bad)} of {verdict.n_steps} steps exceed where {verdict.n_allowed} may: {first_steps(bad)}")
    return "; ".join(parts)


def _whole(name: str, have: Mapping[int, float], golden: Series, tolerance: Tolerance, start: int | None) -> MetricVerdict:
    """One number for the whole series: the median over the window, or the largest; from the start-th step on in rl cases."""
    values = points(golden)
    finite = sorted(s for s, v in values.items() if math.isfinite(v))
    steps = list(median_window(golden)) if start is None else (finite[start:] or finite)
    kind, summary = ("median", statistics.median) if tolerance.window == "median" else ("largest value", max)
    base = MetricVerdict(name, False, approximate=False, tolerance=f"{percent(tolerance.rtol)} of the {kind}")
    if not steps:
        return replace(base, reason="the golden has no finite step")
    lost = [s for s in finite if s not in have]
    wrong = lost or [s for s in finite if not math.isfinite(have[s])]
    if wrong:
        text = f"{len(wrong)} of {len(finite)} steps are {'missing' if lost else 'not finite'}: {first_steps(wrong)}"
        return replace(measured(base, have, {s: values[s] for s in finite}, wrong), reason=text)
    got, wanted = summary([have[s] for s in steps]), summary([values[s] for s in steps])
    passed = within(got, wanted, tolerance)
    reason = "" if passed else f"{kind} {got:.6g} against {wanted:.6g} over steps {steps[0]} to {steps[-1]}"
    better = passed and not within(got, wanted, replace(tolerance, direction="both"))
    note = f"{kind} {got:.6g} is better than the golden's {wanted:.6g}: refresh it to keep the gain" if better else ""
    base = replace(base, passed=passed, approximate=passed, reason=reason, note=note)
    return measured(base, {s: have[s] for s in steps}, {s: values[s] for s in steps}, () if passed else steps)
