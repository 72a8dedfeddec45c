"""Names and texts from anywhere as Markdown that shows them and nothing else."""

from __future__ import annotations

import re
from collections.abc import Iterable

_MARKS = re.compile(r"[\\`*_<>|\[\]]")


def escape(text: str) -> str:
    """Text on one line, its marks shown as they are."""
    return " ".join(_MARKS.sub(r"\\\g<0>", text).splitlines())


def prose(text: str) -> str:
    """As :func:`escape`, its underscores left alone: a sentence is read as text too, and emphasis harms nobody."""
    return escape(text).replace("\\_", "_")


def code(text: str) -> str:
    """Code on one line, fit for a table; plain text where a backtick would end it."""
    return escape(text) if "`" in text else f"`{' '.join(text.splitlines())}`".replace("|", "\\|")


def line(cells: Iterable[str]) -> str:
    """A line of a table."""
    return "| " + " | ".join(cells) + " |"
