"""Fixtures of the report: one command line in this process, and a repository with something to show."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.conftest import ScratchRepo, golden_json
from tests.verdicts.cli import Run, runner

ROOT = "goldens/"
LOSS = "moe/case_a/golden_values_dev_dgx_h100.json"
SPEED = "gpt/case_b/golden_values_dev_dgx_gb200.json"
SAME = "t5/case_c/golden_values_dev_dgx_h100.json"
STEPS = range(1, 101)


def loss(step: int) -> float:
    return 10.0 - step * 0.03125


def times(first: float, rest: float) -> bytes:
    """A golden whose first step (warm-up) takes ``first`` seconds."""
    return golden_json(x={s: first if s == 1 else rest for s in STEPS}).replace(b'"x"', b'"iteration-time"')


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """``run(folder, *arguments)``: one command line in this process."""
    return runner(monkeypatch, capsys)


@pytest.fixture
def moved(make_repo: Callable[..., ScratchRepo]) -> ScratchRepo:
    """Three goldens; in the second commit one loss doubles at step 40 and has two NaN, one speed drops by a tenth."""
    before = {
        ROOT + LOSS: golden_json(lm_loss={s: loss(s) for s in STEPS}, num_zeros=dict.fromkeys(STEPS, 7.0)),
        ROOT + SPEED: times(50.0, 2.0),
        ROOT + SAME: golden_json(lm_loss={1: 3.0, 2: 2.0}),
    }
    repo = make_repo("repo", {**before, ".gitignore": ".goldenctl/\n*.html\n*.md\n"})
    changed = {s: loss(s) for s in STEPS} | {40: 2 * loss(40)}
    values: dict[int, object] = {**changed, 99: "nan", 100: "nan"}
    repo.commit(
        {
            ROOT + LOSS: golden_json(lm_loss=values, num_zeros=dict.fromkeys(STEPS, 7.0)),
            ROOT + SPEED: times(90.0, 1.8),
        },
        "Refresh two goldens",
    )
    return repo
