"""GitHub's published schemas of the answers the double gives: fill what a test does not say, and validate."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

Said = dict[str, Any]


@cache
def schema(name: str) -> Said:
    """The schema of ``run``, ``jobs``, ``artifacts`` or ``error``."""
    loaded: Said = json.loads((Path(__file__).parent / f"{name}.json").read_bytes())
    return loaded


def validate(name: str, said: Any) -> None:
    """Fail when an answer is not of the published form."""
    from openapi_schema_validator import OAS30Validator

    OAS30Validator(schema(name)).validate(said)


@cache
def _neutral(answer: str, definition: str) -> str:
    return json.dumps(_value(schema(answer)["$defs"][definition], schema(answer)["$defs"]))


def filled(answer: str, definition: str, said: Mapping[str, Any]) -> Said:
    """An object with neutral values for the required fields that it does not say."""
    return {**json.loads(_neutral(answer, definition)), **said}


def _value(node: Said, known: Mapping[str, Said]) -> Any:
    """A neutral value of a schema."""
    if "$ref" in node:
        return _value(known[node["$ref"].removeprefix("#/$defs/")], known)
    if node.get("nullable"):
        return None
    for several in ("allOf", "anyOf", "oneOf"):
        if several in node:
            return _value(node[several][0], known)
    if "enum" in node:
        return node["enum"][0]
    match node.get("type"):
        case "object":
            return {name: _value(node["properties"][name], known) for name in node.get("required", ())}
        case "string":
            return "2026-05-01T10:00:00Z" if node.get("format") == "date-time" else "x"
        case "boolean":
            return False
        case "array":
            return []
        case _:
            return 1
