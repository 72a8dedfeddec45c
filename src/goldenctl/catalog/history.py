"""The history of golden files from one pass of git plumbing: commits, revisions, and lives through renames.

Standard library only: it runs while the heavy clients are still being loaded.
"""

from __future__ import annotations

import hashlib
import secrets
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from goldenctl.config import Settings
from goldenctl.git import Repo
from goldenctl.sides import is_golden_name

ADDED, MODIFIED, RENAMED, DELETED = "added", "modified", "renamed", "deleted"
_LINK = "120000"
_LOG = (
    "log", "--raw", "-z", "--no-abbrev", "--full-history", "--sparse", "--diff-merges=first-parent", "--find-renames=100%",
    "--no-show-signature", "--encoding=UTF-8", "--date-order", "--reverse",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Edit:
    """What one commit did to one path, against its first parent."""

    path: str
    document: str | None
    """Blob id, or None when deleted."""
    change: str
    """``added``, ``modified``, ``renamed`` or ``deleted``."""
    old_path: str | None = None
    """None unless renamed."""
    old_document: str | None = None
    """None when added."""


@dataclass(frozen=True, slots=True)
class Commit:
    """One commit with its edits of golden files."""

    id: str
    parents: tuple[str, ...]
    committed_at: datetime
    """UTC, without zone."""
    message: str
    edits: tuple[Edit, ...] = ()

    @property
    def subject(self) -> str:
        """First line of the message."""
        return self.message.partition("\n")[0]


@dataclass(frozen=True, slots=True)
class Revision:
    """An edit as part of a golden's life."""

    golden: int
    commit: str
    edit: Edit


@dataclass
class Lives:
    """The goldens of a history."""

    revisions: list[Revision] = field(default_factory=list)
    """In the order of the commits, oldest first."""
    born: dict[int, str] = field(default_factory=dict)
    """Golden id → path of its birth."""
    paths: dict[str, int] = field(default_factory=dict)
    """Every path ever → the golden that lives there now, or did last."""
    at: dict[str, dict[str, int]] = field(default_factory=dict)
    """Commit → path → golden id, of the tips."""


def golden_id(path: str, life: int = 0) -> int:
    """Id of the golden born at a path; ``life`` counts those born there before it."""
    digest = hashlib.blake2b(f"{life}\0{path}".encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "little", signed=True)


def read(repo: Repo, settings: Settings, tips: Iterable[str]) -> list[Commit]:
    """Every commit reachable from ``tips``, parents before children, with its edits of golden files.

    Raises
    ------
    RepoError
        Git failed.
    """
    mark = f"\x1e{secrets.token_hex(8)}\x1e"  # no commit message can hold it
    where = ["--", settings.root] if settings.root else ["--"]
    output = repo.run(*_LOG, f"--format={mark}%H%x1f%P%x1f%ct%x1f%B", *tips, *where)
    text = output.decode("utf-8", "surrogateescape")
    names: dict[str, bool] = {}
    return [_commit(record, settings, names) for record in text.split(mark)[1:]]


def _commit(record: str, settings: Settings, names: dict[str, bool]) -> Commit:
    head, _, raw = record.partition("\0")
    sha, parents, seconds, message = head.split("\x1f", 3)
    moment = datetime.fromtimestamp(int(seconds), UTC).replace(tzinfo=None)
    return Commit(sha, tuple(parents.split()), moment, message.strip("\n"), tuple(_edits(raw, settings, names)))


def _edits(raw: str, settings: Settings, names: dict[str, bool]) -> Iterator[Edit]:
    """Edits of golden files; links and submodules count as absent, other files are passed over."""
    words = iter(raw.lstrip("\n").split("\0"))
    for word in words:
        if not word.startswith(":"):
            continue
        old_mode, mode, old, new, status = word[1:].split()
        path = next(words)
        target = next(words) if status[0] in "RC" else path
        before = old if _counts(path, old_mode, settings, names) else None
        after = new if _counts(target, mode, settings, names) else None
        if before is None and after is None:
            continue
        if before is None or after is None:
            yield Edit(target if after else path, after, ADDED if after else DELETED, None, before)
        elif target != path:
            yield Edit(target, after, RENAMED, path, before)
        elif before != after:
            yield Edit(path, after, MODIFIED, None, before)


def _counts(path: str, mode: str, settings: Settings, names: dict[str, bool]) -> bool:
    if not mode.startswith("100"):
        return False
    name = path.rpartition("/")[2]
    if name not in names:
        names[name] = is_golden_name(name, settings)
    return names[name]


def documents(commits: Iterable[Commit]) -> list[str]:
    """Blob ids of all golden files ever, each once, oldest first."""
    return list(dict.fromkeys(edit.document for commit in commits for edit in commit.edits if edit.document))


def lives(commits: Sequence[Commit], tips: Iterable[str]) -> Lives:
    """Follow every golden through the history.

    A rename with identical content carries the life along. A path that appears takes up the life a
    merged parent has there, or else the one that path had before on any branch, unless that golden
    lives on under another name; then a new life begins. Where one branch renames and another deletes and
    adds, because it changed the content at the same time, the rename tells that both mean one golden.
    """
    tips = list(tips)
    out, moved = _walk(commits, tips, {})
    return _walk(commits, tips, moved)[0] if moved else out


def _walk(commits: Sequence[Commit], tips: Sequence[str], moved: Mapping[str, int]) -> tuple[Lives, dict[str, int]]:
    out, walk = Lives(), _Walk(moved)
    waiting = Counter(parent for commit in commits for parent in commit.parents)
    waiting.update(tips)
    for commit in commits:
        walk.step(commit, out)
        for parent in commit.parents:
            waiting[parent] -= 1
            if not waiting[parent]:
                walk.states.pop(parent, None)
    out.at = walk.states
    return out, walk.clashes


class _Walk:
    """Keeps, for each commit still needed, which golden lives at which path.

    Parameters
    ----------
    moved
        Path → golden that a rename somewhere in the history brings there.
    """

    def __init__(self, moved: Mapping[str, int]) -> None:
        self.moved = moved
        self.clashes: dict[str, int] = {}
        """Path → golden renamed to it, where the path had another golden on another branch."""
        self.states: dict[str, dict[str, int]] = {}
        self.births: Counter[str] = Counter()

    def step(self, commit: Commit, out: Lives) -> None:
        state = dict(self.states.get(commit.parents[0], {})) if commit.parents else {}
        taken = self._take_away(commit, state)
        alive = set(state.values()) | {taken[e.old_path] for e in commit.edits if e.old_path in taken}
        for edit in commit.edits:
            if edit.change == DELETED:
                golden = taken.get(edit.path)
            elif edit.change == RENAMED:
                golden = taken.get(edit.old_path or "")
                if golden is not None and out.paths.get(edit.path, golden) != golden:
                    self.clashes[edit.path] = golden
            else:
                golden = state.get(edit.path)
            if golden is None:
                golden = self._appear(edit.path, commit, alive, out)
                alive.add(golden)
            if edit.change != DELETED:
                state[edit.path] = golden
                out.paths[edit.path] = golden
            out.revisions.append(Revision(golden, commit.id, edit))
        self.states[commit.id] = state

    @staticmethod
    def _take_away(commit: Commit, state: dict[str, int]) -> dict[str, int]:
        """Remove what was deleted or renamed away; old path → golden."""
        gone = [e.old_path or e.path for e in commit.edits if e.change in (DELETED, RENAMED)]
        return {path: state.pop(path) for path in gone if path in state}

    def _appear(self, path: str, commit: Commit, alive: set[int], out: Lives) -> int:
        merged = (self.states.get(parent, {}).get(path) for parent in commit.parents[1:])
        for known in (*merged, out.paths.get(path), self.moved.get(path)):
            if known is not None and known not in alive:
                return known
        golden = golden_id(path, self.births[path])
        self.births[path] += 1
        out.born[golden] = path
        return golden
