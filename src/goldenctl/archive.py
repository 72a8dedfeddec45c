"""Keep the golden members of a run after the CI has deleted its artifacts.

An archive holds ``objects/{sha256}`` with the members' bytes and ``manifests/{provider}/{id}/{digest}.json``
that says which member came from which artifact, job and attempt. Both are content-addressed and
written once, so that archiving a run twice, or side by side, changes nothing. The reference a run was
named by is not kept, so that ``github:N`` and its URL are one run.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from goldenctl.model import Artifact, Fetched, Job, Run
from goldenctl.sources.archive import VERSION
from goldenctl.sources.objects import ObjectStore, plain


@dataclass(frozen=True, slots=True)
class Archived:
    """What archiving a run did."""

    manifest: str
    """Key of the manifest; empty when the run has no golden members, and then nothing is stored."""
    members: int
    """Golden members the manifest names."""
    stored: int
    """Objects that were not in the archive before."""
    size: int
    """Bytes of these objects."""


def store_run(store: ObjectStore, run: Run, fetched: Iterable[Fetched]) -> Archived:
    """Store a run's golden members and its manifest.

    Raises
    ------
    RepoError, SourceError
        The archive, a folder or a bucket, cannot be written; objects already stored stay and are found again.
    """
    entries: list[dict[str, Any]] = []
    stored = size = 0
    for item in fetched:
        for member in item.members:
            digest = hashlib.sha256(member.content).hexdigest()
            if store.put_once(f"objects/{digest}", member.content):
                stored, size = stored + 1, size + len(member.content)
            entry = {"name": member.name, "sha256": digest, "size": len(member.content), "replicate": member.replicate}
            entries.append(entry | {"artifact": _artifact(item.artifact)})
    entries.sort(key=lambda e: (e["artifact"]["name"], e["artifact"]["id"], e["name"]))
    text = json.dumps({"version": VERSION, "run": _run(run), "members": entries}, indent=1, sort_keys=True).encode()
    if not entries:
        return Archived("", 0, 0, 0)
    key = f"manifests/{run.provider}/{plain(run.id)}/{hashlib.sha256(text).hexdigest()}.json"
    store.put_once(key, text)
    return Archived(key, len(entries), stored, size)


def _run(run: Run) -> dict[str, Any]:
    names = ("provider", "id", "attempt", "commit", "branch", "url", "repository")
    out: dict[str, Any] = {n: getattr(run, n) for n in names}
    out |= {"conclusion": run.conclusion.value, "started_at": _time(run.started_at), "completed_at": _time(run.completed_at)}
    return out | {"jobs": [_job(j) for j in run.jobs]}


def _artifact(artifact: Artifact) -> dict[str, Any]:
    job = _job(artifact.job) if artifact.job else None
    names = ("id", "name", "size", "sha256", "attempt")
    return {n: getattr(artifact, n) for n in names} | {"created_at": _time(artifact.created_at), "job": job}


def _job(job: Job) -> dict[str, Any]:
    names = ("id", "name", "model", "test_case", "environment", "platform", "attempt", "url", "allow_failure")
    out: dict[str, Any] = {n: getattr(job, n) for n in names}
    times = {"started_at": _time(job.started_at), "completed_at": _time(job.completed_at)}
    return out | {"conclusion": job.conclusion.value} | times


def _time(value: datetime | None) -> str | None:
    return value.isoformat() if value else None
