"""``goldenctl drift``: change points of metrics and how far they have come."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from goldenctl.cli import options, output
from goldenctl.cli.log import named
from goldenctl.errors import ExitCode

if TYPE_CHECKING:
    from goldenctl.catalog.drift import Change, Drift

CHANGES = ("path", "metric", "from", "to", "direction", "change")
DRIFTS = ("path", "metric", "points", "drift")


def command(
    paths: Annotated[list[str] | None, typer.Argument(help="Golden paths, cases or globs; all without any.")] = None,
    metric: options.Metrics = None,
    branch: options.Branch = "",
    threshold: options.Threshold = 0.05,
    budget: Annotated[
        float | None,
        typer.Option("--budget", help="Drift since the first golden allowed before the command ends in 1.", min=0.0),
    ] = None,
    store: options.Store = None,
    as_of: options.AsOf = "",
    format: options.Form = output.Format.TABLE,
) -> int:
    """Find lasting changes of each metric's level over revisions and recorded runs, and the drift since the first golden.

    Example: goldenctl drift "moe/*" --metric "lm loss" --budget 0.1
    """
    from goldenctl import api, config

    settings = config.load(Path.cwd())
    changes, drifts = api.drift(
        [named(path, settings) for path in paths or ["*"]],
        metric=metric or (),
        branch=branch,
        threshold=threshold,
        store=store,
        as_of=as_of,
    )
    over = [d for d in drifts if budget is not None and abs(d.rel_drift) > budget]
    if format is output.Format.JSON:
        output.json({"changes": [_change(c) for c in changes], "drift": [_drift(d, over) for d in drifts]})
    else:
        _print(changes, over, budget, format)
    return ExitCode.FINDINGS if over else ExitCode.OK


def _change(change: Change) -> dict[str, object]:
    return {
        "path": change.path,
        "metric": change.metric,
        "from": change.before,
        "to": change.after,
        "commit": change.commit,
        "direction": change.direction,
        "rel_change": change.rel_change,
    }


def _drift(drift: Drift, over: list[Drift]) -> dict[str, object]:
    return {
        "path": drift.path,
        "metric": drift.metric,
        "points": drift.points,
        "rel_drift": drift.rel_drift,
        "over_budget": drift in over,
    }


def _print(changes: list[Change], over: list[Drift], budget: float | None, format: output.Format) -> None:
    rows = [(c.path, c.metric, c.before[:24], c.after[:24], c.direction, f"{c.rel_change:+.2%}") for c in changes]
    far = [(d.path, d.metric, str(d.points), f"{d.rel_drift:+.2%}") for d in over]
    if format is output.Format.MARKDOWN:
        output.result(output.markdown(CHANGES, rows, right=(5,)))
        if far:
            output.result(output.markdown(DRIFTS, far, right=(2, 3)))
        return
    output.table(CHANGES, rows, right=(5,), title=f"{len(rows)} lasting changes")
    if budget is not None:
        output.table(DRIFTS, far, right=(2, 3), title=f"{len(far)} metrics beyond the budget of {budget:.2%}")
