"""AArch64's MMU switched on just before `eret`: the engine looks at once, a board later.

`msr SCTLR_ELn` at ELn that sets M takes effect at the `eret` after it. A core need not look at it
before a context synchronization event (ARM ARM D13.1), and on boards a few more instructions are
executed as before: a program that leaves a level so may have no tables for it.
"""

from __future__ import annotations

from collections.abc import Callable

from vc4lab.soc.cores.code.code_pages import PAGE

ERET, ISB = 0xD69F03E0, 0xD5033FDF
BRANCHES, SYSTEM = 5, 0xD5
"""Bits 28:26 of branches, exceptions and system instructions; bits 31:24 of the latter."""
LOOK_AHEAD = 16
"""So many instructions at most execute before a core notices that SCTLR was written."""


def instructions_to_eret(fetch: Callable[[int], int], address: int) -> int | None:
    """How many instructions follow the `msr` at an address up to its `eret`, that one included.

    fetch: the word at an address. None: none comes soon, in the same page and without a branch or a
    barrier before it.
    """
    place = address + 4
    for count in range(1, LOOK_AHEAD + 1):
        following = fetch(place) if (place ^ address) < PAGE else 0
        if following == ERET:
            return count
        branches = following >> 26 & 7 == BRANCHES and following >> 24 != SYSTEM
        if branches or following in (ISB, 0):
            return None
        place += 4
    return None
