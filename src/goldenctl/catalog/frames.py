"""Between Polars and DuckDB through Arrow's C interface, which needs no pyarrow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import duckdb
import polars as pl


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


def clear(connection: duckdb.DuckDBPyConnection, table: str, keys: Sequence[str], data: pl.DataFrame) -> None:
    """Delete the rows of a table whose key is in a frame."""
    register(connection, "departing", data.select(keys))
    same = " AND ".join(f'd."{k}" = t."{k}"' for k in keys)
    connection.execute(f'DELETE FROM "{table}" AS t USING departing AS d WHERE {same}')  # noqa: S608 - our own names
    connection.unregister("departing")


def known_contents(connection: duckdb.DuckDBPyConnection, ids: Sequence[int] | pl.Series) -> list[int]:
    """Those of the content ids that the catalog has already."""
    register(connection, "arriving", pl.DataFrame({"content": pl.Series(ids, dtype=pl.Int64)}))
    rows = connection.execute("SELECT DISTINCT content FROM series JOIN arriving USING (content)").fetchall()
    connection.unregister("arriving")
    return [row[0] for row in rows]
