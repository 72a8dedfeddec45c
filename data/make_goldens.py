"""Make the golden files under ``goldens/``. The curves are made, not measured.

Every number comes from a seeded generator and a formula that looks like a training run: a loss that
falls, gradient zeros that drift, memory that settles after the second step, iteration times with a
slow start. No machine ran these tests, and nothing about a model, a platform or a container can be
read from them. They exist so that goldenctl can be tried and tested without anybody's real values.

``python data/make_goldens.py`` writes the files as they lie in the repository: a few of them hold
``"nan"`` in the places where real ones do (the first iteration time, the leading half of a second
phase, a tail from half way of a run that was cut).
"""

from __future__ import annotations

import json
import math
import random
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PLATFORMS = ("dgx_h100", "dgx_gb200")
SPEED = {"dgx_h100": 1.0, "dgx_gb200": 0.58}
"""Iteration time relative to dgx_h100."""
SHIFT = {"dgx_h100": 0.0, "dgx_gb200": 3e-4}
"""Relative shift of the loss, as another kernel would give."""


@dataclass(frozen=True)
class Case:
    """One made test case."""

    name: str
    """``model/test_case``."""
    iterations: int = 50
    interval: int = 1
    """Steps between samples; step 1 is always there."""
    mtp: bool = False
    """Has a ``mtp_1 loss``."""
    resumes: bool = False
    """Has a second phase, hence ``_2nd`` files."""
    inference: bool = False


CASES = (
    Case("gpt/gpt3_mcore_tp1_pp2", 100, 5),
    Case("gpt/gpt3_mcore_te_tp2_pp2_resume_torch_dist", 100, resumes=True),
    Case("gpt/gpt3_mcore_te_tp1_pp4_vp1", 50),
    Case("gpt/gpt3_345m_release_sm", 2000, 5),
    Case("gpt/gpt_dynamic_inference_tp1_pp1_583m", inference=True),
    Case("moe/gpt3_moe_mcore_te_tp2_pp2_ep4", 50, mtp=True),
    Case("moe/gpt3_moe_mcore_te_ep8_resume_torch_dist", 100, resumes=True),
    Case("moe/gpt3_moe_mcore_te_tp4_ep2_etp2", 50),
    Case("moe/gpt_dynamic_inference_tp4_ep4_16b", inference=True),
    Case("hybrid/hybrid_mcore_te_tp2_pp1_cp4", 100, 5),
    Case("hybrid/hybrid_mcore_te_tp1_pp1_resume_torch_dist", 50, resumes=True),
    Case("bert/bert_mcore_tp1_pp2", 50),
    Case("bert/bert_mcore_te_tp2_pp2_resume_torch_dist", 50, resumes=True),
    Case("t5/t5_220m_mcore_te_tp2_pp1", 100, 5),
    Case("t5/t5_220m_mcore_te_tp1_pp1_resume_torch_dist", 100, resumes=True),
    Case("t5/t5_220m_mcore_te_tp4_pp1", 50),
)
NAN = "nan"
Document = dict[str, Any]
Damage = Callable[[int, int, str], bool]
"""(index, number of values, metric) → whether the value is lost."""


def _first_time(index: int, count: int, metric: str) -> bool:
    return metric == "iteration-time" and index == 0


def _leading_half(index: int, count: int, metric: str) -> bool:
    return index < count // 2


def _tail(index: int, count: int, metric: str) -> bool:
    return index >= count // 2


def _leading_zeros(index: int, count: int, metric: str) -> bool:
    return metric == "num-zeros" and index < 4


DAMAGE: dict[str, Damage] = {
    "gpt/gpt3_mcore_tp1_pp2/golden_values_dev_dgx_h100.json": _first_time,
    "gpt/gpt3_mcore_tp1_pp2/golden_values_dev_dgx_gb200.json": _first_time,
    "gpt/gpt3_345m_release_sm/golden_values_dev_dgx_h100.json": _tail,
    "moe/gpt3_moe_mcore_te_tp2_pp2_ep4/golden_values_dev_dgx_h100.json": _tail,
    "moe/gpt3_moe_mcore_te_tp2_pp2_ep4/golden_values_dev_dgx_gb200.json": _tail,
    "moe/gpt3_moe_mcore_te_tp4_ep2_etp2/golden_values_dev_dgx_gb200.json": _leading_zeros,
    "hybrid/hybrid_mcore_te_tp1_pp1_resume_torch_dist/golden_values_dev_dgx_h100_2nd.json": _leading_half,
    "t5/t5_220m_mcore_te_tp1_pp1_resume_torch_dist/golden_values_dev_dgx_gb200_2nd.json": _leading_half,
}
"""Golden files that hold ``nan`` in the repository, and where."""


def steps_of(case: Case) -> list[int]:
    """The harness's sampling grid: step 1 and every multiple of the interval."""
    return [s for s in range(1, case.iterations + 1) if s == 1 or s % case.interval == 0]


def block(steps: list[int], interval: int, values: list[float]) -> Document:
    """A metric block."""
    named = {str(s): v for s, v in zip(steps, values, strict=True)}
    return {"start_step": steps[0], "end_step": steps[-1], "step_interval": interval, "values": named}


def training(case: Case, platform: str, *, image: int = 0, second: bool = False) -> Document:
    """A made training run.

    Parameters
    ----------
    case, platform
        What to make; they seed the generator together with the phase.
    image
        Number of the made container image: another one shifts the loss by some 1e-4, as new kernels do.
    second
        The phase resumed from the checkpoint at half way: only the second half has steps.
    """
    rng = random.Random(f"{case.name} {platform} {second}")
    steps = [s for s in steps_of(case) if not second or s > case.iterations // 2]
    shift = 1 + SHIFT[platform] + 1.3e-4 * image
    floor, start = rng.uniform(2.1, 4.0), rng.uniform(10.2, 10.95)
    scale = case.iterations * rng.uniform(0.5, 0.9)

    def loss(step: int, offset: float) -> float:
        return round((floor + offset + (start - floor) * math.exp(-step / scale) + rng.gauss(0, 0.004)) * shift, 5)

    document = {"lm loss": block(steps, case.interval, [loss(s, 0.0) for s in steps])}
    zeros = rng.randint(900, 4200)
    document["num-zeros"] = block(steps, case.interval, [float(zeros + rng.randint(-60, 60) + s // 9) for s in steps])
    memory = rng.randint(900, 3400) * 1_048_576
    document["mem-allocated-bytes"] = block(steps, case.interval, [float(memory)] * len(steps))
    peak = [float(memory * 2 + (0 if s == steps[0] else 196_608)) for s in steps]
    document["mem-max-allocated-bytes"] = block(steps, case.interval, peak)
    if case.mtp:
        document["mtp_1 loss"] = block(steps, case.interval, [loss(s, 0.35) for s in steps])
    base = rng.uniform(0.12, 0.9) * SPEED[platform]
    times = [round(base * (14.0 if s == steps[0] else 1.0) * rng.uniform(0.985, 1.02), 5) for s in steps]
    document["iteration-time"] = block(steps, case.interval, times)
    return document


def inference(case: Case, platform: str, *, image: int = 0) -> Document:
    """A made inference run: one request, its tokens and log-probabilities, throughput per iteration."""
    rng = random.Random(f"{case.name} {platform}")
    words = ("the", "loss", "curve", "falls", "slowly", "while", "gradients", "vanish")
    tokens = [rng.randint(11, 31_999) for _ in range(16)]
    record = {
        "input_prompt": "A golden file says what",
        "generated_text": " ".join(rng.choice(words) for _ in tokens),
        "generated_tokens": tokens,
        "latency": round(rng.uniform(1.1, 2.4) * SPEED[platform], 6),
        "step_count": len(tokens),
        "logprobs": [round(-rng.expovariate(0.9) - 1e-5 * image, 7) for _ in tokens],
    }
    rates = [round(rng.uniform(58, 63) / SPEED[platform] * (0.4 if i == 0 else 1.0), 5) for i in range(8)]
    return {"0": record, "throughput": rates, "mem-max-allocated-bytes": rng.randint(20, 60) * 1_073_741_824}


def documents(*, image: int = 0) -> Iterator[tuple[str, Document]]:
    """Every golden without damage: path below the root of goldens → document."""
    for case in CASES:
        for platform in PLATFORMS:
            path = f"{case.name}/golden_values_dev_{platform}"
            if case.inference:
                yield f"{path}.json", inference(case, platform, image=image)
                continue
            yield f"{path}.json", training(case, platform, image=image)
            if case.resumes:
                yield f"{path}_2nd.json", training(case, platform, image=image, second=True)


def damaged(path: str, document: Document) -> Document:
    """The document as it lies in the repository, with ``nan`` where :data:`DAMAGE` says so.

    A second phase is damaged the old way: its metrics name every step and hold ``nan`` up to the checkpoint.
    """
    lost = DAMAGE.get(path)
    if lost is None:
        return document
    out = {}
    for metric, told in document.items():
        values = dict(told["values"])
        if path.endswith("_2nd.json"):
            early = range(1, told["start_step"], told["step_interval"])
            values = {str(s): 0.0 for s in early} | values
        keys = list(values)
        values = {k: NAN if lost(i, len(keys), metric) else v for i, (k, v) in enumerate(values.items())}
        grid = {"start_step": int(keys[0]), "end_step": int(keys[-1]), "step_interval": told["step_interval"]}
        out[metric] = grid | {"values": values}
    return out


def text(path: str, document: Document) -> bytes:
    """The bytes of a golden: indented by four as most are, on one line for bert, as old ones are."""
    indent = None if path.startswith("bert/") else 1 if "inference" in path else 4
    return json.dumps(document, indent=indent).encode()


def write(root: Path, *, damage: bool = True, image: int = 0) -> int:
    """Write all goldens below ``root`` and return their number."""
    count = 0
    for count, (path, document) in enumerate(documents(image=image), 1):  # noqa: B007  the last number is the count
        target = root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(text(path, damaged(path, document) if damage else document))
    return count


if __name__ == "__main__":
    where = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parent.parent / "goldens"
    print(f"{write(where)} golden files made under {where.name}/; the curves are made, not measured")
