"""Known findings: a file that lists them per file, rule and metric; the known may shrink and never grow."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from goldenctl.errors import ConfigError, RepoError
from goldenctl.files import write_own
from goldenctl.model import Finding

Known = Mapping[tuple[str, str, str], int]
"""(path, rule, metric) → number of places."""
_VERSION = 1


def load(path: Path) -> Known:
    """Read a baseline file.

    Raises
    ------
    ConfigError
        It is missing, or not of the known form.
    """
    try:
        table = json.loads(path.read_text("utf-8"))
        if table["version"] != _VERSION:
            raise ConfigError(f"baseline version {table['version']!r} is not known", place=str(path))
        return {
            (file, rule, metric): int(count)
            for file, rules in table["findings"].items()
            for rule, metrics in rules.items()
            for metric, count in metrics.items()
        }
    except FileNotFoundError as exc:
        raise ConfigError("there is no such baseline file", place=str(path), hint="goldenctl lint --write-baseline") from exc
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as exc:
        raise ConfigError(f"is no baseline file: {exc!r}", place=str(path), hint="goldenctl lint --write-baseline") from exc


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
