"""Small numbers for objects, as programs use them."""

from __future__ import annotations

import heapq
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class Handles(Generic[T]):
    """Small numbers for objects, the lowest free one first, from 1 on."""

    def __init__(self) -> None:
        self.objects: dict[int, T] = {}
        self.sets: dict[bytes, Any] = {}
        """Answers about several numbers, kept until one of them may mean another object."""
        self._free: list[int] = []
        self._next = 1

    def add(self, thing: T) -> int:
        """A number for it."""
        if self._free:
            number = heapq.heappop(self._free)
        else:
            number, self._next = self._next, self._next + 1
        self.objects[number] = thing
        self.sets.clear()
        return number

    def remove(self, number: int) -> T | None:
        """Free a number; its object, or None."""
        thing = self.objects.pop(number, None)
        if thing is not None:
            self.sets.clear()
            heapq.heappush(self._free, number)
        return thing
