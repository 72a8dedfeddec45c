"""Wait for a run that is still in progress, when asked to."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from goldenctl.model import Run

POLL = 15.0
"""Seconds between two looks at a run."""
_log = logging.getLogger(__name__)


def described(describe: Callable[[], Run], *, wait: bool) -> Run:
    """The run, looked at again until none of it is running when ``wait`` is true."""
    found = describe()
    while wait and (running := [p for p in found.problems if p.kind == "running"]):
        _log.warning("note: %s", running[0].message)
        time.sleep(POLL)
        found = describe()
    return found


def progress(names: list[str]) -> str:
    """A sentence on the jobs that are not done yet."""
    more = f" and {len(names) - 5} more" if len(names) > 5 else ""
    which = f"not done yet: {', '.join(names[:5])}{more}" if names else "no job is running, yet it is not completed"
    return f"the run is still in progress; {which}"


HINT = "--wait waits for it, or run the command again later"
