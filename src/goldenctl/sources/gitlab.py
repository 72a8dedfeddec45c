"""Candidates from a GitLab pipeline and the pipelines its bridges started.

``https://HOST/GROUP/PROJECT/-/pipelines/N``, ``…/-/jobs/N``, ``gitlab:N``, or a bare ``N`` where the
settings say the provider. The parent pipeline's bridges ``functional:run_{environment}_{platform}`` lead
to child pipelines, some in other projects, whose jobs have the model as stage and the test case as name.
"""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from urllib.parse import urlsplit

from goldenctl.config import Settings
from goldenctl.errors import AuthError, CorruptError, NotFoundError, SourceError, UsageError
from goldenctl.model import Artifact, Conclusion, Fetched, Job, Run, SourceProblem
from goldenctl.sources import FetchOptions, Source, http, remote, time_of, waiting
from goldenctl.sources.artifact import problem
from goldenctl.sources.download import fetch_zip
from goldenctl.sources.gitlab_api import Api, Said
from goldenctl.sources.parallel import fetch_all

PUBLIC = "https://gitlab.com"
_URL = re.compile(r"(?P<base>https?://[^/]+)/(?P<project>.+?)/-/(?P<kind>pipelines|jobs)/(?P<number>\d+)/?(?:[?#].*)?")
_ENDPOINTS = ("GITLAB_ENDPOINT", "CI_SERVER_URL")
_SHORT = re.compile(r"(?:gitlab:)?(?P<number>\d+)")
_BRIDGE = re.compile(r"functional:run_(?P<environment>[a-z]+)_(?P<platform>[a-z0-9]+_[a-z0-9_]+)")
_FUNCTIONAL = "functional:"
_PLACEHOLDER = "empty-pipeline-placeholder-job"
_CONCLUSIONS = {
    "success": Conclusion.SUCCESS,
    "failed": Conclusion.FAILURE,
    "canceled": Conclusion.CANCELLED,
    "skipped": Conclusion.SKIPPED,
    "manual": Conclusion.SKIPPED,
    "created": Conclusion.RUNNING,
    "pending": Conclusion.RUNNING,
    "preparing": Conclusion.RUNNING,
    "waiting_for_resource": Conclusion.RUNNING,
    "scheduled": Conclusion.RUNNING,
    "running": Conclusion.RUNNING,
    "canceling": Conclusion.RUNNING,
}


@dataclass(frozen=True, slots=True)
class Reference:
    """A reference in its parts."""

    shown: str
    """The reference without user, query and fragment."""
    url: str
    """Address of the host."""
    project: str
    """Id or path."""
    number: int
    is_job: bool
    headers: Mapping[str, str]
    """The header with the token; never shown."""


@dataclass(frozen=True, slots=True)
class _Child:
    """A pipeline with jobs, as a bridge or the user names it."""

    project: str
    number: int
    environment: str = ""
    platform: str = ""
    shown: str = ""
    """The project as the user knows it."""


def open(ref: str, settings: Settings, options: FetchOptions) -> Source:
    """The source of a pipeline or job.

    Raises
    ------
    UsageError
        The reference is not of the known form, or nothing says the project.
    """
    return GitlabSource(parse(ref, settings), options)


def parse(ref: str, settings: Settings) -> Reference:
    """A reference in its parts, completed from settings, environment and remote.

    Raises
    ------
    UsageError
        As :func:`open`.
    """
    own, path = _endpoint(settings), remote.path_of(settings.top)
    if own and _token() and not http.same_origin(own, PUBLIC) and not remote.vouched(own, settings.top, *_ENDPOINTS):
        raise remote.refused(own, settings.source, _ENDPOINTS[0])
    match = _URL.fullmatch(re.sub(r"//[^/@]*@", "//", ref.strip()))
    if match is not None:
        base, project = match["base"], match["project"]
        below = urlsplit(own).path.strip("/")
        if below and own.startswith(f"{base}/") and project.startswith(f"{below}/"):
            base, project = own, project.removeprefix(f"{below}/")
        headers = _token() if _is_ours(base, own, settings) else {}
        return Reference(http.shown(ref), base, project, int(match["number"]), match["kind"] == "jobs", headers)
    short = _SHORT.fullmatch(ref.strip())
    if short is None:
        hint = "https://HOST/GROUP/PROJECT/-/pipelines/N, …/-/jobs/N or gitlab:N"
        raise UsageError(f"{http.shown(ref) if '://' in ref else ref} is no reference of a GitLab pipeline", hint=hint)
    project = settings.ci.project or os.environ.get("CI_PROJECT_ID") or path
    if not project:
        hint = 'give the pipeline\'s URL, or set project = "GROUP/PROJECT" in [tool.goldenctl.ci]'
        raise UsageError("nothing says which project the pipeline is of", hint=hint)
    host = remote.host_of(settings.top) if project == path else ""
    url = own or (f"https://{host}" if host else PUBLIC)
    return Reference(ref.strip(), url, project, int(short["number"]), False, _token())


def _endpoint(settings: Settings) -> str:
    """The configured host's address, empty when there is none; a bare host name means https."""
    named = settings.ci.api_url if settings.ci.provider == "gitlab" else ""
    named = named or next(filter(None, map(os.environ.get, _ENDPOINTS)), "")
    named = named.rstrip("/").removesuffix("/api/v4")
    return named if not named or "://" in named else f"https://{named}"


def _is_ours(base: str, own: str, settings: Settings) -> bool:
    """Whether a host named by a reference is one our token is for."""
    scheme, host, _ = http.origin(base)
    return http.same_origin(base, own or PUBLIC) or (scheme == "https" and host == remote.host_of(settings.top) != "")


def _token() -> dict[str, str]:
    private = os.environ.get("RO_API_TOKEN") or os.environ.get("GITLAB_TOKEN")
    if private:
        return {"PRIVATE-TOKEN": private}
    job = os.environ.get("CI_JOB_TOKEN")
    return {"JOB-TOKEN": job} if job else {}


class GitlabSource:
    """One pipeline with its child pipelines, or one job."""

    def __init__(self, reference: Reference, options: FetchOptions) -> None:
        self._reference = reference
        self._options = options
        patience = http.Patience(options.max_wait)
        self._storage = http.session(patience, options.workers)
        session = http.session(patience, options.workers, options.cache)
        self._api = Api(reference.url, reference.headers, session)
        self._projects: dict[str, str] = {}

    def describe(self) -> Run:
        """The pipeline with the jobs of its child pipelines in their newest attempt.

        Raises
        ------
        SourceError
            The pipeline itself cannot be had; a child that cannot is in ``Run.problems``.
        """
        return waiting.described(self._describe, wait=self._options.wait)

    def _describe(self) -> Run:
        reference = self._reference
        try:
            if reference.is_job:
                return self._one_job()
            pipeline = self._api.pipeline(reference.project, reference.number)
            children, problems = self._children(pipeline)
            jobs, artifacts = self._jobs(children, problems)
            return self._run(pipeline, jobs, artifacts, problems)
        except (KeyError, TypeError, ValueError, AttributeError) as exc:
            fact = f"the pipeline's description is not of the form of GitLab's API: {exc!r}"
            raise CorruptError(fact, place=reference.shown) from exc

    def _one_job(self) -> Run:
        said = self._api.job(self._reference.project, self._reference.number)
        pipeline = self._api.pipeline(self._reference.project, said["pipeline"]["id"])
        attempt = 1
        for attempts in _attempts(self._api.jobs(self._reference.project, pipeline["id"])).values():
            ids = [j["id"] for j in attempts]
            attempt = ids.index(said["id"]) + 1 if said["id"] in ids else attempt
        job = _job(said, _Child(self._reference.project, pipeline["id"]), attempt)
        self._projects[job.id] = self._reference.project
        artifact = _artifact(said, job)
        return self._run(pipeline, [job], [artifact] if artifact else [], [])

    def _children(self, pipeline: Said) -> tuple[list[_Child], list[SourceProblem]]:
        """The pipeline itself and what its functional bridges started."""
        own = _Child(self._reference.project, pipeline["id"])
        found: list[_Child] = []
        problems: list[SourceProblem] = []
        bridges = self._api.bridges(self._reference.project, pipeline["id"])
        waiting_for: list[str] = []
        for bridge in (b for b in bridges if b["name"].startswith(_FUNCTIONAL)):
            started = bridge.get("downstream_pipeline")
            if started:
                found.append(_child(bridge["name"], started, self._reference.project))
            elif _conclusion(bridge) is Conclusion.RUNNING:
                waiting_for.append(bridge["name"])
        if waiting_for:
            text = waiting.progress(waiting_for)
            problems.append(SourceProblem(f"pipeline {pipeline['id']}", "running", text, waiting.HINT))
        # A parent's own jobs are steps of the CI; a child pipeline has no functional bridges.
        return (found if any(b["name"].startswith(_FUNCTIONAL) for b in bridges) else [own]), problems

    def _jobs(self, children: Sequence[_Child], problems: list[SourceProblem]) -> tuple[list[Job], list[Artifact]]:
        """Jobs and artifacts of all children; a child that cannot be listed becomes a problem."""
        jobs: list[Job] = []
        artifacts: list[Artifact] = []
        for child in children:
            try:
                listed = self._api.jobs(child.project, child.number)
            except SourceError as exc:
                if child.number == self._reference.number:
                    raise
                problems.append(_unlisted(child, exc))
                continue
            for attempts in _attempts(listed).values():
                wanted = min(self._options.attempt or len(attempts), len(attempts))
                said = attempts[wanted - 1]
                job = _job(said, child, wanted)
                jobs.append(job)
                self._projects[job.id] = child.project
                artifact = _artifact(said, job)
                artifacts += [artifact] if artifact else []
        return jobs, artifacts

    def _run(self, pipeline: Said, jobs: list[Job], artifacts: list[Artifact], problems: list[SourceProblem]) -> Run:
        number = str(pipeline["id"])
        names = [j.name for j in jobs if j.conclusion is Conclusion.RUNNING]
        if names:
            problems.append(SourceProblem(f"pipeline {number}", "running", waiting.progress(names), waiting.HINT))
        url = pipeline.get("web_url") or ""
        return Run(
            self._reference.shown,
            "gitlab",
            number,
            max((j.attempt for j in jobs), default=1),
            pipeline.get("sha") or "",
            pipeline.get("ref") or "",
            _conclusion(pipeline),
            time_of(pipeline.get("started_at") or pipeline.get("created_at")),
            time_of(pipeline.get("finished_at")),
            url,
            _project_of(url) or self._reference.project,
            tuple(jobs),
            tuple(artifacts),
            tuple(problems),
        )

    def fetch(self, artifacts: Sequence[Artifact]) -> Iterator[Fetched]:
        """Fetch the golden members side by side, as they come."""
        return fetch_all(self._fetch, artifacts, self._options)

    def _fetch(self, artifact: Artifact) -> Fetched:
        project = self._projects.get(artifact.id, self._reference.project)
        since = artifact.job.started_at if artifact.job else None
        return fetch_zip(
            artifact, lambda: self._api.locate(project, artifact.id), self._storage, since=since, renamed=present_name
        )


def present_name(name: str) -> str:
    """The name a golden file of the past has today.

    >>> present_name("a/generations_dev_dgx_h100.json"), present_name("a/my_generations_x.json")
    ('a/golden_values_dev_dgx_h100.json', 'a/my_generations_x.json')
    """
    folder, slash, base = name.rpartition("/")
    return f"{folder}{slash}golden_values_{base.removeprefix('generations_')}" if base.startswith("generations_") else name


def _child(name: str, started: Said, project: str) -> _Child:
    match = _BRIDGE.fullmatch(name)
    path = _project_of(started.get("web_url") or "") or project
    environment, platform = match.groups() if match else ("", "")
    return _Child(str(started.get("project_id") or path), started["id"], environment, platform, path)


def _project_of(url: str) -> str:
    """``group/project`` of a pipeline's page."""
    match = _URL.fullmatch(url)
    return match["project"] if match else ""


def _unlisted(child: _Child, exc: SourceError) -> SourceProblem:
    """A child that the parent names is there: not found means no access."""
    found = problem(f"pipeline {child.number} of {child.shown}", exc)
    return replace(found, kind="auth") if isinstance(exc, NotFoundError | AuthError) else found


def _attempts(listed: Sequence[Said]) -> dict[tuple[str, str], list[Said]]:
    """Model and test case → the job's attempts in their order."""
    out: dict[tuple[str, str], list[Said]] = defaultdict(list)
    for said in sorted(listed, key=lambda j: j["id"]):
        if said["name"] != _PLACEHOLDER:
            out[said["stage"], said["name"]].append(said)
    return out


def _job(said: Said, child: _Child, attempt: int) -> Job:
    return Job(
        str(said["id"]),
        f"{said['stage']}/{said['name']}" + (f" {child.environment} {child.platform}" if child.platform else ""),
        said["stage"],
        said["name"],
        child.environment,
        child.platform,
        attempt,
        _conclusion(said),
        time_of(said.get("started_at")),
        time_of(said.get("finished_at")),
        said.get("web_url") or "",
        bool(said.get("allow_failure")),
    )


def _artifact(said: Said, job: Job) -> Artifact | None:
    """The job's artifact; None when it has none and never had."""
    file = said.get("artifacts_file") or {}
    expires = time_of(said.get("artifacts_expire_at"))
    gone = expires is not None and expires < datetime.now(UTC)
    if not file and not gone:
        return None
    name = f"{job.name} #{job.id}"
    size = int(file.get("size") or 0)
    created = time_of(said.get("finished_at"))
    return Artifact(job.id, name, size, job=job, attempt=job.attempt, created_at=created, expired=not file, url=job.url)


def _conclusion(said: Said) -> Conclusion:
    if said.get("status") == "failed" and "timeout" in (said.get("failure_reason") or ""):
        return Conclusion.TIMED_OUT
    return _CONCLUSIONS.get(said.get("status") or "", Conclusion.UNKNOWN)
