"""Rows into DuckDB through Arrow's C interface.

arro3 carries numbers without a copy and loads in a few milliseconds, so that filling the catalog needs neither
Polars nor pyarrow.
"""

from __future__ import annotations

import json
from array import array
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import duckdb
from arro3.core import Array, DataType, Table

from goldenctl.catalog.columns import DOCUMENT, SERIES, TEXT, Kind, Schema

if TYPE_CHECKING:
    from goldenctl.catalog.rows import Batch, Content

    Connection = duckdb.DuckDBPyConnection

Rows = Sequence[tuple[object, ...]]
_EPOCH = datetime(1970, 1, 1)
_BETWEEN = "\x1f"
"""Between the items of a list of text on its way; no id of ours holds it."""
_ARROW = {Kind.INT: DataType.int64(), Kind.TIME: DataType.int64(), Kind.BOOL: DataType.bool()}
_MATCHES = '[{"rev":"VARCHAR","commit":"VARCHAR","level":"VARCHAR","detail":"VARCHAR"}]'
_ARRIVES = {
    Kind.TIME: 'make_timestamp(new."{0}")',
    Kind.TEXTS: 'CASE WHEN new."{0}" = \'\' THEN [] ELSE string_split(new."{0}", chr(31)) END',
    Kind.MATCHES: f"from_json(new.\"{{0}}\", '{_MATCHES.replace('{', '{{').replace('}', '}}')}')",
}
"""How a column is made of what travels, where that is not itself."""
_ITSELF = 'new."{0}"'


def insert(connection: Connection, table: str, rows: Rows, schema: Schema, where: str = "") -> None:
    """Append rows to a table; ``where`` filters them under the name ``new``."""
    if not rows:
        return
    _register(connection, rows, schema)
    columns = ", ".join(f'{_ARRIVES.get(kind, _ITSELF).format(name)} AS "{name}"' for name, kind in schema.items())
    connection.execute(f'INSERT INTO "{table}" BY NAME SELECT {columns} FROM arriving AS new {where}')  # noqa: S608
    connection.unregister("arriving")


def clear(connection: Connection, table: str, keys: Sequence[str], rows: Rows, schema: Schema) -> None:
    """Delete the rows of a table that have the key of one of ``rows``."""
    if not rows:
        return
    _register(connection, rows, schema)
    same = " AND ".join(f'new."{k}" = old."{k}"' for k in keys)
    connection.execute(f'DELETE FROM "{table}" AS old USING arriving AS new WHERE {same}')  # noqa: S608 - our own names
    connection.unregister("arriving")


def replace(connection: Connection, table: str, keys: Sequence[str], rows: Rows, schema: Schema) -> None:
    """Insert rows, taking the place of those with the same key; of two equal keys the last counts."""
    places = [list(schema).index(key) for key in keys]
    chosen = list({tuple(row[i] for i in places): row for row in rows}.values())
    clear(connection, table, keys, chosen, schema)
    insert(connection, table, chosen, schema)


def _register(connection: Connection, rows: Rows, schema: Schema) -> None:
    """Make rows readable once as ``arriving``.

    The bare capsule spares DuckDB the import of pandas and pyarrow, with which it would look into the table.
    """
    columns = [_column(items, kind) for items, kind in zip(zip(*rows, strict=True), schema.values(), strict=True)]
    connection.register("arriving", Table.from_arrays(columns, names=list(schema)).__arrow_c_stream__())


def _column(items: Iterable[Any], kind: Kind) -> Array:
    if kind is Kind.TIME:
        items = [None if item is None else (item - _EPOCH) // timedelta(microseconds=1) for item in items]
    elif kind is Kind.TEXTS:
        items = map(_BETWEEN.join, items)
    elif kind is Kind.MATCHES:
        items = map(json.dumps, items)
    return Array(list(items), type=_ARROW.get(kind, DataType.string()))


def insert_values(connection: Connection, contents: Sequence[Content]) -> None:
    """Append the steps and values of the contents the catalog lacks, metric by metric."""
    known = {row[0] for row in connection.execute("SELECT DISTINCT content FROM series").fetchall()}
    ids, steps, values = array("q"), array("q"), array("d")
    for content in sorted(contents, key=attrgetter("metric")):
        if content.id not in known:
            ids.extend(array("q", (content.id,)) * len(content.steps))
            steps.extend(content.steps)
            values.extend(content.values)
    if not ids:
        return
    columns: Mapping[str, Any] = {"content": ids, "step": steps, "value": values}
    table = Table.from_arrays([Array.from_buffer(c) for c in columns.values()], names=list(columns))
    connection.register("arriving", table.__arrow_c_stream__())
    connection.execute('INSERT INTO "value" BY NAME SELECT * FROM arriving')
    connection.unregister("arriving")


def write_batch(connection: Connection, batch: Batch) -> None:
    """Write parsed documents inside the open transaction; what the catalog has already is passed over."""
    insert_values(connection, batch.contents)
    unknown = "WHERE NOT EXISTS (SELECT 1 FROM document AS old WHERE old.id = new.{})".format
    insert(connection, "text", batch.texts, TEXT, unknown("document"))
    insert(connection, "series", batch.series, SERIES, unknown("document"))
    insert(connection, "document", batch.documents, DOCUMENT, unknown("id"))
