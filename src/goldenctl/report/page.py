"""A report as one HTML file: no request leaves it, and no name in it becomes markup."""

from __future__ import annotations

import base64
import hashlib
import math
import re
from collections.abc import Sequence
from importlib import resources
from typing import Any

import orjson

from goldenctl.compare import MetricDiff
from goldenctl.report.curves import Curve, curve
from goldenctl.report.figures import pair, percent, size, steps
from goldenctl.report.heat import heat_map
from goldenctl.report.model import Entry, Metric, Report
from goldenctl.version import __version__

BYTES = 2_300_000
"""What all curves together may take, so that the report of a large refresh stays below 3 MB."""
BYTES_A_STEP = 30
"""Of one step of a curve, as JSON: the step, two values, their relative difference."""
FEWEST, MOST = 24, 480
"""Bounds of a curve's steps: less shows no shape, more than a plot has room for."""
METRICS = 40
"""Metrics of one golden that get a line in its details; of them the first half get curves."""


def html(report: Report) -> str:
    """The report as one HTML document; needs the extra ``report``."""
    import jinja2

    style, script = _asset("page.css"), _asset("page.js")
    environment = jinja2.Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined)
    environment.filters |= {"size": size, "pair": pair, "breakable": _breakable}
    template = environment.from_string(_asset("page.html.jinja"))
    return template.render(
        report=report,
        heat=heat_map(report.entries),
        counts=summary(report),
        link=link,
        style=style,
        script=script,
        hashes=(_hash(style), _hash(script)),
        data=embedded(data(report)),
        version=__version__,
    )


def _breakable(text: str) -> str:
    """Escaped text that may be broken after a slash or an underscore."""
    from markupsafe import Markup, escape  # comes with jinja2

    return Markup(re.sub(r"([/_])", r"\1<wbr>", str(escape(text))))  # noqa: S704 - escaped just here


def _asset(name: str) -> str:
    return resources.files("goldenctl.report").joinpath(name).read_text("utf-8")


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def embedded(value: Any) -> str:
    """JSON for a script element: nothing in it can end the element or begin a comment."""
    text = orjson.dumps(value, option=orjson.OPT_NON_STR_KEYS).decode()
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def link(url: str) -> str:
    """The address when it is one of the web; empty otherwise, so that no ``javascript:`` becomes a link."""
    return url if url.startswith(("https://", "http://")) else ""


def summary(report: Report) -> list[tuple[str, int]]:
    """What the numbers at the top say, in their order."""
    metrics = [m for e in report.entries for m in e.metrics]
    beyond = sum(1 for e in report.entries if any(m.verdict == "different" for m in e.metrics) and e.status == "changed")
    introduced = sum(max(m.new_nonfinite, 0) for m in metrics)
    repaired = sum(max(-m.new_nonfinite, 0) for m in metrics if m.diff.n_obtained)
    figures = [("the same", report.same), ("beyond tolerance", beyond), ("new NaN", introduced), ("repaired NaN", repaired)]
    return [*report.counts.items(), *((name, n) for name, n in figures if n or name == "beyond tolerance")]


def data(report: Report) -> list[dict[str, Any]]:
    """What the page's script draws: one object an entry, in the report's order."""
    drawn = [[m for m in e.differing[: METRICS // 2] if _has_curve(m)] for e in report.entries]
    total = sum(map(len, drawn)) or 1
    limit = min(max(BYTES // BYTES_A_STEP // total, FEWEST), MOST)
    return [_entry(e, metrics, limit) for e, metrics in zip(report.entries, drawn, strict=True)]


def _has_curve(metric: Metric) -> bool:
    return max((len(s.steps) for s in (metric.golden, metric.obtained) if s), default=0) > 1


def _entry(entry: Entry, drawn: Sequence[Metric], limit: int) -> dict[str, Any]:
    names = {m.name for m in drawn}
    rows = [_metric(m) | (_curve(m, limit) if m.name in names else {}) for m in entry.differing[:METRICS]]
    return {
        "path": entry.path,
        "note": entry.note,
        "facts": [[f.name, f.text, link(f.url)] for f in entry.facts],
        "metrics": rows,
        "more": len(entry.differing) - len(rows),
        "same": [m.name for m in entry.metrics if m.diff.exact][:METRICS],
    }


def _metric(metric: Metric) -> dict[str, Any]:
    diff = metric.diff
    return {
        "name": diff.metric,
        "verdict": metric.verdict,
        "steps": steps(diff),
        "size": size(metric),
        "max": percent(diff.max_rel_diff),
        "mean": percent(diff.signed_mean_rel_diff),
        "place": _place(diff),
        "pair": pair(metric),
        "nan": [diff.nonfinite_golden, diff.nonfinite_obtained],
    }


def _place(diff: MetricDiff) -> int | None:
    return diff.worst_step if diff.worst_step is not None else diff.first_differing


def _curve(metric: Metric, limit: int) -> dict[str, Any]:
    drawn: Curve = curve(metric.golden, metric.obtained, limit)
    return {
        "s": drawn.steps,
        "a": [_digits(v, 7) for v in drawn.golden],
        "b": [_digits(v, 7) for v in drawn.obtained],
        "r": [_digits(v, 4) for v in drawn.relative],
        "na": drawn.marks_golden,
        "nb": drawn.marks_obtained,
    }


def _digits(value: float, digits: int) -> float | int | None:
    """The value with as many digits as a plot can show, in its shortest spelling; None for NaN."""
    if not math.isfinite(value):
        return None
    short = float(f"{value:.{digits}g}")
    return int(short) if short.is_integer() and abs(short) < 1e15 else short
