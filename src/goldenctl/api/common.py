"""What several functions need: settings, what to fetch, admitted findings, a document's bytes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from goldenctl import config
from goldenctl.errors import UsageError
from goldenctl.model import Finding

if TYPE_CHECKING:
    from collections.abc import Callable

    from goldenctl.sources import FetchOptions

Admitted = frozenset[tuple[str, str]]
"""Rules with the metric whose findings are admitted."""


def settings_here(store: bool | None = None) -> config.Settings:
    """The settings around the current folder; ``store`` says which catalog is meant."""
    settings = config.load(Path.cwd())
    if store is None:
        return settings
    from goldenctl.catalog.places import preferring

    return preferring(settings, store)


def fetching(settings: config.Settings, attempt: int | None, max_wait: float, wait: bool) -> FetchOptions:
    """What to fetch of a run, and how long to wait for it."""
    from goldenctl.sources import FetchOptions

    return FetchOptions(attempt=attempt, max_wait=max_wait, wait=wait, cache=settings.cache_path)


def linter(settings: config.Settings) -> Callable[[str, bytes], list[Finding]]:
    """Path and bytes → findings, with these settings."""
    from goldenctl.lint import check

    return partial(_check, check, settings)


def _check(
    check: Callable[[str, bytes, config.Settings], list[Finding]], settings: config.Settings, path: str, raw: bytes
) -> list[Finding]:
    return check(path, raw, settings)


def content(document: bytes | str | Path) -> bytes:
    """A document's bytes.

    Raises
    ------
    UsageError
        It is a file that cannot be read.
    """
    if isinstance(document, bytes):
        return document
    try:
        return Path(document).read_bytes()
    except OSError as exc:
        raise UsageError(f"cannot be read: {exc.strerror}", place=str(document), hint="name a golden document") from exc


def admitted(allow: Sequence[str]) -> Admitted:
    """Rule and metric of each ``RULE:METRIC``; the metric is empty for findings that name none.

    Raises
    ------
    UsageError
        One does not begin with a rule.
    """
    found = [text.partition(":") for text in allow]
    for rule, colon, metric in found:
        if not rule.startswith("GV"):
            raise UsageError(f"--allow {rule}{colon}{metric} is not RULE:METRIC", hint="e.g. --allow 'GV001:iteration-time'")
    return frozenset((rule, metric) for rule, _, metric in found)
