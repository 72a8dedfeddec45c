"""The golden files of the work tree and the revisions a refresh matches against."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property

from goldenctl import sides, syncs
from goldenctl.candidates import Known
from goldenctl.collect import known_goldens
from goldenctl.config import Settings
from goldenctl.git import Repo, TreeEntry


@dataclass(frozen=True)
class Worktree:
    """Golden files as they are on disk.

    Parameters
    ----------
    settings
        Where the root is and how paths are laid out.
    """

    settings: Settings

    @cached_property
    def known(self) -> Known:
        """Golden files present and cases with a folder."""
        return known_goldens(self.settings)

    def read(self, path: str) -> bytes | None:
        """Bytes of a golden file, None when there is none.

        Raises
        ------
        RepoError
            It is there and cannot be read.
        """
        return sides.on_disk(self.settings, path)


@dataclass(frozen=True)
class Revision:
    """One revision to match against, with its golden blobs."""

    rev: str
    """As the user named it."""
    commit: str
    """Hex commit."""
    entries: Mapping[str, TreeEntry]
    """Golden path → entry at that commit."""


class History:
    """The goldens of several revisions, each distinct blob read once."""

    def __init__(self, settings: Settings, revs: Collection[str]) -> None:
        self._repo = Repo(settings.top)
        self.revisions = tuple(self._revision(rev, settings) for rev in revs)
        self._contents: dict[str, bytes] = {}

    def _revision(self, rev: str, settings: Settings) -> Revision:
        commit = syncs.resolve(self._repo, settings, rev)
        return Revision(rev, commit, self._repo.tree(commit, settings.root))

    def load(self, paths: Collection[str]) -> None:
        """Read what :meth:`content` will be asked for, in one pass through git."""
        wanted = {r.entries[p].blob for r in self.revisions for p in paths if p in r.entries}
        self._contents.update(self._repo.blobs(sorted(wanted - self._contents.keys())))

    def content(self, revision: Revision, path: str) -> bytes | None:
        """Bytes of a golden at a revision, None when it is not there."""
        entry = revision.entries.get(path)
        return None if entry is None else self._contents[entry.blob]
