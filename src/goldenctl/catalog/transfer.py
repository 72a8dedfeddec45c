"""Copy a catalog file into a store and back: what is missing, in pieces, verified by counts and checksums.

Content is copied by its own id, so that a copy that was stopped goes on where it was and two copies at once
do no harm. Rows that only describe what is elsewhere (where a golden lives, a branch's line) follow the side
that has seen more of the history.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import duckdb
import polars as pl

from goldenctl.catalog import store
from goldenctl.catalog.frames import clear, frame, insert, known_contents, temporary
from goldenctl.catalog.places import Lake, Place
from goldenctl.errors import CatalogError

Connection = duckdb.DuckDBPyConnection
PIECE = 2_000_000
"""Values copied in one transaction, about 50 MB in memory: the most a kill can cost."""


@dataclass(frozen=True, slots=True)
class Kept:
    """How the rows of one table are told apart and compared."""

    name: str
    keys: tuple[str, ...]
    checked: tuple[str, ...] = ()
    """Columns that must agree beside the keys; not those that say when somebody recorded a row."""


@dataclass(frozen=True, slots=True)
class Moved:
    """What became of one table."""

    table: str
    rows: int
    """Rows of the source, all found in the target."""
    new: int
    """Those the target did not have before."""


CONTENT = (
    Kept("value", ("content", "step"), ("value",)),
    Kept("text", ("document", "name"), ("text",)),
    Kept("series", ("document", "position"), ("metric", "content", "n_values", "n_nan", "n_inf", "precision", "form")),
    Kept("document", ("id",), ("content", "size", "shape", "n_values", "error")),
)
RECORDS = (
    Kept("commit", ("id",), ("parents", "committed_at", "subject")),
    Kept("revision", ("golden", "commit", "path"), ("document", "change")),
    Kept("sync", ("commit",), ("landed_at", "kind", "base", "downstream", "upstream")),
    Kept("run", ("id",), ("provider", "run_id", "attempt")),
    Kept("job", ("run", "id", "attempt")),
    Kept("artifact", ("run", "id", "name")),
    Kept("observation", ("path", "run", "job", "attempt", "replicate", "member"), ("golden",)),
    Kept("refresh", ("id",), ("dry_run", "runs")),
    Kept("refresh_file", ("refresh", "path"), ("action", "sha256", "document")),
    Kept("golden", ("id",), ("born_path",)),
)

_UNKNOWN = 'WHERE NOT EXISTS (SELECT 1 FROM "{}" AS old WHERE {})'


def push(path: Path, lake: Lake, wait: float = store.WAIT) -> tuple[Moved, ...]:
    """Copy a catalog file into a store; the store is made when there is none.

    Returns
    -------
    tuple of Moved
        One for each table.

    Raises
    ------
    CatalogError
        One of the two cannot be read or written, or what arrived is not what was sent.
    """
    with store.writing(lake, wait, about="push: schema"):
        pass  # makes a new one
    return _copy(path, lake, wait, "push")


def pull(lake: Lake, path: Path, wait: float = store.WAIT) -> tuple[Moved, ...]:
    """Copy a store, or one version of it, into a catalog file; see :func:`push`."""
    with store.reading(lake, wait):
        pass  # complains before a file is made
    with store.writing(path, wait):
        pass
    return _copy(lake, path, wait, "pull")


def _copy(source: Place, target: Place, wait: float, about: str) -> tuple[Moved, ...]:
    with store.reading(target, wait) as connection:
        before = {kept.name: _count(connection, kept) for kept in (*CONTENT, *RECORDS)}
    for documents in _pieces(source, target, wait):
        _copy_content(source, target, documents, wait, about)
    _copy_records(source, target, wait, about)
    with store.reading(source, wait) as here, store.reading(target, wait) as there:
        return tuple(_verify(kept, here, there, before[kept.name], str(target)) for kept in (*CONTENT, *RECORDS))


def _count(connection: Connection, kept: Kept) -> int:
    row = store.first_row(connection, f'SELECT count(*) FROM "{kept.name}"')  # noqa: S608 - our own names
    return int(row[0]) if row else 0


def _pieces(source: Place, target: Place, wait: float) -> list[pl.DataFrame]:
    """Documents the target lacks, ``document``, in pieces of about :data:`PIECE` values."""
    with store.reading(source, wait) as connection:
        here = frame(connection, "SELECT id AS document, n_values FROM document ORDER BY id")
    with store.reading(target, wait) as connection:
        there = frame(connection, "SELECT id AS document FROM document")
    missing = here.join(there, on="document", how="anti", maintain_order="left")
    pieces = missing.with_columns(piece=pl.col("n_values").cum_sum() // PIECE)
    return [p.select("document") for p in pieces.partition_by("piece", maintain_order=True)] if len(missing) else []


def _copy_content(source: Place, target: Place, documents: pl.DataFrame, wait: float, about: str) -> None:
    """Some documents with their series, texts and values, in one transaction."""
    with store.reading(source, wait) as connection:
        temporary(connection, "piece", documents)
        data = {
            "series": frame(connection, "SELECT s.* FROM series AS s JOIN piece USING (document)"),
            "text": frame(connection, 'SELECT t.* FROM "text" AS t JOIN piece USING (document)'),
            "document": frame(connection, "SELECT d.* FROM document AS d JOIN piece AS p ON p.document = d.id"),
        }
        temporary(connection, "contents", data["series"].select("content").unique())
        values = frame(connection, 'SELECT v.* FROM "value" AS v JOIN contents USING (content)')
    with store.writing(target, wait, about=f"{about}: {len(documents)} documents") as connection:
        known = known_contents(connection, data["series"]["content"].unique())
        insert(connection, "value", values.filter(~pl.col("content").is_in(known)))
        for table, rows in data.items():
            key = "id" if table == "document" else "document"
            insert(connection, table, rows, _UNKNOWN.format("document", f"old.id = new.{key}"))


def _copy_records(source: Place, target: Place, wait: float, about: str) -> None:
    """Everything that is not content, in one transaction; rows with a key the target has are passed over."""
    with store.reading(source, wait) as connection:
        data = {kept.name: frame(connection, f'SELECT * FROM "{kept.name}"') for kept in RECORDS}  # noqa: S608 - our own names
        line = frame(connection, "SELECT * FROM line")
        meta = frame(connection, "SELECT * FROM meta WHERE key <> 'schema_version'")
    with store.writing(target, wait, about=f"{about}: history, runs and refreshes") as connection:
        if _ahead(connection, line):
            _take_over(connection, line, meta, data["golden"])
        for kept in RECORDS:
            same = " AND ".join(f'old."{key}" = new."{key}"' for key in kept.keys)
            insert(connection, kept.name, data[kept.name], _UNKNOWN.format(kept.name, same))


def _ahead(connection: Connection, line: pl.DataFrame) -> bool:
    """Whether the source has read a branch further than the target."""
    there = frame(connection, "SELECT branch, max(position) AS there FROM line GROUP BY branch")
    tips = line.group_by("branch").agg(here=pl.col("position").max()).join(there, on="branch", how="left")
    return len(tips.filter(pl.col("here") > pl.col("there").fill_null(-1))) > 0


def _take_over(connection: Connection, line: pl.DataFrame, meta: pl.DataFrame, golden: pl.DataFrame) -> None:
    """Put what the source says of branches and of where goldens live in the place of what was there."""
    for table, keys, data in (("line", ("branch",), line), ("meta", ("key",), meta), ("golden", ("id",), golden)):
        clear(connection, table, keys, data)
        insert(connection, table, data)


def _verify(kept: Kept, here: Connection, there: Connection, before: int, place: str) -> Moved:
    """Compare count and checksum of the source's rows with the same rows of the target."""
    scope = {"value": ("content",), "series": ("document",), "text": ("document",)}.get(kept.name, kept.keys)
    columns = ", ".join(f'"{column}"' for column in scope)
    temporary(there, "wanted", frame(here, f'SELECT DISTINCT {columns} FROM "{kept.name}"'))  # noqa: S608 - our own names
    sent = _total(here, kept, "")
    arrived = _total(there, kept, f"JOIN wanted AS w USING ({columns})")
    if sent != arrived:
        fact = f"table {kept.name} has not arrived whole: {sent} were sent and {arrived} are there (rows, checksum)"
        raise CatalogError(fact, place=place, hint="run it again; if it stays, the two hold different data")
    return Moved(kept.name, sent[0], _count(there, kept) - before)


def _total(connection: Connection, kept: Kept, join: str) -> tuple[int, str]:
    """Number of rows and a checksum of their keys and checked columns, whatever their order."""
    names = ", ".join(f't."{column}"' for column in (*kept.keys, *kept.checked))
    query = f'SELECT count(*), coalesce(sum(hash({names})), 0)::VARCHAR FROM "{kept.name}" AS t {join}'  # noqa: S608
    row = store.first_row(connection, query)
    return (int(row[0]), str(row[1])) if row else (0, "")
