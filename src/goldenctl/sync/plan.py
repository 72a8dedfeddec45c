"""Plan a sync: the oldest slice of upstream that downstream lacks, and every golden its merge would touch."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from goldenctl import syncs
from goldenctl.config import Settings
from goldenctl.errors import RepoError, UsageError
from goldenctl.git import Repo
from goldenctl.model import Finding, Severity
from goldenctl.sides import is_golden
from goldenctl.sync.audit import Lint
from goldenctl.sync.history import blobs_of, holdings, steps
from goldenctl.sync.mixture import is_mixture
from goldenctl.sync.report import finding_json


class Wins(StrEnum):
    """Whose content a plain ``git merge`` would leave."""

    UPSTREAM = "upstream"
    DOWNSTREAM = "downstream"
    SAME = "same"
    CONFLICT = "conflict"
    MIXED = "mixed"
    """Git merges the text without a conflict into a content that neither side has."""


@dataclass(frozen=True, slots=True)
class Change:
    """The newest commit of one side that changed a file since the merge base; empty when none did."""

    commit: str = ""
    subject: str = ""


@dataclass(frozen=True, slots=True)
class PlannedFile:
    """One golden that the merge would touch; blobs are empty where the file does not exist."""

    path: str
    wins: Wins
    base: str
    downstream: str
    upstream: str
    changed_upstream: Change
    changed_downstream: Change
    breaks: str = ""
    """What a textual merge would break, one sentence; empty when one side wins whole."""
    only_downstream: bool = False
    """Downstream's content has never been upstream: taking upstream's loses it."""
    driver: str = ""
    """Merge driver by ``.gitattributes``; empty for git's own."""
    findings: tuple[Finding, ...] = ()
    """Lint of the content that wins."""


@dataclass(frozen=True, slots=True)
class Plan:
    """The next slice of a sync."""

    upstream: str
    """Branch name."""
    downstream: str
    downstream_commit: str
    base: str
    first: str
    """Oldest commit of the slice; empty when nothing is missing."""
    tip: str
    """Newest commit of the slice: what to merge."""
    first_excluded: str
    """The commit after the tip; empty when the slice reaches upstream's end."""
    missing: int
    """Commits of upstream's own line that downstream lacks."""
    taken: int
    """Those in the slice."""
    imported: int
    """All commits the merge would bring, side branches included."""
    files: tuple[PlannedFile, ...]

    @property
    def in_order(self) -> bool:
        """Whether one side wins every golden whole."""
        return not any(f.wins in (Wins.CONFLICT, Wins.MIXED) for f in self.files)


def plan(repo: Repo, settings: Settings, upstream: str, downstream: str, size: int, *, lint: Lint) -> Plan:
    """The oldest ``size`` upstream commits that downstream lacks, and what their merge does to goldens.

    Raises
    ------
    UsageError
        A branch does not exist, or ``size`` is not positive.
    """
    if size < 1:
        raise UsageError(f"a slice of {size} commits is no slice", hint="--slice 100")
    theirs, ours = syncs.branch(repo, upstream), syncs.branch(repo, downstream)
    absent = set(repo.text("rev-list", theirs, f"^{ours}").split())
    line = [c for c in reversed(repo.text("rev-list", "--first-parent", theirs).split()) if c in absent]
    if not line:
        return Plan(upstream, downstream, ours, theirs, "", "", "", 0, 0, 0, ())
    tip = line[:size][-1]
    excluded = line[size] if size < len(line) else ""
    imported = int(repo.text("rev-list", "--count", tip, f"^{ours}"))
    base = repo.run("merge-base", ours, tip, check=False).decode().split()
    start = base[0] if base else ""
    files = _Planner(repo, settings, start, ours, tip, theirs, lint).files()
    return Plan(upstream, downstream, ours, start, line[0], tip, excluded, len(line), min(size, len(line)), imported, files)


@dataclass(frozen=True, eq=False)
class _Planner:
    repo: Repo
    settings: Settings
    base: str
    ours: str
    tip: str
    theirs: str
    lint: Lint

    def files(self) -> tuple[PlannedFile, ...]:
        root = self.settings.root
        base, ours, tip = (blobs_of(self.repo, rev, root) for rev in (self.base, self.ours, self.tip))
        touched = sorted(p for p in base.keys() | tip.keys() if base.get(p) != tip.get(p) and is_golden(p, self.settings))
        up, down = self._changes(self.tip), self._changes(self.ours)
        drivers = self._drivers(touched)
        had = holdings(self.repo, self.theirs, root)
        out: list[PlannedFile] = []
        for path in touched:
            blobs = base.get(path, ""), ours.get(path, ""), tip.get(path, "")
            wins, breaks, content = self._outcome(path, *blobs)
            changed_down = down.get(path, Change()) if blobs[0] != blobs[1] else Change()
            findings = tuple(self.lint(path, content)) if content else ()
            lonely = bool(blobs[1]) and not had.had(path, blobs[1])
            changed_up, driver = up.get(path, Change()), drivers.get(path, "")
            out.append(PlannedFile(path, wins, *blobs, changed_up, changed_down, breaks, lonely, driver, findings))
        return tuple(out)

    def _changes(self, rev: str) -> dict[str, Change]:
        since = (f"^{self.base}",) if self.base else ()
        newest = {step.path: step.commit for step in steps(self.repo, self.settings.root, "--first-parent", rev, *since)}
        subjects = dict(
            record.split("\x1f", 1)
            for record in self.repo.run("log", "--first-parent", "--no-show-signature", "-z", "--format=%H%x1f%s", rev, *since)
            .decode("utf-8", "replace")
            .split("\0")
            if record
        )
        return {path: Change(commit, subjects.get(commit, "")) for path, commit in newest.items()}

    def _drivers(self, paths: list[str]) -> dict[str, str]:
        listed = b"".join(p.encode("utf-8", "surrogateescape") + b"\0" for p in paths)
        words = self.repo.run("check-attr", "-z", "--stdin", "merge", stdin=listed).split(b"\0")
        values = zip(words[0::3], words[2::3], strict=False)
        named = {path.decode("utf-8", "surrogateescape"): value.decode() for path, value in values}
        return {path: value for path, value in named.items() if value not in ("unspecified", "set", "text")}

    def _outcome(self, path: str, base: str, ours: str, theirs: str) -> tuple[Wins, str, bytes]:
        """Who wins, what a textual merge breaks, and the content that is left."""
        if ours == theirs:
            return Wins.SAME, "", self._content(ours)
        if ours == base:
            return Wins.UPSTREAM, "", self._content(theirs)
        if not ours or not theirs:
            gone, other = ("downstream", "upstream") if not ours else ("upstream", "downstream")
            return Wins.CONFLICT, f"deleted {gone}, changed {other}", self._content(ours or theirs)
        return self._merged(path, self._content(base), self._content(ours), self._content(theirs))

    def _content(self, blob: str) -> bytes:
        return self.repo.blob(blob) if blob else b""

    def _merged(self, path: str, base: bytes, ours: bytes, theirs: bytes) -> tuple[Wins, str, bytes]:
        conflicts, text = merge_text(base, ours, theirs)
        if conflicts:
            places = "1 place" if conflicts == 1 else f"{conflicts} places"
            return Wins.CONFLICT, f"conflict markers in {places} of the JSON", b""
        if text in (ours, theirs):
            return (Wins.DOWNSTREAM if text == ours else Wins.UPSTREAM), "", text
        rules = sorted({f.rule for f in self.lint(path, text) if f.severity is Severity.ERROR})
        mixed = "values of both sides mixed" if is_mixture(text, ours, theirs) else "a content that neither side has"
        return Wins.MIXED, f"{mixed}{', ' + ', '.join(rules) if rules else ''}", text


def merge_text(base: bytes, ours: bytes, theirs: bytes) -> tuple[int, bytes]:
    """What ``git merge-file`` makes of three texts: number of conflicts and the text."""
    with tempfile.TemporaryDirectory() as folder:
        names = [Path(folder) / name for name in ("ours", "base", "theirs")]
        for name, content in zip(names, (ours, base, theirs), strict=True):
            name.write_bytes(content)
        done = subprocess.run(["git", "merge-file", "-p", *map(str, names)], capture_output=True, check=False)
    if done.returncode > 127:
        raise RepoError(f"git merge-file failed: {done.stderr.decode('utf-8', 'replace').strip()}")
    return done.returncode, done.stdout


def as_json(found: Plan) -> dict[str, Any]:
    """The plan with keys that stay."""
    head: Mapping[str, Any] = {k: getattr(found, k) for k in Plan.__slots__ if k != "files"}
    counts = {wins.value: sum(1 for f in found.files if f.wins is wins) for wins in Wins}
    files = [asdict(f) | {"wins": f.wins.value, "findings": [finding_json(x) for x in f.findings]} for f in found.files]
    return {"plan": head, "counts": counts, "files": files, "in_order": found.in_order}
