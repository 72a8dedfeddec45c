"""The commands that ask or fill a catalog, file or shared store, as functions."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from goldenctl import config
from goldenctl.git import Repo

if TYPE_CHECKING:
    from datetime import datetime

    import polars as pl

    from goldenctl.catalog.build import Built
    from goldenctl.catalog.drift import Change, Drift
    from goldenctl.catalog.places import Lake, Place
    from goldenctl.catalog.query import Status
    from goldenctl.catalog.transfer import Moved
    from goldenctl.catalog.upkeep import Cleaned, StoreStatus

Words = Sequence[str]
"""Names as on the command line; empty means all."""


def place(store: bool | None = None, as_of: str = "", settings: config.Settings | None = None) -> Place:
    """The catalog file or the shared store, as the settings and the arguments say."""
    from goldenctl.catalog.places import chosen

    return chosen(settings or config.load(Path.cwd()), store=store, as_of=as_of)


def _shared(settings: config.Settings, as_of: str = "") -> Lake:
    from goldenctl.catalog.places import shared

    return shared(settings, as_of)


def catalog_build(branches: Words = ()) -> Built:
    """Fill the catalog from git history."""
    from goldenctl.catalog import build

    settings = config.load(Path.cwd())
    return build.build(Repo(settings.top), settings, place(settings=settings), branches)


def catalog_update(branches: Words = ()) -> Built:
    """Take in what is new in git since the last build."""
    from goldenctl.catalog import build

    settings = config.load(Path.cwd())
    return build.update(Repo(settings.top), settings, place(settings=settings), branches)


def catalog_status(*, store: bool | None = None, as_of: str = "") -> Status:
    """What the catalog holds."""
    from goldenctl.catalog.query import status

    return status(place(store, as_of))


def catalog_sql(query: str, *, store: bool | None = None, as_of: str = "") -> pl.DataFrame:
    """The rows of one query that can only read."""
    from goldenctl.catalog.query import sql

    return sql(place(store, as_of), query)


def catalog_export(to: Path, *, store: bool | None = None, as_of: str = "") -> list[Path]:
    """Copy every table into a Parquet file and name the files."""
    from goldenctl.catalog.query import export

    return export(place(store, as_of), to)


def store_push() -> tuple[Moved, ...]:
    """Copy what the catalog file has and the shared store lacks, and verify it."""
    from goldenctl.catalog.transfer import push

    settings = config.load(Path.cwd())
    return push(settings.catalog_path, _shared(settings))


def store_pull(*, as_of: str = "") -> tuple[Moved, ...]:
    """Copy what the shared store has, or had, and the catalog file lacks, and verify it."""
    from goldenctl.catalog.transfer import pull

    settings = config.load(Path.cwd())
    return pull(_shared(settings, as_of), settings.catalog_path)


def store_status() -> StoreStatus:
    """Versions, files, bytes and last writers of the shared store."""
    from goldenctl.catalog.upkeep import status

    return status(_shared(config.load(Path.cwd())))


def store_compact() -> tuple[int, int]:
    """Merge small files of the shared store: how many there were, and how many there are."""
    from goldenctl.catalog.upkeep import compact

    return compact(_shared(config.load(Path.cwd())))


def store_clean(older_than: datetime, *, dry_run: bool = False) -> Cleaned:
    """Remove versions of the shared store before a moment, and files that no version has."""
    from goldenctl.catalog.upkeep import clean

    return clean(_shared(config.load(Path.cwd())), older_than, dry_run=dry_run)


def log(path: str, *, branch: str = "", metric: str = "", store: bool | None = None, as_of: str = "") -> pl.DataFrame:
    """The revisions of goldens and what each changed; see :meth:`goldenctl.catalog.api.Catalog.log`."""
    from goldenctl.catalog.api import Catalog

    return Catalog(place(store, as_of)).log(path, branch, metric)


def blame(path: str, *, branch: str = "", store: bool | None = None, as_of: str = "") -> pl.DataFrame:
    """Metric by metric the commit, sync and run of today's values."""
    from goldenctl.catalog.api import Catalog

    return Catalog(place(store, as_of)).blame(path, branch)


def drift(
    path: str = "*",
    *,
    branch: str = "",
    metric: str = "",
    threshold: float = 0.05,
    store: bool | None = None,
    as_of: str = "",
) -> tuple[list[Change], list[Drift]]:
    """Lasting changes of each metric's level, and how far it has come since the first golden."""
    from goldenctl.catalog.drift import drift as stage
    from goldenctl.catalog.store import reading

    with reading(place(store, as_of)) as connection:
        return stage(connection, path, branch=branch, metric=metric, threshold=threshold)
