"""What the inference rules mean to be: every request, whole texts, finite numbers, and never nothing compared."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from goldenctl.rules import harness_inference as harness
from goldenctl.rules.raw import HarnessError, loose_object
from goldenctl.rules.verdicts import MetricVerdict, Rules, Verdict
from goldenctl.testconfig import TestConfig

DEFAULT = ("generated_tokens", "logprobs")
"""Fields compared where the configuration names none."""


def inference(obtained: bytes, golden: bytes, config: TestConfig) -> Verdict:
    """The strict verdict on request records.

    Parameters
    ----------
    obtained, golden
        Documents of request records, or one flat record, plain or encoded twice.
    config
        ``METRICS``; without any, tokens and log-probabilities are compared where the golden has them.
    """
    try:
        have, want = loose_object(obtained), loose_object(golden)
    except HarnessError as exc:
        return Verdict(Rules.STRICT, "inference", reason=str(exc).replace("its reader refuses the file", "cannot be read"))
    asked = config.metrics or tuple(dict.fromkeys((*DEFAULT, *(k for k in ("throughput",) if k in want))))
    have_ids, want_ids = _requests(have), _requests(want)
    if not want:
        return Verdict(Rules.STRICT, "inference", reason="the golden is empty")
    extra = sorted(set(have_ids) - set(want_ids))
    metrics = [_whole(n, have, want) for n in ("throughput", "mem-max-allocated-bytes") if n in asked and n in want]
    for request, record in want_ids.items():
        metrics += _request(request, have_ids.get(request), record, asked)
    metrics += [MetricVerdict(m, False, "required but in no record of the golden") for m in _absent(asked, want)]
    return Verdict(
        Rules.STRICT, "inference", tuple(metrics), reason=f"request {extra[0]!r} is not in the golden" if extra else ""
    )


def _requests(document: Mapping[str, Any]) -> dict[str, Any]:
    """Request id → record; a flat record is the only request, ``record``."""
    if "generated_tokens" in document or "generated_text" in document:
        return {"record": document}
    return {k: v for k, v in document.items() if k not in harness.RESERVED}


def _absent(asked: tuple[str, ...], golden: Mapping[str, Any]) -> list[str]:
    records = [r for r in _requests(golden).values() if isinstance(r, Mapping)]
    return [m for m in asked if m not in golden and not any(m in r for r in records) and m not in DEFAULT]


def _request(request: str, obtained: Any, golden: Any, asked: tuple[str, ...]) -> list[MetricVerdict]:
    if not isinstance(golden, Mapping):
        return [MetricVerdict(request, False, "the golden's request is no record")]
    if not isinstance(obtained, Mapping):
        return [MetricVerdict(request, False, "the request was not obtained")]
    fields = [f for f in harness.FIELDS if f in golden and f in asked]
    if not fields:
        return [MetricVerdict(request, False, "the golden record holds nothing that is asked for")]
    return [_field(request, f, obtained, golden) for f in fields]


def _field(request: str, field: str, obtained: Mapping[str, Any], golden: Mapping[str, Any]) -> MetricVerdict:
    name = f"{request}.{field}"
    if field not in obtained:
        return MetricVerdict(name, False, "was not obtained")
    if field == "logprobs" and not (_finite(obtained[field]) and _finite(golden[field])):
        return MetricVerdict(name, False, "a log-probability is not a finite number")
    if field == "routing_indices" and "routing_indices_token_indices" not in golden:
        golden = {**golden, "routing_indices_token_indices": range(len(golden[field]))}
    verdict = harness.attempt(name, lambda: harness.FIELDS[field](name, obtained, golden))
    if field == "generated_text" and verdict.passed and verdict.note:
        return replace(verdict, passed=False, exact=False, reason=verdict.note, note="")
    return verdict


def _whole(name: str, obtained: Mapping[str, Any], golden: Mapping[str, Any]) -> MetricVerdict:
    if name not in obtained:
        return MetricVerdict(name, False, "was not obtained")
    have, want = _list(obtained[name]), _list(golden[name])
    if not (have and want and _finite(have) and _finite(want)):
        return MetricVerdict(name, False, "a value is not a finite number")
    if name == "throughput":
        return harness.throughput(have if len(have) > 1 else have * 2, want if len(want) > 1 else want * 2)
    return harness.memory(have, want)


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _finite(values: Any) -> bool:
    return isinstance(values, list) and all(type(v) in (int, float) and math.isfinite(v) for v in values)
