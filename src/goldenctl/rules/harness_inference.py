"""Megatron-LM's verdict on inference cases: tokens, log-probabilities, text, routing, throughput, memory."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping
from typing import Any

from goldenctl.rules.raw import HarnessError, loose_object
from goldenctl.rules.verdicts import MetricVerdict, Rules, Verdict, measured, percent
from goldenctl.testconfig import TestConfig

RESERVED = frozenset(
    {
        "throughput",
        "lifetime_prefill_token_count",
        "async_sched_step_count",
        "async_sched_compaction_step_count",
        "mem-max-allocated-bytes",
    }
)
"""Top-level keys that are no requests."""
LOGPROB_TOLERANCE = 0.001
"""Absolute; together with the relative 1e-9 of ``math.isclose``."""


def inference(obtained: bytes, golden: bytes, config: TestConfig) -> Verdict:
    """The verdict of the inference test.

    Parameters
    ----------
    obtained, golden
        Documents of request records, plain or encoded twice.
    config
        ``METRICS``: the record fields compared; without any the test passes without looking.
    """
    if config.lightweight:
        return Verdict(Rules.HARNESS, "inference", notes=("lightweight mode: the harness skips the comparison",))
    if not config.metrics_given:
        return Verdict(Rules.HARNESS, "inference", reason="KeyError: model_config.yaml has no METRICS")
    if not config.metrics:
        return Verdict(Rules.HARNESS, "inference", notes=("METRICS is empty: the harness passes without comparing",))
    try:
        return _judge(loose_object(obtained), loose_object(golden), config)
    except HarnessError as exc:
        return Verdict(Rules.HARNESS, "inference", reason=str(exc))


def _judge(obtained: Mapping[str, Any], golden: Mapping[str, Any], config: TestConfig) -> Verdict:
    ids, extra = set(golden) - RESERVED, set(obtained) - RESERVED - set(golden)
    if extra:
        return Verdict(Rules.HARNESS, "inference", reason=f"request {min(extra)!r} is not in the golden")
    if not golden:
        return Verdict(Rules.HARNESS, "inference", reason="the golden is empty")
    metrics = []
    for name, check in (("throughput", throughput), ("mem-max-allocated-bytes", memory)):
        if name in golden and name in config.metrics:
            metrics.append(attempt(name, lambda n=name, c=check: c(obtained[n], golden[n])))  # type: ignore[misc]
    if "lifetime_prefill_token_count" in golden and "lifetime_prefill_token_count" in config.metrics:
        metrics.append(
            MetricVerdict("lifetime_prefill_token_count", False, "TypeError: a defect of the harness fails this metric")
        )
    for request in golden:
        if request in ids:
            metrics += _request(request, obtained.get(request), golden[request], config)
    return Verdict(Rules.HARNESS, "inference", tuple(metrics))


def _request(request: str, obtained: Any, golden: Any, config: TestConfig) -> list[MetricVerdict]:
    if obtained is None:
        return [MetricVerdict(request, False, "KeyError: the request was not obtained")]
    if not isinstance(golden, Mapping) or not isinstance(obtained, Mapping):
        return [MetricVerdict(request, False, "TypeError: the request is no record")]
    fields = [f for f in FIELDS if f in golden and f in config.metrics]
    if not fields:
        return [MetricVerdict(request, False, "the golden record holds none of METRICS: no test performed")]
    return [attempt(f"{request}.{f}", lambda f=f: FIELDS[f](f"{request}.{f}", obtained, golden)) for f in fields]  # type: ignore[misc]


def attempt(name: str, check: Callable[[], MetricVerdict]) -> MetricVerdict:
    """A check whose exceptions fail the metric, as they fail the harness's test."""
    try:
        return check()
    except LookupError as exc:
        return MetricVerdict(name, False, f"{type(exc).__name__}: {exc}")
    except (TypeError, ValueError, AttributeError, OverflowError) as exc:
        return MetricVerdict(name, False, f"{type(exc).__name__}: {exc}")


def throughput(obtained: Any, golden: Any) -> MetricVerdict:
    """Median of the list without its first item: at least 0.9 and less than 1.2 of the golden's."""
    want, have = statistics.median(golden[1:]), statistics.median(obtained[1:])
    passed = have >= 0.9 * want and have < want * 1.2
    reason = "" if passed else f"median {have:.6g} is not within -10 % and +20 % of {want:.6g}"
    base = MetricVerdict("throughput", passed, reason, approximate=passed, tolerance="0.9 to below 1.2 of the median")
    return measured(base, {0: have}, {0: want}, () if passed else (0,))


def memory(obtained: Any, golden: Any) -> MetricVerdict:
    """Median without the first item, or the number itself: within 5 % of a positive golden."""
    want, have = _middle(golden), _middle(obtained)
    passed = want > 0 and not have < 0.95 * want and not have > 1.05 * want
    reason = "" if passed else f"{have:.9g} is not within 5 % of {want:.9g}"
    base = MetricVerdict("mem-max-allocated-bytes", passed, reason, approximate=passed, tolerance=percent(0.05))
    return measured(base, {0: have}, {0: want}, () if passed else (0,))


def _middle(value: Any) -> float:
    if isinstance(value, list):
        numbers = [float(v) for v in value]
        return float(statistics.median(numbers[1:] if len(numbers) > 1 else numbers))
    return float(value)


def _tokens(name: str, obtained: Mapping[str, Any], golden: Mapping[str, Any]) -> MetricVerdict:
    want, have = golden["generated_tokens"], obtained["generated_tokens"]
    if want == have:
        return MetricVerdict(name, True, exact=True, n_steps=len(want), tolerance="equal")
    first = next((i for i, (a, b) in enumerate(zip(have, want, strict=False)) if a != b), min(len(have), len(want)))
    differing = sum(a != b for a, b in zip(have, want, strict=False)) + abs(len(have) - len(want))
    reason = f"tokens differ from index {first}, {differing} in all; {len(have)} obtained, {len(want)} golden"
    return MetricVerdict(
        name,
        False,
        reason,
        exact=False,
        n_steps=len(want),
        n_exceeding=differing,
        first_bad_step=first,
        worst_step=first,
        tolerance="equal",
    )


def _logprobs(name: str, obtained: Mapping[str, Any], golden: Mapping[str, Any]) -> MetricVerdict:
    want, have = golden["logprobs"], obtained["logprobs"]
    text = f"{LOGPROB_TOLERANCE} absolute per token"
    if len(want) != len(have):
        return MetricVerdict(name, False, f"{len(have)} log-probabilities obtained, {len(want)} golden", tolerance=text)
    bad = [i for i, (a, b) in enumerate(zip(want, have, strict=True)) if not math.isclose(a, b, abs_tol=LOGPROB_TOLERANCE)]
    reason = f"{len(bad)} of {len(want)} log-probabilities differ by more than {LOGPROB_TOLERANCE}" if bad else ""
    base = MetricVerdict(name, not bad, reason, approximate=not bad, tolerance=text)
    return measured(base, dict(enumerate(have)), dict(enumerate(want)), bad)


def _text(name: str, obtained: Mapping[str, Any], golden: Mapping[str, Any]) -> MetricVerdict:
    want, have = golden["generated_text"], obtained["generated_text"]
    shorter = min(len(want), len(have))
    passed = shorter > 0 and want[:shorter] == have[:shorter]
    reason = "" if passed else "the texts differ" if shorter else "one text is empty"
    note = f"only {shorter} of {len(want)} characters were obtained" if passed and len(have) < len(want) else ""
    return MetricVerdict(
        name, passed, reason, exact=passed, n_steps=shorter, tolerance="equal over the shorter text", note=note
    )


def _routing(name: str, obtained: Mapping[str, Any], golden: Mapping[str, Any]) -> MetricVerdict:
    want, rows = golden["routing_indices"], golden["routing_indices_token_indices"]
    have = [obtained["routing_indices"][i] for i in rows]
    passed = sorted_last(have) == sorted_last(want)
    reason = "" if passed else "the routed experts differ"
    return MetricVerdict(name, passed, reason, exact=passed, n_steps=len(want), tolerance="equal sets of experts")


def sorted_last(value: Any) -> Any:
    """A nested list with its innermost lists sorted."""
    if isinstance(value, list) and value and isinstance(value[0], list):
        return [sorted_last(v) for v in value]
    return sorted(value)


Field = Callable[[str, Mapping[str, Any], Mapping[str, Any]], MetricVerdict]
FIELDS: Mapping[str, Field] = {
    "generated_tokens": _tokens,
    "logprobs": _logprobs,
    "generated_text": _text,
    "routing_indices": _routing,
}
"""Record field → its check, in the harness's order."""
