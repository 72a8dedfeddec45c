"""A golden document made again from the rows a catalog keeps of it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

Row = tuple[str, str, int | None, int | None, int | None, str | None, list[int], list[float]]
"""Metric, form, start_step, end_step, step_interval, precision, steps, values."""


def document(shape: str, rows: Iterable[Row], texts: Mapping[str, str]) -> bytes:
    """JSON with the same metrics, steps, values and texts as the document the rows were made of; other bytes.

    Parameters
    ----------
    shape
        ``document.shape`` of the catalog.
    rows
        Series in file order.
    texts
        Name → compact JSON text, of what is not a number.
    """
    top: dict[str, Any] = {}
    for name, value in [*((r[0], _value(r)) for r in rows), *((n, json.loads(t)) for n, t in texts.items())]:
        request, dot, field = name.partition(".")
        if shape == "inference" and dot and field:
            top.setdefault(request, {})[field] = value
        else:
            top[name] = value
    return json.dumps(top).encode()


def _value(row: Row) -> Any:
    _, form, start, end, interval, precision, steps, values = row
    if form == "scalar":
        return values[0]
    if form == "vector":
        return values
    marker = {"value_precision": precision} if precision else {}
    grid = {"start_step": start, "end_step": end, "step_interval": interval}
    return grid | marker | {"values": dict(zip(map(str, steps), values, strict=True))}
