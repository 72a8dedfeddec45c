"""``goldenctl record``: keep what a run produced, without touching a golden."""

from __future__ import annotations

from goldenctl.cli import options, output
from goldenctl.errors import ExitCode


def command(
    from_job: options.FromJobs,
    attempt: options.Attempt = None,
    max_wait: options.MaxWait = 300.0,
    wait: options.Wait = False,
    store: options.Store = None,
    lock_wait: options.LockWait = 30.0,
    format: options.Form = output.Format.TABLE,
) -> int:
    """Store a run's observed values in the catalog without touching files.

    Exit code 1 when a file of the run could not be placed; each is named with its reason.

    Example: goldenctl record --from-job github:34695381473
    """
    from goldenctl import api

    complete, rows = True, []
    for ref in from_job:
        done = api.record(ref, attempt=attempt, max_wait=max_wait, wait=wait, store=store, lock_wait=lock_wait)
        found, placed = done.collected, done.collected.placed
        for problem in found.problems:
            output.note(f"{problem.subject}: {problem.message}")
        for member in placed.unplaced:
            output.note(f"{member.member}: {member.reason}")
        complete = complete and not found.problems
        rows.append((found.run.ref, len(placed.candidates), done.new, len(placed.unplaced)))
    _print(rows, format)
    if not complete:
        return ExitCode.SOURCE
    return ExitCode.FINDINGS if any(unplaced for *_, unplaced in rows) else ExitCode.OK


def _print(rows: list[tuple[str, int, int, int]], format: output.Format) -> None:
    names = ("run", "candidates", "new_observations", "unplaced")
    if format is output.Format.JSON:
        output.json({"runs": [dict(zip(names, row, strict=True)) for row in rows]})
        return
    cells = [[str(cell) for cell in row] for row in rows]
    output.table(names, cells, right=(1, 2, 3), form=format)
