"""Runs as GitHub's REST API describes them, small enough to write by hand in a test."""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

RUN = 34695381473
SHA = "0123456789abcdef0123456789abcdef01234567"


def at(clock: str) -> str:
    """A time of the run's day: ``at("10:05")`` or ``at("10:05:30")``."""
    return f"2026-05-01T{clock if clock.count(':') == 2 else clock + ':00'}Z"


def run(**more: Any) -> dict[str, Any]:
    """A completed run in its first attempt."""
    base = {
        "id": RUN, "run_attempt": 1, "head_sha": SHA, "head_branch": "pull-request/7", "status": "completed",
        "conclusion": "success", "run_started_at": at("10:00"), "created_at": at("10:00"), "updated_at": at("11:00"),
        "html_url": f"https://github.com/o/r/actions/runs/{RUN}", "repository": {"full_name": "o/r"}, "name": "CICD",
    }  # fmt: skip
    return base | more


def job(number: int, name: str, start: str = "10:00", end: str | None = "10:30", **more: Any) -> dict[str, Any]:
    """A job that succeeded in attempt 1; without an end it is in progress."""
    base = {
        "id": number, "run_id": RUN, "name": name, "run_attempt": 1, "started_at": at(start), "created_at": at(start),
        "completed_at": at(end) if end else None, "status": "completed" if end else "in_progress",
        "conclusion": "success" if end else None, "labels": ["self-hosted"], "workflow_name": "CICD Megatron-LM",
        "html_url": f"https://github.com/o/r/actions/runs/{RUN}/job/{number}",
    }  # fmt: skip
    return base | more


def artifact(number: int, case: str, created: str, *, name: str = "", size: int = 1000, **more: Any) -> dict[str, Any]:
    """An artifact of a case's job, with a uuid made from its number; a ``name`` is taken as it is."""
    base = {
        "id": number, "name": name or artifact_name(case, number), "size_in_bytes": size, "expired": False,
        "created_at": at(created), "expires_at": "2026-08-01T00:00:00Z",
        "archive_download_url": f"https://api.github.com/repos/o/r/actions/artifacts/{number}/zip",
    }  # fmt: skip
    return base | more


def artifact_name(case: str, number: int) -> str:
    """``logs-{case}-{run}-{uuid}``."""
    return f"logs-{case}-{RUN}-{uuid.uuid5(uuid.NAMESPACE_OID, str(number))}"


def record(
    folder: Path,
    said: Mapping[str, Any],
    jobs: Sequence[Mapping[str, Any]],
    artifacts: Sequence[Mapping[str, Any]],
    zips: Mapping[int, bytes],
) -> Path:
    """Write a recorded run; artifacts get the size and digest of their zips."""
    folder.mkdir(parents=True, exist_ok=True)
    listed = []
    for entry in artifacts:
        raw = zips.get(entry["id"])
        if raw is not None:
            (folder / f"{entry['id']}.zip").write_bytes(raw)
            digest = f"sha256:{hashlib.sha256(raw).hexdigest()}"
            listed.append({"digest": digest, **entry, "size_in_bytes": len(raw)})
        else:
            listed.append(dict(entry))
    (folder / "run.json").write_text(json.dumps(said))
    (folder / "jobs.json").write_text(json.dumps({"total_count": len(jobs), "jobs": list(jobs)}))
    (folder / "artifacts.json").write_text(json.dumps(listed))
    return folder
