"""The steps of the GitHub Action, run here as a runner runs them."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from ..conftest import IDENTITY
from .test_audit import V1, V2, V3, Make, curve, history, name

__all__ = ["history"]
TOP = Path(__file__).parents[2]
A, B = name("case_a"), name("case_b")
pytestmark = pytest.mark.skipif(shutil.which("bash") is None, reason="the action's steps are bash")


@dataclass(frozen=True)
class Done:
    codes: dict[str, int]
    summary: str
    output: str


class Runner:
    """Evaluates the few expressions the action uses and runs each step in bash."""

    def __init__(self, folder: Path) -> None:
        self.action: dict[str, Any] = yaml.safe_load((TOP / "action.yml").read_text())
        self.folder = folder
        (folder / "bin").mkdir(parents=True)
        program = folder / "bin/goldenctl"
        program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m goldenctl "$@"\n')
        program.chmod(0o755)

    def run(self, repo: Path, base: str, head: str, **inputs: str) -> Done:
        values = {key: str(entry["default"]) for key, entry in self.action["inputs"].items()}
        values |= {"base": base, "head": head} | {key.replace("_", "-"): value for key, value in inputs.items()}
        summary = self.folder / "summary.md"
        summary.write_text("")
        codes: dict[str, int] = {}
        said = ""
        for step in self.action["runs"]["steps"]:
            if any(codes.values()) and step.get("if") != "always()":
                continue
            done = self._step(step, values, repo, summary)
            codes[step["name"]] = done.returncode
            said += done.stdout + done.stderr
        return Done(codes, summary.read_text(), said)

    def _step(
        self, step: dict[str, Any], values: dict[str, str], repo: Path, summary: Path
    ) -> subprocess.CompletedProcess[str]:
        def value(found: re.Match[str]) -> str:
            kind, _, key = found[1].partition(".")
            return values[key] if kind == "inputs" else str(TOP)

        given = {key: re.sub(r"\$\{\{ ([\w.-]+) \}\}", value, text) for key, text in step.get("env", {}).items()}
        path = f"{self.folder / 'bin'}:{os.environ['PATH']}"
        runner = {
            "RUNNER_TEMP": str(self.folder),
            "GITHUB_STEP_SUMMARY": str(summary),
            "GITHUB_PATH": str(self.folder / "path"),
        }
        environment = os.environ | IDENTITY | {"PYTHONPATH": str(TOP / "src"), "PATH": path} | runner | given
        command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]]
        return subprocess.run(command, cwd=repo, env=environment, capture_output=True, text=True, check=False)


@pytest.fixture
def runner(tmp_path: Path) -> Runner:
    return Runner(tmp_path / "runner")


def test_a_change_without_goldens_says_so(history: Make, runner: Runner) -> None:
    made = history({A: V1})
    base = made.repo.git("rev-parse", "dev")
    head = made.on("dev", {"code.py": b"1"})
    done = runner.run(made.repo.top, base, head)
    assert set(done.codes.values()) == {0}
    assert done.summary == "No golden file changed.\n"
    assert "Not a sync" in done.output


def test_a_nan_fails_the_lint_and_is_annotated(history: Make, runner: Runner) -> None:
    made = history({A: V1, B: V1})
    base = made.repo.git("rev-parse", "dev")
    head = made.on("dev", {A: curve(9.0, (4, "nan")), B: V2})
    done = runner.run(made.repo.top, base, head)
    assert done.codes == {"Set up": 0, "Lint changed golden files": 1, "Audit the sync": 0}
    assert f"::error file={A}" in done.output
    assert done.summary == "Lint of changed golden files: 2, errors, see the annotations.\n"


def test_a_sync_is_audited_on_the_summary(history: Make, runner: Runner) -> None:
    made = history({A: V1, B: V1})
    made.on("main", {A: V2})
    base = made.on("dev", {"code.py": b"1"})
    made.repo.git("switch", "-q", "-c", "main2dev", "dev")
    made.repo.git("merge", "-q", "--no-ff", "--no-edit", "main")
    done = runner.run(made.repo.top, base, made.repo.git("rev-parse", "HEAD"))
    assert set(done.codes.values()) == {0}
    assert "Golden values: 1 file (1 dgx_h100)." in done.summary
    assert "no new error" in done.summary


def test_a_sync_that_overwrites_downstreams_values_fails(history: Make, runner: Runner) -> None:
    made = history({A: V1})
    made.on("main", {A: V2})
    base = made.on("dev", {A: V3})
    head = made.merge({A: V2})
    done = runner.run(made.repo.top, base, head, sync="true")
    assert done.codes["Audit the sync"] == 1
    assert "Values of dev alone overwritten by main's in 1." in done.summary
    assert f"goldenctl restore {A} --from {base}" in done.summary
