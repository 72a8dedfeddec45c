"""``goldenctl tolerance``: tolerances from repeated runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from goldenctl.cli import options, output
from goldenctl.cli.output import Format
from goldenctl.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from goldenctl.repeats import Repeat
    from goldenctl.tolerance import Proposal

COLUMNS = ("golden", "metric", "runs", "spread", "propose", "false alarms", "held out", "catches", "catches late", "remark")
RIGHT = (2, 3, 5, 6, 7, 8)


def command(
    more: Annotated[list[str] | None, typer.Argument(help="More runs.", show_default=False)] = None,
    from_runs: Annotated[
        list[str] | None,
        typer.Option(
            "--from-runs",
            help="Runs: log folders, folders of them, golden documents, run references, catalog:RUN; may be repeated.",
        ),
    ] = None,
    alpha: Annotated[float, typer.Option(help="Largest share of sound runs that may fail, as predicted.")] = 0.01,
    metric: options.Metrics = None,
    scope: Annotated[str, typer.Option("--for", help="Glob of golden paths below root the settings shall hold for.")] = "",
    format: options.Form = Format.TABLE,
) -> int:
    """Propose tolerances from repeated runs, with the false alarms they cause and the smallest change they catch.

    Example: goldenctl tolerance --from-runs runs/1 runs/2 runs/3 runs/4 runs/5 --alpha 0.01 --for "moe/tiny/*"
    """
    from goldenctl import config, repeats
    from goldenctl import tolerance as stage

    words = [*(from_runs or ()), *(more or ())]
    if not words:
        raise UsageError("no runs given", hint="goldenctl tolerance --from-runs A B C")
    if not 0 < alpha < 1:
        raise UsageError(f"--alpha must lie between 0 and 1, not {alpha}", hint="--alpha 0.01")
    settings = config.load(Path.cwd())
    runs = repeats.open_repeats(words, settings, tuple(metric or ()))
    proposals = stage.propose([r.sample for r in runs], alpha, settings.tolerance_for)
    block = stage.settings_block(proposals, scope, settings.root)
    _print(format, runs, proposals, block, alpha)
    return int(ExitCode.OK if proposals and not any(p.problem for p in proposals) else ExitCode.FINDINGS)


def _print(format: Format, runs: Sequence[Repeat], proposals: Sequence[Proposal], block: str, alpha: float) -> None:
    if format is Format.JSON:
        metrics = [asdict(p) | {"warning": p.warning} for p in proposals]
        output.json({"runs": [r.name for r in runs], "alpha": alpha, "metrics": metrics, "settings": block})
        return
    rows = [_cells(p) for p in proposals]
    if format is Format.MARKDOWN:
        output.result(output.markdown(COLUMNS, rows, right=RIGHT) + f"\n```toml\n{block}```\n")
        return
    if rows:
        output.table(COLUMNS, rows, right=RIGHT)
    output.result(block)


def _cells(p: Proposal) -> list[str]:
    head = [p.path or "-", p.metric, str(p.n_runs)]
    if p.problem:
        return [*head, "", "none", "", "", "", "", p.problem]
    if p.exact:
        rate = f"bit-identical; up to {p.undetected_rate or 0:.0%} of runs may deviate unseen (95 % confidence)"
        return [*head, "0", "exact", "", "", "any", "any", rate]
    size = f"rtol {p.rtol:g}" + (f" + atol {p.atol:g}" if p.atol else "") + (" of the median" if p.window == "median" else "")
    caught = [f"{c * 100:.3g} %" if c is not None else "nothing" for c in (p.catches, p.catches_late)]
    alarm = f"{p.false_alarm or 0:.2g}"
    return [*head, f"{p.spread or 0:.2g}", size, alarm, f"{p.held_out_failed}/{p.n_runs}", *caught, p.warning]
