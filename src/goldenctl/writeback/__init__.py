"""Write-back: all files of one change set are replaced, or none.

A crash, a full disk or a kill at any moment leaves every file whole, old or new; :func:`recover`, called by
the next command, finishes or undoes the rest.
"""

from __future__ import annotations

import contextlib
import errno
from collections.abc import Iterator, Sequence
from pathlib import Path

from filelock import FileLock, Timeout

from goldenctl.errors import GoldenctlError, RepoError
from goldenctl.files import OWN, own_folder, refuse_link
from goldenctl.model import Change
from goldenctl.writeback.journal import Journal, Step
from goldenctl.writeback.paths import problem, refusals

__all__ = ["apply", "recover", "refusals"]

_WAIT = 10.0
"""Seconds to wait for another process that is writing."""


def _quiet(word: str) -> None:
    """No step hook."""


def apply(top: Path, root: str, changes: Sequence[Change], *, step: Step = _quiet) -> None:
    """Write all changes or none.

    Parameters
    ----------
    top
        Top of the work tree.
    root
        Folder of golden files, POSIX, relative to ``top``; no file outside it is written.
    changes
        Files with old and new content; a file must still have its old content. Modes are kept.
    step
        Called after each step that changes the disk.

    Raises
    ------
    RepoError
        A path leads out of root or through a link, a file changed since it was read, or the disk refused.
        No file is changed then.
    """
    wanted = [c for c in changes if c.old != c.new]
    _check(top, root, wanted)
    if not wanted:
        return
    try:
        _own_folder(top)
        with _lock(top):
            _settle(top, step)
            _write(Journal(top, step), root, wanted)
    except OSError as exc:
        raise _refused(top, exc) from exc


def _check(top: Path, root: str, changes: Sequence[Change]) -> None:
    seen: set[str] = set()
    for change in changes:
        reason = problem(top, root, change.path)
        if not reason and change.path in seen:
            reason = "is to be written twice"
        if reason:
            raise RepoError(f"not written: it {reason}", place=change.path, hint="no file was changed")
        seen.add(change.path)


def _write(journal: Journal, root: str, changes: Sequence[Change]) -> None:
    try:
        journal.begin(root, changes)
        journal.commit()
        journal.forward(strict=True)
    except BaseException as exc:
        _undo(journal, exc)
        raise
    with contextlib.suppress(OSError):  # all is written; the next command removes what is left
        journal.close()


def _undo(journal: Journal, cause: BaseException) -> None:
    if not journal.folder.is_dir():
        return
    try:
        kept = journal.back()
        journal.close()
    except OSError as exc:
        raise RepoError(
            f"{exc.strerror}, and the files already replaced could not be brought back",
            place=str(exc.filename or journal.top),
            hint="remove the cause, then run any goldenctl command: it undoes the rest",
        ) from cause
    if kept:
        raise RepoError(f"not written ({cause}); {'; '.join(kept)}", place=str(journal.top), hint="git status") from cause


def recover(top: Path, *, step: Step = _quiet) -> list[str]:
    """Finish or undo a write-back that was interrupted.

    Returns
    -------
    list of str
        Sentences saying what was finished, undone or left; empty when there was nothing to do.

    Raises
    ------
    RepoError
        The journal cannot be used, the disk refused, or another process is writing now.
    """
    if not (top / OWN / "journal").exists():
        return []
    try:
        with _lock(top):
            return _settle(top, step)
    except OSError as exc:
        raise _refused(top, exc) from exc


def _settle(top: Path, step: Step) -> list[str]:
    journal = Journal(top, step)
    if not journal.folder.exists():
        return []
    kept: list[str] = []
    if not any(journal.folder.iterdir()):  # the first or the last moment of a write-back
        journal.close()
        return ["an interrupted write-back left nothing to finish or undo"]
    finished, known = journal.committed, journal.load()
    if known and finished:
        finished, kept = _finish(journal)
    elif known:
        kept = journal.back()
    journal.close()
    said = "finished: its files are written" if finished else "undone: its files are as they were"
    return [f"an interrupted write-back was {said}", *kept]


def _finish(journal: Journal) -> tuple[bool, list[str]]:
    """Whether the new contents could be written, and what was left; the old ones come back otherwise."""
    try:
        return True, journal.forward(strict=False)
    except (OSError, GoldenctlError):
        return False, journal.back()


def _own_folder(top: Path) -> None:
    folder = top / OWN
    if folder.is_symlink():
        raise RepoError("is a link", place=str(folder), hint="make it a folder: goldenctl keeps its journal there")
    own_folder(folder)


@contextlib.contextmanager
def _lock(top: Path) -> Iterator[None]:
    try:
        refuse_link(top / OWN)
        refuse_link(top / OWN / "writeback.lock")
        with FileLock(top / OWN / "writeback.lock", timeout=_WAIT):
            yield
    except Timeout as exc:
        raise RepoError(
            f"another goldenctl has been writing golden files for {_WAIT:.0f} s", place=str(top), hint="wait for it to end"
        ) from exc


_FACTS = {
    errno.ENOSPC: ("the disk is full", "make room, then run the command again"),
    errno.EDQUOT: ("the disk quota is used up", "make room, then run the command again"),
    errno.EROFS: ("the file system is read-only", "mount it writable, then run the command again"),
    errno.EACCES: ("no permission to write", "see `ls -ld` and who you are, then run the command again"),
    errno.EPERM: ("locked, or no permission to write", "see `lsattr` and `ls -ld`, then run the command again"),
    errno.ENOENT: ("vanished while it was being written", "run the command again"),
}


def _refused(top: Path, exc: OSError) -> RepoError:
    fact, hint = _FACTS.get(exc.errno or 0, (exc.strerror or str(exc), "run the command again"))
    place = exc.filename2 or exc.filename or top
    return RepoError(f"{fact}; no golden file was changed", place=str(place), hint=hint)
