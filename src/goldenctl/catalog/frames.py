"""Between Polars and DuckDB through Arrow's C interface, which needs no pyarrow."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import duckdb
import polars as pl

if TYPE_CHECKING:
    from goldenctl.catalog.rows import Batch, Columns, Values

os.environ.setdefault("ACERO_ALIGNMENT_HANDLING", "ignore")
"""Where pyarrow is installed DuckDB reads frames through it, and it warns at every frame of Polars otherwise."""


class _Stream:
    """A frame under no name DuckDB knows: given a Polars frame, it would ask for pyarrow."""

    def __init__(self, frame: pl.DataFrame) -> None:
        self._frame = frame

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._frame.__arrow_c_stream__(requested_schema)


def frame(connection: duckdb.DuckDBPyConnection, query: str, parameters: Sequence[Any] | None = None) -> pl.DataFrame:
    """The result of a query as a Polars frame; NaN stays NaN, NULL becomes null."""
    return pl.DataFrame(connection.sql(query, params=parameters) if parameters else connection.sql(query))


def register(connection: duckdb.DuckDBPyConnection, name: str, data: pl.DataFrame) -> None:
    """Make a frame readable as table ``name`` until the connection is closed."""
    connection.register(name, _Stream(data))


def insert(connection: duckdb.DuckDBPyConnection, table: str, data: pl.DataFrame, where: str = "") -> None:
    """Append the rows of a frame to a table, columns by name; ``where`` filters them under the name ``new``."""
    register(connection, "arriving", data)
    connection.execute(f'INSERT INTO "{table}" BY NAME SELECT * FROM arriving AS new {where}')  # noqa: S608 - our own names
    connection.unregister("arriving")


def _table(columns: Columns, types: Mapping[str, Any]) -> pl.DataFrame:
    return pl.DataFrame([pl.Series(n, c, dtype=types.get(n)) for n, c in zip(columns.names, columns.lists, strict=True)])


_NULLABLE = {
    "start_step": pl.Int64, "end_step": pl.Int64, "step_interval": pl.Int64, "first_step": pl.Int64, "last_step": pl.Int64,
    "precision": pl.String, "error": pl.String,
}  # fmt: skip


def _write_values(connection: duckdb.DuckDBPyConnection, values: Values) -> None:
    """Values of contents the catalog lacks; nearly always that is all of them, and the long way round is saved."""
    contents, lengths = pl.Series(values.contents, dtype=pl.Int64), pl.Series(values.lengths, dtype=pl.Int64)
    data = pl.DataFrame(
        {
            "content": contents.repeat_by(lengths).explode() if len(contents) else contents,
            "step": pl.Series(values.steps, dtype=pl.Int64),
            "value": pl.Series(values.values, dtype=pl.Float64),
        }
    )
    known = frame(connection, "SELECT DISTINCT content FROM series")["content"]
    if contents.is_in(known.implode()).any():
        data = data.filter(~pl.col("content").is_in(known.implode()))
    insert(connection, "value", data)


def write_batch(connection: duckdb.DuckDBPyConnection, batch: Batch) -> None:
    """Write parsed documents inside the open transaction; what the catalog has already is passed over."""
    _write_values(connection, batch.all_values())
    unknown = "WHERE NOT EXISTS (SELECT 1 FROM document AS old WHERE old.id = new.{})".format
    insert(connection, "text", _table(batch.texts, {}), unknown("document"))
    insert(connection, "series", _table(batch.series, _NULLABLE), unknown("document"))
    insert(connection, "document", _table(batch.documents, _NULLABLE), unknown("id"))
