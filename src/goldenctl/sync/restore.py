"""Bring earlier content of goldens back: find it, lint it, hand it to the write-back."""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath

from goldenctl import syncs
from goldenctl.config import Settings
from goldenctl.errors import NotFoundError, UsageError
from goldenctl.git import Repo
from goldenctl.model import Action, Change, FileResult, Finding, GoldenKey, RefreshResult, Run
from goldenctl.sides import is_golden, key_of
from goldenctl.sources.archive import member
from goldenctl.sources.objects import open_store
from goldenctl.sync.audit import Lint, new_errors
from goldenctl.sync.history import blobs_of, holdings
from goldenctl.writeback import refusals

FilesOf = Callable[[str], dict[str, str]]
"""Refresh id → golden path and blob id of the files it wrote, as the catalog knows them."""
_REVERTS = re.compile(r"This reverts commit ([0-9a-f]{7,64})")


@dataclass(frozen=True, slots=True)
class Origin:
    """Where earlier content is taken from."""

    run: Run
    """The revision, refresh or archived content, as a run."""
    blobs: dict[str, str]
    """Golden path → blob id; empty where the content is not in git."""
    replaced: dict[str, bytes | None] | None = None
    """For a reverted commit: path → what it left there, which alone may be replaced; None means anything may."""
    outside: Mapping[str, bytes] = field(default_factory=dict)
    """Golden path → content that is not in git."""

    def contents(self, repo: Repo, paths: Iterable[str]) -> dict[str, bytes]:
        """Golden path → content, of those the origin has."""
        named = {path: self.blobs[path] for path in paths if path in self.blobs}
        read = dict(repo.blobs(named.values()))
        return {path: read[blob] for path, blob in named.items()} | dict(self.outside)


@dataclass(frozen=True, slots=True)
class Restoration:
    """What will be written, and what became of each file asked for."""

    result: RefreshResult
    changes: tuple[Change, ...]


def at_revision(repo: Repo, settings: Settings, rev: str) -> Origin:
    """The goldens of a revision, a branch, ``sync:SHA`` or ``sync:DATE``.

    Raises
    ------
    UsageError
        There is no such revision.
    """
    commit = syncs.resolve(repo, settings, rev)
    return Origin(Run(rev, "git", commit, commit=commit), blobs_of(repo, commit, settings.root))


def before_reverted(repo: Repo, settings: Settings, rev: str) -> Origin:
    """The goldens from before a commit that was reverted.

    Parameters
    ----------
    rev
        The reverted commit, or the commit that reverts it.

    Raises
    ------
    UsageError
        There is no such commit, or it has no parent.
    """
    commit = syncs.resolve(repo, settings, rev)
    named = _REVERTS.search(repo.run("log", "-1", "--no-show-signature", "--format=%B", commit).decode("utf-8", "replace"))
    reverted = repo.commit_of(named[1]) if named else commit
    if not repo.succeeds("rev-parse", "--verify", "--quiet", f"{reverted}^"):
        raise UsageError(f"{rev} has no parent: there is nothing before it")
    before = repo.commit_of(f"{reverted}^")
    old, new = (blobs_of(repo, at, settings.root) for at in (before, reverted))
    touched = {path for path in old if old[path] != new.get(path) and is_golden(path, settings)}
    contents = dict(repo.blobs(new[path] for path in touched if path in new))
    left = {path: contents.get(new.get(path, "")) for path in touched}
    return Origin(Run(f"{reverted[:10]}^", "git", before, commit=before), {path: old[path] for path in touched}, left)


def of_refresh(refresh: str, files_of: FilesOf) -> Origin:
    """The goldens that a refresh wrote.

    Raises
    ------
    NotFoundError
        The catalog does not know the refresh.
    """
    blobs = files_of(refresh)
    if not blobs:
        raise NotFoundError(
            f"the catalog knows no files written by refresh {refresh}", hint="goldenctl catalog sql 'FROM refresh'"
        )
    return Origin(Run(f"refresh:{refresh}", "refresh", refresh), blobs)


def of_digest(repo: Repo, settings: Settings, name: str, paths: Sequence[str]) -> Origin:
    """The content with a SHA-256, blob id or beginning of one.

    Parameters
    ----------
    name
        ``DIGEST``: the content each path has had in any branch, else the one the archive of the settings
        holds. ``LOCATION#DIGEST``: the one that archive holds.

    Raises
    ------
    UsageError
        The digest is no hexadecimal text of eight digits or more.
    NotFoundError
        No path has had such a content, and no archive holds it.
    """
    location, _, said = name.rpartition("#")
    digest = said.removeprefix("sha256:").lower()
    if not re.fullmatch(r"[0-9a-f]{8,64}", digest):
        raise UsageError(f"{said!r} is no digest", hint="--from archive:SHA256, as Golden-Artifact: says it")
    found = {} if location else _held(repo, settings, digest, paths)
    if found:
        return Origin(Run(f"archive:{digest}", "archive", digest), found)
    location = location or settings.archive_location
    if not location:
        hint = "git fetch --all, or --from archive:LOCATION#DIGEST for an archive of goldenctl archive"
        raise NotFoundError(f"no branch here has had a content {digest} at {', '.join(paths)}", hint=hint)
    if len(paths) != 1:
        raise UsageError("an archived content is one golden's", hint="name the one golden it belongs to")
    whole, content = member(open_store(location), digest, location)
    return Origin(Run(f"archive:{location}#{whole}", "archive", whole), {}, outside={paths[0]: content})


def _held(repo: Repo, settings: Settings, digest: str, paths: Sequence[str]) -> dict[str, str]:
    """Golden path → blob id of the content that has the digest."""
    known = [(path, blob) for path, blob in holdings(repo, "--all", settings.root).first if path in paths]
    contents = {blob: hashlib.sha256(raw).hexdigest() for blob, raw in repo.blobs(blob for _, blob in known)}
    return {path: blob for path, blob in known if blob.startswith(digest) or contents[blob].startswith(digest)}


def paths_of(settings: Settings, origin: Iterable[str], wanted: Sequence[str], here: Path) -> list[str]:
    """Golden paths from the top for what the user named: files or folders, from the top or from ``here``.

    Raises
    ------
    UsageError
        A path leads out of the golden folder.
    """
    known = set(origin)
    out: dict[str, None] = {}
    for name in wanted:
        path = _from_top(settings, name, known, here)
        inside = sorted(p for p in known if p.startswith(f"{path}/") and is_golden(p, settings))
        out |= dict.fromkeys(inside or [path])
    return list(out)


def _from_top(settings: Settings, name: str, known: set[str], here: Path) -> str:
    plain = PurePosixPath(name).as_posix()
    if plain in known or plain.startswith(f"{settings.root}/"):
        return plain
    absolute = Path(os.path.normpath(here / name))
    if not absolute.is_relative_to(settings.top):
        raise UsageError("is not in this repository", place=name)
    return absolute.relative_to(settings.top).as_posix()


@dataclass(frozen=True)
class Restorer:
    """Decides for each file whether earlier content comes back."""

    repo: Repo
    settings: Settings
    origin: Origin
    lint: Lint
    force: bool = False
    """Write over uncommitted changes, and over files that changed again after a reverted commit."""
    allow: frozenset[tuple[str, str]] = frozenset()
    """``RULE`` or ``RULE:METRIC`` of findings that do not refuse a file."""

    def restoration(self, paths: Sequence[str], command: str = "") -> Restoration:
        """What bringing ``paths`` back writes, and what is refused and why."""
        contents = self.origin.contents(self.repo, paths)
        refused = refusals(self.repo, self.settings.root, list(paths), force=self.force, goals=contents)
        files: list[FileResult] = []
        changes: list[Change] = []
        for path in paths:
            new = contents.get(path)
            old = None if path in refused else _now(self.repo, path)
            files.append(self._file(path, old, new, refused.get(path, "")))
            if files[-1].action is Action.WRITTEN:
                changes.append(Change(path, old, new))
        started = datetime.now(UTC)
        name = f"{started:%Y%m%dT%H%M%S}-{secrets.token_hex(3)}"
        result = RefreshResult(name, (self.origin.run,), tuple(files), started_at=started, command=command)
        return Restoration(result, tuple(changes))

    def _file(self, path: str, old: bytes | None, new: bytes | None, refused: str) -> FileResult:
        key = key_of(path, self.settings) or GoldenKey("", "", "", "")
        if new is None:
            return FileResult(path, key, Action.MISSING, f"no such golden at {self.origin.run.ref}")
        digest = hashlib.sha256(new).hexdigest()
        if old == new:
            return FileResult(path, key, Action.UNCHANGED, "holds this content already", sha256=digest)
        findings = tuple(self.lint(path, new))
        reason = refused or self._changed_again(path, old) or self._worse(path, findings, old)
        action = Action.REFUSED if reason else Action.WRITTEN
        return FileResult(path, key, action, reason, sha256=digest, findings=findings)

    def _changed_again(self, path: str, old: bytes | None) -> str:
        """Why the values of today are not those of the reverted commit."""
        if self.origin.replaced is None or self.force or old == self.origin.replaced.get(path):
            return ""
        return "changed again after the reverted commit; --force brings the content from before it back all the same"

    def _worse(self, path: str, findings: Sequence[Finding], old: bytes | None) -> str:
        """The first error that today's content does not have."""
        counted = [f for f in findings if (f.rule, f.metric) not in self.allow]
        new = new_errors(counted, self.lint(path, old) if old else [])
        if not new:
            return ""
        name = ":".join(filter(None, new[0]))
        return f"{name} is worse than today; --allow {shlex.quote(name)} admits it"


def _now(repo: Repo, path: str) -> bytes | None:
    try:
        return (repo.top / path).read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None
