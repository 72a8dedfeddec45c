"""Git plumbing by the git command itself: objects, trees, revisions, commits.

The installed git knows every repository format, filter and setting of its user; a binding would not.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from goldenctl.errors import GoldenctlError, RepoError, UsageError

_ENVIRONMENT = {"LC_ALL": "C", "GIT_TERMINAL_PROMPT": "0", "GIT_OPTIONAL_LOCKS": "0"}


@dataclass(frozen=True, slots=True)
class TreeEntry:
    """One file of a tree."""

    mode: str
    """Git's octal mode, e.g. ``100644``; ``120000`` is a link."""
    blob: str
    """Hex object id."""


@dataclass(frozen=True)
class Repo:
    """One git work tree.

    Parameters
    ----------
    top
        Top of the work tree, absolute.
    """

    top: Path

    def run(self, *arguments: str, stdin: bytes | None = None, check: bool = True) -> bytes:
        """Standard output of one git command.

        Raises
        ------
        RepoError
            Git is not installed, or the command failed and ``check`` is true.
        """
        return self._process(arguments, stdin, check).stdout

    def succeeds(self, *arguments: str) -> bool:
        """Whether a git command exits with 0."""
        return self._process(arguments, None, check=False).returncode == 0

    def _process(self, arguments: Sequence[str], stdin: bytes | None, check: bool) -> subprocess.CompletedProcess[bytes]:
        command = ["git", "-c", "core.quotePath=false", *arguments]
        try:
            done = subprocess.run(
                command, check=False, cwd=self.top, input=stdin, capture_output=True, env=os.environ | _ENVIRONMENT
            )
        except FileNotFoundError as exc:
            raise RepoError("git is not installed", hint="install git 2.30 or newer") from exc
        if check and done.returncode != 0:
            text = done.stderr.decode("utf-8", "replace").strip() or f"exit code {done.returncode}"
            raise RepoError(f"git {arguments[0]} failed: {text}", place=str(self.top))
        return done

    def text(self, *arguments: str) -> str:
        """Standard output as stripped text."""
        return self.run(*arguments).decode("utf-8", "surrogateescape").strip()

    def is_repo(self) -> bool:
        """Whether ``top`` lies in a git work tree."""
        return self.succeeds("rev-parse", "--is-inside-work-tree")

    def commit_of(self, rev: str) -> str:
        """The full commit id of a revision.

        Raises
        ------
        UsageError
            There is no such revision, or nothing is committed yet.
        RepoError
            There is no repository.
        """
        done = self._process(["rev-parse", "--verify", "--quiet", "--end-of-options", f"{rev}^{{commit}}"], None, check=False)
        commit = done.stdout.decode().strip()
        if done.returncode != 0 or not commit:
            raise self._missing(rev)
        return commit

    def _missing(self, rev: str) -> GoldenctlError:
        if not self.is_repo():
            return no_repository(self.top)
        if not self.text("rev-list", "--all", "--max-count=1"):
            return UsageError("nothing is committed here yet", place=str(self.top), hint="git commit, or git fetch")
        return UsageError(f"no such revision: {rev}", hint="git fetch, or see `git branch -a` and `git log --oneline`")

    def tree(self, rev: str, folder: str = "") -> dict[str, TreeEntry]:
        """Files of a revision below ``folder``: path from the top → entry. Submodules are left out."""
        arguments = ["ls-tree", "-r", "-z", "--full-tree", rev]
        if folder:
            arguments += ["--", folder.rstrip("/") + "/"]
        out: dict[str, TreeEntry] = {}
        for record in self.run(*arguments).split(b"\0"):
            if not record:
                continue
            head, _, path = record.partition(b"\t")
            mode, kind, blob = head.decode().split()
            if kind == "blob":
                out[path.decode("utf-8", "surrogateescape")] = TreeEntry(mode, blob)
        return out

    def blobs(self, ids: Iterable[str]) -> Iterator[tuple[str, bytes]]:
        """Contents of objects in the order asked, through one ``git cat-file --batch``.

        Raises
        ------
        RepoError
            An object is missing or the process ended early.
        """
        wanted = list(dict.fromkeys(ids))
        if not wanted:
            return
        with subprocess.Popen(
            ["git", "cat-file", "--batch"],
            cwd=self.top,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=os.environ | _ENVIRONMENT,
            bufsize=1 << 20,
        ) as process:
            if process.stdin is None or process.stdout is None:
                raise RepoError("git cat-file has no pipes", place=str(self.top))
            try:
                for start in range(0, len(wanted), 500):  # below the pipe's buffer, so neither side waits for the other
                    part = wanted[start : start + 500]
                    process.stdin.write("".join(f"{i}\n" for i in part).encode())
                    process.stdin.flush()
                    for _ in part:
                        yield self._one(process.stdout)
            finally:
                process.stdin.close()
                process.stdout.close()

    def _one(self, stream: IO[bytes]) -> tuple[str, bytes]:
        head = stream.readline().split()
        if len(head) != 3:
            raise RepoError(f"git object {b' '.join(head).decode()!r} cannot be read", place=str(self.top), hint="git fsck")
        size = int(head[2])
        content: bytes = stream.read(size + 1)[:-1]
        if len(content) != size:
            raise RepoError("git cat-file ended early", place=str(self.top), hint="git fsck")
        return head[0].decode(), content

    def blob(self, object_id: str) -> bytes:
        """Content of one object."""
        return next(self.blobs([object_id]))[1]

    def show(self, rev: str, path: str) -> bytes | None:
        """Content of ``path`` at ``rev``, or None when it is not there."""
        done = self._process(["cat-file", "blob", f"{rev}:{path}"], None, check=False)
        return done.stdout if done.returncode == 0 else None

    def dirty(self, paths: Sequence[str]) -> set[str]:
        """Those of ``paths`` with uncommitted changes, staged or not, or untracked but present."""
        out: set[str] = set()
        for start in range(0, len(paths), 500):  # below every system's argument limit
            part = paths[start : start + 500]
            flags = ("--porcelain=v1", "-z", "--no-renames", "--untracked-files=all")
            records = self.run("--literal-pathspecs", "status", *flags, "--", *part).split(b"\0")
            out |= {r[3:].decode("utf-8", "surrogateescape") for r in records if len(r) > 3}
        return out


def no_repository(top: Path) -> RepoError:
    """What to say where a repository is needed and there is none."""
    return RepoError("no git repository here", place=str(top), hint="run it inside a clone, or with -C DIR")
