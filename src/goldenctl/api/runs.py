"""The commands that take a run: refresh, triage, record, archive, tolerance and capture, as functions."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from goldenctl.api.catalogs import place
from goldenctl.api.common import admitted, fetching, settings_here
from goldenctl.api.twin import (
    Count,
    FilesName,
    Folders,
    LevelName,
    OnlyName,
    Points,
    PrecisionName,
    Risk,
    ScopeName,
    Seconds,
    Some,
    Steps,
    Words,
    twin,
)
from goldenctl.errors import UsageError
from goldenctl.model import MatchLevel, RefreshResult
from goldenctl.selection import Only, Selection

if TYPE_CHECKING:
    from goldenctl.archive import Archived
    from goldenctl.capture import Captured
    from goldenctl.collect import Collected
    from goldenctl.config import Settings
    from goldenctl.refresh import Plan
    from goldenctl.tolerance import Proposal
    from goldenctl.triage import Triage


@dataclass(frozen=True, slots=True)
class Recorded:
    """What one run left in the catalog."""

    run: str
    new: int
    """Observations the catalog did not have."""
    collected: Collected


@twin
def refresh(
    from_job: Some,
    *,
    only: OnlyName = "all",
    case: Words = (),
    platform: Words = (),
    scope: ScopeName = "file",
    match: Words = (),
    require: LevelName | None = None,
    fix: bool = False,
    allow: Words = (),
    allow_shrink: bool = False,
    allow_mixed: bool = False,
    force: bool = False,
    commit: bool = False,
    attempt: Count | None = None,
    max_wait: Seconds = 300.0,
    wait: bool = False,
    write: bool = False,
) -> RefreshResult:
    """Plan a refresh from runs and, with ``write``, carry it out: all files or none, recorded in the catalog."""
    from goldenctl import refresh as stage
    from goldenctl import sources

    if require and not match:
        raise UsageError("require needs a revision to match against", hint='match=["sync:2026-04-28"]')
    settings = settings_here()
    options = stage.Options(
        only=Only(only),
        selection=Selection(tuple(case), tuple(platform)),
        scope=stage.Scope(scope),
        match=tuple(match),
        require=MatchLevel(require) if require else None,
        fix=fix,
        allow=admitted(allow),
        allow_shrink=allow_shrink,
        allow_mixed=allow_mixed,
        force=force,
        dry_run=not write,
    )
    opened = [sources.open_source(ref, settings, fetching(settings, attempt, max_wait, wait)) for ref in from_job]
    plan = stage.plan(opened, settings, options)
    return _carried_out(plan, settings, commit=commit) if write else plan.result(dry_run=True)


def _carried_out(plan: Plan, settings: Settings, *, commit: bool) -> RefreshResult:
    from goldenctl import refresh as stage

    result = stage.execute(plan, settings, "goldenctl.api.refresh")
    if commit and plan.changes:
        stage.commit(result, settings)
    stage.record(result, plan.documents(), settings)
    return result


@twin
def triage(
    from_job: str,
    *,
    case: Words = (),
    platform: Words = (),
    attempt: Count | None = None,
    max_wait: Seconds = 300.0,
    wait: bool = False,
) -> Triage:
    """Sort a run's jobs by what became of them."""
    from goldenctl import collect
    from goldenctl import triage as stage

    settings = settings_here()
    known, selection = collect.known_goldens(settings), Selection(tuple(case), tuple(platform))
    options = fetching(settings, attempt, max_wait, wait)
    found = collect.collect(from_job, settings, selection=selection, options=options, known=known)
    return stage.triage(found, known, settings, selection)


@twin
def record(
    from_job: str,
    *,
    attempt: Count | None = None,
    max_wait: Seconds = 300.0,
    wait: bool = False,
    store: bool | None = None,
    lock_wait: Seconds = 30.0,
) -> Recorded:
    """Store a run's observed values in the catalog, or the shared store, and touch no golden.

    ``lock_wait`` is how many seconds to wait for other writers.
    """
    from goldenctl.catalog import record_run
    from goldenctl.collect import collect

    settings = settings_here()
    found = collect(from_job, settings, options=fetching(settings, attempt, max_wait, wait))
    replicates = [c for group in found.placed.replicates.values() for c in group]
    new = record_run(place(store, settings=settings), found.run, [*found.placed.candidates, *replicates], lock_wait)
    return Recorded(found.run.ref, new, found)


@twin
def archive(
    from_job: str, *, to: str = "", attempt: Count | None = None, max_wait: Seconds = 300.0, wait: bool = False
) -> Archived:
    """Store a run's golden files under their digests, in ``to`` or the archive of the settings."""
    from goldenctl import archive as stage
    from goldenctl import sources
    from goldenctl.sources.objects import open_store

    settings = settings_here()
    if not (to or settings.archive_location):
        raise UsageError("name the archive", hint='to="DIR", or archive = "DIR" in the settings')
    source = sources.open_source(from_job, settings, fetching(settings, attempt, max_wait, wait))
    run = source.describe()
    return stage.store_run(open_store(to or settings.archive_location), run, source.fetch(run.artifacts))


@twin
def tolerance(from_runs: Some, *, alpha: Risk = 0.01, metric: Words = ()) -> list[Proposal]:
    """Tolerances from repeated runs; ``alpha`` is the share of sound runs that may fail."""
    from goldenctl import repeats
    from goldenctl import tolerance as stage

    settings = settings_here()
    runs = repeats.open_repeats(from_runs, settings, tuple(metric))
    return stage.propose([r.sample for r in runs], alpha, settings.tolerance_for)


@twin
def capture(
    logdirs: Folders,
    *,
    files: FilesName = "first",
    precision: PrecisionName = "full",
    train_iters: Count | None = None,
    step_size: Count = 1,
    metric: Words = (),
    thin: Points | None = None,
    pin: Steps = (),
) -> Captured:
    """A golden document of a run's TensorBoard event files; its ``render`` gives the bytes."""
    from goldenctl import capture as stage

    options = stage.Options(
        files=stage.Files(files),
        precision=stage.Precision(precision),
        train_iters=train_iters,
        step_size=step_size,
        metrics=tuple(metric) or stage.KEPT,
        thin=thin,
        pinned=tuple(pin),
    )
    return stage.capture([Path(folder) for folder in logdirs], options)
