"""Which files a lint is asked for, and what they were at a revision."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from goldenctl.config import Settings
from goldenctl.errors import RepoError, UsageError
from goldenctl.lint.tree import golden_files, read
from goldenctl.model import Finding
from goldenctl.words import nearest


def files(paths: Sequence[Path], settings: Settings) -> list[str]:
    """Paths relative to the repository's top; folders stand for the golden files in them, none for all below root.

    Raises
    ------
    UsageError
        There is no such file, folder or root, or a folder has nothing to do with root.
    """
    if not paths:
        return golden_files(settings)
    found: dict[str, None] = {}
    for path in paths:
        shown = _from_top(path, settings.top)
        if path.is_dir():
            found |= dict.fromkeys(_below(shown, golden_files(settings), settings))
        elif path.exists() or path.is_symlink():
            found[shown] = None
        else:
            raise UsageError("no such file or folder", place=str(path), hint=_nearest(path, settings))
    return list(found)


def _below(folder: str, known: Sequence[str], settings: Settings) -> list[str]:
    """Those of the golden files that lie in a folder named from the top."""
    inside, root = ("" if name == "." else name.rstrip("/") + "/" for name in (folder, settings.root))
    if not (inside.startswith(root) or root.startswith(inside)):
        hint = "name a file, or a folder in it; goldenctl lint checks all golden files below root"
        raise UsageError(f"no golden files: root is {settings.root_path}", place=folder, hint=hint)
    return [path for path in known if path.startswith(inside)]


def _from_top(path: Path, top: Path) -> str:
    full = os.path.abspath(path)  # noqa: PTH100  resolve() would follow links
    base = str(top) + os.sep
    return full.removeprefix(base).replace(os.sep, "/") if full.startswith(base) else ("." if full == str(top) else full)


def _nearest(path: Path, settings: Settings) -> str:
    near = nearest(path.as_posix(), golden_files(settings) if settings.root else ())
    return f"did you mean {near}?" if near else "goldenctl lint checks all golden files below root"


def against(files: Sequence[str], rev: str, settings: Settings) -> list[Finding]:
    """What files lost since a revision, a branch, ``sync:DATE`` or ``sync:SHA``.

    Raises
    ------
    UsageError
        There is no such revision.
    """
    from goldenctl import syncs
    from goldenctl.git import Repo
    from goldenctl.lint import check_against

    repo = Repo(settings.top)
    entries = repo.tree(syncs.resolve(repo, settings, rev), settings.root)
    contents = dict(repo.blobs(sorted({entries[p].blob for p in files if p in entries})))
    found: list[Finding] = []
    for path, raw in readable(files, settings):
        old = contents[entries[path].blob] if path in entries else None
        found += check_against(path, raw, old, rev, settings)
    return found


def readable(files: Sequence[str], settings: Settings) -> Iterator[tuple[str, bytes]]:
    """Path and bytes of the files that can be read; the lint itself names the others."""
    for path in files:
        with suppress(RepoError):
            yield path, read(settings.top, path)
