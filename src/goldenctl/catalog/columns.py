"""Column names and Polars types of the smaller tables, in the order of ``schema.sql``."""

from __future__ import annotations

import polars as pl

TIME = pl.Datetime("us")
RUN = {
    "id": pl.String, "provider": pl.String, "run_id": pl.String, "attempt": pl.Int64, "ref": pl.String,
    "repository": pl.String, "commit": pl.String, "branch": pl.String, "conclusion": pl.String, "started_at": TIME,
    "completed_at": TIME, "url": pl.String, "recorded_at": TIME,
}  # fmt: skip
JOB = {
    "run": pl.String, "id": pl.String, "attempt": pl.Int64, "name": pl.String, "model": pl.String, "test_case": pl.String,
    "environment": pl.String, "platform": pl.String, "conclusion": pl.String, "started_at": TIME, "completed_at": TIME,
    "url": pl.String, "allow_failure": pl.Boolean,
}  # fmt: skip
ARTIFACT = {
    "run": pl.String, "id": pl.String, "name": pl.String, "size": pl.Int64, "sha256": pl.String, "job": pl.String,
    "attempt": pl.Int64, "created_at": TIME, "expired": pl.Boolean, "url": pl.String,
}  # fmt: skip
OBSERVATION = {
    "golden": pl.Int64, "path": pl.String, "run": pl.String, "job": pl.String, "attempt": pl.Int64, "replicate": pl.String,
    "artifact": pl.String, "member": pl.String, "document": pl.String, "sha256": pl.String, "observed_at": TIME,
}  # fmt: skip
REFRESH = {
    "id": pl.String, "started_at": TIME, "command": pl.String, "dry_run": pl.Boolean, "runs": pl.List(pl.String),
    "commit": pl.String,
}  # fmt: skip
_MATCH = pl.Struct({"rev": pl.String, "commit": pl.String, "level": pl.String, "detail": pl.String})
REFRESH_FILE = {
    "refresh": pl.String, "golden": pl.Int64, "path": pl.String, "action": pl.String, "reason": pl.String, "job": pl.String,
    "attempt": pl.Int64, "artifact": pl.String, "sha256": pl.String, "document": pl.String, "n_findings": pl.Int64,
    "matches": pl.List(_MATCH),
}  # fmt: skip
GOLDEN = {
    "id": pl.Int64, "path": pl.String, "model": pl.String, "test_case": pl.String, "environment": pl.String,
    "platform": pl.String, "variant": pl.String, "born_path": pl.String, "alive": pl.Boolean,
}  # fmt: skip
COMMIT = {"id": pl.String, "parents": pl.List(pl.String), "committed_at": TIME, "subject": pl.String}
LINE = {"branch": pl.String, "position": pl.Int64, "commit": pl.String}
REVISION = {
    "golden": pl.Int64, "commit": pl.String, "path": pl.String, "document": pl.String, "change": pl.String,
    "old_path": pl.String, "old_document": pl.String,
}  # fmt: skip
SYNC = {
    "commit": pl.String, "landed_at": TIME, "kind": pl.String, "base": pl.String, "downstream": pl.String,
    "upstream": pl.String, "subject": pl.String,
}  # fmt: skip
