"""Case by platform: which goldens are there, which are missing, which nothing asks for, which lag behind."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from itertools import pairwise

from goldenctl import testconfig
from goldenctl.config import Settings
from goldenctl.git import Repo
from goldenctl.model import GoldenKey
from goldenctl.recipes import Row
from goldenctl.words import nearest


class State(StrEnum):
    """What is known of one golden file."""

    PRESENT = "present"
    MISSING = "missing"
    """A recipe runs it against a golden that is not there: the test cannot pass."""
    ORPHANED = "orphaned"
    """No recipe asks for it, and none that is private can be expected to."""
    UNKNOWN = "unknown"
    """No public recipe asks for it, a private one may (release tests)."""
    EXEMPT = "exempt"
    """A recipe runs it, and its configuration compares nothing with a golden."""
    INACTIVE = "inactive"
    """Only recipes that nothing selects (broken, disabled, flaky, deprecated) ask for it."""
    STALE = "stale"
    """Present, and not touched since its siblings of the same case changed."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One golden file, present or expected."""

    path: str
    key: GoldenKey
    state: State
    note: str = ""
    changed_at: datetime | None = None
    """Commit date of its last change; None when it was never committed or history was not asked."""
    last_run: datetime | None = None
    """When a run in the catalog last delivered it; None when none did."""

    def age(self, now: datetime) -> int | None:
        """Days since the last change."""
        return None if self.changed_at is None else (now - self.changed_at).days


@dataclass(frozen=True, slots=True)
class Coverage:
    """The matrix, and what is odd about it."""

    cells: tuple[Cell, ...]
    twins: tuple[tuple[str, str], ...] = ()
    """Cases of one model whose names differ in one letter or in separators only."""
    notes: tuple[str, ...] = ()

    def count(self, state: State) -> int:
        """Number of cells in a state."""
        return sum(c.state is state for c in self.cells)


def coverage(
    keys: Mapping[str, GoldenKey],
    settings: Settings,
    rows: Sequence[Row] = (),
    *,
    changed: Mapping[str, datetime] | None = None,
    ran: Mapping[str, datetime] | None = None,
    stale_after: int = 30,
) -> Coverage:
    """Combine goldens, recipes and ages.

    Parameters
    ----------
    keys
        Golden path → key of every golden that is there.
    rows
        Expanded recipe rows; without any, nothing can be missing or orphaned.
    changed
        Golden path → date of its last change.
    ran
        Golden path → date of the last recorded run.
    stale_after
        Days a golden may be older than the newest of its case and environment.
    """
    expected = _expected(rows, settings)
    changed, ran = changed or {}, ran or {}
    stale = _stale(keys, changed, stale_after)
    cells = [
        Cell(p, k, *_present(p, k, expected, settings, stale, bool(rows)), changed.get(p), ran.get(p)) for p, k in keys.items()
    ]
    cells += [Cell(p, _key(r[0]), *_absent(p, r, settings), None, ran.get(p)) for p, r in expected.items() if p not in keys]
    notes = tuple(_platform_notes(rows, settings))
    order = sorted(cells, key=lambda c: (c.key.case, c.key.environment, c.key.platform, c.key.variant))
    return Coverage(tuple(order), tuple(twins({c.key.case for c in cells})), notes)


def _expected(rows: Iterable[Row], settings: Settings) -> dict[str, list[Row]]:
    out: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        if row.golden and row.golden.startswith(f"{settings.root}/"):
            out[row.golden].append(row)
    return out


def _key(row: Row) -> GoldenKey:
    return GoldenKey(row.model, row.test_case, row.environment, row.platform)


def _present(
    path: str, key: GoldenKey, expected: Mapping[str, Sequence[Row]], settings: Settings, stale: Mapping[str, str], known: bool
) -> tuple[State, str]:
    base = path.removesuffix(f"{key.variant}.json") + ".json" if key.variant else path
    rows = expected.get(base, ())
    if known and not rows:
        config = testconfig.beside(settings.top / path)
        if config is not None and config.test_type == "release":
            return State.UNKNOWN, "no public recipe; release tests belong to private ones"
        why = "the folder has no model_config.yaml" if config is None else "no recipe row"
        produced = key.platform in settings.platforms
        return State.ORPHANED, why if produced else f"{why}; platform {key.platform or 'none'!r} is not produced"
    if known and not any(r.active for r in rows):
        return State.INACTIVE, f"only in scope {', '.join(sorted({r.scope for r in rows}))}"
    return (State.STALE, stale[path]) if path in stale else (State.PRESENT, "")


def _absent(path: str, rows: Sequence[Row], settings: Settings) -> tuple[State, str]:
    loaded = testconfig.load((settings.top / path).parent)
    where = ", ".join(sorted({r.recipe for r in rows}))
    if loaded.config is not None and not loaded.config.expects_golden:
        return State.EXEMPT, "its configuration compares nothing with a golden"
    if not any(r.active for r in rows):
        return State.INACTIVE, f"only in scope {', '.join(sorted({r.scope for r in rows}))}"
    return State.MISSING, f"asked for by {where}"


def _platform_notes(rows: Iterable[Row], settings: Settings) -> Iterator[str]:
    seen = sorted({(r.platform, r.recipe, r.case) for r in rows if r.golden and r.platform not in settings.platforms})
    for platform, recipe, case in seen:
        near = nearest(platform, settings.platforms)
        yield f"{recipe}: {case} has the unknown platform {platform!r}" + (f", nearest is {near!r}" if near else "")


def _stale(keys: Mapping[str, GoldenKey], changed: Mapping[str, datetime], days: int) -> dict[str, str]:
    """Goldens much older than the newest of the same case, environment and phase, with the reason."""
    groups: dict[tuple[str, str, str], list[str]] = defaultdict(list)
    for path, key in keys.items():
        if path in changed:
            groups[key.case, key.environment, key.variant].append(path)
    out = {}
    for paths in groups.values():
        newest = max(paths, key=lambda p: changed[p])
        for path in paths:
            behind = (changed[newest] - changed[path]).days
            if behind > days:
                out[path] = f"{behind} days older than {keys[newest].platform or newest}"
    return out


def twins(cases: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Pairs of cases of one model that differ in separators, case of letters, or one letter left out."""
    by_form: dict[tuple[str, str], set[str]] = defaultdict(set)
    for case in cases:
        model, _, name = case.partition("/")
        plain = name.lower().replace("-", "_").replace("__", "_")
        by_form[model, plain].add(case)
    whole = {form: sorted(found) for form, found in by_form.items()}
    pairs = {pair for found in whole.values() for pair in pairwise(found)}
    for (model, name), found in whole.items():
        for i, letter in enumerate(name):
            shorter = whole.get((model, name[:i] + name[i + 1 :]))
            if letter.isalpha() and shorter and i and name[i - 1] != "_":  # etp1 and tp1 are two words
                pairs.add((shorter[0], found[0]))
    yield from sorted(pairs)


def last_changes(repo: Repo, root: str) -> dict[str, datetime]:
    """Golden path → committer date of the last commit on HEAD's history that changed it; empty outside git."""
    if not repo.is_repo() or not repo.succeeds("rev-parse", "--verify", "--quiet", "HEAD"):
        return {}
    log = repo.run("log", "-z", "-m", "--first-parent", "--no-renames", "--format=%x01%ct", "--name-only", "--", root or ".")
    out: dict[str, datetime] = {}
    for commit in log.split(b"\x01")[1:]:
        stamp, _, names = commit.partition(b"\0")
        when = datetime.fromtimestamp(int(stamp.split()[0]), UTC)
        for name in names.split(b"\0"):
            path = name.strip(b"\n").decode("utf-8", "surrogateescape")
            if path:
                out.setdefault(path, when)
    return out
