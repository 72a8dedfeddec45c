"""The double of GitLab, and a source opened on it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from goldenctl.config import CiSettings, Settings
from goldenctl.sources import FetchOptions, open_source
from tests.doubles.gitlab import GitlabDouble
from tests.sources.conftest import Taken
from tests.sources.gitlab.pipelines import GROUP, TOKEN, Take


@pytest.fixture
def gitlab(monkeypatch: pytest.MonkeyPatch) -> Iterator[GitlabDouble]:
    double = GitlabDouble(TOKEN)
    monkeypatch.setenv("GITLAB_ENDPOINT", double.url)
    monkeypatch.setenv("RO_API_TOKEN", TOKEN)
    yield double
    double.close()


@pytest.fixture
def take(tmp_path: Path) -> Take:
    def taken(ref: str = "gitlab:1", project: str = GROUP, **options: Any) -> Taken:
        source = open_source(ref, Settings(tmp_path, root="goldens", ci=CiSettings(project=project)), FetchOptions(**options))
        run = source.describe()
        return Taken(run, list(source.fetch(run.artifacts)))

    return taken
