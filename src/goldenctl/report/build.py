"""Make a report of a comparison: read the curves of what differs, and add what is known of each golden."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Protocol

from goldenctl.compare import MetricDiff, compare_series, points
from goldenctl.config import Settings
from goldenctl.goldenfile import DocumentError, Series, read
from goldenctl.report.model import SAME, Entry, Fact, Metric, Report
from goldenctl.sides import Side, key_of


class ComparedFile(Protocol):
    """One golden on two sides, as the diff stage has it."""

    @property
    def path(self) -> str: ...  # noqa: D102
    @property
    def status(self) -> str: ...  # noqa: D102
    @property
    def metrics(self) -> Sequence[MetricDiff]: ...  # noqa: D102
    @property
    def note(self) -> str: ...  # noqa: D102
    @property
    def renamed(self) -> str: ...  # noqa: D102


class Compared(Protocol):
    """Two sides compared, as the diff stage has it."""

    @property
    def old(self) -> Side: ...  # noqa: D102
    @property
    def new(self) -> Side: ...  # noqa: D102
    @property
    def files(self) -> Sequence[ComparedFile]: ...  # noqa: D102


def build(
    result: Compared,
    settings: Settings,
    *,
    title: str = "Golden values",
    metrics: Collection[str] = (),
    known: Mapping[str, Entry] | None = None,
    facts: Sequence[Fact] = (),
) -> Report:
    """A report of two sides.

    Parameters
    ----------
    result
        The comparison; goldens that are the same on both sides are only counted, unless ``known`` has them.
    settings
        Tell the case and platform of a path.
    metrics
        Only these metrics; empty for all.
    known
        Golden path → what a refresh or a sync says of it: label, note and facts. Paths that the comparison
        does not have become entries of their own.
    facts
        What is known of the whole: runs, commits, the command.
    """
    known = known or {}
    shown = [f for f in result.files if f.status not in SAME or f.path in known]
    curves = [_series(side, [f.path for f in shown if f.status not in SAME]) for side in (result.old, result.new)]
    entries = [_entry(f, settings, curves[0].get(f.path, {}), curves[1].get(f.path, {}), metrics) for f in shown]
    entries = [_told(e, known[e.path]) if e.path in known else e for e in entries]
    if metrics:
        entries = [e for e in entries if e.metrics or e.status == "unreadable"]
    compared = {f.path for f in result.files}
    entries += [entry for path, entry in known.items() if path not in compared]
    entries.sort(key=lambda e: e.path)
    entries.sort(key=lambda e: e.gravity, reverse=True)
    problems = (*result.old.problems, *result.new.problems)
    same = sum(1 for f in result.files if f.status in SAME and f.path not in known)
    return Report(title, result.old.name, result.new.name, tuple(entries), same, tuple(facts), problems)


def _series(side: Side, paths: Iterable[str]) -> dict[str, dict[str, Series]]:
    """Golden path → metric → series, of the paths the side has and that can be read."""
    wanted = {p: side.entries[p] for p in paths if p in side.entries}
    parsed = {blob: _parse(content) for blob, content in side.contents(wanted.values())} if wanted else {}
    return {path: parsed[blob] for path, blob in wanted.items()}


def _parse(content: bytes) -> dict[str, Series]:
    try:
        return {s.metric: s for s in read(content).series}
    except DocumentError:
        return {}


def _entry(
    file: ComparedFile, settings: Settings, golden: Mapping[str, Series], obtained: Mapping[str, Series], names: Collection[str]
) -> Entry:
    chosen = [m for m in file.metrics if not names or m.metric in names]
    metrics = tuple(_metric(m, golden.get(m.metric), obtained.get(m.metric), file.path, settings) for m in chosen)
    moved = f"{'from' if file.status == 'added' else 'to'} {file.renamed}" if file.renamed else ""
    return Entry(file.path, key_of(file.path, settings), str(file.status), metrics, note=file.note or moved)


def _metric(diff: MetricDiff, golden: Series | None, obtained: Series | None, path: str, settings: Settings) -> Metric:
    relative = path.removeprefix(settings.prefix)
    tolerance = settings.tolerance_for(diff.metric, relative)
    made = Metric(diff, golden, obtained, tolerance.window == "median")
    if golden is None or obtained is None:
        return replace(made, lost=diff.missing_steps - diff.nonfinite_golden if golden else 0)
    finite = {s: v for s, v in points(golden).items() if math.isfinite(v)}
    lost = len(finite.keys() - set(obtained.steps)) if diff.missing_steps else 0
    if made.new_nonfinite >= 0 or diff.nonfinite_obtained or lost:
        return replace(made, lost=lost)
    rest = replace(golden, steps=tuple(finite), values=tuple(finite.values()))
    return replace(made, repaired=not finite or compare_series(obtained, rest, tolerance).approximate)


def _told(entry: Entry, known: Entry) -> Entry:
    return replace(entry, label=known.label, note=known.note or entry.note, facts=known.facts)
