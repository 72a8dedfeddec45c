"""Plan and execution of a refresh."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

from goldenctl import candidates as placing
from goldenctl import lint, trailers, writeback
from goldenctl.candidates import Placed
from goldenctl.config import Settings
from goldenctl.errors import RepoError
from goldenctl.git import Repo
from goldenctl.model import (
    Action,
    Artifact,
    Candidate,
    Change,
    Conclusion,
    FileResult,
    GoldenKey,
    RefreshResult,
    Run,
    SourceProblem,
    Unplaced,
)
from goldenctl.refresh.judge import Judge, Verdict
from goldenctl.refresh.options import Options
from goldenctl.refresh.worktree import History, Worktree
from goldenctl.selection import Only
from goldenctl.sources import Source


@dataclass(frozen=True)
class Plan:
    """What a refresh would do, before anything is written."""

    runs: tuple[Run, ...]
    verdicts: tuple[Verdict, ...]
    problems: tuple[SourceProblem, ...] = ()
    unplaced: tuple[Unplaced, ...] = ()
    started_at: datetime = field(default_factory=lambda: datetime.now(UTC))

    @property
    def changes(self) -> tuple[Change, ...]:
        """The files to write."""
        return tuple(v.change for v in self.verdicts if v.change is not None)

    def documents(self) -> dict[str, bytes]:
        """Golden path → bytes the run proposes, for the record."""
        return {v.result.path: v.content for v in self.verdicts if v.content}

    def result(self, *, dry_run: bool, command: str = "") -> RefreshResult:
        """The plan as the result of a refresh."""
        files = tuple(_dry(v.result) if dry_run else v.result for v in self.verdicts)
        ident = f"{self.started_at:%Y%m%dT%H%M%S}-{secrets.token_hex(3)}"
        return RefreshResult(ident, self.runs, files, self.problems, self.unplaced, dry_run, self.started_at, command)


def _dry(result: FileResult) -> FileResult:
    return replace(result, action=Action.WOULD_WRITE) if result.action is Action.WRITTEN else result


def plan(sources: Sequence[Source], settings: Settings, options: Options) -> Plan:
    """Collect, resolve, lint and match; nothing is written.

    Parameters
    ----------
    sources
        One per run; with several, candidates that disagree are refused.
    settings
        Settings of the repository.
    options
        What was asked for.

    Raises
    ------
    SourceError
        A run cannot be had at all.
    UsageError
        No root, or a case, platform or revision that matches nothing.
    """
    settings.need_root()
    worktree = Worktree(settings)
    history = History(settings, options.match)
    targets = _Targets(settings, options, worktree)
    runs: list[Run] = []
    placed: list[Placed] = []
    problems: list[SourceProblem] = []
    for source in sources:
        run = source.describe()
        fetched = tuple(source.fetch([a for a in run.artifacts if targets.may_need(a)]))
        runs.append(run)
        problems += [*run.problems, *(p for f in fetched for p in f.problems)]
        placed.append(placing.resolve(run, fetched, worktree.known))
    targets.check(placed, runs)
    history.load({c.path for group in placed for c in group.candidates})
    judge = Judge(settings, options, worktree, history)
    verdicts = _verdicts(placed, targets, judge)
    verdicts += [_missing(path, key, problems, runs) for path, key in targets.without(verdicts, runs)]
    unplaced = tuple(u for group in placed for u in group.unplaced)
    guarded = _guard(verdicts, settings, options)
    return Plan(tuple(runs), tuple(sorted(guarded, key=lambda v: v.result.path)), tuple(problems), unplaced)


class _Targets:
    """Which goldens are asked for, from the options and the state of the work tree."""

    def __init__(self, settings: Settings, options: Options, worktree: Worktree) -> None:
        self._settings = settings
        self._options = options
        self._worktree = worktree
        keys = worktree.known.keys
        self._wanted: dict[str, GoldenKey] | None = None
        if options.only is Only.NONFINITE:
            self._wanted = {p: k for p, k in keys.items() if options.selection.takes(k) and self._non_finite(p)}

    def _non_finite(self, path: str) -> bool:
        raw = self._read(path) or b""
        return any(f.rule == "GV001" for f in lint.check(path, raw, self._settings))

    def _read(self, path: str) -> bytes | None:
        """A golden's bytes, None when there is none; one that cannot be read is as an empty one, and the judge refuses it."""
        try:
            return self._worktree.read(path)
        except RepoError:
            return b""

    def may_need(self, artifact: Artifact) -> bool:
        """Whether to fetch an artifact, as far as its job tells."""
        job = artifact.job
        if not self._options.selection.may_take(artifact):
            return False
        if job is None or not job.test_case:
            return True
        if self._options.only is Only.FAILING:
            return job.conclusion is not Conclusion.SUCCESS
        if self._wanted is not None:
            return any(k.test_case == job.test_case and job.model in ("", k.model) for k in self._wanted.values())
        return True

    def check(self, placed: Sequence[Placed], runs: Sequence[Run]) -> None:
        """Refuse a ``--case`` or ``--platform`` that neither repository nor run knows."""
        keys = [*self._worktree.known.keys.values(), *(c.key for group in placed for c in group.candidates)]
        jobs = [GoldenKey(j.model, j.test_case, "", j.platform) for run in runs for j in run.jobs if j.test_case]
        self._options.selection.check([*keys, *jobs], self._settings.platforms)

    def takes(self, candidate: Candidate, judge: Judge) -> bool:
        """Whether a candidate is for a golden asked for."""
        if not self._options.selection.takes(candidate.key):
            return False
        golden = self._read(candidate.path)
        match self._options.only:
            case Only.NONFINITE:
                return self._wanted is not None and candidate.path in self._wanted
            case Only.FAILING:
                return candidate.job is not None and candidate.job.conclusion is not Conclusion.SUCCESS
            case Only.MISSING:
                return golden is None
            case Only.DRIFTED:
                return golden is not None and judge.differs(candidate.content, golden, candidate.path)
            case Only.ALL:
                return True

    def unknown_case(self, candidate: Candidate) -> str:
        """Why a candidate for a case the repository does not have is refused; empty when it has it."""
        known = self._worktree.known
        if candidate.key.case in known.cases or self._options.only is Only.MISSING:
            return ""
        near = known.nearest_case(candidate.key.case)
        return f"no case {candidate.key.case!r} here" + (f"; nearest is {near!r}" if near else "") + "; --only missing adds it"

    def without(self, verdicts: Iterable[Verdict], runs: Sequence[Run]) -> list[tuple[str, GoldenKey]]:
        """Goldens asked for that the runs have no candidate for."""
        have = {v.result.path for v in verdicts}
        if self._wanted is not None:
            return [(p, k) for p, k in sorted(self._wanted.items()) if p not in have]
        return [(p, k) for p, k in self._of_jobs(runs) if p not in have]

    def _of_jobs(self, runs: Sequence[Run]) -> list[tuple[str, GoldenKey]]:
        """Goldens of the jobs asked for, where the job names its platform and environment."""
        out = []
        for job in (j for run in runs for j in run.jobs if j.model and j.test_case and j.platform):
            if self._options.only is Only.FAILING and job.conclusion is Conclusion.SUCCESS:
                continue
            key = GoldenKey(job.model, job.test_case, job.environment or "dev", job.platform)
            known = {p: k for p, k in self._worktree.known.keys.items() if k == key and self._options.selection.takes(k)}
            out += list(known.items()) if self._options.only in (Only.ALL, Only.FAILING) else []
        return out


def _verdicts(placed: Sequence[Placed], targets: _Targets, judge: Judge) -> list[Verdict]:
    conflicts = placing.disagreeing(placed)
    done: dict[str, Verdict] = {}
    for group in placed:
        for candidate in group.candidates:
            if candidate.path in done or not targets.takes(candidate, judge):
                continue
            verdict = judge.judge(candidate, group.replicates.get(candidate.path, ()))
            reason = targets.unknown_case(candidate)
            if candidate.path in conflicts and _unequal(conflicts[candidate.path], judge):
                names = " and ".join(c.run.ref for c in conflicts[candidate.path])
                reason = f"{names} propose different values"
            done[candidate.path] = _refuse(verdict, reason) if reason else verdict
    return list(done.values())


def _unequal(proposals: Sequence[Candidate], judge: Judge) -> bool:
    return any(not judge.equal(proposals[0].content, other.content) for other in proposals[1:])


def _refuse(verdict: Verdict, reason: str) -> Verdict:
    return Verdict(replace(verdict.result, action=Action.REFUSED, reason=reason), None, verdict.content)


def _guard(verdicts: Sequence[Verdict], settings: Settings, options: Options) -> list[Verdict]:
    """Refuse what the work tree does not allow to be written: dirty files, links, paths outside root."""
    paths = [v.result.path for v in verdicts if v.change is not None]
    reasons: Mapping[str, str] = writeback.refusals(Repo(settings.top), settings.root, paths, force=options.force)
    return [_refuse(v, reasons[v.result.path]) if v.change and reasons.get(v.result.path) else v for v in verdicts]


def _missing(path: str, key: GoldenKey, problems: Sequence[SourceProblem], runs: Sequence[Run]) -> Verdict:
    jobs = [j for run in runs for j in run.jobs if j.test_case == key.test_case and j.model in ("", key.model)]
    about = [p.message for p in problems if any(p.subject in (j.name, j.test_case) for j in jobs)]
    about += [p.message for p in problems for run in runs for a in run.artifacts if a.name == p.subject and a.job in jobs]
    if about:
        reason = about[0]
    elif jobs:
        reason = f"job {jobs[0].name!r} ended as {jobs[0].conclusion.value} and delivered no such file"
    else:
        reason = "no job of the run covers it"
    return Verdict(FileResult(path, key, Action.MISSING, reason))


def execute(prepared: Plan, settings: Settings, command: str = "") -> RefreshResult:
    """Write the changes of a plan, all or none.

    Raises
    ------
    RepoError
        Nothing was written, with the reason.
    """
    writeback.apply(settings.top, settings.root, prepared.changes)
    return prepared.result(dry_run=False, command=command)


def commit(result: RefreshResult, settings: Settings) -> str:
    """Commit the written files with their provenance as trailers and return the commit.

    Raises
    ------
    RepoError
        Git cannot commit; the files stay written.
    """
    return trailers.commit(Repo(settings.top), result)


def record(result: RefreshResult, documents: Mapping[str, bytes], settings: Settings) -> None:
    """Put a refresh into the catalog.

    Raises
    ------
    CatalogError
        The catalog cannot be written; the golden files are written all the same.
    """
    from goldenctl import catalog  # duckdb is loaded only when there is something to record
    from goldenctl.catalog.places import chosen

    catalog.record_refresh(chosen(settings), result, documents)


def log(prepared: Plan, result: RefreshResult, settings: Settings, report: Path | None = None) -> str:
    """Log a refresh to MLflow and say in one sentence what came of it; a server that is down never fails a refresh."""
    try:
        from goldenctl import mlflow_sink
    except ModuleNotFoundError as exc:
        return f"MLflow: the refresh is not logged, {exc.name} is not installed; pip install 'goldenctl[mlflow]'"
    old = {c.path: c.old for c in prepared.changes}
    new = {c.path: c.new for c in prepared.changes if c.new is not None}
    return mlflow_sink.log_refresh(result, settings, old, new, report)
