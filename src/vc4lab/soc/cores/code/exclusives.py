"""Load- and store-exclusive in memory that is not cached: no monitor of a Pi watches over it.

The cores' own monitors serve write-back memory with the cache on. Other memory needs a monitor at
the bus, and the BCM2835 to BCM2837 have none for RAM. A Cortex-A53 notices and takes a data abort
at the load; the others never let the store succeed (`exclusive_without_monitor`). So pages of code
that are met are searched for these instructions, and each stops: to do that while the MMU or the
data cache is off or the tables make its memory uncached, else to lose its hook.

Sources: Cortex-A15 TRM (DDI 0438G) 6.4.5, whose words are those of the A7's (DDI 0464F) 6.4.2;
Cortex-A35 TRM A6.4 and Cortex-A53 TRM (DDI 0500J) 6.4.3 (the abort); zephyr issue 33515 and
SerenityOS pull request 18846 (a Pi 3), genode issue 1190 and onkwon/yaos issue 13 (a Pi 1),
Simon-Willcocks/RISC-OS-Kernel-in-C issue 5 (Strongly-ordered memory).
"""

from __future__ import annotations

from vc4lab.soc.cores.code.traps import Action, Trap
from vc4lab.soc.cores.exceptions.exceptions import SCTLR_C, SCTLR_M

ARM_LOADS = (
    Trap(0x0F900EFF, 0x01900E9F, Action.EXCLUSIVE),  # ldrex, -b, -h, -d, ldaex
    Trap(0xFFF00F00, 0xE8500F00, Action.EXCLUSIVE, thumb=True),
    Trap(0xFFF00FEF, 0xE8D00F4F, Action.EXCLUSIVE, thumb=True),  # ldrexb, ldrexh
    Trap(0xFFF000FF, 0xE8D0007F, Action.EXCLUSIVE, thumb=True),  # ldrexd
)
ARM_STORES = (
    Trap(0x0F900EF0, 0x01800E90, Action.EXCLUSIVE),
    Trap(0xFFF00000, 0xE8400000, Action.EXCLUSIVE, thumb=True),
    Trap(0xFFF00FE0, 0xE8C00F40, Action.EXCLUSIVE, thumb=True),
    Trap(0xFFF000F0, 0xE8C00070, Action.EXCLUSIVE, thumb=True),
)
WIDE_LOADS = (Trap(0x3FC00000, 0x08400000, Action.EXCLUSIVE),)  # ldxr, ldaxr, ldxp, ldaxp
WIDE_STORES = (Trap(0x3FC00000, 0x08000000, Action.EXCLUSIVE),)
ARM_TRAPS, WIDE_TRAPS = ARM_LOADS + ARM_STORES, WIDE_LOADS + WIDE_STORES
MAX_HOOKS = 1024
"""For these; other trapped instructions need some, too."""
MAX_WATCHED_HOOKS = 128
"""While the cache is on: each looks at the attributes of the first address it meets, and goes where
that is cached. A system has thousands of these instructions, all for cached memory.
"""
SYNDROME, SHORT_STATUS, LONG_STATUS = 0x35, 0x405, 0x235
"""Unsupported exclusive access: as a syndrome has it, and DFSR in both formats."""
LONGEST_LOOP = 2_000
"""A store that fails so often, without another one that fails, is in a loop that never ends."""


def are_watched(control: int) -> bool:
    """Whether a core's own monitor serves exclusive accesses, with this SCTLR."""
    both = SCTLR_C | SCTLR_M
    return control & both == both


def is_load(word: int, *, wide: bool, thumb: bool) -> bool:
    """Whether one of these instructions is a load."""
    loads = WIDE_LOADS if wide else ARM_LOADS
    return any(trap.is_meant(Action.EXCLUSIVE, word, thumb) for trap in loads)


def result_register(word: int, *, wide: bool, thumb: bool) -> int:
    """The register that says whether a store-exclusive has stored."""
    if wide:
        return word >> 16 & 31
    if not thumb:
        return word >> 12 & 15
    return word >> 8 & 15 if word >> 20 == 0xE84 else word & 15


class FailedStores:
    """Counts stores that fail in a loop."""

    def __init__(self) -> None:
        self._row = 0
        self._last = -1

    def grow(self, address: int) -> bool:
        """The one at an address has failed; whether that is a loop."""
        self._row = self._row + 1 if address == self._last else 0
        self._last = address
        return self._row >= LONGEST_LOOP
