"""A small repository with two branches, syncs, renames and NaN, whose history every test knows by heart."""

from __future__ import annotations

import pytest

from goldenctl.catalog import build as filling
from goldenctl.catalog import store
from goldenctl.catalog.build import Built
from goldenctl.config import Settings
from goldenctl.git import Repo
from tests.conftest import ScratchRepo, golden_json

H100 = "goldens/moe/tiny/golden_values_dev_dgx_h100.json"
A100 = "goldens/gpt/small/golden_values_dev_dgx_a100.json"
FIRST = golden_json(lm_loss={1: 10.0, 2: 9.0}, iteration_time={1: "nan", 2: 0.5})
FORMATTED = golden_json(indent=2, lm_loss={1: 10.0, 2: 9.0}, iteration_time={1: "nan", 2: 0.5})
BROKEN = golden_json(lm_loss={1: "nan", 2: "nan"}, iteration_time={1: "nan", 2: 0.5})
REPAIRED = golden_json(lm_loss={1: 10.0, 2: 9.9, 3: 8.0}, iteration_time={1: "nan", 2: 0.5})


class World:
    """The repository, its settings and the catalog filled from it; the n-th commit is of day n of January 2026."""

    def __init__(self, repo: ScratchRepo, monkeypatch: pytest.MonkeyPatch) -> None:
        self.scratch = repo
        self.repo = Repo(repo.top)
        self.settings = Settings(repo.top, root="goldens")
        self.path = repo.top / ".goldenctl" / "catalog.duckdb"
        self._monkeypatch = monkeypatch
        self._day = 0

    def git(self, *arguments: str) -> str:
        """Git, on the next day."""
        self._day += 1
        self._monkeypatch.setenv("GIT_COMMITTER_DATE", f"2026-01-{self._day:02}T12:00:00Z")
        return self.scratch.git(*arguments)

    def commit(self, files: dict[str, bytes] | None = None, message: str = "change") -> str:
        """Write files and commit everything that changed."""
        self.scratch.write(files or {})
        self.scratch.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", message)
        return self.scratch.git("rev-parse", "HEAD")

    def merge(self, branch: str, message: str = "sync") -> str:
        """Merge a branch into the current one, always by a merge commit."""
        self.git("merge", "-q", "--no-ff", "-m", message, branch)
        return self.scratch.git("rev-parse", "HEAD")

    def checkout(self, *arguments: str) -> None:
        self.scratch.git("checkout", "-q", *arguments)

    def move(self, old: str, new: str) -> None:
        (self.scratch.top / new).parent.mkdir(parents=True, exist_ok=True)
        self.scratch.git("mv", old, new)

    def remove(self, path: str) -> None:
        (self.scratch.top / path).unlink()

    def build(self, *branches: str) -> Built:
        return filling.build(self.repo, self.settings, self.path, branches)

    def update(self, *branches: str) -> Built:
        return filling.update(self.repo, self.settings, self.path, branches)

    def ask(self, query: str) -> list[tuple[object, ...]]:
        with store.reading(self.path) as connection:
            return connection.execute(query).fetchall()
