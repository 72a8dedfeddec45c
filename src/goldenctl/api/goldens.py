"""The commands that look at goldens: verify, diff, check, gate-audit, coverage, report, textconv, as functions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from goldenctl.api.common import content, settings_here
from goldenctl.api.twin import AsOf, Count, Document, Natural, RulesName, States, Timeout, Words, twin
from goldenctl.errors import CatalogError, UsageError
from goldenctl.git import Repo
from goldenctl.selection import Selection

if TYPE_CHECKING:
    from goldenctl import gate_audit as gates
    from goldenctl.config import Settings
    from goldenctl.coverage import Coverage
    from goldenctl.diff import DiffResult
    from goldenctl.recipes import Row
    from goldenctl.report import Report
    from goldenctl.rules import Verdict
    from goldenctl.sides import Side
    from goldenctl.testconfig import TestConfig
    from goldenctl.verify import Verified

RECIPES = "tests/test_utils/recipes/**/*.yaml"
"""Where a Megatron-LM checkout has its recipes."""


@twin
def verify(
    paths: Words = (), *, against: Words = (), at: str = "WORKTREE", origin: bool = False, store: bool | None = None
) -> Verified:
    """How each golden matches the same golden at other revisions and, with ``origin``, which run delivered its bytes."""
    from goldenctl import collect, origins
    from goldenctl import verify as stage

    if not against and not origin:
        raise UsageError("nothing to verify against", hint='against="main", or origin=True')
    settings = settings_here(store)
    side = collect.open_side(at, settings)
    others = [collect.revision_side(rev, settings) for rev in against]
    takes = collect.named(paths, settings, side.entries)
    origin_of = origins.recorded(Repo(settings.top), settings).of if origin else None
    return stage.verify(side, others, settings, takes=takes, origin_of=origin_of)


def _side(name: str, settings: Settings, *, store: bool, as_of: str) -> Side:
    from goldenctl import collect

    if (store or as_of) and name not in ("WORKTREE", "INDEX"):
        from goldenctl.catalog.places import shared
        from goldenctl.stored import open_stored

        found = open_stored(name, shared(settings, as_of))
        if found is not None:
            return found
    return collect.open_side(name, settings)


@twin
def diff(
    old: str,
    new: str,
    *,
    case: Words = (),
    platform: Words = (),
    workers: Count = 1,
    store: bool = False,
    as_of: AsOf = "",
) -> DiffResult:
    """Compare two sides, each a revision, ``WORKTREE``, ``INDEX``, a folder, a file or a run, golden by golden.

    With ``store`` or ``as_of`` the shared store is asked first for runs and revisions; ``workers`` must be 1 then.
    :func:`goldenctl.diff.rows` picks metrics, sorts, and leaves small differences out.
    """
    from goldenctl import collect
    from goldenctl import diff as stage

    if workers > 1 and (store or as_of):
        raise UsageError("workers must be 1 with the shared store", hint="leave workers out")
    settings = settings_here()
    before, after = (_side(name, settings, store=store, as_of=str(as_of)) for name in (old, new))
    takes = collect.chooser(Selection(tuple(case), tuple(platform)), settings, {**before.entries, **after.entries})
    return stage.diff(before, after, settings, takes=takes, workers=workers)


@twin
def check(
    obtained: Document,
    golden: Document,
    *,
    rules: RulesName = "strict",
    config: Document | None = None,
    metric: Words = (),
    resume: bool = False,
    train_iters: Count | None = None,
    path: str = "",
) -> Verdict:
    """The verdict a functional test would give on two documents, each bytes or a file.

    ``path`` below root chooses the tolerances, by itself the golden's where that is a file; ``config`` is a
    ``model_config.yaml``, by itself the one beside such a file.
    """
    from goldenctl import rules as stage

    settings = settings_here()
    want = content(golden)
    case = _case(golden, config)
    if metric:
        case = replace(case or stage.assumed(want), metrics=tuple(metric), metrics_given=True)
    iters = (train_iters or (case.last_step if case else None)) if resume else None
    if resume and not iters:
        raise UsageError("how many steps the run has is not known", hint="give train_iters")
    below = path or _below_root(golden, settings)
    return stage.check(
        content(obtained),
        want,
        case,
        rules=stage.Rules(rules),
        tolerance_for=lambda name: settings.tolerance_for(name, below),
        resume_iters=iters,
    )


def _case(golden: bytes | str | Path, given: bytes | str | Path | None) -> TestConfig | None:
    from goldenctl import testconfig

    if given is None:
        return None if isinstance(golden, bytes) else testconfig.beside(Path(golden).absolute())
    loaded = testconfig.parse(content(given), "config" if isinstance(given, bytes) else str(given))
    if loaded.config is None:
        raise UsageError(loaded.note, hint="name a model_config.yaml")
    return loaded.config


def _below_root(golden: bytes | str | Path, settings: Settings) -> str:
    if isinstance(golden, bytes):
        return ""
    place = Path(golden).absolute()
    return place.relative_to(settings.root_path).as_posix() if place.is_relative_to(settings.root_path) else place.name


@twin
def gate_audit(
    golden: Document,
    *,
    command: str = "",
    rules: RulesName = "strict",
    timeout: Timeout = 60.0,
    approximate: bool = False,
) -> gates.Audit:
    """Break a golden in known ways and say which of them a comparator, ours or a command, lets through."""
    from goldenctl import gate_audit as stage
    from goldenctl import rules as ours

    raw = content(golden)
    if command:
        return stage.audit(command, stage.by_command(command, timeout), {"golden": raw})
    case = _case(golden, None) or ours.assumed(raw)
    case = replace(case, approximate_only=True) if approximate else case
    settings = settings_here()
    below = _below_root(golden, settings)
    comparator = stage.by_rules(ours.Rules(rules), case, lambda name: settings.tolerance_for(name, below))
    return stage.audit(rules, comparator, {"golden": raw})


@twin
def coverage(
    *,
    recipes: Words = (),
    case: Words = (),
    platform: Words = (),
    state: States = (),
    stale_after: Natural = 30,
) -> Coverage:
    """The matrix of cases and platforms, by the tree, CI recipes and the catalog's runs.

    ``stale_after`` is how many days a golden may be older than its newest sibling.
    """
    from goldenctl import collect
    from goldenctl import coverage as stage

    settings = settings_here()
    settings.need_root()
    rows, notes = recipe_rows(settings, recipes)
    keys, _ = collect.golden_keys(settings)
    changed = stage.last_changes(Repo(settings.top), settings.root)
    ran, busy = last_runs(settings)
    found = stage.coverage(keys, settings, rows, changed=changed, ran=ran, stale_after=stale_after)
    selection = Selection(tuple(case), tuple(platform))
    selection.check([c.key for c in found.cells], {*settings.platforms, *(c.key.platform for c in found.cells)})
    cells = [c for c in found.cells if selection.takes(c.key) and (not state or c.state.value in state)]
    return replace(found, cells=tuple(cells), notes=(*busy, *notes, *found.notes))


def last_runs(settings: Settings) -> tuple[dict[str, datetime], list[str]]:
    """When each golden was last delivered, as far as the catalog tells: it only adds to the matrix."""
    from goldenctl import origins

    try:
        return origins.last_runs(settings), []
    except CatalogError as exc:
        return {}, [f"without the catalog: {exc}"]


def recipe_rows(settings: Settings, globs: Sequence[str]) -> tuple[list[Row], list[str]]:
    """The rows of every recipe, and what could not be read.

    Raises
    ------
    UsageError
        A glob matches nothing.
    """
    from goldenctl import recipes

    rows: list[Row] = []
    notes: list[str] = []
    for glob in globs or [RECIPES]:
        paths = sorted(p for p in settings.top.glob(glob) if not p.name.startswith("_"))
        if not paths and globs:
            raise UsageError(f"no recipe matches {glob!r} below {settings.top}", hint="a glob from the repository's top")
        for path in paths:
            name = path.relative_to(settings.top).as_posix()
            try:
                rows += recipes.parse(path.read_bytes(), name)
            except (recipes.RecipeError, OSError) as exc:
                notes.append(f"{name}: {exc}")
    return rows, notes


@twin
def report(
    old: str = "",
    new: str = "",
    *,
    refresh: str = "",
    sync: str = "",
    case: Words = (),
    platform: Words = (),
    metric: Words = (),
    store: bool | None = None,
) -> Report:
    """What differs between two sides, or by a refresh or a sync, ready for :func:`goldenctl.report.html` and ``markdown``."""
    from goldenctl import collect
    from goldenctl.api import recorded, reporting

    if sum((bool(old and new), bool(refresh), bool(sync))) != 1 or bool(old) != bool(new):
        raise UsageError(
            "nothing, or more than one thing, to report on", hint="goldenctl report OLD NEW, --refresh ID or --sync SHA"
        )
    settings, selection = settings_here(store), Selection(tuple(case), tuple(platform))
    if sync:
        return reporting.of_sync(sync, settings, selection=selection, metrics=metric)
    if refresh:
        return recorded.of_recorded(refresh, settings, selection=selection, metrics=metric)
    before, after = (collect.open_side(name, settings) for name in (old, new))
    return reporting.of_sides(before, after, settings, selection=selection, metrics=metric)


@twin
def textconv(content: Document) -> str:
    """A golden, its bytes or a file, as one line a metric."""
    from goldenctl.api.common import content as bytes_of
    from goldenctl.sync.textconv import as_text

    return as_text(bytes_of(content))
