"""Options that say which catalog a command means: a file, or the team's store as it is or was."""

from __future__ import annotations

from typing import Annotated

import typer

StoreOption = Annotated[
    bool | None,
    typer.Option(
        "--store/--no-store", help="The shared store of the settings instead of the catalog file.", show_default=False
    ),
]
AsOfOption = Annotated[
    str,
    typer.Option("--as-of", help="The shared store as it was: a version, or a moment in ISO 8601 (UTC).", show_default=False),
]
