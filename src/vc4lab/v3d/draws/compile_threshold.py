"""When native code is worth its compilation: at once if the cache has it, else after some uses.

For work that can be done without it, slower: the first picture of a program comes sooner where
nothing is in the object cache yet, and a program that ends after it never pays.
"""

from __future__ import annotations

from collections.abc import Callable


class CompileThreshold:
    """Counts the uses of one piece of native code. `known`: whether the object cache has it."""

    uses = 2
    """So many times the work is done without, before the code is compiled."""

    def __init__(self, known: Callable[[], bool]) -> None:
        self._known = known
        self._seen = 0
        self._reached = False

    def reached(self) -> bool:
        """To be asked once for each use: whether native code is to do it."""
        if not self._reached:
            self._seen += 1
            self._reached = self._seen > self.uses or self._known()
        return self._reached
