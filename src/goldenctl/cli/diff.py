"""``goldenctl diff``: two sides, golden by golden and metric by metric."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import fields
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from goldenctl.cli import completing, options, output, shorten
from goldenctl.errors import ExitCode
from goldenctl.words import nearest

if TYPE_CHECKING:
    from goldenctl.compare import MetricDiff
    from goldenctl.diff import DiffResult, FileDiff, Row

COLUMNS = (
    "golden",
    "metric",
    "steps",
    "max rel",
    "mean rel",
    "signed",
    "max abs",
    "worst step",
    "golden → obtained",
    "verdict",
)
RIGHT = (2, 3, 4, 5, 6, 7)
SPARE = (5, 6, 4, 7, 2)
"""Columns a narrow window does without, first one first."""


class Format(StrEnum):
    """How the differences are printed."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"
    MARKDOWN = "markdown"


class Sort(StrEnum):
    """What puts a difference first; lost values always come before changed ones, except by path."""

    MAX_REL = "max_rel_diff"
    MAX_ABS = "max_abs_diff"
    MEAN_REL = "mean_rel_diff"
    MEAN_ABS = "mean_abs_diff"
    SIGNED = "signed_mean_rel_diff"
    MISSING = "missing_steps"
    NONFINITE = "nonfinite"
    PATH = "path"


def command(
    old: Annotated[
        str,
        typer.Argument(
            help="Golden side: revision, WORKTREE, INDEX, folder, file or run reference.", autocompletion=completing.revisions
        ),
    ],
    new: Annotated[str, typer.Argument(help="Obtained side, named the same way.", autocompletion=completing.revisions)],
    case: options.Cases = None,
    platform: options.Platforms = None,
    metric: options.Metrics = None,
    sort: Annotated[Sort, typer.Option(help="What puts a difference first.")] = Sort.MAX_REL,
    top: Annotated[int, typer.Option(min=0, help="Only the first N differences; 0 shows all.")] = 0,
    threshold: options.Threshold = 0.0,
    format: Annotated[Format, typer.Option("--format", help="How to print.")] = Format.TABLE,
    exit_code: Annotated[bool, typer.Option("--exit-code", help="End in 1 when a difference is shown.")] = False,
    store: Annotated[
        bool, typer.Option("--store", help="Take runs and revisions from the shared store where it has them.")
    ] = False,
    as_of: options.AsOf = "",
) -> int:
    """Compare two sides: per golden and metric the steps, the largest and mean differences, and the verdicts.

    Example: goldenctl diff main WORKTREE --metric "lm loss" --threshold 0.01 --exit-code
    """
    from goldenctl import api
    from goldenctl import diff as stage

    workers = 1 if store or as_of else min(os.cpu_count() or 1, 8)  # DuckDB does not outlive a fork
    result = api.diff(old, new, case=case or (), platform=platform or (), workers=workers, store=store, as_of=as_of)
    shown = stage.rows(result, metrics=metric or (), threshold=threshold, sort=sort.value)
    _warn(result, metric or ())
    _print(format, result, shown[:top] if top else shown, metric or (), everything=not (top or threshold))
    if result.old.problems or result.new.problems:
        return int(ExitCode.SOURCE)
    return int(ExitCode.FINDINGS if exit_code and shown else ExitCode.OK)


def _warn(result: DiffResult, metrics: Sequence[str]) -> None:
    for problem in (*result.old.problems, *result.new.problems):
        output.error(problem)
    seen = {m.metric for f in result.files for m in f.metrics}
    for name in metrics:
        if seen and name not in seen:
            near = nearest(name, seen)
            output.note(f"no changed golden has the metric {name!r}" + (f"; did you mean {near!r}?" if near else ""))


def _print(format: Format, result: DiffResult, shown: Sequence[Row], metrics: Sequence[str], *, everything: bool) -> None:
    if format is Format.JSON:
        output.json(as_json(result, None if everything else shown, metrics))
    elif format is Format.CSV:
        _csv(shown)
    elif format is Format.MARKDOWN:
        output.result(f"{_summary(result)}\n")
        if shown:
            output.result(output.markdown(COLUMNS, [_cells(r) for r in shown], right=RIGHT))
    else:
        if shown:
            output.table(COLUMNS, [_cells(r) for r in shown], right=RIGHT, spare=SPARE)
        output.result(_summary(result))


def show_rows(rows: Sequence[Row]) -> None:
    """Print differences as a table."""
    output.table(COLUMNS, [_cells(r) for r in rows], right=RIGHT)


def as_json(result: DiffResult, shown: Sequence[Row] | None, metrics: Sequence[str]) -> dict[str, Any]:
    """The result as JSON values; ``shown`` limits the metrics to these rows, None keeps the exact ones too."""
    chosen = None if shown is None else {(r.file.path, r.metric.metric) for r in shown if r.metric}

    def takes(file: FileDiff, metric: MetricDiff) -> bool:
        named = not metrics or metric.metric in metrics
        return named if chosen is None else (file.path, metric.metric) in chosen

    files = [
        {
            "path": f.path,
            "status": f.status.value,
            "metrics": [metric_json(m) for m in f.metrics if takes(f, m)],
            "note": f.note,
            "renamed": f.renamed,
        }
        for f in result.files
    ]
    return {
        "old": result.old.name,
        "new": result.new.name,
        "old_commit": result.old.commit,
        "new_commit": result.new.commit,
        "files": files,
        "summary": dict(result.counts),
    }


def metric_json(metric: MetricDiff) -> dict[str, Any]:
    """A metric's difference as JSON values; what is not finite becomes null."""
    values = ((f.name, getattr(metric, f.name)) for f in fields(metric))
    return {k: None if isinstance(v, float) and not math.isfinite(v) else v for k, v in values}


def _csv(shown: Sequence[Row]) -> None:
    import csv
    import io

    from goldenctl.compare import MetricDiff

    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    names = [f.name for f in fields(MetricDiff)]
    writer.writerow(["path", "status", *names])
    for row in shown:
        values = metric_json(row.metric) if row.metric else {}
        writer.writerow([row.file.path, row.file.status.value, *(values.get(n) for n in names)])
    output.result(text.getvalue())


def _summary(result: DiffResult) -> str:
    counts = result.counts
    same = counts.get("identical", 0) + counts.get("equal", 0)
    parts = [f"{counts[s]} {s}" for s in ("changed", "added", "removed", "unreadable") if counts.get(s)]
    differing = f"{len(result.files) - same} of {len(result.files)} goldens differ"
    return f"{result.old.name} → {result.new.name}: {differing}" + (f": {', '.join(parts)}" if parts else "")


def _cells(row: Row) -> list[str]:
    path = shorten.below_root(row.file.path)
    m = row.metric
    if m is None:
        said = row.file.note or (
            f"{'from' if row.file.status == 'added' else 'to'} {row.file.renamed}" if row.file.renamed else ""
        )
        return [path, f"({row.file.status.value})", "", "", "", "", "", "", said, ""]
    steps = f"{m.n_common}/{m.n_golden}" + (f"+{m.extra_steps}" if m.extra_steps else "")
    sizes = [_number(x) for x in (m.max_rel_diff, m.mean_rel_diff, m.signed_mean_rel_diff, m.max_abs_diff)]
    step = m.worst_step if m.worst_step is not None else m.first_differing
    return [path, m.metric, steps, *sizes, "" if step is None else str(step), _pair(m), _verdict(m)]


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.3g}"


def _pair(m: MetricDiff) -> str:
    if m.n_golden == 0 or m.n_obtained == 0:
        return "only obtained" if m.n_golden == 0 else "only golden"
    if m.worst_golden is None or m.worst_obtained is None:
        return "text differs" if m.kind == "text" else "steps differ"
    return f"{m.worst_golden:.9g} → {m.worst_obtained:.9g}"


def _verdict(m: MetricDiff) -> str:
    lost = m.nonfinite_obtained - m.nonfinite_golden
    extra = f", {abs(lost)} {'more' if lost > 0 else 'fewer'} non-finite" if lost else ""
    return ("approximate" if m.approximate else "different") + extra
