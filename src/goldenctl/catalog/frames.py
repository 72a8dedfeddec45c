"""Between Polars and DuckDB through Arrow's C interface, which needs no pyarrow."""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import duckdb
import polars as pl

if TYPE_CHECKING:
    from goldenctl.catalog.rows import Batch, Content, Rows


def frame(connection: duckdb.DuckDBPyConnection, query: str, parameters: Sequence[Any] | None = None) -> pl.DataFrame:
    """The result of a query as a Polars frame; NaN stays NaN, NULL becomes null."""
    return pl.DataFrame(connection.sql(query, params=parameters) if parameters else connection.sql(query))


def register(connection: duckdb.DuckDBPyConnection, name: str, data: pl.DataFrame) -> None:
    """Make a frame readable once, as table ``name``.

    The bare capsule spares DuckDB the import of pandas and pyarrow, with which it would look into the frame.
    """
    connection.register(name, data.__arrow_c_stream__())


def temporary(connection: duckdb.DuckDBPyConnection, name: str, data: pl.DataFrame) -> None:
    """Make a frame a temporary table, which a query may read as often as it likes; works read only too."""
    register(connection, "arriving", data)
    connection.execute(f'CREATE OR REPLACE TEMP TABLE "{name}" AS SELECT * FROM arriving')  # noqa: S608 - our own names
    connection.unregister("arriving")


def insert(connection: duckdb.DuckDBPyConnection, table: str, data: pl.DataFrame, where: str = "") -> None:
    """Append the rows of a frame to a table, columns by name; ``where`` filters them under the name ``new``."""
    register(connection, "arriving", data)
    connection.execute(f'INSERT INTO "{table}" BY NAME SELECT * FROM arriving AS new {where}')  # noqa: S608 - our own names
    connection.unregister("arriving")


def rows_frame(rows: Sequence[tuple[object, ...]], schema: Mapping[str, Any]) -> pl.DataFrame:
    """Rows as a frame with the columns of ``schema``."""
    return pl.DataFrame(rows, schema=dict(schema), orient="row")


def clear(connection: duckdb.DuckDBPyConnection, table: str, keys: Sequence[str], data: pl.DataFrame) -> None:
    """Delete the rows of a table whose key is in a frame."""
    register(connection, "departing", data.select(keys))
    same = " AND ".join(f'd."{k}" = t."{k}"' for k in keys)
    connection.execute(f'DELETE FROM "{table}" AS t USING departing AS d WHERE {same}')  # noqa: S608 - our own names
    connection.unregister("departing")


def replace(
    connection: duckdb.DuckDBPyConnection,
    table: str,
    keys: Sequence[str],
    rows: Sequence[tuple[object, ...]],
    schema: Mapping[str, Any],
) -> None:
    """Insert rows, taking the place of those with the same key; of two equal keys the last counts."""
    data = rows_frame(rows, schema).unique(subset=list(keys), keep="last", maintain_order=True)
    if len(data):
        clear(connection, table, keys, data)
        insert(connection, table, data)


def _table(rows: Rows, types: Mapping[str, Any]) -> pl.DataFrame:
    columns = zip(*rows, strict=True) if rows else ((),) * len(rows.names)
    return pl.DataFrame([pl.Series(n, c, dtype=types.get(n)) for n, c in zip(rows.names, columns, strict=True)])


_NULLABLE = {
    "start_step": pl.Int64, "end_step": pl.Int64, "step_interval": pl.Int64, "first_step": pl.Int64, "last_step": pl.Int64,
    "precision": pl.String, "error": pl.String,
}  # fmt: skip


def _write_values(connection: duckdb.DuckDBPyConnection, contents: Sequence[Content]) -> None:
    """Steps and values of the contents the catalog lacks, metric by metric."""
    known = {row[0] for row in connection.execute("SELECT DISTINCT content FROM series").fetchall()}
    ids, steps, values = array("q"), array("q"), array("d")
    for content in sorted(contents, key=attrgetter("metric")):
        if content.id not in known:
            ids.extend(array("q", (content.id,)) * len(content.steps))
            steps.extend(content.steps)
            values.extend(content.values)
    columns = {"content": pl.Series(ids, dtype=pl.Int64), "step": pl.Series(steps, dtype=pl.Int64)}
    insert(connection, "value", pl.DataFrame(columns | {"value": pl.Series(values, dtype=pl.Float64)}))


def write_batch(connection: duckdb.DuckDBPyConnection, batch: Batch) -> None:
    """Write parsed documents inside the open transaction; what the catalog has already is passed over."""
    _write_values(connection, batch.contents)
    unknown = "WHERE NOT EXISTS (SELECT 1 FROM document AS old WHERE old.id = new.{})".format
    insert(connection, "text", _table(batch.texts, {}), unknown("document"))
    insert(connection, "series", _table(batch.series, _NULLABLE), unknown("document"))
    insert(connection, "document", _table(batch.documents, _NULLABLE), unknown("id"))
