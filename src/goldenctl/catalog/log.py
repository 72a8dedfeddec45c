"""The revisions of goldens and what each changed."""

from __future__ import annotations

import json
from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

import polars as pl

from goldenctl.catalog.frames import frame, temporary
from goldenctl.catalog.history import RENAMED
from goldenctl.catalog.states import changed_series, differences
from goldenctl.catalog.store import first_row
from goldenctl.errors import UsageError
from goldenctl.words import nearest

if TYPE_CHECKING:
    import duckdb

    Connection = duckdb.DuckDBPyConnection


def goldens_named(connection: Connection, pattern: str) -> list[int]:
    """Ids of the goldens a user means.

    Parameters
    ----------
    pattern
        A path the golden has or had, from the repository's top or below root; a case ``model/test_case``;
        or a glob of either.

    Raises
    ------
    UsageError
        Nothing fits; the nearest name is given.
    """
    prefix = _meta(connection, "root").rstrip("/") + "/"
    names: dict[str, set[int]] = {}
    rows = connection.execute("SELECT DISTINCT golden, path FROM revision UNION SELECT id, path FROM golden").fetchall()
    for golden, path in rows:
        below = path.removeprefix(prefix)
        for name in (path, below, below.rpartition("/")[0]):
            names.setdefault(name, set()).add(golden)
    for golden, case in _cases(connection):
        names.setdefault(case, set()).add(golden)
    found = names.get(pattern) or {g for n, ids in names.items() if fnmatchcase(n, pattern) for g in ids}
    if not found:
        near = nearest(pattern, names, 0.4)
        hint = f"did you mean {near!r}?" if near else "goldenctl catalog build"
        raise UsageError(f"the catalog has no golden {pattern!r}", hint=hint)
    return sorted(found)


def _cases(connection: Connection) -> list[tuple[int, str]]:
    """Golden and ``model/test_case``: where nobody has read git yet, root is unknown and a path tells no case."""
    return connection.execute("SELECT id, model || '/' || test_case FROM golden").fetchall()


def branches(connection: Connection) -> list[str]:
    """Branches the catalog was built from, the one that tells where a golden is now first."""
    return list(json.loads(_meta(connection, "branches") or "[]"))


def _meta(connection: Connection, key: str) -> str:
    row = first_row(connection, f"SELECT \"value\" FROM meta WHERE key = '{key}'")  # noqa: S608 - our own names
    return str(row[0]) if row else ""


def on_line(connection: Connection, goldens: Sequence[int], branch: str = "") -> pl.DataFrame:
    """Revisions of goldens on the first-parent line of a branch, oldest first.

    Parameters
    ----------
    branch
        A branch the catalog was built from; empty takes, for each golden, the first that ever had it.

    Returns
    -------
    polars.DataFrame
        ``golden``, ``path``, ``commit``, ``committed_at``, ``subject``, ``parents``, ``document``, ``old_document``,
        ``change``, ``sync`` (kind of landing, or null), ``branch``, ``position``.

    Raises
    ------
    UsageError
        The catalog was not built from that branch.
    """
    order = branches(connection)
    if branch and branch not in order:
        raise UsageError(f"the catalog has no branch {branch!r}", hint=f"it was built from {', '.join(order) or 'none yet'}")
    temporary(connection, "wanted", pl.DataFrame({"golden": goldens}, schema={"golden": pl.Int64}))
    ranks = [branch] if branch else order
    temporary(connection, "ranked", pl.DataFrame({"branch": ranks, "rank": range(len(ranks))}, schema=_RANKED))
    return frame(
        connection,
        """
        SELECT
            r.golden, r.path, r."commit", c.committed_at, c.subject, c.parents, r.document, r.old_document,
            CASE WHEN r.change = 'modified' AND n.content = o.content THEN 'format' ELSE r.change END AS change,
            s.kind AS sync, l.branch, l.position
        FROM revision AS r
        JOIN wanted USING (golden)
        JOIN line AS l USING ("commit")
        JOIN ranked USING (branch)
        JOIN "commit" AS c ON c.id = r."commit"
        LEFT JOIN sync AS s USING ("commit")
        LEFT JOIN document AS n ON n.id = r.document
        LEFT JOIN document AS o ON o.id = r.old_document
        QUALIFY rank = min(rank) OVER (PARTITION BY r.golden)
        ORDER BY l.position, r.path
        """,
    )


_RANKED = {"branch": pl.String, "rank": pl.Int64}


def log(connection: Connection, pattern: str, branch: str = "", metric: str = "") -> pl.DataFrame:
    """Revisions of the goldens a pattern names, oldest first, with what each changed.

    Parameters
    ----------
    pattern, branch
        As for :func:`goldens_named` and :func:`on_line`.
    metric
        One metric to look at; empty for all. Revisions that neither touched it nor moved the file are left out.

    Returns
    -------
    polars.DataFrame
        The columns of :func:`on_line`, ``metrics`` (names of the metrics whose steps or values changed),
        ``n_values`` and ``n_nonfinite`` (afterwards), ``nan_in`` and ``nan_out`` (values that became non-finite,
        and that were and are no more), ``missing_steps``, ``extra_steps``, ``max_rel_diff`` (share of the value
        before) and ``worst_metric``.
    """
    revisions = on_line(connection, goldens_named(connection, pattern), branch)
    pairs = revisions.select(new="document", old="old_document").unique()
    changed = changed_series(connection, pairs)
    totals = _totals(connection, revisions["document"])
    if metric:
        changed, totals = changed.filter(metric=metric), totals.filter(metric=metric)
    stats = changed.join(differences(connection, changed), on=["obtained", "golden"], how="left", nulls_equal=True)
    summed = ("nan_in", "nan_out", "missing_steps", "extra_steps")
    per_revision = stats.group_by("new", "old").agg(
        pl.col("metric").sort().alias("metrics"),
        *(pl.col(c).sum() for c in summed),
        pl.col("max_rel_diff").max(),
        pl.col("metric").sort_by("max_rel_diff", nulls_last=False).last().alias("worst_metric"),
    )
    sums = totals.group_by("document").agg(pl.col("n_values", "n_nonfinite").sum())
    out = (
        revisions.join(
            per_revision, left_on=["document", "old_document"], right_on=["new", "old"], how="left", nulls_equal=True
        )
        .join(sums, on="document", how="left", maintain_order="left")
        .with_columns(pl.col("metrics").fill_null([]), pl.col(*summed, "n_values", "n_nonfinite").fill_null(0))
        .sort("position", "path")
    )
    return out.filter((pl.col("metrics").list.len() > 0) | (pl.col("change") == RENAMED)) if metric else out


def _totals(connection: Connection, documents: pl.Series) -> pl.DataFrame:
    temporary(connection, "wanted_documents", documents.drop_nulls().unique().to_frame("document"))
    return frame(
        connection,
        """
        SELECT document, metric, n_values::BIGINT AS n_values, (n_nan + n_inf)::BIGINT AS n_nonfinite
        FROM series JOIN wanted_documents USING (document)
        """,
    )
