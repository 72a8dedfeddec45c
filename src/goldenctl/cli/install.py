"""``goldenctl install``: make git treat golden files as whole."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from goldenctl.cli import options, output
from goldenctl.errors import ExitCode
from goldenctl.sync.driver import Policy


def command(
    merge_driver: Annotated[bool, typer.Option("--merge-driver", help="Never merge golden files line by line.")] = False,
    diff_driver: Annotated[bool, typer.Option("--diff-driver", help="Show golden files as tables in diffs.")] = False,
    policy: Annotated[Policy, typer.Option(help="Who wins when both sides changed a golden.")] = Policy.ASK,
    form: options.Form = output.Format.TABLE,
) -> int:
    """Install the git drivers for golden files, both unless one is named.

    Writes .gitattributes (commit it) and this clone's git configuration (each clone needs it once).

    Example: goldenctl install --merge-driver --policy newest-producer
    """
    from goldenctl import config
    from goldenctl.git import Repo, no_repository
    from goldenctl.sync import install

    settings = config.load(Path.cwd())
    repo = Repo(settings.top)
    if not repo.is_repo():
        raise no_repository(settings.top)
    settings.need_root()
    both = not (merge_driver or diff_driver)
    done = install.install(repo, settings, merge=merge_driver or both, diff=diff_driver or both, policy=policy)
    output.listed("done", done, form)
    return int(ExitCode.OK)
