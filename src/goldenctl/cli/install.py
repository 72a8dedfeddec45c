"""``goldenctl install``: make git treat golden files as whole."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from goldenctl.cli import output
from goldenctl.errors import ExitCode, UsageError


def command(
    merge_driver: Annotated[bool, typer.Option("--merge-driver", help="Never merge golden files line by line.")] = False,
    diff_driver: Annotated[bool, typer.Option("--diff-driver", help="Show golden files as tables in diffs.")] = False,
    policy: Annotated[
        str, typer.Option(help="Who wins when both sides changed a golden: ours, theirs, newest-producer or ask.")
    ] = "ask",
) -> int:
    """Install the git drivers for golden files, both unless one is named.

    Writes .gitattributes (commit it) and this clone's git configuration (each clone needs it once).

    Example: goldenctl install --merge-driver --policy newest-producer
    """
    from goldenctl import config
    from goldenctl.git import Repo, no_repository
    from goldenctl.sync import install
    from goldenctl.sync.driver import Policy

    try:
        chosen = Policy(policy)
    except ValueError as exc:
        raise UsageError(f"no policy {policy!r}", hint=f"use one of {', '.join(Policy)}") from exc
    settings = config.load(Path.cwd())
    repo = Repo(settings.top)
    if not repo.is_repo():
        raise no_repository(settings.top)
    settings.need_root()
    both = not (merge_driver or diff_driver)
    for sentence in install.install(repo, settings, merge=merge_driver or both, diff=diff_driver or both, policy=chosen):
        output.result(sentence)
    return int(ExitCode.OK)
