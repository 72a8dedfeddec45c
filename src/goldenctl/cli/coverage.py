"""``goldenctl coverage``: the matrix of cases and platforms."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from goldenctl.cli import options, output
from goldenctl.cli.output import Format
from goldenctl.coverage import State
from goldenctl.errors import ExitCode

if TYPE_CHECKING:
    from goldenctl.coverage import Cell, Coverage

MARKS = {
    State.PRESENT: "ok",
    State.MISSING: "MISSING",
    State.ORPHANED: "orphan",
    State.UNKNOWN: "unknown",
    State.EXEMPT: "exempt",
    State.INACTIVE: "inactive",
    State.STALE: "stale",
}


def command(
    recipes: Annotated[
        list[str] | None,
        typer.Option(help="Glob of CI recipes from the top, Megatron-LM's without; may be repeated."),
    ] = None,
    case: options.Cases = None,
    platform: options.Platforms = None,
    state: Annotated[list[State] | None, typer.Option(help="Only goldens in this state; may be repeated.")] = None,
    stale_after: Annotated[int, typer.Option(min=0, help="Days a golden may be older than its newest sibling.")] = 30,
    format: options.Form = Format.TABLE,
) -> int:
    """Show which goldens are present, missing, orphaned, unknown, exempt, inactive or stale, per case and platform.

    Example: goldenctl coverage --recipes "tests/test_utils/recipes/**/*.yaml" --state missing
    """
    from goldenctl import collect, config
    from goldenctl import coverage as stage
    from goldenctl.api.goldens import last_runs, recipe_rows
    from goldenctl.git import Repo
    from goldenctl.selection import Selection

    settings = config.load(Path.cwd())
    settings.need_root()
    rows, notes = recipe_rows(settings, recipes or ())
    keys, unplaced = collect.golden_keys(settings)
    changed = stage.last_changes(Repo(settings.top), settings.root)
    ran, busy = last_runs(settings)
    found = stage.coverage(keys, settings, rows, changed=changed, ran=ran, stale_after=stale_after)
    selection = Selection(tuple(case or ()), tuple(platform or ()))
    selection.check([c.key for c in found.cells], {*settings.platforms, *(c.key.platform for c in found.cells)})
    cells = [c for c in found.cells if selection.takes(c.key) and (not state or c.state in state)]
    for note in (*busy, *notes, *found.notes, *(f"{p} does not fit the layout {settings.layout}" for p in unplaced)):
        output.note(note)
    _print(format, found, cells, recipes=bool(rows))
    return int(ExitCode.FINDINGS if any(c.state is State.MISSING for c in cells) else ExitCode.OK)


def _print(format: Format, found: Coverage, cells: Sequence[Cell], *, recipes: bool) -> None:
    if format is Format.JSON:
        output.json(as_json(found, cells))
        return
    columns, rows = _matrix(cells)
    if rows:
        output.table(columns, rows, form=format)
    notable = [f"{c.state.value}: {c.path}: {c.note}" for c in cells if c.note]
    notable += [f"near twins: {a} and {b}" for a, b in found.twins]
    counts = ", ".join(f"{n} {s.value}" for s in State if (n := sum(c.state is s for c in cells)))
    end = counts or "nothing to show"
    output.result("\n".join([*notable, end if recipes else f"{end}; without recipes nothing can be missing or orphaned"]))


def _matrix(cells: Sequence[Cell]) -> tuple[list[str], list[list[str]]]:
    lanes = sorted({(c.key.environment, c.key.platform) for c in cells})
    by_case: dict[str, dict[tuple[str, str], list[Cell]]] = defaultdict(lambda: defaultdict(list))
    for cell in cells:
        by_case[cell.key.case][cell.key.environment, cell.key.platform].append(cell)
    now = datetime.now(UTC)
    rows = [[case, *(_mark(found[lane], now) for lane in lanes)] for case, found in by_case.items()]
    return ["case", *("/".join(x for x in lane if x) or "no platform" for lane in lanes)], rows


def _mark(cells: Sequence[Cell], now: datetime) -> str:
    """State and age in days, the second phase behind a plus."""
    parts = []
    for cell in cells:
        age = cell.age(now)
        parts.append(MARKS[cell.state] + (f" {age} d" if age is not None else ""))
    return " + ".join(parts)


def as_json(found: Coverage, cells: Sequence[Cell]) -> dict[str, Any]:
    """The matrix as JSON values."""
    now = datetime.now(UTC)
    return {
        "cases": [
            {
                "case": c.key.case,
                "platform": c.key.platform,
                "environment": c.key.environment,
                "variant": c.key.variant,
                "state": c.state.value,
                "path": c.path,
                "note": c.note,
                "changed_at": c.changed_at.isoformat() if c.changed_at else None,
                "age_days": c.age(now),
                "last_run": c.last_run.isoformat() if c.last_run else None,
            }
            for c in cells
        ],
        "twins": [list(pair) for pair in found.twins],
        "notes": list(found.notes),
        "summary": {s.value: n for s in State if (n := sum(c.state is s for c in cells))},
    }
