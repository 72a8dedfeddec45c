"""Choices made by bytes: the same bytes always give the same case, and a fuzzer steers them one by one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


class Chosen:
    """A supply of choices; once it is used up, every choice is the first.

    Parameters
    ----------
    data
        Whatever the fuzzer or hypothesis came up with.
    """

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def byte(self) -> int:
        """0 to 255."""
        self._at += 1
        return self._data[self._at - 1] if self._at <= len(self._data) else 0

    def below(self, end: int) -> int:
        """0 to ``end`` - 1."""
        number = self.byte() if end <= 256 else self.byte() << 8 | self.byte()
        return number % max(end, 1)

    def of(self, items: Sequence[T]) -> T:
        """One of the items."""
        return items[self.below(len(items))]

    def some(self, size: int) -> bytes:
        """The next bytes, at most ``size``."""
        part = self._data[self._at : self._at + size]
        self._at += len(part)
        return part

    def rest(self) -> bytes:
        """All bytes that are left."""
        return self.some(len(self._data))
