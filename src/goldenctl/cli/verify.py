"""``goldenctl verify``: how the goldens match those of other revisions."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from goldenctl.cli import output
from goldenctl.cli.output import Format
from goldenctl.errors import ExitCode, UsageError
from goldenctl.model import MatchLevel

if TYPE_CHECKING:
    from goldenctl.verify import Verified


def command(
    paths: Annotated[list[str] | None, typer.Argument(help="Goldens: files, folders or case globs; all without any.")] = None,
    against: Annotated[
        list[str] | None, typer.Option(help="Revision, branch, sync:DATE or sync:SHA to match with; repeatable.")
    ] = None,
    at: Annotated[str, typer.Option(help="Take the goldens of this revision instead of the work tree.")] = "WORKTREE",
    require: Annotated[
        MatchLevel | None, typer.Option(help="End in 1 when a golden matches no revision at least this well.")
    ] = None,
    origin: Annotated[bool, typer.Option("--origin", help="Also say which recorded artifact has the same bytes.")] = False,
    format: Annotated[Format, typer.Option("--format", help="How to print.")] = Format.TABLE,  # noqa: A002
) -> int:
    """Say for each golden how it matches the same golden at other revisions: identical, equal, close, different, absent.

    Example: goldenctl verify moe/* --against main --against sync:2026-04-28 --require equal
    """
    from goldenctl import collect, config
    from goldenctl import verify as stage

    if not against and not origin:
        raise UsageError("nothing to verify against", hint="goldenctl verify --against main, or --origin")
    settings = config.load(Path.cwd())
    side = collect.open_side(at, settings)
    chosen = collect.goldens_named(paths or (), side, settings)
    others = [collect.revision_side(rev, settings) for rev in against or ()]
    result = stage.verify(side.only(chosen), others, settings, origins=_origins(settings) if origin else None)
    _print(format, result)
    if side.problems:
        return int(ExitCode.SOURCE)
    return int(ExitCode.FINDINGS if result.below(require) or (origin and result.without_origin) else ExitCode.OK)


def _origins(settings: Any) -> Any:
    raise UsageError(f"no catalog at {settings.catalog}", hint="goldenctl catalog build")


def _print(format: Format, result: Verified) -> None:  # noqa: A002
    pass
