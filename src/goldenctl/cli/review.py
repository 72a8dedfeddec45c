"""``goldenctl review``: accept, reject or skip proposed golden contents."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from goldenctl.api import reviewing
from goldenctl.api.reviewing import Decision
from goldenctl.cli import options, output
from goldenctl.cli.output import Format
from goldenctl.errors import ExitCode

if TYPE_CHECKING:
    from goldenctl.config import Settings
    from goldenctl.pending import Pending


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
        decisions = reviewing.by_globs(proposals, settings, accept or (), reject or ())
    elif proposals and output.terminal(sys.stdin):
        decisions = _ask(proposals, settings)
    else:
        decisions = {p.path: Decision.SKIP for p in proposals}
    refused = reviewing.carry_out(proposals, decisions, settings, options.admitted(allow), force=force)
    _print(format, proposals, decisions, refused)
    left = [p for p in proposals if decisions[p.path] is Decision.SKIP or p.path in refused]
    return int(ExitCode.FINDINGS if left else ExitCode.OK)


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
