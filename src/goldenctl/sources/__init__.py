"""Sources of candidates: one system a file, loaded by name when a reference needs it."""

from __future__ import annotations

import importlib
import os
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

from goldenctl.config import Settings
from goldenctl.errors import UsageError
from goldenctl.model import Artifact, Fetched, Run


@dataclass(frozen=True, slots=True)
class FetchOptions:
    """How a source may behave while it lists and fetches."""

    attempt: int | None = None
    """Attempt to take; None means the newest of each job."""
    max_wait: float = 300.0
    """Longest wait in seconds for a rate limit before it is reported instead."""
    wait: bool = False
    """Wait for a run that is still in progress."""
    workers: int = 32
    """Requests side by side."""
    cache: Path | None = None
    """Folder for answers kept between commands (ETags); None keeps none."""
    on_progress: Callable[[int, int, int], None] | None = None
    """Called with artifacts done, artifacts in all, bytes so far."""


class Source(Protocol):
    """A place candidates come from, bound to one run."""

    def describe(self) -> Run:
        """List the run with all its jobs and artifacts, every page.

        Raises
        ------
        SourceError
            The run itself cannot be had; what is wrong with single jobs goes to ``Run.problems``.
        """

    def fetch(self, artifacts: Sequence[Artifact]) -> Iterator[Fetched]:
        """Fetch the golden members of artifacts, side by side, in any order.

        Never raises for one artifact: its problem is in its :class:`~goldenctl.model.Fetched`.
        """


def time_of(text: str | None) -> datetime | None:
    """The moment a service or a manifest names in ISO 8601, UTC where it names no zone; None for none."""
    if not text:
        return None
    time = datetime.fromisoformat(text)
    return time if time.tzinfo else time.replace(tzinfo=UTC)


_SCHEMES = (
    (re.compile(r"https?://[^/]+/.+/-/(pipelines|jobs)/\d+"), "gitlab"),
    (re.compile(r"gitlab:"), "gitlab"),
    (re.compile(r"https?://[^/]+/[^/]+/[^/]+/actions/runs/\d+"), "github"),
    (re.compile(r"github:"), "github"),
    (re.compile(r"s3://"), "s3"),
    (re.compile(r"mlflow:"), "mlflow"),
    (re.compile(r"archive:"), "archive"),
)


def provider_of(ref: str, settings: Settings) -> str:
    """Which source module a run reference belongs to.

    Raises
    ------
    UsageError
        The reference is of no known form.
    """
    for pattern, provider in _SCHEMES:
        if pattern.match(ref):
            return provider
    if ref.isdecimal():
        return settings.ci.provider or _provider_here(settings)
    return "tree"


def _provider_here(settings: Settings) -> str:
    """The provider of a bare number, from the CI this runs in or the ``origin`` remote."""
    from goldenctl.sources import remote

    here = bool(os.environ.get("GITLAB_CI")) or "gitlab" in remote.host_of(settings.top)
    return "gitlab" if here else "github"


def lacking(what: str, error: ModuleNotFoundError, extra: str) -> UsageError:
    """What to say when the package of an extra is not installed."""
    return UsageError(
        f"{what} needs the package {error.name!r}, which is not installed", hint=f"pip install 'goldenctl[{extra}]'"
    )


def open_source(ref: str, settings: Settings, options: FetchOptions | None = None) -> Source:
    """The source of a run reference.

    Each source module has ``open(ref, settings, options) -> Source``.

    Raises
    ------
    UsageError
        The reference is of no known form, or its extra is not installed.
    """
    provider = provider_of(ref, settings)
    try:
        module = importlib.import_module(f"goldenctl.sources.{provider}")
    except ModuleNotFoundError as exc:
        if exc.name and exc.name.startswith("goldenctl"):
            raise UsageError(f"{ref}: source {provider!r} is not known") from exc
        raise lacking(ref, exc, provider) from exc
    source: Source = module.open(ref, settings, options or FetchOptions())
    return source
