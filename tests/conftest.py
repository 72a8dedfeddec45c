"""Fixtures every test can use: scratch git repositories, our own settings, the corpus."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import hypothesis
import pytest

hypothesis.settings.register_profile("project", deadline=None)  # a busy machine is no wrong result
hypothesis.settings.load_profile("project")

IDENTITY = {
    "GIT_AUTHOR_NAME": "A", "GIT_AUTHOR_EMAIL": "a@example.invalid", "GIT_COMMITTER_NAME": "A",
    "GIT_COMMITTER_EMAIL": "a@example.invalid", "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1",
}  # fmt: skip


@pytest.fixture(autouse=True)
def _clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """No token, endpoint or CI switch of the machine reaches a test, and ``-C`` in one does not move the next."""
    monkeypatch.chdir(Path.cwd())
    services = ("GITHUB_", "GH_", "GITLAB_", "CI_", "RO_API", "AWS_", "MLFLOW_")
    for name in list(os.environ):
        if name.startswith(services) or name in ("CI", "NO_COLOR", "COLUMNS"):
            monkeypatch.delenv(name)
    for name, value in IDENTITY.items():
        monkeypatch.setenv(name, value)


class ScratchRepo:
    """A real git repository in a temporary folder."""

    def __init__(self, top: Path) -> None:
        self.top = top
        top.mkdir(parents=True, exist_ok=True)
        self.git("init", "-q", "-b", "main")

    def git(self, *arguments: str) -> str:
        done = subprocess.run(["git", *arguments], cwd=self.top, check=True, capture_output=True, env=os.environ | IDENTITY)
        return done.stdout.decode().strip()

    def write(self, files: Mapping[str, bytes | str]) -> None:
        for name, content in files.items():
            path = self.top / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content.encode() if isinstance(content, str) else content)

    def commit(self, files: Mapping[str, bytes | str] | None = None, message: str = "change") -> str:
        self.write(files or {})
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", message)
        return self.git("rev-parse", "HEAD")


@pytest.fixture
def make_repo(tmp_path: Path) -> Callable[..., ScratchRepo]:
    """A factory of git repositories: ``make_repo("name", {path: content})``."""

    def make(name: str = "repo", files: Mapping[str, bytes | str] | None = None) -> ScratchRepo:
        repo = ScratchRepo(tmp_path / name)
        if files is not None:
            repo.commit(files, "first")
        return repo

    return make


def golden_json(indent: int | None = 4, **metrics: Mapping[int, object]) -> bytes:
    """A metrics document; underscores in names stand for blanks: ``golden_json(lm_loss={1: 10.5, 2: 10.25})``."""
    document = {}
    for name, values in metrics.items():
        steps = list(values)
        gaps = [b - a for a, b in itertools.pairwise(steps[1:])] or [1]
        document[name.replace("_", " ")] = {
            "start_step": steps[0],
            "end_step": steps[-1],
            "step_interval": min(gaps),
            "values": {str(k): v for k, v in values.items()},
        }
    return json.dumps(document, indent=indent).encode()


@pytest.fixture(scope="session")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A clone of the corpus with local branches main and dev; skips where there is none."""
    folder = os.environ.get("GOLDENCTL_CORPUS")
    if not folder:
        pytest.skip("GOLDENCTL_CORPUS is not set: no corpus of real golden files here")
    clone = tmp_path_factory.mktemp("corpus") / "repo"
    subprocess.run(["git", "clone", "-q", "-b", "dev", f"{folder}/megatron-goldens.bundle", str(clone)], check=True)
    subprocess.run(["git", "branch", "-q", "main", "origin/main"], cwd=clone, check=True)
    yield clone
