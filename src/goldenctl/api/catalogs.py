"""The commands that ask or fill a catalog, file or shared store, as functions."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from goldenctl import config
from goldenctl.api.twin import Age, AsOf, Natural, Seconds, Share, Some, Words, twin
from goldenctl.errors import UsageError
from goldenctl.git import Repo

if TYPE_CHECKING:
    import polars as pl

    from goldenctl.catalog.build import Built
    from goldenctl.catalog.drift import Change, Drift
    from goldenctl.catalog.places import Lake, Place
    from goldenctl.catalog.query import Status
    from goldenctl.catalog.transfer import Moved
    from goldenctl.catalog.upkeep import Cleaned, StoreStatus

_UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


def place(
    store: bool | None = None,
    as_of: AsOf = "",
    settings: config.Settings | None = None,
    catalog: str | Path | None = None,
) -> Place:
    """The catalog file or the shared store, as the settings and the arguments say."""
    from goldenctl.catalog.places import chosen

    file = Path(catalog) if catalog else None
    return chosen(settings or config.load(Path.cwd()), catalog=file, store=store, as_of=str(as_of))


def _shared(as_of: AsOf = "") -> Lake:
    from goldenctl.catalog.places import shared

    return shared(config.load(Path.cwd()), str(as_of))


def _file(catalog: str | Path | None) -> Path:
    return Path(catalog).absolute() if catalog else config.load(Path.cwd()).catalog_path


@twin
def catalog_build(
    branch: Words = (), *, catalog: str | Path | None = None, lock_wait: Seconds = 30.0, store: bool | None = None
) -> Built:
    """Fill the catalog from git history."""
    from goldenctl.catalog import build

    settings = config.load(Path.cwd())
    return build.build(Repo(settings.top), settings, place(store, settings=settings, catalog=catalog), branch, wait=lock_wait)


@twin
def catalog_update(
    branch: Words = (), *, catalog: str | Path | None = None, lock_wait: Seconds = 30.0, store: bool | None = None
) -> Built:
    """Take in what is new in git since the last build."""
    from goldenctl.catalog import build

    settings = config.load(Path.cwd())
    return build.update(Repo(settings.top), settings, place(store, settings=settings, catalog=catalog), branch, wait=lock_wait)


@twin
def catalog_status(
    *, catalog: str | Path | None = None, lock_wait: Seconds = 30.0, store: bool | None = None, as_of: AsOf = ""
) -> Status:
    """What the catalog holds."""
    from goldenctl.catalog.query import status

    return status(place(store, as_of, catalog=catalog), lock_wait)


@twin
def catalog_sql(
    query: str, *, catalog: str | Path | None = None, lock_wait: Seconds = 30.0, store: bool | None = None, as_of: AsOf = ""
) -> pl.DataFrame:
    """The rows of one query that can only read."""
    from goldenctl.catalog.query import sql

    return sql(place(store, as_of, catalog=catalog), query, lock_wait)


@twin
def catalog_export(
    to: str | Path,
    *,
    catalog: str | Path | None = None,
    lock_wait: Seconds = 30.0,
    store: bool | None = None,
    as_of: AsOf = "",
) -> list[Path]:
    """Copy every table into a Parquet file and name the files."""
    from goldenctl.catalog.query import export

    return export(place(store, as_of, catalog=catalog), Path(to), lock_wait)


@twin
def store_push(*, catalog: str | Path | None = None, lock_wait: Seconds = 30.0) -> tuple[Moved, ...]:
    """Copy what the catalog file has and the shared store lacks, and verify it."""
    from goldenctl.catalog.transfer import push

    return push(_file(catalog), _shared(), lock_wait)


@twin
def store_pull(*, catalog: str | Path | None = None, as_of: AsOf = "", lock_wait: Seconds = 30.0) -> tuple[Moved, ...]:
    """Copy what the shared store has, or had, and the catalog file lacks, and verify it."""
    from goldenctl.catalog.transfer import pull

    return pull(_shared(as_of), _file(catalog), lock_wait)


@twin
def store_status(*, last: Natural = 5, lock_wait: Seconds = 30.0) -> StoreStatus:
    """Versions, files, bytes and last writers of the shared store."""
    from goldenctl.catalog.upkeep import status

    return status(_shared(), last, lock_wait)


@twin
def store_compact(*, lock_wait: Seconds = 30.0) -> tuple[int, int]:
    """Merge small files of the shared store: how many there were, and how many there are."""
    from goldenctl.catalog.upkeep import compact

    return compact(_shared(), lock_wait)


@twin
def store_clean(older_than: Age, *, dry_run: bool = False, lock_wait: Seconds = 30.0) -> Cleaned:
    """Remove versions of the shared store older than an age (``30d``) or a moment, and files that no version has."""
    from goldenctl.catalog.upkeep import clean

    return clean(_shared(), limit(str(older_than)), dry_run=dry_run, wait=lock_wait)


def limit(text: str) -> datetime:
    """The moment that an age such as ``30d``, or a text in ISO 8601, names.

    Raises
    ------
    UsageError
        It names none.
    """
    from goldenctl.catalog.places import moment

    age = re.fullmatch(r"(\d{1,6})([mhdw])", text)
    try:
        return datetime.now(UTC) - timedelta(**{_UNITS[age[2]]: int(age[1])}) if age else moment(text)
    except (UsageError, OverflowError) as exc:
        raise UsageError(f"{text!r} is neither an age nor a moment", hint="30d, 12h, 2w, or 2026-05-01T08:00") from exc


@twin
def log(path: str, *, branch: str = "", metric: str = "", store: bool | None = None, as_of: AsOf = "") -> pl.DataFrame:
    """The revisions of goldens and what each changed; see :meth:`goldenctl.catalog.api.Catalog.log`."""
    from goldenctl.catalog.api import Catalog

    found = Catalog(place(store, as_of)).log(path, branch, metric)
    if metric and found.is_empty():
        need_metrics([path], [metric], place(store, as_of))
    return found


@twin
def blame(path: str, *, branch: str = "", store: bool | None = None, as_of: AsOf = "") -> pl.DataFrame:
    """Metric by metric the commit, sync and run of today's values."""
    from goldenctl.catalog.api import Catalog

    return Catalog(place(store, as_of)).blame(path, branch)


@twin
def drift(
    paths: Some = ("*",),
    *,
    metric: Words = (),
    branch: str = "",
    threshold: Share = 0.05,
    budget: Share | None = None,
    store: bool | None = None,
    as_of: AsOf = "",
) -> tuple[list[Change], list[Drift]]:
    """Lasting changes of each metric's level, and how far it has come since the first golden.

    With ``budget`` only the metrics that have come farther than this share.
    """
    from itertools import product

    from goldenctl.catalog.drift import drift as stage
    from goldenctl.catalog.store import reading

    changes: list[Change] = []
    drifts: list[Drift] = []
    catalog = place(store, as_of)
    with reading(catalog) as connection:
        for path, only in product(paths, metric or [""]):
            more = stage(connection, path, branch=branch, metric=only, threshold=threshold)
            changes += [c for c in more[0] if c not in changes]
            drifts += [d for d in more[1] if d not in drifts]
    need_metrics(paths, [m for m in metric if m not in {d.metric for d in drifts}], catalog)
    return changes, [d for d in drifts if budget is None or abs(d.rel_drift) > budget]


_METRICS = """SELECT DISTINCT s.metric FROM series AS s WHERE s.document IN (
    SELECT document FROM revision WHERE golden IN (SELECT unnest($goldens))
    UNION SELECT document FROM observation WHERE golden IN (SELECT unnest($goldens)))"""


def need_metrics(paths: Words, metrics: Words, catalog: Place) -> None:
    """Refuse a metric that none of these goldens ever had.

    Raises
    ------
    UsageError
        One is none; the nearest name is given.
    """
    if not metrics:
        return
    from goldenctl.catalog.log import goldens_named
    from goldenctl.catalog.store import reading
    from goldenctl.words import nearest

    with reading(catalog) as connection:
        goldens = sorted({g for path in paths for g in goldens_named(connection, path)})
        known = sorted(name for (name,) in connection.execute(_METRICS, {"goldens": goldens}).fetchall())
    for name in metrics:
        if name not in known:
            near = nearest(name, known, 0.0) if known else ""
            hint = f"did you mean {near!r}?" if near else "take a golden with metrics"
            raise UsageError(f"no golden in question has the metric {name!r}", hint=hint)
