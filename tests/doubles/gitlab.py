"""GitLab on loopback: the parts of the v4 API that pipelines need, and object storage on another port.

From a shell: ``python -m tests.doubles.gitlab --spec FILE --port-file F`` serves what a JSON file holds,
``{"projects": [{"number", "path", "pipelines", "jobs", "bridges", …}], "zips": {job: path}}``, with ``{url}``
in the place of the host's address.
"""

from __future__ import annotations

import argparse
import json
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from tests.doubles import server
from tests.doubles.server import Reply, Request, Service, ranged

Said = dict[str, Any]


@dataclass
class Project:
    """One project and what its pipelines hold."""

    number: int
    path: str
    closed: bool = False
    """The token has no access: 403, or 404 as for private projects when ``hidden``."""
    hidden: bool = False
    pipelines: dict[int, Said] = field(default_factory=dict)
    jobs: dict[int, list[Said]] = field(default_factory=dict)
    """Pipeline → its jobs, retried ones marked ``retried``."""
    bridges: dict[int, list[Said]] = field(default_factory=dict)


class GitlabDouble:
    """One host with some projects.

    Parameters
    ----------
    token
        The only token accepted, as ``PRIVATE-TOKEN`` or ``JOB-TOKEN``.
    prefix
        Path below which the installation lies, e.g. ``/gitlab``.
    tls
        A server context for https.
    """

    def __init__(self, token: str = "", prefix: str = "", tls: Any = None) -> None:
        self.token = token
        self.prefix = prefix
        self.page_size = 100
        self.direct = False
        """Artifacts come from the API itself instead of a storage."""
        self.projects: list[Project] = []
        self.zips: dict[int, bytes] = {}
        self._signatures: set[str] = set()
        self.api = Service(self._answer, tls=tls)
        self.blob = Service(self._blob)

    @property
    def url(self) -> str:
        """The host's address."""
        return self.api.url + self.prefix

    def close(self) -> None:
        """Stop both hosts."""
        self.api.close()
        self.blob.close()

    def project(self, number: int, path: str, **more: Any) -> Project:
        """Add a project."""
        self.projects.append(Project(number, path, **more))
        return self.projects[-1]

    def _answer(self, request: Request) -> Reply:
        if self.token and request.token != self.token:
            return _json({"message": "401 Unauthorized"}, 401)
        parts = request.path.removeprefix(self.prefix).split("/")
        if parts[:4] != ["", "api", "v4", "projects"] or len(parts) < 6:
            return _json({"message": "404 Not Found"}, 404)
        name, rest = unquote(parts[4]), parts[5:]
        project = next((p for p in self.projects if name in (str(p.number), p.path)), None)
        if project is None or project.hidden:
            return _json({"message": "404 Project Not Found"}, 404)
        if project.closed:
            return _json({"message": "403 Forbidden"}, 403)
        match rest:
            case ["pipelines", number] if int(number) in project.pipelines:
                return _json(self._pipeline(project, int(number)))
            case ["pipelines", number, "jobs"] if int(number) in project.pipelines:
                jobs = [self._job(project, int(number), j) for j in project.jobs.get(int(number), [])]
                if request.query.get("include_retried", "").lower() != "true":
                    jobs = [j for j in jobs if not j.get("retried")]
                return self._page(request, jobs)
            case ["pipelines", number, "bridges"] if int(number) in project.pipelines:
                return self._page(request, project.bridges.get(int(number), []))
            case ["jobs", number, *more]:
                return self._one_job(request, project, int(number), more)
        return _json({"message": "404 Not Found"}, 404)

    def _one_job(self, request: Request, project: Project, number: int, more: Sequence[str]) -> Reply:
        found = [(p, j) for p, jobs in project.jobs.items() for j in jobs if j["id"] == number]
        if found and not more:
            return _json(self._job(project, *found[0]))
        if not found or list(more) != ["artifacts"] or number not in self.zips:
            return _json({"message": "404 Not Found"}, 404)
        if self.direct:
            return ranged(self.zips[number], request.headers.get("Range"))
        signature = secrets.token_hex(8)
        self._signatures.add(signature)
        return Reply(302, b"", {"Location": f"{self.blob.url}/artifacts/{number}?X-Amz-Signature={signature}"})

    def _blob(self, request: Request) -> Reply:
        if request.query.get("X-Amz-Signature") not in self._signatures or request.token:
            return Reply(403, b"<Error><Code>AccessDenied</Code></Error>")
        return ranged(self.zips[int(request.path.rpartition("/")[2])], request.headers.get("Range"))

    def _page(self, request: Request, items: Sequence[Said]) -> Reply:
        size = min(int(request.query.get("per_page", 20)), self.page_size)
        number = int(request.query.get("page", 1))
        pages = max(-(-len(items) // size), 1)
        following = str(number + 1) if number < pages else ""
        headers = {"X-Page": str(number), "X-Per-Page": str(size), "X-Total": str(len(items)), "X-Total-Pages": str(pages)}
        headers |= {"X-Next-Page": following, "X-Prev-Page": str(number - 1) if number > 1 else ""}
        if following:
            query = "&".join(f"{k}={v}" for k, v in {**request.query, "page": following}.items())
            headers["Link"] = f'<{self.api.url}{request.path}?{query}>; rel="next"'
        return _json(items[(number - 1) * size : number * size], headers=headers)

    def _pipeline(self, project: Project, number: int) -> Said:
        url = f"{self.url}/{project.path}/-/pipelines/{number}"
        return {"id": number, "project_id": project.number, "status": "success", "web_url": url, **project.pipelines[number]}

    def _job(self, project: Project, pipeline: int, said: Said) -> Said:
        raw = self.zips.get(said["id"])
        file = {"artifacts_file": {"filename": "artifacts.zip", "size": len(raw)}} if raw is not None else {}
        own = {"web_url": f"{self.url}/{project.path}/-/jobs/{said['id']}", "pipeline": {"id": pipeline}}
        return {"allow_failure": False, **file, **own, **said}


def _json(said: Any, code: int = 200, headers: Mapping[str, str] | None = None) -> Reply:
    return Reply(code, json.dumps(said).encode(), {"Content-Type": "application/json", **(headers or {})})


def load(double: GitlabDouble, spec: Path) -> None:
    """Fill a double from a JSON file."""
    said = json.loads(spec.read_text().replace("{url}", double.url))
    for entry in said["projects"]:
        made = double.project(entry["number"], entry["path"], closed=entry.get("closed", False))
        for name in ("pipelines", "jobs", "bridges"):
            getattr(made, name).update({int(n): x for n, x in entry.get(name, {}).items()})
    double.zips = {int(n): (spec.parent / path).read_bytes() for n, path in said["zips"].items()}


def main() -> None:
    """Serve until stopped."""
    parser = argparse.ArgumentParser(prog="python -m tests.doubles.gitlab")
    parser.add_argument("--spec", type=Path, required=True)
    parser.add_argument("--port-file", type=Path, required=True)
    parser.add_argument("--token", default="")
    parser.add_argument("--fault", action="append", default=[], metavar="PATTERN=KIND[:ARGUMENT][*TIMES]")
    given = parser.parse_args()
    double = GitlabDouble(given.token)
    load(double, given.spec)
    for text in given.fault:
        server.plant((double.api, double.blob), text, server.FAULTS)
    server.serve(double.api.port, given.port_file)


if __name__ == "__main__":
    main()
