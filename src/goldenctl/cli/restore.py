"""``goldenctl restore``: bring earlier content of goldens back."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from goldenctl.cli import options, output
from goldenctl.cli.output import Format
from goldenctl.config import Settings
from goldenctl.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from goldenctl.git import Repo
    from goldenctl.model import RefreshResult
    from goldenctl.sync.restore import Restoration

COLUMNS = ("golden", "action", "reason")


def command(
    paths: Annotated[
        list[str] | None, typer.Argument(metavar="PATH…", help="Golden files or folders; may be left out with --reverted.")
    ] = None,
    source: Annotated[
        str,
        typer.Option(
            "--from", metavar="SOURCE", help="A revision, sync:DATE, sync:SHA, refresh:ID or archive:[LOCATION#]DIGEST."
        ),
    ] = "",
    reverted: Annotated[
        str, typer.Option(metavar="REV", help="A reverted commit, or its revert: take the goldens from before it.")
    ] = "",
    allow: options.Allow = None,
    force: options.Force = False,
    dry_run: options.DryRun = False,
    yes: options.Yes = False,
    commit: options.Commit = False,
    store: options.Store = None,
    form: options.Form = Format.TABLE,
) -> int:
    """Bring the earlier content of goldens back, all files or none, through the same checks as a refresh.

    Content with an error that today's file does not have is refused.

    Example: goldenctl restore goldens/gpt/gpt3_mcore_te_tp2_pp2/golden_values_dev_dgx_h100.json --from HEAD~1 --yes
    """
    from goldenctl import config
    from goldenctl.api.repository import write_restored
    from goldenctl.catalog.places import preferring
    from goldenctl.git import Repo

    if bool(source) == bool(reverted):
        raise UsageError("name one origin", hint="goldenctl restore PATH… --from REV, or --reverted REV")
    settings = preferring(config.load(Path.cwd()), store)
    repo = Repo(settings.top)
    found = _restoration(repo, settings, paths or [], source, reverted, options.admitted(allow), force=force)
    written = found.changes and _agreed(found, dry_run=dry_run, yes=yes, form=form)
    if written:
        made = write_restored(repo, settings, found, commit=commit)
        if made:
            output.note(f"committed as {made[:10]}")
    _print(found, form, written=bool(written))
    refused = any(f.action in ("refused", "missing") for f in found.result.files)
    return int(ExitCode.FINDINGS if refused else ExitCode.OK)


def _restoration(
    repo: Repo,
    settings: Settings,
    wanted: list[str],
    source: str,
    reverted: str,
    allow: options.Admitted,
    *,
    force: bool,
) -> Restoration:
    from goldenctl.api.repository import origin_of
    from goldenctl.lint import check
    from goldenctl.sync import restore

    if not wanted and not reverted:
        raise UsageError("name the goldens to restore", hint=f"goldenctl restore PATH… --from {source}")
    origin = origin_of(repo, settings, source, reverted, wanted)
    paths = restore.paths_of(settings, origin.blobs, wanted, Path.cwd()) if wanted else sorted(origin.blobs)
    restorer = restore.Restorer(repo, settings, origin, lambda path, raw: check(path, raw, settings), force, allow)
    return restorer.restoration(paths, command=" ".join(["goldenctl", *sys.argv[1:]]))


def _agreed(found: Restoration, *, dry_run: bool, yes: bool, form: Format) -> bool:
    """Whether to write: asked on a terminal, said by an option elsewhere."""
    if dry_run or yes:
        return not dry_run
    if form is not Format.TABLE or not (output.terminal() and sys.stdin.isatty()):
        raise UsageError("nobody here to ask", hint="add --yes to write, or --dry-run to see what would be written")
    output.table(COLUMNS, [[f.path, f.action.value, f.reason] for f in found.result.files])
    return typer.confirm(f"Write {len(found.changes)} files?")


def _print(found: Restoration, form: Format, *, written: bool) -> None:
    rows = [[f.path, _action(f.action.value, written), f.reason] for f in found.result.files]
    if form is Format.JSON:
        output.json(as_json(found.result, written=written))
    else:
        output.table(COLUMNS, rows, form=form)


def _action(action: str, written: bool) -> str:
    return "would-write" if action == "written" and not written else action


def as_json(result: RefreshResult, *, written: bool) -> dict[str, Any]:
    """The result with the keys of a refresh."""
    run = result.runs[0]
    files = [
        {
            "path": f.path,
            "case": f.key.case,
            "environment": f.key.environment,
            "platform": f.key.platform,
            "variant": f.key.variant,
            "action": _action(f.action.value, written),
            "reason": f.reason,
            "sha256": f.sha256,
            "findings": [{"rule": x.rule, "metric": x.metric, "count": x.count, "message": x.message} for x in f.findings],
        }
        for f in result.files
    ]
    actions = ("written", "unchanged", "refused", "missing", "would-write")
    summary = {name: sum(1 for f in files if f["action"] == name) for name in actions}
    origin = {"ref": run.ref, "provider": run.provider, "id": run.id, "commit": run.commit}
    return {"refresh": result.id, "run": origin, "files": files, "summary": summary}
