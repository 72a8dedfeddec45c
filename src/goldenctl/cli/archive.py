"""``goldenctl archive``: keep a run's golden files after the CI has deleted them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from goldenctl.cli import options, output, progress
from goldenctl.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from goldenctl.archive import Archived
    from goldenctl.model import SourceProblem

COLUMNS = ("run", "manifest", "members", "stored", "bytes")


def command(
    from_job: options.FromJobs,
    to: Annotated[str, typer.Option("--to", metavar="DIR|s3://…", help="Where the archive is; by default the setting's.")] = "",
    attempt: options.Attempt = None,
    max_wait: options.MaxWait = 300.0,
    wait: options.Wait = False,
    form: options.Form = output.Format.TABLE,
) -> int:
    """Store the golden files of a run and a manifest, each once, under their digests.

    A later ``--from-job archive:DIR#RUN`` takes them when the CI has deleted its artifacts, and
    ``goldenctl restore GOLDEN --from archive:DIGEST`` one of them. Archiving a run twice, or side by side,
    changes nothing.

    Example: goldenctl archive --from-job github:34695381473 --to s3://team/goldens
    """
    from goldenctl import archive, config, sources
    from goldenctl.sources.objects import open_store

    settings = config.load(Path.cwd())
    if not (to or settings.archive_location):
        raise UsageError("name the archive", hint='--to DIR, or archive = "DIR" in the settings')
    store = open_store(to or settings.archive_location)
    rows: list[tuple[str, Archived]] = []
    problems: list[SourceProblem] = []
    with progress.shown("artifacts") as tell:
        cache = settings.cache_path
        fetching = sources.FetchOptions(attempt=attempt, max_wait=max_wait, wait=wait, cache=cache, on_progress=tell)
        for ref in from_job:
            source = sources.open_source(ref, settings, fetching)
            run = source.describe()
            fetched = list(source.fetch(run.artifacts))
            rows.append((run.ref, archive.store_run(store, run, fetched)))
            problems += [*run.problems, *(p for f in fetched for p in f.problems)]
    _print(rows, problems, form)
    if problems:
        return int(ExitCode.SOURCE)
    return int(ExitCode.OK if all(done.members for _, done in rows) else ExitCode.FINDINGS)


def _print(rows: list[tuple[str, Archived]], problems: list[SourceProblem], form: output.Format) -> None:
    for problem in problems:
        output.error(f"{problem.subject}: {problem.message}" + (f"\n  next: {problem.hint}" if problem.hint else ""))
    cells = [(ref, done.manifest, done.members, done.stored, done.size) for ref, done in rows]
    if form is output.Format.JSON:
        said = [{"subject": p.subject, "kind": p.kind, "message": p.message} for p in problems]
        output.json({"runs": [dict(zip(COLUMNS, row, strict=True)) for row in cells], "problems": said})
        return
    texts = [[str(cell) for cell in row] for row in cells]
    output.table(COLUMNS, texts, right=(2, 3, 4), form=form)
