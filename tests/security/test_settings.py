"""A settings file comes with any branch that is pulled: what it may name, and what it may not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from goldenctl.cli.entry import main
from goldenctl.config import CiSettings, MlflowSettings, Settings, load
from goldenctl.errors import ConfigError, UsageError
from goldenctl.sources import github, gitlab
from tests.conftest import ScratchRepo

TOKEN = "token-of-the-user"
EVIL = "https://evil.example"


@pytest.mark.parametrize(
    ("line", "key"),
    [
        ('root = "../elsewhere"', "root"),
        ('root = "/etc"', "root"),
        ('catalog = "../../catalog.duckdb"', "catalog"),
        ('catalog = "/tmp/catalog.duckdb"', "catalog"),
        ('catalog = "~/catalog.duckdb"', "catalog"),
        ('lint.baseline = "a/../../known.json"', "lint.baseline"),
        ('root = "a\\u001b[31m"', "root"),
    ],
)
def test_a_path_of_the_settings_stays_in_the_repository(tmp_path: Path, line: str, key: str) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "goldenctl.toml").write_text(line + "\n")
    with pytest.raises(ConfigError, match="leads out of the repository") as caught:
        load(tmp_path)
    assert caught.value.place == f"{tmp_path}/goldenctl.toml: {key}"


@pytest.mark.parametrize(
    ("layout", "why"),
    [
        ("../../{model}/{test_case}_{platform}.json", "leads out of root"),
        ("/{model}/{test_case}_{platform}.json", "leads out of root"),
        ("{model}/./{test_case}_{platform}.json", "leads out of root"),
        ("..\\\\{model}{test_case}{platform}.json", "leads out of root"),
        ("{model}/{model}_{test_case}_{platform}.json", "has a placeholder twice"),
        ("{test_case}/{platform}/{", "has a single brace or a control character"),
        ("{model}/{test_case}_{platform}.json}", "has a single brace or a control character"),
        ("{model}/{test_case}_{platform}\\u0007.json", "has a single brace or a control character"),
        ("{model.__class__}/{test_case}_{platform}.json", "unknown placeholder {model.__class__}"),
    ],
)
def test_a_layout_leads_nowhere_but_below_root(tmp_path: Path, layout: str, why: str) -> None:
    (tmp_path / "goldenctl.toml").write_text(f'root = "goldens"\nlayout = "{layout}"\n')
    with pytest.raises(ConfigError) as caught:
        load(tmp_path)
    assert why in caught.value.fact


def test_github_tokens_stay_at_home_when_only_the_settings_name_a_host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_TOKEN", TOKEN)
    settings = Settings(tmp_path, ci=CiSettings("github", "o/r", EVIL))
    with pytest.raises(UsageError, match=r"a settings file cannot vouch for a host") as caught:
        github.parse("12", settings)
    assert caught.value.hint == f"export GITHUB_API_URL={EVIL} if it is yours, or unset the token"
    assert TOKEN not in str(caught.value)


def test_a_plain_connection_to_githubs_own_host_gets_no_token(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_TOKEN", TOKEN)
    with pytest.raises(UsageError, match="cannot vouch"):
        github.parse("12", Settings(tmp_path, ci=CiSettings("github", "o/r", "http://api.github.com")))


def test_the_environment_and_the_origin_remote_vouch_for_a_host(
    make_repo: Callable[..., ScratchRepo], monkeypatch: pytest.MonkeyPatch
) -> None:
    repo = make_repo("r", {"a": b""})
    monkeypatch.setenv("GITHUB_TOKEN", TOKEN)
    settings = Settings(repo.top, ci=CiSettings("github", "o/r", "https://ghe.example/api/v3"))
    with pytest.raises(UsageError):
        github.parse("12", settings)
    repo.git("remote", "add", "origin", "git@ghe.example:o/r.git")
    assert github.parse("12", settings).token == TOKEN
    repo.git("remote", "remove", "origin")
    monkeypatch.setenv("GITHUB_API_URL", "https://ghe.example/api/v3")
    assert github.parse("12", settings).token == TOKEN


@pytest.mark.parametrize("name", ["RO_API_TOKEN", "GITLAB_TOKEN", "CI_JOB_TOKEN"])
def test_gitlab_tokens_stay_at_home_when_only_the_settings_name_a_host(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv(name, TOKEN)
    for address in (EVIL, "evil.example", "http://gitlab.com"):
        with pytest.raises(UsageError, match="cannot vouch"):
            gitlab.parse("gitlab:5", Settings(tmp_path, ci=CiSettings("gitlab", "", address, "7")))


def test_a_pipeline_url_of_another_port_or_without_tls_gets_no_token(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITLAB_TOKEN", TOKEN)
    for base in ("http://gitlab.com", "https://gitlab.com:8443"):
        assert gitlab.parse(f"{base}/g/p/-/pipelines/5", Settings(tmp_path)).headers == {}
    assert gitlab.parse("https://gitlab.com/g/p/-/pipelines/5", Settings(tmp_path)).headers == {"PRIVATE-TOKEN": TOKEN}


@pytest.mark.parametrize("name", ["MLFLOW_TRACKING_TOKEN", "MLFLOW_TRACKING_PASSWORD"])
def test_mlflow_secrets_stay_at_home_when_only_the_settings_name_a_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    source = pytest.importorskip("goldenctl.sources.mlflow")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv(name, TOKEN)
    settings = Settings(tmp_path, mlflow=MlflowSettings(tracking_uri=EVIL))
    with pytest.raises(UsageError, match="cannot vouch"):
        source.client_for(settings)


@pytest.mark.parametrize("uri", ["file:///tmp/x", "sqlite:////tmp/x.db", "databricks", "/tmp/x"])
def test_the_settings_name_no_store_of_mlflow_but_a_server(tmp_path: Path, uri: str) -> None:
    source = pytest.importorskip("goldenctl.sources.mlflow")
    with pytest.raises(UsageError, match="is no address of a server"):
        source.client_for(Settings(tmp_path, mlflow=MlflowSettings(tracking_uri=uri)))


def test_a_setting_nobody_knows_stops_every_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "goldenctl.toml").write_text('command = "touch pwned"\n')
    monkeypatch.chdir(tmp_path)
    assert main(["lint"]) == 2
    assert [p.name for p in tmp_path.iterdir()] == ["goldenctl.toml"]
