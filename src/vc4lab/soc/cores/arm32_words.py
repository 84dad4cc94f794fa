"""AArch32 instructions that are emulated here, identified by their words, and their conditions."""

from __future__ import annotations

CONDITION = 0xF << 28
WFE_ARM, WFE_THUMB, YIELD_ARM, YIELD_THUMB = 0x0320F002, 0xBF20, 0x0320F001, 0xBF10


def is_wait(word: int, thumb: bool) -> bool:
    """WFE or YIELD; of 16 bits in Thumb code."""
    if thumb:
        return word in (WFE_THUMB, YIELD_THUMB)
    return word & ~CONDITION in (WFE_ARM, YIELD_ARM)


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
