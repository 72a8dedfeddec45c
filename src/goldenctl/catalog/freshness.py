"""Whether the branches have moved since the catalog was built, told without opening it.

A note beside the catalog holds the branches, the settings that matter and the identity of the file then left.
It is only ever believed when all of them agree; without it an update just takes longer.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from goldenctl.catalog.places import Lake, Place
from goldenctl.config import Settings
from goldenctl.errors import UsageError
from goldenctl.files import write_own
from goldenctl.git import Repo, no_repository

_ALGORITHM = "1"
"""Raised when the same history would give other rows, so that an update takes nothing for done."""


def tips(repo: Repo, settings: Settings, branches: Sequence[str] = ()) -> dict[str, str]:
    """Branch → commit, the branch that tells where a golden is now first.

    Parameters
    ----------
    branches
        Branches or revisions; none means downstream and upstream of the settings, or else ``HEAD``.

    Raises
    ------
    UsageError
        There is no such branch, or nothing is committed yet.
    RepoError
        There is no repository.
    """
    if not (repo.top / ".git").exists() and not repo.is_repo():
        raise no_repository(repo.top)
    if not branches:
        found = _refs(repo, (settings.sync.downstream, settings.sync.upstream))
        return found or {"HEAD": repo.commit_of("HEAD")}
    found = _refs(repo, branches)
    return {name: found.get(name) or _resolve(repo, settings, name) for name in branches}


def _refs(repo: Repo, names: Iterable[str]) -> dict[str, str]:
    """Commits of branches, local or else of origin, in one git process."""
    places = {f"{folder}/{name}": name for name in names for folder in ("refs/remotes/origin", "refs/heads")}
    lines = repo.run("for-each-ref", "--format=%(refname) %(objectname)", "--", *places).decode("utf-8", "surrogateescape")
    commits = dict(line.rsplit(" ", 1) for line in lines.splitlines())
    return {name: commits[ref] for ref, name in places.items() if ref in commits}


def _resolve(repo: Repo, settings: Settings, name: str) -> str:
    from goldenctl import syncs

    return syncs.resolve(repo, settings, name)


def up_to_date(repo: Repo, settings: Settings, path: Place, branches: Sequence[str] = ()) -> dict[str, str] | None:
    """Branch → commit when the catalog holds exactly that, or None when there may be something to do.

    Without ``branches`` those of the last build are meant.
    """
    note = _note(path)
    if isinstance(path, Lake):
        return None
    try:
        now = tips(repo, settings, branches or (tuple(note["tips"]) if note else ()))
    except UsageError:
        return None  # a branch of the last build is gone
    return now if note is not None and note == _state(path, settings, now) else None


def last_branches(repo: Repo, settings: Settings, path: Place) -> tuple[str, ...]:
    """The branches of the last build, if all still exist; empty when there was none."""
    note = _note(path)
    names = tuple(note["tips"]) if note else ()
    try:
        tips(repo, settings, names)
    except UsageError:
        return ()
    return names


def remember(path: Place, settings: Settings, built: dict[str, str]) -> None:
    """Leave a note for the next update."""
    if isinstance(path, Lake):
        return  # a note here would say nothing of what others write there
    with suppress(OSError):
        write_own(_note_file(path), json.dumps(_state(path, settings, built)))


def _note_file(path: Path) -> Path:
    return path.with_name(f"{path.name}.built")


def _note(path: Place) -> dict[str, dict[str, str]] | None:
    if isinstance(path, Lake):
        return None
    try:
        note = json.loads(_note_file(path).read_text("utf-8"))
    except (OSError, ValueError):
        return None
    return note if isinstance(note, dict) and isinstance(note.get("tips"), dict) else None


def _state(path: Path, settings: Settings, now: dict[str, str]) -> dict[str, object] | None:
    try:
        stat = path.stat()
    except OSError:
        return None
    relevant = (_ALGORITHM, settings.root, settings.layout, repr(settings.sync))
    digest = hashlib.sha256("\0".join(relevant).encode()).hexdigest()
    return {"tips": now, "settings": digest, "file": [stat.st_ino, stat.st_size, stat.st_mtime_ns]}
