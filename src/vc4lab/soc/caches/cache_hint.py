"""A hint for programs that switch a data cache on where no caches are modelled."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vc4lab.soc.hardware import Hardware


class CacheHint:
    """Says once that what the others read may not be there yet on a board."""

    def __init__(self, hardware: Hardware) -> None:
        self._hardware = hardware
        self._told = False

    def look(self) -> None:
        """Look at the cores that run, now and then: one of them has its data cache on."""
        hardware = self._hardware
        if self._told or not (hardware.mailbox.messages or hardware.v3d or hardware.goes_on):
            return
        for core in hardware.processors.running:
            cpu = core.cpu
            if cpu.sets_data_cache:
                self._told = True
                hardware.report(
                    "SOC-093",
                    f"core {cpu.number} has set SCTLR.C, the data cache, and no cache is modelled: "
                    "the V3D, the DMA and the firmware see at once what it writes; "
                    "`--caches check` says where a board would show them old bytes",
                    cpu.pc,
                )
                return
