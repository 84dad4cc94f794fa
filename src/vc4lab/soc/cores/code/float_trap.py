"""Floating point and NEON of AArch64 before CPACR_EL1 allows them: the engine does not trap them.

A board takes a synchronous exception (syndrome 0x07), which is a black screen for the many programs
whose compiler uses these registers where no float is written. So while CPACR_EL1 forbids them,
pages of code that are met are searched for such instructions, and each stops once: to be trapped,
or, if they are allowed by then, to lose its hook. When a program forbids them again, as for
switching the registers of tasks lazily, all its code is searched again.

Source: ARM ARM (ARMv8-A) C4.1 (encodings), D13.2.29 CPACR_EL1, ESR_ELx for class 0x07.
"""

from __future__ import annotations

from vc4lab.soc.cores.code.traps import Action, Trap

FLOAT_TRAPS = (
    Trap(0x0C000000, 0x0C000000, Action.FLOAT),  # data processing, loads and stores
    Trap(0xFFDFFFC0, 0xD51B4400, Action.FLOAT),  # msr, mrs of FPCR and FPSR
)
MAX_HOOKS = 1024
"""For these; other trapped instructions need some, too."""
SYNDROME = 0x07 << 26 | 1 << 25 | 1 << 24 | 0xE << 20
"""Class, 32-bit instruction, condition valid: always."""
ENABLE_SHIFT, KERNEL_ONLY, ALL = 20, 1, 3
"""FPEN: 3 allows EL0 and EL1, 1 allows EL1."""


def allowed(control: int, level: int) -> bool:
    """Whether CPACR_EL1 lets an exception level use the registers; EL2 and EL3 do not ask it."""
    enable = control >> ENABLE_SHIFT & 3
    return level >= 2 or enable == ALL or (enable == KERNEL_ONLY and level == 1)
