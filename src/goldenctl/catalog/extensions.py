"""DuckDB's extensions for a lake: from wheels, because clusters have no internet, else by DuckDB's own INSTALL."""

from __future__ import annotations

import importlib.util
from contextlib import suppress
from pathlib import Path

import duckdb

from goldenctl.errors import CatalogError


def bundled(names: tuple[str, ...]) -> bool:
    """Whether wheels of this duckdb's version hold all of these extensions."""
    return all(_file(name).is_file() for name in names)


def load(connection: duckdb.DuckDBPyConnection, names: tuple[str, ...]) -> None:
    """Load extensions into a connection.

    Raises
    ------
    CatalogError
        One is neither installed in the version of this duckdb nor to be had.
    """
    for name in names:
        try:
            _load(connection, name)
        except duckdb.Error as exc:
            raise _misfit(name) from exc


def _load(connection: duckdb.DuckDBPyConnection, name: str) -> None:
    file = _file(name)
    if file.is_file():
        connection.execute(f"LOAD '{_quoted(file)}'")
        return
    try:
        connection.execute(f"LOAD {name}")
    except duckdb.Error:
        connection.execute(f"INSTALL {name}")
        connection.execute(f"LOAD {name}")


def _file(name: str) -> Path:
    return _folder(name) / f"v{duckdb.__version__}" / f"{name}.duckdb_extension"


def _folder(name: str) -> Path:
    """Folder of the wheel's versions; one that does not exist when there is no wheel."""
    with suppress(ModuleNotFoundError):
        spec = importlib.util.find_spec(f"duckdb_extension_{name}")
        if spec is not None and spec.origin is not None:
            return Path(spec.origin).parent / "extensions"
    return Path("/nonexistent")


def _misfit(name: str) -> CatalogError:
    wheel = f"duckdb-extension-{name.replace('_', '-')}"
    there = ", ".join(sorted(p.name.lstrip("v") for p in _folder(name).glob("v*")))
    have = f"the wheel {wheel} is for duckdb {there}" if there else f"the wheel {wheel} is not installed"
    fitting = max(there.split(", ") if there else [duckdb.__version__], key=_numbers)
    return CatalogError(
        f"DuckDB's extension {name} cannot be loaded: {have}, and this is duckdb {duckdb.__version__}",
        hint=f"pip install 'goldenctl[store]' 'duckdb=={fitting}'",
    )


def _numbers(version: str) -> list[int]:
    return [int(part) for part in version.split(".") if part.isdecimal()]


def _quoted(path: Path) -> str:
    return str(path).replace("'", "''")
