"""Install the merge and diff drivers into a repository: ``.gitattributes`` and git's configuration."""

from __future__ import annotations

import shlex
import shutil
import sys
from pathlib import Path

from goldenctl.config import Settings
from goldenctl.errors import RepoError
from goldenctl.files import write_own
from goldenctl.git import Repo
from goldenctl.sync.driver import ATTRIBUTE, Policy

NAME = "goldenctl"


def program() -> str:
    """How git starts goldenctl: by name where it is found, else by this interpreter."""
    return "goldenctl" if shutil.which("goldenctl") else f"{shlex.quote(sys.executable)} -m goldenctl"


def install(repo: Repo, settings: Settings, *, merge: bool, diff: bool, policy: Policy) -> list[str]:
    """Make git use the drivers for golden files.

    Parameters
    ----------
    policy
        Written beside the merge driver in ``.gitattributes``.

    Returns
    -------
    list of str
        What was done, one sentence each; installing twice changes nothing.

    Raises
    ------
    RepoError
        ``.gitattributes`` or the configuration cannot be written.
    """
    said: list[str] = []
    words: list[str] = []
    if merge:
        _configure(repo, "merge", "name", "golden files: one side wins whole")
        _configure(repo, "merge", "driver", f"{program()} merge-driver %O %A %B %P")
        words += [f"merge={NAME}", f"{ATTRIBUTE}={policy.value}"]
        said.append(f"git merges golden files with {NAME}; where both sides changed one: {policy.value}")
    if diff:
        _configure(repo, "diff", "textconv", f"{program()} textconv")
        _configure(repo, "diff", "cachetextconv", "true")
        words.append(f"diff={NAME}")
        said.append("git diff and git log -p show golden files as tables")
    line = _attributes(repo.top / ".gitattributes", _pattern(settings), words)
    return [*said, f"commit .gitattributes so that others share it: {line}"]


def _configure(repo: Repo, section: str, key: str, value: str) -> None:
    repo.run("config", "--local", f"{section}.{NAME}.{key}", value)


def _pattern(settings: Settings) -> str:
    """Golden files below root; blanks as git's attributes want them."""
    pattern = f"/{settings.root}/**/golden_values*.json"
    return f'"{pattern}"' if " " in pattern else pattern


def _attributes(path: Path, pattern: str, words: list[str]) -> str:
    """Put one line for the pattern into ``.gitattributes``; what an older line of ours says besides stays."""
    try:
        old = path.read_text("utf-8") if path.exists() else ""
        lines = old.splitlines()
        ours = [line for line in lines if line.startswith(f"{pattern} ") and f"={NAME}" in line]
        names = {word.split("=")[0] for word in words}
        before = [word for line in ours for word in line[len(pattern) :].split() if word.split("=")[0] not in names]
        line = " ".join([pattern, *dict.fromkeys(before), *words])
        new = "\n".join([*(text for text in lines if text not in ours), line]) + "\n"
        if new != old:
            write_own(path, new)
    except (OSError, UnicodeDecodeError) as exc:
        raise RepoError(f"cannot be written: {exc}", place=str(path), hint=f"add: {pattern} {' '.join(words)}") from exc
    return line
