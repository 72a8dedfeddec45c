"""The review of proposed golden contents, as a function."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from enum import StrEnum
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING

from goldenctl.api.common import Admitted, admitted, settings_here
from goldenctl.api.twin import Words, twin
from goldenctl.errors import UsageError

if TYPE_CHECKING:
    from goldenctl.config import Settings
    from goldenctl.pending import Pending


class Decision(StrEnum):
    """What becomes of a proposal."""

    ACCEPT = "accept"
    REJECT = "reject"
    SKIP = "skip"


@twin
def review(*, accept: Words = (), reject: Words = (), allow: Words = (), force: bool = False) -> list[Pending]:
    """The golden contents that tests have proposed and nobody has decided about.

    ``accept`` and ``reject`` are globs of proposals to decide about first; what cannot be accepted stays.
    """
    from goldenctl import pending

    settings = settings_here()
    proposals = pending.waiting(settings)
    if accept or reject:
        carry_out(proposals, by_globs(proposals, settings, accept, reject), settings, admitted(allow), force=force)
    return pending.waiting(settings)


def by_globs(
    proposals: Sequence[Pending], settings: Settings, accept: Sequence[str], reject: Sequence[str]
) -> dict[str, Decision]:
    """Path → decision; rejection wins, so that accepting ``*`` and rejecting some leaves the rest.

    Raises
    ------
    UsageError
        A glob matches no proposal.
    """
    for glob in (*accept, *reject):
        if not any(_matches(p.path, settings, [glob]) for p in proposals):
            known = ", ".join(p.path for p in proposals[:3]) or "none"
            raise UsageError(f"no proposal matches {glob!r}", hint=f"waiting: {known}")
    return {p.path: _by_glob(p.path, settings, accept, reject) for p in proposals}


def _by_glob(path: str, settings: Settings, accept: Sequence[str], reject: Sequence[str]) -> Decision:
    if _matches(path, settings, reject):
        return Decision.REJECT
    return Decision.ACCEPT if _matches(path, settings, accept) else Decision.SKIP


def _matches(path: str, settings: Settings, globs: Sequence[str]) -> bool:
    relative = path.removeprefix(settings.prefix)
    return any(fnmatchcase(path, glob) or fnmatchcase(relative, glob) for glob in globs)


def carry_out(
    proposals: Sequence[Pending], decisions: Mapping[str, Decision], settings: Settings, allow: Admitted, *, force: bool
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
