"""A kill -9 at any moment of any command that writes: all old or all new, and the same in the end as without it."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest

from tests.product.world import TOP

KILLS = {"refresh": 5, "restore": 4, "review": 5, "merge-driver": 2, "catalog build": 4, "store push": 3}
"""Command → how often it is killed here; ``make kills`` does it fifty times."""


@pytest.mark.parametrize("command", KILLS)
def test_a_killed_command_leaves_all_in_order_for_the_next(command: str) -> None:
    asked = [sys.executable, "-m", "tests.kill", command, "--kills", str(KILLS[command])]
    environment = os.environ | {"PYTHONPATH": str(TOP / "src")}
    done = subprocess.run(asked, cwd=TOP, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.match(rf"{command}: {KILLS[command]} kills, .*; all in order$", done.stdout)
