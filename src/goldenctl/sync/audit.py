"""Audit a sync: sort every golden by its blobs at the merge base, both parents and the result."""

from __future__ import annotations

import hashlib
import shlex
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache

from goldenctl import syncs, trailers, verify
from goldenctl.compare import equal
from goldenctl.config import Settings
from goldenctl.git import Repo
from goldenctl.goldenfile import Document, DocumentError, read
from goldenctl.model import Finding, Match, MatchLevel, Severity
from goldenctl.sides import is_golden, key_of
from goldenctl.sync import completeness, graph, landing
from goldenctl.sync.history import Holdings, blobs_of, holdings
from goldenctl.sync.mixture import is_mixture
from goldenctl.sync.model import Audit, AuditedFile, Class, Landing, Lost, Source

Lint = Callable[[str, bytes], list[Finding]]
"""Path and content → findings."""
Recorded = Callable[[str], Sequence[str]]
"""SHA-256 of a content → names of runs that delivered it, ``provider:id``, as the catalog knows them."""


def _nothing_recorded(_digest: str) -> Sequence[str]:
    return ()


def audit(repo: Repo, settings: Settings, rev: str, *, lint: Lint, recorded: Recorded = _nothing_recorded) -> Audit:
    """What a merge, a squash or a range did to the goldens.

    Parameters
    ----------
    rev
        A commit, ``sync:DATE``, ``sync:SHA`` or a range ``A..B``; the first parent (``A``) is downstream.
    lint
        Checks the results.
    recorded
        What the catalog knows of a content; git alone answers without it.

    Raises
    ------
    UsageError
        There is no such revision, or no such upstream branch.
    """
    found = landing.find(repo, settings, rev)
    work = _Audit(repo, settings, found, lint, recorded)
    files = tuple(work.files())
    return Audit(found, files, graph.check(repo, settings, found, files), completeness.check(repo, settings, found, files))


@dataclass(frozen=True, eq=False)
class _Audit:
    repo: Repo
    settings: Settings
    landing: Landing
    lint: Lint
    recorded: Recorded
    _contents: dict[str, bytes] = field(default_factory=dict)
    """Blob → content, of the changed files."""

    def files(self) -> Iterable[AuditedFile]:
        """Files that changed, and upstream changes that did not arrive, by path."""
        sides = [
            blobs_of(self.repo, rev, self.settings.root)
            for rev in (self.landing.base, self.landing.downstream, self.landing.upstream, self.landing.sha)
        ]
        places = {
            path: [side.get(path, "") for side in sides]
            for path in sorted(set().union(*sides))
            if is_golden(path, self.settings)
        }
        needed = [blobs for blobs in places.values() if blobs[1] != blobs[3]]
        self._contents.update(self.repo.blobs(blob for blobs in needed for blob in blobs[1:] if blob))
        for path, blobs in places.items():
            file = self._classified(path, *blobs)
            if file:
                yield self._described(file)

    def _classified(self, path: str, base: str, downstream: str, upstream: str, result: str) -> AuditedFile | None:
        kind = self._class(path, base, downstream, upstream, result)
        if kind is None:
            return None
        both = self.landing.base != "" and base not in (downstream, upstream)
        return AuditedFile(path, kind, key_of(path, self.settings), base, downstream, upstream, result, both_changed=both)

    def _class(self, path: str, base: str, downstream: str, upstream: str, result: str) -> Class | None:
        if result == downstream:
            arrived = not self.landing.upstream or upstream in (base, result)
            return None if arrived else Class.KEPT
        if not result:
            return Class.DELETED
        if not self._upstream.had(path, result):
            mixed = downstream and upstream and is_mixture(*map(self.content, (result, downstream, upstream)))
            return Class.MIXED if mixed else Class.OWN
        if not downstream:
            return Class.ADDED
        if not self._upstream.had(path, downstream):
            return Class.OVERWRITTEN
        return Class.FORMAT_ONLY if self._equal(downstream, result) else Class.FROM_UPSTREAM

    @cached_property
    def _upstream(self) -> Holdings:
        return holdings(self.repo, syncs.branch(self.repo, self.settings.sync.upstream), self.settings.root)

    @cached_property
    def _downstream(self) -> Holdings:
        return holdings(self.repo, self.landing.downstream, self.settings.root)

    @cached_property
    def _result(self) -> Holdings:
        return holdings(self.repo, self.landing.sha, self.settings.root)

    @cached_property
    def _earlier(self) -> list[tuple[syncs.Sync, dict[str, str]]]:
        """Landings before this one, newest first, with the blobs they left."""
        before = self.repo.text("rev-list", "--first-parent", self.landing.downstream).split()
        place = {commit: i for i, commit in enumerate(before)}
        known = [s for s in syncs.landings(self.repo, self.settings) if s.sha in place and s.kind != syncs.REVERT]
        known.sort(key=lambda s: place[s.sha])
        return [(s, blobs_of(self.repo, s.sha, self.settings.root)) for s in known]

    @cached_property
    def _runs(self) -> Mapping[tuple[str, str], str]:
        """(path, SHA-256) and (commit, ``""``) → run, from the trailers of every commit that is here."""
        out: dict[tuple[str, str], str] = {}
        plain = ("--all", "--no-show-signature", "-z", "--grep=^Golden-Run: ", "--format=%H%n%B")
        log = self.repo.run("log", *plain, self.landing.sha)
        for record in log.decode("utf-8", "surrogateescape").split("\0"):
            commit, _, message = record.partition("\n")
            said = trailers.parse(message)
            for run in said.runs[:1]:
                out[commit, ""] = f"{run.provider}:{run.id}"
                out.update({(a.path, a.sha256): f"{run.provider}:{run.id}" for a in said.artifacts})
        return out

    def content(self, blob: str) -> bytes:
        if blob not in self._contents:
            self._contents[blob] = self.repo.blob(blob)
        return self._contents[blob]

    @lru_cache(maxsize=64)  # noqa: B019 - lives as long as one audit
    def document(self, blob: str) -> Document | None:
        try:
            return read(self.content(blob)) if blob else None
        except DocumentError:
            return None

    def _equal(self, a: str, b: str) -> bool:
        left, right = self.document(a), self.document(b)
        return left is not None and right is not None and equal(left, right)

    def _described(self, file: AuditedFile) -> AuditedFile:
        """The same file with source, matches, lint, and what was lost or repaired."""
        if not file.changed:
            return file
        before, after = (self._non_finite(blob) for blob in (file.downstream, file.result))
        repaired = {m: n - after.get(m, 0) for m, n in before.items() if n > after.get(m, 0)} if file.result else {}
        worse = {m: (before.get(m, 0), n) for m, n in after.items() if n > before.get(m, 0)} if file.downstream else {}
        repair, undone = self._repair(file, worse)
        findings = self.lint(file.path, self.content(file.result)) if file.result else []
        known = self.lint(file.path, self.content(file.downstream)) if file.downstream and findings else []
        return replace(
            file,
            source=self._source(file),
            matches=tuple(self._matches(file)),
            lost=self._lost(file, repair, undone) if file.kind is Class.OVERWRITTEN or undone else None,
            repaired=repaired,
            findings=tuple(findings),
            new_errors=len(new_errors(findings, known)),
        )

    def _repair(self, file: AuditedFile, worse: Mapping[str, tuple[int, int]]) -> tuple[str, dict[str, tuple[int, int]]]:
        """The newest downstream commit that had repaired a metric of ``worse``, and those metrics."""
        history, blob, seen = self._downstream, file.downstream, set[str]()
        while worse and blob and blob not in seen:
            seen.add(blob)
            older = history.before.get((file.path, blob), "")
            had = self._non_finite(older)
            undone = {m: counts for m, counts in worse.items() if had.get(m, 0) > counts[0]}
            if undone:
                return history.first[file.path, blob], undone
            blob = older
        return "", {}

    def _non_finite(self, blob: str) -> dict[str, int]:
        document = self.document(blob)
        return {s.metric: s.non_finite for s in document.series if s.non_finite} if document else {}

    def _lost(self, file: AuditedFile, repair: str, undone: Mapping[str, tuple[int, int]]) -> Lost:
        commit = repair or self._downstream.first.get((file.path, file.downstream), self.landing.downstream)
        subject = self.repo.text("log", "-1", "--no-show-signature", "--format=%s", commit)
        restore = f"goldenctl restore {shlex.quote(file.path)} --from {self.landing.downstream}"
        return Lost(commit, subject, restore, undone)

    def _source(self, file: AuditedFile) -> Source:
        if not file.result:
            return Source()
        place = (file.path, file.result)
        commit = self._upstream.first.get(place) or self._result.first.get(place, "")
        digest = hashlib.sha256(self.content(file.result)).hexdigest()
        run = self._runs.get((file.path, digest)) or next(iter(self.recorded(digest)), "") or self._runs.get((commit, ""), "")
        return Source(commit, run)

    def _matches(self, file: AuditedFile) -> Iterable[Match]:
        if not file.result:
            return
        for sync, blobs in self._earlier:
            if blobs.get(file.path) == file.result:
                yield Match(f"sync:{sync.sha[:10]}", MatchLevel.IDENTICAL, sync.sha)
                break
        if file.kind in (Class.OWN, Class.MIXED):
            yield from self._revisions(file)

    def _revisions(self, file: AuditedFile) -> Iterable[Match]:
        """Where own content has been before, and else how near the two sides are."""
        same = self._downstream.first.get((file.path, file.result))
        if same:
            yield Match(same[:10], MatchLevel.IDENTICAL, same)
        for branch in (self._upstream, self._downstream):
            path, commit = branch.elsewhere.get(file.result, ("", ""))
            if commit and path != file.path:
                yield Match(f"{commit[:10]}:{path}", MatchLevel.IDENTICAL, commit)
        for name, rev, blob in (
            (self.settings.sync.downstream, self.landing.downstream, file.downstream),
            (self.settings.sync.upstream, self.landing.upstream, file.upstream),
        ):
            if rev:
                other = self.content(blob) if blob else None
                tolerance_for = lambda metric: self.settings.tolerance_for(metric, file.path)  # noqa: E731 - one argument bound
                yield verify.match(self.content(file.result), other, rev=name, commit=rev, tolerance_for=tolerance_for)


def new_errors(findings: Iterable[Finding], known: Iterable[Finding]) -> list[tuple[str, str]]:
    """Rule and metric of errors in ``findings`` that are not, or less often, in ``known``."""

    def count(found: Iterable[Finding]) -> Counter[tuple[str, str]]:
        out: Counter[tuple[str, str]] = Counter()
        for finding in found:
            if finding.severity is Severity.ERROR and not finding.baselined:
                out[finding.rule, finding.metric] += max(finding.count, 1)
        return out

    return list(count(findings) - count(known))
