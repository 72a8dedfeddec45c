"""The verdict a functional test gives on an obtained document: by Megatron-LM's own rules, or by what they mean to be.

Megatron-LM's harness has defects that let wrong values through or refuse right ones (docs/verdicts.md lists them).
``harness`` computes its verdict bit for bit, so that a person knows what CI will say; ``strict`` is the verdict to
trust. Where the two differ, :func:`disagreements` says so and why.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from goldenctl.config import HARNESS_TOLERANCES, Tolerance
from goldenctl.goldenfile import DocumentError, Shape, decode, shape_of
from goldenctl.rules import harness, harness_inference, harness_rl, strict, strict_inference
from goldenctl.rules.verdicts import MetricVerdict, Rules, Verdict
from goldenctl.testconfig import TestConfig

__all__ = ["Disagreement", "MetricVerdict", "Rules", "Verdict", "assumed", "check", "disagreements", "harness_tolerance"]


def harness_tolerance(metric: str) -> Tolerance:
    """The harness's own tolerance of a metric; 5 % per step for one it does not know."""
    return HARNESS_TOLERANCES.get(metric, Tolerance())


def assumed(golden: bytes) -> TestConfig:
    """The configuration of a case that has none, by what its golden looks like and most such cases compare."""
    try:
        shape = shape_of(decode(golden).value)
    except DocumentError:
        return TestConfig()
    if shape is Shape.THROUGHPUT:
        return TestConfig(metrics=("throughput",), metrics_given=True, mode="inference")
    if shape in (Shape.INFERENCE, Shape.RECORD):
        return TestConfig(metrics=("generated_tokens", "logprobs"), metrics_given=True, mode="inference")
    return TestConfig()


def check(
    obtained: bytes,
    golden: bytes,
    config: TestConfig | None = None,
    *,
    rules: Rules = Rules.STRICT,
    tolerance_for: Callable[[str], Tolerance] = harness_tolerance,
    resume_iters: int | None = None,
) -> Verdict:
    """The verdict of a functional test.

    Parameters
    ----------
    obtained
        What the run produced; phase 2 in a resume check.
    golden
        What it is compared with; phase 1 in a resume check.
    config
        The case's ``model_config.yaml``; None means what :func:`assumed` takes from the golden.
    rules
        Whose rules decide.
    tolerance_for
        Tolerance of a metric under strict rules; the harness has its own.
    resume_iters
        ``--train-iters`` of a resume check, whose steps after the middle count; None for a plain check.

    Returns
    -------
    Verdict
        Never raises for what the documents hold: what cannot be read is a failed verdict with its reason.
    """
    config = config or assumed(golden)
    if rules is Rules.HARNESS:
        return _harness(obtained, golden, config, resume_iters)
    if config.mode == "inference":
        return strict_inference.inference(obtained, golden, config)
    context = strict.Context(config, tolerance_for, after=(resume_iters or 0) // 2)
    return strict.training(obtained, golden, context, "resume" if resume_iters is not None else config.mode)


def _harness(obtained: bytes, golden: bytes, config: TestConfig, resume_iters: int | None) -> Verdict:
    if config.skip_pytest:
        return Verdict(Rules.HARNESS, config.mode, notes=("SKIP_PYTEST=1: the harness compares nothing",))
    if config.mode == "inference":
        return harness_inference.inference(obtained, golden, config)
    if config.mode == "rl":
        return harness_rl.rl(obtained, golden, config)
    if resume_iters is not None:
        return harness.resume(obtained, golden, config, resume_iters)
    return harness.pretraining(obtained, golden, config)


@dataclass(frozen=True, slots=True)
class Disagreement:
    """A metric, or the whole document, that the two rule sets judge differently."""

    metric: str
    """Empty for the whole document."""
    harness: bool | None
    """Whether it passes the harness; None when the harness does not look at it."""
    strict: bool | None
    why: str


def disagreements(by_harness: Verdict, by_strict: Verdict) -> tuple[Disagreement, ...]:
    """Where two verdicts on the same documents differ, and why."""
    ours = {m.metric: m for m in by_strict.metrics}
    theirs = {m.metric: m for m in by_harness.metrics}
    found = []
    for name in dict.fromkeys([*theirs, *ours]):
        a, b = theirs.get(name), ours.get(name)
        if a is not None and b is not None and a.passed != b.passed:
            found.append(Disagreement(name, a.passed, b.passed, (a.reason or b.reason) + (f" ({a.note})" if a.note else "")))
        elif a is None and b is not None and not b.passed and by_harness.passed:
            found.append(Disagreement(name, None, False, f"the harness does not look at it: {b.reason}"))
    if not found and by_harness.passed != by_strict.passed:
        why = by_harness.reason or by_strict.reason
        found.append(Disagreement("", by_harness.passed, by_strict.passed, why))
    return tuple(found)
