"""Lint rules of golden files: one small pure function a rule.

Only the rules themselves are loaded at once; repairs and the comparison with a revision are loaded
when they are asked for, since a hook pays for every import at every commit.
"""

from __future__ import annotations

from goldenctl.config import Settings
from goldenctl.lint.block import REPAIR
from goldenctl.lint.check import check
from goldenctl.lint.rules import RULES, Rule, known
from goldenctl.lint.tree import Checked, check_files, golden_files, read
from goldenctl.model import Finding, Fixed

__all__ = [
    "REPAIR",
    "RULES",
    "Checked",
    "Fixed",
    "Rule",
    "check",
    "check_against",
    "check_files",
    "fix",
    "golden_files",
    "known",
    "read",
]


def fix(path: str, raw: bytes, settings: Settings) -> Fixed:
    """Make the mechanical repairs of one golden file, see :func:`goldenctl.lint.repair.fix`."""
    from goldenctl.lint import repair

    return repair.fix(path, raw, settings)


def check_against(path: str, new: bytes, old: bytes | None, rev: str, settings: Settings) -> list[Finding]:
    """Findings of a changed file, see :func:`goldenctl.lint.against.check_against`."""
    from goldenctl.lint import against

    return against.check_against(path, new, old, rev, settings)
