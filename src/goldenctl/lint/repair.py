"""Mechanical repairs that lose no information: warm-up left out, grids recomputed, double encoding undone."""

from __future__ import annotations

import json
from collections.abc import Iterable

from goldenctl import edit
from goldenctl.config import Settings
from goldenctl.goldenfile import DocumentError, Series, decode, read
from goldenctl.lint import places
from goldenctl.lint.block import interval_of
from goldenctl.lint.check import check
from goldenctl.model import Finding, Fixed


def fix(path: str, raw: bytes, settings: Settings) -> Fixed:
    """Repair what can be repaired without a value being invented or lost.

    Parameters
    ----------
    path
        For the layout, ``_2nd`` files and messages; it is not read.
    raw
        The file's bytes.
    settings
        Rules left out by the settings are not repaired.

    Returns
    -------
    Fixed
        Never raises for bad content: what cannot be read is returned as it is.
    """
    repairs: list[str] = []
    content = _undo_double_encoding(raw, repairs)
    try:
        findings = check(path, content, settings)
        content = _leave_out_leading(content, findings, repairs)
        content = _recompute_grids(content, check(path, content, settings), repairs)
    except DocumentError:
        return Fixed(raw)
    return Fixed(content, tuple(repairs))


def _undo_double_encoding(raw: bytes, repairs: list[str]) -> bytes:
    try:
        if not decode(raw).twice:
            return raw
        inner: str = json.loads(raw)
    except (DocumentError, ValueError):
        return raw
    repairs.append("double encoding undone")
    return inner.encode("utf-8")


def _leave_out_leading(raw: bytes, findings: Iterable[Finding], repairs: list[str]) -> bytes:
    """Leave out leading non-finite steps, as upstream does with warm-up, and move ``start_step``."""
    counts = {f.metric: f.count for f in findings if f.rule == "GV001" and f.kind in (places.LEADING, places.SECOND_PHASE)}
    if not counts:
        return raw
    text = edit.spans(raw)
    series = {s.metric: s for s in read(raw).series if s.metric in counts and s.form == "object" and _plain(text, s)}
    counts = {metric: n for metric, n in counts.items() if metric in series and n < len(series[metric].steps)}
    raw = edit.drop_leading(raw, counts)
    starts = {metric: {"start_step": series[metric].steps[n]} for metric, n in counts.items()}
    for metric, n in counts.items():
        steps = series[metric].steps
        repairs.append(f"{metric!r}: {n} leading non-finite step{'s' if n > 1 else ''} left out, start_step now {steps[n]}")
    return edit.set_grid(raw, starts)


def _plain(text: edit.Text, series: Series) -> bool:
    """Whether every member of the block is a step of the series, so that the first members are its first steps."""
    block = text.find(series.metric)
    values = block.get("values") if block else None
    return values is not None and len(values.members or ()) == len(series.steps)


def _recompute_grids(raw: bytes, findings: Iterable[Finding], repairs: list[str]) -> bytes:
    wrong = {f.metric for f in findings if f.rule == "GV004" and f.kind in ("start", "end", "interval")}
    if not wrong:
        return raw
    grids = {s.metric: _grid(s) for s in read(raw).series if s.metric in wrong and s.form == "object" and s.steps}
    for metric, grid in grids.items():
        repairs.append(f"{metric!r}: grid recomputed, {', '.join(f'{k} {v}' for k, v in grid.items())}")
    return edit.set_grid(raw, grids)


def _grid(series: Series) -> dict[str, int]:
    grid = {"start_step": series.steps[0], "end_step": series.steps[-1]}
    own = interval_of(series.steps)
    return grid | ({"step_interval": own} if own else {})
