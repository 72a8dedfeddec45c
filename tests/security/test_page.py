"""The page on security: every claim names its test, and every test named is there."""

from __future__ import annotations

import re
from pathlib import Path

TOP = Path(__file__).parents[2]
PAGE = (TOP / "docs/security.md").read_text("utf-8")


def test_every_test_the_page_names_is_there() -> None:
    there = {
        name for path in (TOP / "tests").rglob("test_*.py") for name in re.findall(r"^def (test_\w+)", path.read_text(), re.M)
    }
    named = re.findall(r"`(test_\w+)`", PAGE)
    assert len(named) > 40
    assert [name for name in named if name not in there] == []


def test_every_claim_of_a_table_names_a_test() -> None:
    rows = [line for line in PAGE.splitlines() if line.startswith("| ") and not line.startswith(("| what", "| ---"))]
    assert len(rows) > 25
    assert [row for row in rows if "`test_" not in row] == []
