"""The main job: take candidates from a run and write the accepted ones into the repository.

Collect → resolve → lint → match → write back → record. The only package that knows this order; each
stage gets what it needs as an argument and none knows the next.
"""

from __future__ import annotations

from goldenctl.refresh.options import Options, Scope
from goldenctl.refresh.pipeline import Plan, commit, execute, log, plan, record

__all__ = ["Options", "Plan", "Scope", "commit", "execute", "log", "plan", "record"]
