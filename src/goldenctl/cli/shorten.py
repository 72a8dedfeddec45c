"""Tables that fit: names lose their middle, where test cases differ least, and columns that can be spared are left out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

NAMES = frozenset({"golden", "case", "path", "file"})
"""Headers of columns that hold names of goldens, the only ones that are shortened; all else folds."""
LEAST = 20
"""Characters of a name that are always kept."""
SHARE = 0.35
"""Of the window, what a name shall have before columns that can be spared get room."""
WORD = 16
"""Columns up to this width hold single words and numbers, which are never folded."""
PHRASE = 32
"""Columns up to this width keep to one line where there is room."""
FOLDED = 12
"""Least width of a column that folds."""
WEIGHT = 60
"""Width at which a long column's claim to the window ends."""
GAP = 3
"""Blanks and rule between two columns of a table."""
EDGES = 2


@dataclass(frozen=True, slots=True)
class Fitted:
    """A table as it is shown."""

    widths: dict[int, int]
    """Index of each column that is shown, in order → its width."""
    rows: list[list[str]]
    """Cells of these columns."""
    readable: bool
    """Whether the window has room for the least of each column."""


def below_root(path: str) -> str:
    """Model, case and file: what is below root in the usual layout."""
    return "/".join(path.rsplit("/", 3)[-3:])


def middle(text: str, width: int) -> str:
    """``text`` in at most ``width`` characters.

    First goes what every golden's path has, ``golden_values_`` and ``.json``, then the middle.
    """
    if len(text) <= width:
        return text
    plain = text.replace("/golden_values_", "/").removesuffix(".json")
    if len(plain) <= width:
        return plain
    head = max(0, width - 1) // 2
    return f"{plain[:head]}…{plain[len(plain) - max(0, width - 1 - head) :]}"


def fit(columns: Sequence[str], rows: Sequence[Sequence[str]], width: int, spare: Sequence[int] = ()) -> Fitted:
    """The table for a window of ``width`` columns.

    Parameters
    ----------
    spare
        Columns that may be left out, the first one first, where the others would get too narrow to be read.
    """
    natural = [max([len(c), *(len(r[i]) for r in rows)]) for i, c in enumerate(columns)]
    least = [_least(c, n) for c, n in zip(columns, natural, strict=True)]
    wanted = [
        min(n, max(low, int(width * SHARE))) if c in NAMES else low for c, n, low in zip(columns, natural, least, strict=True)
    ]
    kept = list(range(len(columns)))
    for i in spare:
        if _total([wanted[k] for k in kept]) > width:
            kept.remove(i)
    widths = dict(zip(kept, _shared([natural[i] for i in kept], [least[i] for i in kept], width), strict=True))
    names = {i for i in kept if columns[i] in NAMES}
    shown = [[middle(row[i], widths[i]) if i in names else row[i] for i in kept] for row in rows]
    return Fitted(widths, shown, _total(list(widths.values())) <= width)


def _least(column: str, natural: int) -> int:
    """The width below which a column cannot be read."""
    if column in NAMES:
        return min(natural, LEAST)
    return natural if natural <= WORD else max(FOLDED, len(column) if " " not in column else 0)


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + GAP * (len(widths) - 1) + EDGES


def _shared(natural: Sequence[int], least: Sequence[int], width: int) -> list[int]:
    """Widths that fill the window: each column its least, and of the rest a share by what it would like to have."""
    if _total(natural) <= width:
        return list(natural)
    low = list(least)
    for i in sorted(range(len(natural)), key=natural.__getitem__):  # a phrase in one line before a whole name or sentence
        if natural[i] <= PHRASE and _total(low) + natural[i] - low[i] <= width:
            low[i] = natural[i]
    rest = max(0, width - _total(low))
    wishes = [min(n, max(WEIGHT, kept)) - kept for n, kept in zip(natural, low, strict=True)]
    return [kept + rest * wish // max(1, sum(wishes), rest) for kept, wish in zip(low, wishes, strict=True)]
