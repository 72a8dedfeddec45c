"""What the catalog holds at a commit, and how two sets of contents differ: SQL over a few small frames."""

from __future__ import annotations

import re
from datetime import date
from typing import TYPE_CHECKING

import polars as pl

from goldenctl.catalog.frames import frame, temporary
from goldenctl.errors import UsageError

if TYPE_CHECKING:
    import duckdb

    Connection = duckdb.DuckDBPyConnection

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
_TREE = """
    SELECT path, document FROM (
        SELECT path, document, depth FROM revision JOIN chain USING ("commit")
        UNION ALL
        SELECT old_path, NULL, depth FROM revision JOIN chain USING ("commit") WHERE old_path IS NOT NULL
    )
    QUALIFY row_number() OVER (PARTITION BY path ORDER BY depth, document IS NULL) = 1
"""


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


def tree(connection: Connection, commit: str) -> pl.DataFrame:
    """The goldens of a commit: ``path``, ``document`` (git blob id)."""
    temporary(connection, "chain", _chain(connection, commit))
    found = frame(connection, _TREE)
    return found.filter(pl.col("document").is_not_null()).sort("path")


def _chain(connection: Connection, commit: str) -> pl.DataFrame:
    """First-parent line backwards from a commit: ``commit``, ``depth``."""
    rows = connection.execute('SELECT id, parents[1] FROM "commit"').fetchall()
    parents: dict[str, str | None] = dict(rows)
    line, here = [], commit
    while here in parents:
        line.append(here)
        here = parents[here] or ""
    return pl.DataFrame({"commit": line, "depth": range(len(line))}, schema={"commit": pl.String, "depth": pl.Int64})


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
    if kind == "sync":
        found = _syncs(connection, rest)
    else:
        lines = connection.execute('SELECT branch, arg_max("commit", position) FROM line GROUP BY branch').fetchall()
        tips = dict(lines)
        found = [tips[name]] if name in tips else _commits(connection, name)
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


def _commits(connection: Connection, name: str) -> list[str]:
    if not re.fullmatch(r"[0-9a-f]{4,64}", name):
        return []
    rows = connection.execute(f"SELECT id FROM \"commit\" WHERE starts_with(id, '{name}') LIMIT 2").fetchall()  # noqa: S608 - hex
    return [row[0] for row in rows]
