"""The git merge driver: of two versions of a golden one wins whole, or the merge stops with both named.

Light on purpose: git starts it once a file.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path

from goldenctl import trailers
from goldenctl.compare import equal
from goldenctl.errors import UsageError
from goldenctl.git import Repo
from goldenctl.goldenfile import DocumentError, read

ATTRIBUTE = "golden-policy"
"""The attribute in ``.gitattributes`` that names the policy of a path."""
_DRAFT = ".goldenctl-merge"
"""What the name of a content not yet in its place ends with."""


class Policy(StrEnum):
    """Which side wins when both changed a golden."""

    OURS = "ours"
    THEIRS = "theirs"
    NEWEST_PRODUCER = "newest-producer"
    """The side whose content was committed last."""
    ASK = "ask"
    """Neither: the merge stops, our content stays in the file."""


@dataclass(frozen=True, slots=True)
class Producer:
    """Who brought a content."""

    commit: str = ""
    """Empty when no commit here has it at this path."""
    date: datetime | None = None
    """Committer date in UTC."""
    subject: str = ""
    run: str = ""
    """``provider:id`` of the commit's ``Golden-Run:``; empty when it has none."""

    def __str__(self) -> str:
        """One phrase for a person."""
        if not self.commit or self.date is None:
            return "content that no commit here has"
        run = f", run {self.run}" if self.run else ""
        return f"{self.commit[:10]} of {self.date:%Y-%m-%d} ({self.subject}{run})"


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the driver decided."""

    content: bytes
    """What the file holds afterwards, always one side whole."""
    conflict: bool
    message: str
    """For stderr; empty when there is nothing to say."""


def policy_of(repo: Repo, path: str) -> Policy:
    """The policy that ``.gitattributes`` gives a path; ``ask`` when it gives none.

    Raises
    ------
    UsageError
        The attribute's value is not a policy.
    """
    value = repo.run("check-attr", "-z", ATTRIBUTE, "--", path).split(b"\0")[2].decode()
    if value in ("unspecified", "unset", "set"):
        return Policy.ASK
    try:
        return Policy(value)
    except ValueError as exc:
        known = ", ".join(Policy)
        raise UsageError(f"{ATTRIBUTE}={value} is not a policy", place=".gitattributes", hint=f"use one of {known}") from exc


def decide(repo: Repo, path: str, policy: Policy, base: bytes, ours: bytes, theirs: bytes) -> Verdict:
    """Which side's content a golden gets.

    A side that changed nothing but the formatting gives way. Whatever the policy, the result is one side's
    bytes: curves are never mixed and no step appears twice.
    """
    if ours == theirs or _same(base, theirs):
        return Verdict(ours, False, "")
    if _same(base, ours):
        return Verdict(theirs, False, "")
    if _same(ours, theirs):
        return Verdict(ours, False, "")
    mine, other = (producer(repo, path, content) for content in (ours, theirs))
    both = f"ours from {mine}; theirs from {other}"
    chosen = _chosen(policy, mine, other)
    if chosen is None:
        return Verdict(ours, True, f"{path}: both sides changed this golden: {both}\n  {_advice(path)}")
    return Verdict(ours if chosen is Policy.OURS else theirs, False, f"{path}: took {chosen.value} ({policy.value}): {both}")


def _same(a: bytes, b: bytes) -> bool:
    if a == b:
        return True
    try:
        return equal(read(a), read(b))
    except DocumentError:
        return False


def _chosen(policy: Policy, mine: Producer, other: Producer) -> Policy | None:
    if policy in (Policy.OURS, Policy.THEIRS):
        return policy
    if policy is Policy.ASK or mine.date is None or other.date is None or mine.date == other.date:
        return None
    return Policy.OURS if mine.date > other.date else Policy.THEIRS


def _advice(path: str) -> str:
    return f"next: git checkout --ours -- {path}, or --theirs, then git add; or goldenctl refresh from a run of the merge"


def producer(repo: Repo, path: str, content: bytes) -> Producer:
    """The newest commit of any branch that brought this content to this path."""
    blob = repo.run("hash-object", "-t", "blob", "--stdin", stdin=content).decode().strip()
    plain = ("--all", "--full-history", "--no-renames", "--no-show-signature", f"--find-object={blob}")
    commits = repo.run("log", *plain, "--raw", "--no-abbrev", "--format=%x01%H", "HEAD", "--", path).decode("utf-8", "replace")
    for record in commits.split("\x01")[1:]:
        head, *changes = record.splitlines()
        if any(line.split(" ")[3] == blob for line in changes if line.startswith(":")):
            return _producer(repo, head)
    return Producer()


def _producer(repo: Repo, commit: str) -> Producer:
    text = repo.run("log", "-1", "--no-show-signature", "--format=%ct%n%s%n%B", commit).decode("utf-8", "surrogateescape")
    seconds, subject, body = text.split("\n", 2)
    runs = trailers.parse(body).runs
    run = f"{runs[0].provider}:{runs[0].id}" if runs else ""
    return Producer(commit, datetime.fromtimestamp(int(seconds), UTC), subject, run)


def merge(repo: Repo, path: str, policy: Policy | None, base: Path, ours: Path, theirs: Path) -> Verdict:
    """What git asks of a driver: leave the result in ``ours``.

    Parameters
    ----------
    path
        The golden's path in the repository, for its policy and producers.
    policy
        None means: as ``.gitattributes`` says.
    base, ours, theirs
        Temporary files with the three contents; an absent base is empty.

    Raises
    ------
    UsageError
        The policy is unknown.
    OSError
        A temporary file cannot be read or written.
    """
    contents = [name.read_bytes() for name in (base, ours, theirs)]
    verdict = decide(repo, path, policy or policy_of(repo, path), *contents)
    if verdict.content != contents[1]:
        _replace(ours, verdict.content)
    return verdict


def _replace(path: Path, content: bytes) -> None:
    """Give a file another content at once: a kill leaves the one or the other, and at most a draft for the next to remove."""
    draft = path.with_name(f".{path.name}{_DRAFT}")
    draft.unlink(missing_ok=True)
    with draft.open("xb") as stream:
        stream.write(content)
    draft.chmod(path.stat().st_mode)
    draft.replace(path)
    for left in path.parent.glob(f".*{_DRAFT}"):
        if not left.with_name(left.name[1 : -len(_DRAFT)]).exists():
            left.unlink(missing_ok=True)
