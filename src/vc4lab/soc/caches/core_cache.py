"""One core and the data cache: its memory hooks, its maintenance instructions, its page tables."""

from __future__ import annotations

from typing import Any

from vc4lab.soc.caches.cache_lines import hooks
from vc4lab.soc.caches.data_cache import DataCache
from vc4lab.soc.caches.page_tables import Mapping32, Mapping64
from vc4lab.soc.cores.code.traps import Action, Trap
from vc4lab.soc.cores.cpu import Cpu
from vc4lab.soc.cores.engine.memory_types import long_control
from vc4lab.soc.cores.translation import LONG_TABLES

CLEAN, INVALIDATE = 1, 2


def _c7(crm: int, op2: int) -> Trap:
    """mcr p15, 0, rt, c7, crm, op2."""
    return Trap(0x0FFF0FFF, 0x0E070F10 | op2 << 5 | crm, Action.CACHE)


MAINTENANCE = {6: INVALIDATE, 7: INVALIDATE, 10: CLEAN, 14: CLEAN | INVALIDATE, 12: CLEAN}
"""CRm of c7 (and of ARM1176's operations on ranges). Cleaning to the point of unification (c11) is
not among them: that is the ARM's own L2, which the GPU does not see."""
ARM_CACHE_TRAPS = (
    *(_c7(crm, op2) for crm in (6, 10, 14) for op2 in (0, 1, 2)),
    _c7(7, 0),
    *(Trap(0x0FF00FFF, 0x0C400F00 | crm, Action.CACHE_RANGE) for crm in (6, 12, 14)),
    Trap(0x0FFF0FFF, 0x0E010F10, Action.TRANSLATION),  # SCTLR
    Trap(0x0FFF0FDF, 0x0E020F10, Action.TRANSLATION),  # TTBR0, TTBCR
    Trap(0x0FFF0FFF, 0x0E020F30, Action.TRANSLATION),  # TTBR1
    Trap(0x0FFF0FDF, 0x0E0A0F12, Action.TRANSLATION),  # PRRR, NMRR
    Trap(0x0FFF0F10, 0x0E080F10, Action.TRANSLATION),  # TLB maintenance
)
A64_CACHE_TRAPS = (
    Trap(0xFFFFFFE0, 0xD5087620, Action.CACHE),  # dc ivac
    Trap(0xFFFFFFE0, 0xD5087640, Action.CACHE),  # dc isw
    Trap(0xFFFFFFE0, 0xD5087A40, Action.CACHE),  # dc csw
    Trap(0xFFFFFFE0, 0xD5087E40, Action.CACHE),  # dc cisw
    Trap(0xFFFFFFE0, 0xD50B7A20, Action.CACHE),  # dc cvac
    Trap(0xFFFFFFE0, 0xD50B7E20, Action.CACHE),  # dc civac
    Trap(0xFFF8FFE0, 0xD5181000, Action.TRANSLATION),  # SCTLR_ELn
    Trap(0xFFF8FF80, 0xD5182000, Action.TRANSLATION),  # TTBRn, TCR
    Trap(0xFFF8FFE0, 0xD518A200, Action.TRANSLATION),  # MAIR
    Trap(0xFFF8F000, 0xD5088000, Action.TRANSLATION),  # tlbi
)
REGISTERS_32 = {
    "SCTLR": (1, 0, 0),
    "TTBR0": (2, 0, 0),
    "TTBR1": (2, 0, 1),
    "TTBCR": (2, 0, 2),
    "PRRR": (10, 2, 0),
    "NMRR": (10, 2, 1),
}
"""CRn, CRm, op2."""
REGISTERS_64 = {
    "SCTLR": (1, 0, 0),
    "TTBR0": (2, 0, 0),
    "TTBR1": (2, 0, 1),
    "TCR": (2, 0, 2),
    "MAIR": (10, 2, 0),
}
LEVELS = {0: 1, 4: 2, 6: 3}
"""op1 of a system register → exception level."""
MMU = "the MMU"
PAGE = 4096
LARGEST_RANGE = 1 << 24
MAX_WALKS = 200
"""TLB maintenance that leads to a new look at the tables; a program may do it for every page."""


class CoreCache:
    """Brings one core's accesses to the cache. Made before the core has executed anything."""

    def __init__(self, cache: DataCache, cpu: Cpu) -> None:
        self._cache = cache
        self._cpu = cpu
        self._level_op1 = 4
        self._walks = 0
        self._old_core = cpu.model == "1176"
        unicorn = cpu._unicorn
        read = cpu.calls.address_of("uc_reg_read")
        self.state, self._attributes = cache.lines.state(read, cpu.PC, cache.mark)
        cache.states.append(self.state)
        native = hooks()
        for kind, name in ((unicorn.UC_HOOK_MEM_WRITE, "store"), (unicorn.UC_HOOK_MEM_READ, "load")):
            cpu.calls.add_hook(kind, native[name].address, self.state.address)
        cpu.watch_instructions(
            A64_CACHE_TRAPS if cpu.WIDE else ARM_CACHE_TRAPS,
            {
                Action.CACHE: self._on_maintenance,
                Action.CACHE_RANGE: self._on_range,
                Action.TRANSLATION: self._on_translation,
            },
        )

    # -- maintenance -------------------------------------------------------------------------------

    def _word(self, address: int) -> int:
        cpu = self._cpu
        if cpu.executes_thumb:
            return cpu.fetch(address, 2) << 16 | cpu.fetch(address + 2, 2)
        return cpu.fetch(address)

    def _on_maintenance(self, address: int) -> None:
        word = self._word(address)
        if self._cpu.WIDE:
            crm, op2, target = word >> 8 & 15, word >> 5 & 7, word & 31
            value = 0 if target == 31 else self._cpu.register(target)
            whole = op2 == 2
        else:
            crm, op2 = word & 15, word >> 5 & 7
            value = self._cpu.register(word >> 12 & 15)
            whole = op2 != 1
            if op2 == 0 and not self._old_core:
                return
        kind = MAINTENANCE[crm]
        if whole:
            self._whole(kind)
            return
        place = self._cpu.translate(value)
        if place is not None:
            self._one(kind, self._cache.line(place))

    def _whole(self, kind: int) -> None:
        """All of it; an operation by set and way counts as that, as it only comes in loops."""
        if kind & CLEAN:
            self._cache.clean_all()
        if kind & INVALIDATE:
            self._cache.invalidate_all()

    def _one(self, kind: int, line: int) -> None:
        if kind & CLEAN:
            self._cache.clean(line)
        if kind & INVALIDATE:
            self._cache.invalidate(line)

    def _on_range(self, address: int) -> None:
        """ARM1176: mcrr p15, 0, end, start, crm."""
        if not self._old_core:
            return
        word = self._word(address)
        end, start = (self._cpu.register(word >> at & 15) for at in (12, 16))
        size = self._cache.lines.size
        last = min(end, start + LARGEST_RANGE)
        for page in range(start & -PAGE, last + 1, PAGE):
            place = self._cpu.translate(page)
            if place is None:
                continue
            first, past = max(start, page) - page & -size, min(last + 1, page + PAGE) - page
            lines = range(place + first, place + past, size)
            for line in self._cache.held_among([self._cache.line(at) for at in lines]):
                self._one(MAINTENANCE[word & 15], line)

    # -- what is cached ----------------------------------------------------------------------------

    def _on_translation(self, address: int) -> None:
        """A register of the MMU is about to be written, or the TLB to be emptied."""
        word = self._word(address)
        wide = self._cpu.WIDE
        crn = word >> 12 & 15 if wide else word >> 16 & 15
        if crn == 1:
            self._cpu.control_written()
        if crn == 8:
            self._walks += 1
            if self._walks > MAX_WALKS:
                return
        if wide:
            crm, op2, target = word >> 8 & 15, word >> 5 & 7, word & 31
            op1 = word >> 16 & 7
            if op1 not in LEVELS:
                return
            if crn == 1:
                self._level_op1 = op1
            if crn != 8 and op1 != self._level_op1:
                return
            value = 0 if target == 31 else self._cpu.register(target)
            table = REGISTERS_64
        else:
            crm, op2 = word & 15, word >> 5 & 7
            value = self._cpu.register(word >> 12 & 15)
            table = REGISTERS_32
        registers = {name: self._register(place) for name, place in table.items()}
        for name, place in table.items():
            if place == (crn, crm, op2):
                registers[name] = value
        self.look_at_tables(registers)

    def _register(self, place: tuple[int, int, int]) -> int:
        crn, crm, op2 = place
        cpu = self._cpu
        if cpu.WIDE:
            if op2 == 1 and self._level_op1 != 0:
                return 0
            key: Any = (crn, crm, 3, self._level_op1, op2)
        else:
            if crn == 10 and self._old_core:
                return 0
            key = (15, 0, 0, crn, crm, 0, op2)
        return cpu.system_register(key)

    def look_at_tables(self, registers: dict[str, int]) -> None:
        """Find out which pages are cached."""
        memory = self._cache.memory
        mapping: Mapping32 | Mapping64
        if self._cpu.WIDE:
            two_halves = LEVELS[self._level_op1] == 1
            mapping = Mapping64(memory, registers, two_halves=two_halves)
        elif registers["TTBCR"] & LONG_TABLES and not self._old_core:
            control = long_control(registers["TTBCR"])
            attributes = registers["NMRR"] << 32 | registers["PRRR"]
            mapping = Mapping64(memory, registers | {"TCR": control, "MAIR": attributes}, two_halves=True)
        else:
            mapping = Mapping32(memory, registers, old_core=self._old_core)
        mapping.fill(self._attributes)
        if mapping.walks_past_cache:
            for address, size in mapping.tables:
                self._cache.reads(MMU, "a translation table", address, size)
