"""Repair only what is wrong in a golden file and keep every other byte of it."""

from __future__ import annotations

import math
from collections.abc import Mapping

from goldenctl import compare, edit, goldenfile
from goldenctl.config import Settings
from goldenctl.goldenfile import Document, DocumentError
from goldenctl.refresh.options import Options, Scope


class ScopeError(ValueError):
    """A repair of this scope is not possible; the message is the reason."""


def scoped(old: bytes, new: bytes, path: str, settings: Settings, options: Options) -> tuple[bytes, tuple[str, ...]]:
    """The golden with its bad metrics or values taken from the candidate.

    Parameters
    ----------
    old, new
        Bytes of the golden and of the candidate.
    path
        Golden path, for tolerances.
    settings, options
        Scope, and whether values of two producers may stand side by side.

    Returns
    -------
    tuple
        The new bytes of the golden and the metrics changed in it; the old bytes and no metric when
        nothing is wrong.

    Raises
    ------
    ScopeError
        The golden cannot be read, the candidate lacks a needed value, or what is kept disagrees
        with the candidate beyond tolerance.
    """
    golden, candidate = _read(old), goldenfile.read(new)
    bad = {s.metric: [n for n, v in zip(s.steps, s.values, strict=True) if not math.isfinite(v)] for s in golden.series}
    bad = {metric: steps for metric, steps in bad.items() if steps}
    if not bad:
        return old, ()
    if not options.allow_mixed:
        _agree(golden, candidate, bad, path, settings, options.scope)
    repaired = _values(old, new, candidate, bad) if options.scope is Scope.VALUE else _metrics(old, new, candidate, bad)
    return repaired, tuple(bad)


def _read(old: bytes) -> Document:
    try:
        return goldenfile.read(old)
    except DocumentError as exc:
        raise ScopeError(f"the golden cannot be repaired in part: {exc}; use --scope file") from exc


def _agree(
    golden: Document, candidate: Document, bad: Mapping[str, list[int]], path: str, settings: Settings, scope: Scope
) -> None:
    """Refuse to mix two producers: what is kept must be what the candidate's run would give."""
    for diff in compare.compare(candidate, golden, lambda m: settings.tolerance_for(m, path)):
        kept_whole = diff.metric not in bad
        if kept_whole and not diff.approximate:
            raise ScopeError(f"{diff.metric!r} would be kept and disagrees with the candidate; --allow-mixed takes it")
        if not kept_whole and scope is Scope.VALUE:
            _agree_at_kept_steps(golden, candidate, diff.metric, bad[diff.metric], path, settings)


def _agree_at_kept_steps(
    golden: Document, candidate: Document, metric: str, bad: list[int], path: str, settings: Settings
) -> None:
    kept, given = golden.metric(metric), candidate.metric(metric)
    if kept is None or given is None:
        return
    tolerance = settings.tolerance_for(metric, path)
    values = dict(zip(given.steps, given.values, strict=True))
    for step, value in zip(kept.steps, kept.values, strict=True):
        if step in values and step not in bad and abs(values[step] - value) > tolerance.atol + tolerance.rtol * abs(value):
            raise ScopeError(
                f"step {step} of {metric!r} would be kept and disagrees with the candidate; --allow-mixed takes it"
            )


def _metrics(old: bytes, new: bytes, candidate: Document, bad: Mapping[str, list[int]]) -> bytes:
    for metric in bad:
        if candidate.metric(metric) is None:
            raise ScopeError(f"the candidate has no metric {metric!r}")
        old = edit.replace_metric(old, metric, new)
    return old


def _values(old: bytes, new: bytes, candidate: Document, bad: Mapping[str, list[int]]) -> bytes:
    for metric, steps in bad.items():
        series = candidate.metric(metric)
        gone = sorted(set(steps) - set(series.steps if series else ()))
        if gone:
            raise ScopeError(f"the candidate has no value for step {gone[0]} of {metric!r}; use --scope metric")
    text = edit.spans(new)
    found = {(metric, step): text.find(metric, step) for metric, steps in bad.items() for step in steps}
    return edit.replace_values(old, {place: text.of(node) for place, node in found.items() if node is not None})
