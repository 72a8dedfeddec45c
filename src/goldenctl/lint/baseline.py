"""Known findings: a file that lists them per file, rule and metric; the known may shrink and never grow."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from goldenctl.errors import ConfigError, RepoError
from goldenctl.files import write_own
from goldenctl.goldenfile import describe
from goldenctl.model import Finding

Known = Mapping[tuple[str, str, str], int]
"""(path, rule, metric) → number of places."""
_VERSION = 1
_HINT = "goldenctl lint --write-baseline makes it anew"


def load(path: Path) -> Known:
    """Read a baseline file.

    Raises
    ------
    ConfigError
        It is missing, or not of the known form.
    """
    try:
        text = path.read_text("utf-8")
    except FileNotFoundError as exc:
        raise ConfigError("there is no such baseline file", place=str(path), hint=_HINT) from exc
    except OSError as exc:
        raise ConfigError(f"the baseline cannot be read: {exc.strerror}", place=str(path), hint="name a file") from exc
    except UnicodeDecodeError as exc:
        raise ConfigError("is no baseline file: not UTF-8", place=str(path), hint=_HINT) from exc
    try:
        return _entries(_decoded(text))
    except ValueError as exc:
        raise ConfigError(f"is no baseline file: {exc}", place=str(path), hint=_HINT) from exc


def _decoded(text: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as exc:
        raise ValueError(f"not JSON at line {exc.lineno}, column {exc.colno}") from exc
    except RecursionError as exc:
        raise ValueError("nested too deeply") from exc


def _entries(value: Any) -> Known:
    """The known findings of a decoded baseline; ValueError says what is not of its form."""
    table = _table(value, "the whole")
    if table.get("version") != _VERSION:
        raise ValueError(f"its version is {table.get('version')!r}, and {_VERSION} is known")
    out: dict[tuple[str, str, str], int] = {}
    for file, rules in _table(table.get("findings"), "findings").items():
        for rule, metrics in _table(rules, f"findings of {file!r}").items():
            for metric, number in _table(metrics, f"{rule} of {file!r}").items():
                if type(number) is not int or number < 0:
                    raise ValueError(f"{rule} of {metric!r} in {file!r} is not a count")
                out[file, rule, metric] = number
    return out


def _table(value: Any, name: str) -> dict[str, Any]:
    if isinstance(value, dict):
        return value
    raise ValueError(f"{name} is {'missing' if value is None else describe(value)}, not an object")


def count(findings: Iterable[Finding]) -> Counter[tuple[str, str, str]]:
    """Places per file, rule and metric."""
    out: Counter[tuple[str, str, str]] = Counter()
    for item in findings:
        out[item.path, item.rule, item.metric] += item.count
    return out


def apply(findings: Iterable[Finding], known: Known) -> list[Finding]:
    """Findings with those marked that the baseline knows; all of a file, rule and metric grow together."""
    found = list(findings)
    now = count(found)
    fits = {key for key, n in now.items() if n <= known.get(key, 0)}
    return [replace(f, baselined=True) if (f.path, f.rule, f.metric) in fits else f for f in found]


def save(path: Path, findings: Iterable[Finding]) -> int:
    """Write a baseline of these findings and return the number of its entries.

    Raises
    ------
    RepoError
        It cannot be written; the old file stays.
    """
    table: dict[str, dict[str, dict[str, int]]] = {}
    counted = count(findings)
    for (file, rule, metric), n in sorted(counted.items()):
        table.setdefault(file, {}).setdefault(rule, {})[metric] = n
    text = json.dumps({"version": _VERSION, "findings": table}, indent=1, ensure_ascii=False) + "\n"
    beside = path.with_name(path.name + ".new")
    try:
        write_own(beside, text)
        beside.replace(path)
    except OSError as exc:
        beside.unlink(missing_ok=True)
        raise RepoError(f"cannot be written: {exc.strerror}", place=str(path)) from exc
    return len(counted)
