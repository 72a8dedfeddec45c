"""The option parser: finds the command's module and loads only that."""

from __future__ import annotations

import importlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from typer._click.exceptions import ClickException

from goldenctl.cli import output, recovery
from goldenctl.errors import ExitCode, UsageError
from goldenctl.version import __version__
from goldenctl.words import nearest

COMMANDS: tuple[str, ...] = (
    "lint",
    "refresh",
    "verify",
    "diff",
    "check",
    "triage",
    "tolerance",
    "capture",
    "review",
    "gate-audit",
    "coverage",
    "catalog",
    "log",
    "blame",
    "drift",
    "sync",
    "restore",
    "record",
    "archive",
    "report",
    "install",
    "store",
    "merge-driver",
    "textconv",
)
"""Names in the order of ``--help``; module ``goldenctl.cli.{name}`` holds ``command`` or a group ``app``."""


def run(args: list[str]) -> int:
    """Parse and run one command line; errors a user can cause are raised."""
    wanted = _command_of(args)
    app = build([wanted] if wanted in COMMANDS else COMMANDS)
    try:
        result = app(args, standalone_mode=False, prog_name="goldenctl")
    except typer.Abort as exc:
        raise KeyboardInterrupt from exc
    except ClickException as exc:
        message = exc.format_message()
        if wanted and wanted not in COMMANDS and "Did you mean" not in message:
            message += _nearest(wanted)
        command = f"goldenctl {wanted}" if wanted in COMMANDS else "goldenctl"
        output.error(f"{message}\n  next: {command} --help")
        return int(ExitCode.USAGE)
    if result == ExitCode.INTERRUPTED:
        raise KeyboardInterrupt  # the parser has caught it and said nothing
    return result if isinstance(result, int) else int(ExitCode.OK)


def _command_of(args: list[str]) -> str:
    """The first argument that is no option; ``-C DIR`` takes the next one with it."""
    skip = False
    for arg in args:
        if skip or arg.startswith("-"):
            skip = arg in ("-C", "--directory")
            continue
        return arg
    return ""


def _nearest(word: str) -> str:
    near = nearest(word, COMMANDS)
    return f" Did you mean {near!r}?" if near else ""


def build(names: Sequence[str]) -> typer.Typer:
    """The typer application with these commands."""
    app = typer.Typer(
        name="goldenctl", no_args_is_help=True, pretty_exceptions_enable=False, rich_markup_mode=None, add_completion=True
    )
    app.callback()(_options)
    for name in names:
        module = importlib.import_module(f"goldenctl.cli.{name.replace('-', '_')}")
        if hasattr(module, "app"):
            app.add_typer(module.app, name=name)
        else:
            app.command(name)(module.command)
    return app


def _version(value: bool) -> None:
    if value:
        typer.echo(f"goldenctl {__version__}")
        raise typer.Exit


def _options(
    directory: Annotated[
        Path | None, typer.Option("-C", "--directory", help="Work as if started in this folder.", show_default=False)
    ] = None,
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")] = False,
) -> None:
    """Keep golden metric files true: lint them, refresh them from CI, compare syncs, know their history.

    Example: goldenctl refresh --from-job github:34695381473 --only nonfinite --match sync:2026-04-28
    """
    if directory is not None:
        try:
            os.chdir(directory)
        except OSError as exc:
            raise UsageError(f"cannot work in {directory}: {exc.strerror}") from exc
    recovery.settle()
