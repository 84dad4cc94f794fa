"""ARM exceptions, taken in software: the CPU engine reports them but never goes to a vector."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from vc4lab.soc.cores.engine.engine_calls import EngineCalls, RegisterBatch

MODE_MASK = 0x1F
THUMB = 1 << 5
FIQ_MASKED = 1 << 6
IRQ_MASKED = 1 << 7
ABORT_MASKED = 1 << 8
ALL_MASKED = FIQ_MASKED | IRQ_MASKED | ABORT_MASKED
HCR_FMO, HCR_IMO, HCR_TGE = 1 << 3, 1 << 4, 1 << 27
"""Bits of HCR and HCR_EL2: FIQs, IRQs, all exceptions go to HYP mode or EL2."""
INSTRUCTIONS_PER_EXCEPTION = 10
"""Time an exception takes, so that a storm of them ends with its slice."""
IT_AND_JAZELLE = 0x0700FC00
"""CPSR bits of an unfinished IT block and of Jazelle: an exception clears them."""

USER, FIQ, IRQ, SUPERVISOR, ABORT, UNDEFINED, SYSTEM = 0x10, 0x11, 0x12, 0x13, 0x17, 0x1B, 0x1F
HYP = 0x1A


@dataclass(frozen=True)
class Kind:
    """One row of the exception table (ARM ARM B1.8.1): vector, mode entered, offset of LR."""

    title: str
    vector: int
    mode: int
    arm_offset: int
    thumb_offset: int
    masks: int = IRQ_MASKED


class ArmException(Enum):
    """The exceptions of AArch32; the offsets are added to the address the instruction stands at."""

    MONITOR_CALL = Kind("secure monitor call (smc)", 0x08, UNDEFINED, 4, 2, ALL_MASKED)
    UNDEFINED = Kind("undefined instruction", 0x04, UNDEFINED, 4, 2)
    SUPERVISOR_CALL = Kind("supervisor call (svc)", 0x08, SUPERVISOR, 4, 2)
    PREFETCH_ABORT = Kind("prefetch abort", 0x0C, ABORT, 4, 4, IRQ_MASKED | ABORT_MASKED)
    DATA_ABORT = Kind("data abort", 0x10, ABORT, 8, 8, IRQ_MASKED | ABORT_MASKED)
    HYPERVISOR_CALL = Kind("hypervisor call (hvc)", 0x14, HYP, 0, 0)
    IRQ = Kind("interrupt", 0x18, IRQ, 4, 4, IRQ_MASKED | ABORT_MASKED)
    FIQ = Kind("fast interrupt", 0x1C, FIQ, 4, 4, IRQ_MASKED | ABORT_MASKED | FIQ_MASKED)


class ExceptionTaken(NamedTuple):
    """A core is about to take an exception, at an instruction."""

    exception: ArmException
    address: int


ENGINE_SVC, ENGINE_PREFETCH, ENGINE_DATA, ENGINE_BKPT = 2, 3, 4, 7
ENGINE_HVC, ENGINE_SMC = 11, 13
"""Numbers by which the engine names the exceptions it hands over (QEMU's target/arm/cpu.h)."""
ABORTS = {
    ENGINE_PREFETCH: ArmException.PREFETCH_ABORT,
    ENGINE_BKPT: ArmException.PREFETCH_ABORT,
    ENGINE_DATA: ArmException.DATA_ABORT,
}
HIGH_VECTORS = 0xFFFF0000
MONITOR_VECTORS = 0
"""The firmware's MVBAR: programs put a handler there and call it to change the state.
The engine has no monitor mode; undefined mode stands in for it, and both states are one."""
SCTLR = (15, 0, 0, 1, 0, 0, 0)
VBAR = (15, 0, 0, 12, 0, 0, 0)
"""The engine's names of two system registers: coprocessor, 64-bit, secure, CRn, CRm, op1, op2."""
SCTLR_M = 1 << 0
SCTLR_A = 1 << 1
SCTLR_C = 1 << 2
SCTLR_V = 1 << 13
SCTLR_U = 1 << 22
SCTLR_XP = 1 << 23
SCTLR_TE = 1 << 30
"""Thumb exceptions: handlers are Thumb code."""


class ExceptionEntry:
    """Lets a core take the exceptions that do not go to HYP mode."""

    def __init__(self, calls: EngineCalls) -> None:
        from unicorn import arm_const as arm

        self._before = calls.batch(arm.UC_ARM_REG_CP_REG, (arm.UC_ARM_REG_CPSR, SCTLR, VBAR))
        self._after = calls.batch(
            arm.UC_ARM_REG_CP_REG,
            (arm.UC_ARM_REG_CPSR, arm.UC_ARM_REG_LR, arm.UC_ARM_REG_SPSR, arm.UC_ARM_REG_PC),
        )

    @property
    def batches(self) -> tuple[RegisterBatch, list[RegisterBatch]]:
        """Registers that are read before, and written by it: for native code."""
        return self._before, [self._after]

    def enter(self, exception: ArmException, address: int, monitor_vectors: int) -> int:
        """Take `exception`; `address` is that of the instruction (IRQ: of the next one).

        Writes CPSR, then LR and SPSR of the new mode, and PC. Returns the vector's address.
        `monitor_vectors`: MVBAR.
        """
        kind = exception.value
        cpsr, control, base = self._before.read()
        if exception is ArmException.MONITOR_CALL:
            base = monitor_vectors
        elif control & SCTLR_V:
            base = HIGH_VECTORS
        else:
            base &= ~31
        new = cpsr & ~(MODE_MASK | THUMB | IT_AND_JAZELLE) | kind.mode | kind.masks
        if control & SCTLR_TE:
            new |= THUMB
        offset = kind.thumb_offset if cpsr & THUMB else kind.arm_offset
        vector: int = base + kind.vector
        back = address + offset & 0xFFFFFFFF
        self._after.write(new, back, cpsr, vector | (1 if new & THUMB else 0))
        return vector
