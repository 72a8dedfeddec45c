"""Which files below root are goldens, and whose."""

from __future__ import annotations

from functools import lru_cache

from goldenctl.config import Settings
from goldenctl.layout import Layout
from goldenctl.model import GoldenKey


@lru_cache(maxsize=4)
def _layout(template: str) -> Layout:
    return Layout(template)


def key_of(settings: Settings, path: str) -> GoldenKey | None:
    """The key of a golden by the layout, older spellings included; None when the path fits neither."""
    layout = _layout(settings.layout)
    below = path.removeprefix(settings.root).removeprefix("/")
    return layout.parse(below) or layout.parse_legacy(below)


def is_golden(settings: Settings, path: str) -> bool:
    """Whether a path below root is a golden file; misnamed ones count by the beginning of their name."""
    return key_of(settings, path) is not None or path.rsplit("/", 1)[-1].startswith("golden_values")
