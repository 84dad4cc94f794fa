"""Notices a CPU that runs in a loop and changes nothing: it waits for memory to change.

Only an interrupt handler can end such a wait, so time may skip to the next event; and if no
interrupt can come, the program hangs.
"""

from __future__ import annotations

from vc4lab.soc.cores.cpu import Cpu

PLACES = 8
"""Places of the loop that are remembered."""
WAITS = 3
"""Slices that end with registers seen before make a waiting CPU."""
HANGS = 200
"""After this many in a row the CPU counts as waiting forever."""


class IdleLoop:
    """Compares the registers at the ends of slices without device accesses."""

    def __init__(self, cpu: Cpu) -> None:
        self._cpu = cpu
        self._seen: dict[int, tuple[int, ...]] = {}
        self._again = 0

    def look(self, touched: bool) -> None:
        """A slice has ended; `touched`: with device accesses or exceptions in it."""
        if touched:
            self.forget()
            return
        state = self._cpu.state()
        before = self._seen.get(self._cpu.pc)
        if before == state:
            self._again += 1
            return
        self._again = 0
        if before is not None or len(self._seen) >= PLACES:
            self._seen.clear()
        self._seen[self._cpu.pc] = state

    def look_again(self) -> None:
        """A slice would have ended in the same state as the one before."""
        self._again += 1

    def forget(self) -> None:
        """The CPU is doing something."""
        self._again = 0
        self._seen.clear()

    @property
    def waits(self) -> bool:
        """Whether the CPU seems to wait."""
        return self._again >= WAITS

    @property
    def hangs(self) -> bool:
        """Whether it would never do anything else by itself."""
        return self._again >= HANGS
