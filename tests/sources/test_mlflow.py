"""An MLflow run gives its logged golden files, or its histories as a golden document; a refresh is logged as runs."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import mlflow
import pytest
from mlflow.entities import Metric
from mlflow.exceptions import MlflowException

from goldenctl import candidates, mlflow_sink
from goldenctl.cli.entry import main
from goldenctl.config import MlflowSettings, Settings
from goldenctl.errors import AuthError, NotFoundError, SourceError, UsageError
from goldenctl.model import Action, Conclusion, FileResult, GoldenKey, Match, MatchLevel, RefreshResult, Run
from goldenctl.sources import FetchOptions
from goldenctl.sources import mlflow as mlflow_source
from goldenctl.sources.mlflow import called, document
from tests.conftest import ScratchRepo, golden_json
from tests.doubles.mlflow import server
from tests.doubles.server import Reply, Service
from tests.sources.conftest import Taken
from tests.sources.zips import GOLDEN, H100


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with server(tmp_path_factory.mktemp("mlflow")) as address:
        yield address


@pytest.fixture
def client(url: str, monkeypatch: pytest.MonkeyPatch) -> mlflow.MlflowClient:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", url)
    return mlflow.MlflowClient(url)


@pytest.fixture
def experiment(client: mlflow.MlflowClient, request: pytest.FixtureRequest) -> str:
    return str(client.create_experiment(f"experiment {request.node.name}"))


def taken(ref: str, settings: Settings) -> Taken:
    source = mlflow_source.open(ref, settings, FetchOptions())
    found = source.describe()
    return Taken(found, list(source.fetch(found.artifacts)))


def with_metrics(tmp_path: Path, **more: Any) -> Settings:
    return Settings(tmp_path, root="goldens", mlflow=MlflowSettings(**more))


def logged(client: mlflow.MlflowClient, experiment: str, curves: dict[str, dict[int, float]], **params: str) -> str:
    created = client.create_run(experiment, run_name=params.pop("run_name", None))
    run_id = str(created.info.run_id)
    for name, value in params.items():
        client.log_param(run_id, name, value)
    metrics = [Metric(name, value, step, step) for name, curve in curves.items() for step, value in curve.items()]
    client.log_batch(run_id, metrics=metrics)
    client.set_terminated(run_id)
    return run_id


def test_logged_golden_files_are_taken_as_they_are(client: mlflow.MlflowClient, experiment: str, tmp_path: Path) -> None:
    run_id = logged(client, experiment, {"lm loss": {1: 9.0}}, case="moe/tiny", platform="dgx_h100")
    (tmp_path / H100).write_bytes(GOLDEN)
    client.log_artifact(run_id, str(tmp_path / H100), "deep/down")
    (tmp_path / "other.json").write_bytes(b"{}")
    client.log_artifact(run_id, str(tmp_path / "other.json"))
    found = taken(f"mlflow:{run_id}", Settings(tmp_path, root="goldens"))
    assert [(m.name, m.content) for f in found.fetched for m in f.members] == [(f"deep/down/{H100}", GOLDEN)]
    assert (found.run.provider, found.run.id, found.run.conclusion) == ("mlflow", run_id, Conclusion.SUCCESS)


def test_histories_become_a_golden_document_with_its_path(client: mlflow.MlflowClient, experiment: str, tmp_path: Path) -> None:
    curves = {"train/loss": {0: 99.0, 1: 10.5, 3: 10.4, 5: 10.25, 10: 9.75}, "unknown": {1: 1.0}}
    run_id = logged(client, experiment, curves, case="moe/tiny", platform="dgx_h100", environment="dev")
    settings = with_metrics(tmp_path, metrics={"train/loss": "lm loss"}, step_size=5)
    found = taken(f"mlflow:{run_id}", settings)
    placed = candidates.resolve(found.run, found.fetched, candidates.Known(settings, frozenset()))
    [candidate] = placed.candidates
    assert candidate.path == f"goldens/moe/tiny/{H100}"
    assert json.loads(candidate.content) == {
        "lm loss": {"start_step": 1, "end_step": 10, "step_interval": 5, "values": {"1": 10.5, "5": 10.25, "10": 9.75}}
    }


def test_a_run_can_be_named_by_experiment_and_name(client: mlflow.MlflowClient, tmp_path: Path) -> None:
    number = client.create_experiment("team/goldens")
    logged(client, number, {"lm loss": {1: 1.5}}, run_name="it's nightly", platform="dgx_h100")
    found = taken("mlflow:team/goldens/it's nightly", with_metrics(tmp_path))
    assert json.loads(found.fetched[0].members[0].content)["lm loss"]["values"] == {"1": 1.5}
    with pytest.raises(NotFoundError, match="no run named 'weekly' in experiment 'team/goldens'"):
        taken("mlflow:team/goldens/weekly", with_metrics(tmp_path))
    with pytest.raises(NotFoundError, match="no experiment 'team'"):
        taken("mlflow:team/nightly", with_metrics(tmp_path))


def test_what_is_not_finite_is_kept_for_lint_to_find(client: mlflow.MlflowClient, experiment: str, tmp_path: Path) -> None:
    curve = {1: float("nan"), 2: float("inf"), 3: float("-inf"), 4: 1e300}
    run_id = logged(client, experiment, {"lm loss": curve}, platform="dgx_h100")
    content = taken(f"mlflow:{run_id}", with_metrics(tmp_path)).fetched[0].members[0].content
    assert json.loads(content)["lm loss"]["values"] == {"1": "nan", "2": "inf", "3": "-inf", "4": 1e300}


def test_a_run_without_platform_or_golden_metrics_says_what_to_log(
    client: mlflow.MlflowClient, experiment: str, tmp_path: Path
) -> None:
    bare = logged(client, experiment, {"lm loss": {1: 1.0}})
    [problem] = taken(f"mlflow:{bare}", with_metrics(tmp_path)).problems
    assert "does not say its platform" in problem.message
    other = logged(client, experiment, {"accuracy": {1: 1.0}}, platform="dgx_h100")
    [problem] = taken(f"mlflow:{other}", with_metrics(tmp_path)).problems
    assert problem.hint == "map their names in [tool.goldenctl.mlflow] metrics = { 'train/loss' = 'lm loss' }"


def test_a_run_that_is_not_there_is_not_found(client: mlflow.MlflowClient, tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="is not on the MLflow server"):
        taken("mlflow:" + "0" * 32, with_metrics(tmp_path))


def test_without_a_server_it_is_wrong_use(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no MLflow tracking server is named"):
        taken("mlflow:1", Settings(tmp_path))


def test_a_server_that_is_down_is_said_without_its_password(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    service = Service(lambda _: Reply())
    service.close()
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", service.url.replace("://", "://user:secret@"))
    with pytest.raises(SourceError, match="the MLflow server cannot be reached") as caught:
        taken("mlflow:abc", with_metrics(tmp_path))
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("code", "kind"),
    [("PERMISSION_DENIED", AuthError), ("UNAUTHENTICATED", AuthError), ("RESOURCE_DOES_NOT_EXIST", NotFoundError),
     ("INTERNAL_ERROR", SourceError)],
)  # fmt: skip
def test_refusals_are_told_apart(code: str, kind: type[SourceError]) -> None:
    def fail() -> None:
        exc = MlflowException("no")
        exc.error_code = code
        raise exc

    with pytest.raises(SourceError) as caught:
        called(fail, "run 1")
    assert type(caught.value) is kind


@pytest.mark.parametrize(
    ("steps", "interval"), [((1, 5, 10, 20), 5), ((1, 4, 10), 6), ((1, 2, 3), 1), ((1,), 7), ((1, 9), 7), ((6, 8, 11), 1)]
)
def test_the_interval_is_the_harnesss(steps: tuple[int, ...], interval: int) -> None:
    block = json.loads(document({"lm loss": dict.fromkeys(steps, 1.0)}, 7))["lm loss"]
    assert (block["start_step"], block["end_step"], block["step_interval"]) == (steps[0], steps[-1], interval)


RESULT = RefreshResult(
    "20260501T100000-abcdef",
    (Run("github:1", "github", "1", commit="c0ffee", url="https://github.com/o/r/actions/runs/1"),),
    (
        FileResult(
            f"goldens/moe/tiny/{H100}",
            GoldenKey("moe", "tiny", "dev", "dgx_h100"),
            Action.WRITTEN,
            job="moe/tiny - latest",
            artifact="logs-tiny",
            sha256="ab" * 32,
            matches=(Match("main", MatchLevel.CLOSE),),
        ),
        FileResult("goldens/moe/other.json", GoldenKey("moe", "other", "dev", "dgx_h100"), Action.REFUSED),
    ),
    command="goldenctl refresh",
)


def test_a_refresh_is_logged_with_its_provenance_and_values(
    client: mlflow.MlflowClient, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = RESULT.files[0].path
    old, new = golden_json(lm_loss={1: 10.5, 2: "nan"}), golden_json(lm_loss={1: 10.5, 2: 10.25})
    (tmp_path / "report.html").write_text("report")
    settings = with_metrics(tmp_path, experiment="refreshes")
    said = mlflow_sink.log_refresh(RESULT, settings, {path: old}, {path: new}, tmp_path / "report.html")
    assert said.startswith("MLflow: logged as run ")
    assert capfd.readouterr().out == "", "stdout is for results"
    experiment = client.get_experiment_by_name("refreshes")
    assert experiment is not None
    runs = {r.info.run_name: r for r in client.search_runs([experiment.experiment_id])}
    assert set(runs) == {RESULT.id, path}, "what was refused is no run"
    parent, child = runs[RESULT.id], runs[path]
    assert parent.data.tags["goldenctl.run.0.commit"] == "c0ffee"
    assert [a.path for a in client.list_artifacts(parent.info.run_id)] == ["report.html"]
    assert child.data.params == {
        "run": "github:1", "case": "moe/tiny", "platform": "dgx_h100", "environment": "dev", "match": "close to main",
    }  # fmt: skip
    assert child.data.tags["goldenctl.sha256"] == "ab" * 32
    assert child.data.tags["mlflow.parentRunId"] == parent.info.run_id
    values = {m.step: m.value for m in client.get_metric_history(child.info.run_id, "lm loss/new")}
    assert values == {1: 10.5, 2: 10.25}
    assert len(client.get_metric_history(child.info.run_id, "lm loss/old")) == 2
    assert [a.path for a in client.list_artifacts(child.info.run_id)] == [H100]


def test_a_server_that_is_down_never_fails_a_refresh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    settings = with_metrics(tmp_path, tracking_uri="http://127.0.0.1:9")
    said = mlflow_sink.log_refresh(RESULT, settings, {}, {RESULT.files[0].path: GOLDEN})
    assert said == "MLflow: the refresh is not logged: the MLflow server cannot be reached"


def test_metric_names_the_server_would_refuse_are_logged_all_the_same(client: mlflow.MlflowClient, tmp_path: Path) -> None:
    path = RESULT.files[0].path
    result = replace(RESULT, id="odd")
    new = golden_json(grad={1: 2.5}).replace(b"grad", b"grad (norm) [%]")
    said = mlflow_sink.log_refresh(result, with_metrics(tmp_path, experiment="odd"), {path: None}, {path: new})
    assert said.startswith("MLflow: logged as run ")


def test_the_refresh_command_logs_its_report_with_the_run(
    client: mlflow.MlflowClient,
    url: str,
    make_repo: Callable[..., ScratchRepo],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    golden = f"moe/tiny/{H100}"
    settings = f'root = "goldens"\n[mlflow]\ntracking_uri = "{url}"\nexperiment = "by command"\n'
    repo = make_repo("logs", {f"goldens/{golden}": golden_json(lm_loss={1: 1.0, 2: "nan"}), "goldenctl.toml": settings})
    run = tmp_path / "run" / golden
    run.parent.mkdir(parents=True)
    run.write_bytes(golden_json(lm_loss={1: 1.0, 2: 2.0}))
    monkeypatch.chdir(repo.top)
    assert main(["refresh", "--from-job", str(tmp_path / "run"), "--yes"]) == 0
    experiment = client.get_experiment_by_name("by command")
    assert experiment is not None
    (parent,) = [r for r in client.search_runs([experiment.experiment_id]) if "mlflow.parentRunId" not in r.data.tags]
    assert [a.path for a in client.list_artifacts(parent.info.run_id)] == ["refresh.md"]
