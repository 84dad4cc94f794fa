"""A core in AArch64 state takes an exception: which level, which vector, which registers change.

Exceptions go to the level the architecture names (ARM ARM D1): EL0 and EL1 to EL1, an interrupt to
EL2 or EL3 where HCR_EL2 or SCR_EL3 route it there, HVC to EL2. All registers are read by one call
of the engine and written by another: a system call or a page fault of Linux takes one exception,
and the engine's Python binding needs two microseconds for each single register.
"""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

from unicorn import arm64_const as a64

from vc4lab.soc.cores.engine.engine_calls import EngineCalls, Name, RegisterBatch
from vc4lab.soc.cores.exceptions.exceptions import HCR_FMO, HCR_IMO, HCR_TGE

SystemRegister = tuple[int, int, int, int, int]
"""CRn, CRm, op0, op1, op2: the engine's order."""


def _banked(crn: int, crm: int, op2: int) -> dict[int, SystemRegister]:
    """A register of EL1, EL2 and EL3."""
    return {level: (crn, crm, 3, op1, op2) for level, op1 in ((1, 0), (2, 4), (3, 6))}


VBAR, ELR, SPSR = _banked(12, 0, 0), _banked(4, 0, 1), _banked(4, 0, 0)
ESR, FAR, SCTLR = _banked(5, 2, 0), _banked(6, 0, 0), _banked(1, 0, 0)
STACK = {0: (4, 1, 3, 0, 0), 1: (4, 1, 3, 4, 0), 2: (4, 1, 3, 6, 0)}
"""SP_EL0..SP_EL2; EL3's own cannot be reached, and need not be."""
SCR, HCR = (1, 1, 3, 6, 0), (1, 1, 3, 4, 0)
MASKED = 0x3C0
FLAGS = 0xF0000000
SCR_IRQ, SCR_FIQ = 1 << 1, 1 << 2
CURRENT_SPX, LOWER = 0x200, 0x400
IRQ_VECTOR, FIQ_VECTOR = 0x080, 0x100
LOW = 0x1000
BEFORE: tuple[Name, ...] = (SCR, HCR, *VBAR.values(), *SCTLR.values(), a64.UC_ARM64_REG_SP)
STACKS = tuple(STACK.values())
"""Read with those of `BEFORE`."""


class AtEntry(IntEnum):
    """Beginnings of the registers of several levels among those that are read before an exception."""

    VECTORS = 2
    CONTROLS = 5
    STACK = 8
    STACKS = 9


class Syndrome(NamedTuple):
    """ESR, and FAR if the exception has an address."""

    cause: int
    address: int | None = None


class Registers(NamedTuple):
    """Registers that are read before an exception."""

    routing: int
    hypervisor: int
    vectors: tuple[int, int, int]
    controls: tuple[int, int, int]
    stack: int
    stacks: tuple[int, int, int]

    def interrupt_level(self, fast: bool) -> int:
        """The level that takes an interrupt."""
        if self.routing & (SCR_FIQ if fast else SCR_IRQ):
            return 3
        if self.hypervisor & (HCR_TGE | (HCR_FMO if fast else HCR_IMO)):
            return 2
        return 1

    def trap_level(self, before: int) -> int:
        """The level that takes what an instruction at a level causes."""
        return max(before, 2 if before == 0 and self.hypervisor & HCR_TGE else 1)


class Arm64Entry:
    """Lets a core take exceptions."""

    def __init__(self, calls: EngineCalls) -> None:
        self._calls = calls
        self._before = calls.batch(a64.UC_ARM64_REG_CP_REG, (*BEFORE, *STACKS))
        self._after: dict[tuple[int, int, int], RegisterBatch] = {}

    @property
    def batches(self) -> tuple[RegisterBatch, list[RegisterBatch]]:
        """Registers that are read before an interrupt, and written by it from each bank to EL1 and EL2."""
        return self._before, [self._way(bank, target, 0) for bank in STACK for target in (1, 2)]

    def registers(self) -> Registers:
        """Read the registers that decide where an exception goes."""
        found = self._before.read()
        vectors, controls, stacks = (
            found[AtEntry.VECTORS :],
            found[AtEntry.CONTROLS :],
            found[AtEntry.STACKS :],
        )
        return Registers(
            found[0],
            found[1],
            (vectors[0], vectors[1], vectors[2]),
            (controls[0], controls[1], controls[2]),
            found[AtEntry.STACK],
            (stacks[0], stacks[1], stacks[2]),
        )

    def enter(
        self, registers: Registers, status: int, target: int, kind: int, back: int, syndrome: Syndrome | None
    ) -> tuple[int, bool]:
        """Go to the vector `kind` of a level; the vector, and whether it is a low one.

        `status` is PSTATE, `back` the address to return to.
        """
        before = status >> 2 & 3
        base = registers.vectors[target - 1]
        vector = base + kind
        if before < target:
            vector += LOWER
        elif status & 1:
            vector += CURRENT_SPX
        bank = before if status & 1 else 0
        parts = 0 if syndrome is None else 1 if syndrome.address is None else 2
        batch = self._way(bank, target, parts)
        values = [back, status]
        if syndrome is not None:
            values.append(syndrome.cause)
            if syndrome.address is not None:
                values.append(syndrome.address)
        if bank != target:
            if bank in STACK:
                values.append(registers.stack)
            if target in STACK:
                values.append(registers.stacks[target])
        new = status & FLAGS | MASKED | target << 2 | 1
        batch.write(*values, new, base, vector)
        return vector, base < LOW and not registers.controls[target - 1] & 1

    def _way(self, bank: int, target: int, parts: int) -> RegisterBatch:
        """As `_make`, once for each."""
        batch = self._after.get((bank, target, parts))
        if batch is None:
            batch = self._after[bank, target, parts] = self._make(bank, target, parts)
        return batch

    def _make(self, bank: int, target: int, parts: int) -> RegisterBatch:
        """List the registers that an exception from a bank to a level writes, in this order."""
        names: list[Name] = [ELR[target], SPSR[target]]
        names += [ESR[target], FAR[target]][:parts]
        if bank != target:
            names += [STACK[bank]] if bank in STACK else []
            names += [a64.UC_ARM64_REG_SP] if target in STACK else []
        # The engine looks at the new level when a system register is written.
        names += [a64.UC_ARM64_REG_PSTATE, VBAR[target], a64.UC_ARM64_REG_PC]
        return self._calls.batch(a64.UC_ARM64_REG_CP_REG, names)
