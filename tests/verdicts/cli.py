"""One command line run in this process, in a folder, with its exit code and streams."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from goldenctl.cli.entry import main

Run = Callable[..., "Outcome"]


@dataclass(frozen=True)
class Outcome:
    """What one command line did."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


def runner(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """``run(folder, *arguments)``."""

    def run(folder: Path, *arguments: str) -> Outcome:
        monkeypatch.chdir(folder)
        code = main(arguments)
        streams = capsys.readouterr()
        return Outcome(code, streams.out, streams.err)

    return run
