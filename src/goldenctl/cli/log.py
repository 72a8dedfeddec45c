"""``goldenctl log``: the revisions of goldens and what each changed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from goldenctl.cli import options, output, spark
from goldenctl.errors import ExitCode

if TYPE_CHECKING:
    from goldenctl.catalog.places import Place
    from goldenctl.config import Settings

COLUMNS = ("date", "commit", "change", "sync", "metrics", "values", "nan", "in", "out", "max rel", "path")
RIGHT = (5, 6, 7, 8, 9)
SPARE = (5, 6, 3, 9, 2)
"""Columns a narrow window does without, first one first."""


def command(
    path: Annotated[str, typer.Argument(help="A golden's path, a case, or a glob of either.")],
    branch: options.Branch = "",
    metric: options.Metric = "",
    store: options.Store = None,
    as_of: options.AsOf = "",
    format: options.Form = output.Format.TABLE,
) -> int:
    """Show the revisions of goldens: date, commit, sync, and what changed, through all renames.

    Example: goldenctl log moe/gpt3_mcore_te_tp2_pp2 --metric "lm loss"
    """
    from goldenctl import api, config
    from goldenctl.catalog.places import chosen

    settings = config.load(Path.cwd())
    rows = api.log(named(path, settings), branch=branch, metric=metric, store=store, as_of=as_of).rows(named=True)
    if format is output.Format.JSON:
        output.json({"path": path, "revisions": [_json(row) for row in rows]})
        return ExitCode.OK
    columns: tuple[str, ...] = COLUMNS
    cells = [_cells(row) for row in reversed(rows)]
    if metric:
        drawn = _curves(chosen(settings, store=store, as_of=as_of), named(path, settings), branch, metric)
        columns = (*COLUMNS, "curve")
        cells = [[*c, drawn.get((r["path"], r["commit"]), "")] for c, r in zip(cells, reversed(rows), strict=True)]
    output.table(columns, cells, right=RIGHT, spare=SPARE, form=format)
    return ExitCode.OK


def _curves(place: Place, pattern: str, branch: str, metric: str) -> dict[tuple[str, str], str]:
    """Path and commit → the metric's curve in one word."""
    from goldenctl.catalog.api import Catalog

    values = Catalog(place).history(pattern, metric, branch)
    grouped = values.group_by("path", "commit", maintain_order=True).agg("value")
    return {(path, commit): spark.curve(found, 16) for path, commit, found in grouped.iter_rows()}


def named(path: str, settings: Settings) -> str:
    """A path as the catalog knows it: from the repository's top, when there is such a file here."""
    here = Path.cwd() / path
    if here.exists() and here.is_relative_to(settings.top):
        relative = here.relative_to(settings.top).as_posix()
        return f"{relative}/*" if here.is_dir() else relative
    return path


def _json(row: dict[str, Any]) -> dict[str, Any]:
    return {
        "commit": row["commit"],
        "date": f"{row['committed_at'].isoformat()}Z",
        "sync": _sync(row) or None,
        "change": row["change"],
        "metrics": row["metrics"],
        "nan_in": row["nan_in"],
        "nan_out": row["nan_out"],
        "nan": row["n_nonfinite"],
        "values": row["n_values"],
        "missing_steps": row["missing_steps"],
        "extra_steps": row["extra_steps"],
        "max_rel_diff": row["max_rel_diff"],
        "worst_metric": row["worst_metric"],
        "path": row["path"],
        "branch": row["branch"],
        "subject": row["subject"],
    }


def _sync(row: dict[str, Any]) -> str:
    return f"sync:{row['commit'][:10]}" if row["sync"] else ""


def _cells(row: dict[str, Any]) -> list[str]:
    names = row["metrics"]
    metrics = ", ".join(names) if len(names) < 3 else f"{len(names)} metrics"
    numbers = [f"{row[c]:,}" if row[c] else "" for c in ("n_values", "n_nonfinite", "nan_in", "nan_out")]
    largest = "" if row["max_rel_diff"] is None else f"{row['max_rel_diff']:.2%}"
    head = [f"{row['committed_at']:%Y-%m-%d}", row["commit"][:10], row["change"], row["sync"] or "", metrics]
    return [*head, *numbers, largest, row["path"]]
