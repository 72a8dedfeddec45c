"""``goldenctl record``: keep what a run produced, without touching a golden."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from goldenctl.cli import output
from goldenctl.errors import ExitCode

if TYPE_CHECKING:
    from goldenctl.candidates import Known, Placed
    from goldenctl.config import Settings
    from goldenctl.model import Run


def command(
    from_job: Annotated[list[str], typer.Option("--from-job", help="Run reference; may be given several times.")],
    format_: Annotated[output.Format, typer.Option("--format")] = output.Format.TABLE,
) -> int:
    """Store a run's observed values in the catalog without touching files.

    Example: goldenctl record --from-job github:34695381473
    """
    from goldenctl import config
    from goldenctl.catalog import record_run

    settings = config.load(Path.cwd())
    known, complete, rows = _known(settings), True, []
    for ref in from_job:
        run, placed, problems = _collect(ref, settings, known)
        replicates = [c for group in placed.replicates.values() for c in group]
        new = record_run(settings.catalog_path, run, [*placed.candidates, *replicates])
        for text in problems:
            output.note(text)
        complete = complete and not problems
        rows.append((run.ref, len(placed.candidates), new, len(placed.unplaced)))
    _print(rows, format_)
    return ExitCode.OK if complete else ExitCode.SOURCE


def _collect(ref: str, settings: Settings, known: Known) -> tuple[Run, Placed, list[str]]:
    """A run, its candidates, and what it could not deliver."""
    from goldenctl import candidates, sources

    source = sources.open_source(ref, settings)
    run = source.describe()
    fetched = list(source.fetch(run.artifacts))
    placed = candidates.resolve(run, fetched, known)
    for member in placed.unplaced:
        output.note(f"{member.member}: {member.reason}")
    problems = [*run.problems, *(p for item in fetched for p in item.problems)]
    return run, placed, [f"{p.subject}: {p.message}" for p in problems]


def _known(settings: Settings) -> Known:
    from goldenctl.candidates import Known

    root, top = settings.root_path, settings.top
    paths = frozenset(p.relative_to(top).as_posix() for p in root.rglob("*.json"))
    return Known(settings, paths, frozenset(p.relative_to(root).as_posix() for p in root.glob("*/*") if p.is_dir()))


def _print(rows: list[tuple[str, int, int, int]], format_: output.Format) -> None:
    names = ("run", "candidates", "new_observations", "unplaced")
    if format_ is output.Format.JSON:
        output.json({"runs": [dict(zip(names, row, strict=True)) for row in rows]})
        return
    cells = [[str(cell) for cell in row] for row in rows]
    if format_ is output.Format.MARKDOWN:
        output.result(output.markdown(names, cells, right=(1, 2, 3)))
    else:
        output.table(names, cells, right=(1, 2, 3))
