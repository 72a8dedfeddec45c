"""Candidates from a folder, a zip or a git revision: a run recorded by hand or by an earlier command.

A folder may hold golden files in their layout, artifact zips, or both. ``git:REV`` (or a bare
revision that is no path) takes the golden files of a revision.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

from goldenctl.config import Settings
from goldenctl.errors import RepoError, SourceError, UsageError
from goldenctl.git import Repo
from goldenctl.model import Artifact, Conclusion, Fetched, Member, Run, SourceProblem
from goldenctl.sources import FetchOptions, Source, recorded, restarts
from goldenctl.sources.artifact import is_golden_name, members

LOOSE = "golden files"
"""Name of the artifact that stands for the JSON files lying open in a folder."""


def open(ref: str, settings: Settings, options: FetchOptions) -> Source:
    """The source of a folder, zip or revision.

    Raises
    ------
    UsageError
        There is neither such a path nor such a revision.
    """
    path = Path(ref)
    if not ref.startswith("git:"):
        if path.is_dir():
            return recorded.open(ref, settings, options) if recorded.is_recorded(path) else FolderSource(ref, path)
        if path.is_file():
            return ZipSource(ref, path)
    rev = ref.removeprefix("git:")
    repo = Repo(settings.top)
    try:
        return RevisionSource(ref, repo, repo.commit_of(rev), settings)
    except (UsageError, RepoError) as exc:
        hint = "a run URL, github:N, gitlab:N, s3://BUCKET/PREFIX, mlflow:RUN_ID, a folder, a .zip or git:REV"
        raise UsageError(f"{ref} is no folder, zip, run or revision", hint=hint) from exc


def _describe(ref: str, run_id: str, artifacts: Sequence[Artifact]) -> Run:
    return Run(ref, "tree", run_id, conclusion=Conclusion.UNKNOWN, artifacts=tuple(artifacts))


def _file_artifact(path: Path, name: str) -> Artifact:
    try:
        state = path.stat()
    except OSError as exc:
        raise SourceError(f"cannot be read: {exc.strerror}", place=str(path)) from exc
    return Artifact(name, name, state.st_size, created_at=datetime.fromtimestamp(state.st_mtime, UTC), url=path.name)


def _read_zip(artifact: Artifact, path: Path) -> Fetched:
    """Golden members of one zip; what is wrong with it becomes a problem."""
    try:
        with path.open("rb") as stream:
            found, problems = members(stream, subject=artifact.name)
            stream.seek(0)
            digest = hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as exc:
        return Fetched(artifact, problems=(SourceProblem(artifact.name, "network", f"cannot be read: {exc.strerror}"),))
    named = Artifact(artifact.id, artifact.name, artifact.size, digest, created_at=artifact.created_at, url=artifact.url)
    return Fetched(named, found, problems, artifact.size)


def _unreadable(exc: OSError) -> None:
    raise SourceError(f"cannot be read: {exc.strerror}", place=str(exc.filename)) from exc


class ZipSource:
    """One artifact zip, or a zip of a whole tree."""

    def __init__(self, ref: str, path: Path) -> None:
        self._ref = ref
        self._path = path

    def describe(self) -> Run:
        """One run with one artifact."""
        return _describe(self._ref, self._path.stem, [_file_artifact(self._path, self._path.name)])

    def fetch(self, artifacts: Sequence[Artifact]) -> Iterator[Fetched]:
        """Read the zip."""
        for artifact in artifacts:
            yield _read_zip(artifact, self._path)


class FolderSource:
    """A folder of golden files and artifact zips, at any depth."""

    def __init__(self, ref: str, folder: Path) -> None:
        self._ref = ref
        self._folder = folder

    def describe(self) -> Run:
        """One run; each zip is an artifact, the golden files lying open are one more.

        Raises
        ------
        SourceError
            The folder holds neither golden files nor zips, or cannot be read.
        """
        zips = [_file_artifact(self._folder / name, name) for name in self._names() if name.endswith(".zip")]
        loose = [name for name in self._names() if is_golden_name(name)]
        artifacts = ([Artifact(LOOSE, LOOSE, 0)] if loose else []) + zips
        if not artifacts:
            hint = "name the folder that holds golden_values*.json files or artifact zips"
            raise SourceError("holds no golden files and no artifact zips", place=self._ref, hint=hint)
        return _describe(self._ref, self._folder.resolve().name, artifacts)

    def _names(self) -> list[str]:
        """Regular files below the folder, links left out, so that nothing outside is taken."""
        found = []
        for folder, folders, files in os.walk(self._folder, onerror=_unreadable):
            folders[:] = sorted(f for f in folders if f != ".git")
            here = Path(folder)
            found += [(here / f).relative_to(self._folder).as_posix() for f in sorted(files) if not (here / f).is_symlink()]
        return found

    def fetch(self, artifacts: Sequence[Artifact]) -> Iterator[Fetched]:
        """Read the golden files and zips."""
        for artifact in artifacts:
            yield self._loose(artifact) if artifact.id == LOOSE else _read_zip(artifact, self._folder / artifact.id)

    def _loose(self, artifact: Artifact) -> Fetched:
        found: list[Member] = []
        problems: list[SourceProblem] = []
        names = dict.fromkeys(filter(is_golden_name, self._names()))
        for name in sorted(restarts.choose(names).taken):
            try:
                found.append(Member(name, (self._folder / name).read_bytes(), restarts.replicate_of(name)))
            except OSError as exc:
                problems.append(SourceProblem(name, "network", f"cannot be read: {exc.strerror}"))
        return Fetched(artifact, tuple(found), tuple(problems), sum(len(m.content) for m in found))


class RevisionSource:
    """The golden files of a git revision."""

    def __init__(self, ref: str, repo: Repo, commit: str, settings: Settings) -> None:
        self._ref = ref
        self._repo = repo
        self._commit = commit
        self._root = settings.root

    def describe(self) -> Run:
        """One run whose only artifact is the revision's root folder."""
        artifact = Artifact(self._commit, f"{self._root or '.'} at {self._commit[:10]}", 0)
        return Run(self._ref, "git", self._commit, commit=self._commit, artifacts=(artifact,))

    def fetch(self, artifacts: Sequence[Artifact]) -> Iterator[Fetched]:
        """Read the golden files of the revision; links are not followed."""
        for artifact in artifacts:
            entries = self._repo.tree(self._commit, self._root)
            wanted = {p: e.blob for p, e in entries.items() if is_golden_name(p) and e.mode != "120000"}
            contents = dict(self._repo.blobs(wanted.values()))
            found = tuple(Member(p, contents[blob]) for p, blob in wanted.items())
            yield Fetched(artifact, found, (), sum(len(m.content) for m in found))
