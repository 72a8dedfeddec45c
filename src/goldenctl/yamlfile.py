"""YAML files of a repository: read without constructors, scalars as text, and nothing that grows without bound."""

from __future__ import annotations

from typing import Any

LARGEST = 10**18
"""Numbers of steps or devices end far below; Python refuses to spell the longest ones at all."""


class YamlError(ValueError):
    """Bytes that are not YAML; the message is the reason."""


def load(raw: bytes) -> Any:
    """The value of a YAML file.

    Raises
    ------
    YamlError
        It is none.
    """
    import yaml

    try:
        return yaml.load(raw, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506 - both are safe loaders
    except (yaml.YAMLError, ValueError, TypeError, OverflowError, RecursionError) as exc:
        raise YamlError((str(exc).splitlines() or [type(exc).__name__])[0]) from exc


def text(value: Any) -> str:
    """A scalar as text; empty for null and for anything nested, as aliases make that grow without bound."""
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value) if abs(value) < LARGEST else ""
    return str(value) if isinstance(value, str | bool | float) else ""
