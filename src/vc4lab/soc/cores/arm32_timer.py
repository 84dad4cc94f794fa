"""The instructions of AArch32 that reach the generic timer, emulated: mrc, mcr, mrrc, mcrr."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vc4lab.soc.cores.traps import HYP_REGISTERS, Action, timer_read, timer_write

if TYPE_CHECKING:
    from collections.abc import Callable

    from vc4lab.soc.cores.cpu import Cpu

READS = 1 << 20
"""Of all four: which way."""
PAIRS = {
    0: (0, 1, 0), 1: (0, 2, 0), 2: (2, 2, 0), 3: (3, 2, 0), 4: (0, 3, HYP_REGISTERS),
    6: (2, 2, HYP_REGISTERS),
}  # fmt: skip
"""Opc1 of mrrc and mcrr → CRm, op2 and level of CNTPCT, CNTVCT, CNTP_CVAL, CNTV_CVAL, CNTVOFF,
CNTHP_CVAL."""
COUNTS = (0, 1)
"""Those of them that cannot be written."""


def do_timer(cpu: Cpu, action: Action, word: int, reaches_hyp: Callable[[], bool]) -> bool:
    """Do such an instruction; False: it is undefined, as the engine has it.

    `reaches_hyp`: whether the registers of HYP mode are there.
    """
    low = word >> 12 & 15
    if action is Action.TIMER:
        crm, op2, level = word & 15, word >> 5 & 7, word >> 21 & 7
        if level and not reaches_hyp():
            return False
        if word & READS:
            cpu.set_register(low, timer_read(cpu.links, crm, op2, level) or 0)
        else:
            timer_write(cpu.links, crm, op2, cpu.register(low), level)
        return True
    number, high = word >> 4 & 15, word >> 16 & 15
    place = PAIRS.get(number)
    if place is None or (place[2] and not reaches_hyp()):
        return False
    if word & READS:
        value = timer_read(cpu.links, *place) or 0
        cpu.set_register(low, value)
        cpu.set_register(high, value >> 32)
    elif number not in COUNTS:
        crm, op2, level = place
        value = cpu.register(high) << 32 | cpu.register(low)
        timer_write(cpu.links, crm, op2, value, level)
    return True
