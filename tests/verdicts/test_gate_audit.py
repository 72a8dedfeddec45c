"""The gate is tested by breaking what it guards."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from goldenctl.gate_audit import INFERENCE_MUTATIONS, METRIC_MUTATIONS, audit, made_golden
from tests.conftest import ScratchRepo, golden_json
from tests.verdicts.cli import Outcome, Run

H100 = "goldens/moe/tiny/golden_values_dev_dgx_h100.json"
GB200 = "goldens/moe/tiny/golden_values_dev_dgx_gb200.json"


def let_through(outcome: Outcome, comparator: str) -> list[str]:
    (found,) = (a for a in outcome.json["audits"] if a["comparator"] == comparator)
    names: list[str] = found["let_through"]
    return names


def test_strict_rules_catch_everything_and_the_harness_its_known_traps_not(run: Run, tmp_path: Path) -> None:
    got = run(tmp_path, "gate-audit", "--format", "json")
    assert got.code == 1
    assert let_through(got, "strict") == []
    assert let_through(got, "harness") == ["NaN in golden, run cut", "numbers as text"]
    assert run(tmp_path, "gate-audit", "--rules", "strict").code == 0


def test_without_the_exact_lane_small_drift_and_one_wild_step_are_let_through(run: Run, tmp_path: Path) -> None:
    got = run(tmp_path, "gate-audit", "--approximate", "--format", "json")
    assert let_through(got, "strict") == ["1 % drift", "one wild step"]
    assert let_through(got, "harness") == [
        "1 % drift", "NaN in golden, run cut", "last step lost", "numbers as text", "one wild step",
    ]  # fmt: skip


def test_each_mutation_does_what_its_name_says() -> None:
    golden = golden_json(4, **{"lm loss": {1: 1.0, 2: 2.0, 3: 3.0, 4: 4.0}, "num-zeros": {1: 5.0, 2: 5.0, 3: 5.0, 4: 5.0}})
    seen: dict[str, Any] = {}

    def keep(obtained: bytes, _golden: bytes) -> bool:
        document = json.loads(obtained)
        seen[str(len(seen))] = list(document.get("lm loss", {}).get("values", {}).values())
        return True

    audit("keep", keep, {"case": golden})
    curves = dict(zip(["unchanged", *(m.name for m in METRIC_MUTATIONS)], seen.values(), strict=True))
    assert curves["unchanged"] == [1.0, 2.0, 3.0, 4.0]
    assert curves["'nan' tail"] == [1.0, 2.0, 3.0, "nan"]
    assert curves["infinite tail"] == [1.0, 2.0, 3.0, float("inf")]
    assert curves["truncated"] == [1.0, 2.0]
    assert curves["last step lost"] == [1.0, 2.0, 3.0]
    assert curves["lost metric"] == []
    assert curves["shifted steps"] == [1.0, 1.0, 2.0, 3.0]
    assert curves["1 % drift"] == [1.01, 2.02, 3.0300000000000002, 4.04]
    assert curves["all zero"] == [0.0, 0.0, 0.0, 0.0]
    assert curves["one wild step"] == [1.0, 2.0, 3000.0, 4.0]
    assert curves["cancelled differences"] == pytest.approx([0.9, 2.2, 2.7, 4.4])
    assert curves["numbers as text"] == ["2.0", "4.0", "6.0", "8.0"]


def test_a_gate_that_always_passes_catches_nothing_and_one_that_always_fails_refuses_sound_runs() -> None:
    lax = audit("lax", lambda _o, _g: True, {"made": made_golden()})
    assert len(lax.let_through) == len(METRIC_MUTATIONS)
    hard = audit("hard", lambda _o, _g: False, {"made": made_golden()})
    assert (hard.let_through, hard.refuses_sound) == ((), ("made",))


def test_inference_goldens_have_their_own_mutations(run: Run, make_repo: Callable[..., ScratchRepo]) -> None:
    record = {"generated_tokens": [5, 6, 7, 8], "logprobs": [-1.0, -2.0], "generated_text": "one two"}
    repo = make_repo("repo", {H100: json.dumps({"0": record, "1": record}).encode()})
    repo.write(
        {"goldens/moe/tiny/model_config.yaml": "MODE: inference\nMETRICS: [generated_tokens, logprobs, generated_text]\n"}
    )
    got = run(repo.top, "gate-audit", "moe/tiny", "--format", "json")
    assert len(got.json["audits"][0]["trials"]) == len(INFERENCE_MUTATIONS)
    assert let_through(got, "strict") == []
    assert let_through(got, "harness") == ["cut text"]


def test_a_swapped_platform_is_tried_where_there_is_another(run: Run, make_repo: Callable[..., ScratchRepo]) -> None:
    loss = {s: 10.0 - s / 10 for s in range(1, 11)}
    repo = make_repo("repo", {H100: golden_json(4, **{"lm loss": loss, "num-zeros": loss}), GB200: b"{}"})
    other = {s: v * 1.001 for s, v in loss.items()}
    repo.write({GB200: golden_json(4, **{"lm loss": other, "num-zeros": other})})
    trials = run(repo.top, "gate-audit", H100, "--format", "json").json["audits"][0]["trials"]
    assert [t["caught"] for t in trials if t["mutation"] == "swapped platform"] == [True]


COMPARATOR = """\
import json, sys
golden, obtained = (json.load(open(p)) for p in sys.argv[1:3])
shared = set(golden) & set(obtained)
for metric in shared:
    pairs = [(v, obtained[metric]["values"].get(s)) for s, v in golden[metric]["values"].items()]
    known = [(g, o) for g, o in pairs if isinstance(g, float) and isinstance(o, float)]
    if known and abs(sum((o - g) / abs(g) for g, o in known) / len(known)) > 0.05:
        sys.exit(1)
"""


def test_any_command_can_be_audited(run: Run, tmp_path: Path) -> None:
    script = tmp_path / "compare.py"
    script.write_text(COMPARATOR)
    template = f"{sys.executable} {script} {{golden}} {{obtained}}"
    got = run(tmp_path, "gate-audit", "--command", template, "--format", "json")
    assert got.code == 1
    missed = let_through(got, template)
    assert {"cancelled differences", "truncated", "lost metric", "'nan' tail", "1 % drift", "empty run"} <= set(missed)
    assert "6 % drift" not in missed
    assert "all zero" not in missed


def test_a_command_that_hangs_counts_as_failed(run: Run, tmp_path: Path) -> None:
    template = f"{sys.executable} -c 'import time; time.sleep(60)' {{golden}} {{obtained}}"
    loss = golden_json(4, **{"lm loss": {1: 1.0}})
    assert audit("x", lambda _o, _g: True, {"a": loss}).trials
    got = run(tmp_path, "gate-audit", "--command", template, "--timeout", "0.1", "--format", "json")
    assert (got.code, got.json["audits"][0]["refuses_sound"]) == (1, ["made golden"])


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--command", "true"], "must name {golden} and {obtained}"),
        (["--command", "'unclosed {golden} {obtained}"], "cannot be split"),
        (["--command", "no-such-program {golden} {obtained}"], "cannot be started"),
        (["moe/nothing"], "means no golden file here"),
        (["gpt/empty"], "none of these goldens can be audited"),
    ],
)
def test_wrong_use_is_said(run: Run, make_repo: Callable[..., ScratchRepo], options: list[str], said: str) -> None:
    empty = "goldens/gpt/empty/golden_values_dev_dgx_h100.json"
    repo = make_repo("repo", {H100: golden_json(a={1: 1.0}), empty: b'{"throughput": [1.0, 2.0]}'})
    got = run(repo.top, "gate-audit", *options)
    assert (got.code, said in got.err) == (2, True)


@pytest.mark.corpus
def test_strict_rules_catch_every_mutation_of_a_real_golden(run: Run, corpus: Path) -> None:
    case = "moe/gpt3_moe_mcore_te_ep8_resume_torch_dist_dist_muon_1node"
    got = run(corpus, "gate-audit", case, "--rules", "strict", "--format", "json")
    assert (got.code, let_through(got, "strict")) == (0, [])
