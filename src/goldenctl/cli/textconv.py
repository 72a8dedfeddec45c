"""``goldenctl textconv``: what git starts to show a golden file in a diff."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from goldenctl.cli import showing


def command(file: Annotated[Path, typer.Argument(help="File with a golden's content.")]) -> int:
    """Show a golden as one line a metric: grid, first, last, min, max, NaN count.

    Installed by `goldenctl install --diff-driver`; `git diff --no-textconv` shows the JSON itself.

    Example: goldenctl textconv goldens/gpt/gpt3_mcore_te_tp2_pp2/golden_values_dev_dgx_h100.json
    """
    return showing.table(str(file))
