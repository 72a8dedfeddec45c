"""Object storage for DuckDB: the usual ``AWS_*`` variables become one of its secrets, for one connection."""

from __future__ import annotations

import os
from urllib.parse import urlsplit

import duckdb


def prepare(connection: duckdb.DuckDBPyConnection, where: str) -> None:
    """Let a connection reach ``where``; without variables DuckDB's own stored secrets hold.

    Parameters
    ----------
    where
        ``s3://bucket/prefix/``, the scope of the secret.
    """
    bundle = os.environ.get("AWS_CA_BUNDLE")
    if bundle:
        connection.execute(f"SET ca_cert_file = {_literal(bundle)}")
    options = _options()
    if options:
        bucket = f"s3://{urlsplit(where).netloc}"
        words = ", ".join(f"{key} {_literal(value)}" for key, value in options.items())
        connection.execute(f"CREATE OR REPLACE SECRET goldenctl (TYPE s3, SCOPE {_literal(bucket)}, {words})")


def _options() -> dict[str, str]:
    """Options of the secret, empty when the environment says nothing."""
    environment = {
        "KEY_ID": os.environ.get("AWS_ACCESS_KEY_ID", ""),
        "SECRET": os.environ.get("AWS_SECRET_ACCESS_KEY", ""),
        "SESSION_TOKEN": os.environ.get("AWS_SESSION_TOKEN", ""),
        "REGION": os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION", ""),
    }
    options = {key: value for key, value in environment.items() if value}
    endpoint = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL", "")
    if endpoint:
        parts = urlsplit(endpoint)
        options |= {"ENDPOINT": parts.netloc, "URL_STYLE": "path", "USE_SSL": str(parts.scheme == "https").lower()}
    return options


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
