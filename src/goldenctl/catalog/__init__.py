"""The catalog: golden files, their revisions, syncs, runs, artifacts and refreshes in one DuckDB file.

Names are loaded when they are asked for: the package itself imports neither duckdb nor polars.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from goldenctl.catalog.query import export, sql, status
    from goldenctl.catalog.record import record_refresh, record_run

__all__ = ["export", "record_refresh", "record_run", "sql", "status"]
_HOME = {
    "export": "query",
    "record_refresh": "record",
    "record_run": "record",
    "sql": "query",
    "status": "query",
}


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(importlib.import_module(f"goldenctl.catalog.{_HOME[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
