"""docs/sources.md names tests that exist."""

from __future__ import annotations

import re
from pathlib import Path

HERE = Path(__file__).parent
PAGE = (HERE.parents[1] / "docs/sources.md").read_text()


def test_every_fault_of_the_page_names_a_test_that_exists() -> None:
    sections = re.split(r"^In `(\S+)`$", PAGE, flags=re.MULTILINE)[1:]
    named = 0
    for files, text in zip(sections[::2], sections[1::2], strict=True):
        tests = {name for file in HERE.glob(files) for name in re.findall(r"^def (test_\w+)", file.read_text(), re.MULTILINE)}
        found = re.findall(r"\| `(test_\w+)` \|$", text, re.MULTILINE)
        assert set(found) <= tests, f"{files}: {set(found) - tests}"
        named += len(found)
    assert named > 100


def test_every_defect_of_the_former_script_has_its_row() -> None:
    said = set(re.findall(r"\(((?:[GL]\d+(?:, )?)+)\)", PAGE))
    numbers = {n for group in said for n in group.split(", ")}
    assert numbers >= {f"G{n}" for n in range(1, 21)} | {f"L{n}" for n in range(1, 14)}
