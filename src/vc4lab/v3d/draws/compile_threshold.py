"""When native code is compiled: at once if the object cache has it, else after some uses.

For work that can be done without it, slower: the first picture of a program comes sooner while the
cache is empty, and a program that ends after it never pays for compilation.
"""

from __future__ import annotations

from collections.abc import Callable


class CompileThreshold:
    """Counts the uses of one piece of native code. `known`: whether the object cache has it."""

    uses = 2
    """Uses without native code before it is compiled."""

    def __init__(self, known: Callable[[], bool]) -> None:
        self._known = known
        self._seen = 0
        self._reached = False

    def reached(self) -> bool:
        """Counts a use; whether native code is to do it."""
        if not self._reached:
            self._seen += 1
            self._reached = self._seen > self.uses or self._known()
        return self._reached
