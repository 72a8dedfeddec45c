"""What a settings file may say: known keys, types, limits, and paths that stay where they belong."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from goldenctl.errors import ConfigError
from goldenctl.layout import DEFAULT_LAYOUT, Layout
from goldenctl.words import nearest


def known(table: Mapping[str, Any], keys: Iterable[str], place: str, prefix: str) -> None:
    """Refuse a key that is none of ``keys``, with the nearest one."""
    keys = list(keys)
    for key in table:
        if key not in keys:
            hint = f"did you mean {prefix}{nearest(key, keys, 0.0)}?"
            raise ConfigError(f"unknown key {prefix}{key}", place=place, hint=hint)


def table(value: Any, place: str, name: str) -> Mapping[str, Any]:
    """``value``, refused where it is no table."""
    if not isinstance(value, Mapping):
        raise ConfigError(f"[{name}] must be a table, not {value!r}", place=place)
    return value


def typed(value: Any, like: Any, place: str, each: Any = "") -> Any:
    """``value`` checked against the kind of ``like``; lists of text become tuples.

    Parameters
    ----------
    like
        A value of the same kind, usually the default. A whole number is at least 1, or 0 where this is 0.
    each
        A value of the kind that a table's entries have.
    """
    if isinstance(like, Mapping):
        if not isinstance(value, Mapping):
            raise ConfigError(f"must be a table, not {value!r}", place=place)
        return {k: typed(v, each, f"{place}.{k}") for k, v in value.items()}
    needed = _unlike(value, like)
    if needed:
        raise ConfigError(f"must be {needed}, not {value!r}", place=place)
    return tuple(value) if isinstance(like, tuple) else value


def _unlike(value: Any, like: Any) -> str:
    """What the value would have to be; empty when it is."""
    if isinstance(like, tuple):
        fits = isinstance(value, list) and all(isinstance(v, str) for v in value)
        return "" if fits else "a list of text"
    if isinstance(like, bool):
        return "" if isinstance(value, bool) else "true or false"
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if isinstance(like, float):
        return "" if number and 0 <= value < float("inf") else "a number, 0 or more"
    if isinstance(like, int):
        least = min(like, 1)
        return "" if number and isinstance(value, int) and value >= least else f"a whole number, {least} or more"
    return "" if isinstance(value, str) else "text"


def inside(path: str, place: str) -> None:
    """A settings file comes with any branch that is pulled: what it names is read and written below the top only."""
    if path.startswith(("/", "~")) or ".." in path.replace("\\", "/").split("/") or not path.isprintable():
        raise ConfigError(f"{path!r} leads out of the repository", place=place, hint="name a path below its top")


def a_file(path: str, top: Path, place: str) -> None:
    """Refuse a path that names a folder or nothing: the lock would lie beside it, where nobody looks for it."""
    if not path or path.endswith("/") or (top / path).is_dir():
        raise ConfigError(f"{path!r} names {'a folder' if path else 'nothing'}, not a file", place=place, hint="name a file")


def a_folder(path: str, top: Path, place: str) -> None:
    """Refuse a path that names a file."""
    if (top / path).is_file():
        raise ConfigError(f"{path!r} names a file, not a folder", place=place, hint="name a folder")


def alone(path: str, top: Path, root: str, place: str) -> None:
    """Refuse a folder for a store's data that holds anything else: SQL on a store may read all of the folder."""
    folder = (top / path).resolve()
    for held in (top, top / root, Path.home()):
        if held.resolve().is_relative_to(folder):
            raise ConfigError(f"{path!r} holds {held}", place=place, hint="name a folder for the store alone")


def layout(template: str, place: str) -> None:
    """Refuse a layout that is none, that no golden fits, or that all of a case's goldens fit alike."""
    try:
        Layout(template).parse("")
    except ConfigError as exc:
        raise ConfigError(exc.fact, place=place, hint=exc.hint) from exc
    for part in ("{test_case}", "{platform}"):
        if part not in template:
            raise ConfigError(f"{template!r} has no {part}", place=place, hint=f"for example {DEFAULT_LAYOUT}")
