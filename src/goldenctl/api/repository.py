"""The commands about git: sync, restore, install and the merge driver, as functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from goldenctl import config
from goldenctl.api.common import admitted, linter, settings_here
from goldenctl.api.twin import Count, PolicyName, Words, twin
from goldenctl.errors import CatalogError, UsageError
from goldenctl.git import Repo, no_repository
from goldenctl.model import Action, RefreshResult

if TYPE_CHECKING:
    from goldenctl.sync import driver
    from goldenctl.sync.model import Audit
    from goldenctl.sync.plan import Plan
    from goldenctl.sync.restore import Origin, Restoration


@twin
def sync_plan(upstream: str = "", downstream: str = "", *, slice: Count | None = None) -> Plan:
    """The oldest slice of upstream that downstream lacks, and what its merge would do to goldens."""
    from goldenctl.sync import plan

    settings = settings_here()
    settings.need_root()
    up, down, count = upstream or settings.sync.upstream, downstream or settings.sync.downstream, slice or settings.sync.slice
    return plan.plan(Repo(settings.top), settings, up, down, count, lint=linter(settings))


@twin
def sync_audit(rev: str, recorded: Mapping[str, Words] | None = None) -> Audit:
    """Every golden of a sync by where its content comes from; ``recorded`` says which runs delivered a digest."""
    from goldenctl.sync.audit import audit

    settings = settings_here()
    settings.need_root()
    known = recorded or {}
    return audit(Repo(settings.top), settings, rev, lint=linter(settings), recorded=lambda d: known.get(d, ()))


@twin
def restore(
    paths: Words = (),
    *,
    from_: str = "",
    reverted: str = "",
    allow: Words = (),
    force: bool = False,
    commit: bool = False,
    store: bool | None = None,
    write: bool = False,
) -> RefreshResult:
    """Bring goldens back as a revision, ``refresh:ID`` or ``archive:DIGEST`` has them, or as before a ``reverted`` commit.

    Without ``write`` it says what would be written.
    """
    from goldenctl.sync import restore as stage

    if bool(from_) == bool(reverted):
        raise UsageError("name one origin", hint='from_="main", or reverted="REV"')
    if not paths and not reverted:
        raise UsageError("name the goldens to restore", hint="give paths")
    settings = settings_here(store)
    repo = Repo(settings.top)
    origin = origin_of(repo, settings, from_, reverted, paths)
    wanted = stage.paths_of(settings, origin.blobs, list(paths), Path.cwd()) if paths else sorted(origin.blobs)
    restorer = stage.Restorer(repo, settings, origin, linter(settings), force, admitted(allow))
    found = restorer.restoration(wanted, command="goldenctl.api.restore")
    if not write:
        return _dry(found.result)
    if found.changes:
        write_restored(repo, settings, found, commit=commit)
    return found.result


def _dry(result: RefreshResult) -> RefreshResult:
    files = (replace(f, action=Action.WOULD_WRITE) if f.action is Action.WRITTEN else f for f in result.files)
    return replace(result, files=tuple(files), dry_run=True)


def origin_of(repo: Repo, settings: config.Settings, source: str, reverted: str, wanted: Sequence[str]) -> Origin:
    """Where earlier content is taken from: a revision, a refresh, an archived digest, or before a reverted commit."""
    from goldenctl.sync import restore

    if reverted:
        return restore.before_reverted(repo, settings, reverted)
    kind, _, name = source.partition(":")
    if kind == "refresh":
        return restore.of_refresh(name, partial(_written_by, settings))
    if kind == "archive":
        return restore.of_digest(repo, settings, name, restore.paths_of(settings, (), list(wanted), Path.cwd()))
    return restore.at_revision(repo, settings, source)


def _written_by(settings: config.Settings, refresh: str) -> dict[str, str]:
    """Golden path → blob id of the files a refresh wrote, from the catalog."""
    from goldenctl.catalog import sql
    from goldenctl.catalog.places import chosen

    name = refresh.replace("'", "''")
    query = f"SELECT path, document FROM refresh_file WHERE refresh = '{name}' AND action = 'written' AND document IS NOT NULL"  # noqa: S608
    return dict(sql(chosen(settings), query).rows())


def write_restored(repo: Repo, settings: config.Settings, found: Restoration, *, commit: bool) -> str:
    """Write what a restoration brings back, commit where asked for, record it; the commit, empty without one.

    Raises
    ------
    CatalogError
        The files are written, but the catalog has no record of it.
    """
    from goldenctl import trailers
    from goldenctl.catalog import record_refresh
    from goldenctl.catalog.places import chosen
    from goldenctl.writeback import apply

    apply(repo.top, settings.root, found.changes)
    made = trailers.commit(repo, found.result) if commit else ""
    documents = {c.path: c.new for c in found.changes if c.new is not None}
    try:
        record_refresh(chosen(settings), found.result, documents)
    except CatalogError as exc:
        raise CatalogError(f"the files are written, but not recorded: {exc.fact}", place=exc.place, hint=exc.hint) from exc
    return made


@twin
def install(*, merge_driver: bool = False, diff_driver: bool = False, policy: PolicyName = "ask") -> list[str]:
    """Install git's drivers for golden files, both unless one is named, and say what was done."""
    from goldenctl.sync import install as stage
    from goldenctl.sync.driver import Policy

    settings = settings_here()
    repo = Repo(settings.top)
    if not repo.is_repo():
        raise no_repository(settings.top)
    settings.need_root()
    both = not (merge_driver or diff_driver)
    return stage.install(repo, settings, merge=merge_driver or both, diff=diff_driver or both, policy=Policy(policy))


@twin
def merge_driver(
    base: str | Path, ours: str | Path, theirs: str | Path, path: str, *, policy: PolicyName | None = None
) -> driver.Verdict:
    """Merge a golden file as git's driver does: one side wins whole and is written to ``ours``, or there is a conflict."""
    from goldenctl.sync import driver

    chosen = driver.Policy(policy) if policy else None
    return driver.merge(Repo(config.find_top(Path.cwd())), path, chosen, Path(base), Path(ours), Path(theirs))
