"""Columns of the tables that are filled from rows, in the order of ``schema.sql``, each with its kind."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum


class Kind(StrEnum):
    """What a column holds, and so how it travels."""

    TEXT = "text"
    INT = "int"
    BOOL = "bool"
    TIME = "time"
    """A datetime in UTC without zone."""
    TEXTS = "texts"
    """A list of text."""
    MATCHES = "matches"
    """A list of mappings ``rev``, ``commit``, ``level``, ``detail``."""


Schema = Mapping[str, Kind]


def _columns(names: str, **kinds: str) -> Schema:
    """Columns in the order of ``names``; those under no kind are text: ``_columns("id size", int="size")``."""
    known = {name: Kind(kind) for kind, of_kind in kinds.items() for name in of_kind.split()}
    return {name: known.get(name, Kind.TEXT) for name in names.split()}


GOLDEN = _columns("id path model test_case environment platform variant born_path alive", int="id", bool="alive")
DOCUMENT = _columns(
    "id content size shape n_series n_values n_nonfinite n_problems bare_constants twice error",
    int="content size n_series n_values n_nonfinite n_problems",
    bool="bare_constants twice",
)
SERIES = _columns(
    "document metric position start_step end_step step_interval precision form n_values n_nan n_inf first_step last_step"
    " content",
    int="position start_step end_step step_interval n_values n_nan n_inf first_step last_step content",
)
TEXT = _columns("document name text")
META = _columns("key value")
LIVING = _columns("path golden", int="golden")
"""Every path ever, and the golden that lives there now or did last; temporary."""
COMMIT = _columns("id parents committed_at subject", texts="parents", time="committed_at")
LINE = _columns("branch position commit", int="position")
REVISION = _columns("golden commit path document change old_path old_document", int="golden")
SYNC = _columns("commit landed_at kind base downstream upstream subject", time="landed_at")
RUN = _columns(
    "id provider run_id attempt ref repository commit branch conclusion started_at completed_at url recorded_at",
    int="attempt",
    time="started_at completed_at recorded_at",
)
JOB = _columns(
    "run id attempt name model test_case environment platform conclusion started_at completed_at url allow_failure",
    int="attempt",
    time="started_at completed_at",
    bool="allow_failure",
)
ARTIFACT = _columns(
    "run id name size sha256 job attempt created_at expired url", int="size attempt", time="created_at", bool="expired"
)
OBSERVATION = _columns(
    "golden path run job attempt replicate artifact member document sha256 observed_at",
    int="golden attempt",
    time="observed_at",
)
REFRESH = _columns("id started_at command dry_run runs commit", time="started_at", bool="dry_run", texts="runs")
REFRESH_FILE = _columns(
    "refresh golden path action reason job attempt artifact sha256 document n_findings metrics matches",
    int="golden attempt n_findings",
    texts="metrics",
    matches="matches",
)
