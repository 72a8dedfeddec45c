"""GV010 and GV008: what a changed file lost against a revision."""

from __future__ import annotations

import math
from collections.abc import Iterator

from goldenctl.config import Settings
from goldenctl.goldenfile import Document, DocumentError, Series, read
from goldenctl.lint.rules import finding, for_path
from goldenctl.model import Finding

FULL = "full"
"""The precision marker of unrounded values."""


def check_against(path: str, new: bytes, old: bytes | None, rev: str, settings: Settings) -> list[Finding]:
    """Findings of a change.

    Parameters
    ----------
    path
        Golden path.
    new, old
        Bytes now and at the revision; None when it was not there.
    rev
        The revision as the user named it, for messages.
    settings
        Rules and tolerances.

    Returns
    -------
    list of Finding
        Empty for an unchanged file, and for one that cannot be read (GV002 says that).
    """
    codes = for_path(settings.lint, path)
    if new == old or codes.isdisjoint({"GV008", "GV010"}):
        return []
    try:
        document = read(new)
        before = read(old) if old else None
    except DocumentError:
        return []
    found = list(_losses(path, document, before, rev)) if before is not None and "GV010" in codes else []
    return found + (list(_rounded(path, document, settings)) if "GV008" in codes else [])


def _losses(path: str, new: Document, old: Document, rev: str) -> Iterator[Finding]:
    for before in old.series:
        now = new.metric(before.metric)
        if now is None:
            yield _lost(path, before.metric, f"{before.metric!r} is there at {rev} and gone now", "vanished")
            continue
        yield from _series_losses(path, now, before, rev)


def _series_losses(path: str, now: Series, before: Series, rev: str) -> Iterator[Finding]:
    metric = now.metric
    finite = {s for s, v in zip(before.steps, before.values, strict=True) if math.isfinite(v)}
    gone = sorted(finite - set(now.steps))
    if gone:
        message = f"{metric!r} has {len(gone)} of {len(finite)} steps less than at {rev}, from step {gone[0]}"
        yield _lost(path, metric, message, "shrank", gone)
    clean = not before.non_finite
    worse = [s for s, v in zip(now.steps, now.values, strict=True) if not math.isfinite(v) and (clean or s in finite)]
    if worse:
        message = f"{metric!r} is finite at {rev} and not now in {len(worse)} steps, from step {worse[0]}"
        yield _lost(path, metric, message, "non-finite", worse)
    if before.precision == FULL and now.precision != FULL:
        yield _lost(
            path, metric, f"{metric!r} had full precision at {rev} and is {now.precision or 'rounded'} now", "precision"
        )


def _lost(path: str, metric: str, message: str, kind: str, steps: list[int] | None = None) -> Finding:
    return finding("GV010", path, metric, message, count=len(steps or [0]), steps=tuple(steps or ()), kind=kind)


def _rounded(path: str, document: Document, settings: Settings) -> Iterator[Finding]:
    from goldenctl import testconfig  # reads YAML, which only this rule needs

    config = testconfig.beside(settings.top / path)
    if config and config.approximate_only:
        return
    required = set(config.metrics) if config else set()
    for series in document.series:
        compared = settings.tolerance_for(series.metric, path).exact and (not required or series.metric in required)
        if compared and series.form == "object" and series.precision != FULL:
            message = f"{series.metric!r} is compared exactly and has no value_precision: full"
            yield finding("GV008", path, series.metric, message, kind="precision")
