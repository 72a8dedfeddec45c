"""GitLab's REST API through python-gitlab, its errors mapped to ours."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http import HTTPStatus
from itertools import islice
from typing import Any, TypeVar
from urllib.parse import quote

import requests
from gitlab import Gitlab
from gitlab.exceptions import GitlabError, GitlabParsingError

from goldenctl.errors import AuthError, CorruptError, ExpiredError, NotFoundError, RateLimitError, SourceError
from goldenctl.sources import http
from goldenctl.sources.download import Location, host_of

Said = dict[str, Any]
T = TypeVar("T")
PAGE = 100
MAX_ITEMS = 100_000
"""Of one list; a service that sends more does not mean to end."""
_ONCE: dict[str, Any] = {"obey_rate_limit": False, "max_retries": 0}
"""Waits and retries are our session's business."""


class _Client(Gitlab):
    """A client that follows the pages of a list at its own host only: the token goes with every request."""

    def http_request(self, verb: str, path: str, *args: Any, **kwargs: Any) -> requests.Response:
        """As its own, but for a URL of another host, which is a CorruptError."""
        if path.startswith(("http://", "https://")) and not http.same_origin(self.url, path):
            raise CorruptError("the list goes on at another host", place=host_of(self.url))
        return super().http_request(verb, path, *args, **kwargs)


class Api:
    """The API of one host.

    Parameters
    ----------
    url
        ``https://HOST``, with the path of an installation below it.
    headers
        The header that holds the token; empty for none.
    session
        For answers of the API; may keep them by their ETags.
    """

    def __init__(self, url: str, headers: Mapping[str, str], session: requests.Session) -> None:
        self._url = url.rstrip("/")
        self._headers = dict(headers)
        self._session = session
        self._client = _Client(self._url, session=session, per_page=PAGE, keep_base_url=True)
        # Answers kept from an earlier command are always checked: a pipeline goes on.
        self._client.headers |= {**self._headers, "Cache-Control": "max-age=0"}

    @property
    def host(self) -> str:
        """Where the API is, for messages."""
        return host_of(self._url)

    def pipeline(self, project: str, number: int) -> Said:
        """One pipeline.

        Raises
        ------
        SourceError
            As the service or the network says.
        """
        what = f"pipeline {number}"
        return self._object(lambda: self._pipelines(project).get(number, **_ONCE).attributes, what, project)

    def job(self, project: str, number: int) -> Said:
        """One job, its pipeline in it."""
        what = f"job {number}"
        jobs = self._client.projects.get(project, lazy=True).jobs
        return self._object(lambda: jobs.get(number, **_ONCE).attributes, what, project)

    def jobs(self, project: str, number: int) -> list[Said]:
        """All jobs of a pipeline, retried ones too, every page."""
        listed = self._pipelines(project).get(number, lazy=True).jobs
        what = f"jobs of pipeline {number}"
        return self._list(lambda: listed.list(iterator=True, include_retried=True, **_ONCE), what, project)

    def bridges(self, project: str, number: int) -> list[Said]:
        """All bridges of a pipeline, every page."""
        listed = self._pipelines(project).get(number, lazy=True).bridges
        return self._list(lambda: listed.list(iterator=True, **_ONCE), f"bridges of pipeline {number}", project)

    def _pipelines(self, project: str) -> Any:
        return self._client.projects.get(project, lazy=True).pipelines

    def _object(self, action: Callable[[], Said], what: str, project: str) -> Said:
        with self._mapped(what, project):
            said = action()
        if not isinstance(said.get("id"), int):
            raise _not_json(self.host, what)
        return said

    def _list(self, action: Callable[[], Any], what: str, project: str) -> list[Said]:
        with self._mapped(what, project):
            found = [item.attributes for item in islice(action(), MAX_ITEMS + 1)]
        if len(found) > MAX_ITEMS:
            raise CorruptError(f"the list of {what} does not end after {MAX_ITEMS} items", place=self.host)
        if not all(isinstance(item.get("id"), int) for item in found):
            raise _not_json(self.host, what)
        return list({item["id"]: item for item in found}.values())

    def locate(self, project: str, job: str) -> Location:
        """Where a job's artifacts are: at a storage without our token, or at the API itself.

        Raises
        ------
        SourceError
            As the service or the network says.
        """
        url = f"{self._url}/api/v4/projects/{quote(project, safe='')}/jobs/{job}/artifacts"
        headers = {**self._headers, "Range": "bytes=0-0", "Accept-Encoding": "identity"}
        with http.mapped(self.host):
            answer = self._session.get(url, headers=headers, stream=True, allow_redirects=False)
        with answer:
            if answer.is_redirect:
                target = http.joined(url, answer.headers["Location"], self.host)
                return Location(target, self._headers if http.same_origin(url, target) else {})
            if answer.status_code >= 400:
                limited = http.rate_limit(answer) is not None
                raise self._refusal(answer.status_code, f"the artifacts of job {job}", project, limited)
        return Location(url, self._headers)

    @contextmanager
    def _mapped(self, what: str, project: str) -> Iterator[None]:
        """python-gitlab's errors as ours."""
        try:
            with http.mapped(self.host):
                yield
        except GitlabParsingError as exc:
            raise _not_json(self.host, what) from exc
        except GitlabError as exc:
            status = exc.response_code or 0
            raise self._refusal(status, what, project, status == HTTPStatus.TOO_MANY_REQUESTS) from exc
        except (AttributeError, TypeError, ValueError, KeyError, RecursionError) as exc:
            raise _not_json(self.host, what) from exc

    def _refusal(self, status: int, what: str, project: str, limited: bool) -> SourceError:
        """The error for a status that is no success."""
        what = f"{what} of {project}"
        if limited:
            return RateLimitError(f"{what}: GitLab's rate limit is used up", place=self.host, hint="try again later")
        if status == HTTPStatus.UNAUTHORIZED:
            fact = "GitLab refuses the token" if self._headers else "GitLab wants a token"
            return AuthError(f"{what}: {fact}", place=self.host, hint=_TOKEN)
        if status == HTTPStatus.FORBIDDEN:
            return AuthError(f"{what}: GitLab refuses access", place=self.host, hint="the token needs the scope read_api")
        if status == HTTPStatus.NOT_FOUND:
            hint = "check number and project" + ("" if self._headers else f"; {_TOKEN}")
            return NotFoundError(f"{what} is not found, or there is no access to it", place=self.host, hint=hint)
        if status == HTTPStatus.GONE:
            return ExpiredError(f"{what} has expired", place=self.host, hint="run the job again")
        return SourceError(f"{what}: GitLab answers {status}", place=self.host, hint="try again later")


_TOKEN = "export GITLAB_TOKEN with the scope read_api, and GITLAB_ENDPOINT with the host it is for"  # noqa: S105  a hint


def _not_json(host: str, what: str) -> CorruptError:
    hint = "check GITLAB_ENDPOINT, and whether a proxy or a login page answers for the server"
    return CorruptError(f"{what}: the answer is not of GitLab's API", place=host, hint=hint)
