"""``goldenctl lint``: check golden files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from goldenctl.cli import completing, linting, options
from goldenctl.cli.linting import LintFormat, LintOptions


def command(
    paths: Annotated[
        list[Path] | None, typer.Argument(metavar="PATH…", help="Files or folders; all golden files below root by default.")
    ] = None,
    form: Annotated[LintFormat, typer.Option("--format", help="How to print.")] = LintFormat.TABLE,
    select: Annotated[
        list[str] | None, typer.Option(metavar="RULE", help="Rules to run; may be repeated.", autocompletion=completing.rules)
    ] = None,
    ignore: Annotated[
        list[str] | None,
        typer.Option(metavar="RULE", help="Rules to leave out; may be repeated.", autocompletion=completing.rules),
    ] = None,
    baseline: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Known findings: they may shrink and never grow.")
    ] = None,
    write_baseline: Annotated[bool, typer.Option("--write-baseline", help="Take today's findings as known.")] = False,
    against: Annotated[
        str,
        typer.Option(
            metavar="REV", help="Revision, branch, sync:DATE or sync:SHA to compare with.", autocompletion=completing.revisions
        ),
    ] = "",
    fix: options.Fix = False,
    strict: Annotated[bool, typer.Option("--strict", help="Warnings fail as errors do.")] = False,
    list_rules: Annotated[bool, typer.Option("--list-rules", help="List the rules and stop.")] = False,
) -> int:
    """Check golden files for NaN, broken grids, wrong places and more.

    Exit code 1 when an error is found that the baseline does not know.

    Example: goldenctl lint --format github --against origin/dev
    """
    if list_rules:
        return linting.list_rules(form)
    chosen = LintOptions(
        tuple(map(str, paths or ())),
        form,
        tuple(select or ()),
        tuple(ignore or ()),
        baseline,
        write_baseline,
        against,
        fix,
        strict,
    )
    return linting.run(chosen)
