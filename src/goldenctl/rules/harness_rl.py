"""Megatron-LM's verdict on reinforcement learning (GRPO) cases, its traps included.

The loss is asked for as ``lm-loss`` while every run logs ``lm loss``, so it is never compared; values are taken by
their place in the file, not by step; Python's own ``median`` and ``max`` meet whatever the file holds.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping
from typing import Any

from goldenctl.rules.harness_inference import attempt
from goldenctl.rules.raw import HarnessError, loose_object
from goldenctl.rules.verdicts import MetricVerdict, Rules, Verdict, measured, percent
from goldenctl.testconfig import TestConfig

TIME_TOLERANCE = 0.15
LOSS_TOLERANCE = 0.01
LOSS_NEAR_ZERO = 1e-6
"""Absolute tolerance of a loss whose golden is nearer to 0 than this."""
MEMORY_TOLERANCE = 0.10
"""Upper bound only."""


def rl(obtained: bytes, golden: bytes, config: TestConfig) -> Verdict:
    """The verdict of the GRPO test.

    Parameters
    ----------
    obtained, golden
        Documents with metric blocks, plain or encoded twice.
    config
        ``METRICS`` and the list index from which iteration times count.
    """
    if not config.metrics_given:
        return Verdict(Rules.HARNESS, "rl", reason="KeyError: model_config.yaml has no METRICS")
    try:
        have, want = loose_object(obtained), loose_object(golden)
    except HarnessError as exc:
        return Verdict(Rules.HARNESS, "rl", reason=str(exc))
    absent = sorted(set(want) - set(have))
    if absent or not want:
        return Verdict(Rules.HARNESS, "rl", reason=f"not obtained: {', '.join(absent)}" if absent else "the golden is empty")
    metrics = [
        attempt(name, lambda n=name, c=check: c(have[n]["values"], want[n]["values"], config))  # type: ignore[misc]
        for name, check in CHECKS.items()
        if name in config.metrics and name in have
    ]
    unchecked = [m for m in config.metrics if m not in CHECKS]
    notes = (f"never compared by the harness: {', '.join(unchecked)}",) if unchecked else ()
    return Verdict(Rules.HARNESS, "rl", tuple(metrics), notes=notes)


def _time(obtained: Mapping[str, Any], golden: Mapping[str, Any], config: TestConfig) -> MetricVerdict:
    have = statistics.median(list(obtained.values())[config.throughput_start :])
    want = statistics.median(list(golden.values())[config.throughput_start :])
    passed = (1 - TIME_TOLERANCE) * want <= have <= (1 + TIME_TOLERANCE) * want
    reason = "" if passed else f"median {have:.6g} is not within {percent(TIME_TOLERANCE)} of {want:.6g}"
    base = MetricVerdict(
        "iteration-time", passed, reason, approximate=passed, tolerance=f"{percent(TIME_TOLERANCE)} of the median"
    )
    return measured(base, {0: have}, {0: want}, () if passed else (0,))


def _loss(obtained: Mapping[str, Any], golden: Mapping[str, Any], _config: TestConfig) -> MetricVerdict:
    bad = [int(step) for step, want in golden.items() if step not in obtained or _loss_differs(obtained[step], want)]
    reason = f"{len(bad)} of {len(golden)} steps differ by more than {percent(LOSS_TOLERANCE)}" if bad else ""
    base = MetricVerdict(
        "lm-loss", not bad, reason, approximate=not bad, tolerance=f"{percent(LOSS_TOLERANCE)} per step, all steps"
    )
    numbers = {int(s): v for s, v in obtained.items() if s in golden}
    return measured(base, numbers, {int(s): v for s, v in golden.items()}, bad)


def _loss_differs(have: float, want: float) -> bool:
    """Written as the harness does, so that NaN passes."""
    if want == 0 or abs(want) < LOSS_NEAR_ZERO:
        return abs(have) > LOSS_NEAR_ZERO
    return abs(have - want) / abs(want) > LOSS_TOLERANCE


def _memory(name: str) -> Callable[[Mapping[str, Any], Mapping[str, Any], TestConfig], MetricVerdict]:
    def check(obtained: Mapping[str, Any], golden: Mapping[str, Any], _config: TestConfig) -> MetricVerdict:
        have, want = max(list(obtained.values())[1:]), max(list(golden.values())[1:])
        passed = bool(have <= (1 + MEMORY_TOLERANCE) * want)
        reason = "" if passed else f"largest value {have:.9g} is more than {percent(MEMORY_TOLERANCE)} above {want:.9g}"
        tolerance = f"at most {percent(MEMORY_TOLERANCE)} above the largest"
        base = MetricVerdict(name, passed, reason, approximate=passed, tolerance=tolerance)
        return measured(base, {0: have}, {0: want}, () if passed else (0,))

    return check


CHECKS = {
    "iteration-time": _time,
    "lm-loss": _loss,
    "mem-allocated-bytes": _memory("mem-allocated-bytes"),
    "mem-max-allocated-bytes": _memory("mem-max-allocated-bytes"),
}
"""Metric → its check, in the harness's order."""
