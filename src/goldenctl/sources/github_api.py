"""GitHub's REST API through PyGithub, its errors mapped to ours."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http import HTTPStatus
from typing import Any
from urllib.parse import quote

import requests
from github import Auth, Github, GithubException
from github.Requester import HTTPRequestsConnectionClass, HTTPSRequestsConnectionClass, Requester

from goldenctl.errors import AuthError, CorruptError, ExpiredError, NotFoundError, RateLimitError, SourceError
from goldenctl.sources import http
from goldenctl.sources.download import Location, host_of

PAGE = 100
"""Items per page, the API's most."""
MAX_PAGES = 1000
MAX_LOG = 64 * 2**20
"""Bytes of a job's log that are searched."""
_REDIRECTS = 5


class Api:
    """The API of one repository.

    Parameters
    ----------
    base_url
        ``https://api.github.com`` or ``https://HOST/api/v3``.
    repository
        ``owner/name``; replaced by the present one when the repository was renamed.
    token
        Empty for none.
    session
        For answers of the API; may keep them by their ETags.
    """

    def __init__(self, base_url: str, repository: str, token: str, session: requests.Session) -> None:
        self._base = base_url.rstrip("/")
        self.repository = repository
        self._token = token
        self._session = session
        self._requester = _client(self._base, token, session).requester

    @property
    def host(self) -> str:
        """Where the API is, for messages."""
        return host_of(self._base)

    def get(self, path: str, what: str) -> dict[str, Any]:
        """One object.

        Parameters
        ----------
        path
            Below the repository, e.g. ``actions/runs/1``.
        what
            What it is, for messages.

        Raises
        ------
        SourceError
            As the service or the network says.
        """
        said = self._request(path, {}, what)[1]
        if not isinstance(said.get("id"), int):
            raise _not_json(self.host, what)
        return said

    def _request(self, path: str, parameters: dict[str, Any], what: str) -> tuple[Mapping[str, Any], dict[str, Any]]:
        url = f"/repos/{quote(self.repository)}/{path}"
        # Answers kept from an earlier command are always checked: a run goes on.
        headers = {"Cache-Control": "max-age=0", "Accept": "application/vnd.github+json"}
        with self._mapped(what):
            found, said = self._requester.requestJsonAndCheck("GET", url, parameters, headers)
        if not isinstance(said, dict):
            raise _not_json(self.host, what)
        return found, said

    def pages(self, path: str, key: str, what: str, **parameters: Any) -> list[dict[str, Any]]:
        """All items of a list, every page, each item once.

        Raises
        ------
        SourceError
            As the service or the network says.
        CorruptError
            The list ends before the number of items it announces.
        """
        items: dict[Any, dict[str, Any]] = {}
        for page in range(1, MAX_PAGES):
            headers, said = self._request(path, {**parameters, "per_page": PAGE, "page": page}, what)
            found = said.get(key)
            if not isinstance(found, list) or not all(isinstance(i, dict) and isinstance(i.get("id"), int) for i in found):
                raise _not_json(self.host, what)
            before = len(items)
            items |= {i["id"]: i for i in found}
            total = said.get("total_count")
            more = 'rel="next"' in headers.get("link", "") or (isinstance(total, int) and len(items) < total)
            if not more or len(items) == before:
                break
        if isinstance(total, int) and len(items) < total:
            raise CorruptError(f"the list of {what} ends after {len(items)} of {total}", place=self.host, hint="try again")
        return list(items.values())

    def locate(self, path: str, what: str) -> Location:
        """Where the API redirects to; followed while it stays at the API, never further with the token.

        Raises
        ------
        SourceError
            There is no redirect, or an error instead.
        """
        url = f"{self._base}/repos/{quote(self.repository)}/{path}"
        headers = {"Authorization": f"token {self._token}"} if self._token else {}
        for _ in range(_REDIRECTS):
            with http.mapped(self.host):
                answer = self._session.get(url, headers=headers, stream=True, allow_redirects=False)
            with answer:
                if answer.status_code == HTTPStatus.OK and "html" not in answer.headers.get("Content-Type", ""):
                    return Location(url, headers)  # some installations store artifacts at the API itself
                if not answer.is_redirect:
                    self._refuse_redirectless(answer, what)
                target = http.joined(url, answer.headers["Location"], self.host)
            if not http.same_origin(url, target) or answer.status_code == HTTPStatus.FOUND:
                return Location(target, {})
            url = target
        raise SourceError(f"{what} is redirected in a circle", place=self.host)

    def _refuse_redirectless(self, answer: requests.Response, what: str) -> None:
        if answer.status_code < 400:
            fact = f"{what}: the API answers {answer.status_code} instead of a link"
            hint = "look whether a proxy or a login page answers for the server"
            raise CorruptError(fact, place=self.host, hint=hint)
        with http.mapped(self.host):
            try:
                said = answer.json()
            except (ValueError, RecursionError):
                said = None
        message = str(said.get("message", "")) if isinstance(said, dict) else ""
        limited = http.rate_limit(answer) is not None
        raise self._refusal(answer.status_code, answer.headers, message, what, limited)

    def log_lines(self, job_id: str, session: requests.Session) -> Iterator[str]:
        """Lines of a job's log.

        Raises
        ------
        SourceError
            There is no log, or it cannot be had.
        """
        location = self.locate(f"actions/jobs/{job_id}/logs", f"log of job {job_id}")
        place = http.shown(location.url)
        with http.mapped(place):
            answer = session.get(location.url, stream=True, allow_redirects=False)
        if answer.status_code != HTTPStatus.OK:
            answer.close()
            raise NotFoundError("there is no log", place=place)
        pieces: list[bytes] = []
        http.body(answer, pieces.append, MAX_LOG, place)
        yield from b"".join(pieces).decode("utf-8", "replace").splitlines()

    @contextmanager
    def _mapped(self, what: str) -> Iterator[None]:
        """PyGithub's errors as ours."""
        try:
            with http.mapped(self.host):
                yield
        except GithubException as exc:
            limited = "rate limit" in str(exc.message or "").lower()
            raise self._refusal(exc.status, exc.headers or {}, str(exc.message or ""), what, limited) from exc
        except (RuntimeError, AssertionError, ValueError) as exc:
            raise _not_json(self.host, what) from exc

    def _refusal(self, status: int, headers: Mapping[str, str], message: str, what: str, limited: bool) -> SourceError:
        """The error for a status that is no success."""
        headers = {k.lower(): v for k, v in headers.items()}
        if limited:
            return RateLimitError(f"{what}: GitHub's rate limit is used up", place=self.host, hint="try again later")
        if status == HTTPStatus.UNAUTHORIZED:
            return self._unauthorised(what)
        if status == HTTPStatus.FORBIDDEN:
            return self._forbidden(headers, message, what)
        if status == HTTPStatus.NOT_FOUND:
            token = "" if self._token else ", and export GITHUB_TOKEN for a private repository"
            hint = f"check the number and the repository{token}"
            return NotFoundError(
                f"{what} of {self.repository} is not found, or there is no access to it", place=self.host, hint=hint
            )
        if status == HTTPStatus.GONE:
            return ExpiredError(f"{what} has expired", place=self.host, hint="run the job again")
        return SourceError(
            f"{what}: GitHub answers {status}", place=self.host, hint="see githubstatus.com, and try again later"
        )

    def _unauthorised(self, what: str) -> AuthError:
        if self._token:
            return AuthError(
                f"{what}: GitHub refuses the token", place=self.host, hint="export GITHUB_TOKEN with a valid token"
            )
        return AuthError(f"{what}: GitHub wants a token", place=self.host, hint="export GITHUB_TOKEN=$(gh auth token)")

    def _forbidden(self, headers: Mapping[str, str], message: str, what: str) -> AuthError:
        sso = re.search(r"url=([^;\s?]+)", headers.get("x-github-sso", ""))
        if "x-github-sso" in headers:
            where = f" at {sso[1]}" if sso else ""
            fact = f"{what}: the token is not authorised for the organisation's single sign-on"
            return AuthError(fact, place=self.host, hint=f"authorise it{where}, see github.com/settings/tokens")
        wanted = headers.get("x-accepted-oauth-scopes", "") or headers.get("x-accepted-github-permissions", "")
        if wanted and "not accessible" in message.lower():
            return AuthError(f"{what}: the token lacks a scope", place=self.host, hint=f"it needs one of: {wanted}")
        if not self._token:
            return self._unauthorised(what)
        detail = f": {message[:200]}" if message else ""
        return AuthError(f"{what}: GitHub refuses access{detail}", place=self.host, hint="the token needs actions:read")


def _not_json(host: str, what: str) -> CorruptError:
    hint = "check GITHUB_API_URL, and whether a proxy or a login page answers for the server"
    return CorruptError(f"{what}: the answer is not of GitHub's API", place=host, hint=hint)


def _client(base_url: str, token: str, session: requests.Session) -> Github:
    """A client that sends its requests through our session."""

    def use(self: Any, host: str, port: int | None = None, *_: Any, default_port: int, protocol: str, **more: Any) -> None:
        self.host, self.port, self.protocol = host, port or default_port, protocol
        self.timeout, self.verify, self.session = None, more.get("verify", True), session

    class Plain(HTTPRequestsConnectionClass):
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            use(self, *args, default_port=80, protocol="http", **kwargs)

    class Secure(HTTPSRequestsConnectionClass):
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            use(self, *args, default_port=443, protocol="https", **kwargs)

    # PyGithub takes its connections from a class attribute at construction and has no argument for them.
    Requester.injectConnectionClasses(Plain, Secure)
    try:
        auth = Auth.Token(token) if token else None
        return Github(auth=auth, base_url=base_url, per_page=PAGE, retry=None, seconds_between_requests=0)
    finally:
        Requester.resetConnectionClasses()
