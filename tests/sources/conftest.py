"""Doubles of the services, and a source opened on them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from moto.server import ThreadedMotoServer

from goldenctl.config import CiSettings, Settings
from goldenctl.model import Fetched, Run, SourceProblem
from goldenctl.sources import FetchOptions, http, open_source
from tests.doubles.github import GithubDouble

TOKEN = "ghp_secretsecretsecret"


@dataclass
class Taken:
    """What a source gave for a reference."""

    run: Run
    fetched: list[Fetched]

    @property
    def contents(self) -> dict[str, bytes]:
        """Job and file name → bytes."""
        return {f"{f.artifact.job.id if f.artifact.job else ''}:{m.name}": m.content for f in self.fetched for m in f.members}

    @property
    def problems(self) -> list[SourceProblem]:
        """Of the run and of its artifacts."""
        return [*self.run.problems, *(p for f in self.fetched for p in f.problems)]

    @property
    def kinds(self) -> list[str]:
        """Kinds of the problems."""
        return [p.kind for p in self.problems]


def every(kind: type[BaseException]) -> list[type[BaseException]]:
    """A class and all below it."""
    return [kind, *(k for below in kind.__subclasses__() for k in every(below))]


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    """S3 on loopback."""
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    yield "http://{}:{}".format(*server.get_host_and_port())
    server.stop()


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test waits for a back-off."""
    monkeypatch.setattr(http, "BACKOFF", 0.0)


@pytest.fixture
def github(monkeypatch: pytest.MonkeyPatch) -> Iterator[GithubDouble]:
    """GitHub on loopback, with the environment that leads to it."""
    double = GithubDouble(token=TOKEN)
    monkeypatch.setenv("GITHUB_API_URL", double.url)
    monkeypatch.setenv("GITHUB_TOKEN", TOKEN)
    yield double
    double.close()


@pytest.fixture
def take(tmp_path: Path) -> Callable[..., Taken]:
    """Describe a reference and fetch all its artifacts."""

    def taken(ref: str, repository: str = "o/r", **options: Any) -> Taken:
        settings = Settings(tmp_path, root="goldens", ci=CiSettings(repository=repository))
        source = open_source(ref, settings, FetchOptions(**options))
        run = source.describe()
        return Taken(run, list(source.fetch(run.artifacts)))

    return taken
