"""Candidates from an archive: ``archive:LOCATION#RUN``.

``LOCATION`` is a folder or ``s3://BUCKET/PREFIX``; ``RUN`` is a run id or the beginning of a
manifest's digest, and may be left out where the archive holds one run.
"""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from goldenctl.config import Settings
from goldenctl.errors import CorruptError, NotFoundError, SourceError, UsageError
from goldenctl.model import Artifact, Conclusion, Fetched, Job, Member, Run, SourceProblem
from goldenctl.sources import FetchOptions, Source
from goldenctl.sources.objects import ObjectStore, open_store


def open(ref: str, settings: Settings, options: FetchOptions) -> Source:
    """The source of an archived run."""
    location, _, run = ref.removeprefix("archive:").partition("#")
    return ArchiveSource(ref, open_store(location), run)


class ArchiveSource:
    """One run of an archive."""

    def __init__(self, ref: str, store: ObjectStore, run: str) -> None:
        self._ref = ref
        self._store = store
        self._wanted = run
        self._members: Mapping[str, Sequence[Mapping[str, Any]]] = {}

    def describe(self) -> Run:
        """The run as its manifest has it."""
        manifest = self._manifest()
        members: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
        artifacts: dict[str, Artifact] = {}
        try:
            for entry in manifest["members"]:
                artifact = _artifact(entry["artifact"])
                artifacts[artifact.id] = artifact
                members[artifact.id].append(entry)
            self._members = members
            return _run(manifest["run"], self._ref, tuple(artifacts.values()))
        except (KeyError, TypeError, ValueError) as exc:
            raise CorruptError(f"the manifest is not of the known form: {exc!r}", place=self._ref) from exc

    def _manifest(self) -> dict[str, Any]:
        key = self._key()
        raw = self._store.get(key)
        if hashlib.sha256(raw).hexdigest() not in key:
            raise CorruptError("the manifest's content is not what its name says", place=f"{self._ref} {key}")
        manifest: dict[str, Any] = json.loads(raw)
        return manifest

    def _key(self) -> str:
        keys = list(self._store.names("manifests/"))
        found = [k for k in keys if self._fits(k)]
        if len(found) == 1:
            return found[0]
        runs = ", ".join(sorted({k.split("/")[2] for k in (found or keys)})[:5])
        if not found:
            raise NotFoundError(
                "no such run in the archive", place=self._ref, hint=f"it holds {runs}" if runs else "archive a run first"
            )
        raise UsageError(
            f"{self._ref} fits {len(found)} manifests", hint=f"name one by its digest: {found[0].split('/')[-1][:12]}, …"
        )

    def _fits(self, key: str) -> bool:
        _, _, run, name = key.split("/")
        return not self._wanted or run == self._wanted or (len(self._wanted) >= 8 and name.startswith(self._wanted))

    def fetch(self, artifacts: Sequence[Artifact]) -> Iterator[Fetched]:
        """Read members and check each against its digest."""
        if not self._members:
            self.describe()
        for artifact in artifacts:
            found: list[Member] = []
            problems: list[SourceProblem] = []
            for entry in self._members.get(artifact.id, ()):
                try:
                    found.append(self._member(entry))
                except SourceError as exc:
                    kind = "missing" if isinstance(exc, NotFoundError) else "corrupt"
                    problems.append(SourceProblem(artifact.name, kind, f"{entry['name']}: {exc.fact}", exc.hint))
            yield Fetched(artifact, tuple(found), tuple(problems), sum(len(m.content) for m in found))

    def _member(self, entry: Mapping[str, Any]) -> Member:
        content = self._store.get(f"objects/{entry['sha256']}")
        if hashlib.sha256(content).hexdigest() != entry["sha256"]:
            raise CorruptError("its content is not what its name says", place=entry["name"])
        return Member(entry["name"], content, entry["replicate"])


def _run(said: Mapping[str, Any], ref: str, artifacts: tuple[Artifact, ...]) -> Run:
    return Run(
        ref,
        said["provider"],
        said["id"],
        said["attempt"],
        said["commit"],
        said["branch"],
        Conclusion(said["conclusion"]),
        _time(said["started_at"]),
        _time(said["completed_at"]),
        said["url"],
        said["repository"],
        tuple(_job(j) for j in said["jobs"]),
        artifacts,
    )


def _artifact(said: Mapping[str, Any]) -> Artifact:
    job = _job(said["job"]) if said["job"] else None
    created = _time(said["created_at"])
    return Artifact(said["id"], said["name"], said["size"], said["sha256"], job, said["attempt"], created)


def _job(said: Mapping[str, Any]) -> Job:
    return Job(
        said["id"],
        said["name"],
        said["model"],
        said["test_case"],
        said["environment"],
        said["platform"],
        said["attempt"],
        Conclusion(said["conclusion"]),
        _time(said["started_at"]),
        _time(said["completed_at"]),
        said["url"],
        said["allow_failure"],
    )


def _time(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None
