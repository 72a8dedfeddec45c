"""Between Polars and DuckDB through Arrow's C interface, which needs no pyarrow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import duckdb
import polars as pl

if TYPE_CHECKING:
    pass


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
