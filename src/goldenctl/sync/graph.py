"""Check a sync's graph: upstream's commits unchanged, one merge, at most one repair, goldens as claimed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from goldenctl import syncs
from goldenctl.config import Settings
from goldenctl.git import Repo
from goldenctl.sync.model import AuditedFile, Class, Graph, Landing


@dataclass(frozen=True, slots=True)
class _Commit:
    sha: str
    parents: tuple[str, ...]
    signature: tuple[str, str]
    """Author time and subject: what a copy keeps."""


def check(repo: Repo, settings: Settings, landing: Landing, files: Sequence[AuditedFile]) -> Graph:
    """How the commits between the first parent and the result hang together."""
    tip = syncs.branch(repo, settings.sync.upstream)
    came = repo.text("rev-list", landing.sha, f"^{landing.downstream}").split()
    own = _commits(repo, landing.sha, f"^{landing.downstream}", f"^{tip}")
    imported = set(came) - {commit.sha for commit in own}
    merges = tuple(c.sha for c in own if len(c.parents) > 1 and _brings(c, imported, landing))
    others = [c for c in own if len(c.parents) > 1 and c.sha not in merges and c.sha != landing.sha]
    copies = _copies(repo, own, tip, landing)
    repairs = tuple(c.sha for c in own if len(c.parents) == 1 and c.sha != _landed(landing) and c.sha not in copies)
    found = Graph(len(imported), merges, tuple(c.sha for c in others), repairs, copies, ())
    parents = {c.sha: c.parents for c in own}
    problems = [*_shape(landing, found), *_parents(repo, landing, merges, parents), *_claims(landing, files)]
    return Graph(found.imported, found.merges, found.updates, found.repairs, found.rewritten, tuple(problems))


def _landed(landing: Landing) -> str:
    """A squash is the landing itself, not a repair; in a range or after a merge every plain commit is a repair."""
    return landing.sha if landing.kind in ("squash", "revert", "commit") else ""


def _commits(repo: Repo, *revs: str) -> list[_Commit]:
    log = repo.run("log", "--no-show-signature", "-z", "--format=%H%x1f%P%x1f%at%x1f%s", *revs, "--").decode("utf-8", "replace")
    records = [record.split("\x1f", 3) for record in log.split("\0") if record]
    return [_Commit(sha, tuple(parents.split()), (time, subject)) for sha, parents, time, subject in records]


def _brings(commit: _Commit, imported: set[str], landing: Landing) -> bool:
    """Whether a merge joins upstream itself, not the branch on which the sync was made."""
    return any(parent in imported or parent == landing.upstream for parent in commit.parents[1:])


def _copies(repo: Repo, own: Sequence[_Commit], tip: str, landing: Landing) -> tuple[str, ...]:
    plain = [c for c in own if len(c.parents) == 1 and c.sha != landing.sha]
    if not plain:
        return ()
    known = {c.signature for c in _commits(repo, tip)}
    return tuple(c.sha for c in plain if c.signature in known)


def _shape(landing: Landing, graph: Graph) -> list[str]:
    out: list[str] = []
    if landing.kind in ("squash", "commit"):
        out.append(f"{landing.sha[:10]} is a plain commit: git does not know what of upstream is in, and merges it again")
    elif landing.kind != "revert" and not graph.merges:
        out.append("no merge of upstream: nothing of upstream's history came in")
    if len(graph.merges) > 1:
        out.append(f"{len(graph.merges)} merges of upstream where one is expected: {_short(graph.merges)}")
    if len(graph.repairs) > 1:
        out.append(f"{len(graph.repairs)} repair commits where at most one is expected: {_short(graph.repairs)}")
    if graph.rewritten:
        out.append(f"{len(graph.rewritten)} upstream commits came in as copies under other ids: {_short(graph.rewritten)}")
    return out


def _short(commits: Sequence[str]) -> str:
    shown = ", ".join(commit[:10] for commit in commits[:5])
    return shown if len(commits) <= 5 else f"{shown} and {len(commits) - 5} more"


def _parents(repo: Repo, landing: Landing, merges: Sequence[str], parents: Mapping[str, tuple[str, ...]]) -> list[str]:
    """The merge must stand on downstream and take the tip that is named."""
    out: list[str] = []
    for merge in merges[:1]:
        first, *rest = parents[merge]
        if not repo.succeeds("merge-base", "--is-ancestor", first, landing.downstream):
            out.append(f"the merge {merge[:10]} does not stand on downstream: its first parent is {first[:10]}")
        if landing.upstream and landing.upstream not in rest:
            out.append(f"the merge {merge[:10]} takes {_short(rest)}, not upstream's commit {landing.upstream[:10]}")
    return out


def _claims(landing: Landing, files: Sequence[AuditedFile]) -> list[str]:
    """What counts as upstream's must be the tip's very bytes, unless a run's artifact explains it."""
    taken = (Class.FROM_UPSTREAM, Class.ADDED, Class.OVERWRITTEN, Class.FORMAT_ONLY)
    stale = [f.path for f in files if f.kind in taken and f.result != f.upstream and not f.source.run]
    if not stale or not landing.upstream or landing.inferred:
        return []
    return [f"{len(stale)} goldens hold an upstream content other than {landing.upstream[:10]}'s, e.g. {stale[0]}"]
