"""Which commits an audit compares: a merge, a squash or a range, named by the user."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime

from goldenctl import syncs
from goldenctl.config import Settings
from goldenctl.errors import UsageError
from goldenctl.git import Repo
from goldenctl.sync.history import blobs_of, steps
from goldenctl.sync.model import Landing


def find(repo: Repo, settings: Settings, rev: str) -> Landing:
    """The landing that a revision, ``sync:…`` or range ``A..B`` stands for.

    Raises
    ------
    UsageError
        There is no such revision, or it has no parent to compare with.
    """
    if ".." in rev:
        return _with_upstream(repo, settings, _range(repo, settings, rev))
    sha = syncs.resolve(repo, settings, rev)
    parents = repo.text("rev-list", "--parents", "--max-count=1", sha).split()[1:]
    if not parents:
        raise UsageError(f"{rev} has no parent: there is nothing to audit", hint="name a merge, a squash or a range A..B")
    kind = "merge" if len(parents) > 1 else _single_kind(repo, settings, sha)
    return _with_upstream(repo, settings, _landing(repo, sha, parents[0], kind), *parents[1:2])


def _single_kind(repo: Repo, settings: Settings, sha: str) -> str:
    return next((s.kind for s in syncs.landings(repo, settings) if s.sha == sha), "commit")


def _range(repo: Repo, settings: Settings, rev: str) -> Landing:
    left, dots, right = rev.partition("...") if "..." in rev else rev.partition("..")
    start, end = (syncs.resolve(repo, settings, name or "HEAD") for name in (left, right))
    if dots == "...":
        start = _merge_base(repo, start, end)
    if not start or not repo.succeeds("merge-base", "--is-ancestor", start, end):
        raise UsageError(f"{rev}: the start is no ancestor of the end", hint=f"write {left}...{right} to begin where they part")
    return _landing(repo, end, start, "range")


def _landing(repo: Repo, sha: str, downstream: str, kind: str) -> Landing:
    seconds, _, subject = repo.text("log", "-1", "--no-show-signature", "--format=%ct %s", sha).partition(" ")
    return Landing(sha, "", downstream, "", datetime.fromtimestamp(int(seconds), UTC), kind, subject)


def _merge_base(repo: Repo, a: str, b: str) -> str:
    found = repo.run("merge-base", a, b, check=False).decode().split()
    return found[0] if found else ""


def _with_upstream(repo: Repo, settings: Settings, landing: Landing, second_parent: str = "") -> Landing:
    """The same landing with the newest commit of upstream's own line that came in, and the merge base."""
    line = repo.text("rev-list", "--first-parent", syncs.branch(repo, settings.sync.upstream)).split()
    brought = set(repo.text("rev-list", landing.sha, f"^{landing.downstream}").split())
    upstream = next((commit for commit in line if commit in brought), second_parent)
    inferred = not upstream and landing.kind in ("squash", "range")
    if inferred:
        upstream = _inferred(repo, settings, landing)
    base = _merge_base(repo, landing.downstream, upstream) if upstream else ""
    return replace(landing, upstream=upstream, base=base, inferred=inferred and bool(upstream))


def _inferred(repo: Repo, settings: Settings, landing: Landing) -> str:
    """The upstream commit before the landing whose goldens agree with most of the changed files, the oldest such."""
    before, after = (blobs_of(repo, rev, settings.root) for rev in (landing.downstream, landing.sha))
    wanted = {path: blob for path, blob in after.items() if before.get(path) != blob}
    upstream = syncs.branch(repo, settings.sync.upstream)
    until = f"--until={int(landing.date.timestamp())}"
    return _best_fit(repo, settings.root, wanted, "--first-parent", until, upstream)


def _best_fit(repo: Repo, root: str, wanted: Mapping[str, str], *arguments: str) -> str:
    agreeing: set[str] = set()
    best, most = "", 0
    for commit, changes in itertools.groupby(steps(repo, root, *arguments), key=lambda step: step.commit):
        for step in changes:
            (agreeing.add if wanted.get(step.path) == step.new else agreeing.discard)(step.path)
        if len(agreeing) > most:
            best, most = commit, len(agreeing)
    return best
