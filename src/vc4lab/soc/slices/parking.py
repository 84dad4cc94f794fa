"""Cores that the firmware's stub has parked, and what starts them.

The stub (raspberrypi/tools, armstubs) lets every core but the first wait for an event before each
look at where its address is written: mailbox 3 of the core for AArch32, a table in memory for
AArch64. So the address alone starts nothing; `sev` does.
"""

from __future__ import annotations

from vc4lab.soc.cores.cores import Core
from vc4lab.soc.hardware import Hardware

SPIN_TABLE, SPIN_TABLE_END = 0xD8, 0x100
"""AArch64: core n begins at the address it finds at 0xD8 + 8 n."""


class Parking:
    """The parked cores of a board."""

    def __init__(self, hardware: Hardware) -> None:
        self._hardware = hardware
        self._cores = hardware.processors
        plan = hardware.plan
        self._has_table = plan.wide and plan.address >= SPIN_TABLE_END
        self._told: set[int] = set()
        """Cores of which it was said that no event has followed their address."""
        self._overdue: set[int] = set()
        """Those that had an address at the last reminder."""
        self._cores.event_sent = self._start

    @property
    def watches(self) -> bool:
        """Whether cores start without an event: the table is to be looked at again and again."""
        return self._has_table and not self._cores.stub_waits

    def look(self) -> bool:
        """Start the cores whose entry has been written; whether there were any."""
        found = False
        for core in self._cores.all:
            if core.parked:
                address = self._address(core)
                found |= address != 0 and self._cores.release(core.number, address)
        return found

    def _start(self) -> None:
        """An event was sent, which parked cores have waited for."""
        local = self._hardware.local
        for core in self._cores.all:
            if core.parked and (address := self._address(core)):
                self._cores.release(core.number, address)
                if local is not None and not self._hardware.plan.wide:
                    local.take_start(core.number)

    def _address(self, core: Core) -> int:
        hardware = self._hardware
        if hardware.plan.wide:
            return hardware.memory.u64(SPIN_TABLE + 8 * core.number) if self._has_table else 0
        return hardware.local.start_of(core.number) if hardware.local is not None else 0

    def remind(self, at_once: bool = False) -> None:
        """Report the cores whose address has been there for a while without an event."""
        if not self._cores.stub_waits:
            return
        hardware = self._hardware
        waiting = {
            core.number: self._address(core)
            for core in self._cores.all
            if core.parked and core.number not in self._told
        }
        overdue = {number for number, address in waiting.items() if address}
        for number in sorted(overdue if at_once else overdue & self._overdue):
            self._told.add(number)
            place = (
                f"memory at 0x{SPIN_TABLE + 8 * number:02x}"
                if hardware.plan.wide
                else f"its mailbox 3 (0x{0x4000008C + 16 * number:08x})"
            )
            hardware.report(
                "SOC-120",
                f"core {number} waits for an event (wfe): its address 0x{waiting[number]:x} is in "
                f"{place}, but no sev has followed",
                waiting[number],
            )
        self._overdue = overdue
