"""Proves that a core that waits changes nothing, so that its wait need not be executed again.

A loop around wfe, or one that watches memory, is executed again at every event, for what it waits
for may have come. If nothing noticeable has happened since, the same instructions read the same
memory: once it is known that they leave all registers as they were and store nothing, counting
them is enough. The proof is one turn of the loop, executed block by block, whose instructions are
all of a kind that only computes and loads.
"""

from __future__ import annotations

from vc4lab.optimisations import STEADY_WAITS
from vc4lab.soc.cores.cpu import Cpu

MAX_BLOCKS = 16
"""A loop with more blocks in a turn is executed again each time."""
A32_PLAIN = (
    (0x0C000000, 0x00000000),  # data processing, but see A32_OTHERS
    (0x0C100000, 0x04100000),  # loads of words and bytes
    (0x0E500000, 0x08100000),  # ldm
    (0x0E000000, 0x0A000000),  # b, bl
)
"""(mask, match) of instructions that store nothing."""
A32_OTHERS = (
    (0x0F900000, 0x01000000),  # moves to and from status registers, bx, swp
    (0x0FB00000, 0x03200000),  # moves to status registers, hints
    (0x0E000090, 0x00000090),  # multiplications, loads and stores of halves, exclusive ones
    (0x0E000010, 0x06000010),  # media
)
"""Among them those that are something else."""
A32_ALLOWED = (
    (0x0FFFFF00, 0x0320F000),  # nop, yield, wfe, wfi, sev
    (0x0FFFFFF0, 0x012FFF10),  # bx
    (0x0E1000F0, 0x001000B0),  # ldrh
    (0x0FF00FFF, 0x01900F9F),  # ldrex
    (0x0FFF0FFF, 0x010F0000),  # mrs of cpsr
    (0x0FFF0FFF, 0x0E070F9A),  # dsb, dmb, isb of the ARM1176
    (0x0FFF0FFF, 0x0E070FBA),
    (0x0FFF0FFF, 0x0E070F95),
)
A32_BARRIER = (0xFFFFFF00, 0xF57FF000)
A64_PLAIN = (
    (0x1C000000, 0x10000000),  # data processing with an immediate
    (0x0E000000, 0x0A000000),  # data processing with registers
    (0x7C000000, 0x14000000),  # b, bl
    (0x7C000000, 0x34000000),  # cbz, cbnz, tbz, tbnz
    (0xFF000010, 0x54000000),  # b.cond
    (0xFFFFFC1F, 0xD65F0000),  # ret
    (0xFFFFF01F, 0xD503201F),  # hints
    (0xFFFFF01F, 0xD503301F),  # barriers, clrex
    (0x3F400000, 0x39400000),  # loads with an unsigned offset
    (0x3FE00C00, 0x38600800),  # loads with a register offset
    (0x3FE00000, 0x38400000),  # loads with a signed offset
    (0x3FE08000, 0x08C08000),  # load-acquire
    (0x3FE00000, 0x08400000),  # load-exclusive
)


def stores_nothing(word: int, wide: bool) -> bool:
    """Whether an instruction is known to change nothing but general registers and flags."""
    if wide:
        return _is_any(word, A64_PLAIN)
    if word >> 28 == 0xF:
        return word & A32_BARRIER[0] == A32_BARRIER[1]
    if _is_any(word, A32_ALLOWED):
        return True
    return _is_any(word, A32_PLAIN) and not _is_any(word, A32_OTHERS)


def _is_any(word: int, kinds: tuple[tuple[int, int], ...]) -> bool:
    return any(word & mask == match for mask, match in kinds)


class SteadyWait:
    """Knows whether a core's wait must be executed again.

    Attributes
    ----------
    turn
        Instructions that a look of the waiting core takes; 0: nothing is proved.
    """

    def __init__(self, cpu: Cpu) -> None:
        self._cpu = cpu
        self.turn = 0
        self._state: tuple[int, ...] = ()
        self._count = 0
        self._blocks: list[tuple[int, int]] | None = None
        self._hopeless = False
        self._looks = STEADY_WAITS.serves()

    def forget(self) -> None:
        """The core does something."""
        self.turn = self._count = 0
        self._state = ()
        self._blocks = None
        self._hopeless = False

    @property
    def wants_proof(self) -> bool:
        """Whether the next slice shall be executed block by block, see `note_block`."""
        return self._looks and self._count > 0 and not self.turn and not self._hopeless

    def begin(self) -> None:
        """A slice that `wants_proof` begins."""
        self._blocks = []

    def note_block(self, address: int, size: int) -> bool:
        """The core has come to a block; whether it shall stop after it."""
        assert self._blocks is not None
        self._blocks.append((address, size))
        if len(self._blocks) >= MAX_BLOCKS:
            self._hopeless = True
            return False
        return len(self._blocks) == 1 or self._now() != self._state

    def rested(self, count: int, *, touched: bool) -> None:
        """A slice of `count` instructions has ended in a wait; `touched`: not without devices."""
        blocks, self._blocks = self._blocks, None
        if touched:
            self.forget()
            return
        state = self._now()
        if (state, count) != (self._state, self._count):
            self._state, self._count = state, count
            self.turn = 0
            self._hopeless = False
        elif blocks is not None and not self._hopeless:
            self._hopeless = not self._is_harmless(blocks)
            self.turn = 0 if self._hopeless else count

    def _now(self) -> tuple[int, ...]:
        return (self._cpu.pc, *self._cpu.state())

    def _is_harmless(self, blocks: list[tuple[int, int]]) -> bool:
        cpu = self._cpu
        if cpu.executes_thumb:
            return False
        return all(
            stores_nothing(cpu.fetch(address), cpu.WIDE)
            for start, size in blocks
            for address in range(start, start + size, 4)
        )
