"""``goldenctl review``: accept, reject or skip proposed golden contents."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from enum import StrEnum
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from goldenctl.cli import options, output
from goldenctl.cli.output import Format
from goldenctl.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from goldenctl.config import Settings
    from goldenctl.pending import Pending


class Decision(StrEnum):
    """What becomes of a proposal."""

    ACCEPT = "accept"
    REJECT = "reject"
    SKIP = "skip"


def command(
    accept: Annotated[list[str] | None, typer.Option(help="Accept proposals that match this glob; may be repeated.")] = None,
    reject: Annotated[list[str] | None, typer.Option(help="Reject proposals that match this glob; may be repeated.")] = None,
    allow: options.Allow = None,
    force: options.Force = False,
    format: options.Form = Format.TABLE,
) -> int:
    """Go through the golden contents that tests have proposed: accept, reject or skip each.

    Example: goldenctl review --accept "moe/*" --reject "*_2nd.json"
    """
    from goldenctl import config, pending

    settings = config.load(Path.cwd())
    proposals = pending.waiting(settings)
    if accept or reject:
        decisions = {p.path: _by_glob(p.path, settings, accept or (), reject or ()) for p in proposals}
        _check(accept or (), reject or (), proposals, settings)
    elif proposals and output.terminal(sys.stdin):
        decisions = _ask(proposals, settings)
    else:
        decisions = {p.path: Decision.SKIP for p in proposals}
    refused = _carry_out(proposals, decisions, settings, options.admitted(allow), force=force)
    _print(format, proposals, decisions, refused)
    left = [p for p in proposals if decisions[p.path] is Decision.SKIP or p.path in refused]
    return int(ExitCode.FINDINGS if left else ExitCode.OK)


def _by_glob(path: str, settings: Settings, accept: Sequence[str], reject: Sequence[str]) -> Decision:
    """Rejection wins, so that ``--accept "*" --reject …`` leaves the rest."""
    if _matches(path, settings, reject):
        return Decision.REJECT
    return Decision.ACCEPT if _matches(path, settings, accept) else Decision.SKIP


def _matches(path: str, settings: Settings, globs: Sequence[str]) -> bool:
    relative = path.removeprefix(settings.prefix)
    return any(fnmatchcase(path, glob) or fnmatchcase(relative, glob) for glob in globs)


def _check(accept: Sequence[str], reject: Sequence[str], proposals: Sequence[Pending], settings: Settings) -> None:
    for glob in (*accept, *reject):
        if not any(_matches(p.path, settings, [glob]) for p in proposals):
            known = ", ".join(p.path for p in proposals[:3]) or "none"
            raise UsageError(f"no proposal matches {glob!r}", hint=f"waiting: {known}")


def _ask(proposals: Sequence[Pending], settings: Settings) -> dict[str, Decision]:
    """One question a proposal; ``q`` skips the rest."""
    decisions = {p.path: Decision.SKIP for p in proposals}
    letters = {"a": Decision.ACCEPT, "r": Decision.REJECT, "s": Decision.SKIP}
    for i, proposal in enumerate(proposals, 1):
        output.note(f"{i} of {len(proposals)}: {proposal.path}  {proposal.origin}")
        _show(proposal, settings)
        answer = ""
        while answer not in (*letters, "q"):
            answer = typer.prompt("accept, reject, skip or quit [a/r/s/q]", err=True).strip().lower()[:1]
        if answer == "q":
            break
        decisions[proposal.path] = letters[answer]
    return decisions


def _show(proposal: Pending, settings: Settings) -> None:
    from goldenctl import diff as stage
    from goldenctl import sides
    from goldenctl.cli import diff as view

    before = sides.worktree(settings).only([proposal.path])
    after = sides.of_bytes("proposal", {proposal.path: proposal.content}, settings)
    rows = stage.rows(stage.diff(before, after, settings))
    if rows:
        view.show_rows(rows)
    output.note(proposal.reason)


def _carry_out(
    proposals: Sequence[Pending],
    decisions: dict[str, Decision],
    settings: Settings,
    allow: options.Admitted,
    *,
    force: bool,
) -> dict[str, str]:
    """Write what is accepted, all or nothing, and forget what is decided; path → why an accepted one was refused."""
    from goldenctl import lint, pending, writeback
    from goldenctl.git import Repo
    from goldenctl.model import Change, Severity

    accepted = [p for p in proposals if decisions[p.path] is Decision.ACCEPT]
    goals = {p.path: p.content for p in accepted}
    refused = dict(writeback.refusals(Repo(settings.top), settings.root, list(goals), force=force, goals=goals))
    for p in accepted:
        found = lint.check(p.path, p.content, settings)
        errors = [f for f in found if f.severity is Severity.ERROR and (f.rule, f.metric) not in allow]
        if errors:
            name = shlex.quote(f"{errors[0].rule}:{errors[0].metric}")
            refused.setdefault(p.path, f"{errors[0].rule}: {errors[0].message}; --allow {name} admits it")
    written = [p for p in accepted if p.path not in refused]
    changes = [Change(p.path, _old(settings.top / p.path), p.content) for p in written]
    writeback.apply(settings.top, settings.root, changes)
    rejected = [p.path for p in proposals if decisions[p.path] is Decision.REJECT]
    pending.drop(settings, [*(p.path for p in written), *rejected])
    return refused


def _old(path: Path) -> bytes | None:
    return path.read_bytes() if path.is_file() else None


def _print(format: Format, proposals: Sequence[Pending], decisions: dict[str, Decision], refused: dict[str, str]) -> None:
    said = {p.path: "refused" if p.path in refused else _DONE[decisions[p.path]] for p in proposals}
    if format is Format.JSON:
        files = [
            {"path": p.path, "state": said[p.path], "origin": p.origin, "reason": refused.get(p.path, p.reason)}
            for p in proposals
        ]
        output.json({"files": files})
        return
    rows = [[p.path, said[p.path], refused.get(p.path, p.reason), p.origin] for p in proposals]
    columns = ("golden", "state", "why", "test")
    if rows:
        output.table(columns, rows, form=format)
    left = sum(s in ("pending", "refused") for s in said.values())
    output.result(f"{left} pending" + ("\n  next: goldenctl review --accept GLOB --reject GLOB" if left else ""))


_DONE = {Decision.ACCEPT: "accepted", Decision.REJECT: "rejected", Decision.SKIP: "pending"}
