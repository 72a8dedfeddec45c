"""Parts of the values: which one a case's runs are kept in, and how few are read to find some contents."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

import polars as pl

from goldenctl.catalog.frames import temporary
from goldenctl.catalog.store import first_row

if TYPE_CHECKING:
    import duckdb

    Connection = duckdb.DuckDBPyConnection

PARTS = 32
"""Parts beside part 0: a nightly run of every case writes at most that many files."""


def home_of(model: str, test_case: str) -> int:
    """The part of a case, 1 to :data:`PARTS`."""
    return zlib.crc32(f"{model}/{test_case}".encode("utf-8", "surrogatepass")) % PARTS + 1


def gather(connection: Connection, contents: pl.DataFrame, goldens: list[int]) -> None:
    """Make the temporary table ``gathered`` (content, step, value) of some contents.

    The parts of the goldens' cases are read first, then part 0, and the others only when something is still
    missing: because another case's run brought the same content first.

    Parameters
    ----------
    contents
        Column ``content``: ids of contents that have values.
    goldens
        Ids of the goldens whose series they are.
    """
    temporary(connection, "missing", contents.select(pl.col("content").cast(pl.Int64)).unique())
    connection.execute('CREATE OR REPLACE TEMP TABLE gathered (content BIGINT, step BIGINT, "value" DOUBLE)')
    for parts in (_homes(connection, goldens), "home = 0", "home > 0"):
        if first_row(connection, "SELECT 1 FROM missing LIMIT 1") is None:
            return
        connection.execute(
            f'INSERT INTO gathered SELECT content, step, "value" FROM "value" JOIN missing USING (content) WHERE {parts}'  # noqa: S608
        )
        connection.execute("DELETE FROM missing WHERE content IN (SELECT content FROM gathered)")


def _homes(connection: Connection, goldens: list[int]) -> str:
    temporary(connection, "wanted", pl.DataFrame({"golden": goldens}, schema={"golden": pl.Int64}))
    rows = connection.execute("SELECT model, test_case FROM golden JOIN wanted ON id = wanted.golden").fetchall()
    parts = sorted({home_of(model, case) for model, case in rows})
    return f"home IN ({', '.join(map(str, parts or [0]))})"
