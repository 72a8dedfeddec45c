"""``goldenctl refresh``: the main job."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Annotated

import typer

from goldenctl import config
from goldenctl.cli import completing, options, output, progress, refresh_view
from goldenctl.errors import CatalogError, ExitCode, UsageError
from goldenctl.model import Action, MatchLevel, RefreshResult
from goldenctl.selection import Only, Selection

if TYPE_CHECKING:
    from goldenctl.refresh import Options, Plan


def command(
    from_job: options.FromJobs,
    only: Annotated[Only, typer.Option(help="Which goldens to touch.")] = Only.ALL,
    case: options.Cases = None,
    platform: options.Platforms = None,
    scope: Annotated[str, typer.Option(help="Replace the whole file, only bad metrics, or only bad values.")] = "file",
    match: Annotated[
        list[str] | None,
        typer.Option(
            metavar="REV", help="Say how candidates match this revision; may be repeated.", autocompletion=completing.revisions
        ),
    ] = None,
    require: options.Require = None,
    fix: options.Fix = False,
    allow: options.Allow = None,
    allow_shrink: Annotated[bool, typer.Option("--allow-shrink", help="Admit fewer metrics or steps, and cut jobs.")] = False,
    allow_mixed: Annotated[bool, typer.Option("--allow-mixed", help="Admit values of two producers in one file.")] = False,
    force: options.Force = False,
    dry_run: options.DryRun = False,
    yes: options.Yes = False,
    commit: options.Commit = False,
    attempt: options.Attempt = None,
    max_wait: options.MaxWait = 300.0,
    wait: options.Wait = False,
    report: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw what changed into FILE.html or FILE.md, see report.")
    ] = None,
    form: options.Form = output.Format.TABLE,
) -> int:
    """Take golden values from a CI run and write the good ones into the repository.

    Every candidate is linted, compared with its golden and matched against the revisions asked for;
    one that is not in order is refused with its reason. All files are written or none.

    Example: goldenctl refresh --from-job github:34695381473 --only nonfinite --match sync:2026-04-28
    """
    from goldenctl import refresh, sources

    settings = config.load(Path.cwd())
    chosen = refresh.Options(
        only=only,
        selection=Selection(tuple(case or ()), tuple(platform or ())),
        scope=refresh.Scope(_choice("--scope", scope, [s.value for s in refresh.Scope])),
        match=tuple(match or ()),
        require=MatchLevel(require.value) if require else None,
        fix=fix,
        allow=options.admitted(allow),
        allow_shrink=allow_shrink,
        allow_mixed=allow_mixed,
        force=force,
        dry_run=dry_run,
    )
    _check(chosen, yes=yes)
    if report:
        _reporting().check_target(report)
    with progress.shown("artifacts") as tell:
        fetching = sources.FetchOptions(
            attempt=attempt, max_wait=max_wait, wait=wait, cache=settings.cache_path, on_progress=tell
        )
        opened = [sources.open_source(ref, settings, fetching) for ref in from_job]
        prepared = refresh.plan(opened, settings, chosen)
    if not dry_run and not yes and prepared.changes:
        refresh_view.show(prepared.result(dry_run=True), output.Format.TABLE)
        typer.confirm(f"Write {len(prepared.changes)} golden files?", abort=True, err=True)
    result = prepared.result(dry_run=True) if dry_run else refresh.execute(prepared, settings, _command_line())
    recorded = dry_run or _keep(prepared, result, settings, commit=commit)
    refresh_view.show(result, form)
    if report:
        from goldenctl.api.reporting import of_refresh

        _reporting().write(of_refresh(prepared, result, settings), report)
    if settings.mlflow is not None and prepared.changes and not dry_run:
        output.note(_log(prepared, result, settings, report))
    return int(_exit_code(result, recorded=recorded))


def _reporting() -> ModuleType:
    from goldenctl.cli import reporting  # draws pages: loaded only for --report

    return reporting


def _choice(option: str, value: str, known: list[str] | tuple[str, ...]) -> str:
    if value not in known:
        raise UsageError(f"{option} {value!r} is none of {', '.join(known)}")
    return value


def _check(chosen: Options, *, yes: bool) -> None:
    if chosen.require and not chosen.match:
        raise UsageError("--require needs a revision to match against", hint="add --match REV, e.g. --match sync:2026-04-28")
    if not (yes or chosen.dry_run or output.terminal(sys.stdin)):
        raise UsageError("nobody to ask here", hint="add --yes to write, or --dry-run to look first")


def _keep(prepared: Plan, result: RefreshResult, settings: config.Settings, *, commit: bool) -> bool:
    """Commit and record a refresh; false when the catalog has no record of it."""
    from goldenctl import refresh

    if commit and prepared.changes:
        output.note(f"committed {refresh.commit(result, settings)[:10]}")
    try:
        refresh.record(result, prepared.documents(), settings)
    except CatalogError as exc:
        done = "the golden files are written" if prepared.changes else "no golden file was to be written"
        output.error(f"{done}, but the catalog does not know of this refresh: {exc}")
        return False
    return True


def _log(prepared: Plan, result: RefreshResult, settings: config.Settings, report: Path | None) -> str:
    """Log a refresh with its report, a Markdown one where none was asked for, and say what came of it."""
    import tempfile

    from goldenctl import refresh
    from goldenctl import report as drawing
    from goldenctl.api.reporting import of_refresh

    if report:
        return refresh.log(prepared, result, settings, report)
    with tempfile.TemporaryDirectory(prefix="goldenctl-") as folder:
        made = Path(folder) / "refresh.md"
        made.write_text(drawing.markdown(of_refresh(prepared, result, settings)), "utf-8")
        return refresh.log(prepared, result, settings, made)


def _command_line() -> str:
    return " ".join(["goldenctl", *sys.argv[1:]])


def _exit_code(result: RefreshResult, *, recorded: bool) -> ExitCode:
    if not recorded:
        return ExitCode.STATE
    if result.problems:
        return ExitCode.SOURCE
    if result.unplaced or result.count(Action.REFUSED) or result.count(Action.MISSING):
        return ExitCode.FINDINGS
    return ExitCode.OK
