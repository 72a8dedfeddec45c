"""Where today's values of a golden come from: the commit that made them, the sync and the run that brought them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import polars as pl

from goldenctl.catalog.log import goldens_named, on_line

if TYPE_CHECKING:
    from datetime import datetime

    import duckdb

    Connection = duckdb.DuckDBPyConnection

_RUN_IN_SUBJECT = re.compile(r"\b(?:run|pipeline|workflow)s?\b[\s:#/]*(\d{5,})", re.IGNORECASE)
BLAME: dict[str, Any] = {
    "path": pl.String, "metric": pl.String, "commit": pl.String, "date": pl.Datetime("us"), "via": pl.String,
    "run": pl.String, "unchanged_since": pl.Datetime("us"), "landed": pl.String, "subject": pl.String,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Step:
    """One revision of a golden that holds a metric."""

    commit: str
    committed_at: datetime
    subject: str
    parents: tuple[str, ...]
    document: str
    content: int


def blame(connection: Connection, pattern: str, branch: str = "") -> pl.DataFrame:
    """For every metric of the goldens a pattern names, where today's values come from.

    Parameters
    ----------
    pattern, branch
        As for :func:`~goldenctl.catalog.log.log`.

    Returns
    -------
    polars.DataFrame
        ``path``, ``metric``; ``commit`` and ``date`` (UTC) of the commit that made these values, on whatever branch;
        ``via`` (``commit``, or ``sync:SHA`` or ``merge:SHA`` when they arrived by one); ``run``
        (``provider:id#attempt`` from trailers, refreshes or observations, else the number in the commit's subject,
        else empty); ``unchanged_since`` (since when this branch has them); ``landed`` (the commit of this branch
        that brought them) and ``subject`` (of ``commit``). Goldens that are gone have no rows.
    """
    revisions = on_line(connection, goldens_named(connection, pattern), branch)
    contents = _contents(connection)
    everywhere = _everywhere(connection, contents)
    parents = dict(connection.execute('SELECT id, parents FROM "commit"').fetchall())
    runs = _Runs(connection)
    rows = []
    for (golden,), life in revisions.group_by("golden", maintain_order=True):
        last = life.row(-1, named=True)
        for metric, content in contents.get(last["document"] or "", {}).items():
            landed = _landed(life, metric, content, contents)
            origin = _origin(landed, everywhere.get((golden, metric, content), ()), parents)
            run = runs.of(origin, landed, last["path"])
            via = _via(landed, origin)
            rows.append(
                (last["path"], metric, origin.commit, origin.committed_at, via, run, landed["committed_at"],
                 landed["commit"], origin.subject)
            )  # fmt: skip
    return pl.DataFrame(rows, schema=BLAME, orient="row").sort("path", "metric")


def _contents(connection: Connection) -> dict[str, dict[str, int]]:
    """Document → metric → content, of the documents of the goldens in table ``wanted``."""
    rows = connection.execute(
        """
        SELECT DISTINCT s.document, s.metric, s.content, s.position FROM series AS s
        JOIN revision AS r USING (document) JOIN wanted USING (golden) ORDER BY s.position
        """
    ).fetchall()
    out: dict[str, dict[str, int]] = {}
    for document, metric, content, _ in rows:
        out.setdefault(document, {})[metric] = content
    return out


def _everywhere(connection: Connection, contents: Mapping[str, Mapping[str, int]]) -> dict[tuple[int, str, int], list[_Step]]:
    """Golden, metric, content → the revisions on any branch that have it, oldest first."""
    rows = connection.execute(
        """
        SELECT r.golden, r."commit", c.committed_at, c.subject, c.parents, r.document
        FROM revision AS r JOIN wanted USING (golden) JOIN "commit" AS c ON c.id = r."commit"
        WHERE r.document IS NOT NULL ORDER BY c.committed_at
        """
    ).fetchall()
    out: dict[tuple[int, str, int], list[_Step]] = {}
    for golden, commit, moment, subject, parents, document in rows:
        for metric, content in contents.get(document, {}).items():
            step = _Step(commit, moment, subject, tuple(parents), document, content)
            out.setdefault((golden, metric, content), []).append(step)
    return out


def _landed(life: pl.DataFrame, metric: str, content: int, contents: Mapping[str, Mapping[str, int]]) -> dict[str, Any]:
    """The oldest revision of this line since which the content has not changed."""
    rows = life.rows(named=True)
    found = rows[-1]
    for row in reversed(rows):
        if contents.get(row["document"] or "", {}).get(metric) != content:
            break
        found = row
    return found


def _origin(landed: Mapping[str, Any], steps: Iterable[_Step], parents: Mapping[str, list[str]]) -> _Step:
    """The commit that made the content: the oldest single-parent one that the landing brought or could have copied."""
    own = _Step(landed["commit"], landed["committed_at"], landed["subject"], tuple(landed["parents"]), landed["document"], 0)
    if len(own.parents) < 2 and landed["sync"] is None:
        return own
    known = _ancestors(own.parents[1:], parents) if len(own.parents) > 1 else None
    for step in steps:
        earlier = step.committed_at <= own.committed_at and step.commit != own.commit
        if len(step.parents) < 2 and earlier and (known is None or step.commit in known):
            return step
    return own


def _ancestors(tips: Iterable[str], parents: Mapping[str, list[str]]) -> set[str]:
    seen: set[str] = set()
    stack = list(tips)
    while stack:
        commit = stack.pop()
        if commit not in seen:
            seen.add(commit)
            stack.extend(parents.get(commit, []))
    return seen


def _via(landed: Mapping[str, Any], origin: _Step) -> str:
    if landed["sync"] is not None:
        return f"sync:{landed['commit'][:10]}"
    if origin.commit != landed["commit"]:
        return f"merge:{landed['commit'][:10]}"
    return "commit"


class _Runs:
    """Which run delivered a document, from the surest record there is."""

    def __init__(self, connection: Connection) -> None:
        self.by_commit = self._ask(
            connection,
            """
            SELECT r."commit" || ':' || f.path, list_distinct(r.runs) FROM refresh AS r
            JOIN refresh_file AS f ON f.refresh = r.id WHERE r."commit" <> '' AND len(r.runs) > 0
            """,
        )
        self.by_refresh = self._ask(
            connection,
            """
            SELECT f.document, list_distinct(flatten(list(r.runs))) FROM refresh AS r
            JOIN refresh_file AS f ON f.refresh = r.id
            WHERE f.action = 'written' AND f.document IS NOT NULL AND len(r.runs) > 0 GROUP BY f.document
            """,
        )
        self.by_observation = self._ask(
            connection, "SELECT document, list(DISTINCT run ORDER BY run) FROM observation GROUP BY document"
        )

    @staticmethod
    def _ask(connection: Connection, query: str) -> dict[str, str]:
        return {key: ", ".join(sorted(runs)) for key, runs in connection.execute(query).fetchall()}

    def of(self, origin: _Step, landed: Mapping[str, Any], path: str) -> str:
        """The run, or several with commas; empty when nobody says."""
        for commit in (origin.commit, landed["commit"]):
            if f"{commit}:{path}" in self.by_commit:
                return self.by_commit[f"{commit}:{path}"]
        for known in (self.by_refresh, self.by_observation):
            if origin.document in known:
                return known[origin.document]
        said = _RUN_IN_SUBJECT.search(origin.subject)
        return said[1] if said else ""
