"""What the catalog holds at a commit, and how two sets of contents differ: SQL over a few small frames."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import date
from typing import TYPE_CHECKING

import polars as pl

from goldenctl.catalog.frames import frame, temporary
from goldenctl.errors import UsageError

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection as Connection

_DIFFERENCES = """
    WITH pair AS (SELECT row_number() OVER () AS id, * FROM compared),
    mine AS (SELECT p.id, v.step, v."value" AS x FROM pair AS p JOIN "value" AS v ON v.content = p.obtained),
    theirs AS (SELECT p.id, v.step, v."value" AS y FROM pair AS p JOIN "value" AS v ON v.content = p.golden),
    difference AS (
        SELECT
            id,
            count(x) AS n_obtained,
            count(y) AS n_golden,
            count(*) FILTER (x IS NULL) AS missing_steps,
            count(*) FILTER (y IS NULL) AS extra_steps,
            count(*) FILTER (NOT isfinite(x)) AS n_nonfinite,
            count(*) FILTER (NOT isfinite(x) AND coalesce(isfinite(y), true)) AS nan_in,
            count(*) FILTER (NOT isfinite(y) AND coalesce(isfinite(x), true)) AS nan_out,
            max(abs(x - y)) FILTER (isfinite(x) AND isfinite(y)) AS max_abs_diff,
            max(abs(x - y) / abs(y)) FILTER (isfinite(x) AND isfinite(y) AND y <> 0) AS max_rel_diff,
            arg_max(step, abs(x - y) / abs(y)) FILTER (isfinite(x) AND isfinite(y) AND y <> 0) AS worst_step
        FROM mine FULL JOIN theirs USING (id, step) GROUP BY id
    )
    SELECT pair.obtained, pair.golden, difference.* EXCLUDE (id) FROM pair JOIN difference USING (id)
"""
_LARGEST = """
    WITH needed AS MATERIALIZED (
        SELECT content, step, "value" FROM "value"
        WHERE content IN (SELECT obtained FROM compared UNION ALL SELECT golden FROM compared) AND isfinite("value")
    )
    SELECT
        p.obtained, p.golden,
        max(abs(m."value" - t."value") / abs(t."value")) AS max_rel_diff,
        arg_max(m.step, abs(m."value" - t."value") / abs(t."value")) AS worst_step
    FROM compared AS p JOIN needed AS m ON m.content = p.obtained
    JOIN needed AS t ON t.content = p.golden AND t.step = m.step
    WHERE t."value" <> 0 GROUP BY p.obtained, p.golden
"""
_TREES = """
    SELECT side, here.path AS path, here.document AS document FROM (
        SELECT
            side,
            arg_min({'path': path, 'document': document}, 2 * depth + (document IS NULL)::INTEGER) AS here
        FROM revision JOIN chain USING ("commit") GROUP BY side, golden
    )
    WHERE here.document IS NOT NULL
"""
"""A golden lives at one path at a time, and grouping by its number is cheaper than by its path."""


def differences(connection: Connection, compared: pl.DataFrame) -> pl.DataFrame:
    """Compare series contents step by step.

    Parameters
    ----------
    compared
        Columns ``obtained`` and ``golden``: content ids, each pair once.

    Returns
    -------
    polars.DataFrame
        One row per pair: ``obtained``, ``golden`` (int64), ``n_obtained``, ``n_golden``, ``missing_steps``,
        ``extra_steps``, ``n_nonfinite`` (of obtained), ``nan_in`` (non-finite now, finite or absent before),
        ``nan_out`` (the reverse), ``max_abs_diff`` (metric's unit), ``max_rel_diff`` (share of ``|golden|``; null
        where golden is 0 everywhere), ``worst_step``. Differences count steps finite on both sides.
    """
    temporary(connection, "compared", compared.select(pl.col("obtained", "golden").cast(pl.Int64)).unique())
    return frame(connection, _DIFFERENCES)


def largest(connection: Connection, compared: pl.DataFrame) -> pl.DataFrame:
    """The largest relative difference of each pair, as :func:`differences` has it and at half its price.

    Parameters
    ----------
    compared
        Columns ``obtained`` and ``golden``: content ids.

    Returns
    -------
    polars.DataFrame
        ``obtained``, ``golden``, ``max_rel_diff``, ``worst_step``; no row for a pair without a common finite step
        whose golden is not 0.
    """
    temporary(connection, "compared", compared.select(pl.col("obtained", "golden").cast(pl.Int64)).drop_nulls().unique())
    return frame(connection, _LARGEST)


def tree(connection: Connection, commit: str) -> pl.DataFrame:
    """The goldens of a commit: ``path``, ``document`` (git blob id)."""
    return _trees(connection, commit).select("path", "document").sort("path")


def changed_files(connection: Connection, old: str, new: str) -> pl.DataFrame:
    """Goldens whose bytes differ between two commits: ``path``, ``old``, ``new`` (document, null where absent)."""
    both = _trees(connection, old, new)
    before = both.filter(side=0).select("path", old="document")
    after = both.filter(side=1).select("path", new="document")
    pairs = after.join(before, on="path", how="full", coalesce=True)
    return pairs.filter(pl.col("new").ne_missing(pl.col("old")))


def _trees(connection: Connection, *commits: str) -> pl.DataFrame:
    """Goldens of several commits: ``side`` (number of the commit), ``path``, ``document``."""
    rows = connection.execute('SELECT id, parents[1] FROM "commit"').fetchall()
    parents: dict[str, str | None] = dict(rows)
    chain = [(i, c, depth) for i, commit in enumerate(commits) for depth, c in enumerate(_line(commit, parents))]
    schema = {"side": pl.Int64, "commit": pl.String, "depth": pl.Int64}
    temporary(connection, "chain", pl.DataFrame(chain, schema=schema, orient="row"))
    return frame(connection, _TREES)


def _line(commit: str, parents: Mapping[str, str | None]) -> Iterator[str]:
    """First-parent line backwards from a commit."""
    while commit in parents:
        yield commit
        commit = parents[commit] or ""


def changed_series(connection: Connection, documents: pl.DataFrame) -> pl.DataFrame:
    """Series that differ between two documents.

    Parameters
    ----------
    documents
        Columns ``new`` and ``old``: document ids, null where there is none.

    Returns
    -------
    polars.DataFrame
        ``new``, ``old``, ``metric``, ``obtained``, ``golden``: one row per document pair and metric whose
        contents differ; a null content where that side lacks the metric.
    """
    temporary(connection, "documents", documents.select("new", "old").unique())
    return frame(
        connection,
        """
        WITH pair AS (SELECT row_number() OVER () AS id, * FROM documents WHERE new IS DISTINCT FROM old),
        n AS (SELECT p.id, s.metric, s.content FROM pair AS p JOIN series AS s ON s.document = p.new),
        o AS (SELECT p.id, s.metric, s.content FROM pair AS p JOIN series AS s ON s.document = p.old)
        SELECT p.new, p.old, x.metric, x.obtained, x.golden FROM pair AS p JOIN (
            SELECT id, metric, n.content AS obtained, o.content AS golden FROM n FULL JOIN o USING (id, metric)
            WHERE n.content IS DISTINCT FROM o.content
        ) AS x USING (id)
        """,
    )


def commit_of(connection: Connection, name: str) -> str:
    """The commit a name stands for in the catalog.

    Parameters
    ----------
    name
        A branch the catalog was built from, a commit or an unambiguous beginning of one, ``sync:SHA``
        or ``sync:YYYY-MM-DD`` (UTC).

    Raises
    ------
    UsageError
        None or several fit.
    """
    kind, _, rest = name.partition(":")
    found = _syncs(connection, rest) if kind == "sync" else _commits(connection, name) or _tips(connection, name)
    if len(found) == 1:
        return found[0]
    what = "is more than one commit" if found else "is no branch, commit or sync"
    raise UsageError(f"{name} {what} of the catalog", hint="goldenctl catalog update, or goldenctl catalog status")


def _syncs(connection: Connection, name: str) -> list[str]:
    rows = connection.execute('SELECT "commit", landed_at, kind FROM sync').fetchall()
    if re.fullmatch(r"\d{4}-\d\d-\d\d", name):
        return [c for c, landed, kind in rows if landed.date() == _day(name) and kind != "revert"]
    return [c for c, _, _ in rows if re.fullmatch(r"[0-9a-f]{4,64}", name) and c.startswith(name)]


def _day(text: str) -> date | None:
    try:
        return date.fromisoformat(text)
    except ValueError:
        return None


def _tips(connection: Connection, name: str) -> list[str]:
    rows = connection.execute('SELECT branch, "commit" FROM line ORDER BY position DESC').fetchall()
    return [commit for branch, commit in rows if branch == name][:1]


def _commits(connection: Connection, name: str) -> list[str]:
    if not re.fullmatch(r"[0-9a-f]{4,64}", name):
        return []
    rows = connection.execute(f"SELECT id FROM \"commit\" WHERE starts_with(id, '{name}') LIMIT 2").fetchall()  # noqa: S608 - hex
    return [row[0] for row in rows]
