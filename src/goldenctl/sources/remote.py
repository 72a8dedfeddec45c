"""Host and project of the ``origin`` remote."""

from __future__ import annotations

import os
import re
from pathlib import Path

from goldenctl.errors import RepoError, UsageError
from goldenctl.git import Repo
from goldenctl.sources import http

_REMOTE = re.compile(
    r"(?:[a-z+]+://(?:[^/@]*@)?(?P<host>[^/:]+)(?::\d+)?/|(?:[^@/]+@)?(?P<scp>[^:/]+):)(?P<path>[^/].*?[^/])(?:\.git)?/?"
)


def path_of(top: Path) -> str:
    """``owner/name`` or ``group/subgroup/project``; empty where there is no such remote."""
    match = _match(top)
    return match["path"] if match else ""


def host_of(top: Path) -> str:
    """The remote's host name; empty where there is no such remote."""
    match = _match(top)
    return (match["host"] or match["scp"]) if match else ""


def vouched(url: str, top: Path, *names: str) -> bool:
    """Whether a token may go to an address that a settings file names.

    A settings file comes with any branch that is pulled. What may vouch for its host is the environment, by one of
    the variables ``names``, or the ``origin`` remote, over https.
    """
    said = {http.origin(v if "://" in v else f"https://{v}") for name in names if (v := os.environ.get(name))}
    scheme, host, _ = http.origin(url)
    return http.origin(url) in said or (scheme == "https" and host.removeprefix("api.") == host_of(top) != "")


def refused(url: str, place: str, name: str) -> UsageError:
    """The error for an address nothing vouches for."""
    host = http.shown(url)
    fact = f"only the settings name {host}, and a settings file cannot vouch for a host: the token is not sent there"
    return UsageError(fact, place=place, hint=f"export {name}={host} if it is yours, or unset the token")


def _match(top: Path) -> re.Match[str] | None:
    try:
        return _REMOTE.fullmatch(Repo(top).text("remote", "get-url", "origin"))
    except RepoError:
        return None
