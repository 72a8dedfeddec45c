"""Where a catalog is: a file on this machine, or a lake that a team shares.

Standard library only: a build names its place while the heavy clients are still being loaded.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import parse_qsl, unquote, urlsplit

from goldenctl.config import Settings, StoreSettings
from goldenctl.errors import ConfigError, UsageError

_SERVER = ("postgres://", "postgresql://")
_OBJECTS = ("s3://",)
_EXAMPLE = '[tool.goldenctl.store] with metadata = "postgres://HOST/DB" and data = "s3://BUCKET/PREFIX", or two paths'


@dataclass(frozen=True)
class Lake:
    """A catalog shared through DuckLake."""

    metadata: str
    """``postgres://user@host:port/database?sslmode=…``, or an absolute path of a DuckDB or SQLite file."""
    data: str
    """``s3://bucket/prefix/`` or an absolute folder, with a slash at its end; empty means what the metadata says."""
    as_of: str = ""
    """A version number or a moment in ISO 8601 (UTC without a zone); empty means the newest version."""

    def __str__(self) -> str:
        """The metadata's place, short enough for a message and without a user."""
        if not self.server:
            return self.metadata
        parts = urlsplit(self.metadata)
        return f"postgres://{(parts.netloc).rpartition('@')[2]}{parts.path}"

    @property
    def server(self) -> bool:
        """Whether the metadata is in PostgreSQL, which takes many writers."""
        return on_server(self.metadata)

    @property
    def objects(self) -> bool:
        """Whether the data is in object storage."""
        return self.data.startswith(_OBJECTS)

    @property
    def conninfo(self) -> str:
        """The metadata's URL in libpq's ``key='value'`` form; what it leaves out comes from ``PG*`` variables."""
        parts = urlsplit(self.metadata)
        named = {"dbname": unquote(parts.path.lstrip("/")), "host": parts.hostname, "port": parts.port, "user": parts.username}
        words = {"connect_timeout": "10", "application_name": "goldenctl"}
        words |= {key: unquote(str(value)) for key, value in named.items() if value} | dict(parse_qsl(parts.query))
        return " ".join(f"{key}='{_escaped(value)}'" for key, value in words.items())

    @property
    def version_clause(self) -> str:
        """``as_of`` as an option of ATTACH, or nothing.

        Raises
        ------
        UsageError
            It is neither a version nor a moment.
        """
        if not self.as_of:
            return ""
        if self.as_of.isdecimal():
            return f"SNAPSHOT_VERSION {int(self.as_of)}"
        return f"SNAPSHOT_TIME '{moment(self.as_of):%Y-%m-%d %H:%M:%S.%f}+00'"


def on_server(name: str) -> bool:
    """Whether a name is the URL of a store's metadata in PostgreSQL."""
    return name.startswith(_SERVER)


Place = Path | Lake
"""A catalog file, or a lake."""


def moment(text: str) -> datetime:
    """A moment in UTC: ISO 8601, a date alone meaning its first second.

    Raises
    ------
    UsageError
        It is none.
    """
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        hint = "a version such as 17, or a moment such as 2026-05-01T08:00"
        raise UsageError(f"{text!r} is neither a version nor a moment", hint=hint) from None
    return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)


def shared(settings: Settings, as_of: str = "") -> Lake:
    """The store the settings name.

    Raises
    ------
    ConfigError
        They name none, or one with a password in it.
    """
    store, place = settings.store, settings.source or "the settings"
    if store is None or not store.metadata or not store.data:
        raise ConfigError("no store is named", place=place, hint=_EXAMPLE)
    metadata = store.metadata if "://" in store.metadata else str(settings.top / store.metadata)
    data = store.data if "://" in store.data else str(settings.top / store.data)
    return lake(metadata, data, as_of, place=f"{place}: store")


def chosen(settings: Settings, *, catalog: Path | None = None, store: bool | None = None, as_of: str = "") -> Place:
    """The catalog that options and settings name; ``as_of`` means the store, because a file keeps no versions.

    Parameters
    ----------
    catalog
        A file instead of the one in the settings.
    store
        Whether the shared store is meant; None leaves it to ``store.always`` of the settings.

    Raises
    ------
    UsageError
        A file and the store are both named.
    ConfigError
        The settings name no store.
    """
    if (catalog and (store or as_of)) or (store is False and as_of):
        raise UsageError("a file is named, and the store with --store or --as-of", hint="leave one of them out")
    if catalog:
        return catalog.absolute()
    by_itself = store is None and settings.store is not None and settings.store.always
    return shared(settings, as_of) if store or as_of or by_itself else settings.catalog_path


def preferring(settings: Settings, store: bool | None) -> Settings:
    """Settings whose catalog is the one an option says; None leaves them as they are.

    Raises
    ------
    ConfigError
        The option says the store, and the settings name none.
    """
    if store:
        shared(settings)
    return settings if store is None else replace(settings, store=replace(settings.store or StoreSettings(), always=store))


def exists(place: Place) -> bool:
    """Whether there is something to read; a store that is configured counts as there."""
    return isinstance(place, Lake) or place.is_file()


def lake(metadata: str, data: str, as_of: str = "", *, place: str = "") -> Lake:
    """A lake from its two places, checked.

    Raises
    ------
    ConfigError
        A scheme is not one of ours, or a URL holds a password.
    UsageError
        ``as_of`` is neither a version nor a moment.
    """
    for text, schemes in ((metadata, _SERVER), (data, _OBJECTS)):
        scheme = re.match(r"[\w+.-]+://", text)
        if scheme and scheme[0] not in schemes:
            raise ConfigError(f"{scheme[0]} is no scheme of a store", place=place, hint=_EXAMPLE)
    if on_server(metadata):
        _check_url(metadata, place)
    where = metadata if "://" in metadata else str(Path(metadata).absolute())
    found = Lake(where, data.rstrip("/") + "/" if data else "", as_of)
    _ = found.version_clause
    return found


def _check_url(url: str, place: str) -> None:
    try:
        parts = urlsplit(url)
        secret = parts.password is not None or any(key.endswith("password") for key, _ in parse_qsl(parts.query))
        _ = parts.port
    except ValueError:
        raise ConfigError("the store's metadata is no URL", place=place, hint=_EXAMPLE) from None
    if secret:
        raise ConfigError(
            "a password does not belong in the store's URL", place=place, hint="give it in PGPASSWORD or in ~/.pgpass"
        )
    if len(parts.path) < 2:
        raise ConfigError("the store's URL names no database", place=place, hint="postgres://HOST/DATABASE")


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("'", "\\'")
