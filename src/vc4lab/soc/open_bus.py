"""The address space where nothing is: bus addresses used by the ARM, and wild pointers."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from vc4lab.soc.native import SliceCounter

if TYPE_CHECKING:
    from vc4lab.diagnostics import Reporter

REGION = 1 << 20
"""One message for each region of this size."""


class OpenBus:
    """Answers 0 to every read from `start` on, swallows writes, and says so."""

    def __init__(
        self,
        start: int,
        counter: SliceCounter,
        reporter: Reporter,
        place: Callable[[int], str] = hex,
    ) -> None:
        self.start = start
        self.accesses = 0
        self._counter = counter
        self._reporter = reporter
        self._place = place

    def read(self, offset: int, _size: int) -> int:
        """A read `offset` bytes behind the start."""
        self._report("read", self.start + offset)
        return 0

    def write(self, offset: int, _size: int, _value: int) -> None:
        """A write `offset` bytes behind the start."""
        self._report("written", self.start + offset)

    def _report(self, what: str, address: int) -> None:
        self.accesses += 1
        region = address & ~(REGION - 1)
        alias = address >> 30 in (2, 3)
        place = self._place(self._counter.block)
        self._reporter.report(
            "SOC-003" if alias else "SOC-002",
            f"0x{region:08x}.. is {what} by the CPU near {place}; the ARM "
            "finds nothing there"
            + (f" (the RAM is at 0x{region & 0x3FFFFFFF:08x})" if alias else ""),
            address=region,
            block="cpu",
        )
