"""What a store holds and who wrote it, small files merged, old versions and orphans removed."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import duckdb

from goldenctl.catalog import lake as lakes
from goldenctl.catalog import store
from goldenctl.catalog.places import Lake

Connection = duckdb.DuckDBPyConnection
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_STAMP = "%Y-%m-%d %H:%M:%S.%f+00"
_VERSIONS = "SELECT snapshot_id, epoch_us(snapshot_time), author, commit_message, commit_extra_info FROM lake.snapshots()"
_FILES = """
    SELECT table_name, file_count, file_size_bytes, delete_file_count, delete_file_size_bytes
    FROM ducklake_table_info('lake') ORDER BY table_name
"""


@dataclass(frozen=True, slots=True)
class Version:
    """One version of the store."""

    id: int
    at: datetime
    """UTC."""
    author: str
    """``user@host``; empty for a version that a schema change made."""
    message: str
    waited: float
    """Seconds the writer waited for others."""


@dataclass(frozen=True, slots=True)
class Files:
    """The Parquet files of one table."""

    table: str
    files: int
    size: int
    """Bytes."""
    delete_files: int
    """Files that say which rows are gone."""


@dataclass(frozen=True, slots=True)
class StoreStatus:
    """What a store holds."""

    metadata: str
    data: str
    schema_version: int
    versions: int
    """Versions that can still be read."""
    current: int
    observations: int
    tables: tuple[Files, ...]
    last: tuple[Version, ...]
    """The newest versions, newest first."""
    waited: int
    """How many of the versions kept their writer waiting for more than a tenth of a second."""
    longest_wait: float
    """Seconds, of all versions kept."""

    @property
    def files(self) -> int:
        """Number of Parquet files, those of deletions included."""
        return sum(t.files + t.delete_files for t in self.tables)

    @property
    def size(self) -> int:
        """Bytes of the Parquet files."""
        return sum(t.size for t in self.tables)


@dataclass(frozen=True, slots=True)
class Cleaned:
    """What a cleaning removed, or would remove."""

    versions: int
    old_files: tuple[str, ...]
    """Files of versions that were removed, or that a merge has replaced."""
    orphans: tuple[str, ...]
    """Files that no version ever had: a writer was killed before its commit."""


def status(lake: Lake, last: int = 5, wait: float = store.WAIT) -> StoreStatus:
    """Versions, files, bytes and last writers of a store.

    Raises
    ------
    CatalogError
        There is none, or its server is down.
    """
    with store.reading(lake, wait) as connection:
        versions = [_version(row) for row in connection.execute(_VERSIONS).fetchall()]
        versions.sort(key=lambda v: v.id, reverse=True)
        tables = tuple(
            Files(name, files, size + deleted_size, deleted)
            for name, files, size, deleted, deleted_size in connection.execute(_FILES).fetchall()
        )
        rows = connection.execute("SELECT count(*) FROM observation").fetchall()
        return StoreStatus(
            str(lake), lake.data, store.version(connection, str(lake)), len(versions), versions[0].id, rows[0][0], tables,
            tuple(versions[:last]), sum(v.waited > 0.1 for v in versions), max(v.waited for v in versions),
        )  # fmt: skip


def _version(row: Sequence[object]) -> Version:
    ident, micros, author, message, extra = row
    try:
        waited = float(json.loads(str(extra))["waited_s"])
    except (ValueError, KeyError, TypeError):
        waited = 0.0
    at = _EPOCH + timedelta(microseconds=int(str(micros)))
    return Version(int(str(ident)), at, str(author or ""), str(message or ""), waited)


def compact(lake: Lake, wait: float = store.WAIT) -> tuple[int, int]:
    """Write what lies in the metadata into files, merge small files, and drop deleted rows from them.

    Returns
    -------
    tuple of int
        Files before and after. The replaced files stay until :func:`clean` removes them, for readers of old versions.

    Raises
    ------
    CatalogError
        The store cannot be written.
    """
    before = status(lake, 1, wait).files
    with lakes.maintaining(lake, wait) as (connection, waited):
        for step in ("ducklake_flush_inlined_data", "ducklake_rewrite_data_files", "ducklake_merge_adjacent_files"):
            connection.execute("BEGIN")
            connection.execute(f"CALL {step}('lake')")
            lakes.sign(connection, f"compact: {step.removeprefix('ducklake_')}", waited)
            connection.execute("COMMIT")
    return before, status(lake, 1, wait).files


def clean(lake: Lake, older_than: datetime, *, dry_run: bool = False, wait: float = store.WAIT) -> Cleaned:
    """Remove versions older than a moment, then the files nobody needs any more.

    No writer is at work meanwhile, so that a file without a version is an orphan; still only files older than
    the moment go, because another program may be writing.

    Parameters
    ----------
    older_than
        UTC; the newest version always stays.

    Raises
    ------
    CatalogError
        The store cannot be written.
    """
    dry = ", dry_run => true" if dry_run else ""
    limit = f"older_than => '{older_than.astimezone(UTC).strftime(_STAMP)}'::TIMESTAMPTZ{dry}"
    with lakes.maintaining(lake, wait) as (connection, _):
        gone = _call(connection, "ducklake_expire_snapshots", limit)
        old = _call(connection, "ducklake_cleanup_old_files", limit)
        orphans = _call(connection, "ducklake_delete_orphaned_files", limit)
    return Cleaned(len(gone), tuple(old), tuple(orphans))


def _call(connection: Connection, function: str, limit: str) -> list[str]:
    """First column of a maintenance function's answer."""
    query = f"SELECT COLUMNS(*)::VARCHAR FROM {function}('lake', {limit})"  # noqa: S608 - our own names
    return [str(row[0]) for row in connection.execute(query).fetchall()]
