"""Fixtures of the verdict commands."""

from __future__ import annotations

import pytest

from tests.verdicts.cli import Run, runner


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """``run(folder, *arguments)``: one command line in this process."""
    return runner(monkeypatch, capsys)
