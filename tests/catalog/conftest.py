"""Fixtures of the catalog's tests."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.catalog.world import World
from tests.conftest import ScratchRepo


@pytest.fixture
def world(make_repo: Callable[..., ScratchRepo], monkeypatch: pytest.MonkeyPatch) -> World:
    """An empty repository on branch main."""
    return World(make_repo("world"), monkeypatch)
