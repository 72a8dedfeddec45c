"""Keep golden metric files of large training codebases true."""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import TYPE_CHECKING

from goldenctl.version import __version__

if TYPE_CHECKING:
    from pathlib import Path

    from goldenctl import api as api
    from goldenctl.catalog.api import Catalog

__all__ = ["__version__", "api", "open_catalog"]


def __getattr__(name: str) -> ModuleType:
    """``goldenctl.api``, loaded when it is asked for."""
    if name == "api":
        return importlib.import_module("goldenctl.api")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def open_catalog(path: Path | str | None = None, *, store: bool | str = False, as_of: str | int = "") -> Catalog:
    """The catalog as a Python object whose methods return Polars frames.

    Parameters
    ----------
    path
        The DuckDB file; None means the one of the repository around the current folder.
    store
        True means the shared store of the settings, a text the metadata of another: ``postgres://…`` or a file.
    as_of
        A version or a moment (ISO 8601, UTC without a zone) of the shared store; empty means the newest.

    Raises
    ------
    CatalogError
        There is no such file or store, or it cannot be read.
    ConfigError
        The settings name no store.
    UsageError
        The store had no such version.

    Examples
    --------
    >>> catalog = goldenctl.open_catalog()  # doctest: +SKIP
    >>> catalog.values("moe/gpt3_mcore_te_tp2_pp2", metric="lm loss")  # doctest: +SKIP
    """
    from goldenctl.catalog import api

    return api.open_catalog(path, store=store, as_of=as_of)
