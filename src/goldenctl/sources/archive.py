"""Candidates from an archive: ``archive:LOCATION#RUN``.

``LOCATION`` is a folder or ``s3://BUCKET/PREFIX``; ``RUN`` is a run id or the beginning of a
manifest's digest, and may be left out where the archive holds one run.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from goldenctl.config import Settings
from goldenctl.errors import CorruptError, NotFoundError, SourceError, UsageError
from goldenctl.model import Artifact, Conclusion, Fetched, Job, Member, Run, SourceProblem
from goldenctl.sources import FetchOptions, Source, time_of
from goldenctl.sources.artifact import problem
from goldenctl.sources.objects import ObjectStore, open_store, plain
from goldenctl.sources.parallel import fetch_all

VERSION = 1
"""Of the manifest's form."""


def open(ref: str, settings: Settings, options: FetchOptions) -> Source:
    """The source of an archived run."""
    location, _, run = ref.removeprefix("archive:").partition("#")
    return ArchiveSource(ref, open_store(location), run, options)


def member(store: ObjectStore, digest: str, place: str) -> tuple[str, bytes]:
    """The whole digest and the bytes of the archived golden whose SHA-256 begins with ``digest``.

    Raises
    ------
    NotFoundError
        The archive at ``place`` holds none.
    UsageError
        It holds several.
    CorruptError
        The bytes are not those the digest was made of.
    """
    found = [key.removeprefix("objects/") for key in store.names(f"objects/{digest}")]
    if not found:
        raise NotFoundError(f"holds no content {digest}", place=place, hint="goldenctl archive --from-job REF --to DIR")
    if len(found) > 1:
        raise UsageError(f"{digest} is the beginning of {len(found)} digests in {place}", hint=f"for example {found[0]}")
    return found[0], _verified(store, found[0], f"{place} objects/{found[0]}")


def _verified(store: ObjectStore, digest: str, place: str) -> bytes:
    content = store.get(f"objects/{digest}")
    if hashlib.sha256(content).hexdigest() != digest:
        raise CorruptError("its content is not what its name says", place=place)
    return content


class ArchiveSource:
    """One run of an archive."""

    def __init__(self, ref: str, store: ObjectStore, run: str, options: FetchOptions) -> None:
        self._ref = ref
        self._store = store
        self._wanted = run
        self._options = options
        self._members: Mapping[str, Sequence[Mapping[str, Any]]] = {}

    def describe(self) -> Run:
        """The run as its manifest has it."""
        manifest = self._manifest()
        members: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
        artifacts: dict[str, Artifact] = {}
        try:
            for entry in manifest["members"]:
                _check(entry)
                artifact = _artifact(entry["artifact"])
                artifacts[artifact.id] = artifact
                members[artifact.id].append(entry)
            self._members = members
            return _run(manifest["run"], self._ref, tuple(artifacts.values()))
        except (KeyError, TypeError, ValueError) as exc:
            raise CorruptError(f"the manifest is not of the known form: {exc!r}", place=self._ref) from exc

    def _manifest(self) -> dict[str, Any]:
        """The manifest that names all members the others of the run name; a run may be archived while it goes on."""
        keys = self._keys()
        if len({key.rpartition("/")[0] for key in keys}) > 1:
            raise self._several(keys, 2)
        found = {key: self._read(key) for key in keys}
        try:
            named = {k: {(m["name"], m["sha256"], m["artifact"]["id"]) for m in said["members"]} for k, said in found.items()}
        except (KeyError, TypeError) as exc:
            raise CorruptError(f"the manifest is not of the known form: {exc!r}", place=self._ref) from exc
        whole = max(named, key=lambda k: (len(named[k]), k))
        if any(not members <= named[whole] for members in named.values()):
            raise self._several(keys, 3)
        return found[whole]

    def _several(self, keys: Sequence[str], part: int) -> UsageError:
        """More than one manifest fits; they differ in the part of the key that is to be named."""
        some = ", ".join(sorted({k.split("/")[part].removesuffix(".json")[:20] for k in keys})[:5])
        return UsageError(f"{self._ref} fits {len(keys)} manifests", hint=f"append # and one of: {some}")

    def _read(self, key: str) -> dict[str, Any]:
        raw = self._store.get(key)
        if f"{hashlib.sha256(raw).hexdigest()}.json" != key.rpartition("/")[2]:
            raise CorruptError("the manifest's content is not what its name says", place=f"{self._ref} {key}")
        try:
            manifest = json.loads(raw)
        except (ValueError, RecursionError) as exc:
            raise CorruptError(f"the manifest is not JSON: {exc}", place=f"{self._ref} {key}") from exc
        if not isinstance(manifest, dict) or manifest.get("version") != VERSION:
            hint = "update goldenctl: the archive may be written by a newer one"
            raise CorruptError(f"the manifest is not of version {VERSION}", place=f"{self._ref} {key}", hint=hint)
        return manifest

    def _keys(self) -> list[str]:
        keys = [k for k in self._store.names("manifests/") if k.count("/") == 3 and k.endswith(".json")]
        found = [k for k in keys if self._fits(k)]
        if not found:
            runs = ", ".join(sorted({k.split("/")[2] for k in keys})[:5])
            hint = f"it holds {runs}" if runs else "goldenctl archive --from-job REF --to DIR"
            raise NotFoundError("no such run in the archive", place=self._ref, hint=hint)
        return found

    def _fits(self, key: str) -> bool:
        _, _, run, name = key.split("/")
        wanted = self._wanted
        return not wanted or run == plain(wanted) or (len(wanted) >= 8 and name.startswith(wanted))

    def fetch(self, artifacts: Sequence[Artifact]) -> Iterator[Fetched]:
        """Read members and check each against its digest, side by side."""
        if not self._members:
            self.describe()
        return fetch_all(self._fetch, artifacts, self._options)

    def _fetch(self, artifact: Artifact) -> Fetched:
        found: list[Member] = []
        problems: list[SourceProblem] = []
        for entry in self._members.get(artifact.id, ()):
            try:
                found.append(self._member(entry))
            except SourceError as exc:
                problems.append(problem(artifact.name, exc))
        return Fetched(artifact, tuple(found), tuple(problems), sum(len(m.content) for m in found))

    def _member(self, entry: Mapping[str, Any]) -> Member:
        try:
            content = _verified(self._store, entry["sha256"], entry["name"])
        except NotFoundError as exc:
            raise NotFoundError("its content is not in the archive", place=entry["name"], hint="archive the run again") from exc
        return Member(entry["name"], content, entry["replicate"])


def _check(entry: Mapping[str, Any]) -> None:
    """Refuse an entry that is not of the known form: a manifest may come from anywhere.

    Raises
    ------
    ValueError
        With what is wrong.
    """
    if not all(isinstance(entry[name], str) for name in ("name", "sha256", "replicate")):
        raise ValueError("a member's field is no text")
    if not re.fullmatch(r"[0-9a-f]{64}", entry["sha256"]):
        raise ValueError(f"{entry['sha256'][:80]!r} is no digest")


def _run(said: Mapping[str, Any], ref: str, artifacts: tuple[Artifact, ...]) -> Run:
    return Run(
        ref,
        said["provider"],
        said["id"],
        said["attempt"],
        said["commit"],
        said["branch"],
        Conclusion(said["conclusion"]),
        time_of(said["started_at"]),
        time_of(said["completed_at"]),
        said["url"],
        said["repository"],
        tuple(_job(j) for j in said["jobs"]),
        artifacts,
    )


def _artifact(said: Mapping[str, Any]) -> Artifact:
    job = _job(said["job"]) if said["job"] else None
    created = time_of(said["created_at"])
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
        time_of(said["started_at"]),
        time_of(said["completed_at"]),
        said["url"],
        said["allow_failure"],
    )
