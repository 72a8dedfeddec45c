"""GitHub Actions on loopback: the REST API on one port, blob storage on another.

Answers have the form of GitHub's OpenAPI description (see ``openapi/``, checked by a test): pages with
``Link``, a 302 to a signed link that lives for some time, ETags, rate limits, expiry, attempts.

From a shell: ``python -m tests.doubles.github --repository O/R --run DIR_OR_SPEC --port-file F`` serves
a recorded run's folder, or the run a JSON file specifies (``{"jobs": 500, "logs_bytes": 20000000}``),
until it is stopped; ``F`` then holds the API's port.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import json
import random
import re
import secrets
import threading
import time
import zipfile
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.doubles import server
from tests.doubles.openapi import filled
from tests.doubles.server import Change, Reply, Request, Service, links, ranged, status

Said = dict[str, Any]
LINK_SECONDS = 60.0
"""How long a signed link lives."""


class GithubDouble:
    """The service with one repository.

    Parameters
    ----------
    repository
        ``owner/name``.
    token
        The only token accepted; empty means that no token is looked at.
    latency
        Seconds before each answer of either host.
    private
        Without a token there is no such repository.
    """

    def __init__(self, repository: str = "o/r", *, token: str = "", latency: float = 0.0, private: bool = False) -> None:
        self.repository = repository
        self.renamed_from = ""
        """A former ``owner/name`` that answers with 301."""
        self.token = token
        self.private = private
        self.page_size = 100
        """Most items of a page, whatever a client asks for."""
        self.honours_ranges = True
        self.runs: dict[int, Said] = {}
        self.jobs: dict[int, list[Said]] = {}
        self.artifacts: dict[int, list[Said]] = {}
        self.zips: dict[int, bytes | memoryview] = {}
        self.logs: dict[int, bytes] = {}
        self._links: dict[str, tuple[str, float]] = {}
        self._lock = threading.Lock()
        self.api = Service(self._answer, latency=latency)
        self.blob = Service(self._blob, latency=latency)
        self._routes: Sequence[tuple[re.Pattern[str], Callable[..., Reply]]] = [
            (re.compile(pattern), handler)
            for pattern, handler in (
                (r"actions/runs/(\d+)", self._run),
                (r"actions/runs/(\d+)/attempts/(\d+)", self._run),
                (r"actions/runs/(\d+)/jobs", self._jobs),
                (r"actions/runs/(\d+)/artifacts", self._artifacts),
                (r"actions/artifacts/(\d+)/zip", self._zip),
                (r"actions/jobs/(\d+)/logs", self._log),
            )
        ]

    @property
    def url(self) -> str:
        """The API's address."""
        return self.api.url

    def close(self) -> None:
        """Stop both hosts."""
        self.api.close()
        self.blob.close()

    def add(self, run: Said, jobs: Sequence[Said], artifacts: Sequence[Said], zips: Mapping[int, bytes | memoryview]) -> None:
        """Add a run; artifacts get the size of their zips, and their digest unless they say another."""
        number = run["id"]
        self.runs[number] = run
        self.jobs[number] = list(jobs)
        self.artifacts[number] = [
            {**_measured(zips[a["id"]]), **a, "size_in_bytes": len(zips[a["id"]])} if a["id"] in zips else dict(a)
            for a in artifacts
        ]
        self.zips |= zips

    def add_recorded(self, folder: Path) -> None:
        """Add a run from a folder with ``run.json``, ``jobs.json``, ``artifacts.json`` and ``{id}.zip``."""
        run, jobs, artifacts = (json.loads((folder / f"{n}.json").read_bytes()) for n in ("run", "jobs", "artifacts"))
        jobs = jobs["jobs"] if isinstance(jobs, dict) else jobs
        artifacts = artifacts["artifacts"] if isinstance(artifacts, dict) else artifacts
        zips = {int(p.stem): p.read_bytes() for p in folder.glob("*.zip") if p.stem.isdecimal()}
        self.add(run, jobs, artifacts, zips)
        self.logs |= {int(p.stem): p.read_bytes() for p in folder.glob("*.log") if p.stem.isdecimal()}

    def add_made(self, spec: Mapping[str, Any]) -> None:
        """Add a made run of ``jobs`` jobs, each with a golden file and ``logs_bytes`` bytes that do not compress."""
        number = int(spec.get("run", 34695381473))
        raw = memoryview(_made_zip(int(spec.get("logs_bytes", 0)), int(spec.get("steps", 50))))
        measured = _measured(raw)
        start, end = "2026-05-01T10:00:00Z", "2026-05-01T10:30:00Z"
        names = [f"made_case_{i:04}" for i in range(int(spec["jobs"]))]
        self.runs[number] = {"id": number, "run_attempt": 1, "status": "completed", "conclusion": "success",
                             "head_sha": "0" * 40, "run_started_at": start, "updated_at": end}  # fmt: skip
        self.jobs[number] = [
            {"id": 1000 + i, "name": f"gpt/{n} - latest", "run_attempt": 1, "status": "completed", "conclusion": "success",
             "started_at": start, "completed_at": end} for i, n in enumerate(names)
        ]  # fmt: skip
        self.artifacts[number] = [
            {"id": 5000 + i, "name": f"logs-{n}-{number}-00000000-0000-4000-8000-{i:012x}",
             "created_at": "2026-05-01T10:29:00Z", **measured} for i, n in enumerate(names)
        ]  # fmt: skip
        self.zips |= dict.fromkeys((5000 + i for i in range(len(names))), raw)

    def _answer(self, request: Request) -> Reply:
        reply = self._routed(request)
        remaining = {
            "X-RateLimit-Limit": "5000",
            "X-RateLimit-Remaining": "4987",
            "X-RateLimit-Reset": str(int(time.time()) + 3600),
        }
        reply.headers = {"X-GitHub-Media-Type": "github.v3; format=json", **remaining, **reply.headers}
        return reply

    def _routed(self, request: Request) -> Reply:
        path = request.path.removeprefix("/api/v3")
        refused = self._refused(request)
        if refused:
            return refused
        former = f"/repos/{self.renamed_from}/"
        if self.renamed_from and path.startswith(former):
            query = "&".join(f"{k}={v}" for k, v in request.query.items())
            target = f"{self.url}/repositories/1/{path.removeprefix(former)}" + (f"?{query}" if query else "")
            return _json({"message": "Moved Permanently", "url": target}, 301, {"Location": target})
        for prefix in (f"/repos/{self.repository}/", "/repositories/1/"):
            if path.startswith(prefix):
                for pattern, handler in self._routes:
                    match = pattern.fullmatch(path.removeprefix(prefix))
                    if match:
                        return handler(request, *map(int, match.groups()))
        return _not_found()

    def _refused(self, request: Request) -> Reply | None:
        if request.token and self.token and request.token != self.token:
            return _json(
                {"message": "Bad credentials", "documentation_url": "https://docs.github.com/rest", "status": "401"}, 401
            )
        if self.private and not request.token:
            return _not_found()
        return None

    def _run(self, request: Request, number: int, attempt: int = 0) -> Reply:
        run = self.runs.get(number)
        if run is None or attempt > run.get("run_attempt", 1):
            return _not_found()
        said = self._full_run(run)
        if attempt:
            said |= {"run_attempt": attempt} | run.get("attempts", {}).get(str(attempt), {})
        return _kept(request, said)

    def _jobs(self, request: Request, number: int) -> Reply:
        if number not in self.runs:
            return _not_found()
        jobs = [self._full_job(number, j) for j in self.jobs[number]]
        if request.query.get("filter", "latest") == "latest":
            latest = self.runs[number].get("run_attempt", 1)
            jobs = [j for j in jobs if j["run_attempt"] == latest]
        return self._page(request, "jobs", jobs)

    def _artifacts(self, request: Request, number: int) -> Reply:
        if number not in self.runs:
            return _not_found()
        return self._page(request, "artifacts", [self._full_artifact(number, a) for a in self.artifacts[number]])

    def _page(self, request: Request, key: str, items: Sequence[Said]) -> Reply:
        size = min(int(request.query.get("per_page", 30)), self.page_size)
        number = int(request.query.get("page", 1))
        pages = max(-(-len(items) // size), 1)
        reply = _kept(request, {"total_count": len(items), key: items[(number - 1) * size : number * size]})
        link = links(self.url + request.path, request.query, number, pages)
        if link:
            reply.headers["Link"] = link
        return reply

    def _zip(self, request: Request, number: int) -> Reply:
        artifact = next((a for listed in self.artifacts.values() for a in listed if a["id"] == number), None)
        if artifact is None:
            return _not_found()
        if self.token and not request.token:
            return _json({"message": "Requires authentication", "status": "401"}, 401)
        if artifact.get("expired") or number not in self.zips:
            return _json(
                {"message": "Artifact has expired", "documentation_url": "https://docs.github.com", "status": "410"}, 410
            )
        return self._signed(f"/zip/{number}")

    def _log(self, _request: Request, number: int) -> Reply:
        return self._signed(f"/log/{number}") if number in self.logs else _not_found()

    def _signed(self, path: str) -> Reply:
        """A redirect to the blob host, good for a while and for whoever has it."""
        signature = secrets.token_hex(8)
        with self._lock:
            self._links[signature] = (path, time.monotonic() + LINK_SECONDS)
        return Reply(302, b"", {"Location": f"{self.blob.url}{path}?se=2026&sig={signature}"})

    def _blob(self, request: Request) -> Reply:
        path, until = self._links.get(request.query.get("sig", ""), ("", 0.0))
        if path != request.path or time.monotonic() > until or request.headers.get("Authorization"):
            return Reply(
                403,
                b"<?xml version='1.0'?><Error><Code>AuthenticationFailed</Code></Error>",
                {"Content-Type": "application/xml"},
            )
        kind, _, number = path[1:].partition("/")
        if kind == "log":
            return Reply(200, self.logs[int(number)], {"Content-Type": "text/plain"})
        return ranged(self.zips[int(number)], request.headers.get("Range") if self.honours_ranges else None)

    def _full_run(self, said: Said) -> Said:
        number = said["id"]
        base = f"{self.url}/repos/{self.repository}/actions/runs/{number}"
        repository = filled(
            "run", "minimal-repository", {"name": self.repository.partition("/")[2], "full_name": self.repository}
        )
        own = {"url": base, "jobs_url": f"{base}/jobs", "artifacts_url": f"{base}/artifacts", "repository": repository}
        web = f"https://github.com/{self.repository}/actions/runs/{number}"
        rest = {k: v for k, v in said.items() if k != "attempts"}
        times = {"created_at": "2026-05-01T10:00:00Z", "updated_at": "2026-05-01T11:00:00Z"}
        done = {"status": "completed", "conclusion": "success", "head_sha": "0" * 40, "run_attempt": 1}
        return filled("run", "workflow-run", {"html_url": web, **times, **done, **rest, **own})

    def _full_job(self, run: int, said: Said) -> Said:
        url = f"{self.url}/repos/{self.repository}/actions/jobs/{said['id']}"
        web = f"https://github.com/{self.repository}/actions/runs/{run}/job/{said['id']}"
        base = {"run_id": run, "run_attempt": 1, "workflow_name": "CICD Megatron-LM", "created_at": said["started_at"]}
        return filled("jobs", "job", {**base, "html_url": web, **said, "url": url})

    def _full_artifact(self, run: int, said: Said) -> Said:
        url = f"{self.url}/repos/{self.repository}/actions/artifacts/{said['id']}"
        head = {"id": run, "repository_id": 1, "head_repository_id": 1, "head_branch": "main", "head_sha": "0" * 40}
        own = {"url": url, "archive_download_url": f"{url}/zip"}
        return filled("artifacts", "artifact", {"expired": False, "size_in_bytes": 0, "workflow_run": head, **said, **own})


def _measured(raw: bytes | memoryview) -> Said:
    return {"size_in_bytes": len(raw), "digest": f"sha256:{hashlib.sha256(raw).hexdigest()}"}


def _json(said: Any, code: int = 200, headers: Mapping[str, str] | None = None) -> Reply:
    return Reply(code, json.dumps(said).encode(), {"Content-Type": "application/json; charset=utf-8", **(headers or {})})


def _not_found() -> Reply:
    return _json({"message": "Not Found", "documentation_url": "https://docs.github.com/rest", "status": "404"}, 404)


def _kept(request: Request, said: Any) -> Reply:
    """An answer with an ETag, or 304 for who has it."""
    reply = _json(said)
    etag = f'W/"{hashlib.sha256(bytes(reply.body)).hexdigest()}"'
    reply.headers |= {
        "ETag": etag,
        "Cache-Control": "private, max-age=60, s-maxage=60",
        "Vary": "Accept, Authorization, Cookie",
    }
    if request.headers.get("If-None-Match") == etag:
        return Reply(304, b"", reply.headers)
    return reply


def primary_limit(seconds: float) -> Change:
    """The hourly limit is used up for some seconds more."""
    message = json.dumps({"message": "API rate limit exceeded for user ID 1."}).encode()

    def change(_request: Request, _reply: Reply) -> Reply:
        reset_at = str(int(datetime.now(UTC).timestamp() + seconds))
        return Reply(403, message, {"X-RateLimit-Limit": "5000", "X-RateLimit-Remaining": "0", "X-RateLimit-Reset": reset_at})

    return change


def secondary_limit(retry_after: int | None) -> Change:
    """Too many requests at once."""
    message = json.dumps(
        {"message": "You have exceeded a secondary rate limit. Please wait a few minutes before you try again."}
    ).encode()
    return status(403, message, {} if retry_after is None else {"Retry-After": str(retry_after)})


def refusal(argument: str) -> Change:
    """A 403 for single sign-on (``sso``) or a missing scope (``scope``)."""
    headers = {"X-GitHub-SSO": "required; url=https://github.com/orgs/o/sso"}
    if argument == "scope":
        headers = {"X-Accepted-OAuth-Scopes": "repo", "X-OAuth-Scopes": "gist"}
    return status(403, b'{"message": "Resource not accessible by personal access token"}', headers)


FAULTS: Mapping[str, Callable[[str], Change]] = {
    **server.FAULTS,
    "primary": lambda argument: primary_limit(float(argument)),
    "secondary": lambda argument: secondary_limit(int(argument) if argument else None),
    "refusal": refusal,
}
"""Kinds of ``--fault PATTERN=KIND[:ARGUMENT][*TIMES]``."""


def _made_zip(logs_bytes: int, steps: int) -> bytes:
    values = {str(i): 10.5 - i / 100 for i in range(1, steps + 1)}
    block = {"start_step": 1, "end_step": steps, "step_interval": 1, "values": values}
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        golden = json.dumps({"lm loss": block}, indent=4)
        archive.writestr("golden_values_dev_dgx_h100.json", golden, zipfile.ZIP_DEFLATED)
        archive.writestr("logs/1/attempt_0/0/stdout.log", random.Random(0).randbytes(logs_bytes))
    return buffer.getvalue()


def main() -> None:
    """Serve until stopped."""
    parser = argparse.ArgumentParser(prog="python -m tests.doubles.github")
    parser.add_argument("--repository", default="o/r")
    parser.add_argument("--run", action="append", type=Path, required=True, help="a recorded run's folder, or a JSON file")
    parser.add_argument("--port-file", type=Path, required=True)
    parser.add_argument("--token", default="")
    parser.add_argument("--private", action="store_true")
    parser.add_argument("--no-ranges", action="store_true")
    parser.add_argument("--renamed-from", default="", metavar="O/R")
    parser.add_argument("--latency", type=float, default=0.0, help="milliseconds")
    parser.add_argument("--fault", action="append", default=[], metavar="PATTERN=KIND[:ARGUMENT][*TIMES]")
    given = parser.parse_args()
    double = GithubDouble(given.repository, token=given.token, latency=given.latency / 1000, private=given.private)
    double.honours_ranges = not given.no_ranges
    for path in given.run:
        double.add_recorded(path) if path.is_dir() else double.add_made(json.loads(path.read_bytes()))
    double.renamed_from = given.renamed_from
    for text in given.fault:
        server.plant((double.api, double.blob), text, FAULTS)
    server.serve(double.api.port, given.port_file)


if __name__ == "__main__":
    main()
