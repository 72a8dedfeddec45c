"""Host and project of the ``origin`` remote."""

from __future__ import annotations

import re
from pathlib import Path

from goldenctl.errors import RepoError
from goldenctl.git import Repo

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


def _match(top: Path) -> re.Match[str] | None:
    try:
        return _REMOTE.fullmatch(Repo(top).text("remote", "get-url", "origin"))
    except RepoError:
        return None
