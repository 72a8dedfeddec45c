"""What an argument of a function may be, said once in its hint and made sure of before the function runs."""

from __future__ import annotations

import functools
import importlib
import inspect
import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from types import SimpleNamespace, UnionType
from typing import Annotated, Any, ParamSpec, TypeVar, Union, get_args, get_origin, get_type_hints

from goldenctl.errors import GoldenctlError, RepoError, UsageError
from goldenctl.words import nearest

P = ParamSpec("P")
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Many:
    """A sequence; a single one stands for a list of one."""

    item: type
    least: int = 0
    """How many there must be."""

    def take(self, name: str, value: object) -> object:
        """The value as a tuple."""
        single = isinstance(value, str | os.PathLike)
        if not single and not isinstance(value, Sequence | set | frozenset):
            raise _wrong(name, value, "a list")
        items: Sequence[object] = [value] if single else list(value)  # type: ignore[call-overload]
        found = tuple(_plain(self.item, name, item) for item in items)
        if len(found) < self.least or (self.least and not all(map(str, found))):
            raise UsageError(f"{name} is empty", hint=f"give {name} at least one")
        return found


@dataclass(frozen=True, slots=True)
class Number:
    """A number within bounds."""

    low: float
    high: float = math.inf
    open: bool = False
    """Whether the bounds themselves are left out."""
    whole: bool = False

    def take(self, name: str, value: object) -> object:
        """The value, if it is within the bounds."""
        if isinstance(value, bool) or not isinstance(value, int if self.whole else int | float):
            raise _wrong(name, value, "a whole number" if self.whole else "a number")
        inside = self.low < value < self.high if self.open else self.low <= value <= self.high
        if not inside:
            bounds = f"between {self.low:g} and {self.high:g}" if self.high < math.inf else f"at least {self.low:g}"
            raise UsageError(f"{name} must be {bounds}, not {value!r}", hint=f"give another {name}")
        return value


@dataclass(frozen=True, slots=True)
class Choice:
    """The text of one member of an enumeration, or the member."""

    kind: str
    """``module:class``, imported when a value other than the default is given."""
    many: bool = False
    without: tuple[str, ...] = ()
    """Members that make no sense here."""

    def take(self, name: str, value: object) -> object:
        """The text, if a member has it."""
        if self.many:
            words = Many(str).take(name, value)
            return tuple(self._one(name, word) for word in words)  # type: ignore[attr-defined]
        return self._one(name, value)

    def _one(self, name: str, value: object) -> str:
        module, _, kind = self.kind.partition(":")
        known = [str(m.value) for m in getattr(importlib.import_module(module), kind) if m.value not in self.without]
        text = str(value)
        if text not in known:
            near = nearest(text, known)
            hint = f"did you mean {near!r}?" if near else f"give {name} one of them"
            raise UsageError(f"{name} {text!r} is none of {', '.join(known)}", hint=hint)
        return text


class Version:
    """A version of the shared store, by its number, or a moment."""

    def take(self, name: str, value: object) -> object:
        """The value as text."""
        if isinstance(value, bool) or not isinstance(value, str | int | datetime):
            raise _wrong(name, value, "a version or a moment")
        return value.isoformat() if isinstance(value, datetime) else str(value)


class Content:
    """The bytes of a document, or the file that has them."""

    def take(self, name: str, value: object) -> object:
        """Bytes as they are, or a path."""
        if isinstance(value, bytes | bytearray | memoryview):
            return bytes(value)
        if not isinstance(value, str | os.PathLike):
            raise _wrong(name, value, "bytes or the path of a file")
        return Path(value)


Words = Annotated[Sequence[str], Many(str)]
"""Names as on the command line, or one; empty means all."""
Some = Annotated[Sequence[str], Many(str, 1)]
"""Names as on the command line, or one; at least one."""
Paths = Annotated[Sequence[str | Path], Many(Path)]
"""Files or folders, or one; empty means all."""
Folders = Annotated[Sequence[str | Path], Many(Path, 1)]
"""Files or folders, or one; at least one."""
Steps = Annotated[Sequence[int], Many(int)]
"""Steps of a run."""
Document = Annotated[bytes | str | Path, Content()]
"""The bytes of a document, or the file that has them."""
AsOf = Annotated[str | int | datetime, Version()]
"""The shared store as it was: a version, or a moment in ISO 8601 (UTC); empty means now."""
Age = Annotated[str | datetime, Version()]
"""An age such as ``30d``, ``12h`` or ``2w``, or a moment in ISO 8601 (UTC)."""
Share = Annotated[float, Number(0)]
"""A share of a value, 0.05 is 5 %; not negative."""
Risk = Annotated[float, Number(0, 1, open=True)]
"""A share between 0 and 1, both left out."""
Seconds = Annotated[float, Number(0)]
"""Seconds; not negative."""
Timeout = Annotated[float, Number(0.1)]
"""Seconds, a tenth at least."""
Count = Annotated[int, Number(1, whole=True)]
"""A whole number, 1 or more."""
Natural = Annotated[int, Number(0, whole=True)]
"""A whole number, 0 or more."""
Points = Annotated[int, Number(2, whole=True)]
"""A whole number, 2 or more."""
OnlyName = Annotated[str, Choice("goldenctl.selection:Only")]
"""A text of :class:`goldenctl.selection.Only`, or a member."""
ScopeName = Annotated[str, Choice("goldenctl.refresh.options:Scope")]
"""A text of :class:`goldenctl.refresh.Scope`, or a member."""
LevelName = Annotated[str, Choice("goldenctl.model:MatchLevel", without=("different", "absent"))]
"""``identical``, ``equal`` or ``close``, or that member of :class:`goldenctl.model.MatchLevel`."""
RulesName = Annotated[str, Choice("goldenctl.rules.verdicts:Rules")]
"""A text of :class:`goldenctl.rules.Rules`, or a member."""
PolicyName = Annotated[str, Choice("goldenctl.sync.driver:Policy")]
"""A text of :class:`goldenctl.sync.driver.Policy`, or a member."""
FilesName = Annotated[str, Choice("goldenctl.capture:Files")]
"""A text of :class:`goldenctl.capture.Files`, or a member."""
PrecisionName = Annotated[str, Choice("goldenctl.capture:Precision")]
"""A text of :class:`goldenctl.capture.Precision`, or a member."""
States = Annotated[Sequence[str], Choice("goldenctl.coverage:State", many=True)]
"""Texts or members of :class:`goldenctl.coverage.State`, or one; empty means all."""


def twin(function: Callable[P, R]) -> Callable[P, R]:
    """Make the arguments of a function what its hints mean, and its errors those of :mod:`goldenctl.errors`."""
    signature = inspect.signature(function)

    @functools.wraps(function)
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> R:
        bound = signature.bind(*args, **kwargs)
        hints = parameter_hints(function)
        for name, value in list(bound.arguments.items()):
            default = signature.parameters[name].default
            if value is None and default is not inspect.Parameter.empty:
                bound.arguments[name] = default
            elif value is not default:
                bound.arguments[name] = meant(name, value, hints[name])
        try:
            return function(*bound.args, **bound.kwargs)
        except GoldenctlError:
            raise
        except OSError as exc:
            raise RepoError(f"{exc.strerror or exc}", place=str(exc.filename or "")) from exc

    return wrapper


@functools.cache
def parameter_hints(function: Callable[..., object]) -> Mapping[str, Any]:
    """Parameter → its hint; what a function returns may be a name for type checkers only."""
    own = {name: hint for name, hint in function.__annotations__.items() if name != "return"}
    namespace = function.__globals__
    return get_type_hints(SimpleNamespace(__annotations__=own), namespace, include_extras=True)


def meant(name: str, value: object, hint: Any) -> Any:
    """The value an argument stands for.

    Raises
    ------
    UsageError
        It stands for none of its hint's.
    """
    kinds = [k for k in get_args(hint) if k is not type(None)] if get_origin(hint) in (Union, UnionType) else [hint]
    for kind in kinds:
        if get_origin(kind) is Annotated:
            return get_args(kind)[1].take(name, value)
    return _plain(Path if Path in kinds else kinds[0], name, value)


def _plain(kind: Any, name: str, value: object) -> object:
    kind = get_origin(kind) or kind
    if kind in (str, Path):
        if not isinstance(value, str | os.PathLike):
            raise _wrong(name, value, "a text" if kind is str else "a path")
        if "\0" in str(value):
            raise _wrong(name, value, "a text without a zero byte")
        return value if kind is str and isinstance(value, str) else kind(value)
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise _wrong(name, value, {bool: "True or False", int: "a whole number"}.get(kind, kind.__name__))
    return value


def _wrong(name: str, value: object, wanted: str) -> UsageError:
    return UsageError(f"{name} must be {wanted}, not {value!r:.60}", hint=f"give {name} {wanted}")
