"""Golden documents: reading, linting, repairing, comparing, cataloguing and editing them."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from goldenctl import edit
from goldenctl.catalog.rows import batches
from goldenctl.compare import compare, equal
from goldenctl.config import LintSettings, Settings, Tolerance
from goldenctl.goldenfile import Document, DocumentError, Shape, read, shape_of
from goldenctl.jsonnumbers import to_number
from goldenctl.lint import check, check_against, fix
from goldenctl.lint.rules import RULES
from tests.fuzz.chosen import Chosen

PATH = "goldens/moe/a/golden_values_dev_dgx_h100.json"
SETTINGS = Settings(Path("/nowhere"), root="goldens", lint=LintSettings(select=tuple(RULES)))


def _read(raw: bytes) -> Document | None:
    try:
        return read(raw)
    except DocumentError:
        return None


def document(data: bytes) -> bool:
    """One document through everything that reads it; its numbers are those the standard library reads."""
    found = _read(data)
    findings = check(PATH, data, SETTINGS)
    assert found is not None or any(f.rule in ("GV002", "GV003") for f in findings), "unreadable, yet lint is silent"
    fixed = fix(PATH, data, SETTINGS)
    assert fixed.repairs or fixed.content == data, "changed without a word"
    for _ in batches([("0" * 40, data)]):
        pass
    if found is None:
        return False
    assert all(len(s.steps) == len(s.values) for s in found.series)
    assert equal(found, found)
    compare(found, found, lambda _metric: Tolerance())
    if found.shape is Shape.METRICS and not found.decoded.twice:
        _agrees(found, data)
    return True


def _agrees(found: Document, raw: bytes) -> None:
    """The series are those of a plain reading of the same JSON."""
    value = json.loads(raw)
    assert shape_of(value) is Shape.METRICS
    for metric, block in value.items():
        values = block.get("values") if isinstance(block, dict) else None
        if not isinstance(values, dict):
            continue
        series = found.metric(metric)
        assert series is not None, metric
        wanted = [(int(k), to_number(v)) for k, v in values.items() if _is_step(k) and to_number(v) is not None]
        assert [s for s, _ in wanted] == list(series.steps), metric
        for (_, a), b in zip(wanted, series.values, strict=True):
            assert a == b or (a is not None and math.isnan(a) and math.isnan(b)), (metric, a, b)


def _is_step(key: str) -> bool:
    try:
        int(key)
    except ValueError:
        return False
    return True


def pair(data: bytes) -> bool:
    """Two documents, one behind the other: compared, linted against each other."""
    cut = data.find(b"\n\n")
    old, new = (data[:cut], data[cut + 2 :]) if cut >= 0 else (data, data)
    check_against(PATH, new, old, "main", SETTINGS)
    a, b = _read(old), _read(new)
    if a is None or b is None:
        return False
    compare(a, b, lambda _metric: Tolerance())
    assert equal(a, b) == equal(b, a)
    return True


def edits(data: bytes) -> bool:
    """Write-back: what is asked for changes, every other byte stays."""
    chosen = Chosen(data)
    what, number, other = chosen.below(4), chosen.byte(), chosen.byte()
    raw = chosen.rest()
    try:
        text = edit.spans(raw)
    except DocumentError:
        return False
    metrics = [m.key for m in text.root.members or [] if m.value.members is not None]
    if not metrics:
        return False
    metric = metrics[number % len(metrics)]
    steps = list(text.steps(metric))
    if what == 0 and steps:
        _value(raw, metric, steps[other % len(steps)])
    elif what == 1:
        assert _same_value(edit.replace_metric(raw, metric, raw), raw), "a block replaced by itself"
    elif what == 2:
        edit.spans(edit.drop_leading(raw, {metric: other}))
    else:
        edit.spans(edit.set_grid(raw, {metric: {"start_step": other, "end_step": number, "step_interval": 1}}))
    return True


def _value(raw: bytes, metric: str, step: int) -> None:
    text = edit.spans(raw)
    node = text.find(metric, step)
    assert node is not None
    start, end = (len(text.text[:at].encode()) for at in (node.start, node.end))
    changed = edit.replace_values(raw, {(metric, step): "-12345.5"})
    assert changed == raw[:start] + b"-12345.5" + raw[end:]
    again = edit.spans(changed)
    there = again.find(metric, step)
    assert there is not None
    assert again.of(there) == "-12345.5"


def _same_value(a: bytes, b: bytes) -> bool:
    try:
        return repr(_plain(a)) == repr(_plain(b))
    except (ValueError, RecursionError):  # what only the scanner takes, such as bare words it knows
        return True


def _plain(raw: bytes) -> Any:
    return json.loads(raw)
