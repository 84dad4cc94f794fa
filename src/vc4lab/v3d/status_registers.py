"""The registers of interrupts and of finished frames, and those that clear the caches.

As in `core.py`, the behaviour of a register is a method named after it. Source: hardware reference
2.3, 2.4, 2.6.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from vc4lab.v3d.events import CachesCleared
from vc4lab.v3d.registers import Interrupts

if TYPE_CHECKING:
    from vc4lab.v3d.cle.binning import BinningStage
    from vc4lab.v3d.events import V3DListeners
    from vc4lab.v3d.unknowns import Unknowns

OUTOMEM = Interrupts.OUTOMEM.mask


class StatusRegisters:
    """What these registers of a V3D do to its `values`."""

    def __init__(
        self,
        values: dict[str, int],
        unknowns: Unknowns,
        binning: BinningStage,
        listeners: V3DListeners,
    ) -> None:
        self._values = values
        self._unknowns = unknowns
        self._binning = binning
        self._listeners = listeners

    # -- interrupts --------------------------------------------------------------------------

    def _on_write_INTCTL(self, value: int) -> None:
        self._values["INTCTL"] &= ~value
        if self._binning.out_of_memory:
            self._values["INTCTL"] |= OUTOMEM  # level triggered: stays until BPOS is written

    def _on_write_INTENA(self, value: int) -> None:
        self._values["INTENA"] |= value & 0xF

    def _on_write_INTDIS(self, value: int) -> None:
        self._values["INTENA"] &= ~value

    def _on_read_INTDIS(self) -> int:
        return self._values["INTENA"] if self._unknowns["intdis_reads"] == "enabled" else 0

    # -- finished frames ---------------------------------------------------------------------

    def _on_write_BFC(self, value: int) -> None:
        if value & 1 or self._zero_clears(value):
            self._values["BFC"] = 0

    def _on_write_RFC(self, value: int) -> None:
        if value & 1 or self._zero_clears(value):
            self._values["RFC"] = 0

    def _zero_clears(self, value: int) -> bool:
        return value == 0 and self._unknowns["count_write_zero"] == "clear"

    # -- caches: nothing is cached here, so clearing has no effect ----------------------------

    def _on_write_SLCACTL(self, value: int) -> None:
        if self._listeners.caches_cleared.subscriptions:
            self._listeners.caches_cleared.emit(CachesCleared("SLCACTL", value))

    def _on_write_L2CACTL(self, value: int) -> None:
        if self._listeners.caches_cleared.subscriptions:
            self._listeners.caches_cleared.emit(CachesCleared("L2CACTL", value))
        if value & 3 == 3:
            self._values["L2CACTL"] = int(self._unknowns["l2cactl_both"] == "enable")
        elif value & 2:
            self._values["L2CACTL"] = 0
        elif value & 1:
            self._values["L2CACTL"] = 1
