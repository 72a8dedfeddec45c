"""``goldenctl sync``: plan the next sync, audit one that was made."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from goldenctl.cli import options, output, shorten
from goldenctl.cli.output import Format
from goldenctl.config import Settings
from goldenctl.errors import CatalogError, ExitCode
from goldenctl.model import Finding

if TYPE_CHECKING:
    from goldenctl.sync.model import Audit, AuditedFile
    from goldenctl.sync.plan import Plan, PlannedFile

app = typer.Typer(help="Plan a sync of upstream into downstream, or audit one.", no_args_is_help=True)


@app.command("plan")
def plan_command(
    upstream: Annotated[str, typer.Option(help="Branch that is brought in; the settings' by default.")] = "",
    downstream: Annotated[str, typer.Option(help="Branch that receives; the settings' by default.")] = "",
    slice: Annotated[int | None, typer.Option(min=1, help="Upstream commits of the sync; the settings' by default.")] = None,
    form: options.Form = Format.TABLE,
) -> int:
    """Name the oldest slice of upstream that downstream lacks, and what its merge would do to goldens.

    Exit code 1 when git's textual merge would conflict or mix values.

    Example: goldenctl sync plan --slice 100
    """
    from goldenctl.git import Repo
    from goldenctl.sync import plan as planning

    settings = _settings()
    sides = upstream or settings.sync.upstream, downstream or settings.sync.downstream
    found = planning.plan(Repo(settings.top), settings, *sides, slice or settings.sync.slice, lint=_lint(settings))
    if form is Format.JSON:
        output.json(planning.as_json(found))
    else:
        _show_plan(found, form)
    return int(ExitCode.OK if found.in_order else ExitCode.FINDINGS)


@app.command("audit")
def audit_command(
    rev: Annotated[str, typer.Argument(help="A merge, a squash, sync:DATE, sync:SHA or a range A..B.")],
    form: options.Form = Format.TABLE,
) -> int:
    """Sort every golden of a sync by where its content comes from, and say what was lost.

    Exit code 1 when something needs a look: content overwritten, mixed, not arrived or unexplained,
    a repair undone, a new lint error, a graph that is not a sync's.

    Example: goldenctl sync audit sync:2026-04-28 --format markdown
    """
    from goldenctl.git import Repo
    from goldenctl.sync import report
    from goldenctl.sync.audit import audit
    from goldenctl.sync.summary import sentences

    settings = _settings()
    found = audit(Repo(settings.top), settings, rev, lint=_lint(settings), recorded=_recorded(settings))
    said = sentences(found, settings.platforms, settings.sync.upstream, settings.sync.downstream)
    if form is Format.JSON:
        output.json(report.as_json(found, said))
    elif form is Format.MARKDOWN:
        output.result(report.as_markdown(found, said))
    else:
        output.result(" ".join(s.text for s in said))
        _show_audit(found)
    return int(ExitCode.OK if found.in_order else ExitCode.FINDINGS)


def _settings() -> Settings:
    from goldenctl import config

    settings = config.load(Path.cwd())
    settings.need_root()
    return settings


def _lint(settings: Settings) -> Callable[[str, bytes], list[Finding]]:
    from goldenctl.lint import check

    return partial(_check, check, settings)


def _check(check: Callable[[str, bytes, Settings], list[Finding]], settings: Settings, path: str, raw: bytes) -> list[Finding]:
    return check(path, raw, settings)


def _recorded(settings: Settings) -> Callable[[str], Sequence[str]]:
    """SHA-256 of a content → the runs that delivered it, as far as there is a catalog."""
    from goldenctl.catalog import sql
    from goldenctl.catalog.places import chosen, exists

    place = chosen(settings)
    if not exists(place):
        return lambda digest: ()
    query = "SELECT DISTINCT sha256, regexp_replace(run, '#.*$', '') FROM observation ORDER BY ALL"
    try:
        rows = sql(place, query).rows()
    except CatalogError as exc:
        output.note(f"without the catalog: {exc}")
        return lambda digest: ()
    runs: dict[str, list[str]] = {}
    for digest, run in rows:
        runs.setdefault(digest, []).append(run)
    return lambda digest: runs.get(digest, ())


def _show_plan(found: Plan, form: Format) -> None:
    for line in _plan_lines(found):
        output.result(line)
    rows = [_plan_row(f) for f in found.files]
    columns = ("golden", "changed upstream", "changed downstream", "wins", "breaks", "lint")
    if form is Format.MARKDOWN:
        output.result("\n" + output.markdown(columns, rows))
    elif rows:
        output.table(columns, rows)


def _plan_lines(found: Plan) -> list[str]:
    if not found.missing:
        return [f"{found.downstream} has every commit of {found.upstream}: nothing to sync"]
    of = "the last" if not found.first_excluded else f"{found.missing - found.taken} stay for the next; the first is"
    rest = f"{of} {found.first_excluded[:10]}" if found.first_excluded else "nothing stays behind"
    return [
        f"{found.downstream} lacks {_commits(found.missing)} of {found.upstream}; this slice has the oldest {found.taken}",
        f"from {found.first[:10]} to {found.tip[:10]}, {rest}",
        f"next: git merge {found.tip}",
    ]


def _commits(n: int) -> str:
    return "1 commit" if n == 1 else f"{n} commits"


def _plan_row(file: PlannedFile) -> list[str]:
    rules = ", ".join(sorted({f.rule for f in file.findings}))
    breaks = file.breaks or ("loses values only downstream has" if file.only_downstream and file.wins == "upstream" else "")
    changes = [f"{c.commit[:10]} {c.subject[:40]}".strip() for c in (file.changed_upstream, file.changed_downstream)]
    return [shorten.below_root(file.path), *changes, file.wins.value, breaks, rules]


def _show_audit(found: Audit) -> None:
    for problem in found.graph.problems:
        output.result(f"graph: {problem}")
    left = len(found.completeness.left_behind)
    if left:
        output.result(f"{left} siblings of changed goldens did not change; see --format json, completeness")
    rows = [_audit_row(f) for f in found.worrying]
    if rows:
        output.table(("golden", "class", "values of", "was", "new errors"), rows, right=(4,), title="to be looked at")
    for file in found.worrying:
        if file.lost:
            output.result(file.lost.restore)


def _audit_row(file: AuditedFile) -> list[str]:
    was = ""
    if file.lost:
        undone = ", ".join(f"{m} {a} → {b} NaN" for m, (a, b) in file.lost.undone.items())
        was = f"{file.lost.commit[:10]} {'repair undone: ' + undone if undone else file.lost.subject[:50]}"
    return [shorten.below_root(file.path), file.kind.value, file.source.commit[:10], was, str(file.new_errors or "")]
