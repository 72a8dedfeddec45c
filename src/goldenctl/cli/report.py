"""``goldenctl report``: one HTML file with curves, or Markdown for a pull request."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from goldenctl.cli import completing, options, output
from goldenctl.errors import ExitCode


def command(
    to: Annotated[list[Path], typer.Option("--to", metavar="FILE", help="FILE.html or FILE.md; may be repeated.")],
    old: Annotated[
        str,
        typer.Argument(
            help="Golden side: revision, WORKTREE, INDEX, folder, file or run reference.", autocompletion=completing.revisions
        ),
    ] = "",
    new: Annotated[str, typer.Argument(help="Obtained side, named the same way.", autocompletion=completing.revisions)] = "",
    refresh: Annotated[str, typer.Option(metavar="ID", help="A refresh the catalog knows, instead of two sides.")] = "",
    sync: Annotated[str, typer.Option(metavar="SHA", help="A sync: its commit or date, instead of two sides.")] = "",
    case: options.Cases = None,
    platform: options.Platforms = None,
    metric: options.Metrics = None,
    store: options.Store = None,
    form: options.Form = output.Format.TABLE,
) -> int:
    """Draw what differs: summary, heat map, a table to search and sort, old and new curves, where each golden comes from.

    The HTML file needs nothing but a browser: it opens offline and asks the network for nothing.

    Example: goldenctl report sync:2026-04-28 WORKTREE --to report.html --to report.md
    """
    from goldenctl import api
    from goldenctl.cli import reporting

    for path in to:
        reporting.check_target(path)
    made = api.report(
        old, new, refresh=refresh, sync=sync, case=case or (), platform=platform or (), metric=metric or (), store=store
    )
    for path in to:
        reporting.write(made, path)
    if form is not output.Format.TABLE:
        output.listed("files", [str(path) for path in to], form)
    return int(ExitCode.SOURCE if made.problems else ExitCode.OK)
