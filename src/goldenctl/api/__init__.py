"""Every command as a function: plain values in, the result out, nothing printed.

``goldenctl.api.diff("main", "WORKTREE")`` does what ``goldenctl diff main WORKTREE`` does, in the current folder and with
its settings; an option ``--lock-wait`` is the parameter ``lock_wait``, ``--from`` is ``from_``. A path may be a text,
one name stands for a list of one, None for the default. Nothing is asked: what writes goldens does so with ``write=True``.
Every function raises errors of :mod:`goldenctl.errors`, whose text says fact, place and next step;
what a command imports is imported when its function is called.
"""

from __future__ import annotations

from goldenctl.api.catalogs import (
    blame,
    catalog_build,
    catalog_export,
    catalog_sql,
    catalog_status,
    catalog_update,
    drift,
    log,
    store_clean,
    store_compact,
    store_pull,
    store_push,
    store_status,
)
from goldenctl.api.goldens import check, coverage, diff, gate_audit, report, textconv, verify
from goldenctl.api.linting import lint
from goldenctl.api.repository import install, merge_driver, restore, sync_audit, sync_plan
from goldenctl.api.reviewing import review
from goldenctl.api.runs import Recorded, archive, capture, record, refresh, tolerance, triage

__all__ = [
    "Recorded", "archive", "blame", "capture", "catalog_build", "catalog_export", "catalog_sql", "catalog_status",
    "catalog_update", "check", "coverage", "diff", "drift", "gate_audit", "install", "lint", "log", "merge_driver",
    "record", "refresh", "report", "restore", "review", "store_clean", "store_compact", "store_pull", "store_push",
    "store_status", "sync_audit", "sync_plan", "textconv", "tolerance", "triage", "verify",
]  # fmt: skip
