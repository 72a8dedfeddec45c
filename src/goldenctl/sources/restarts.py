"""Which restart of a job holds its golden files: ``results/iteration=N/restart=R/…``.

The launcher reuses its folders and does not clear them: a restart with a higher number may be left
over from an earlier attempt. Numbers are compared as numbers, and times tell what is left over.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

_RESTART = re.compile(r"(?:^|(?<=/))iteration=(\d{1,9})/restart=(\d{1,9})/")
SLACK = timedelta(seconds=2)
"""Zips keep times in steps of two seconds."""


@dataclass(frozen=True, slots=True)
class Choice:
    """Which files are taken."""

    taken: frozenset[str]
    only_stale: tuple[str, ...] = ()
    """Files left out though no newer restart has them: their job wrote none in this attempt."""


def replicate_of(name: str) -> str:
    """``iteration=N/restart=R`` of a path, or an empty text.

    >>> replicate_of("results/iteration=0/restart=10/assets/basic/x/golden_values_dev_dgx_h100.json")
    'iteration=0/restart=10'
    """
    match = _RESTART.search(name)
    return match[0].rstrip("/") if match else ""


def choose(names: Mapping[str, datetime | None], since: datetime | None = None) -> Choice:
    """The files of the newest restart of each case; files outside restarts are all taken.

    Parameters
    ----------
    names
        Path → when it was written, None when unknown.
    since
        When the job started, None when unknown. A restart written before it, or before a restart
        with a lower number, is left over from an earlier attempt.
    """
    taken: set[str] = set()
    stale: list[str] = []
    groups: dict[tuple[str, str], dict[tuple[int, int], list[str]]] = defaultdict(lambda: defaultdict(list))
    for name in names:
        match = _RESTART.search(name)
        if match is None:
            taken.add(name)
        else:
            case = name[match.end() :].rpartition("/")[0]
            groups[name[: match.start()], case][int(match[1]), int(match[2])].append(name)
    for by_number in groups.values():
        fresh = _fresh(by_number, names, since)
        if fresh:
            taken.update(by_number[max(fresh)])
        else:
            stale += [n for files in by_number.values() for n in files]
    return Choice(frozenset(taken), tuple(stale))


def _fresh(
    by_number: Mapping[tuple[int, int], list[str]], names: Mapping[str, datetime | None], since: datetime | None
) -> list[tuple[int, int]]:
    """Numbers of the restarts that this attempt wrote."""
    out: list[tuple[int, int]] = []
    latest = since
    for number in sorted(by_number):
        written = max((t for t in map(names.get, by_number[number]) if t is not None), default=None)
        if written is None or latest is None or written + SLACK >= latest:
            out.append(number)
            latest = max(filter(None, (latest, written)), default=None)
    return out
