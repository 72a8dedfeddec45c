"""Words of messages that several rooms need."""

from __future__ import annotations

from collections.abc import Iterable


def nearest(word: str, known: Iterable[str], cutoff: float = 0.6) -> str:
    """The known word that is most like ``word``; empty when none is as like as ``cutoff`` (0 anything, 1 the same)."""
    import difflib  # loaded only to help

    return next(iter(difflib.get_close_matches(word, list(known), n=1, cutoff=cutoff)), "")


def first_steps(steps: Iterable[int]) -> str:
    """The first few steps as text: ``3, 4, 5, 6, 7, … (12 in all)``."""
    known = sorted(steps)
    shown = ", ".join(map(str, known[:5]))
    return shown if len(known) <= 5 else f"{shown}, … ({len(known)} in all)"
