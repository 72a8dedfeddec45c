"""The journal of one write-back: what makes many file replacements happen together or not at all.

``.goldenctl/journal/`` holds, while files are being replaced::

    manifest.json   paths with old and new digest, folders to create
    N.old  N.new    old and new content of file N with its mode; neither where the file is absent on that side
    commit          the marker: from here on the new contents win

Order of things: contents, manifest, folders and temporary files beside the targets, marker, replacements,
removal of the manifest, of the rest, of the marker. A journal without manifest has nothing to do; one with
manifest and without marker is undone; one with both is finished. Each file is compared by digest first, so a
file that somebody changed in between is kept.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import stat
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from goldenctl.errors import RepoError
from goldenctl.files import OWN
from goldenctl.model import Change
from goldenctl.writeback.paths import problem

Step = Callable[[str], None]
"""Called with a word after each step that changes the disk; tests stop the process there."""

_OTHER = "not a file"
_DIGEST = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class Entry:
    """One file of the journal."""

    number: int
    path: str
    old: str | None
    """SHA-256 before; None when the file did not exist."""
    new: str | None
    """SHA-256 after; None when the file is deleted."""


class Journal:
    """The journal of one work tree.

    Parameters
    ----------
    top
        Top of the work tree.
    step
        See :data:`Step`.
    """

    def __init__(self, top: Path, step: Step) -> None:
        self.top = top
        self.step = step
        self.folder = top / OWN / "journal"
        self.entries: tuple[Entry, ...] = ()
        self.created: tuple[str, ...] = ()
        """Folders this write-back creates, outermost first."""

    @property
    def _manifest(self) -> Path:
        return self.folder / "manifest.json"

    @property
    def _marker(self) -> Path:
        return self.folder / "commit"

    @property
    def committed(self) -> bool:
        """Whether the new contents have won."""
        return self._marker.exists()

    def _kept(self, entry: Entry, side: str) -> Path:
        return self.folder / f"{entry.number}.{side}"

    def _target(self, entry: Entry) -> Path:
        return self.top / entry.path

    def _beside(self, entry: Entry) -> Path:
        """The temporary file in the target's own folder."""
        target = self._target(entry)
        return target.with_name(f".goldenctl-{entry.number}.tmp")

    def begin(self, root: str, changes: Sequence[Change]) -> None:
        """Put everything on the disk that the replacements need; no golden file is touched."""
        self.folder.mkdir()
        self.step("folder")
        self.entries = tuple(self._stage(n, change) for n, change in enumerate(changes))
        self.created = self._missing_folders()
        self._write_manifest(root)
        for folder in self.created:
            (self.top / folder).mkdir()
            self.step("target folder")
        for entry in self.entries:
            if entry.new is not None:
                self._place(entry, "new")
        for folder in {str(self._target(e).parent) for e in self.entries}:
            sync_folder(Path(folder))

    def _stage(self, number: int, change: Change) -> Entry:
        target = self.top / change.path
        old, new = (None if c is None else hashlib.sha256(c).hexdigest() for c in (change.old, change.new))
        if current(target) != old:
            raise RepoError("changed since it was read", place=change.path, hint="run the command again")
        entry = Entry(number, change.path, old, new)
        if old is not None:
            # A link costs no space and brings the very file back; where links are not to be had, a copy does.
            link_or_copy(target, self._kept(entry, "old"))
            self.step("old content")
        if change.new is not None:
            write_file(self._kept(entry, "new"), change.new, like=None if old is None else target.lstat())
            self.step("new content")
        return entry

    def _missing_folders(self) -> tuple[str, ...]:
        missing: set[str] = set()
        for entry in self.entries:
            if entry.new is not None:
                parents = list(self._target(entry).parents)
                inside = parents[: parents.index(self.top)]
                missing |= {p.relative_to(self.top).as_posix() for p in inside if not p.exists()}
        return tuple(sorted(missing, key=lambda p: p.count("/")))

    def _write_manifest(self, root: str) -> None:
        files = [{"path": e.path, "old": e.old, "new": e.new} for e in self.entries]
        text = json.dumps({"version": 1, "root": root, "created": self.created, "files": files}, indent=1)
        draft = self.folder / "manifest.draft"
        write_file(draft, text.encode("ascii"))
        self.step("manifest draft")
        draft.replace(self._manifest)
        sync_folder(self.folder)
        sync_folder(self.folder.parent)
        self.step("manifest")

    def _place(self, entry: Entry, side: str) -> None:
        beside = self._beside(entry)
        beside.unlink(missing_ok=True)
        link_or_copy(self._kept(entry, side), beside)
        self.step("temporary file")

    def load(self) -> bool:
        """Read the manifest of a journal that another process left; False when there is none.

        Raises
        ------
        RepoError
            The manifest was not written by goldenctl, or names files it must not touch.
        """
        try:
            table = json.loads(self._manifest.read_bytes())
            entries = [Entry(n, f["path"], f["old"], f["new"]) for n, f in enumerate(table["files"])]
            created, root = table["created"], table["root"]
        except FileNotFoundError:
            return False
        except (ValueError, KeyError, TypeError, OSError, RecursionError) as exc:
            raise self._unusable("its manifest cannot be read") from exc
        if self.folder.is_symlink() or not all(_plausible(e) for e in entries) or not isinstance(root, str):
            raise self._unusable("it was not written by goldenctl")
        for path in (*(e.path for e in entries), *created):
            reason = _textual(self.top, root, path)
            if reason:
                raise self._unusable(f"{path!r} {reason}")
        self.entries, self.created = tuple(entries), tuple(created)
        return True

    def _unusable(self, why: str) -> RepoError:
        hint = f"look at `git status`, then remove {self.folder}"
        return RepoError(f"the journal of an interrupted write-back is unusable: {why}", place=str(self.folder), hint=hint)

    def commit(self) -> None:
        """Set the marker: from here on the new contents win."""
        write_file(self._marker, b"")
        sync_folder(self.folder)
        self.step("marker")

    def forward(self, *, strict: bool) -> list[str]:
        """Replace each file that still has its old content; sentences on those that have neither.

        Raises
        ------
        RepoError
            ``strict``, and a file has neither its old nor its new content.
        """
        return self._settle("old", "new", strict=strict)

    def back(self) -> list[str]:
        """Bring the old contents back; sentences on files that have neither content."""
        self._marker.unlink(missing_ok=True)
        sync_folder(self.folder)
        self.step("marker removed")
        kept = self._settle("new", "old", strict=False)
        for folder in reversed(self.created):
            with contextlib.suppress(OSError):  # somebody else's file keeps the folder
                (self.top / folder).rmdir()
            self.step("target folder removed")
        return kept

    def _settle(self, before: str, after: str, *, strict: bool) -> list[str]:
        kept: list[str] = []
        for entry in self.entries:
            goal: str | None = getattr(entry, after)
            now = self._now(entry)
            if now == getattr(entry, before) and now != goal:
                self._replace(entry, after, goal)
            elif now != goal and strict:
                raise RepoError("changed while it was being replaced", place=entry.path, hint="run the command again")
            elif now != goal:
                kept.append(f"{entry.path} was changed by somebody else in between and is left as it is")
            if current(self._beside(entry)) is not None:  # asked first: a read-only file system refuses the removal of nothing
                self._beside(entry).unlink()
                self.step("temporary file removed")
        for folder in {self._target(e).parent for e in self.entries}:
            if folder.is_dir():
                sync_folder(folder)
        return kept

    def _now(self, entry: Entry) -> str | None:
        return _OTHER if problem(self.top, "", entry.path) else current(self._target(entry))

    def _replace(self, entry: Entry, side: str, goal: str | None) -> None:
        target, beside = self._target(entry), self._beside(entry)
        if goal is None:
            target.unlink()
        else:
            if current(beside) != goal:
                if current(self._kept(entry, side)) != goal:
                    raise self._unusable(f"the {side} content of {entry.path} is missing")
                target.parent.mkdir(parents=True, exist_ok=True)
                self._place(entry, side)
            beside.replace(target)
        self.step("replaced")

    def close(self) -> None:
        """Remove the journal; the manifest first, so that what is left has nothing to do."""
        self._manifest.unlink(missing_ok=True)
        self.step("manifest removed")
        for path in sorted(self.folder.iterdir(), key=lambda p: p.name == "commit"):
            path.unlink()
            self.step("journal file removed")
        self.folder.rmdir()
        self.step("journal removed")


def _plausible(entry: Entry) -> bool:
    digests = all(d is None or (isinstance(d, str) and _DIGEST.fullmatch(d)) for d in (entry.old, entry.new))
    return digests and isinstance(entry.path, str)


def _textual(top: Path, root: str, path: object) -> str:
    """Why a path of a manifest is not one goldenctl would have written; what is on the disk there is looked at later."""
    if not isinstance(path, str):
        return "is not a path"
    reason = problem(top, root, path)
    return reason if reason.startswith(("leads", "lies")) else ""


def current(path: Path) -> str | None:
    """SHA-256 of a file; None when nothing is there."""
    try:
        if not stat.S_ISREG(path.lstat().st_mode):
            return _OTHER
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except (FileNotFoundError, NotADirectoryError):
        return None


def write_file(path: Path, content: bytes, *, like: os.stat_result | None = None) -> None:
    """Create a file with this content on the disk, with the owner and mode of another or the user's defaults."""
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666), "wb") as stream:
        stream.write(content)
        stream.flush()
        if like is not None:
            with contextlib.suppress(PermissionError):  # another's file: the mode is kept, the owner cannot be
                os.fchown(stream.fileno(), like.st_uid, like.st_gid)
            os.fchmod(stream.fileno(), stat.S_IMODE(like.st_mode))
        os.fsync(stream.fileno())


def link_or_copy(source: Path, target: Path) -> None:
    """A second name for a file, or a copy on the disk where links cannot be had."""
    try:
        os.link(source, target, follow_symlinks=False)
    except OSError:
        write_file(target, source.read_bytes(), like=source.lstat())


def sync_folder(folder: Path) -> None:
    """Bring a folder's names to the disk."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
