"""Write refreshes and observed runs into the catalog: parsed first, then one short transaction.

Everything is keyed by its own id, so that recording the same thing again changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime

import duckdb

from goldenctl.catalog import store
from goldenctl.catalog.arrow import clear, insert, replace, write_batch
from goldenctl.catalog.columns import ARTIFACT, GOLDEN, JOB, OBSERVATION, REFRESH, REFRESH_FILE, RUN
from goldenctl.catalog.history import golden_id
from goldenctl.catalog.homes import home_of
from goldenctl.catalog.places import Place
from goldenctl.catalog.rows import Batch, batches, utf8
from goldenctl.model import Artifact, Candidate, FileResult, GoldenKey, Job, RefreshResult, Run
from goldenctl.sides import content_id


def run_id(run: Run) -> str:
    """Key of a run in the catalog: ``provider:id#attempt``."""
    return f"{run.provider}:{run.id}#{run.attempt}"


def record_refresh(path: Place, result: RefreshResult, documents: Mapping[str, bytes], wait: float = store.WAIT) -> None:
    """Record a refresh with its runs, jobs, artifacts, files and the documents it wrote.

    Parameters
    ----------
    path
        The catalog file or lake; made when there is none.
    result
        What became of each file. Recorded again under the same id, it replaces what was there.
    documents
        Golden path → bytes now in the file, of the written files.
    wait
        Seconds to wait for other processes.

    Raises
    ------
    CatalogError
        The catalog cannot be written; the goldens are untouched by that.
    """
    parsed = _parse(documents.values())
    now = _utc(datetime.now(UTC))
    blobs = {name: content_id(raw) for name, raw in documents.items()}
    homes = {blobs[f.path]: home_of(f.key.model, f.key.test_case) for f in result.files if f.path in blobs}
    with store.writing(path, wait, about=f"refresh {result.id}") as connection:
        _write_batches(connection, parsed, homes)
        _write_runs(connection, result.runs, now)
        goldens = _goldens(connection, {f.path: f.key for f in result.files})
        runs = [run_id(run) for run in result.runs]
        head = (result.id, _utc(result.started_at), utf8(result.command), result.dry_run, runs, "")
        replace(connection, "refresh", ("id",), [head], REFRESH)
        rows = [_file_row(result.id, goldens[f.path], f, blobs.get(f.path)) for f in result.files]
        clear(connection, "refresh_file", ("refresh",), rows[:1], REFRESH_FILE)
        insert(connection, "refresh_file", rows, REFRESH_FILE)


def record_run(path: Place, run: Run, candidates: Sequence[Candidate], wait: float = store.WAIT) -> int:
    """Record what a run produced, without touching any file.

    Returns
    -------
    int
        Number of observations the catalog did not have before.

    Raises
    ------
    CatalogError
        The catalog cannot be written.
    """
    parsed = _parse(c.content for c in candidates)
    now = _utc(datetime.now(UTC))
    homes = {content_id(c.content): home_of(c.key.model, c.key.test_case) for c in candidates}
    with store.writing(path, wait, about=f"record {run_id(run)}") as connection:
        _write_batches(connection, parsed, homes)
        _write_runs(connection, [run], now)
        goldens = _goldens(connection, {c.path: c.key for c in candidates})
        before = _count(connection)
        rows = [_observation(goldens[c.path], c, now) for c in candidates]
        replace(connection, "observation", ("path", "run", "job", "attempt", "replicate", "member"), rows, OBSERVATION)
        return _count(connection) - before


def _count(connection: duckdb.DuckDBPyConnection) -> int:
    row = store.first_row(connection, "SELECT count(*) FROM observation")
    return int(row[0]) if row else 0


def _parse(contents: Iterable[bytes]) -> list[Batch]:
    return list(batches({content_id(raw): raw for raw in contents}.items()))


def _write_batches(connection: duckdb.DuckDBPyConnection, parsed: Iterable[Batch], homes: Mapping[str, int]) -> None:
    for batch in parsed:
        write_batch(connection, batch, homes)


def _write_runs(connection: duckdb.DuckDBPyConnection, runs: Sequence[Run], now: datetime | None) -> None:
    replace(connection, "run", ("id",), [_run_row(run, now) for run in runs], RUN)
    jobs = [_job_row(run_id(run), job) for run in runs for job in run.jobs]
    replace(connection, "job", ("run", "id", "attempt"), jobs, JOB)
    artifacts = [_artifact_row(run_id(run), artifact) for run in runs for artifact in run.artifacts]
    replace(connection, "artifact", ("run", "id", "name"), artifacts, ARTIFACT)


def _goldens(connection: duckdb.DuckDBPyConnection, keys: Mapping[str, GoldenKey]) -> dict[str, int]:
    """Golden id of each path: the golden that lives there now, or a new one."""
    known: dict[str, int] = dict(connection.execute("SELECT path, id FROM golden ORDER BY alive").fetchall())
    new = {path: key for path, key in keys.items() if utf8(path) not in known}
    rows = [
        (golden_id(p), utf8(p), k.model, k.test_case, k.environment, k.platform, k.variant, utf8(p), False)
        for p, k in new.items()
    ]
    replace(connection, "golden", ("id",), rows, GOLDEN)
    return {path: known.get(utf8(path), golden_id(path)) for path in keys}


def _run_row(run: Run, now: datetime | None) -> tuple[object, ...]:
    texts = (utf8(run.ref), run.repository, run.commit, utf8(run.branch), str(run.conclusion))
    times = (_utc(run.started_at), _utc(run.completed_at))
    return (run_id(run), run.provider, run.id, run.attempt, *texts, *times, run.url, now)


def _job_row(run: str, job: Job) -> tuple[object, ...]:
    case = (job.model, job.test_case, job.environment, job.platform)
    times = (_utc(job.started_at), _utc(job.completed_at))
    return (run, job.id, job.attempt, utf8(job.name), *case, str(job.conclusion), *times, job.url, job.allow_failure)


def _artifact_row(run: str, artifact: Artifact) -> tuple[object, ...]:
    job = artifact.job.id if artifact.job else ""
    head = (run, artifact.id, utf8(artifact.name), artifact.size, artifact.sha256, job, artifact.attempt)
    return (*head, _utc(artifact.created_at), artifact.expired, artifact.url)


def _observation(golden: int, candidate: Candidate, now: datetime | None) -> tuple[object, ...]:
    job, artifact, run = candidate.job, candidate.artifact, candidate.run
    ended = (job.completed_at if job else None) or run.completed_at
    where = (utf8(candidate.replicate), artifact.id if artifact else "", utf8(candidate.member))
    source = (run_id(run), job.id if job else "", job.attempt if job else run.attempt)
    return (golden, utf8(candidate.path), *source, *where, content_id(candidate.content), candidate.sha256, _utc(ended) or now)


def _file_row(refresh: str, golden: int, file: FileResult, document: str | None) -> tuple[object, ...]:
    matches = [{"rev": m.rev, "commit": m.commit, "level": str(m.level), "detail": m.detail} for m in file.matches]
    job = (utf8(file.job), file.attempt, utf8(file.artifact), file.sha256)
    said = (utf8(file.path), str(file.action), utf8(file.reason), *job, document)
    return (refresh, golden, *said, len(file.findings), [utf8(m) for m in file.metrics], matches)


def _utc(moment: datetime | None) -> datetime | None:
    """The moment in UTC without its zone, as DuckDB's TIMESTAMP has it."""
    return moment.astimezone(UTC).replace(tzinfo=None) if moment else None
