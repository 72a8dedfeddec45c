"""Compare two sides golden by golden; what has the same content is never read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial

from goldenctl.compare import MetricDiff, compare, equal
from goldenctl.config import Settings, Tolerance
from goldenctl.forked import no_collections, side_by_side
from goldenctl.goldenfile import Document, DocumentError, Problem, Shape, read
from goldenctl.sides import Side


class Status(StrEnum):
    """What became of one golden from the old side to the new one."""

    IDENTICAL = "identical"
    EQUAL = "equal"
    CHANGED = "changed"
    ADDED = "added"
    REMOVED = "removed"
    UNREADABLE = "unreadable"


@dataclass(frozen=True, slots=True)
class FileDiff:
    """One golden on two sides; the old side is the golden, the new one the obtained."""

    path: str
    status: Status
    metrics: tuple[MetricDiff, ...] = ()
    """Empty when identical or unreadable."""
    note: str = ""
    """Why it is unreadable, what could not be read as a number; empty otherwise."""
    renamed: str = ""
    """For added files the removed path with the same content, and the other way round; empty when there is none."""

    @property
    def differs(self) -> bool:
        """Whether the two sides do not hold the same numbers."""
        return self.status not in (Status.IDENTICAL, Status.EQUAL)


@dataclass(frozen=True, slots=True)
class DiffResult:
    """Two sides compared."""

    old: Side
    new: Side
    files: tuple[FileDiff, ...]

    @property
    def counts(self) -> Mapping[str, int]:
        """Status → number of files."""
        return Counter(f.status.value for f in self.files)


WORTH_FORKING = 100
"""Changed goldens from which a second process saves more than it costs."""
NOTHING = Document(Shape.EMPTY, (), {})
"""The document of a side that lacks the file."""
Read = Document | DocumentError | None


@dataclass(frozen=True, slots=True)
class Row:
    """One line of a diff: a metric of a file, or a whole file without metrics."""

    file: FileDiff
    metric: MetricDiff | None


SORTS: Mapping[str, Callable[[MetricDiff], float]] = {
    "max_rel_diff": lambda m: m.max_rel_diff or 0.0,
    "max_abs_diff": lambda m: m.max_abs_diff or 0.0,
    "mean_rel_diff": lambda m: m.mean_rel_diff or 0.0,
    "mean_abs_diff": lambda m: m.mean_abs_diff or 0.0,
    "signed_mean_rel_diff": lambda m: abs(m.signed_mean_rel_diff or 0.0),
    "missing_steps": lambda m: m.missing_steps,
    "nonfinite": lambda m: abs(m.nonfinite_obtained - m.nonfinite_golden),
}
"""Sort name → size of a metric's difference; ``path`` sorts by name instead."""


def diff(
    old: Side, new: Side, settings: Settings, *, takes: Callable[[str], bool] = lambda _: True, workers: int = 1
) -> DiffResult:
    """Compare every golden of two sides.

    Parameters
    ----------
    old, new
        The golden and the obtained side. Two single files are compared with each other whatever their names;
        a partial side (a run, a file) restricts the comparison to what it holds.
    settings
        Tolerances of the approximate verdict.
    takes
        Whether a golden path is asked for.
    workers
        Processes; more than one forks, which a program with threads must not do.

    Returns
    -------
    DiffResult
        Files by path.
    """
    old, new = _paired(old, new)
    paths = [p for p in sorted(set(old.entries) | set(new.entries)) if takes(p)]
    changed = [p for p in paths if old.entries.get(p) != new.entries.get(p)]
    moved = _moved(old, new, changed)
    shares = [changed[i::workers] for i in range(workers)] if len(changed) >= WORTH_FORKING else [changed]
    found = side_by_side([partial(_files, share, old, new, settings, moved) for share in shares])
    differing = {file.path: file for share in found for file in share}
    return DiffResult(old, new, tuple(differing.get(p) or FileDiff(p, Status.IDENTICAL) for p in paths))


def _files(paths: Sequence[str], old: Side, new: Side, settings: Settings, moved: Mapping[str, str]) -> list[FileDiff]:
    golden, obtained = _Reader(old, paths), _Reader(new, paths)
    with no_collections():
        return [_file(p, golden.take(p), obtained.take(p), settings, moved.get(p, "")) for p in paths]


def _paired(old: Side, new: Side) -> tuple[Side, Side]:
    if old.single and new.single:
        (path,), (blob,) = new.entries, old.entries.values()
        return replace(old, entries={path: blob}), new
    if old.partial and not new.partial:
        return old, new.only(old.entries)
    if new.partial and not old.partial:
        return old.only(new.entries), new
    return old, new


class _Reader:
    """Documents of one side in the order asked: each content read and parsed once, kept as long as a path needs it."""

    def __init__(self, side: Side, paths: Sequence[str]) -> None:
        self._entries = side.entries
        wanted = [side.entries[p] for p in paths if p in side.entries]
        self._uses = Counter(wanted)
        self._stream = iter(side.contents(wanted))
        self._kept: dict[str, Document | DocumentError] = {}

    def take(self, path: str) -> Document | DocumentError | None:
        """The next path's document, or why it is none; None where the side lacks the file."""
        blob = self._entries.get(path)
        if blob is None:
            return None
        while blob not in self._kept:
            found, content = next(self._stream)
            self._kept[found] = _parse(content)
        self._uses[blob] -= 1
        return self._kept[blob] if self._uses[blob] else self._kept.pop(blob)


def _parse(content: bytes) -> Document | DocumentError:
    try:
        return read(content)
    except DocumentError as exc:
        return exc


def _moved(old: Side, new: Side, changed: Iterable[str]) -> dict[str, str]:
    """Pairs of a removed and an added path that hold the same content, where there is exactly one of each."""
    gone: dict[str, list[str]] = {}
    come: dict[str, list[str]] = {}
    for path in changed:
        if path not in new.entries:
            gone.setdefault(old.entries[path], []).append(path)
        elif path not in old.entries:
            come.setdefault(new.entries[path], []).append(path)
    pairs = [(gone[b][0], come[b][0]) for b in gone.keys() & come.keys() if len(gone[b]) == len(come[b]) == 1]
    return dict(pairs) | {b: a for a, b in pairs}


def _file(path: str, golden: Read, obtained: Read, settings: Settings, renamed: str) -> FileDiff:
    if isinstance(golden, DocumentError):
        return FileDiff(path, Status.UNREADABLE, note=f"old side: {golden}", renamed=renamed)
    if isinstance(obtained, DocumentError):
        return FileDiff(path, Status.UNREADABLE, note=f"new side: {obtained}", renamed=renamed)
    metrics = compare(obtained or NOTHING, golden or NOTHING, _tolerances(path, settings))
    if golden is None or obtained is None:
        return FileDiff(path, Status.ADDED if golden is None else Status.REMOVED, metrics, renamed=renamed)
    status = Status.EQUAL if equal(obtained, golden) else Status.CHANGED
    return FileDiff(path, status, metrics, _note(golden.problems, obtained.problems))


def _note(golden: tuple[Problem, ...], obtained: tuple[Problem, ...]) -> str:
    parts = [
        f"{side} side: {len(problems)} places are no numbers, first {problems[0].metric}: {problems[0].what}"
        for side, problems in (("old", golden), ("new", obtained))
        if problems
    ]
    return "; ".join(parts)


def _tolerances(path: str, settings: Settings) -> Callable[[str], Tolerance]:
    relative = path.removeprefix(settings.prefix)
    return lambda metric: settings.tolerance_for(metric, relative)


def rows(
    result: DiffResult, *, metrics: Sequence[str] = (), threshold: float = 0.0, sort: str = "max_rel_diff", top: int = 0
) -> list[Row]:
    """The lines worth showing: what differs, worst first.

    Parameters
    ----------
    metrics
        Only these metrics; empty for all.
    threshold
        Smallest ``max_rel_diff`` shown. What has no relative size (a lost metric or step, a changed zero, a
        non-finite value, a text, a whole file) is shown whatever the threshold.
    sort
        A key of :data:`SORTS`, or ``path``.
    top
        Number of lines; 0 for all.
    """
    found = [row for file in result.files if file.differs for row in _rows_of(file, metrics, threshold)]
    if sort == "path":
        found.sort(key=lambda r: (r.file.path, r.metric.metric if r.metric else ""))
    else:
        found.sort(key=lambda r: (_gravity(r), -_size(r, sort), r.file.path))
    return found[:top] if top else found


def _rows_of(file: FileDiff, metrics: Sequence[str], threshold: float) -> list[Row]:
    wanted = [m for m in file.metrics if not metrics or m.metric in metrics]
    if file.status is not Status.CHANGED:
        return [Row(file, None)] if wanted or not metrics or file.status is Status.UNREADABLE else []
    return [Row(file, m) for m in wanted if not m.exact and _weighs(m, threshold)]


def _weighs(diff: MetricDiff, threshold: float) -> bool:
    """Whether a difference reaches the threshold, or has no relative size at all."""
    if diff.kind == "text" or diff.missing_steps or diff.extra_steps or diff.nonfinite_golden != diff.nonfinite_obtained:
        return True
    if diff.max_rel_diff is None or diff.worst_golden == 0:
        return True
    return diff.max_rel_diff >= threshold


def _gravity(row: Row) -> int:
    """Unreadable before lost before changed before added, so that no size hides a loss."""
    if row.metric is None:
        return {Status.UNREADABLE: 0, Status.REMOVED: 1}.get(row.file.status, 3)
    lost = row.metric.missing_steps or row.metric.nonfinite_obtained > row.metric.nonfinite_golden
    return 1 if lost else 2


def _size(row: Row, sort: str) -> float:
    return SORTS[sort](row.metric) if row.metric else 0.0
