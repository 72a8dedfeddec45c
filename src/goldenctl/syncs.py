"""Which commits brought upstream into downstream, and what ``sync:DATE`` and ``sync:SHA`` stand for.

A landing lies on downstream's own first-parent line and is one of

=======  =======================================================================================
merge    a merge that brings commits of upstream's first-parent line and changes the tree; one
         that leaves the tree as it was only mends the graph after a squash
squash   a single-parent commit whose subject fits the settings (``sync.subjects``)
revert   a single-parent commit ``Revert "<subject of an earlier landing>"``
=======  =======================================================================================
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any

from goldenctl.config import Settings
from goldenctl.errors import UsageError
from goldenctl.git import Repo

MERGE, SQUASH, REVERT = "merge", "squash", "revert"
_TAGS = r"^(?:\[[^\]]*\]\s*)*"
_BUILT_IN = (
    _TAGS + r"(?:chore\s*[:/]\s*)?(?:(?:nightly\s+)?(?:merge|sync|pull)\s+)?{upstream}\s+(?:in)?to\s+{downstream}",
    _TAGS + r"(?:chore\s*[:/]\s*)?pull\s+(?:changes\s+from\s+)?{upstream}\b",
)
_REVERT = re.compile(r'Revert "(?P<subject>.+)"')
_PULL_NUMBER = re.compile(r"\s*\(#\d+\)$")


@dataclass(frozen=True, slots=True)
class Sync:
    """One landing of upstream on downstream."""

    sha: str
    """Full commit of the landing."""
    date: datetime
    """Committer date in UTC; ``sync:YYYY-MM-DD`` means its day."""
    base: str
    """Newest commit of upstream's first-parent line that downstream had before; empty when none."""
    downstream: str
    """The downstream parent."""
    upstream: str
    """Newest commit of upstream's first-parent line that the landing brought; empty for a squash
    or revert, whose commit does not say."""
    kind: str
    """``merge``, ``squash`` or ``revert``."""
    subject: str


@dataclass(frozen=True, slots=True)
class _Commit:
    parents: tuple[str, ...]
    tree: str
    date: datetime
    subject: str


def branch(repo: Repo, name: str) -> str:
    """The full commit of a branch, local or else of ``origin``.

    Raises
    ------
    UsageError
        There is neither.
    """
    for candidate in (f"refs/heads/{name}", f"refs/remotes/origin/{name}", name):
        if repo.succeeds("rev-parse", "--verify", "--quiet", "--end-of-options", f"{candidate}^{{commit}}"):
            return repo.commit_of(candidate)
    raise UsageError(f"no branch {name!r} here, neither local nor of origin", hint=f"git fetch origin {name}, or set [sync]")


def resolve(repo: Repo, settings: Settings, rev: str) -> str:
    """The full commit of a revision, a branch, ``sync:SHA`` or ``sync:YYYY-MM-DD``.

    Parameters
    ----------
    rev
        A plain revision as git knows it; a branch name that exists only at ``origin``; or the
        landing with that (abbreviated) commit or of that committer date in UTC.

    Raises
    ------
    UsageError
        Nothing has that name, or more than one landing fits; the nearest ones are named.
    """
    kind, _, name = rev.partition(":")
    if kind == "sync":
        return _landing(landings(repo, settings), name, settings).sha
    if repo.succeeds("rev-parse", "--verify", "--quiet", "--end-of-options", f"{rev}^{{commit}}"):
        return repo.commit_of(rev)
    if repo.succeeds("rev-parse", "--verify", "--quiet", f"refs/remotes/origin/{rev}^{{commit}}"):
        return repo.commit_of(f"refs/remotes/origin/{rev}")
    return repo.commit_of(rev)


def _landing(found: Sequence[Sync], name: str, settings: Settings) -> Sync:
    try:
        day = date.fromisoformat(name) if re.fullmatch(r"\d{4}-\d\d-\d\d", name) else None
    except ValueError as exc:
        raise UsageError(f"sync:{name}: {exc}", hint="write the date as YYYY-MM-DD") from exc
    if day is not None:
        fitting = [s for s in found if s.date.date() == day and s.kind != REVERT]
    else:
        fitting = [s for s in found if re.fullmatch(r"[0-9a-f]{4,64}", name) and s.sha.startswith(name)]
    if len(fitting) == 1:
        return fitting[0]
    if fitting:
        hint = "name one as " + " or ".join(f"sync:{s.sha[:10]}" for s in fitting)
        raise UsageError(f"sync:{name} is more than one landing on {settings.sync.downstream}", hint=hint)
    raise UsageError(f"sync:{name}: no such landing on {settings.sync.downstream}", hint=_nearest(found, day))


def _nearest(found: Sequence[Sync], day: date | None) -> str:
    """The three landings nearest to a day, or the newest three."""
    landed = [s for s in found if s.kind != REVERT]
    if not landed:
        return "this history has no landings; see [sync] subjects, upstream and downstream in the settings"
    reference = day or landed[-1].date.date()
    near = sorted(landed, key=lambda s: abs((s.date.date() - reference).days))[:3]
    return "nearest are " + ", ".join(f"sync:{s.date.date()} ({s.sha[:10]})" for s in sorted(near, key=lambda s: s.date))


def landings(repo: Repo, settings: Settings) -> tuple[Sync, ...]:
    """Every landing of upstream on downstream's first-parent line, oldest first.

    Raises
    ------
    UsageError
        One of the two branches does not exist.
    """
    upstream, downstream = branch(repo, settings.sync.upstream), branch(repo, settings.sync.downstream)
    commits = _commits(repo, upstream, downstream)
    return tuple(_Walk(commits, first_parents(commits, upstream), _subjects(settings)).landings(downstream))


def _commits(repo: Repo, *tips: str) -> dict[str, _Commit]:
    out: dict[str, _Commit] = {}
    log = repo.run("log", "--no-show-signature", "-z", "--format=%H%x1f%P%x1f%T%x1f%ct%x1f%s", *tips, "--").decode(
        "utf-8", "replace"
    )
    for record in log.split("\0"):
        if record:
            sha, parents, tree, seconds, subject = record.split("\x1f", 4)
            out[sha] = _Commit(tuple(parents.split()), tree, datetime.fromtimestamp(int(seconds), UTC), subject)
    return out


def first_parents(commits: Mapping[str, Any], tip: str) -> list[str]:
    """First-parent line from its root to ``tip``, of commits with ``parents``; shorter where a shallow clone ends."""
    line = []
    while tip in commits:
        line.append(tip)
        tip = next(iter(commits[tip].parents), "")
    return line[::-1]


def _subjects(settings: Settings) -> tuple[re.Pattern[str], ...]:
    names = {"upstream": re.escape(settings.sync.upstream), "downstream": re.escape(settings.sync.downstream)}
    patterns = settings.sync.subjects or tuple(p.format(**names) for p in _BUILT_IN)
    try:
        return tuple(re.compile(p, re.IGNORECASE) for p in patterns)
    except re.error as exc:
        raise UsageError(f"not a regular expression: {exc}", place=f"{settings.source}: sync.subjects") from exc


class _Walk:
    """Follows downstream from its root and keeps what it has reached."""

    def __init__(self, commits: Mapping[str, _Commit], upstream: Sequence[str], subjects: Sequence[re.Pattern[str]]) -> None:
        self.commits = commits
        self.upstream = upstream
        self.place = {sha: i for i, sha in enumerate(upstream)}
        self.subjects = subjects
        self.have: set[str] = set()
        self.newest = -1
        self.found: list[Sync] = []

    def landings(self, tip: str) -> list[Sync]:
        for sha in first_parents(self.commits, tip):
            commit, before = self.commits[sha], self.newest
            self._reach([sha])
            if sha in self.place or not commit.parents:
                continue
            kind = self._kind(commit, before)
            if kind:
                base = self.upstream[before] if before >= 0 else ""
                brought = self.upstream[self.newest] if kind == MERGE else ""
                self.found.append(Sync(sha, commit.date, base, commit.parents[0], brought, kind, commit.subject))
        return self.found

    def _reach(self, stack: list[str]) -> None:
        """Add the ancestors of ``stack``; each commit is visited once in the whole walk."""
        while stack:
            sha = stack.pop()
            if sha in self.have or sha not in self.commits:
                continue
            self.have.add(sha)
            self.newest = max(self.newest, self.place.get(sha, -1))
            stack.extend(self.commits[sha].parents)

    def _kind(self, commit: _Commit, before: int) -> str:
        if len(commit.parents) > 1:
            parent = self.commits.get(commit.parents[0])
            mends_only = parent is not None and parent.tree == commit.tree
            return MERGE if self.newest > before and not mends_only else ""
        reverted = _REVERT.match(commit.subject)
        if reverted:
            return REVERT if self._landed(reverted["subject"]) else ""
        return SQUASH if any(p.search(commit.subject) for p in self.subjects) else ""

    def _landed(self, subject: str) -> bool:
        """Whether an earlier landing has that subject, pull request numbers aside."""
        plain = _PULL_NUMBER.sub("", subject)
        return any(_PULL_NUMBER.sub("", s.subject) == plain for s in self.found)
