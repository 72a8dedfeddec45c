"""Fill the catalog from git history: resumable, idempotent, whatever happened to the branches.

Documents arrive batch by batch, each in a transaction of its own, so that a kill costs one batch and readers
get their turn. Commits, revisions, goldens and syncs follow in one last transaction that replaces what was
there; until then the catalog shows the history it had before.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from goldenctl import syncs
from goldenctl.catalog import history
from goldenctl.catalog.parsing import Parsing
from goldenctl.config import Settings
from goldenctl.errors import RepoError, UsageError
from goldenctl.git import Repo

Progress = Callable[[int, int], None]
"""Called with documents done and documents in all."""
WAIT = 30.0
"""Seconds to wait for another process."""
_ALGORITHM = "1"
"""Raised when the same history would give other rows, so that an update takes nothing for done."""


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
    path: Path,
    branches: Sequence[str] = (),
    progress: Progress | None = None,
    wait: float = WAIT,
) -> Built:
    """Read the whole history of branches into the catalog.

    Parameters
    ----------
    path
        The catalog file; made when there is none. Documents it has are not parsed again.
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
    _need_repo(repo)
    tips = _tips(repo, settings, branches)
    commits = history.read(repo, settings, tips.values())
    wanted = history.documents(commits)
    fresh = not path.exists()
    parsing = Parsing(repo, wanted) if fresh else None  # parses while the clients below are being loaded
    from goldenctl.catalog import tables

    missing = wanted if fresh else tables.missing(path, wanted, wait)
    done = len(wanted) - len(missing)
    for batch in parsing or Parsing(repo, missing):
        tables.add(path, batch, wait)
        done += len(batch.documents)
        if progress:
            progress(done, len(wanted))
    lives = history.lives(commits, tips.values())
    tables.replace_history(path, tables.History(commits, lives, tips, _landings(repo, settings, tips)), settings, wait)
    _remember(path, settings, tips)
    return Built(tips, len(commits), len(wanted), len(missing))


def update(
    repo: Repo,
    settings: Settings,
    path: Path,
    branches: Sequence[str] = (),
    progress: Progress | None = None,
    wait: float = WAIT,
) -> Built:
    """Take in what is new; nothing is opened when the branches have not moved since the last build.

    Parameters and errors are those of :func:`build`; without ``branches`` those of the last build are meant.
    """
    _need_repo(repo)
    last = _remembered(path)
    names = branches or (list(last["tips"]) if last else [])
    try:
        tips = _tips(repo, settings, names)
    except UsageError:
        if branches:
            raise
        tips = _tips(repo, settings, ())  # a branch of the last build is gone
    if last == _state(path, settings, tips):
        return Built(tips, 0, 0, 0, up_to_date=True)
    return build(repo, settings, path, list(tips), progress, wait)


def _need_repo(repo: Repo) -> None:
    if not repo.is_repo():
        raise RepoError("no git repository here", place=str(repo.top), hint="run it inside a clone, or with -C DIR")


def _tips(repo: Repo, settings: Settings, branches: Sequence[str]) -> dict[str, str]:
    """Branch → commit, the one that tells where a golden is now first."""
    if branches:
        return {name: syncs.resolve(repo, settings, name) for name in branches}
    tips = {}
    for name in (settings.sync.downstream, settings.sync.upstream):
        with suppress(UsageError):
            tips[name] = syncs.branch(repo, name)
    return tips or {"HEAD": repo.commit_of("HEAD")}


def _landings(repo: Repo, settings: Settings, tips: dict[str, str]) -> tuple[syncs.Sync, ...]:
    wanted = {settings.sync.upstream, settings.sync.downstream}
    return syncs.landings(repo, settings) if wanted <= set(tips) else ()


def _state_file(path: Path) -> Path:
    return path.with_name(f"{path.name}.state")


def _state(path: Path, settings: Settings, tips: dict[str, str]) -> dict[str, object] | None:
    """What an update compares: the branches, the settings that matter, and that the file is the one then left."""
    try:
        stat = path.stat()
    except OSError:
        return None
    relevant = (_ALGORITHM, settings.root, settings.layout, repr(settings.sync))
    digest = hashlib.sha256("\0".join(relevant).encode()).hexdigest()
    return {"tips": tips, "settings": digest, "file": [stat.st_ino, stat.st_size, stat.st_mtime_ns]}


def _remember(path: Path, settings: Settings, tips: dict[str, str]) -> None:
    """Leave a note for the next update; without it that update only takes longer."""
    with suppress(OSError):
        _state_file(path).write_text(json.dumps(_state(path, settings, tips)), "utf-8")


def _remembered(path: Path) -> dict[str, dict[str, str]] | None:
    try:
        note = json.loads(_state_file(path).read_text("utf-8"))
    except (OSError, ValueError):
        return None
    return note if isinstance(note, dict) and isinstance(note.get("tips"), dict) else None
