"""Which paths may be written: below root, through real folders, onto real files."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping, Sequence
from pathlib import Path

from goldenctl.git import Repo

_FORBIDDEN = (".git", ".goldenctl")


def refusals(
    repo: Repo, root: str, paths: Sequence[str], *, force: bool, goals: Mapping[str, bytes] | None = None
) -> dict[str, str]:
    """Those of ``paths`` that must not be written, with the reason.

    Parameters
    ----------
    root
        Folder of golden files, POSIX, relative to the top; empty for the whole work tree.
    force
        Write over uncommitted changes. The other reasons stay.
    goals
        Path → content to be written. A file that holds it already loses nothing, as after a command that was killed.
    """
    out = {path: reason for path in paths if (reason := problem(repo.top, root, path) or unwritable(repo.top, path))}
    if force:
        return out
    dirty = repo.dirty([path for path in paths if path not in out])
    lost = [path for path in dirty if goals is None or not _holds(repo.top / path, goals.get(path))]
    return out | dict.fromkeys(lost, "has uncommitted changes; commit them, or use --force to write over them")


def _holds(path: Path, content: bytes | None) -> bool:
    return content is not None and path.is_file() and path.read_bytes() == content


def problem(top: Path, root: str, path: str) -> str:
    """Why ``path`` does not lead to a plain file or a free name below root; empty when it does."""
    parts = path.split("/")
    if path.startswith("/") or "\0" in path or any(part in ("", ".", "..") for part in parts):
        return "leads outside root"
    if root and not path.startswith(root.rstrip("/") + "/"):
        return f"lies outside {root}"
    if any(part.lower() in _FORBIDDEN for part in parts):
        return "lies in a folder that is not for golden files"
    return _blocked(top, parts)


def _blocked(top: Path, parts: Sequence[str]) -> str:
    place = top
    for part in parts[:-1]:
        place /= part
        mode = _mode(place)
        if mode is None:
            return ""
        if stat.S_ISLNK(mode):
            return f"{part} on its way is a link"
        if not stat.S_ISDIR(mode):
            return f"{part} on its way is a file"
    mode = _mode(place / parts[-1])
    if mode is None or stat.S_ISREG(mode):
        return ""
    return "is a link" if stat.S_ISLNK(mode) else "is not a file"


def _mode(path: Path) -> int | None:
    """The mode of what is there, links not followed; None when nothing is."""
    try:
        return path.lstat().st_mode
    except OSError:
        return None


def unwritable(top: Path, path: str) -> str:
    """Why the file cannot be replaced by this user; empty when it can, as far as modes tell."""
    target = top / path
    if target.exists() and not os.access(target, os.W_OK):
        return "is not writable"
    folder = next(p for p in target.parents if p.exists())
    return "" if os.access(folder, os.W_OK | os.X_OK) else f"its folder {folder.relative_to(top).as_posix()} is not writable"
