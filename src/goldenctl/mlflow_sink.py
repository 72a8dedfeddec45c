"""Log each refresh to MLflow: one run per refresh, one nested run per golden file written.

A tracking server that is down never fails a refresh; it is said once.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from mlflow.entities import Metric, Param, RunTag

from goldenctl import goldenfile
from goldenctl.config import MlflowSettings, Settings
from goldenctl.errors import GoldenctlError
from goldenctl.model import Action, FileResult, RefreshResult
from goldenctl.sources.mlflow import called, client_for

if TYPE_CHECKING:
    from mlflow import MlflowClient

BATCH = 1000
"""Metrics per request, the tracking server's limit."""


@dataclass(frozen=True, slots=True)
class _Parent:
    """The run of a refresh, to which the runs of its files belong."""

    experiment: str
    """Id of the experiment."""
    id: str
    runs: str
    """References of the CI runs."""


def log_refresh(
    result: RefreshResult,
    settings: Settings,
    old: Mapping[str, bytes | None],
    new: Mapping[str, bytes],
    report: Path | None = None,
) -> str:
    """Log a refresh and say what came of it.

    Parameters
    ----------
    result
        The refresh; only files written are logged.
    settings
        Names the tracking server and experiment.
    old, new
        Golden path → bytes before (None for a new golden) and after.
    report
        A report file to store with the run; None for none.

    Returns
    -------
    str
        One sentence for the person at the terminal: the run logged, or why there is none.
    """
    try:
        client = client_for(settings)
        run_id = _log(client, result, settings, old, new, report)
    except GoldenctlError as exc:
        return f"MLflow: the refresh is not logged: {exc.fact}"
    return f"MLflow: logged as run {run_id}"


def _log(
    client: MlflowClient,
    result: RefreshResult,
    settings: Settings,
    old: Mapping[str, bytes | None],
    new: Mapping[str, bytes],
    report: Path | None,
) -> str:
    name = (settings.mlflow or MlflowSettings()).experiment
    experiment = called(lambda: client.get_experiment_by_name(name), name)
    ident = experiment.experiment_id if experiment else called(lambda: client.create_experiment(name), name)
    parent: str = called(lambda: client.create_run(ident, run_name=result.id, tags=_tags(result)), name).info.run_id
    params = [Param("run", _runs(result)), Param("files", str(result.count(Action.WRITTEN)))]
    called(lambda: client.log_batch(parent, params=params), name)
    if report is not None:
        called(lambda: client.log_artifact(parent, str(report)), name)
    for item in (f for f in result.files if f.action is Action.WRITTEN):
        _log_file(client, _Parent(ident, parent, _runs(result)), item, old.get(item.path), new[item.path])
    called(lambda: client.set_terminated(parent), name)
    return parent


def _runs(result: RefreshResult) -> str:
    return ", ".join(r.ref for r in result.runs)


def _tags(result: RefreshResult) -> dict[str, str]:
    tags = {"goldenctl.refresh": result.id, "goldenctl.command": result.command}
    for i, run in enumerate(result.runs):
        tags |= {f"goldenctl.run.{i}": run.ref, f"goldenctl.run.{i}.commit": run.commit, f"goldenctl.run.{i}.url": run.url}
    return tags


def _log_file(client: MlflowClient, parent: _Parent, item: FileResult, old: bytes | None, new: bytes) -> None:
    tags = {
        "mlflow.parentRunId": parent.id,
        "goldenctl.path": item.path,
        "goldenctl.sha256": item.sha256,
        "goldenctl.job": item.job,
        "goldenctl.artifact": item.artifact,
    }
    created = called(lambda: client.create_run(parent.experiment, run_name=item.path, tags=tags), item.path)
    run_id: str = created.info.run_id
    levels = ", ".join(f"{m.level.value} to {m.rev}" for m in item.matches) or "none asked for"
    params = {
        "run": parent.runs,
        "case": item.key.case,
        "platform": item.key.platform,
        "environment": item.key.environment,
        "match": levels,
    }
    pairs = [Param(k, v) for k, v in params.items()]
    called(lambda: client.log_batch(run_id, params=pairs, tags=[RunTag("goldenctl.variant", item.key.variant)]), item.path)
    metrics = [*_metrics(old or b"", "old"), *_metrics(new, "new")]
    for start in range(0, len(metrics), BATCH):
        part = metrics[start : start + BATCH]
        called(lambda part=part: client.log_batch(run_id, metrics=part), item.path)  # type: ignore[misc]
    with tempfile.TemporaryDirectory(prefix="goldenctl-") as folder:
        copy = Path(folder) / Path(item.path).name
        copy.write_bytes(new)
        called(lambda: client.log_artifact(run_id, str(copy)), item.path)
    called(lambda: client.set_terminated(run_id), item.path)


def _metrics(raw: bytes, side: str) -> Iterator[Metric]:
    """The numbers of one side, named ``{metric}/{side}`` in the signs the server allows; none of what cannot be read."""
    try:
        document = goldenfile.read(raw)
    except goldenfile.DocumentError:
        return
    for series in document.series:
        name = re.sub(r"[^\w\-. :/]", "_", series.metric)
        for step, value in zip(series.steps, series.values, strict=True):
            yield Metric(f"{name}/{side}", value, 0, step)
