"""``goldenctl blame``: where today's values of a golden come from."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from goldenctl.cli import options, output
from goldenctl.cli.log import named
from goldenctl.errors import ExitCode

COLUMNS = ("metric", "commit", "date", "via", "run", "unchanged since", "subject")
SPARE = ("unchanged since", "subject", "via")
"""Columns a narrow window does without, first one first."""


def command(
    path: Annotated[str, typer.Argument(help="A golden's path, a case, or a glob of either.")],
    branch: options.Branch = "",
    store: options.Store = None,
    as_of: options.AsOf = "",
    format: options.Form = output.Format.TABLE,
) -> int:
    """Show, metric by metric, the commit, sync and run that today's values come from, and since when they are unchanged.

    Example: goldenctl blame goldens/moe/gpt3_mcore_te_tp2_pp2/golden_values_dev_dgx_h100.json
    """
    from goldenctl import config
    from goldenctl.catalog.blame import blame
    from goldenctl.catalog.places import chosen
    from goldenctl.catalog.store import reading

    settings = config.load(Path.cwd())
    with reading(chosen(settings, store=store, as_of=as_of)) as connection:
        rows = blame(connection, named(path, settings), branch).rows(named=True)
    for row in rows:
        row["date"] = f"{row['date'].isoformat()}Z"
        row["unchanged_since"] = f"{row['unchanged_since'].isoformat()}Z"
    if format is output.Format.JSON:
        output.json({"path": path, "metrics": rows})
        return ExitCode.OK
    several = len({row["path"] for row in rows}) > 1
    cells = [[row["path"]] * several + _cells(row) for row in rows]
    columns = ("path",) * several + COLUMNS
    output.table(columns, cells, spare=[columns.index(name) for name in SPARE], form=format)
    return ExitCode.OK


def _cells(row: dict[str, str]) -> list[str]:
    head = [row["metric"], row["commit"][:10], row["date"][:10]]
    return [*head, row["via"], row["run"], row["unchanged_since"][:10], row["subject"]]
