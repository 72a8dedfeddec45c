"""Every command as a function: plain values in, the result out, nothing printed.

``goldenctl.api.diff("main", "WORKTREE")`` does what ``goldenctl diff main WORKTREE`` does, in the current folder and with
its settings. Every function raises errors of :mod:`goldenctl.errors`, whose text says fact, place and next step;
what a command imports is imported when its function is called.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from goldenctl import config
from goldenctl.api.catalogs import (
    Words,
    blame,
    catalog_build,
    catalog_export,
    catalog_sql,
    catalog_status,
    catalog_update,
    drift,
    log,
    place,
    store_clean,
    store_compact,
    store_pull,
    store_push,
    store_status,
)  # fmt: skip
from goldenctl.git import Repo
from goldenctl.model import Finding, RefreshResult
from goldenctl.selection import Only, Selection

if TYPE_CHECKING:
    from goldenctl import gate_audit as gates
    from goldenctl.archive import Archived
    from goldenctl.capture import Captured
    from goldenctl.collect import Collected
    from goldenctl.coverage import Coverage
    from goldenctl.diff import DiffResult
    from goldenctl.pending import Pending
    from goldenctl.report import Report
    from goldenctl.rules import Verdict
    from goldenctl.sides import Side
    from goldenctl.sources import FetchOptions
    from goldenctl.sync import driver
    from goldenctl.sync.model import Audit
    from goldenctl.sync.plan import Plan
    from goldenctl.tolerance import Proposal
    from goldenctl.triage import Triage
    from goldenctl.verify import Verified


__all__ = [
    "Recorded", "archive", "blame", "capture", "catalog_build", "catalog_export", "catalog_sql", "catalog_status",
    "catalog_update", "check", "coverage", "diff", "drift", "gate_audit", "install", "lint", "log", "merge_driver",
    "record", "refresh", "report", "restore", "review", "store_clean", "store_compact", "store_pull", "store_push",
    "store_status", "sync_audit", "sync_plan", "textconv", "tolerance", "triage", "verify",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Recorded:
    """What one run left in the catalog."""

    run: str
    new: int
    """Observations the catalog did not have."""
    collected: Collected


def _settings() -> config.Settings:
    return config.load(Path.cwd())


def _fetching(settings: config.Settings) -> FetchOptions:
    from goldenctl.sources import FetchOptions

    return FetchOptions(cache=settings.cache_path)


def _check(settings: config.Settings, path: str, raw: bytes) -> list[Finding]:
    from goldenctl import lint

    return lint.check(path, raw, settings)


def lint(paths: Words = (), *, against: str = "") -> list[Finding]:
    """Findings of golden files, those without an error included; with ``against`` also what was lost since a revision."""
    from goldenctl.lint import chosen, tree

    settings = _settings()
    files = chosen.files([Path(p) for p in paths], settings)
    found = list(tree.check_files(files, settings, whole=not paths).findings)
    return found + (chosen.against(files, against, settings) if against else [])


def refresh(
    from_job: Words,
    *,
    only: str = "all",
    case: Words = (),
    platform: Words = (),
    match: Words = (),
    fix: bool = False,
    write: bool = False,
) -> RefreshResult:
    """Plan a refresh from runs and, with ``write``, carry it out: all files or none, recorded in the catalog."""
    from goldenctl import refresh as stage
    from goldenctl import sources

    settings = _settings()
    options = stage.Options(
        only=Only(only), selection=Selection(tuple(case), tuple(platform)), match=tuple(match), fix=fix, dry_run=not write
    )
    opened = [sources.open_source(ref, settings, _fetching(settings)) for ref in from_job]
    plan = stage.plan(opened, settings, options)
    if not write:
        return plan.result(dry_run=True)
    result = stage.execute(plan, settings, "goldenctl.api.refresh")
    stage.record(result, plan.documents(), settings)
    return result


def verify(paths: Words = (), *, against: Words = (), at: str = "WORKTREE", origin: bool = False) -> Verified:
    """How each golden matches the same golden at other revisions and, with ``origin``, which run delivered its bytes."""
    from goldenctl import collect, origins
    from goldenctl import verify as stage

    settings = _settings()
    side = collect.open_side(at, settings)
    others = [collect.revision_side(rev, settings) for rev in against]
    takes = collect.named(paths, settings, side.entries)
    origin_of = origins.recorded(Repo(settings.top), settings).of if origin else None
    return stage.verify(side, others, settings, takes=takes, origin_of=origin_of)


def _side(name: str, settings: config.Settings, *, store: bool, as_of: str) -> Side:
    from goldenctl import collect

    if (store or as_of) and name not in ("WORKTREE", "INDEX"):
        from goldenctl.catalog.places import shared
        from goldenctl.stored import open_stored

        found = open_stored(name, shared(settings, as_of))
        if found is not None:
            return found
    return collect.open_side(name, settings)


def diff(
    old: str,
    new: str,
    *,
    case: Words = (),
    platform: Words = (),
    workers: int = 1,
    store: bool = False,
    as_of: str = "",
) -> DiffResult:
    """Compare two sides, each a revision, ``WORKTREE``, ``INDEX``, a folder, a file or a run, golden by golden.

    With ``store`` or ``as_of`` the shared store is asked first for runs and revisions; ``workers`` must be 1 then.
    """
    from goldenctl import collect
    from goldenctl import diff as stage

    settings = _settings()
    before, after = (_side(name, settings, store=store, as_of=as_of) for name in (old, new))
    takes = collect.chooser(Selection(tuple(case), tuple(platform)), settings, {**before.entries, **after.entries})
    return stage.diff(before, after, settings, takes=takes, workers=workers)


def check(obtained: bytes, golden: bytes, *, rules: str = "strict", path: str = "") -> Verdict:
    """The verdict a functional test would give on two documents; ``path`` below root chooses the tolerances."""
    from goldenctl import rules as stage

    settings = _settings()
    return stage.check(
        obtained, golden, None, rules=stage.Rules(rules), tolerance_for=lambda m: settings.tolerance_for(m, path)
    )


def triage(from_job: str, *, case: Words = (), platform: Words = (), fetching: FetchOptions | None = None) -> Triage:
    """Sort a run's jobs by what became of them."""
    from goldenctl import collect
    from goldenctl import triage as stage

    settings = _settings()
    known, selection = collect.known_goldens(settings), Selection(tuple(case), tuple(platform))
    options = fetching or _fetching(settings)
    found = collect.collect(from_job, settings, selection=selection, options=options, known=known)
    return stage.triage(found, known, settings, selection)


def tolerance(from_runs: Words, *, alpha: float = 0.01, metric: Words = ()) -> list[Proposal]:
    """Tolerances from repeated runs; ``alpha`` is the share of sound runs that may fail."""
    from goldenctl import repeats
    from goldenctl import tolerance as stage

    settings = _settings()
    runs = repeats.open_repeats(from_runs, settings, tuple(metric))
    return stage.propose([r.sample for r in runs], alpha, settings.tolerance_for)


def capture(logdirs: Sequence[Path]) -> Captured:
    """A golden document of a run's TensorBoard event files; its ``render`` gives the bytes."""
    from goldenctl import capture as stage

    return stage.capture(logdirs, stage.Options())


def review() -> list[Pending]:
    """The golden contents that tests have proposed and nobody has decided about."""
    from goldenctl import pending

    return pending.waiting(_settings())


def gate_audit(golden: bytes, *, command: str = "", rules: str = "strict") -> gates.Audit:
    """Break a golden in known ways and say which of them a comparator, ours or a command, lets through."""
    from goldenctl import gate_audit as stage
    from goldenctl import rules as ours

    if command:
        return stage.audit(command, stage.by_command(command), {"golden": golden})
    comparator = stage.by_rules(ours.Rules(rules), ours.assumed(golden), _settings().tolerance_for)
    return stage.audit(rules, comparator, {"golden": golden})


def coverage() -> Coverage:
    """The matrix of cases and platforms as far as the tree tells, without recipes."""
    from goldenctl import collect
    from goldenctl import coverage as stage

    settings = _settings()
    settings.need_root()
    keys, _ = collect.golden_keys(settings)
    return stage.coverage(keys, settings, changed=stage.last_changes(Repo(settings.top), settings.root))


def sync_plan(upstream: str = "", downstream: str = "", *, size: int = 0) -> Plan:
    """The oldest slice of upstream that downstream lacks, and what its merge would do to goldens."""
    from goldenctl.sync import plan

    settings = _settings()
    settings.need_root()
    up, down, count = upstream or settings.sync.upstream, downstream or settings.sync.downstream, size or settings.sync.slice
    return plan.plan(Repo(settings.top), settings, up, down, count, lint=partial(_check, settings))


def sync_audit(rev: str, recorded: Mapping[str, Words] | None = None) -> Audit:
    """Every golden of a sync by where its content comes from; ``recorded`` says which runs delivered a digest."""
    from goldenctl.sync.audit import audit

    settings = _settings()
    settings.need_root()
    known = recorded or {}
    return audit(Repo(settings.top), settings, rev, lint=partial(_check, settings), recorded=lambda d: known.get(d, ()))


def restore(paths: Words, *, source: str, force: bool = False, write: bool = False) -> RefreshResult:
    """Bring goldens back as a revision has them; without ``write`` say what would be written."""
    from goldenctl.sync import restore as stage
    from goldenctl.writeback import apply

    settings = _settings()
    repo = Repo(settings.top)
    origin = stage.at_revision(repo, settings, source)
    restorer = stage.Restorer(repo, settings, origin, partial(_check, settings), force)
    found = restorer.restoration(
        stage.paths_of(settings, origin.blobs, list(paths), Path.cwd()), command="goldenctl.api.restore"
    )
    if write:
        apply(repo.top, settings.root, found.changes)
    return found.result


def record(
    from_job: str, *, fetching: FetchOptions | None = None, store: bool | None = None, lock_wait: float = 30.0
) -> Recorded:
    """Store a run's observed values in the catalog, or the shared store, and touch no golden.

    ``lock_wait`` is how many seconds to wait for other writers.
    """
    from goldenctl.catalog import record_run
    from goldenctl.collect import collect

    settings = _settings()
    found = collect(from_job, settings, options=fetching or _fetching(settings))
    replicates = [c for group in found.placed.replicates.values() for c in group]
    new = record_run(place(store, settings=settings), found.run, [*found.placed.candidates, *replicates], lock_wait)
    return Recorded(found.run.ref, new, found)


def archive(from_job: str, *, to: str = "") -> Archived:
    """Store a run's golden files under their digests, in ``to`` or the archive of the settings."""
    from goldenctl import archive as stage
    from goldenctl import sources
    from goldenctl.sources.objects import open_store

    settings = _settings()
    source = sources.open_source(from_job, settings, _fetching(settings))
    run = source.describe()
    return stage.store_run(open_store(to or settings.archive_location), run, source.fetch(run.artifacts))


def report(old: str, new: str, *, case: Words = (), platform: Words = ()) -> Report:
    """What differs between two sides, ready for :func:`goldenctl.report.html` and :func:`goldenctl.report.markdown`."""
    from goldenctl.report import build

    return build(diff(old, new, case=case, platform=platform), _settings())


def install(*, merge: bool = True, diff: bool = True, policy: str = "ask") -> list[str]:
    """Make git treat golden files as whole, and say what was done."""
    from goldenctl.sync import install as stage
    from goldenctl.sync.driver import Policy

    settings = _settings()
    settings.need_root()
    return stage.install(Repo(settings.top), settings, merge=merge, diff=diff, policy=Policy(policy))


def merge_driver(base: Path, ours: Path, theirs: Path, path: str, *, policy: str = "") -> driver.Verdict:
    """Merge a golden file as git's driver does: one side wins whole and is written to ``ours``, or there is a conflict."""
    from goldenctl.sync import driver

    chosen = driver.Policy(policy) if policy else None
    return driver.merge(Repo(config.find_top(Path.cwd())), path, chosen, base, ours, theirs)


def textconv(content: bytes) -> str:
    """A golden as one line a metric."""
    from goldenctl.sync.textconv import as_text

    return as_text(content)
