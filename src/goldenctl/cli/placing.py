"""Options that say which catalog a command means: a file, or the team's store as it is or was."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from goldenctl.errors import UsageError

if TYPE_CHECKING:
    from goldenctl.catalog.places import Place
    from goldenctl.config import Settings

StoreOption = Annotated[bool, typer.Option("--store", help="The shared store of the settings instead of the catalog file.")]
AsOfOption = Annotated[
    str,
    typer.Option("--as-of", help="The shared store as it was: a version, or a moment in ISO 8601 (UTC).", show_default=False),
]


def place(settings: Settings, *, catalog: Path | None = None, store: bool = False, as_of: str = "") -> Place:
    """The catalog that options name; ``as_of`` means the store, because a file keeps no versions.

    Raises
    ------
    UsageError
        A file and the store are both named.
    ConfigError
        The settings name no store.
    """
    if not store and not as_of:
        return catalog.absolute() if catalog else settings.catalog_path
    if catalog:
        raise UsageError("--catalog names a file, and --store and --as-of the shared store", hint="leave one of them out")
    from goldenctl.catalog.places import shared

    return shared(settings, as_of)
