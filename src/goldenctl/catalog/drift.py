"""Change points and cumulative drift of each metric's level, over revisions and recorded runs.

The level of a metric moves from one point to the next by the median over the common finite steps of
``(obtained - golden) / |golden|``, so that a shorter run, another grid or a few wild steps do not count as drift.
Levels add up on a logarithmic scale: up by 10 % and down by 10 % of that is where it began.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import polars as pl

from goldenctl.catalog.frames import frame, temporary
from goldenctl.catalog.homes import gather
from goldenctl.catalog.log import goldens_named, on_line
from goldenctl.errors import UsageError

if TYPE_CHECKING:
    import duckdb

    Connection = duckdb.DuckDBPyConnection

_FULL_DOWN = -0.99
"""Largest fall of one point; a level cannot fall to nothing and come back on a logarithmic scale."""
_NOISE_POINTS = 6
"""Points from which the noise is estimated; with fewer, every lasting step of the threshold is a change."""
_POINTS = """
    SELECT p.golden, p.path, p.moment, p."commit", p.run, p.ord, s.metric, s.content
    FROM point AS p JOIN series AS s USING (document)
    WHERE s.n_values > s.n_nan + s.n_inf AND NOT ends_with(s.metric, 'generated_tokens') -- ids have no level
    ORDER BY p.golden, s.metric, p.ord
"""
_OBSERVED = """
    SELECT o.golden, o.path, o.observed_at AS moment, '' AS "commit", o.run, o.document
    FROM observation AS o JOIN wanted USING (golden)
"""
_MOVES = """
    WITH pair AS (SELECT row_number() OVER () AS id, * FROM compared),
    mine AS (SELECT p.id, v.step, v."value" AS x FROM pair AS p JOIN gathered AS v ON v.content = p.content),
    theirs AS (SELECT p.id, v.step, v."value" AS y FROM pair AS p JOIN gathered AS v ON v.content = p.before)
    SELECT p.content, p.before, m.move FROM pair AS p JOIN (
        SELECT id, median((x - y) / abs(y)) AS move FROM mine JOIN theirs USING (id, step)
        WHERE isfinite(x) AND isfinite(y) AND y <> 0 GROUP BY id
    ) AS m USING (id)
"""


@dataclass(frozen=True, slots=True)
class Change:
    """A lasting change of one metric's level."""

    path: str
    metric: str
    before: str
    """Last point of the old level: a commit, or a run."""
    after: str
    """First point of the new level."""
    commit: str
    """The commit of ``after``; empty when that is a run."""
    direction: str
    """``up`` or ``down``."""
    rel_change: float
    """New level against the old, as a share of it: 0.05 is 5 % more."""


@dataclass(frozen=True, slots=True)
class Drift:
    """How far one metric has come since its first golden."""

    path: str
    metric: str
    points: int
    """Revisions that changed its values, and recorded runs."""
    rel_drift: float
    """Level now against the first, as a share of it."""


def drift(
    connection: Connection, pattern: str, *, branch: str = "", metric: str = "", threshold: float = 0.05
) -> tuple[list[Change], list[Drift]]:
    """Change points and cumulative drift of the goldens a pattern names.

    Parameters
    ----------
    pattern, branch
        As for :func:`~goldenctl.catalog.log.log`.
    metric
        One metric; empty means all.
    threshold
        Smallest lasting change reported, as a share of the level; with many points the noise can ask for more.

    Returns
    -------
    tuple
        Changes, oldest first within each metric; and one drift for each metric with at least two points.

    Raises
    ------
    UsageError
        Nothing fits the pattern, or the package ruptures is not installed.
    """
    changes: list[Change] = []
    drifts: list[Drift] = []
    for points in _series(connection, pattern, branch, metric):
        levels = _levels([p["move"] for p in points])
        path, name = points[-1]["path"], points[-1]["metric"]
        drifts.append(Drift(path, name, len(points), math.expm1(levels[-1] - levels[0])))
        if max(levels) - min(levels) >= math.log1p(threshold) * 0.9:  # nothing to look for otherwise
            changes += _changes(points, levels, threshold)
    return sorted(changes, key=lambda c: (c.path, c.metric)), sorted(drifts, key=lambda d: (d.path, d.metric))


def _series(connection: Connection, pattern: str, branch: str, metric: str) -> Iterator[list[dict[str, Any]]]:
    """The points of each golden and metric, oldest first, with ``move`` against the point before."""
    goldens = goldens_named(connection, pattern)
    revisions = on_line(connection, goldens, branch).filter(pl.col("document").is_not_null())
    own = revisions.select("golden", "path", "commit", "document", moment="committed_at", run=pl.lit(""))
    seen = frame(connection, _OBSERVED)
    both = pl.concat([own, seen.select(own.columns)]).sort("moment", maintain_order=True).with_row_index("ord")
    temporary(connection, "point", both)
    points = frame(connection, _POINTS)
    if metric:
        points = points.filter(metric=metric)
    before = pl.col("content").shift(1).over("golden", "metric")
    points = points.with_columns(before=before)
    repeated = (pl.col("run") == "") & pl.col("content").eq_missing(pl.col("before"))  # a commit that left the metric alone
    points = points.filter(~repeated).with_columns(before=before)
    temporary(connection, "compared", points.select("content", "before").drop_nulls().unique())
    gather(connection, points.select("content"), goldens)
    moves = frame(connection, _MOVES)
    points = points.join(moves, on=["content", "before"], how="left", maintain_order="left")
    for _, found in points.group_by("golden", "metric", maintain_order=True):
        if len(found) > 1:
            yield found.rows(named=True)


def _levels(moves: Sequence[float | None]) -> list[float]:
    """Logarithmic levels, 0 at the first point; a point without a common step keeps the level."""
    levels = [0.0]
    for move in moves[1:]:
        levels.append(levels[-1] + math.log1p(max(move or 0.0, _FULL_DOWN)))
    return levels


def _changes(points: Sequence[dict[str, Any]], levels: Sequence[float], threshold: float) -> Iterator[Change]:
    ends = breakpoints(levels, threshold)
    starts = [0, *ends[:-1]]
    means = [sum(levels[a:b]) / (b - a) for a, b in zip(starts, ends, strict=True)]
    for place, (old, new) in zip(starts[1:], itertools.pairwise(means), strict=True):
        here, previous = points[place], points[place - 1]
        yield Change(
            here["path"], here["metric"], previous["commit"] or previous["run"], here["commit"] or here["run"],
            here["commit"], "up" if new > old else "down", math.expm1(new - old),
        )  # fmt: skip


def breakpoints(levels: Sequence[float], threshold: float) -> list[int]:
    """Ends (exclusive) of the stretches of constant level, the last one being the number of levels.

    PELT with squared error: exact, and sensible for the two to fifteen points a golden has. The penalty is what a
    single step of ``threshold`` between two points saves, and grows with the noise where that can be estimated.
    """
    try:
        import numpy as np
        import ruptures
    except ModuleNotFoundError as exc:
        raise UsageError(f"drift needs the package {exc.name!r}", hint="pip install 'goldenctl[drift]'") from exc
    signal = np.asarray(levels, dtype=float).reshape(-1, 1)
    penalty = 0.999 * math.log1p(threshold) ** 2 / 2 + 3 * _noise(levels) ** 2 * math.log(len(levels))
    found = ruptures.Pelt(model="l2", min_size=1, jump=1).fit(signal).predict(pen=penalty)
    return [int(end) for end in found]


def _noise(levels: Sequence[float]) -> float:
    """Standard deviation of the points around their level, from the median of their moves: steps do not count."""
    if len(levels) < _NOISE_POINTS:
        return 0.0
    moves = [b - a for a, b in itertools.pairwise(levels)]
    middle = _median(moves)
    return 1.4826 * _median([abs(m - middle) for m in moves]) / math.sqrt(2)


def _median(values: Sequence[float]) -> float:
    ordered, half = sorted(values), len(values) // 2
    return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2
