"""A kill -9 at any moment of any command that writes: all old or all new, and the same in the end as without it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from goldenctl.files import own_folder
from tests.kill.commands import CASES
from tests.product.world import TOP

FILES, TABLES = ["refresh", "restore", "review", "merge-driver"], ["catalog build", "store push"]


@pytest.mark.parametrize(("commands", "kills"), [(FILES, 3), (TABLES, 2)])
def test_a_killed_command_leaves_all_in_order_for_the_next(commands: list[str], kills: int) -> None:
    asked = [sys.executable, "-m", "tests.kill", *commands, "--kills", str(kills)]  # make kills does it fifty times
    environment = os.environ | {"PYTHONPATH": str(TOP / "src")}
    done = subprocess.run(asked, cwd=TOP, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    for command, line in zip(commands, done.stdout.splitlines(), strict=True):
        assert re.match(rf"{command}: {kills} kills, .*; all in order$", line)


def test_an_ignore_file_that_a_kill_left_empty_is_filled(tmp_path: Path) -> None:
    own_folder(tmp_path / ".goldenctl")
    (tmp_path / ".goldenctl/.gitignore").write_text("")
    own_folder(tmp_path / ".goldenctl")
    assert (tmp_path / ".goldenctl/.gitignore").read_text() == "*\n"


def test_every_command_that_is_killed_is_killed_here_too() -> None:
    assert [*FILES, *TABLES] == list(CASES)
