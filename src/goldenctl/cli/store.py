"""``goldenctl store``: the catalog a team shares."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from goldenctl.cli import options, output
from goldenctl.errors import ExitCode

if TYPE_CHECKING:
    from collections.abc import Sequence

    from goldenctl.catalog.places import Lake
    from goldenctl.catalog.transfer import Moved
    from goldenctl.catalog.upkeep import StoreStatus

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="The shared catalog: push, pull, status, compact, clean.")


def _shared(as_of: str = "") -> Lake:
    from goldenctl import config
    from goldenctl.catalog.places import shared

    return shared(config.load(Path.cwd()), as_of)


def _file(catalog: Path | None) -> Path:
    from goldenctl import config

    return catalog.absolute() if catalog else config.load(Path.cwd()).catalog_path


@app.command()
def push(catalog: options.Catalog = None, wait: options.LockWait = 30.0, format: options.Form = output.Format.TABLE) -> int:
    """Copy what the catalog file has and the store lacks, and verify it; a stopped push keeps what has arrived.

    Example: goldenctl store push
    """
    from goldenctl.catalog.transfer import push

    lake = _shared()
    return _moved(push(_file(catalog), lake, wait), str(lake), format)


@app.command()
def pull(
    catalog: options.Catalog = None,
    as_of: options.AsOf = "",
    wait: options.LockWait = 30.0,
    format: options.Form = output.Format.TABLE,
) -> int:
    """Copy what the store has and the catalog file lacks, for use without a network, and verify it.

    Example: goldenctl store pull --catalog offline.duckdb
    """
    from goldenctl.catalog.transfer import pull

    path = _file(catalog)
    return _moved(pull(_shared(as_of), path, wait), str(path), format)


def _moved(moved: tuple[Moved, ...], target: str, format: output.Format) -> int:
    if format is output.Format.JSON:
        output.json({"target": target, "tables": {m.table: {"rows": m.rows, "new": m.new} for m in moved}})
        return ExitCode.OK
    rows = [(m.table, f"{m.new:,}", f"{m.rows:,}") for m in moved]
    names = ("table", "new", "verified")
    output.table(names, rows, right=(1, 2), title=target, form=format)
    return ExitCode.OK


@app.command()
def status(
    last: Annotated[int, typer.Option("--last", help="Versions to show.", min=0)] = 5,
    wait: options.LockWait = 30.0,
    format: options.Form = output.Format.TABLE,
) -> int:
    """Say what the store holds: versions, files, bytes, and who wrote last.

    Example: goldenctl store status
    """
    from goldenctl.catalog.upkeep import status

    found = status(_shared(), last, wait)
    if format is output.Format.JSON:
        output.json(asdict(found) | {"files": found.files, "size": found.size})
        return ExitCode.OK
    written = [(str(v.id), f"{v.at:%Y-%m-%d %H:%M:%S}", v.author, f"{v.waited:.2f}", v.message) for v in found.last]
    tables = [(t.table, f"{t.files:,}", f"{t.delete_files:,}", f"{t.size:,}") for t in found.tables if t.files]
    _print_status(found, tables, written, format)
    return ExitCode.OK


def _print_status(
    found: StoreStatus, tables: Sequence[Sequence[str]], written: Sequence[Sequence[str]], format: output.Format
) -> None:
    output.result(
        f"{found.metadata}: {found.observations:,} observations, version {found.current}, {found.versions:,} kept\n"
        f"{found.data}: {found.files:,} files, {found.size:,} bytes\n"
        f"{found.waited:,} of these versions waited for another writer, {found.longest_wait:.2f} s at most"
    )
    for names, rows, right in (
        (("table", "files", "deletions", "bytes"), tables, (1, 2, 3)),
        (("version", "written (UTC)", "by", "waited s", "what"), written, (0, 3)),
    ):
        output.table(names, rows, right=right, form=format)


@app.command()
def compact(wait: options.LockWait = 30.0, format: options.Form = output.Format.TABLE) -> int:
    """Merge small files; the replaced ones stay for readers of old versions until store clean.

    Example: goldenctl store compact
    """
    from goldenctl.catalog.upkeep import compact

    before, after = compact(_shared(), wait)
    if format is output.Format.JSON:
        output.json({"files_before": before, "files_after": after})
    else:
        output.result(f"{before:,} files before, {after:,} after")
    return ExitCode.OK


@app.command()
def clean(
    older_than: Annotated[str, typer.Option("--older-than", help="Age such as 30d, 12h or 2w, or a moment in ISO 8601.")],
    dry_run: options.DryRun = False,
    wait: options.LockWait = 30.0,
    format: options.Form = output.Format.TABLE,
) -> int:
    """Remove old versions, the files they alone needed, and files a killed writer left behind.

    Example: goldenctl store clean --older-than 30d
    """
    from goldenctl.api.catalogs import limit
    from goldenctl.catalog.upkeep import clean

    done = clean(_shared(), limit(older_than), dry_run=dry_run, wait=wait)
    if format is output.Format.JSON:
        output.json(asdict(done))
        return ExitCode.OK
    would = "would go" if dry_run else "removed"
    output.result(f"{done.versions:,} versions, {len(done.old_files):,} old files, {len(done.orphans):,} orphans {would}")
    for file in done.orphans:
        output.result(f"orphan {file}")
    return ExitCode.OK
