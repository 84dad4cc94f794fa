"""HYP mode of a Cortex-A7 or A53 in AArch32 state, in which the firmware of a Pi 2 or 3 leaves it.

The engine has HYP mode, but lets no program into it from outside except by way of the monitor mode,
and does not show ELR_hyp. So that register is kept in `hyp_core.py`, and the instructions that use
it (mrs, msr, eret) are emulated, like the exceptions. Source: ARM Architecture Reference Manual
ARMv7-A, B1.3.3 (modes), B1.8 (exceptions), B9.3 (eret, hvc, mrs and msr of banked registers).
"""

from __future__ import annotations

from typing import Any

from unicorn import arm_const as arm

from vc4lab.soc.cores.engine.engine_calls import EngineCalls, FaultStatus
from vc4lab.soc.cores.exceptions.exceptions import (
    ABORT_MASKED,
    ALL_MASKED,
    FIQ_MASKED,
    HYP,
    IRQ_MASKED,
    IT_AND_JAZELLE,
    MODE_MASK,
    SCTLR_TE,
    THUMB,
    ArmException,
)

MONITOR = 0x16
START = 0x1C0 | HYP
"""CPSR at the kernel's first instruction: everything masked."""
NON_SECURE = 1
SCR_FIRMWARE = 0x131
"""Not secure; FIQ and aborts may be masked; HVC allowed: as the firmware's stub sets it."""
SCR = (15, 0, 0, 1, 1, 0, 0)
HSCTLR, HCR, HSR = (15, 0, 0, 1, 0, 4, 0), (15, 0, 0, 1, 1, 4, 0), (15, 0, 0, 5, 2, 4, 0)
HDFAR, HIFAR, HVBAR = (15, 0, 0, 6, 0, 4, 0), (15, 0, 0, 6, 0, 4, 2), (15, 0, 0, 12, 0, 4, 0)
REGISTERS: dict[str, tuple[int, ...]] = {
    "HCR": HCR,
    "HDCR": (15, 0, 0, 1, 1, 4, 1),
    "HCPTR": (15, 0, 0, 1, 1, 4, 2),
    "HSTR": (15, 0, 0, 1, 1, 4, 3),
    "HTCR": (15, 0, 0, 2, 0, 4, 2),
    "VTCR": (15, 0, 0, 2, 1, 4, 2),
    "HSR": HSR,
    "HDFAR": HDFAR,
    "HIFAR": HIFAR,
    "HPFAR": (15, 0, 0, 6, 0, 4, 4),
    "HMAIR0": (15, 0, 0, 10, 2, 4, 0),
    "HMAIR1": (15, 0, 0, 10, 2, 4, 1),
    "HVBAR": HVBAR,
    "HTPIDR": (15, 0, 0, 13, 0, 4, 2),
    "CNTHCTL": (15, 0, 0, 14, 1, 4, 0),
    "HSCTLR": HSCTLR,
}
"""For saved states, in the order of writing. The 64-bit table bases are not among them."""
INSTRUCTION_LENGTH = 1 << 25
CLASS_UNKNOWN, CLASS_ILLEGAL_STATE, CLASS_SVC, CLASS_HVC = 0x00, 0x0E, 0x11, 0x12
CLASS_PREFETCH, CLASS_DATA = 0x20, 0x24
"""Aborts of another mode; those of HYP mode itself are one higher."""


def mode_of(engine: Any) -> int:
    """The mode, in hooks, too."""
    return int(engine.reg_read(arm.UC_ARM_REG_CPSR)) & MODE_MASK


def enter_mode(engine: Any, cpsr: int) -> None:
    """Set CPSR to a value whose mode is HYP, whatever the mode is now."""
    if engine.reg_read(arm.UC_ARM_REG_CPSR) & MODE_MASK != HYP:
        enter_monitor(engine, cpsr)
    engine.reg_write(arm.UC_ARM_REG_CPSR, cpsr)


def enter_monitor(engine: Any, cpsr: int) -> None:
    """Set CPSR to a value with monitor mode instead of its own, all interrupts masked."""
    scr = engine.reg_read(arm.UC_ARM_REG_CP_REG, SCR)
    engine.reg_write(arm.UC_ARM_REG_CP_REG, (*SCR, scr & ~NON_SECURE))
    new = cpsr & ~(MODE_MASK | THUMB | IT_AND_JAZELLE) | ALL_MASKED | MONITOR
    engine.reg_write(arm.UC_ARM_REG_CPSR, new)
    engine.reg_write(arm.UC_ARM_REG_CP_REG, (*SCR, scr | NON_SECURE))


def allow(engine: Any) -> None:
    """Let the engine have HYP mode."""
    engine.reg_write(arm.UC_ARM_REG_CP_REG, (*SCR, SCR_FIRMWARE))


def enter(
    engine: Any, exception: ArmException, address: int, word: int, fault: FaultStatus, illegal: bool = False
) -> tuple[int, int]:
    """Take an exception to HYP mode: vector and ELR_hyp.

    `word` is the instruction, `fault` what is known of an abort,
    `illegal` whether the state is illegal (and no instruction undefined).
    """
    cpsr = engine.reg_read(arm.UC_ARM_REG_CPSR)
    control = engine.reg_read(arm.UC_ARM_REG_CP_REG, HSCTLR)
    base = engine.reg_read(arm.UC_ARM_REG_CP_REG, HVBAR) & ~31
    back, offset = address, exception.value.vector
    interrupt = exception in (ArmException.IRQ, ArmException.FIQ)
    inside = cpsr & MODE_MASK == HYP
    if exception in (ArmException.SUPERVISOR_CALL, ArmException.HYPERVISOR_CALL):
        back += 2 if cpsr & THUMB and exception is ArmException.SUPERVISOR_CALL else 4
        if inside:
            offset = ArmException.SUPERVISOR_CALL.value.vector
    if not interrupt:
        if not inside:
            offset = ArmException.HYPERVISOR_CALL.value.vector
        if illegal:
            syndrome = CLASS_ILLEGAL_STATE << 26 | INSTRUCTION_LENGTH
        else:
            syndrome = _syndrome(exception, word, fault.syndrome, bool(cpsr & THUMB), inside)
        engine.reg_write(arm.UC_ARM_REG_CP_REG, (*HSR, syndrome))
    if exception in (ArmException.DATA_ABORT, ArmException.PREFETCH_ABORT):
        place = HDFAR if exception is ArmException.DATA_ABORT else HIFAR
        engine.reg_write(arm.UC_ARM_REG_CP_REG, (*place, fault.address & 0xFFFFFFFF))
    new = cpsr & ~(MODE_MASK | THUMB | IT_AND_JAZELLE)
    new |= HYP | IRQ_MASKED | FIQ_MASKED | ABORT_MASKED
    if control & SCTLR_TE:
        new |= THUMB
    enter_mode(engine, new)
    engine.reg_write(arm.UC_ARM_REG_SPSR, cpsr)
    vector = int(base + offset)
    engine.reg_write(arm.UC_ARM_REG_PC, vector | (1 if new & THUMB else 0))
    return vector, back & 0xFFFFFFFF


def _syndrome(exception: ArmException, word: int, engine_syndrome: int, thumb: bool, inside: bool) -> int:
    """HSR: class, length of the instruction, what the class has to say."""
    if exception is ArmException.SUPERVISOR_CALL:
        if thumb:
            return CLASS_SVC << 26 | word & 0xFF
        return CLASS_SVC << 26 | INSTRUCTION_LENGTH | word & 0xFFFF
    if exception is ArmException.HYPERVISOR_CALL:
        number = word >> 4 & 0xFFF0 | word & 15
        if thumb:
            number = (word >> 16 & 15) << 12 | word & 0xFFF
        return CLASS_HVC << 26 | INSTRUCTION_LENGTH | number
    if exception is ArmException.UNDEFINED:
        return CLASS_UNKNOWN << 26 | INSTRUCTION_LENGTH
    kind = CLASS_DATA if exception is ArmException.DATA_ABORT else CLASS_PREFETCH
    return (kind | inside) << 26 | INSTRUCTION_LENGTH | engine_syndrome & (INSTRUCTION_LENGTH - 1)


class Leaving:
    """eret: back to what SPSR_hyp says."""

    def __init__(self, calls: EngineCalls) -> None:
        system = arm.UC_ARM_REG_CP_REG
        self._before = calls.batch(system, (arm.UC_ARM_REG_SPSR, SCR))
        # The engine looks at the new mode when a system register is written.
        self._after = calls.batch(system, (arm.UC_ARM_REG_CPSR, SCR))

    def leave(self, address: int) -> int:
        """Back to the mode that was left, at `address`; where to go on."""
        cpsr, scr = self._before.read()
        self._after.write(cpsr, scr)
        return address & (~1 if cpsr & THUMB else ~3)
