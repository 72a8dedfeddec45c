"""The rules by code: severity, whether opt in, and what each finds."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from goldenctl.config import LintSettings
from goldenctl.errors import UsageError
from goldenctl.model import Finding, Severity
from goldenctl.words import nearest


@dataclass(frozen=True, slots=True)
class Rule:
    """One lint rule."""

    code: str
    severity: Severity
    finds: str
    """What it finds, one line, as ``goldenctl lint --list-rules`` prints it."""
    opt_in: bool = False


_ERROR, _WARNING = Severity.ERROR, Severity.WARNING
RULES = {
    r.code: r
    for r in (
        Rule("GV001", _ERROR, "non-finite: nan, inf, infinity as text or number, numbers that overflow"),
        Rule("GV002", _ERROR, "not JSON, not UTF-8, encoded twice, conflict markers, or no known document shape"),
        Rule("GV003", _ERROR, "empty: zero bytes, {}, a metric without values"),
        Rule("GV004", _ERROR, "grid: start_step, end_step, step_interval do not describe the steps, or steps out of order"),
        Rule("GV005", _ERROR, "path does not fit the layout, unknown platform or environment"),
        Rule("GV006", _WARNING, "same content under two platforms or two cases, a twin folder with a near-equal name"),
        Rule("GV007", _WARNING, "implausible: all-zero loss, a value 1000 times its neighbours, a constant iteration-time"),
        Rule("GV008", _ERROR, "exact-compared metric of a changed file without value_precision: full", opt_in=True),
        Rule("GV009", _ERROR, "duplicate keys in an object"),
        Rule("GV010", _ERROR, "against a revision: metric vanished, steps shrank, finite became non-finite, precision lost"),
        Rule("GV011", _WARNING, "metrics of one file on different grids"),
        Rule("GV012", _ERROR, "a value of the wrong type: null, boolean, nested list, text"),
        Rule("GV013", _WARNING, "larger than max_bytes"),
    )
}


def known(codes: Iterable[str], place: str = "") -> None:
    """Refuse a code that no rule has.

    Raises
    ------
    UsageError
        With the nearest code as the hint.
    """
    for code in codes:
        if code not in RULES:
            hint = f"did you mean {nearest(code, RULES, 0.0)}?"
            raise UsageError(f"unknown lint rule {code!r}", place=place, hint=hint)


@lru_cache(maxsize=64)
def _selected(select: tuple[str, ...], ignore: tuple[str, ...]) -> frozenset[str]:
    known((*select, *ignore))
    chosen = set(select) or {r.code for r in RULES.values() if not r.opt_in}
    return frozenset(chosen - set(ignore))


def selected(settings: LintSettings) -> frozenset[str]:
    """The codes to run by ``select`` and ``ignore``.

    Raises
    ------
    UsageError
        A code is unknown; the hint has the nearest.
    """
    return _selected(tuple(settings.select), tuple(settings.ignore))


def for_path(settings: LintSettings, path: str) -> frozenset[str]:
    """The codes to run on one file, ``per-file-ignores`` left out."""
    codes = selected(settings)
    if not settings.per_file_ignores:
        return codes
    from fnmatch import fnmatchcase

    for glob, ignored in settings.per_file_ignores.items():
        known(ignored, f"per-file-ignores.{glob}")
        if fnmatchcase(path, glob):
            codes -= set(ignored)
    return codes


def finding(
    code: str,
    path: str,
    metric: str,
    message: str,
    *,
    count: int = 1,
    steps: tuple[int, ...] = (),
    kind: str = "",
    line: int = 0,
) -> Finding:
    """A finding with its rule's severity; at most five steps are kept."""
    return Finding(code, RULES[code].severity, path, metric, count, steps[:5], kind, message, line=line)
