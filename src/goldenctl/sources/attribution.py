"""Which artifact of a GitHub run belongs to which job and attempt; works on the REST API's own objects.

A run's artifact list holds the artifacts of all attempts, and an artifact says neither its job nor its
attempt. Its name says the test case, its time of creation lies in the window of the job that made it.
Both legs of a case have one display name, so names alone tell nothing about the platform.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from goldenctl.errors import CorruptError, NotFoundError
from goldenctl.model import Artifact, Conclusion, Job, Run, SourceProblem
from goldenctl.sources import time_of, waiting

Said = Mapping[str, Any]
"""A JSON object as the REST API gives it."""
Tell = Callable[[Artifact, Sequence[Job]], Job | None]
"""Surer evidence than times for which of several jobs made an artifact; None when there is none."""

_JOB = re.compile(r"(?P<model>[^/\s]+)/(?P<test_case>[^/\s]+) - latest")
_ARTIFACT = re.compile(r"logs-(?P<case>.+)-(?P<run>\d+)-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_UNIT_TESTS = "tests"
"""First folder of unit test buckets, whose jobs are named like those of a case."""
_SLACK = timedelta(seconds=5)
"""Clocks of the service's parts differ a little."""
_ENDLESS = datetime.max.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class _Listed:
    """A job with what only GitHub says of it."""

    job: Job
    labels: tuple[str, ...]
    """Labels of the runner asked for; the legs of a case differ here, if anywhere."""


def describe(
    ref: str,
    run: Said,
    jobs: Sequence[Said],
    artifacts: Sequence[Said],
    *,
    attempt: int | None = None,
    job_id: str = "",
    tell: Tell | None = None,
) -> Run:
    """The run with its jobs in their newest attempt and the artifacts these made.

    Parameters
    ----------
    ref
        The reference as the user gave it.
    run, jobs, artifacts
        What the REST API says: the run, the jobs of all attempts, the artifacts of all attempts.
    attempt
        Later attempts are left out; None for none.
    job_id
        Only this job; empty for all.
    tell
        Asked when times leave more than one job for an artifact.

    Raises
    ------
    NotFoundError
        The run has no such attempt or job.
    CorruptError
        The objects are not of the API's form.
    """
    try:
        listed = [_listed(j) for j in jobs]
        shown = _run(ref, run)
        given = [_artifact(a) for a in artifacts]
    except (KeyError, TypeError, ValueError, AttributeError) as exc:
        raise CorruptError(f"the run's description is not of the form of GitHub's API: {exc!r}", place=ref) from exc
    if attempt is not None and attempt > shown.attempt:
        raise NotFoundError(f"the run has no attempt {attempt}", place=ref, hint=f"the newest is {shown.attempt}")
    in_time = [x for x in listed if attempt is None or x.job.attempt <= attempt]
    kept, problems = _asked(in_time, job_id, ref)
    own = [x.job for x in in_time]
    attributed, more = _attribute(own, _later(listed, own), given, shown.id, tell)
    ids = {j.id for j in kept}
    taken = tuple(a for a in attributed if (a.job is None and not job_id) or (a.job is not None and a.job.id in ids))
    return replace(
        shown,
        attempt=attempt or shown.attempt,
        jobs=tuple(kept),
        artifacts=taken,
        problems=(*problems, *more, *_running(shown, kept)),
    )


def _asked(listed: Sequence[_Listed], job_id: str, ref: str) -> tuple[list[Job], list[SourceProblem]]:
    if not job_id:
        return newest(listed)
    found = [x.job for x in listed if x.job.id == job_id]
    if not found:
        raise NotFoundError(f"the run has no job {job_id}", place=ref, hint="take the number from the job's own page")
    return found, []


def _running(run: Run, jobs: Sequence[Job]) -> tuple[SourceProblem, ...]:
    names = [j.name for j in jobs if j.conclusion is Conclusion.RUNNING]
    if run.conclusion is not Conclusion.RUNNING and not names:
        return ()
    return (SourceProblem(f"run {run.id}", "running", waiting.progress(names), waiting.HINT),)


def newest(listed: Sequence[_Listed]) -> tuple[list[Job], list[SourceProblem]]:
    """Each job in its newest attempt; a re-run of some jobs leaves the others in theirs."""
    by_name: dict[str, list[_Listed]] = defaultdict(list)
    for item in listed:
        by_name[item.job.name].append(item)
    kept: list[Job] = []
    problems: list[SourceProblem] = []
    for name, group in by_name.items():
        found, text = _newest_legs(group)
        kept += [x.job for x in found]
        if text:
            problems.append(SourceProblem(name, "unplaced", text, "--attempt N takes one attempt"))
    return kept, problems


def _newest_legs(group: Sequence[_Listed]) -> tuple[list[_Listed], str]:
    """The newest job of each leg among jobs of one name, and what cannot be told."""
    by_attempt: dict[int, list[_Listed]] = defaultdict(list)
    for item in group:
        by_attempt[item.job.attempt].append(item)
    latest = max(by_attempt)
    legs = max(len(items) for items in by_attempt.values())
    if len(by_attempt[latest]) == legs:
        return by_attempt[latest], ""
    by_labels: dict[tuple[str, ...], _Listed] = {}
    for item in sorted(group, key=lambda x: x.job.attempt):
        by_labels[item.labels] = item
    if len(by_labels) == legs:
        return list(by_labels.values()), ""
    return _by_conclusion(by_attempt, latest)


def _by_conclusion(by_attempt: Mapping[int, Sequence[_Listed]], latest: int) -> tuple[list[_Listed], str]:
    """*Re-run failed jobs* leaves what succeeded: as many as failed before must have run again."""
    current: list[_Listed] = []
    for attempt in sorted(by_attempt):
        again = len(by_attempt[attempt])
        done = [x for x in current if x.job.conclusion is Conclusion.SUCCESS]
        if current and again < len(current) and len(current) - len(done) != again:
            count = len(by_attempt[latest])
            text = f"{len(current)} jobs have this name and only {count} ran again; which cannot be told"
            return list(by_attempt[latest]), text
        current = [*(done if again < len(current) else []), *by_attempt[attempt]]
    return current, ""


def _later(listed: Sequence[_Listed], own: Sequence[Job]) -> list[Job]:
    """Jobs of attempts after the one asked for, without the copies of what did not run again."""
    ids, times = {j.id for j in own}, {(j.name, j.started_at, j.completed_at) for j in own}
    return [x.job for x in listed if x.job.id not in ids and (x.job.name, x.job.started_at, x.job.completed_at) not in times]


def _attribute(
    jobs: Sequence[Job], later: Sequence[Job], artifacts: Sequence[Artifact], run_id: str, tell: Tell | None
) -> tuple[list[Artifact], list[SourceProblem]]:
    by_case: dict[str, list[Job]] = defaultdict(list)
    for job in jobs:
        if job.test_case:
            by_case[_in_artifact_name(job.test_case)].append(job)
    others = {_in_artifact_name(_bucket(j.name)) for j in jobs if not j.test_case}
    out: list[Artifact] = []
    problems: list[SourceProblem] = []
    for case, delivered in _by_case(artifacts, run_id).items():
        after = [j for j in later if j.test_case and _in_artifact_name(j.test_case) == case]
        if case in by_case:
            found, texts = _of_case(by_case[case], [a for a in delivered if not _fitting(after, a.created_at)], tell)
            out += found
            problems += texts
        elif case not in others and not after and not case.startswith(f"{_UNIT_TESTS}-unit_tests"):
            out += delivered
    return out, problems


def _by_case(artifacts: Sequence[Artifact], run_id: str) -> dict[str, list[Artifact]]:
    """Case as artifact names spell it → artifacts of functional jobs, of an upload and its retry the later."""
    uploads: dict[str, Artifact] = {}
    for artifact in sorted(artifacts, key=lambda a: (a.created_at or _ENDLESS, a.name)):
        uploads[artifact.name.removesuffix("-retry")] = artifact
    out: dict[str, list[Artifact]] = defaultdict(list)
    for name, artifact in uploads.items():
        match = _ARTIFACT.fullmatch(name)
        if match and match["run"] == run_id:
            out[match["case"]].append(artifact)
    return out


def _of_case(
    jobs: Sequence[Job], artifacts: Sequence[Artifact], tell: Tell | None
) -> tuple[list[Artifact], list[SourceProblem]]:
    """Artifacts of one case with the job whose window holds their time of creation."""
    runs = _distinct(jobs)
    unlisted = min(j.attempt for j in jobs) > 1
    first = min((j.started_at for j in jobs if j.started_at), default=None)
    used: Counter[str] = Counter()
    out: list[Artifact] = []
    problems: list[SourceProblem] = []
    for artifact in artifacts:
        fitting = _fitting(runs, artifact.created_at)
        if not fitting and unlisted and artifact.created_at and first and artifact.created_at < first:
            continue  # of an attempt whose jobs are not in the list
        if not fitting and len(runs) == len(artifacts) == 1:
            fitting = runs
        job = _one_of(artifact, fitting, used, tell)
        if job is None:
            names = ", ".join(dict.fromkeys(f"{j.name} (attempt {j.attempt})" for j in fitting or runs))
            what = "could be of any of" if fitting else "was made outside the time of every attempt of"
            problems.append(SourceProblem(artifact.name, "unplaced", f"{what} {names}", "--attempt N takes one attempt"))
        else:
            used[job.id] += 1
            out.append(replace(artifact, job=job, attempt=job.attempt))
    return out, problems


def _one_of(artifact: Artifact, fitting: Sequence[Job], used: Counter[str], tell: Tell | None) -> Job | None:
    """The job of an artifact; jobs of two models are never told apart by a guess."""
    if len(fitting) < 2:
        return fitting[0] if fitting else None
    told = tell(artifact, fitting) if tell else None
    if told is not None:
        return told
    if len({(j.model, j.test_case) for j in fitting}) > 1:
        return None
    # The upload is a job's last step, and artifacts come in the order of their creation.
    return min(fitting, key=lambda j: (used[j.id], j.completed_at or _ENDLESS))


def _distinct(jobs: Sequence[Job]) -> list[Job]:
    """Jobs without the copies that a later attempt lists of what did not run again."""
    same: dict[tuple[str, datetime | None, datetime | None], list[Job]] = defaultdict(list)
    for job in jobs:
        same[job.name, job.started_at, job.completed_at].append(job)
    out: list[Job] = []
    for group in same.values():
        legs = max(Counter(j.attempt for j in group).values())
        out += sorted(group, key=lambda j: j.attempt)[-legs:]
    return out


def _fitting(jobs: Sequence[Job], created: datetime | None) -> list[Job]:
    if created is None:
        return []
    for slack in (timedelta(0), _SLACK):
        found = [j for j in jobs if j.started_at and j.started_at - slack <= created <= _end(j) + slack]
        if found:
            return found
    return []


def _end(job: Job) -> datetime:
    return job.completed_at or _ENDLESS - _SLACK


def _in_artifact_name(name: str) -> str:
    return name.replace("/", "-").replace("*", "-")


def _bucket(name: str) -> str:
    """What a unit test job's artifact is named after."""
    return name.rpartition(" / ")[2].removesuffix(" latest").removesuffix(" gb200").removesuffix(" -")


def case_of(name: str) -> tuple[str, str]:
    """Model and test case of a job's display name; two empty texts when it is no job of a case.

    >>> case_of("moe/gpt3_tiny_ep8 - latest"), case_of("CICD / moe/gpt3_tiny_ep8 - latest")
    (('moe', 'gpt3_tiny_ep8'), ('moe', 'gpt3_tiny_ep8'))
    >>> case_of("tests/unit_tests/dist/*.py - latest"), case_of("../../evil/x - latest")
    (('', ''), ('', ''))
    """
    for part in reversed(name.split(" / ")):
        match = _JOB.fullmatch(part.strip())
        if match and match["model"] != _UNIT_TESTS:
            return match["model"], match["test_case"]
    return "", ""


def _listed(said: Said) -> _Listed:
    name = _text(said["name"])
    model, test_case = case_of(name)
    started, completed = time_of(said.get("started_at")), time_of(said.get("completed_at"))
    conclusion = _conclusion(said.get("status"), said.get("conclusion"))
    attempt, url = int(said.get("run_attempt") or 1), _text(said.get("html_url") or "")
    job = Job(
        str(said["id"]), name, model, test_case, attempt=attempt, conclusion=conclusion, started_at=started,
        completed_at=completed, url=url,
    )  # fmt: skip
    return _Listed(job, tuple(sorted(map(_text, said.get("labels") or ()))))


def _text(value: Any) -> str:
    """Text of an answer; a TypeError for anything else, before it is taken for a name."""
    if not isinstance(value, str):
        raise TypeError(f"{type(value).__name__} where text belongs")
    return value


def _artifact(said: Said) -> Artifact:
    digest = _text(said.get("digest") or "")
    return Artifact(
        str(said["id"]),
        _text(said["name"]),
        int(said["size_in_bytes"]),
        digest.removeprefix("sha256:") if digest.startswith("sha256:") else "",
        created_at=time_of(said.get("created_at")),
        expired=bool(said.get("expired")),
        url=_text(said.get("archive_download_url") or said.get("url") or ""),
    )


def _run(ref: str, said: Said) -> Run:
    repository = said.get("repository") or {}
    completed = said.get("updated_at") if said.get("status") == "completed" else None
    return Run(
        ref,
        "github",
        str(said["id"]),
        int(said.get("run_attempt") or 1),
        _text(said.get("head_sha") or ""),
        _text(said.get("head_branch") or ""),
        _conclusion(said.get("status"), said.get("conclusion")),
        time_of(said.get("run_started_at") or said.get("created_at")),
        time_of(completed),
        _text(said.get("html_url") or ""),
        _text(repository.get("full_name") or ""),
    )


def _conclusion(status: str | None, conclusion: str | None) -> Conclusion:
    if status is not None and status != "completed":
        return Conclusion.RUNNING
    if conclusion in ("startup_failure", "action_required"):
        return Conclusion.FAILURE
    known = {c.value: c for c in Conclusion}
    return known.get(conclusion or "", Conclusion.UNKNOWN)
