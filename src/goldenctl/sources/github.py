"""Candidates from a GitHub Actions run.

``https://github.com/O/R/actions/runs/N[/attempts/A][/job/J]``, ``github:N`` with the same tail, or a
bare ``N``. The repository of a number comes from the settings, ``GITHUB_REPOSITORY`` or the ``origin`` remote.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from goldenctl.config import Settings
from goldenctl.errors import NotFoundError, SourceError, UsageError
from goldenctl.model import Artifact, Conclusion, Fetched, Job, Run
from goldenctl.sources import FetchOptions, Source, attribution, http, remote, waiting
from goldenctl.sources.download import fetch_zip
from goldenctl.sources.github_api import Api
from goldenctl.sources.parallel import fetch_all

PUBLIC = "https://api.github.com"
_REF = re.compile(
    r"(?:https?://(?:[^/@]*@)?(?P<host>[^/@]+)/(?P<repository>[^/]+/[^/]+)/actions/runs/|github:)?(?P<run>\d+)"
    r"(?:/attempts/(?P<attempt>\d+))?(?:/job/(?P<job>\d+))?/?(?:[?#].*)?"
)


@dataclass(frozen=True, slots=True)
class Reference:
    """A run reference in its parts."""

    shown: str
    """The reference without user, query and fragment."""
    run: str
    repository: str
    """``owner/name``."""
    api_url: str
    token: str
    """Empty for none; never shown."""
    attempt: int | None = None
    job: str = ""


def open(ref: str, settings: Settings, options: FetchOptions) -> Source:
    """The source of a run.

    Raises
    ------
    UsageError
        The reference is not of the known form, or nothing says the repository.
    """
    return GithubSource(parse(ref, settings), options)


def parse(ref: str, settings: Settings) -> Reference:
    """A reference in its parts, completed from settings, environment and remote.

    Raises
    ------
    UsageError
        As :func:`open`.
    """
    match = _REF.fullmatch(ref.strip())
    if match is None:
        hint = "https://github.com/O/R/actions/runs/N[/attempts/A][/job/J], github:N, or N"
        raise UsageError(f"{http.shown(ref) if '://' in ref else ref} is no reference of a GitHub run", hint=hint)
    host = match["host"] or ""
    api_url, token = _access(host, settings)
    attempt = int(match["attempt"]) if match["attempt"] else None
    shown = http.shown(ref) if host else ref.strip()
    repository = match["repository"] or _repository(settings)
    return Reference(shown, match["run"], repository, api_url, token, attempt, match["job"] or "")


def _access(host: str, settings: Settings) -> tuple[str, str]:
    """API address and token for a host; a host that nobody configured never gets the token of another."""
    configured = (settings.ci.api_url or os.environ.get("GITHUB_API_URL") or PUBLIC).rstrip("/")
    token = os.environ.get("GITHUB_TOKEN") or os.environ.get("GH_TOKEN") or ""
    own = urlsplit(configured)
    if own.scheme not in ("http", "https") or not own.hostname:
        raise UsageError(f"{configured!r} is no address of GitHub's API", hint="GITHUB_API_URL=https://HOST/api/v3")
    name = host.partition(":")[0].lower()
    if not host or name == "github.com" or own.hostname.removeprefix("api.") == name:
        known = http.same_origin(configured, PUBLIC) or remote.vouched(configured, settings.top, "GITHUB_API_URL")
        if token and not known:
            raise remote.refused(configured, settings.source, "GITHUB_API_URL")
        return configured, token
    enterprise = os.environ.get("GH_ENTERPRISE_TOKEN") or os.environ.get("GITHUB_ENTERPRISE_TOKEN") or ""
    return f"https://{host}/api/v3", enterprise


def _repository(settings: Settings) -> str:
    named = settings.ci.repository or os.environ.get("GITHUB_REPOSITORY") or remote.path_of(settings.top)
    if not re.fullmatch(r"[\w.-]+/[\w.-]+", named):
        hint = 'give the run\'s URL, or set repository = "O/R" in [tool.goldenctl.ci]'
        raise UsageError(f"{named!r} is no repository" if named else "nothing says which repository the run is of", hint=hint)
    return named


class GithubSource:
    """One workflow run."""

    def __init__(self, reference: Reference, options: FetchOptions) -> None:
        self._reference = reference
        self._options = options
        self._attempt = options.attempt if options.attempt is not None else reference.attempt
        patience = http.Patience(options.max_wait)
        self._storage = http.session(patience, options.workers)
        session = http.session(patience, options.workers, options.cache)
        self._api = Api(reference.api_url, reference.repository, reference.token, session)

    def describe(self) -> Run:
        """The run with its jobs in their newest attempt and the artifacts these made.

        Raises
        ------
        SourceError
            The run cannot be had.
        """
        return waiting.described(self._describe, wait=self._options.wait)

    def _describe(self) -> Run:
        run = self._run()
        path = f"actions/runs/{self._reference.run}"
        jobs = self._api.pages(f"{path}/jobs", "jobs", "jobs", filter="all")
        artifacts = self._api.pages(f"{path}/artifacts", "artifacts", "artifacts")
        shown, job = self._reference.shown, self._reference.job
        return attribution.describe(shown, run, jobs, artifacts, attempt=self._attempt, job_id=job, tell=self._tell)

    def _run(self) -> dict[str, Any]:
        path, what = f"actions/runs/{self._reference.run}", f"run {self._reference.run}"
        run = self._api.get(path, what)
        name = (run.get("repository") or {}).get("full_name")
        if isinstance(name, str) and name.count("/") == 1:
            self._api.repository = name
        newest = run.get("run_attempt") or 1
        if self._attempt is None or self._attempt == newest:
            return run
        if self._attempt > newest:
            hint = f"the newest is {newest}"
            raise NotFoundError(f"{what} has no attempt {self._attempt}", place=self._reference.shown, hint=hint)
        return self._api.get(f"{path}/attempts/{self._attempt}", f"attempt {self._attempt} of {what}")

    def _tell(self, artifact: Artifact, jobs: Sequence[Job]) -> Job | None:
        """The job whose log names the artifact; asked only where times leave a doubt."""
        told = f"Artifact ID is {artifact.id}"
        for job in (j for j in jobs if j.conclusion is not Conclusion.RUNNING):
            try:
                if any(told in line for line in self._api.log_lines(job.id, self._storage)):
                    return job
            except SourceError:
                continue
        return None

    def fetch(self, artifacts: Sequence[Artifact]) -> Iterator[Fetched]:
        """Fetch the golden members side by side, as they come."""
        return fetch_all(self._fetch, artifacts, self._options)

    def _fetch(self, artifact: Artifact) -> Fetched:
        path = f"actions/artifacts/{artifact.id}/zip"
        return fetch_zip(artifact, lambda: self._api.locate(path, f"artifact {artifact.name}"), self._storage)
