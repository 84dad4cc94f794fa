"""SCTLR and the page tables of a core in either state: which accesses are checked or not cached."""

from __future__ import annotations

from collections.abc import Iterator

from vc4lab.soc.cores.cpu import Cpu
from vc4lab.soc.cores.engine import alignment, memory_types
from vc4lab.soc.cores.engine.alignment_words import CHECKED, FREE, LEGACY
from vc4lab.soc.cores.engine.memory_types import FirstTable
from vc4lab.soc.cores.exceptions import arm64_entry, hyp
from vc4lab.soc.cores.exceptions.exceptions import HYP, MODE_MASK, SCTLR, SCTLR_A, SCTLR_M, SCTLR_U, SCTLR_XP
from vc4lab.soc.cores.hyp_core import HypCore

TTBR0, TTBR1, TTBCR = (15, 0, 0, 2, 0, 0, 0), (15, 0, 0, 2, 0, 0, 1), (15, 0, 0, 2, 0, 0, 2)
PRRR, NMRR, LONG_TABLES = (15, 0, 0, 10, 2, 0, 0), (15, 0, 0, 10, 2, 0, 1), 1 << 31
LEVEL_OP1 = {1: 0, 2: 4, 3: 6}
"""Op1 of an exception level's system registers."""


def _long_halves(bases: tuple[int, int], control: int, width: int) -> Iterator[FirstTable]:
    """The first tables of long descriptors of 4 KiB granules; `width`: bits of a virtual address."""
    for upper, base in enumerate(bases):
        if upper and (control & memory_types.UPPER_UNUSED or control >> 30 & 3 != 2):
            return
        size = control >> 16 * upper & 63
        first = memory_types.first_table(base, size)
        if first is not None and (upper or not control >> 14 & 3):
            yield FirstTable(*first, (1 << width) - (1 << 64 - size) if upper else 0, is_long=True)


class Tables32(Cpu):
    """A core in AArch32 state."""

    hyp_core: HypCore | None = None
    """Its part for HYP mode, if it has one."""

    @property
    def in_hyp(self) -> bool:
        """Whether it is in HYP mode."""
        return self.cpsr & MODE_MASK == HYP

    def _alignment_modes(self) -> dict[int, int]:
        control = self.system_register(SCTLR)
        modes = dict.fromkeys((*alignment.SYSTEM, *alignment.MONITOR), self._mode_of(control))
        if self.hyp_core is not None:
            control = self.system_register(hyp.HSCTLR)
            hypervisor = self._mode_of(control, hypervisor=True)
            modes |= dict.fromkeys(alignment.HYPERVISOR, hypervisor)
        return modes

    def _mode_of(self, control: int, *, hypervisor: bool = False) -> int:
        """Choose what is checked with a value of SCTLR, or of HSCTLR."""
        if control & SCTLR_A:
            return CHECKED
        old = self.model == "1176"
        if old and not control & SCTLR_U:
            return LEGACY
        if not control & SCTLR_M:
            return FREE if old else CHECKED
        if hypervisor or (old and not control & SCTLR_XP):
            return FREE
        return self._mode_with_tables()

    def _device_spans(self) -> Iterator[memory_types.Span]:
        split = self.system_register(TTBCR)
        if split & LONG_TABLES:
            base, attributes = self.system_register(TTBR0), self._long_attributes()
            return memory_types.long_spans(self.memory, base, memory_types.long_control(split), attributes)
        control, remap = self.system_register(SCTLR), 0
        if control & memory_types.TEX_REMAP:
            remap = self.system_register(PRRR)
        bases = self.system_register(TTBR0), self.system_register(TTBR1)
        return memory_types.short_spans(self.memory, control, bases, split, remap)

    def _is_uncached(self, address: int) -> bool:
        split = self.system_register(TTBCR)
        if self.in_hyp:
            return False
        if split & LONG_TABLES:
            return self._is_uncached_long(address, memory_types.long_control(split))
        control, maps = self.system_register(SCTLR), (0, 0)
        if self.model == "1176" and not control & SCTLR_XP:
            return False
        if control & memory_types.TEX_REMAP:
            maps = self.system_register(PRRR), self.system_register(NMRR)
        bases = self.system_register(TTBR0), self.system_register(TTBR1)
        return memory_types.is_uncached_short(self.memory, address, control, bases, split, maps)

    @property
    def may_translate(self) -> bool:
        return bool(self.system_register(SCTLR) & SCTLR_M)

    @property
    def first_tables(self) -> tuple[FirstTable, ...]:
        if self.in_hyp or not self.system_register(SCTLR) & SCTLR_M:
            return ()
        split = self.system_register(TTBCR)
        bases = self.system_register(TTBR0), self.system_register(TTBR1)
        if split & LONG_TABLES and self.model != "1176":
            return tuple(_long_halves(bases, memory_types.long_control(split), 32))
        width = split & 7
        low = FirstTable(bases[0] & -1 << 14 - width, 1, 4096 >> width, 0, is_long=False)
        if not width:
            return (low,)
        first = 4096 >> width
        place = (bases[1] & -1 << 14) + 4 * first
        return low, FirstTable(place, 1, 4096 - first, first << 20, is_long=False)

    def _long_attributes(self) -> int:
        """MAIR1 and MAIR0, which have the numbers of PRRR and NMRR."""
        return self.system_register(NMRR) << 32 | self.system_register(PRRR)

    def _is_uncached_long(self, address: int, control: int) -> bool:
        low = 64 - (control & 63)
        if not address >> low:
            base, size = self.system_register(TTBR0), control & 63
        elif control & memory_types.UPPER_UNUSED:
            return False
        else:
            base, size = self.system_register(TTBR1), control >> 16 & 63
        return memory_types.is_uncached_long(self.memory, address, base, size, self._long_attributes())


class Tables64(Cpu):
    """A core in AArch64 state."""

    @property
    def level(self) -> int:
        """The exception level."""
        return self.cpsr >> 2 & 3

    def _alignment_modes(self) -> dict[int, int]:
        modes: dict[int, int] = {}
        for level, regimes in ((1, alignment.SYSTEM), (2, alignment.HYPERVISOR), (3, alignment.MONITOR)):
            control = self.system_register(arm64_entry.SCTLR[level])
            mode = CHECKED
            if control & SCTLR_M and not control & SCTLR_A:
                here = level == max(self.level, 1)
                mode = self._mode_with_tables() if here else FREE
            modes |= dict.fromkeys(regimes, mode)
        return modes

    def _device_spans(self) -> Iterator[memory_types.Span]:
        base, control, attributes = (
            self.system_register((*place, 3, LEVEL_OP1[max(self.level, 1)], op2))
            for place, op2 in (((2, 0), 0), ((2, 0), 2), ((10, 2), 0))
        )
        return memory_types.long_spans(self.memory, base, control, attributes)

    @property
    def may_translate(self) -> bool:
        return any(self.system_register(arm64_entry.SCTLR[level]) & SCTLR_M for level in (1, 2, 3))

    @property
    def first_tables(self) -> tuple[FirstTable, ...]:
        level = max(self.level, 1)
        if not self.system_control & SCTLR_M:
            return ()
        op1 = LEVEL_OP1[level]
        bases = self.system_register((2, 0, 3, op1, 0)), self.system_register((2, 0, 3, 0, 1))
        control = self.system_register((2, 0, 3, op1, 2))
        return tuple(_long_halves(bases, control, 64))[: 2 if level == 1 else 1]

    def _is_uncached(self, address: int) -> bool:
        upper = address >> 63
        base, control, attributes = (
            self.system_register((*place, 3, LEVEL_OP1[max(self.level, 1)], op2))
            for place, op2 in (((2, 0), upper), ((2, 0), 2), ((10, 2), 0))
        )
        if (self.level > 1 and upper) or control >> (30 if upper else 14) & 3 != (2 if upper else 0):
            return False
        size = control >> (16 if upper else 0) & 63
        return memory_types.is_uncached_long(self.memory, address, base, size, attributes)
