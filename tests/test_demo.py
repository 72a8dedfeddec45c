"""What the README shows is what the demo does, and our own data is what its scripts make."""

from __future__ import annotations

import filecmp
import os
import subprocess
import sys
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parent.parent


@pytest.fixture
def path_with_command(tmp_path: Path) -> dict[str, str]:
    """An environment whose ``goldenctl`` is this source."""
    command = tmp_path / "bin/goldenctl"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m goldenctl "$@"\n')
    command.chmod(0o755)
    return os.environ | {"PATH": f"{command.parent}:{os.environ['PATH']}", "PYTHONPATH": str(TOP / "src")}


def test_the_demo_does_what_it_says(path_with_command: dict[str, str]) -> None:
    done = subprocess.run([sys.executable, TOP / "data/demo.py"], env=path_with_command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "7 written, 0 unchanged, 1 refused, 0 missing" in done.stdout


def test_the_readme_shows_the_transcript_of_the_demo(path_with_command: dict[str, str]) -> None:
    done = subprocess.run(
        [sys.executable, TOP / "data/demo.py", "--check"], env=path_with_command, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(("script", "folder"), [("make_goldens.py", "goldens"), ("make_runs.py", "data/runs")])
def test_our_own_data_is_what_its_script_makes(script: str, folder: str, tmp_path: Path) -> None:
    subprocess.run([sys.executable, TOP / "data" / script, tmp_path], check=True, capture_output=True)
    ours = {p.relative_to(TOP / folder) for p in (TOP / folder).rglob("*") if p.is_file()}
    made = {p.relative_to(tmp_path) for p in tmp_path.rglob("*") if p.is_file()}
    assert ours == made
    assert all(filecmp.cmp(TOP / folder / p, tmp_path / p, shallow=False) for p in made)
