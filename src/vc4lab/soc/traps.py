"""Instructions that the CPU engine has not or has wrong: found in the code, done here.

When a page of code is met for the first time it is searched for these patterns, and a hook stops
at each place that matches (see `code_pages.py`). What only looks like such an instruction, because
it is data, costs nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from vc4lab.soc.generic_timer import PHYSICAL, VIRTUAL, GenericTimer

if TYPE_CHECKING:
    from collections.abc import Callable


class Action(Enum):
    """What a trapped instruction is."""

    TIMER = "a register of the generic timer"
    TIMER_PAIR = "a 64-bit register of the generic timer"
    CYCLES = "the cycle counter"
    CORE_NUMBER = "MPIDR"
    CORE_NAME = "MIDR"
    HYP_RETURN = "eret"
    HYP_RETURN_ADDRESS = "ELR_hyp"
    HYP_SAVED_STATUS = "SPSR_hyp"
    SEND_EVENT = "sev"
    WAIT_FOR_EVENT = "wfe"
    CODE_CHANGED = "instruction cache maintenance"
    CACHE = "data cache maintenance"
    CACHE_RANGE = "data cache maintenance of a range (ARM1176)"
    TRANSLATION = "a register of the MMU, or TLB maintenance"


@dataclass(frozen=True)
class Trap:
    """Words with `word & mask == match`."""

    mask: int
    match: int
    action: Action


ARM_TRAPS = (
    Trap(0x0FEF0FFF, 0x0E0E0F10, Action.TIMER),  # mrc, mcr p15, 0, rt, c14, c0, 0: CNTFRQ
    Trap(0x0FEF0F1E, 0x0E0E0F12, Action.TIMER),  # mrc, mcr p15, 0, rt, c14, c2 or c3, n
    Trap(0x0FE00F8E, 0x0C400F0E, Action.TIMER_PAIR),  # mrrc, mcrr p15, 0..7, rt, rt2, c14
    Trap(0x0FFF0FFF, 0x0E190F1D, Action.CYCLES),  # mrc p15, 0, rt, c9, c13, 0
    Trap(0x0FFF0FFF, 0x0E1F0F3C, Action.CYCLES),  # mrc p15, 0, rt, c15, c12, 1 (ARM1176)
    Trap(0x0FFFFFFF, 0x0320F004, Action.SEND_EVENT),
    Trap(0x0FFF0FDF, 0x0E070F15, Action.CODE_CHANGED),  # ICIALLU, ICIMVAU: c7, c5, 0 or 2..
    Trap(0x0FFF0FFF, 0x0E070F35, Action.CODE_CHANGED),  # c7, c5, 1
    Trap(0x0FFF0FFF, 0x0E070F11, Action.CODE_CHANGED),  # ICIALLUIS
)
HYP_TRAPS = (
    Trap(0x0FFFFFFF, 0x0160006E, Action.HYP_RETURN),
    Trap(0x0FFFFFF0, 0x012EF300, Action.HYP_RETURN_ADDRESS),  # msr ELR_hyp, rt
    Trap(0x0FFF0FFF, 0x010E0300, Action.HYP_RETURN_ADDRESS),  # mrs rt, ELR_hyp
    Trap(0x0FFFFFF0, 0x016EF300, Action.HYP_SAVED_STATUS),  # msr SPSR_hyp, rt
    Trap(0x0FFF0FFF, 0x014E0300, Action.HYP_SAVED_STATUS),  # mrs rt, SPSR_hyp
)
"""For cores that begin in HYP mode."""
IDENTITY_TRAPS = (
    Trap(0x0FFF0FFF, 0x0E100FB0, Action.CORE_NUMBER),  # mrc p15, 0, rt, c0, c0, 5
    Trap(0x0FFF0FFF, 0x0E100F10, Action.CORE_NAME),  # mrc p15, 0, rt, c0, c0, 0
)
"""In HYP mode the engine gives its own numbers for these."""
THUMB_SEV = 0xBF40
A64_TRAPS = (
    Trap(0xFFFFF000, 0xD51BE000, Action.TIMER),  # msr CNT*_EL0
    Trap(0xFFFFFFE0, 0xD53BE000, Action.TIMER),  # mrs CNTFRQ_EL0; the counts: native_counter.py
    Trap(0xFFFFFE00, 0xD53BE200, Action.TIMER),  # mrs CNTP_*_EL0, CNTV_*_EL0
    Trap(0xFFFFFFE0, 0xD53B9D00, Action.CYCLES),  # mrs PMCCNTR_EL0
    Trap(0xFFFFFFE0, 0xD53800A0, Action.CORE_NUMBER),  # mrs MPIDR_EL1: 0 at EL2 in the engine
    Trap(0xFFFFFFDF, 0xD503209F, Action.SEND_EVENT),  # sev, sevl
    Trap(0xFFFFFFFF, 0xD503205F, Action.WAIT_FOR_EVENT),
    Trap(0xFFFFFBFF, 0xD508711F, Action.CODE_CHANGED),  # ic iallu(is)
    Trap(0xFFFFFFE0, 0xD50B7520, Action.CODE_CHANGED),  # ic ivau
)


@dataclass
class CoreLinks:
    """What a core's trapped instructions reach outside of it."""

    timer: GenericTimer | None
    cycles: Callable[[], int]
    time_polled: Callable[[], None]
    send_event: Callable[[], None]
    code_changed: Callable[[], None]
    report: Callable[[str, str, int], None]
    """For mistakes that only a core notices: code, sentence, address."""
    bus: int = 0
    """Host address of the `BusState` that counts what is polled."""


def timer_read(links: CoreLinks, crm: int, op2: int) -> int | None:
    """A read of CNT register (CRm, op2); None if there is none."""
    timer = links.timer
    if timer is None:
        return None
    if crm == 0:
        if op2 == 0:
            return timer.frequency
        links.time_polled()
        return timer.count if op2 < 3 else None
    if crm not in (2, 3) or op2 > 2:
        return 0
    unit = PHYSICAL if crm == 2 else VIRTUAL
    if op2 == 0:
        links.time_polled()
        return timer.read_value(unit)
    if op2 == 1:
        links.time_polled()
        return timer.read_control(unit)
    return timer.read_compare(unit)


def timer_write(links: CoreLinks, crm: int, op2: int, value: int) -> None:
    """A write of CNT register (CRm, op2)."""
    timer = links.timer
    if timer is not None and (crm, op2) == (0, 0):
        timer.frequency = value & 0xFFFFFFFF
    if timer is None or crm not in (2, 3):
        return
    unit = PHYSICAL if crm == 2 else VIRTUAL
    if op2 == 0:
        timer.write_value(unit, value)
    elif op2 == 1:
        timer.write_control(unit, value)
    elif op2 == 2:
        timer.write_compare(unit, value)
