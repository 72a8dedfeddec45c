"""Pipelines, bridges and jobs of GitLab, put into the double."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from tests.doubles.gitlab import GitlabDouble, Project
from tests.sources.conftest import Taken
from tests.sources.zips import GOLDEN, zipped_at

TOKEN = "glpat-secretsecret"
GROUP = "dl/team/megatron"
SHA = "0123456789abcdef0123456789abcdef01234567"
FOLDER = "results/iteration={}/restart={}/assets/basic/{}/golden_values_dev_dgx_h100.json"
Take = Callable[..., Taken]


def at(clock: str) -> str:
    return f"2026-05-01T{clock}:00.000Z"


def when(clock: str) -> datetime:
    return datetime.fromisoformat(at(clock)).astimezone(UTC)


def job(number: int, model: str, case: str, start: str = "10:00", end: str | None = "11:00", **more: Any) -> dict[str, Any]:
    done = {"status": "success" if end else "running", "started_at": at(start), "finished_at": at(end) if end else None}
    return {"id": number, "stage": model, "name": case, **done, **more}


def bridge(
    double: GitlabDouble, number: int, name: str, project: Project | None, pipeline: int = 0, **more: Any
) -> dict[str, Any]:
    started = None
    if project is not None:
        url = f"{double.url}/{project.path}/-/pipelines/{pipeline}"
        started = {"id": pipeline, "project_id": project.number, "status": "success", "web_url": url}
    return {"id": number, "name": name, "stage": "functional", "status": "success", "downstream_pipeline": started, **more}


def packed(case: str, content: bytes = GOLDEN, iteration: int = 0, restart: int = 0) -> bytes:
    folder = f"{case}_dev_dgx_h100".replace("_", "-").lower()
    return zipped_at({FOLDER.format(iteration, restart, folder): when("10:30")}, content)


def parent(double: GitlabDouble, **more: Any) -> Project:
    """Pipeline 1 with one child pipeline 2 for dev on h100."""
    project = double.project(42, GROUP)
    project.pipelines = {1: {"sha": SHA, "ref": "main", "started_at": at("09:00"), **more}, 2: {}}
    project.bridges = {1: [bridge(double, 900, "functional:run_dev_dgx_h100", project, 2)]}
    project.jobs = {2: []}
    return project


def deliver(double: GitlabDouble, project: Project, said: dict[str, Any], raw: bytes, pipeline: int = 2) -> None:
    double.zips[said["id"]] = raw
    project.jobs.setdefault(pipeline, []).append(said)
