"""Fill the catalog from git history: resumable, idempotent, whatever happened to the branches.

Documents arrive batch by batch, each in a transaction of its own, so that a kill costs one batch and readers
get their turn. Commits, revisions, goldens and syncs follow in one last transaction that replaces what was
there; until then the catalog shows the history it had before.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from goldenctl import syncs
from goldenctl.catalog import freshness, history
from goldenctl.catalog.parsing import Parsing
from goldenctl.catalog.places import Lake, Place
from goldenctl.config import Settings
from goldenctl.forked import no_collections
from goldenctl.git import Repo

Progress = Callable[[int, int, int], None]
"""Called with documents done, documents in all, and bytes parsed so far."""
WAIT = 30.0
"""Seconds to wait for another process."""


@dataclass(frozen=True, slots=True)
class Built:
    """What a build or update found."""

    branches: dict[str, str]
    """Branch → commit its history was read to."""
    commits: int
    """Commits in the catalog."""
    documents: int
    """Documents in the history."""
    new_documents: int
    """Documents this build parsed; the others were there."""
    up_to_date: bool = False
    """The branches have not moved since the last build, and nothing was read; the other counts are 0 then."""


def build(
    repo: Repo,
    settings: Settings,
    path: Place,
    branches: Sequence[str] = (),
    progress: Progress | None = None,
    wait: float = WAIT,
) -> Built:
    """Read the whole history of branches into the catalog.

    Parameters
    ----------
    path
        The catalog file or lake; made when there is none. Documents it has are not parsed again.
    branches
        Branches or revisions; none means downstream and upstream of the settings, or else ``HEAD``.
    progress
        Called after every batch.
    wait
        Seconds to wait for other processes, each time.

    Raises
    ------
    UsageError
        There is no such branch, or nothing is committed yet.
    RepoError
        Git failed.
    CatalogError
        The catalog is held by another process, or cannot be written.
    """
    with no_collections():
        return _build(repo, settings, path, freshness.tips(repo, settings, branches), progress, wait)


def _build(repo: Repo, settings: Settings, path: Place, tips: dict[str, str], progress: Progress | None, wait: float) -> Built:
    commits = history.read(repo, settings, tips.values())
    wanted = history.documents(commits)
    fresh = not isinstance(path, Lake) and not path.exists()
    parsing = Parsing(repo, wanted) if fresh else None  # parses while the clients below are being loaded
    from goldenctl.catalog import tables

    if parsing:
        tables.make(path, wait)  # now, while others parse and nothing has come yet
    missing = wanted if fresh else tables.missing(path, wanted, wait)
    parsing = parsing or Parsing(repo, missing)
    lives = history.lives(commits, tips.values())
    prepared = tables.prepare(tables.History(commits, lives, tips, _landings(repo, settings, tips)), settings)
    done, size = len(wanted) - len(missing), 0
    for batch in parsing:
        tables.add(path, batch, wait)
        done += len(batch.documents)
        size += batch.raw_bytes
        if progress:
            progress(done, len(wanted), size)
    tables.replace_history(path, prepared, wait, done=lambda: freshness.remember(path, settings, tips))
    return Built(tips, len(commits), len(wanted), len(missing))


def update(
    repo: Repo,
    settings: Settings,
    path: Place,
    branches: Sequence[str] = (),
    progress: Progress | None = None,
    wait: float = WAIT,
) -> Built:
    """Take in what is new; nothing is opened when the branches have not moved since the last build.

    Parameters and errors are those of :func:`build`; without ``branches`` those of the last build are meant.
    """
    fresh = freshness.up_to_date(repo, settings, path, branches)
    if fresh is not None:
        return Built(fresh, 0, 0, 0, up_to_date=True)
    return build(repo, settings, path, branches or freshness.last_branches(repo, settings, path), progress, wait)


def _landings(repo: Repo, settings: Settings, tips: dict[str, str]) -> tuple[syncs.Sync, ...]:
    wanted = {settings.sync.upstream, settings.sync.downstream}
    return syncs.landings(repo, settings) if wanted <= set(tips) else ()
