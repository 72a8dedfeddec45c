"""The options that several commands share: one name, one meaning, one text."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from goldenctl.cli import completing, output


class Level(StrEnum):
    """The match levels that can be required."""

    IDENTICAL = "identical"
    EQUAL = "equal"
    CLOSE = "close"


_FROM_JOB = "Run: a URL, github:N, gitlab:N, s3://BUCKET/PREFIX, mlflow:ID, a folder or a .zip"
_METRIC = "Only this metric"
_BRANCH = "Branch whose first parents are followed; downstream's by default"

Form = Annotated[output.Format, typer.Option("--format", help="How to print.")]

FromJob = Annotated[str, typer.Option("--from-job", metavar="REF", help=f"{_FROM_JOB}.")]
FromJobs = Annotated[list[str], typer.Option("--from-job", metavar="REF", help=f"{_FROM_JOB}; may be repeated.")]
Attempt = Annotated[int | None, typer.Option("--attempt", min=1, help="Attempt of the run; each job's newest without it.")]
MaxWait = Annotated[float, typer.Option("--max-wait", min=0.0, help="Longest wait for a rate limit, in seconds.")]
Wait = Annotated[bool, typer.Option("--wait", help="Wait for a run that is still in progress.")]

Cases = Annotated[
    list[str] | None,
    typer.Option(
        "--case",
        metavar="GLOB",
        help="Only cases (model/test_case) that match; may be repeated.",
        autocompletion=completing.cases,
    ),
]
Platforms = Annotated[
    list[str] | None,
    typer.Option("--platform", metavar="P", help="Only this platform; may be repeated.", autocompletion=completing.platforms),
]
Metric = Annotated[str, typer.Option("--metric", metavar="M", help=f"{_METRIC}.", autocompletion=completing.metrics)]
Metrics = Annotated[
    list[str] | None,
    typer.Option("--metric", metavar="M", help=f"{_METRIC}; may be repeated.", autocompletion=completing.metrics),
]
Threshold = Annotated[
    float, typer.Option("--threshold", min=0.0, help="Smallest relative difference that is shown, 0.05 is 5 %.")
]
TrainIters = Annotated[
    int | None, typer.Option("--train-iters", min=1, help="Last step of the run; as its configuration or logs say without.")
]

Branch = Annotated[
    str, typer.Option("--branch", metavar="B", help=f"{_BRANCH}.", show_default=False, autocompletion=completing.revisions)
]
Require = Annotated[
    Level | None, typer.Option("--require", help="What matches a revision less well than this is not in order.")
]
Allow = Annotated[
    list[str] | None,
    typer.Option("--allow", metavar="RULE:METRIC", help="Admit content with this finding; may be repeated."),
]
Fix = Annotated[bool, typer.Option("--fix", help="Make lint's mechanical repairs, which lose no information.")]
Force = Annotated[bool, typer.Option("--force", help="Write over uncommitted changes and over files with other content.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Say what would be done and change nothing.")]
Yes = Annotated[bool, typer.Option("--yes", help="Write without asking.")]
Commit = Annotated[bool, typer.Option("--commit", help="Commit what was written, with its origin in trailers.")]
Catalog = Annotated[
    Path | None, typer.Option("--catalog", metavar="FILE", help="Catalog instead of that of the settings.", show_default=False)
]
Store = Annotated[
    bool | None,
    typer.Option(
        "--store/--no-store", help="The shared store of the settings instead of the catalog file.", show_default=False
    ),
]
AsOf = Annotated[
    str,
    typer.Option("--as-of", help="The shared store as it was: a version, or a moment in ISO 8601 (UTC).", show_default=False),
]
LockWait = Annotated[float, typer.Option("--lock-wait", min=0.0, help="Seconds to wait for another process.")]

Admitted = frozenset[tuple[str, str]]
"""Rules with the metric whose findings are admitted."""


def admitted(allow: list[str] | None) -> Admitted:
    """Rule and metric of each ``--allow``; the metric is empty for findings that name none.

    Raises
    ------
    UsageError
        One does not begin with a rule.
    """
    from goldenctl.api import common

    return common.admitted(allow or ())
