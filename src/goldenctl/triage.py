"""Sort a run's jobs by what became of their values, so that one cause reads as one line.

The values decide, not the job's colour: a candidate is judged against the golden of the work tree by strict rules.
A job that succeeded although its values drifted passes, as the case may be declared non-deterministic; one that failed
although its values match is infrastructure.
"""

from __future__ import annotations

import math
import shlex
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from goldenctl import rules, sides, testconfig
from goldenctl.candidates import Known
from goldenctl.collect import Collected
from goldenctl.compare import MetricDiff, compare
from goldenctl.config import Settings, Tolerance
from goldenctl.errors import RepoError
from goldenctl.goldenfile import Document, DocumentError, read
from goldenctl.model import Artifact, Candidate, Conclusion, GoldenKey, Job
from goldenctl.selection import Selection
from goldenctl.testconfig import TestConfig

SIZES = (1e-6, 1e-4, 1e-3, 1e-2, 1e-1)
"""Bounds of the classes of relative differences that tell causes apart."""
UNKNOWN = "unknown"
"""Platform of a job that neither its name nor a file tells."""


class Outcome(StrEnum):
    """What became of one job, or of one golden file of it."""

    PASSED = "passed"
    DRIFT_ONLY = "drift-only"
    """The approximate lane passes, the exact one fails: a refresh is the likely answer."""
    REGRESSION = "regression"
    """Beyond the tolerance."""
    TRUNCATED = "truncated"
    """Fewer steps than asked."""
    NON_FINITE = "non-finite"
    """NaN or infinity where the golden has a number."""
    CRASHED = "crashed"
    """The job ended without a golden document."""
    CANCELLED = "cancelled"
    EXPIRED = "expired"
    """The artifact's retention time is over."""
    INFRASTRUCTURE = "infrastructure"
    """The values match, or could not be fetched: something else went wrong."""
    NO_GOLDEN = "no-golden"
    """The repository has no golden for it yet."""
    RUNNING = "running"
    UNRELATED = "unrelated"
    """No functional test, skipped, or a case that is not compared with a golden."""

    @property
    def failing(self) -> bool:
        """Whether somebody has to look at it."""
        return self not in (Outcome.PASSED, Outcome.UNRELATED, Outcome.RUNNING)


@dataclass(frozen=True, slots=True)
class Row:
    """One job, or one golden file of a job that delivered several."""

    job: str
    """The job's name; the artifact's where no job is known."""
    case: str
    """``model/test_case``; empty for unrelated jobs."""
    platform: str
    environment: str
    outcome: Outcome
    detail: str = ""
    """Why, in a sentence."""
    path: str = ""
    """Golden path; empty when there is no candidate."""
    moved: tuple[MetricDiff, ...] = ()
    """Metrics that are not exactly the golden's."""
    required: tuple[str, ...] = ()
    """Metrics the case compares."""
    url: str = ""


@dataclass(frozen=True, slots=True)
class Cluster:
    """Failing rows whose metrics moved alike."""

    outcome: Outcome
    signature: tuple[str, ...]
    """Metric and size class, e.g. ``lm loss 1e-4 to 1e-3 up``."""
    rows: tuple[Row, ...]


@dataclass(frozen=True, slots=True)
class Uncovered:
    """A golden beside failing ones that the run has no values for."""

    path: str
    key: GoldenKey
    why: str


@dataclass(frozen=True, slots=True)
class Triage:
    """A run, sorted."""

    ref: str
    rows: tuple[Row, ...]
    clusters: tuple[Cluster, ...]
    not_covered: tuple[Uncovered, ...]
    commands: tuple[str, ...]

    @property
    def failing(self) -> tuple[Row, ...]:
        """Rows somebody has to look at."""
        return tuple(r for r in self.rows if r.outcome.failing)

    @property
    def counts(self) -> Mapping[str, Mapping[str, int]]:
        """Platform → outcome → rows; unrelated jobs are left out."""
        out: dict[str, Counter[str]] = defaultdict(Counter)
        for row in self.rows:
            if row.outcome is not Outcome.UNRELATED:
                out[row.platform][row.outcome.value] += 1
        return {platform: dict(sorted(counter.items())) for platform, counter in sorted(out.items())}

    def headline(self) -> str:
        """The run in one line, e.g. ``61 failing: 7 a100, 10 h100, 44 gb200, all drift-only``."""
        failing = self.failing
        passed = sum(r.outcome is Outcome.PASSED for r in self.rows)
        if not failing:
            return f"none failing, {passed} passed"
        platforms = Counter(r.platform.removeprefix("dgx_") for r in failing)
        where = ", ".join(f"{n} {p}" for p, n in sorted(platforms.items(), key=lambda item: (item[1], item[0])))
        outcomes = Counter(r.outcome.value for r in failing)
        what = ", ".join(f"{n} {o}" for o, n in outcomes.most_common())
        kinds = f"all {next(iter(outcomes))}" if len(outcomes) == 1 else what
        return f"{len(failing)} failing: {where}, {kinds}; {passed} passed"


def triage(found: Collected, known: Known, settings: Settings, selection: Selection) -> Triage:
    """Sort the jobs of a run whose artifacts were fetched.

    Parameters
    ----------
    found
        The run with its candidates and problems.
    known
        Goldens and cases of the work tree.
    selection
        Cases and platforms asked for; a job whose platform nobody knows is kept.
    """
    rows = [r for r in _rows(found, known, settings) if _takes(selection, r)]
    rows.sort(key=lambda r: (r.platform, r.environment, r.case, r.path, r.job))
    failing = [r for r in rows if r.outcome.failing]
    return Triage(
        found.run.ref,
        tuple(rows),
        tuple(_clusters(failing)),
        tuple(_uncovered(failing, {r.path for r in rows if r.path}, known, {r.job: r for r in rows})),
        tuple(_commands(found.run.ref, failing)),
    )


def _takes(selection: Selection, row: Row) -> bool:
    model, _, test_case = row.case.rpartition("/")
    if not row.case:
        return not (selection.cases or selection.platforms)
    lane = not selection.platforms or row.platform in (*selection.platforms, UNKNOWN)
    return lane and selection.takes_case(model, test_case)


def _rows(found: Collected, known: Known, settings: Settings) -> Iterator[Row]:
    judge = _Judge(found, known, settings)
    jobs = {_ident(c.job): c.job for c in found.placed.candidates if c.job} | {_ident(j): j for j in found.run.jobs}
    mine: dict[str, list[Candidate]] = defaultdict(list)
    for candidate in found.placed.candidates:
        mine[_ident(candidate.job)].append(candidate)
    for candidate in mine.pop("", []):
        yield judge.candidate(candidate, None)
    for ident, job in jobs.items():
        if mine.get(ident):
            yield from (judge.candidate(c, job) for c in mine[ident])
        else:
            yield judge.without(job)


def _ident(job: Job | None) -> str:
    return "" if job is None else f"{job.id} {job.name} {job.attempt}"


class _Judge:
    """Judges jobs and candidates against the work tree."""

    def __init__(self, found: Collected, known: Known, settings: Settings) -> None:
        self._run, self._known, self._settings = found.run, known, settings
        self._problems = {p.subject: p for p in found.problems}
        self._artifacts: dict[str, list[Artifact]] = defaultdict(list)
        for artifact in found.run.artifacts:
            self._artifacts[_ident(artifact.job)].append(artifact)

    def candidate(self, candidate: Candidate, job: Job | None) -> Row:
        """The row of a golden file that was delivered."""
        key, path = candidate.key, candidate.path
        config = testconfig.beside(self._settings.top / path)
        golden: bytes | None = None
        try:
            golden = sides.on_disk(self._settings, path)
            outcome, detail, moved = self._values(candidate, golden, config)
        except RepoError as exc:
            outcome, detail, moved = Outcome.REGRESSION, f"cannot be compared: the golden {exc.fact}", ()
        conclusion = job.conclusion if job else Conclusion.UNKNOWN
        outcome, detail = _with_conclusion(outcome, detail, conclusion)
        name = job.name if job else candidate.artifact.name if candidate.artifact else candidate.member
        required = (config or rules.assumed(golden or b"")).required
        return Row(
            name, key.case, key.platform, key.environment, outcome, detail, path, moved, required, job.url if job else ""
        )

    def _values(
        self, candidate: Candidate, golden: bytes | None, config: TestConfig | None
    ) -> tuple[Outcome, str, tuple[MetricDiff, ...]]:
        if golden is None:
            return Outcome.NO_GOLDEN, "the repository has no golden for it", ()
        try:
            have, want = read(candidate.content), read(golden)
        except DocumentError as exc:
            return Outcome.REGRESSION, f"cannot be compared: {exc}", ()
        relative = candidate.path.removeprefix(f"{self._settings.root}/")

        def tolerance_for(metric: str) -> Tolerance:
            return self._settings.tolerance_for(metric, relative)

        moved = tuple(d for d in compare(have, want, tolerance_for) if not d.exact)
        verdict = rules.check(candidate.content, golden, config, tolerance_for=tolerance_for)
        if verdict.passed:
            return Outcome.PASSED, "", moved
        return *_why(verdict, have, want, config or rules.assumed(golden)), moved

    def without(self, job: Job) -> Row:
        """The row of a job that delivered no golden file."""
        case = f"{job.model}/{job.test_case}" if job.model and job.test_case else job.test_case
        platform, environment = self._lane(job)
        outcome, detail = self._absence(job)
        return Row(job.name, case, platform, environment, outcome, detail, url=job.url)

    def _lane(self, job: Job) -> tuple[str, str]:
        """Platform and environment of a job, from its name or from the only golden lane of its case."""
        lanes = {(k.platform, k.environment) for k in self._known.keys.values() if _same_case(k, job)}
        fitting = {x for x in lanes if job.platform in ("", x[0]) and job.environment in ("", x[1])}
        if len(fitting) == 1:
            return next(iter(fitting))
        return job.platform or UNKNOWN, job.environment or UNKNOWN

    def _absence(self, job: Job) -> tuple[Outcome, str]:
        if not job.test_case or not self._is_compared(job):
            return Outcome.UNRELATED, "" if not job.test_case else "the case is not compared with a golden"
        if job.conclusion in (Conclusion.SKIPPED, Conclusion.RUNNING):
            return (Outcome.RUNNING if job.conclusion is Conclusion.RUNNING else Outcome.UNRELATED), job.conclusion.value
        artifacts = self._artifacts[_ident(job)]
        troubles = [self._problems[a.name] for a in artifacts if a.name in self._problems]
        if any(a.expired for a in artifacts) or any(p.kind == "expired" for p in troubles):
            return Outcome.EXPIRED, "the artifact has expired"
        if troubles:
            return Outcome.INFRASTRUCTURE, f"the artifact could not be read: {troubles[0].message}"
        if job.conclusion.cut_short:
            return Outcome.CANCELLED, f"the job {job.conclusion.value.replace('_', ' ')} before it delivered values"
        what = "no golden document in the artifact" if artifacts else "no artifact"
        return Outcome.CRASHED, f"the job ended as {job.conclusion.value} with {what}"

    def _is_compared(self, job: Job) -> bool:
        """Whether the case has a golden, and its configuration lets one be written."""
        paths = [p for p, k in self._known.keys.items() if _same_case(k, job)]
        configs = [testconfig.beside(self._settings.top / p) for p in paths]
        return bool(paths) and any(c is None or c.expects_golden for c in configs)


def _same_case(key: GoldenKey, job: Job) -> bool:
    return key.test_case == job.test_case and job.model in ("", key.model)


def _with_conclusion(outcome: Outcome, detail: str, conclusion: Conclusion) -> tuple[Outcome, str]:
    """The outcome of the values seen beside how the job ended."""
    if outcome is Outcome.PASSED and conclusion is Conclusion.FAILURE:
        return Outcome.INFRASTRUCTURE, "the values match the golden, yet the job failed"
    if outcome is Outcome.DRIFT_ONLY and conclusion is Conclusion.SUCCESS:
        return Outcome.PASSED, f"the job succeeded although {detail}"
    if conclusion.cut_short and outcome in (Outcome.PASSED, Outcome.DRIFT_ONLY):
        return Outcome.CANCELLED, f"the job ended as {conclusion.value}"
    return outcome, detail


def _why(verdict: rules.Verdict, obtained: Document, golden: Document, config: TestConfig) -> tuple[Outcome, str]:
    last = config.last_step or math.inf
    for metric in verdict.failed:
        have, want = obtained.metric(metric.metric), golden.metric(metric.metric)
        if have is None or want is None:
            continue
        if have.non_finite > want.non_finite:
            return Outcome.NON_FINITE, f"{metric.metric}: {metric.reason}"
        if have.steps and want.steps and max(have.steps) < min(max(want.steps), last):
            return Outcome.TRUNCATED, f"{metric.metric} ends at step {max(have.steps)} of {max(want.steps)}"
    detail = verdict.reason or f"{verdict.failed[0].metric}: {verdict.failed[0].reason}"
    drift = not verdict.reason and all(m.approximate for m in verdict.failed)
    return (Outcome.DRIFT_ONLY if drift else Outcome.REGRESSION), detail


def _clusters(failing: Sequence[Row]) -> Iterator[Cluster]:
    """Rows with the same outcome and the same metrics moved by about as much, the largest cluster first."""
    groups: dict[tuple[Outcome, tuple[str, ...]], list[Row]] = defaultdict(list)
    for row in failing:
        groups[row.outcome, signature(row)].append(row)
    for (outcome, marks), rows in sorted(groups.items(), key=lambda item: (-len(item[1]), item[0])):
        yield Cluster(outcome, marks, tuple(rows))


def signature(row: Row) -> tuple[str, ...]:
    """Which of the compared metrics moved and how: one text a metric. Without any, the reason without its numbers."""
    looked = [m for m in row.moved if m.metric in row.required] or [m for m in row.moved if not m.approximate]
    marks = tuple(sorted({f"{m.metric.partition('.')[2] or m.metric} {_size(m)}" for m in looked}))
    return marks or ("".join(c for c in row.detail.partition(":")[0] if not c.isdigit()),)


def _size(diff: MetricDiff) -> str:
    if diff.n_golden == 0 or diff.n_obtained == 0:
        return "is on one side only"
    if diff.nonfinite_golden != diff.nonfinite_obtained or diff.missing_steps:
        return "lost steps or numbers"
    if not diff.max_rel_diff:
        return "differs"
    bounds = [0.0, *SIZES, math.inf]
    place = next(i for i in range(len(bounds) - 1) if bounds[i] <= diff.max_rel_diff < bounds[i + 1])
    low, high = bounds[place], bounds[place + 1]
    span = f"below {high:g}" if low == 0 else f"{low:g} or more" if high == math.inf else f"{low:g} to {high:g}"
    mean, signed = diff.mean_rel_diff or 0.0, diff.signed_mean_rel_diff or 0.0
    direction = " up" if signed > mean / 2 else " down" if signed < -mean / 2 else ""
    return f"by {span}{direction}"


def _uncovered(failing: Iterable[Row], delivered: set[str], known: Known, jobs: Mapping[str, Row]) -> Iterator[Uncovered]:
    """Goldens of the failing cases, on any lane and phase, for which the run has no values."""
    cases = {r.case for r in failing if r.outcome in (Outcome.DRIFT_ONLY, Outcome.REGRESSION)}
    for path, key in sorted(known.keys.items()):
        if key.case in cases and path not in delivered:
            ran = [r for r in jobs.values() if r.case == key.case and r.platform == key.platform and not r.path]
            first_phase = path.replace(f"{key.variant}.json", ".json") if key.variant else ""
            second = "its first phase was delivered, this one was not" if first_phase in delivered else ""
            yield Uncovered(path, key, ran[0].detail if ran else second or "no job of this run")


def _commands(ref: str, failing: Sequence[Row]) -> Iterator[str]:
    """The refresh of everything that drifted only, one command a platform, and what to look at first."""
    start = f"goldenctl refresh --from-job {shlex.quote(ref)}"
    drifted: dict[str, list[str]] = defaultdict(list)
    for row in failing:
        if row.outcome is Outcome.DRIFT_ONLY and row.case not in drifted[row.platform]:
            drifted[row.platform].append(row.case)
    delivered = [r for r in failing if r.path]
    if drifted and all(r.outcome is Outcome.DRIFT_ONLY for r in delivered):
        yield f"{start} --only drifted"
    else:
        for platform, cases in sorted(drifted.items()):
            chosen = " ".join(f"--case {shlex.quote(c)}" for c in cases)
            if cases:
                yield f"{start} --platform {shlex.quote(platform)} {chosen}"
    if any(r.outcome is Outcome.NO_GOLDEN for r in failing):
        yield f"{start} --only missing"
