"""Files of our own, and files that are written whole or not at all."""

from __future__ import annotations

import errno
import secrets
from pathlib import Path

OWN = ".goldenctl"
"""Our own folder at the top of a repository."""
DRAFT = ".new-"
"""What the name of a file that is not finished begins with."""


def own_folder(folder: Path) -> Path:
    """Make a folder of our own that git ignores, and return it.

    Raises
    ------
    OSError
        It cannot be made; the caller knows what it is for.
    """
    for place in (folder.parent, folder):
        if place is folder or place.name == OWN:
            refuse_link(place)
    folder.mkdir(parents=True, exist_ok=True)
    ignore = folder / ".gitignore"
    if not (ignore.exists() and ignore.stat().st_size):  # a dangling link, or a kill between making and filling it
        write_own(ignore, "*\n")
    return folder


def refuse_link(path: Path) -> None:
    """Refuse a file or folder of our own that is a link: a repository may bring one that leads anywhere.

    Raises
    ------
    OSError
        It is a link.
    """
    if path.is_symlink():
        raise OSError(errno.ELOOP, "is a link, and goldenctl follows none where it keeps its own files", str(path))


def write_own(path: Path, text: str) -> None:
    """Write a note of our own; OSError where it cannot be, or where a link lies in its place."""
    refuse_link(path)
    path.write_text(text, "utf-8")


def write_whole(path: Path, content: bytes) -> None:
    """Give a file this content at once; OSError where it cannot be, and then the old file stays."""
    draft = path.with_name(f"{DRAFT}{secrets.token_hex(4)}")
    try:
        with draft.open("xb") as stream:
            stream.write(content)
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
