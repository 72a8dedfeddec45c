"""How a refresh is shown: table, Markdown, JSON."""

from __future__ import annotations

from typing import Any

from goldenctl.cli import output
from goldenctl.model import Action, FileResult, MatchLevel, RefreshResult

SHOWN = 10
"""How many files without a place are named one by one."""
RELATION = {
    MatchLevel.IDENTICAL: "identical to",
    MatchLevel.EQUAL: "equal to",
    MatchLevel.CLOSE: "close to",
    MatchLevel.DIFFERENT: "different from",
    MatchLevel.ABSENT: "absent at",
}
"""How a level is said before the revision's name."""


def show(result: RefreshResult, form: output.Format) -> None:
    """Print a refresh: the result on stdout, what went wrong on the way on stderr."""
    for problem in result.problems:
        output.error(f"{problem.subject}: {problem.message}" + (f"\n  next: {problem.hint}" if problem.hint else ""))
    for item in result.unplaced[:SHOWN]:
        output.note(f"not placed: {item.member} of {item.artifact}: {item.reason}")
    if len(result.unplaced) > SHOWN:
        output.note(f"not placed: {len(result.unplaced) - SHOWN} more; --format json has them all")
    if form is output.Format.JSON:
        output.json(as_json(result))
        return
    columns = ("golden", "platform", "action", "match", "reason")
    rows = [_row(f) for f in result.files]
    if form is output.Format.MARKDOWN:
        output.result(output.markdown(columns, rows) + "\n" + _summary(result))
    else:
        if rows:
            output.table(columns, rows)
        output.result(_summary(result))


def _row(item: FileResult) -> tuple[str, str, str, str, str]:
    matches = ", ".join(f"{RELATION[m.level]} {m.rev}" for m in item.matches)
    notes = "; ".join([item.reason, *item.notes] if item.reason else item.notes)
    return item.key.case + item.key.variant, item.key.platform, item.action.value, matches, notes


def _summary(result: RefreshResult) -> str:
    counts = _counts(result)
    return ", ".join(f"{n} {name}" for name, n in counts.items())


def _counts(result: RefreshResult) -> dict[str, int]:
    written = Action.WOULD_WRITE if result.dry_run else Action.WRITTEN
    shown = (written, Action.UNCHANGED, Action.REFUSED, Action.MISSING)
    return {a.value: result.count(a) for a in shown}


def as_json(result: RefreshResult) -> dict[str, Any]:
    """The refresh as contract section 6 has it, with ``runs`` for several and ``problems`` added."""
    runs = [
        {
            "ref": r.ref,
            "provider": r.provider,
            "id": r.id,
            "attempt": r.attempt,
            "commit": r.commit,
            "conclusion": r.conclusion.value,
        }
        for r in result.runs
    ]
    counts = {a.value: result.count(a) for a in (Action.WRITTEN, Action.UNCHANGED, Action.REFUSED, Action.MISSING)}
    if result.dry_run:
        counts[Action.WOULD_WRITE.value] = result.count(Action.WOULD_WRITE)
    return {
        "id": result.id,
        "run": runs[0] if runs else None,
        "runs": runs,
        "files": [_file_json(f) for f in result.files],
        "problems": [{"subject": p.subject, "kind": p.kind, "message": p.message} for p in result.problems],
        "unplaced": [{"member": u.member, "artifact": u.artifact, "job": u.job, "reason": u.reason} for u in result.unplaced],
        "summary": counts,
    }


def _file_json(item: FileResult) -> dict[str, Any]:
    return {
        "path": item.path,
        "case": item.key.case,
        "environment": item.key.environment,
        "platform": item.key.platform,
        "variant": item.key.variant,
        "action": item.action.value,
        "reason": item.reason,
        "job": item.job,
        "attempt": item.attempt,
        "artifact": item.artifact,
        "sha256": item.sha256,
        "findings": [
            {"rule": f.rule, "severity": f.severity.value, "metric": f.metric, "count": f.count, "message": f.message}
            for f in item.findings
        ],
        "matches": [{"rev": m.rev, "level": m.level.value, "commit": m.commit, "detail": m.detail} for m in item.matches],
        "metrics": list(item.metrics),
        "notes": list(item.notes),
    }
