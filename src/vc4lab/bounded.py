"""Tables of what is remembered, with a bound: one that is full starts anew."""

from __future__ import annotations

from typing import TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Bounded(dict[K, V]):
    """A dict that is emptied before an item would make it larger than `limit`.

    What is in use comes back at its next use, which costs less than to note the order of uses. Look-ups are
    those of dict. Only `table[key] = value` looks at the limit, not `setdefault` and `update`.
    """

    __slots__ = ("limit",)

    def __init__(self, limit: int) -> None:
        super().__init__()
        self.limit = limit

    def __setitem__(self, key: K, value: V) -> None:
        if len(self) >= self.limit and key not in self:
            self.clear()
        super().__setitem__(key, value)
