"""``goldenctl report``: one HTML file with curves, or Markdown for a pull request."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from goldenctl.cli import completing, options, output
from goldenctl.config import Settings
from goldenctl.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from goldenctl.report import Report
    from goldenctl.selection import Selection


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
    from goldenctl import config
    from goldenctl.catalog.places import preferring
    from goldenctl.cli import reporting
    from goldenctl.selection import Selection

    if sum((bool(old and new), bool(refresh), bool(sync))) != 1 or bool(old) != bool(new):
        raise UsageError(
            "nothing, or more than one thing, to report on", hint="goldenctl report OLD NEW, --refresh ID or --sync SHA"
        )
    for path in to:
        reporting.check_target(path)
    settings = preferring(config.load(Path.cwd()), store)
    selection = Selection(tuple(case or ()), tuple(platform or ()))
    made = _report(settings, (old, new), refresh, sync, selection, tuple(metric or ()))
    for path in to:
        reporting.write(made, path)
    if form is not output.Format.TABLE:
        output.listed("files", [str(path) for path in to], form)
    return int(ExitCode.SOURCE if made.problems else ExitCode.OK)


def _report(
    settings: Settings, names: tuple[str, str], refresh: str, sync: str, selection: Selection, metrics: tuple[str, ...]
) -> Report:
    from goldenctl import collect
    from goldenctl.cli import recorded_refresh, reporting

    if sync:
        return reporting.of_sync(sync, settings, selection=selection, metrics=metrics)
    if refresh:
        return recorded_refresh.of_recorded(refresh, settings, selection=selection, metrics=metrics)
    old, new = (collect.open_side(name, settings) for name in names)
    return reporting.of_sides(old, new, settings, selection=selection, metrics=metrics)
