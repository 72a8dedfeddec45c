"""``goldenctl merge-driver``: what git starts to merge a golden file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from goldenctl.cli import output
from goldenctl.errors import ExitCode, RepoError
from goldenctl.sync.driver import Policy


def command(
    base: Annotated[Path, typer.Argument(help="%O: file with the common ancestor's content.")],
    ours: Annotated[Path, typer.Argument(help="%A: file with our content; the result goes here.")],
    theirs: Annotated[Path, typer.Argument(help="%B: file with their content.")],
    path: Annotated[str, typer.Argument(help="%P: the golden's path in the repository.")],
    policy: Annotated[
        Policy | None, typer.Option(help="Who wins when both sides changed a golden.", show_default="as .gitattributes says")
    ] = None,
) -> int:
    """Merge a golden file for git: one side wins whole, or the merge stops and says who made each side.

    Installed by `goldenctl install --merge-driver`; exit code 1 means conflict.

    Example: git config merge.goldenctl.driver 'goldenctl merge-driver %O %A %B %P'
    """
    from goldenctl.config import find_top
    from goldenctl.git import Repo
    from goldenctl.sync import driver

    try:
        verdict = driver.merge(Repo(find_top(Path.cwd())), path, policy, base, ours, theirs)
    except OSError as exc:
        raise RepoError(f"{exc.strerror}", place=str(exc.filename)) from exc
    if verdict.message:
        output.note(verdict.message)
    return int(ExitCode.FINDINGS if verdict.conflict else ExitCode.OK)
