"""Documents as the catalog holds them, and which of them a run delivered."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import duckdb
import polars as pl

from goldenctl.catalog.frames import frame, temporary
from goldenctl.catalog.homes import gather

Connection = duckdb.DuckDBPyConnection
_RUN = """
    SELECT path, first(document ORDER BY r.attempt DESC, o.attempt DESC, o.observed_at DESC, replicate, member)
    FROM observation AS o JOIN run AS r ON r.id = o.run
    WHERE '{0}' IN (r.id, r.ref, r.provider || ':' || r.run_id, r.run_id) GROUP BY path
"""
_GOLDENS = """
    SELECT golden FROM revision SEMI JOIN asked USING (document)
    UNION SELECT golden FROM observation SEMI JOIN asked USING (document)
"""
_CONTENTS = "SELECT DISTINCT content FROM series SEMI JOIN asked USING (document) WHERE n_values > 0"
_SERIES = """
    SELECT
        s.document, s.metric, s.form, s.start_step, s.end_step, s.step_interval, s."precision",
        list(v.step ORDER BY v.step) FILTER (v.step IS NOT NULL), list(v."value" ORDER BY v.step) FILTER (v.step IS NOT NULL)
    FROM series AS s SEMI JOIN asked USING (document) LEFT JOIN gathered AS v USING (content)
    GROUP BY ALL ORDER BY s.document, any_value(s.position)
"""


@dataclass(frozen=True, slots=True)
class Stored:
    """One document without its formatting."""

    id: str
    """Git blob id."""
    shape: str
    error: str
    """Why it could not be read; empty when it could."""
    series: tuple[tuple[Any, ...], ...]
    """Metric, form, start_step, end_step, step_interval, precision, steps and values, in file order."""
    texts: dict[str, str]
    """Name → compact JSON text, of what is not a number."""


def of_run(connection: Connection, name: str) -> dict[str, str]:
    """Golden path → document of a run's last attempt; empty for a run nobody recorded.

    Parameters
    ----------
    name
        Its id in the catalog (``github:42#1``), its reference, or its id at the provider.
    """
    return dict(connection.execute(_RUN.format(name.replace("'", "''"))).fetchall())


def documents(connection: Connection, ids: Sequence[str]) -> list[Stored]:
    """The documents with these ids, in their order; what the catalog lacks is left out."""
    temporary(connection, "asked", pl.DataFrame({"document": list(dict.fromkeys(ids))}, schema={"document": pl.String}))
    goldens = [row[0] for row in connection.execute(_GOLDENS).fetchall()]
    gather(connection, frame(connection, _CONTENTS), goldens)
    series: dict[str, list[tuple[Any, ...]]] = {}
    for document, *rest in connection.execute(_SERIES).fetchall():
        series.setdefault(document, []).append((*rest[:-2], rest[-2] or [], rest[-1] or []))
    texts: dict[str, dict[str, str]] = {}
    for document, name, text in connection.execute('SELECT t.* FROM "text" AS t SEMI JOIN asked USING (document)').fetchall():
        texts.setdefault(document, {})[name] = text
    found = connection.execute("SELECT d.id, shape, error FROM document AS d JOIN asked ON asked.document = d.id").fetchall()
    made = {i: Stored(i, shape, error or "", tuple(series.get(i, ())), texts.get(i, {})) for i, shape, error in found}
    return [made[i] for i in dict.fromkeys(ids) if i in made]
