"""``goldenctl catalog``: fill, ask and copy the catalog."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from goldenctl.cli import filling, options, output
from goldenctl.errors import ExitCode

if TYPE_CHECKING:
    import polars as pl

    from goldenctl.catalog.places import Place
    from goldenctl.catalog.query import Status

app = typer.Typer(
    no_args_is_help=True, rich_markup_mode=None, help="The catalog of goldens: build, update, status, SQL, export."
)


class SqlFormat(StrEnum):
    """How the rows of a query are printed."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"


def _place(catalog: Path | None, store: bool | None, as_of: str = "") -> Place:
    from goldenctl import config
    from goldenctl.catalog.places import chosen

    if catalog and not store and not as_of:
        return catalog.absolute()
    return chosen(config.load(Path.cwd()), catalog=catalog, store=store, as_of=as_of)


BranchOption = Annotated[
    list[str] | None,
    typer.Option(
        "--branch",
        metavar="B",
        help="Branch whose commits are read; may be repeated.",
        show_default="those of the sync settings",
    ),
]


@app.command()
def build(
    branch: BranchOption = None,
    catalog: options.Catalog = None,
    wait: options.LockWait = 30.0,
    store: options.Store = None,
    format: options.Form = output.Format.TABLE,
) -> int:
    """Fill the catalog from git history; a build that was stopped keeps the portions it has stored.

    Example: goldenctl catalog build
    """
    return filling.fill(
        new_only=False, branches=branch or (), catalog=catalog, store=store, wait=wait, as_json=format is output.Format.JSON
    )


@app.command()
def update(
    branch: BranchOption = None,
    catalog: options.Catalog = None,
    wait: options.LockWait = 30.0,
    store: options.Store = None,
    format: options.Form = output.Format.TABLE,
) -> int:
    """Take in what is new in git since the last build.

    Example: goldenctl catalog update
    """
    return filling.fill(
        new_only=True, branches=branch or (), catalog=catalog, store=store, wait=wait, as_json=format is output.Format.JSON
    )


@app.command()
def status(
    catalog: options.Catalog = None,
    wait: options.LockWait = 30.0,
    store: options.Store = None,
    as_of: options.AsOf = "",
    format: options.Form = output.Format.TABLE,
) -> int:
    """Say what the catalog holds.

    Example: goldenctl catalog status
    """
    from goldenctl.catalog.query import status

    found = status(_place(catalog, store, as_of), wait)
    if format is output.Format.JSON:
        output.json(_status_json(found))
        return ExitCode.OK
    rows = [(table, f"{count:,}") for table, count in found.rows.items()]
    if format is output.Format.MARKDOWN:
        output.result(output.markdown(("table", "rows"), rows, right=(1,)))
    else:
        output.result(f"{found.path}: {found.size:,} bytes, schema version {found.schema_version}")
        output.table(("table", "rows"), rows, right=(1,))
        for branch, tip in found.branches.items():
            output.result(f"{branch} is read to {tip[:12]}")
    return ExitCode.OK


def _status_json(found: Status) -> dict[str, Any]:
    names = ("path", "size", "schema_version", "rows", "branches")
    return {name: getattr(found, name) for name in names}


@app.command()
def sql(
    query: Annotated[str, typer.Argument(help="One SQL query; it can only read.")],
    catalog: options.Catalog = None,
    wait: options.LockWait = 30.0,
    store: options.Store = None,
    as_of: options.AsOf = "",
    format: Annotated[SqlFormat, typer.Option("--format", help="How to print.")] = SqlFormat.TABLE,
) -> int:
    """Ask the catalog in DuckDB's SQL, read only, without access to files and network.

    Example: goldenctl catalog sql "SELECT path, n_nan FROM series JOIN revision USING (document) WHERE n_nan > 0 LIMIT 5"
    """
    from goldenctl.catalog.query import sql

    rows = sql(_place(catalog, store, as_of), query, wait, flat=format is SqlFormat.CSV)
    if format is SqlFormat.JSON:
        output.json(rows.to_dicts())
    elif format is SqlFormat.CSV:
        output.result(rows.write_csv() if rows.width else "")
    elif rows.width:
        _table(rows)
    return ExitCode.OK


def _table(rows: pl.DataFrame) -> None:
    right = [i for i, kind in enumerate(rows.dtypes) if kind.is_numeric()]
    cells = [["" if cell is None else str(cell) for cell in row] for row in rows.iter_rows()]
    output.table(rows.columns, cells, right=right)


@app.command()
def export(
    to: Annotated[Path, typer.Option("--to", help="Folder for one Parquet file a table.")],
    catalog: options.Catalog = None,
    wait: options.LockWait = 30.0,
    store: options.Store = None,
    as_of: options.AsOf = "",
    form: options.Form = output.Format.TABLE,
) -> int:
    """Copy every table into Parquet files.

    Example: goldenctl catalog export --to parquet/
    """
    from goldenctl.catalog.query import export

    written = export(_place(catalog, store, as_of), to, wait)
    output.listed("files", [str(path) for path in written], form)
    return ExitCode.OK
