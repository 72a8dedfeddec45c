"""Fixtures of the verdict commands."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.verdicts.cli import Run, runner


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """``run(folder, *arguments)``: one command line in this process."""
    return runner(monkeypatch, capsys)


@pytest.fixture(scope="session")
def gpu_runs() -> Path:
    """Event files captured on one GPU; skips where there is no corpus."""
    folder = os.environ.get("GOLDENCTL_CORPUS")
    if not folder:
        pytest.skip("GOLDENCTL_CORPUS is not set: no captured runs here")
    return Path(folder) / "gpu-runs"
