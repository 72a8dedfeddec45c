"""What ``goldenctl lint`` does once its arguments are known.

Apart from the parser, so that a hook that passes nothing but file names need not load one.
"""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from goldenctl import config, lint
from goldenctl.cli import output
from goldenctl.errors import ExitCode, UsageError
from goldenctl.lint import chosen, whole
from goldenctl.model import Finding, Severity


class LintFormat(StrEnum):
    """How findings are printed."""

    TABLE = "table"
    JSON = "json"
    GITHUB = "github"
    SARIF = "sarif"


@dataclass(frozen=True, slots=True)
class LintOptions:
    """What one lint was asked for; the defaults are those of the command."""

    paths: tuple[str, ...] = ()
    """Files or folders; empty means every golden file below root."""
    form: LintFormat = LintFormat.TABLE
    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    baseline: Path | None = None
    """None means the file of the settings, if any."""
    write_baseline: bool = False
    against: str = ""
    """Revision to compare changed files with; empty compares with none."""
    fix: bool = False
    strict: bool = False


def run(options: LintOptions) -> int:
    """Lint, print and return the exit code."""
    settings = whole.with_rules(config.load(Path.cwd()), options.select, options.ignore)
    files = chosen.files([Path(p) for p in options.paths], settings)
    if options.fix:
        _repair(files, settings)
    known = whole.baseline_of(settings, options.baseline, write=options.write_baseline)
    workers = min(os.cpu_count() or 1, 8)
    findings = whole.findings(files, settings, whole=not options.paths, against=options.against, workers=workers)
    if known and options.write_baseline:
        _keep(known, findings)
    findings = whole.marked(findings, known)
    _print(files, findings, options.form, settings)
    return int(_exit_code(findings, options.strict))


def list_rules(form: LintFormat = LintFormat.TABLE) -> int:
    """Print the rules.

    Raises
    ------
    UsageError
        The format is one of findings only.
    """
    if form not in (LintFormat.TABLE, LintFormat.JSON):
        raise UsageError(f"the rules cannot be listed as {form.value}", hint="--format table or --format json")
    if form is LintFormat.JSON:
        known = lint.RULES.values()
        rules = [{"rule": r.code, "severity": r.severity.value, "finds": r.finds, "opt_in": r.opt_in} for r in known]
        output.json({"rules": rules})
        return int(ExitCode.OK)
    rows = [(r.code, r.severity.value, f"{r.finds} (opt in)" if r.opt_in else r.finds) for r in lint.RULES.values()]
    output.table(("rule", "severity", "finds"), rows)
    return int(ExitCode.OK)


def _repair(files: Sequence[str], settings: config.Settings) -> None:
    from goldenctl import writeback

    repairs = whole.repairs(files, settings)
    writeback.apply(settings.top, settings.root, [change for change, _ in repairs])
    for change, told in repairs:
        output.note(f"{change.path}: {told}")
    output.note(f"{len(repairs)} of {len(files)} files repaired")


def _keep(path: Path, findings: Sequence[Finding]) -> None:
    from goldenctl.lint import baseline

    entries = baseline.save(path, findings)
    output.note(f"{entries} known findings written to {path}; set baseline in [tool.goldenctl.lint] to use them")


def _exit_code(findings: Sequence[Finding], strict: bool) -> ExitCode:
    fails = any(not f.baselined and (strict or f.severity is Severity.ERROR) for f in findings)
    return ExitCode.FINDINGS if fails else ExitCode.OK


def _print(files: Sequence[str], findings: Sequence[Finding], form: LintFormat, settings: config.Settings) -> None:
    if form is LintFormat.TABLE:
        _print_lines(files, [f for f in findings if not f.baselined], len(findings))
    elif form is LintFormat.JSON:
        output.json(as_json(files, findings))
    else:
        from goldenctl.cli import annotations
        from goldenctl.lint.locate import located

        new = located((f for f in findings if not f.baselined), settings.top)
        github = form is LintFormat.GITHUB
        output.result(annotations.github(new) if github else annotations.sarif(new), commands=github)


def _print_lines(files: Sequence[str], findings: Sequence[Finding], total: int) -> None:
    for line in _lines(findings):
        output.result(line)
    if any(f.message.endswith(lint.REPAIR) for f in findings):
        output.result(lint.REPAIR.removeprefix("; "))
    known = f", {total - len(findings)} known ones left out" if total > len(findings) else ""
    if not findings:
        output.result(f"{len(files)} golden files in order{known}")
        return
    counts = Counter(f.rule for f in findings)
    told = ", ".join(f"{rule} {n}" for rule, n in sorted(counts.items()))
    output.result(
        f"{len(files)} golden files, {len(findings)} findings in {len({f.path for f in findings})} of them: {told}{known}"
    )


def _lines(findings: Sequence[Finding]) -> list[str]:
    """One line a finding; metrics of one file with the same finding share a line."""
    groups: dict[tuple[object, ...], list[Finding]] = defaultdict(list)
    for item in findings:
        pattern = item.message.replace(repr(item.metric), "", 1) if item.metric else item.message
        groups[item.path, item.rule, pattern].append(item)
    lines = []
    for group in groups.values():
        first = group[0]
        metrics = ", ".join(repr(f.metric) for f in group)
        message = first.message.replace(repr(first.metric), metrics, 1) if first.metric else first.message
        lines.append(f"{first.path}: {first.rule} {message.removesuffix(lint.REPAIR)}")
    return lines


def as_json(files: Sequence[str], findings: Sequence[Finding]) -> dict[str, object]:
    """Findings as contract section 5 has them; ``summary`` counts places, known ones included."""
    summary: Counter[str] = Counter()
    for item in findings:
        summary[item.rule] += item.count
    return {
        "files_checked": len(files),
        "findings": [
            {
                "rule": f.rule,
                "severity": f.severity.value,
                "path": f.path,
                "metric": f.metric,
                "count": f.count,
                "steps": list(f.steps),
                "kind": f.kind,
                "message": f.message,
                "baselined": f.baselined,
            }
            for f in findings
        ],
        "summary": dict(sorted(summary.items())),
    }
