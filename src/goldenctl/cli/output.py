"""The two streams: stdout carries the result, stderr everything else.

Light on purpose: rich is imported only when a table is drawn.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Literal

from goldenctl.markdown import escape, line

if TYPE_CHECKING:
    from rich.console import Console

    from goldenctl.cli.shorten import Fitted


class Format(StrEnum):
    """How a result is printed."""

    TABLE = "table"
    JSON = "json"
    MARKDOWN = "markdown"


MEANING = (
    dict.fromkeys(("error", "different", "unreadable", "refused", "missing", "removed", "lost", "FAIL"), "red")
    | dict.fromkeys(("warning", "close", "overwritten", "mixed"), "yellow")
    | dict.fromkeys(("identical", "equal", "written", "pass"), "green")
)
"""Cells that are coloured: red asks for work, yellow for a look, green for nothing."""


_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_COMMAND = re.compile(r"^(\s*)::|##\[", re.MULTILINE)


def _uncontrolled(text: str) -> str:
    return _CONTROL.sub(lambda m: f"\\u{ord(m[0]):04x}", text)


def harmless(text: str) -> str:
    r"""Text without what a terminal or a CI's log would obey: control signs are spelled, commands broken.

    Names of files and jobs come from anywhere; ``\u001b`` is what JSON writes too.
    """
    return _COMMAND.sub(lambda m: "#\\#[" if m[0] == "##[" else f"{m[1]}\\::", _uncontrolled(text))


def result(text: str, *, commands: bool = False) -> None:
    """Print a piece of the result; ``commands`` are workflow commands, meant for the CI."""
    text = _uncontrolled(text) if commands else harmless(text)
    sys.stdout.write(text if text.endswith("\n") else text + "\n")


def json(value: Any) -> None:
    """Print a result as indented JSON; non-finite floats become null, bytes hexadecimal."""
    import orjson

    option = orjson.OPT_INDENT_2 | orjson.OPT_NON_STR_KEYS
    try:
        text = orjson.dumps(value, _plain, option)
    except TypeError:  # a name that is not UTF-8
        text = orjson.dumps(_spelled(value), _plain, option)
    result(text.decode())


def _plain(value: Any) -> Any:
    """What JSON has no word for; a sum in SQL is a number of 128 bits."""
    from decimal import Decimal

    if isinstance(value, Decimal):
        return int(value) if value == int(value) and abs(value) < 2**63 else float(value)
    return value.hex() if isinstance(value, bytes) else str(value)


def _spelled(value: Any) -> Any:
    r"""The value with the bytes of names that are no UTF-8 spelled as ``\udcff``."""
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, dict):
        return {_spelled(k): _spelled(v) for k, v in value.items()}
    return [_spelled(v) for v in value] if isinstance(value, list | tuple) else value


def listed(name: str, lines: Sequence[str], form: Format) -> None:
    """Print a result that is a list of sentences or names: one a line, or under ``name``."""
    if form is Format.JSON:
        json({name: list(lines)})
    else:
        result("\n".join(f"- {line}" if form is Format.MARKDOWN else line for line in lines))


def note(text: str) -> None:
    """Say something that is neither result nor error."""
    print(harmless(text), file=sys.stderr)


def error(text: str) -> None:
    """Say what went wrong: the fact, the place, the next command."""
    print(harmless(f"error: {text}"), file=sys.stderr)


def terminal(stream: Any = None) -> bool:
    """Whether a person looks at the stream: a terminal, and not CI."""
    return bool((stream or sys.stdout).isatty()) and not os.environ.get("CI")


def table(
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    right: Sequence[int] = (),
    title: str = "",
    spare: Sequence[int] = (),
    form: Format = Format.TABLE,
) -> None:
    """Print rows as a table that fits the window, or cell by cell where it has no room for the columns; or as Markdown.

    Parameters
    ----------
    columns, rows
        Headers and cells; cells are plain text, markup in them is not interpreted. Names of goldens lose their
        middle where the window is too narrow; on a terminal, words of :data:`MEANING` have their colour.
    right
        Indices of columns aligned to the right.
    spare
        Indices of columns to leave out where the window is too narrow, the first one first.
    form
        ``MARKDOWN`` takes no note of ``title`` and ``spare``.
    """
    if form is Format.MARKDOWN:
        result(markdown(columns, rows, right=right))
        return
    from rich.console import Console

    from goldenctl.cli.shorten import fit

    asked = os.environ.get("COLUMNS", "")
    width = None if terminal() else (int(asked) if asked.isdecimal() else 0) or _natural_width(columns, rows)
    console = Console(file=sys.stdout, width=width, highlight=False, no_color=None if terminal() else True)
    rows = [[harmless(cell) for cell in row] for row in rows]
    fitted = fit(columns, rows, console.width, spare)
    if not fitted.readable:
        _stacked(console, columns, rows, title)
        return
    _drawn(console, columns, fitted, right, title)
    left_out = [c for i, c in enumerate(columns) if i not in fitted.widths]
    if left_out:
        note(f"the window has no room for {', '.join(left_out)}: widen it, or --format json")


def _drawn(console: Console, columns: Sequence[str], fitted: Fitted, right: Sequence[int], title: str) -> None:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    drawn = Table(box=box.SIMPLE_HEAD, title=title or None, title_justify="left", pad_edge=False)
    for i, room in fitted.widths.items():
        side: Literal["left", "right"] = "right" if i in right else "left"
        drawn.add_column(columns[i], justify=side, overflow="fold", width=room)
    for row in fitted.rows:
        drawn.add_row(*(Text(cell, style=MEANING.get(cell, "")) for cell in row))
    console.print(drawn)


def _stacked(console: Console, columns: Sequence[str], rows: Sequence[Sequence[str]], title: str) -> None:
    """One line a cell that says something, and an empty one after each row."""
    from rich.text import Text

    lines = [Text(title), Text("")] if title else [Text("")]
    wide = max(map(len, columns))
    for row in rows:
        named = [(name, cell) for name, cell in zip(columns, row, strict=True) if cell]
        lines += [*(Text.assemble(f"{name:<{wide}}  ", (cell, MEANING.get(cell, ""))) for name, cell in named), Text("")]
    for text in lines:
        console.print(text, soft_wrap=True)


def _natural_width(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> int:
    """Wide enough that nothing is folded in a pipe, where a reader greps whole paths."""
    widths = [max([len(c), *(len(r[i]) for r in rows)]) for i, c in enumerate(columns)]
    return max(80, sum(widths) + 3 * len(widths))


def markdown(columns: Sequence[str], rows: Sequence[Sequence[str]], *, right: Sequence[int] = ()) -> str:
    """Rows as a Markdown table; ``|`` and markup in cells are escaped."""
    rule = ["---:" if i in right else "---" for i in range(len(columns))]
    lines = [columns, rule, *([escape(c) for c in row] for row in rows)]
    return "\n".join(map(line, lines)) + "\n"
