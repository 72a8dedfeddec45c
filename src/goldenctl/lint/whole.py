"""One whole lint: rules chosen, files repaired and checked, known findings marked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from goldenctl.config import Settings
from goldenctl.lint import check_files, chosen, fix
from goldenctl.lint.rules import known as refuse_unknown
from goldenctl.model import Change, Finding


def with_rules(settings: Settings, select: Sequence[str], ignore: Sequence[str]) -> Settings:
    """Settings with the rules that are selected and without those ignored.

    Raises
    ------
    UsageError
        A rule is none of ours, here or in the settings.
    """
    own = settings.lint
    named = {"select": own.select, "ignore": own.ignore} | {f"per-file-ignores.{g}": r for g, r in own.per_file_ignores.items()}
    for key, rules in named.items():
        refuse_unknown(rules, f"{settings.source}: lint.{key}")
    refuse_unknown(select, "--select")
    refuse_unknown(ignore, "--ignore")
    return replace(settings, lint=replace(own, select=tuple(select) or own.select, ignore=(*own.ignore, *ignore)))


def repairs(files: Sequence[str], settings: Settings) -> list[tuple[Change, str]]:
    """The mechanical repairs of files that need some, each with what it repairs; nothing is written."""
    found = []
    for path, raw in chosen.readable(files, settings):
        fixed = fix(path, raw, settings)
        if fixed.content != raw:
            found.append((Change(path, raw, fixed.content), "; ".join(fixed.repairs)))
    return found


def findings(files: Sequence[str], settings: Settings, *, whole: bool, against: str = "", workers: int = 1) -> list[Finding]:
    """Findings of files, with ``against`` also what was lost since a revision."""
    found = list(check_files(files, settings, whole=whole, workers=workers).findings)
    if against:
        found += chosen.against(files, against, settings)
    return found


def marked(findings: list[Finding], baseline: Path | None) -> list[Finding]:
    """Findings with those marked that a file of known ones has; as they are without such a file."""
    if baseline is None:
        return findings
    from goldenctl.lint import baseline as known

    return known.apply(findings, known.load(baseline))


def baseline_of(settings: Settings, given: Path | None, *, write: bool = False) -> Path | None:
    """The file of known findings: the one given, the one of the settings, or, to be written, the usual one."""
    named = settings.top / settings.lint.baseline if settings.lint.baseline else None
    return given or named or (settings.top / "goldenctl-baseline.json" if write else None)
