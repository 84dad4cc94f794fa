"""A hint for programs that enable a data cache while no caches are modelled."""

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
                    f"core {cpu.number} has enabled the data cache (SCTLR.C), which is not "
                    "modelled: the V3D, the DMA and the firmware see its writes at once; "
                    "`--caches check` reports where they would read old bytes on a board",
                    cpu.pc,
                )
                return
