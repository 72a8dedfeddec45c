"""``goldenctl triage``: sort a run's jobs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from goldenctl.cli import options, output
from goldenctl.cli.output import Format
from goldenctl.errors import ExitCode

if TYPE_CHECKING:
    from goldenctl.model import SourceProblem
    from goldenctl.triage import Row, Triage

JOB_COLUMNS = ("platform", "env", "case", "verdict", "why")
CLUSTER_COLUMNS = ("jobs", "verdict", "moved", "platforms", "cases")
SHOWN = 3
"""Cases a cluster names."""


def command(
    from_job: options.FromJob,
    case: options.Cases = None,
    platform: options.Platforms = None,
    attempt: options.Attempt = None,
    max_wait: options.MaxWait = 300.0,
    wait: options.Wait = False,
    every: Annotated[bool, typer.Option("--all", help="List passed and unrelated jobs as well.")] = False,
    format: options.Form = Format.TABLE,
) -> int:
    """Sort a run's jobs: passed, drift only, regression, truncated, non-finite, crashed, cancelled, expired, infrastructure.

    Example: goldenctl triage --from-job github:34695381473 --platform dgx_gb200
    """
    from goldenctl import collect, config
    from goldenctl import triage as stage
    from goldenctl.selection import Selection
    from goldenctl.sources import FetchOptions

    settings = config.load(Path.cwd())
    known = collect.known_goldens(settings)
    selection = Selection(tuple(case or ()), tuple(platform or ()))
    fetching = FetchOptions(attempt=attempt, max_wait=max_wait, wait=wait, cache=settings.cache_path)
    found = collect.collect(from_job, settings, selection=selection, options=fetching, known=known)
    sorted_run = stage.triage(found, known, settings, selection)
    _print(format, sorted_run, sorted_run.rows if every else sorted_run.failing)
    _say(found.problems, [f"{u.artifact}: {u.member} has no golden path: {u.reason}" for u in found.placed.unplaced])
    if found.problems or any(r.outcome is stage.Outcome.EXPIRED for r in sorted_run.rows):
        return int(ExitCode.SOURCE)
    return int(ExitCode.FINDINGS if sorted_run.failing else ExitCode.OK)


def _say(problems: Sequence[SourceProblem], unplaced: Sequence[str]) -> None:
    for problem in problems:
        output.error(f"{problem.subject}: {problem.message}" + (f"\n  next: {problem.hint}" if problem.hint else ""))
    for sentence in unplaced:
        output.note(sentence)


def _print(format: Format, run: Triage, rows: Sequence[Row]) -> None:
    if format is Format.JSON:
        output.json(as_json(run))
        return
    clusters = [
        [
            str(len(c.rows)),
            c.outcome.value,
            "; ".join(c.signature),
            ", ".join(sorted({r.platform for r in c.rows})),
            _some([r.case or r.job for r in c.rows]),
        ]
        for c in run.clusters
    ]
    jobs = [[r.platform, r.environment, r.case or r.job, r.outcome.value, r.detail] for r in rows]
    if format is Format.MARKDOWN:
        output.result(f"**{run.headline()}**\n")
        for columns, cells in ((CLUSTER_COLUMNS, clusters), (JOB_COLUMNS, jobs)):
            if cells:
                output.result(output.markdown(columns, cells) + "\n")
    else:
        for columns, cells in ((JOB_COLUMNS, jobs), (CLUSTER_COLUMNS, clusters)):
            if cells:
                output.table(columns, cells)
        output.result(run.headline())
    output.result("\n".join(_ending(run)) or "nothing to refresh")


def _some(names: Sequence[str]) -> str:
    distinct = list(dict.fromkeys(names))
    return ", ".join(distinct[:SHOWN]) + (f", … ({len(distinct)} in all)" if len(distinct) > SHOWN else "")


def _ending(run: Triage) -> list[str]:
    out = [f"not covered by the run: {u.path} ({u.why})" for u in run.not_covered]
    return out + [f"  next: {command}" for command in run.commands]


def as_json(run: Triage) -> dict[str, Any]:
    """The sorted run as JSON values."""
    from goldenctl.cli.diff import metric_json

    jobs = [
        {
            "job": r.job,
            "case": r.case,
            "platform": r.platform,
            "environment": r.environment,
            "verdict": r.outcome.value,
            "detail": r.detail,
            "path": r.path,
            "url": r.url,
            "metrics": [metric_json(m) for m in r.moved],
        }
        for r in run.rows
    ]
    clusters = [
        {
            "verdict": c.outcome.value,
            "moved": list(c.signature),
            "jobs": len(c.rows),
            "platforms": sorted({r.platform for r in c.rows}),
            "cases": sorted({r.case for r in c.rows}),
        }
        for c in run.clusters
    ]
    uncovered = [
        {"path": u.path, "case": u.key.case, "platform": u.key.platform, "environment": u.key.environment, "why": u.why}
        for u in run.not_covered
    ]
    return {
        "run": run.ref,
        "headline": run.headline(),
        "jobs": jobs,
        "counts": run.counts,
        "clusters": clusters,
        "not_covered": uncovered,
        "commands": list(run.commands),
    }
