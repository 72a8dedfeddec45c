"""Proposed golden contents that wait for a review: ``.goldenctl/pending/{golden path}`` beside the repository's goldens."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from goldenctl.config import Settings
from goldenctl.errors import RepoError
from goldenctl.files import DRAFT, OWN, own_folder, refuse_link, write_whole

FOLDER = "pending"
NOTE = ".note"
"""Suffix of the file that says where a proposal comes from."""


@dataclass(frozen=True, slots=True)
class Pending:
    """One proposal."""

    path: str
    """Golden path from the repository's top."""
    content: bytes
    origin: str = ""
    """Who proposes it, e.g. a pytest node id; empty when not said."""
    reason: str = ""
    """Why it differs from the golden, in a sentence."""


def folder(settings: Settings) -> Path:
    """Where the proposals lie."""
    return settings.top / OWN / FOLDER


def propose(settings: Settings, proposal: Pending) -> Path:
    """Keep a proposal, whole or not at all; an older one for the same golden is replaced.

    Raises
    ------
    RepoError
        It cannot be written, or its path leads out of the folder of golden files.
    """
    place = _place(settings, proposal.path)
    note = json.dumps({"origin": proposal.origin, "reason": proposal.reason})
    try:
        own_folder(settings.top / OWN)
        for part in (place, *(p for p in place.parents if settings.top in p.parents)):
            refuse_link(part)
        place.parent.mkdir(parents=True, exist_ok=True)
        write_whole(place.with_name(place.name + NOTE), note.encode())
        write_whole(place, proposal.content)
    except OSError as exc:
        raise RepoError(f"cannot be written: {exc.strerror}", place=str(place)) from exc
    return place


def _place(settings: Settings, path: str) -> Path:
    parts = PurePosixPath(path)
    if parts.is_absolute() or ".." in parts.parts or not parts.is_relative_to(settings.root or "."):
        raise RepoError("is not a golden path below root", place=path, hint=f"name a file below {settings.root or 'root'}")
    return folder(settings) / path


def waiting(settings: Settings) -> list[Pending]:
    """Every proposal, by path.

    Raises
    ------
    RepoError
        One is there and cannot be read.
    """
    found = []
    for here, _, names in os.walk(folder(settings)):
        for name in names:
            path = Path(here, name)
            if name.endswith(NOTE) or name.startswith(DRAFT):
                continue
            try:
                found.append(_read(settings, path))
            except OSError as exc:
                raise RepoError(f"cannot be read: {exc.strerror}", place=str(path)) from exc
    return sorted(found, key=lambda p: p.path)


def _read(settings: Settings, path: Path) -> Pending:
    try:
        said = json.loads(path.with_name(path.name + NOTE).read_bytes())
    except (FileNotFoundError, ValueError):
        said = {}
    said = said if isinstance(said, dict) else {}
    relative = path.relative_to(folder(settings)).as_posix()
    return Pending(relative, path.read_bytes(), str(said.get("origin", "")), str(said.get("reason", "")))


def drop(settings: Settings, paths: Iterable[str]) -> None:
    """Forget proposals, and the folders they leave empty."""
    top = folder(settings)
    for path in paths:
        place = _place(settings, path)
        for file in (place.with_name(place.name + NOTE), place):  # the note alone would be nobody's
            file.unlink(missing_ok=True)
        for parent in place.parents:
            if parent == top.parent or any(parent.iterdir()):
                break
            parent.rmdir()
