"""Whether one candidate may become the golden: lint, shrinkage, replicates, matches."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from goldenctl import compare, goldenfile, lint, testconfig, verify
from goldenctl.config import Settings
from goldenctl.errors import RepoError
from goldenctl.goldenfile import Document, DocumentError
from goldenctl.model import Action, Candidate, Change, FileResult, Finding, Fixed, Match, Severity
from goldenctl.refresh.options import Options, Scope
from goldenctl.refresh.scoping import ScopeError, scoped
from goldenctl.refresh.worktree import History, Worktree

FIXABLE = ("leading", "second-phase")
"""Kinds of non-finite values that lint's mechanical repair leaves out."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is to become of one golden file."""

    result: FileResult
    change: Change | None = None
    """None when nothing is to be written."""
    content: bytes = b""
    """The candidate's bytes, for the record."""


class Judge:
    """Judges candidates one by one against the work tree and the history."""

    def __init__(self, settings: Settings, options: Options, worktree: Worktree, history: History) -> None:
        self._settings = settings
        self._options = options
        self._worktree = worktree
        self._history = history

    def judge(self, candidate: Candidate, replicates: Sequence[Candidate] = ()) -> Verdict:
        """The verdict on a candidate; never raises for bad content."""
        fixed = Fixed(candidate.content)
        if self._options.fix:
            fixed = lint.fix(candidate.path, candidate.content, self._settings)
        content = fixed.content
        findings = tuple(lint.check(candidate.path, content, self._settings))
        base = replace(self._base(candidate, findings, fixed), matches=self._matches(candidate.path, content))
        try:
            old = self._worktree.read(candidate.path)
        except RepoError as exc:
            return _refused(base, f"the golden here {exc.fact}", content)
        reason = self._refusal(candidate, content, old, findings, replicates)
        if reason:
            return _refused(base, reason, content)
        if self._options.scope is not Scope.FILE and old is not None:
            try:
                content, metrics = scoped(old, content, candidate.path, self._settings, self._options)
            except ScopeError as exc:
                return _refused(base, str(exc), content)
            digest = hashlib.sha256(content).hexdigest()
            base = replace(base, metrics=metrics, sha256=digest, matches=self._matches(candidate.path, content))
        return self._required(base, candidate.path, content, old)

    def _base(self, candidate: Candidate, findings: tuple[Finding, ...], fixed: Fixed) -> FileResult:
        job, artifact = candidate.job, candidate.artifact
        return FileResult(
            candidate.path,
            candidate.key,
            Action.WRITTEN,
            job=job.name if job else "",
            attempt=job.attempt if job else 0,
            artifact=artifact.name if artifact else "",
            sha256=hashlib.sha256(fixed.content).hexdigest() if fixed.repairs else candidate.sha256,
            findings=findings,
            metrics=_metrics(fixed.content),
            notes=fixed.repairs,
        )

    def _refusal(
        self,
        candidate: Candidate,
        content: bytes,
        old: bytes | None,
        findings: Sequence[Finding],
        replicates: Sequence[Candidate],
    ) -> str:
        errors = [f for f in findings if f.severity is Severity.ERROR and (f.rule, f.metric) not in self._options.allow]
        if errors:
            more = f", and {len(errors) - 1} more" if len(errors) > 1 else ""
            repair = "; --fix leaves it out" if all(f.kind in FIXABLE for f in errors) else ""
            return f"candidate has {errors[0].rule}: {errors[0].message.removesuffix(lint.REPAIR)}{more}{repair}"
        job = candidate.job
        if job and job.conclusion.cut_short and not self._options.allow_shrink:
            return f"job ended as {job.conclusion.value}, its curves may be cut; --allow-shrink takes them all the same"
        lost = _lost(old, content)
        if lost and not self._options.allow_shrink:
            return f"candidate has less than the golden: {lost}; --allow-shrink takes it all the same"
        return self._disagreement(candidate, replicates)

    def _disagreement(self, candidate: Candidate, replicates: Sequence[Candidate]) -> str:
        for other in replicates:
            if other.sha256 != candidate.sha256 and self.differs(other.content, candidate.content, candidate.path):
                return f"replicates of the run disagree: {other.member} and {candidate.member}"
        return ""

    @staticmethod
    def equal(one: bytes, two: bytes) -> bool:
        """Whether two documents hold the same metrics, steps and values."""
        if one == two:
            return True
        try:
            return compare.equal(goldenfile.read(one), goldenfile.read(two))
        except DocumentError:
            return False

    def differs(self, obtained: bytes, golden: bytes, path: str) -> bool:
        """Whether two documents differ beyond the rules their test is compared by."""
        try:
            one, two = goldenfile.read(obtained), goldenfile.read(golden)
        except DocumentError:
            return obtained != golden
        config = testconfig.beside(self._settings.top / path)
        diffs = compare.compare(one, two, lambda m: self._settings.tolerance_for(m, path))
        required = set(config.metrics) if config else set()
        for diff in diffs:
            if required and diff.metric not in required:
                continue
            exact = self._settings.tolerance_for(diff.metric, path).exact and not (config and config.approximate_only)
            if (exact and not diff.exact) or not diff.approximate:
                return True
        return False

    def _required(self, result: FileResult, path: str, content: bytes, old: bytes | None) -> Verdict:
        required = self._options.require
        if required is not None:
            short = [m for m in result.matches if not m.level.meets(required)]
            if short:
                why = f"matches {short[0].rev} only as {short[0].level.value}, {required.value} is required"
                return _refused(result, why + (f" ({short[0].detail})" if short[0].detail else ""), content)
        if content == old:
            return Verdict(replace(result, action=Action.UNCHANGED, reason="already in place"), None, content)
        return Verdict(result, Change(path, old, content), content)

    def _matches(self, path: str, content: bytes) -> tuple[Match, ...]:
        config = testconfig.beside(self._settings.top / path)
        return tuple(
            verify.match(
                content,
                self._history.content(revision, path),
                rev=revision.rev,
                commit=revision.commit,
                tolerance_for=lambda m: self._settings.tolerance_for(m, path),
                required=config.metrics if config else None,
            )
            for revision in self._history.revisions
        )


def _refused(base: FileResult, reason: str, content: bytes) -> Verdict:
    return Verdict(replace(base, action=Action.REFUSED, reason=reason), None, content)


def _metrics(content: bytes) -> tuple[str, ...]:
    try:
        return tuple(s.metric for s in goldenfile.read(content).series)
    except DocumentError:
        return ()


def _lost(old: bytes | None, new: bytes) -> str:
    """What a candidate no longer has: finite values of the golden whose metric or step is gone.

    A step whose golden value was not finite is no loss: leaving it out is how warm-up NaN goes.
    """
    try:
        golden = goldenfile.read(old or b"")
    except DocumentError:
        return ""
    document = goldenfile.read(new)
    for series in golden.series:
        finite = {s for s, v in zip(series.steps, series.values, strict=True) if math.isfinite(v)}
        if not finite:
            continue
        found = document.metric(series.metric)
        if found is None:
            return f"metric {series.metric!r} is missing"
        gone = finite - set(found.steps)
        if gone:
            return f"{len(gone)} of {len(finite)} steps of {series.metric!r} are missing, from step {min(gone)}"
    return _lost_texts(golden, document)


def _lost_texts(golden: Document, document: Document) -> str:
    gone = [name for name in golden.texts if name not in document.texts and document.metric(name) is None]
    return f"{gone[0]!r} is missing" if gone else ""
