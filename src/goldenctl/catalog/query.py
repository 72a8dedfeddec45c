"""Questions to a catalog: its status, SQL that can harm nothing, a copy as Parquet files."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import duckdb
import polars as pl

from goldenctl.catalog import store
from goldenctl.catalog.frames import frame
from goldenctl.catalog.places import Lake, Place
from goldenctl.errors import CatalogError, UsageError

TABLES = (
    "golden", "document", "series", "value", "text", "commit", "line", "revision", "sync", "run", "job", "artifact",
    "observation", "refresh", "refresh_file",
)  # fmt: skip
"""The public tables, in the order of the documentation."""

_EXPLAIN = re.compile(r"\s*EXPLAIN\s+(ANALYZE\s+)?", re.IGNORECASE)
"""Its statement is carried out by ANALYZE, whatever it is."""

_PIVOTED = re.compile(r"[\s(]*(PIVOT|FROM|SELECT|WITH)\b", re.IGNORECASE)
"""From duckdb 2.0 on, a question with a PIVOT in it is of no kind of its own, and neither is a COPY of one."""
_FOREIGN = re.compile(r"^(?!ENUM).*\b(INTERVAL|UNION|BIGNUM|BIT|GEOMETRY|VARIANT)\b")
"""Kinds for which Polars has none, or which it fails on; inside of others too."""
_NESTED = ("list", "array", "struct", "map", "blob")


@dataclass(frozen=True, slots=True)
class Status:
    """What a catalog holds."""

    path: str
    size: int
    """Bytes of the file, or of a lake's data files."""
    schema_version: int
    rows: dict[str, int]
    """Public table → number of rows."""
    branches: dict[str, str]
    """Branch → commit its history was read to; empty before the first build."""


def status(path: Place, wait: float = store.WAIT) -> Status:
    """Size, schema version, row counts and branches of a catalog.

    Raises
    ------
    CatalogError
        There is none, or it cannot be read.
    """
    with store.reading(path, wait) as connection:
        rows = {t: _one(connection, f'SELECT count(*) FROM "{t}"') for t in TABLES}  # noqa: S608 - our own names
        version = _one(connection, "SELECT \"value\"::INTEGER FROM meta WHERE key = 'schema_version'")
        line = 'SELECT branch, arg_max("commit", position) FROM line GROUP BY branch ORDER BY branch'
        tips = dict(connection.execute(line).fetchall())
        return Status(str(path), _size(connection, path), version, rows, tips)


def _size(connection: duckdb.DuckDBPyConnection, place: Place) -> int:
    if isinstance(place, Lake):
        return _one(connection, "SELECT sum(file_size_bytes + delete_file_size_bytes)::BIGINT FROM ducklake_table_info('lake')")
    return place.stat().st_size


def _one(connection: duckdb.DuckDBPyConnection, query: str) -> int:
    row = store.first_row(connection, query)
    return int(row[0] or 0) if row else 0


def sql(path: Place, query: str, wait: float = store.WAIT, *, flat: bool = False) -> pl.DataFrame:
    """The result of one SQL query, which can neither write nor reach a file or the network.

    Parameters
    ----------
    flat
        Spell lists, structs, maps and bytes as DuckDB does, for a format that has none.

    Raises
    ------
    UsageError
        The query is wrong, or asks for what is not allowed.
    CatalogError
        There is no catalog, or it cannot be read.
    """
    with store.reading(path, wait) as connection:
        return ask(connection, query, flat=flat)


def ask(connection: duckdb.DuckDBPyConnection, query: str, *, flat: bool = False) -> pl.DataFrame:
    """As :func:`sql`, on an open catalog."""
    try:
        _one_statement(connection, query)
        return pl.DataFrame(_spelled(connection.sql(query), flat=flat))
    except (
        duckdb.ProgrammingError,
        duckdb.DataError,
        duckdb.NotSupportedError,
        duckdb.PermissionException,
        duckdb.InvalidInputException,
        duckdb.OutOfMemoryException,
    ) as exc:
        raise UsageError(f"the query failed: {exc}", hint="goldenctl catalog sql 'SHOW TABLES'") from exc


def _one_statement(connection: duckdb.DuckDBPyConnection, query: str) -> None:
    found = connection.extract_statements(query)
    written = [s for s in found if s.query]  # a PIVOT is two statements, and neither has a text
    hint = "goldenctl catalog sql 'SHOW TABLES'"
    if not found or len(written) > 1:
        raise UsageError(f"{len(written)} statements, and one is answered at a time", hint=hint)
    kind = found[-1].type.name
    if kind == "EXPLAIN" and (explained := _EXPLAIN.match(query)):
        _one_statement(connection, query[explained.end() :])
    elif kind != "SELECT" and not (kind == "MULTI" and _PIVOTED.match(query)):
        raise UsageError(f"{kind} is no question, and only questions are answered", hint=hint)


def _spelled(answer: duckdb.DuckDBPyRelation, *, flat: bool) -> duckdb.DuckDBPyRelation:
    """The answer with columns as text that Polars, or a flat format, cannot hold."""
    twice = [name for name, times in Counter(answer.columns).items() if times > 1]
    if twice:
        raise UsageError(
            f"two columns of the answer are named {twice[0]!r}", hint=f'give one another name: … AS "{twice[0]}_2"'
        )
    odd = [bool(_FOREIGN.search(str(kind)) or (flat and kind.id in _NESTED)) for kind in answer.types]
    if not any(odd):
        return answer
    names = ['"{}"'.format(name.replace('"', '""')) for name in answer.columns]
    said = [f"CAST({name} AS VARCHAR) AS {name}" if text else name for name, text in zip(names, odd, strict=True)]
    return answer.project(", ".join(said))


def export(path: Place, folder: Path, wait: float = store.WAIT) -> list[Path]:
    """Write every table as one Parquet file each; the view ``golden_value`` is a join of them.

    Returns
    -------
    list of Path
        The files written, ``{table}.parquet``.

    Raises
    ------
    CatalogError
        The catalog cannot be read or the folder not be written.
    """
    written = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with store.reading(path, wait) as connection:
            for table in TABLES:
                target = folder / f"{table}.parquet"
                frame(connection, f'SELECT * FROM "{table}"').write_parquet(target)  # noqa: S608 - our own names
                written.append(target)
    except OSError as exc:
        raise CatalogError(f"cannot be written: {exc.strerror or exc}", place=str(folder), hint="name another --to") from exc
    return written
