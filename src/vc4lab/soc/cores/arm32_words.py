"""AArch32 instructions that are emulated here, identified by their words, and their conditions.

Those that reach the generic timer (mrc, mcr, mrrc, mcrr) are done here, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from vc4lab.soc.cores.code.traps import HYP_REGISTERS, Action, timer_read, timer_write
from vc4lab.soc.cores.cpu import Cpu

THUMB_WAITS = WFE_THUMB, YIELD_THUMB = 0xBF20, 0xBF10
"""WFE and YIELD; those of A32: `native_events.py`."""
READS = 1 << 20
"""Set in mrc and mrrc, clear in mcr and mcrr."""
PAIRS = {
    0: (0, 1, 0), 1: (0, 2, 0), 2: (2, 2, 0), 3: (3, 2, 0), 4: (0, 3, HYP_REGISTERS),
    6: (2, 2, HYP_REGISTERS),
}  # fmt: skip
"""Opc1 of mrrc and mcrr → CRm, op2 and level of CNTPCT, CNTVCT, CNTP_CVAL, CNTV_CVAL, CNTVOFF,
CNTHP_CVAL."""
COUNTS = (0, 1)
"""Those of them that cannot be written."""
EMPTY_WORDS = 16
"""So many zeros in a row are no program."""


def is_monitor_call(word: int, thumb: bool) -> bool:
    """SMC; of 32 bits in Thumb code, too, whose first half is the lower one in memory."""
    if thumb:
        return word & 0x8000FFF0 == 0x8000F7F0
    return word & 0x0FFFFFF0 == 0x01600070


def is_security_register(word: int) -> bool:
    """MRC or MCR p15, 0, rt, c1, c1, n: SCR, SDER, NSACR."""
    return word & 0x0FEF0F1F == 0x0E010F11


def is_monitor_vectors(word: int) -> bool:
    """MRC or MCR p15, 0, rt, c12, c0, 1: MVBAR."""
    return word & 0x0FEF0FFF == 0x0E0C0F30


def condition_met(condition: int, cpsr: int) -> bool:
    """Whether the flags meet the condition of an instruction."""
    if condition >= 14:
        return True
    flags = cpsr >> 28
    n, z, c, v = flags >> 3 & 1, flags >> 2 & 1, flags >> 1 & 1, flags & 1
    met = (z, c, n, v, c and not z, n == v, n == v and not z)[condition >> 1]
    return bool(met) != bool(condition & 1)


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


def leads_to_nothing(words: Iterable[int], cpsr: int) -> bool:
    """Whether code runs into empty RAM: `EMPTY_WORDS` zeros with nothing before that may branch.

    A handler at a vector of AArch32 has room for one instruction, a branch, or goes on from the
    last vector in use. `cpsr` has the flags with which it begins.
    """
    zeros = 0
    for word in words:
        if word and condition_met(word >> 28, cpsr) and _may_branch(word):
            return False
        zeros = 0 if word else zeros + 1
        if zeros == EMPTY_WORDS:
            return True
    return False


def _may_branch(word: int) -> bool:
    """Whether an instruction of A32 may do other than go on with the next one."""
    kind, target = word >> 25 & 7, word >> 12 & 15
    if word >> 28 == 0xF or kind in (4, 5, 7):
        return kind != 4 or bool(word >> 15 & 1 and word & READS)
    if word & 0x0F900000 == 0x01000000 or word & 0x0FB00000 == 0x03200000:
        return True  # bx, hints such as wfi, status registers
    return target == 15
