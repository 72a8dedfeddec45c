"""A report as Markdown for a pull request: the worst rows, the rest folded."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from goldenctl.markdown import code, escape, line
from goldenctl.report.figures import pair, size, steps
from goldenctl.report.model import Entry, Metric, Report
from goldenctl.report.page import link, summary

SHOWN = 10
"""Goldens before the fold."""
LENGTH = 60_000
"""Characters; a pull request's text may have 65,536."""
COLUMNS = ("golden", "platform", "", "worst metric", "steps", "difference", "old → new", "NaN", "verdict")


def markdown(report: Report) -> str:
    """The report as Markdown; rows that would not fit are counted."""
    head = [f"## {escape(report.title)}", f"{code(report.old)} → {code(report.new)}: {_counts(report)}"]
    if report.facts:
        head.append("\n".join(f"- {escape(f.name)}: {_linked(f.text, f.url)}" for f in report.facts))
    if report.problems:
        head.append("\n".join(["**Could not be had**", "", *(f"- {escape(p)}" for p in report.problems)]))
    entries, folded = report.entries[:SHOWN], report.entries[SHOWN:]
    if entries:
        head.append(_table(report, entries))
    head += _refused(entries)
    text = "\n\n".join(head)
    return text + _fold(report, folded, LENGTH - len(text)) + "\n"


def _counts(report: Report) -> str:
    return ", ".join(f"{n} {escape(name)}" for name, n in summary(report) if n) or "nothing differs"


def _fold(report: Report, entries: Sequence[Entry], room: int) -> str:
    if not entries:
        return ""
    rows = [_row(report, e) for e in entries]
    kept = 0
    for row in rows:
        room -= len(row) + 1
        if room < 0:
            break
        kept += 1
    body = "\n".join([*_header(report), *rows[:kept]])
    rest = f"\n\n{len(rows) - kept} more goldens are in the HTML report." if kept < len(rows) else ""
    return f"\n\n<details><summary>{len(rows)} more goldens</summary>\n\n{body}{rest}\n\n</details>"


def _table(report: Report, entries: Iterable[Entry]) -> str:
    return "\n".join([*_header(report), *(_row(report, e) for e in entries)])


def _header(report: Report) -> list[str]:
    names = [c or "status" for c in COLUMNS if c or report.labelled]
    right = ("steps", "difference", "NaN")
    return [line(names), line("---:" if n in right else "---" for n in names)]


def _row(report: Report, entry: Entry) -> str:
    worst = entry.worst
    cells = [code(entry.case), escape(entry.platform), *([escape(entry.label)] if report.labelled else [])]
    return line([*cells, *(_metric(worst) if worst else [escape(_plain(entry)), "", "", "", ""]), _verdict(entry)])


def _metric(worst: Metric) -> list[str]:
    diff = worst.diff
    nan = f"{diff.nonfinite_golden} → {diff.nonfinite_obtained}" if diff.nonfinite_golden or diff.nonfinite_obtained else ""
    return [escape(worst.name), steps(diff), size(worst), pair(worst), nan]


def _plain(entry: Entry) -> str:
    return entry.note if len(entry.note) <= 80 else entry.note[:79] + "…"


def _verdict(entry: Entry) -> str:
    return entry.status if entry.status != "changed" or entry.worst is None else entry.worst.verdict


def _refused(entries: Iterable[Entry]) -> list[str]:
    notes = [f"- {code(e.case)} {escape(e.platform)}: {escape(e.note)}" for e in entries if e.note and e.worst]
    return ["\n".join(notes)] if notes else []


def _linked(text: str, url: str) -> str:
    return f"[{escape(text)}](<{link(url)}>)" if link(url) and not set("<>\n") & set(url) else escape(text)
