"""Rows into DuckDB through Arrow's C interface.

arro3 carries numbers without a copy and loads in a few milliseconds, so that filling the catalog needs neither
Polars nor pyarrow.
"""

from __future__ import annotations

import json
import sys
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


def insert_values(connection: Connection, contents: Sequence[Content], homes: Mapping[int, int] | None = None) -> None:
    """Append the steps and values of the contents the catalog lacks, metric by metric.

    Parameters
    ----------
    homes
        Content id → the part it is kept in; None keeps all in part 0.
    """
    known = _known(connection, contents) if contents else set()
    new = sorted((c for c in contents if c.id not in known), key=attrgetter("metric"))
    if not any(c.steps for c in new):
        return
    columns: dict[str, Any] = {
        "content": _packed("q", [c.id.to_bytes(8, sys.byteorder, signed=True) * len(c.steps) for c in new]),
        "step": _packed("q", [c.steps for c in new]),
        "value": _packed("d", [c.values for c in new]),
    }
    if homes:
        columns["home"] = memoryview(b"".join(bytes((homes.get(c.id, 0),)) * len(c.steps) for c in new))
    table = Table.from_arrays([Array.from_buffer(c) for c in columns.values()], names=list(columns))
    connection.register("arriving", table.__arrow_c_stream__())
    connection.execute('INSERT INTO "value" BY NAME SELECT * FROM arriving')
    connection.unregister("arriving")


def _known(connection: Connection, contents: Sequence[Content]) -> set[int]:
    """Ids of those contents that the catalog has already."""
    ids = memoryview(array("q", [c.id for c in contents]))
    connection.register("arriving", Table.from_arrays([Array.from_buffer(ids)], names=["content"]).__arrow_c_stream__())
    rows = connection.execute("SELECT DISTINCT content FROM series SEMI JOIN arriving USING (content)").fetchall()
    connection.unregister("arriving")
    return {row[0] for row in rows}


def _packed(kind: str, parts: Iterable[bytes | array[Any]]) -> memoryview:
    """The parts one after the other, copied once."""
    return memoryview(b"".join(parts)).cast(kind)  # type: ignore[call-overload, no-any-return]


def write_batch(connection: Connection, batch: Batch, homes: Mapping[str, int] | None = None) -> None:
    """Write parsed documents inside the open transaction; what the catalog has already is passed over.

    Parameters
    ----------
    homes
        Document id → the part its values are kept in; None keeps all in part 0.
    """
    insert_values(connection, batch.contents, _of_contents(batch, homes) if homes else None)
    unknown = "WHERE NOT EXISTS (SELECT 1 FROM document AS old WHERE old.id = new.{})".format
    insert(connection, "text", batch.texts, TEXT, unknown("document"))
    insert(connection, "series", batch.series, SERIES, unknown("document"))
    insert(connection, "document", batch.documents, DOCUMENT, unknown("id"))


def _of_contents(batch: Batch, homes: Mapping[str, int]) -> dict[int, int]:
    """Content id → part, as its document's; of two documents with the same content the first counts."""
    document, content = (list(SERIES).index(name) for name in ("document", "content"))
    return {int(str(row[content])): homes.get(str(row[document]), 0) for row in reversed(batch.series)}
