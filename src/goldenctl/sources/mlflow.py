"""Candidates from an MLflow run: logged golden files, or metric histories on the harness's grid.

``mlflow:RUN_ID`` or ``mlflow:EXPERIMENT/run-name``. Logged ``golden_values*.json`` artifacts are
taken as they are. A run without them is turned into one golden document from its metric histories;
the case, platform and environment are then read from the run's params or tags of these names.
"""

from __future__ import annotations

import itertools
import json
import math
import os
import re
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import mlflow
import requests
from mlflow.exceptions import MlflowException
from mlflow.utils.credentials import read_mlflow_creds

from goldenctl.config import MlflowSettings, Settings
from goldenctl.errors import AuthError, CorruptError, NotFoundError, SourceError, UsageError
from goldenctl.model import Artifact, Conclusion, Fetched, Job, Member, Run
from goldenctl.sources import FetchOptions, Source, remote
from goldenctl.sources.artifact import MAX_MEMBER, is_golden_name, problem

if TYPE_CHECKING:
    from mlflow.entities import Run as TrackedRun

T = TypeVar("T")
HISTORIES = "metric histories"
"""Name of the artifact that stands for the run's metric histories."""
_CONCLUSIONS = {
    "FINISHED": Conclusion.SUCCESS,
    "FAILED": Conclusion.FAILURE,
    "KILLED": Conclusion.CANCELLED,
    "RUNNING": Conclusion.RUNNING,
    "SCHEDULED": Conclusion.RUNNING,
}
LARGEST = sys.float_info.max
_MANNERS = {
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "2",
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "30",
    "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",
}
"""The client's own defaults retry for minutes, which nobody waits for, and print on stdout, which is the result's."""


def client_for(settings: Settings) -> mlflow.MlflowClient:
    """A client of the tracking server of the settings or of ``MLFLOW_TRACKING_URI``.

    Raises
    ------
    UsageError
        Neither names a server.
    """
    own = settings.mlflow or MlflowSettings()
    uri = own.tracking_uri or os.environ.get("MLFLOW_TRACKING_URI", "")
    if not uri:
        hint = "export MLFLOW_TRACKING_URI=http://HOST:5000, or set tracking_uri in [tool.goldenctl.mlflow]"
        raise UsageError("no MLflow tracking server is named", hint=hint)
    if own.tracking_uri and not remote.vouched(uri, settings.top, "MLFLOW_TRACKING_URI"):
        _check_settings(uri, settings)
    for name, value in _MANNERS.items():
        os.environ.setdefault(name, value)
    return called(lambda: mlflow.MlflowClient(tracking_uri=uri), without_user(uri))


def _check_settings(uri: str, settings: Settings) -> None:
    """Refuse a server that only the settings name when a token would go along, and whatever is no web server."""
    if not uri.startswith(("http://", "https://")):
        hint = "export MLFLOW_TRACKING_URI, which may name any kind of store"
        raise UsageError(f"{without_user(uri)} is no address of a server", place=settings.source, hint=hint)
    stored = read_mlflow_creds()
    if stored.username or stored.password or os.environ.get("MLFLOW_TRACKING_TOKEN"):
        raise remote.refused(uri, settings.source, "MLFLOW_TRACKING_URI")


def without_user(text: str) -> str:
    """A text whose URLs have no user and password.

    >>> without_user("no answer from http://user:secret@host:5000/api")
    'no answer from http://host:5000/api'
    """
    return re.sub(r"//[^/@\s]+@", "//", text)


def called(action: Callable[[], T], what: str) -> T:
    """The result of a call to the tracking server, its errors mapped to ours.

    Raises
    ------
    NotFoundError, AuthError, SourceError
        As the server or the network says.
    """
    try:
        return action()
    except MlflowException as exc:
        text = without_user(str(exc).partition("\n")[0])[:300]
        if exc.error_code == "RESOURCE_DOES_NOT_EXIST":
            raise NotFoundError(f"{what} is not on the MLflow server", hint="look for it in the MLflow UI") from exc
        if exc.error_code in ("PERMISSION_DENIED", "UNAUTHENTICATED", "CUSTOMER_UNAUTHORIZED"):
            raise AuthError(f"the MLflow server refuses access to {what}", hint="check MLFLOW_TRACKING_TOKEN") from exc
        if "failed with exception" in text:
            raise _unreachable(what) from exc
        raise SourceError(f"MLflow: {text}", place=what) from exc
    except (requests.RequestException, OSError) as exc:
        raise _unreachable(what) from exc


def _unreachable(what: str) -> SourceError:
    return SourceError("the MLflow server cannot be reached", place=what, hint="check MLFLOW_TRACKING_URI and the network")


def open(ref: str, settings: Settings, options: FetchOptions) -> Source:
    """The source of an MLflow run."""
    return MlflowSource(ref, settings, client_for(settings))


class MlflowSource:
    """One MLflow run."""

    def __init__(self, ref: str, settings: Settings, client: mlflow.MlflowClient) -> None:
        self._ref = ref
        self._settings = settings
        self._client = client
        self._run: TrackedRun | None = None

    def describe(self) -> Run:
        """The run with one artifact per logged golden file, or one that stands for its histories."""
        tracked = self._run = self._find(self._ref.removeprefix("mlflow:"))
        info = tracked.info
        conclusion = _CONCLUSIONS.get(info.status, Conclusion.UNKNOWN)
        job = self._job(tracked, conclusion)
        names = called(lambda: list(self._golden_files(info.run_id, "")), self._ref)
        artifacts = [Artifact(name, name, size, job=job) for name, size in names]
        return Run(
            self._ref,
            "mlflow",
            info.run_id,
            commit=tracked.data.tags.get("mlflow.source.git.commit", ""),
            conclusion=conclusion,
            started_at=_time(info.start_time),
            completed_at=_time(info.end_time),
            jobs=(job,),
            artifacts=tuple(artifacts or [Artifact(HISTORIES, HISTORIES, 0, job=job)]),
        )

    def _find(self, name: str) -> TrackedRun:
        experiment_name, slash, run_name = name.rpartition("/")
        if not slash:
            return called(lambda: self._client.get_run(name), self._ref)
        experiment = called(lambda: self._client.get_experiment_by_name(experiment_name), self._ref)
        if experiment is None:
            raise NotFoundError(f"no experiment {experiment_name!r} on the MLflow server", hint="mlflow experiments search")
        quote = '"' if "'" in run_name else "'"  # the server's filters know no escapes
        wanted = f"attributes.run_name = {quote}{run_name}{quote}"
        runs = called(lambda: self._client.search_runs([experiment.experiment_id], wanted), self._ref)
        if len(runs) != 1:
            what = "no run" if not runs else f"{len(runs)} runs"
            raise NotFoundError(f"{what} named {run_name!r} in experiment {experiment_name!r}", hint="use mlflow:RUN_ID")
        found: TrackedRun = runs[0]
        return found

    def _job(self, tracked: TrackedRun, conclusion: Conclusion) -> Job:
        said = {**tracked.data.tags, **tracked.data.params}
        model, _, test_case = said.get("case", "").rpartition("/")
        info = tracked.info
        return Job(
            info.run_id,
            info.run_name or info.run_id,
            said.get("model", model),
            said.get("test_case", test_case),
            said.get("environment", ""),
            said.get("platform", ""),
            conclusion=conclusion,
            started_at=_time(info.start_time),
            completed_at=_time(info.end_time),
        )

    def _golden_files(self, run_id: str, folder: str) -> Iterator[tuple[str, int]]:
        for item in self._client.list_artifacts(run_id, folder or None):
            if item.is_dir:
                yield from self._golden_files(run_id, item.path)
            elif is_golden_name(item.path):
                yield item.path, item.file_size or 0

    def fetch(self, artifacts: Sequence[Artifact]) -> Iterator[Fetched]:
        """Download logged golden files, or build one from the histories."""
        for artifact in artifacts:
            try:
                member = self._histories() if artifact.id == HISTORIES else self._download(artifact)
            except SourceError as exc:
                yield Fetched(artifact, problems=(problem(artifact.name, exc),))
            else:
                yield Fetched(artifact, (member,), (), len(member.content))

    @property
    def _tracked(self) -> TrackedRun:
        return self._run or self._find(self._ref.removeprefix("mlflow:"))

    def _download(self, artifact: Artifact) -> Member:
        if artifact.size > MAX_MEMBER:
            raise CorruptError(f"has {artifact.size} bytes, more than {MAX_MEMBER}")
        with tempfile.TemporaryDirectory(prefix="goldenctl-") as folder:
            run_id = self._tracked.info.run_id
            place = f"{self._ref} {artifact.id}"
            path = called(lambda: self._client.download_artifacts(run_id, artifact.id, folder), place)
            return Member(artifact.id, called(Path(path).read_bytes, place))

    def _histories(self) -> Member:
        """The metric histories as a golden document.

        Raises
        ------
        SourceError
            The run says no platform, or none of its metrics is a golden metric.
        """
        tracked = self._tracked
        said = {**tracked.data.tags, **tracked.data.params}
        platform, environment = said.get("platform", ""), said.get("environment", "dev")
        if not platform:
            hint = "log it as param or tag `platform`, or log the golden_values*.json file as an artifact"
            raise SourceError("the MLflow run does not say its platform", place=self._ref, hint=hint)
        own = self._settings.mlflow or MlflowSettings()
        known = {**{m: m for m in self._settings.tolerance}, **own.metrics}
        curves: dict[str, dict[int, float]] = {}
        for logged in tracked.data.metrics:
            if logged in known:
                curve = self._curve(tracked.info.run_id, logged, max(own.step_size, 1))
                curves |= {known[logged]: curve} if curve else {}
        if not curves:
            hint = "map their names in [tool.goldenctl.mlflow] metrics = { 'train/loss' = 'lm loss' }"
            raise SourceError("the MLflow run logged no golden metric", place=self._ref, hint=hint)
        return Member(f"golden_values_{environment}_{platform}.json", document(curves, own.step_size))

    def _curve(self, run_id: str, metric: str, step_size: int) -> dict[int, float]:
        """Step → value on the sampling grid; a step logged twice keeps its last value."""
        history = called(lambda: self._client.get_metric_history(run_id, metric), f"{self._ref} {metric}")
        ordered = sorted(history, key=lambda m: (m.step, m.timestamp))
        return {m.step: m.value for m in ordered if m.step == 1 or (m.step > 1 and m.step % step_size == 0)}


def document(curves: Mapping[str, Mapping[int, float]], step_size: int) -> bytes:
    """Metric curves as a golden document in the harness's form, indent 4, non-finite values as text.

    As in the harness, ``step_interval`` is the greatest common divisor of the steps' distances, step 1
    left out, and ``step_size`` where there are fewer than two such steps.
    """
    blocks = {}
    for metric, curve in curves.items():
        steps = sorted(curve)
        later = [s for s in steps if s > 1]
        blocks[metric] = {
            "start_step": steps[0],
            "end_step": steps[-1],
            "step_interval": math.gcd(*(b - a for a, b in itertools.pairwise(later))) or step_size,
            "values": {str(s): _spelt(curve[s]) for s in steps},
        }
    return json.dumps(blocks, indent=4, allow_nan=False).encode()


def _spelt(value: float) -> float | str:
    """A value as JSON holds it; the server stores an infinity as the largest double."""
    if math.isnan(value):
        return "nan"
    return value if abs(value) < LARGEST else ("inf" if value > 0 else "-inf")


def _time(milliseconds: int | None) -> datetime | None:
    return datetime.fromtimestamp(milliseconds / 1000, UTC) if milliseconds else None
