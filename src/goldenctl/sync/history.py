"""Which contents each golden path has had on a branch, and who brought them: one pass of ``git log``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from goldenctl.git import Repo

ABSENT = "0" * 40


@dataclass(frozen=True, slots=True)
class Step:
    """One path in one commit, against one of its parents."""

    commit: str
    path: str
    old: str
    """Blob before; empty when the path was not there."""
    new: str
    """Blob after; empty when the path is gone."""


@dataclass(frozen=True)
class Holdings:
    """Every content of every golden path in a branch's whole history."""

    first: Mapping[tuple[str, str], str]
    """(path, blob) → the commit that brought it first."""
    before: Mapping[tuple[str, str], str]
    """(path, blob) → the blob it replaced then; empty when the path was new."""

    def had(self, path: str, blob: str) -> bool:
        """Whether any commit had this blob at this path."""
        return (path, blob) in self.first

    @cached_property
    def elsewhere(self) -> Mapping[str, tuple[str, str]]:
        """Blob → the path and commit where it was first seen."""
        out: dict[str, tuple[str, str]] = {}
        for (path, blob), commit in self.first.items():
            out.setdefault(blob, (path, commit))
        return out


def holdings(repo: Repo, rev: str, root: str) -> Holdings:
    """The contents that paths below ``root`` have had in any commit reachable from ``rev``."""
    first: dict[tuple[str, str], str] = {}
    before: dict[tuple[str, str], str] = {}
    for step in steps(repo, root, "--full-history", "--topo-order", rev):
        if step.new:
            first.setdefault((step.path, step.new), step.commit)
            before.setdefault((step.path, step.new), step.old)
        if step.old:  # where a shallow clone begins, the old side is all that is known
            first.setdefault((step.path, step.old), step.commit)
    return Holdings(first, before)


def steps(repo: Repo, root: str, *arguments: str) -> Iterator[Step]:
    """Changes of paths below ``root``, oldest commit first; a merge is shown against each of its parents.

    Parameters
    ----------
    arguments
        More arguments of ``git log``: revisions, ``--first-parent``, ….
    """
    plain = ("-m", "--raw", "--no-renames", "--no-abbrev", "--no-show-signature", "--reverse", "-z", "--format=%H")
    limit = ("--", root) if root else ("--",)
    tokens = iter(repo.run("-c", "log.showRoot=true", "log", *plain, *arguments, *limit).split(b"\0"))
    commit = ""
    for token in tokens:
        word = token.strip().decode("ascii", "replace")
        if not word.startswith(":"):
            commit = word or commit
            continue
        _, mode, old, new, _ = word.split(" ")
        path = next(tokens).decode("utf-8", "surrogateescape")
        if mode in ("100644", "100755", "000000"):
            yield Step(commit, path, _blob(old), _blob(new))


def _blob(name: str) -> str:
    return "" if name.strip("0") == "" else name


def blobs_of(repo: Repo, rev: str, root: str) -> dict[str, str]:
    """Path → blob of a revision's files below ``root``, links left out; empty for an empty ``rev``."""
    if not rev:
        return {}
    return {path: entry.blob for path, entry in repo.tree(rev, root).items() if entry.mode in ("100644", "100755")}
