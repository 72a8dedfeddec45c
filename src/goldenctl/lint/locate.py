"""Lines of findings, for annotations in a code review."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from goldenctl import edit
from goldenctl.goldenfile import DocumentError
from goldenctl.model import Finding


def located(findings: Iterable[Finding], top: Path) -> list[Finding]:
    """Findings with the line of their first step or metric; 1 where the file cannot be scanned.

    Parameters
    ----------
    findings
        Of any number of files.
    top
        Folder the paths are relative to; each file is scanned once.
    """
    texts: dict[str, edit.Text | None] = {}
    out = []
    for item in findings:
        if item.path not in texts:
            texts[item.path] = _scan(top / item.path)
        out.append(item if item.line else replace(item, line=_line(texts[item.path], item)))
    return out


def _scan(path: Path) -> edit.Text | None:
    try:
        return edit.spans(path.read_bytes())
    except (DocumentError, OSError):
        return None


def _line(text: edit.Text | None, item: Finding) -> int:
    if text is None or not item.metric:
        return 1
    node = text.find(item.metric, item.steps[0]) if item.steps else None
    node = node or text.find(item.metric)
    return text.line(node) if node else 1
