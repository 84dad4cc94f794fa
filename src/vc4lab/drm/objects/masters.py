"""Masters: who has the display, which clients belong to it, and what it has leased to others."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from vc4lab.drm.objects.handles import Handles


class Client(Protocol):
    """An open file that belongs to a master."""

    is_authenticated: bool
    was_let_in: bool


class Master:
    """Rights of an open file that has, or had, the display; clients opened then belong to it.

    A lease is a master as well: it has the display while its owner has, but only some objects.

    Attributes
    ----------
    lessor
        Of a lease: the master that made it.
    objects
        Of a lease: numbers of the display's objects. Revoked, it has none.
    """

    def __init__(self, lessor: Master | None = None, objects: Iterator[int] | None = None) -> None:
        self.lessor = lessor
        self.objects = set(objects or ())
        self.lessees: Handles[Master] = Handles()
        """The leases by number."""
        self.clients: Handles[Client] = Handles()
        """By the number with which they ask to be let in."""
        self.number = 0
        """The number of a lease."""
        self._is_current = False
        if lessor is not None:
            self.number = lessor.lessees.add(self)

    @property
    def is_current(self) -> bool:
        """Whether it has the display."""
        return self._is_current if self.lessor is None else self.lessor.is_current

    @is_current.setter
    def is_current(self, value: bool) -> None:
        self._is_current = value

    def holds(self, number: int) -> bool:
        """Whether it may use an object of the display."""
        return self.lessor is None or number in self.objects

    def revoke(self) -> None:
        """Take a lease's objects away, and those of the leases made from this one."""
        for lessee in (self, *self.lessees.objects.values()):
            lessee.objects.clear()

    def end(self) -> bool:
        """No open file belongs to it any more. Whether it was a lease."""
        if self.lessor is None:
            return False
        self.lessor.lessees.remove(self.number)
        return True
