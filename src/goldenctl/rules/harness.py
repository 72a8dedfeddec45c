"""Megatron-LM's verdict on pretraining and resume cases, as its scripts compute it.

``close(actual, golden) = |actual - golden| <= rtol * |golden|``, one-sided on the golden; equal infinities are
close, and strings count as +infinity, as does a step the candidate lacks. So a golden ``"nan"`` beside a missing
step passes. The traps are kept on purpose; :mod:`goldenctl.rules.strict` is what is meant.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import replace

from goldenctl.rules.raw import Block, HarnessError, blocks
from goldenctl.rules.verdicts import MetricVerdict, Rules, Verdict, measured, percent
from goldenctl.testconfig import TestConfig
from goldenctl.words import first_steps

APPROXIMATE = {
    "iteration-time": 0.05, "mem-allocated-bytes": 0.05, "mem-max-allocated-bytes": 0.05, "lm loss": 0.05, "mtp_1 loss": 0.05,
    "mtp_2 loss": 0.05, "num-zeros": 0.20, "total loss": 0.05, "generated_tokens": 0.05, "logprobs": 0.05,
}  # fmt: skip
"""Metric → relative tolerance of its approximate check; a metric that is not here makes the harness raise KeyError."""
DETERMINISTIC = frozenset(APPROXIMATE) - {"iteration-time", "mem-allocated-bytes", "mem-max-allocated-bytes"}
"""Metrics that also have the exact check."""
DECIMALS = 5
"""Decimals to which values without the marker ``full`` are rounded."""


def pretraining(obtained: bytes, golden: bytes, config: TestConfig) -> Verdict:
    """The verdict of the regular pretraining test.

    Parameters
    ----------
    obtained, golden
        Documents with metric blocks.
    config
        ``METRICS``, and whether only the approximate lane runs.
    """
    try:
        want, have = blocks(golden), blocks(obtained)
    except HarnessError as exc:
        return Verdict(Rules.HARNESS, "pretraining", reason=str(exc))
    return judge(have, want, config, "pretraining")


def resume(phase2: bytes, phase1: bytes, config: TestConfig, train_iters: int) -> Verdict:
    """The verdict of the resume test: phase 1 plays golden, phase 2 obtained, on the steps after the middle."""
    try:
        want, have = _later(blocks(phase1), train_iters), _later(blocks(phase2), train_iters)
    except HarnessError as exc:
        return Verdict(Rules.HARNESS, "resume", reason=str(exc))
    required = config.required
    empty = [m for m in required if m in want and not want[m].values]
    if empty:
        return Verdict(Rules.HARNESS, "resume", reason=f"no step of {empty[0]!r} is after step {train_iters // 2}")
    return judge(have, want, config, "resume")


def _later(found: Mapping[str, Block], train_iters: int) -> dict[str, Block]:
    half = train_iters // 2
    return {n: replace(b, values={s: v for s, v in b.values.items() if s > half}) for n, b in found.items()}


def judge(obtained: Mapping[str, Block], golden: Mapping[str, Block], config: TestConfig, mode: str) -> Verdict:
    """Run the checks in the harness's order; a metric the candidate lacks ends the test there."""
    required = config.required
    unknown = [m for m in required if m not in APPROXIMATE]
    if unknown:
        return Verdict(Rules.HARNESS, mode, reason=f"KeyError: the harness has no check for {unknown[0]!r}")
    absent = [m for m in required if m not in golden]
    if absent:
        return Verdict(Rules.HARNESS, mode, reason=f"required but not in the golden: {', '.join(absent)}")
    metrics: list[MetricVerdict] = []
    for name in required:
        if name not in obtained:
            return Verdict(
                Rules.HARNESS, mode, tuple(metrics), f"{name!r} was not obtained; the metrics after it are not checked"
            )
        metrics.append(metric(name, obtained[name], golden[name], exact_lane=not config.approximate_only))
    return Verdict(Rules.HARNESS, mode, tuple(metrics), notes=() if required else ("METRICS is empty: nothing is compared",))


def metric(name: str, obtained: Block, golden: Block, *, exact_lane: bool) -> MetricVerdict:
    """The checks of one metric."""
    if name == "iteration-time":
        return _iteration_time(obtained, golden)
    steps = list(golden.values)
    want, have = list(golden.values.values()), [obtained.values.get(s, math.inf) for s in steps]
    if not golden.full:
        want, have = _rounded(want), _rounded(have)
    unequal = [s for s, a, g in zip(steps, have, want, strict=True) if not close(a, g, 0.0)]
    exact = (not unequal) if exact_lane and name in DETERMINISTIC else None
    rtol = APPROXIMATE[name]
    bad = [s for s, a, g in zip(steps, _rounded(have), _rounded(want), strict=True) if not close(a, g, rtol)]
    approximate = enough_close(len(steps), len(bad))
    allowed = allowed_bad_steps(len(steps))
    base = MetricVerdict(
        name,
        approximate and exact is not False,
        exact=exact,
        approximate=approximate,
        n_allowed=allowed,
        tolerance=f"{percent(rtol)} per step, {allowed} of {len(steps)} steps may exceed",
    )
    present = {s: v for s, v in obtained.values.items() if s in golden.values}
    verdict = measured(base, present, golden.values, bad, unequal if exact is not None else ())
    return replace(verdict, reason=_reason(verdict, unequal, bad), note=_trap_note(obtained, golden))


def close(actual: float, golden: float, rtol: float) -> bool:
    """Numpy's ``isclose`` with ``atol = 0``: equal infinities are close, NaN never is."""
    if math.isfinite(golden) and math.isfinite(actual):
        return abs(actual - golden) <= rtol * abs(golden)
    return actual == golden


def allowed_bad_steps(steps: int) -> int:
    """Steps that may exceed: ``min(max(T // 100, 1), 50)``, none of one."""
    return 0 if steps <= 1 else min(max(steps // 100, 1), 50)


def enough_close(steps: int, bad: int) -> bool:
    """``mean(close) >= 1 - F / T`` in floating point, which refuses exactly F bad steps for some T (3, 7, 19, 27, …)."""
    if steps <= 1:
        return bad == 0
    return (steps - bad) / steps >= 1 - allowed_bad_steps(steps) / steps


def _rounded(values: Sequence[float]) -> list[float]:
    return [round(v, DECIMALS) if math.isfinite(v) else v for v in values]


def _reason(verdict: MetricVerdict, unequal: Sequence[int], bad: Sequence[int]) -> str:
    parts = []
    if verdict.exact is False:
        parts.append(f"exact comparison: {len(unequal)} of {verdict.n_steps} steps differ, first step {min(unequal)}")
    if not verdict.approximate:
        trap = " (the harness's rounding refuses exactly that many)" if len(bad) == verdict.n_allowed else ""
        parts.append(f"{len(bad)} of {verdict.n_steps} steps exceed where {verdict.n_allowed} may{trap}: {first_steps(bad)}")
    return "; ".join(parts)


def _trap_note(obtained: Block, golden: Block) -> str:
    """What the harness lets through, in words."""
    hidden = [s for s, v in golden.values.items() if v == math.inf and obtained.values.get(s, math.inf) == math.inf]
    if hidden:
        return f"steps {first_steps(hidden)} hold no number on either side, which the harness takes for equal infinities"
    return ""


def _iteration_time(obtained: Block, golden: Block) -> MetricVerdict:
    finite = sorted(s for s, v in golden.values.items() if math.isfinite(v) and s not in golden.texts)
    steps = window(finite)
    base = MetricVerdict("iteration-time", False, approximate=False, tolerance=f"{percent(0.05)} of the median")
    if not steps:
        where = f"ends at step {finite[-1]}, before the window of steps 30 to 45" if finite else "has no finite step"
        return replace(base, reason=f"the golden {where}: the harness can only fail")
    want = {s: golden.values[s] for s in steps}
    have = {s: obtained.values.get(s, math.inf) for s in steps}
    middle_golden = statistics.median(_rounded(list(want.values())))
    middle_obtained = _median(_rounded(list(have.values())))
    passed = close(middle_obtained, middle_golden, 0.05)
    reason = "" if passed else f"median {middle_obtained:.6g} against {middle_golden:.6g} over steps {steps[0]} to {steps[-1]}"
    base = replace(base, passed=passed, approximate=passed, reason=reason)
    shown = {s: v for s, v in have.items() if s in obtained.values}
    return measured(base, shown, want, () if passed else steps)


def _median(values: Sequence[float]) -> float:
    """Numpy's median, which is NaN as soon as one value is."""
    return math.nan if any(map(math.isnan, values)) else statistics.median(values)


def window(finite: Sequence[int]) -> list[int]:
    """The steps whose medians are compared; empty where the harness fails."""
    if not finite:
        return []
    first, last = (5, 20) if finite[-1] <= 25 else (30, 45)
    return [s for s in finite if first <= s <= last] or [s for s in finite if s >= first][:4]
