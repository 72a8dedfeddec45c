"""Lint as a function."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from goldenctl import config
from goldenctl.api.twin import Paths, Words, twin
from goldenctl.model import Finding, Severity


@twin
def lint(
    paths: Paths = (),
    *,
    select: Words = (),
    ignore: Words = (),
    baseline: str | Path | None = None,
    write_baseline: bool = False,
    against: str = "",
    fix: bool = False,
    strict: bool = False,
) -> list[Finding]:
    """Findings of golden files, those without an error and those that the baseline knows (``baselined``) included.

    ``against`` adds what was lost since a revision, ``fix`` writes lint's repairs first, ``strict`` makes warnings errors.
    """
    from goldenctl import writeback
    from goldenctl.lint import baseline as known
    from goldenctl.lint import chosen, whole

    settings = whole.with_rules(config.load(Path.cwd()), select, ignore)
    files = chosen.files([Path(p) for p in paths], settings)
    if fix:
        writeback.apply(settings.top, settings.root, [change for change, _ in whole.repairs(files, settings)])
    file = whole.baseline_of(settings, Path(baseline) if baseline else None, write=write_baseline)
    found = whole.findings(files, settings, whole=not paths, against=against)
    if write_baseline and file:
        known.save(file, found)
    return [replace(f, severity=Severity.ERROR) if strict else f for f in whole.marked(found, file)]
