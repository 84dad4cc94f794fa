"""Instructions that the CPU engine lacks or gets wrong: found in the code, emulated here.

When a page of code is met for the first time it is searched for these patterns, and a hook stops
at each place that matches (see `code_pages.py`). What only looks like such an instruction, because
it is data, costs nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from vc4lab.soc.cores.generic_timer import HYPERVISOR, PHYSICAL, VIRTUAL, GenericTimer


class Action(Enum):
    """The meaning of a trapped instruction."""

    TIMER = "a register of the generic timer"
    TIMER_PAIR = "a 64-bit register of the generic timer"
    CYCLES = "the cycle counter"
    CORE_NUMBER = "MPIDR"
    CORE_NAME = "MIDR"
    HYP_RETURN = "eret"
    HYP_RETURN_ADDRESS = "ELR_hyp"
    HYP_SAVED_STATUS = "SPSR_hyp"
    HYP_VECTORS = "HVBAR"
    MODE_CHANGE = "cps or msr that changes the mode"
    OTHER_RETURN = "an exception return that HYP mode does not have"
    SECURITY = "SCR, SDER, NSACR or MVBAR"
    FLOAT = "floating point or NEON (AArch64)"
    FLOAT_CONTROL = "CPACR_EL1"
    SEND_EVENT = "sev"
    SEND_LOCAL_EVENT = "sevl"
    EVENT_STREAM = "events of the timer"
    WAIT_FOR_EVENT = "wfe"
    CODE_CHANGED = "instruction cache maintenance"
    CACHE = "data cache maintenance"
    CACHE_RANGE = "data cache maintenance of a range (ARM1176)"
    VECTORS = "VBAR"
    MMU_SWITCH = "SCTLR, just before eret"
    ZERO_LINE = "dc zva"
    EXCLUSIVE = "load- or store-exclusive"
    CONTROL = "SCTLR or HSCTLR"
    TRANSLATION = "a register of the MMU, or TLB maintenance"


COPROCESSOR = 0x0C000000
"""Bits that are set in the instructions of coprocessors."""


@dataclass(frozen=True, eq=False)
class Trap:
    """Words with `word & mask == match`; each is itself, so that tables of them are found soon."""

    mask: int
    match: int
    action: Action
    thumb: bool = False
    """A Thumb instruction: its first half is the upper one. Coprocessor instructions are known in
    both forms by their Arm one."""

    @property
    def of_coprocessor(self) -> bool:
        """Whether it is one of a coprocessor."""
        return self.mask & self.match & COPROCESSOR == COPROCESSOR

    def is_meant(self, action: Action, word: int, thumb: bool) -> bool:
        """Whether a word that is executed in a state is such an instruction.

        Two Thumb instructions can look like one of the other state.
        """
        found = word & self.mask == self.match and self.action is action
        return found and (self.thumb == thumb or self.of_coprocessor)


ARM_TRAPS = (
    Trap(0x0FEF0FFF, 0x0E0E0F10, Action.TIMER),  # mrc, mcr p15, 0, rt, c14, c0, 0: CNTFRQ
    Trap(0x0FEF0F1E, 0x0E0E0F12, Action.TIMER),  # mrc, mcr p15, 0, rt, c14, c2 or c3, n
    Trap(0x0FEF0F1F, 0x0E8E0F12, Action.TIMER),  # mrc, mcr p15, 4, rt, c14, c2, n: CNTHP
    Trap(0x0FE00F8E, 0x0C400F0E, Action.TIMER_PAIR),  # mrrc, mcrr p15, 0..7, rt, rt2, c14
    Trap(0x0FFF0FFF, 0x0E190F1D, Action.CYCLES),  # mrc p15, 0, rt, c9, c13, 0
    Trap(0x0FFF0FFF, 0x0E1F0F3C, Action.CYCLES),  # mrc p15, 0, rt, c15, c12, 1 (ARM1176)
    Trap(0x0FFFFFFF, 0x0320F004, Action.SEND_EVENT),
    Trap(0x0FFFFFFF, 0x0320F005, Action.SEND_LOCAL_EVENT),
    Trap(0x0F7F0FFF, 0x0E0E0F11, Action.EVENT_STREAM),  # mcr p15, 0 or 4, rt, c14, c1, 0
    Trap(0x0FFF0FDF, 0x0E070F15, Action.CODE_CHANGED),  # ICIALLU, ICIMVAU: c7, c5, 0 or 2..
    Trap(0x0FFF0FFF, 0x0E070F35, Action.CODE_CHANGED),  # c7, c5, 1
    Trap(0x0FFF0FFF, 0x0E070F11, Action.CODE_CHANGED),  # ICIALLUIS
    Trap(0x0F7F0FFF, 0x0E010F10, Action.CONTROL),  # mcr p15, 0 or 4, rt, c1, c0, 0
    Trap(0x0FFF0FFF, 0x0E0C0F10, Action.VECTORS),  # mcr p15, 0, rt, c12, c0, 0
)
HYP_TRAPS = (
    Trap(0x0FFFFFFF, 0x0160006E, Action.HYP_RETURN),
    Trap(0xFFFFFFFF, 0xF3DE8F00, Action.HYP_RETURN, thumb=True),
    Trap(0x0FFFFFF0, 0x012EF300, Action.HYP_RETURN_ADDRESS),  # msr ELR_hyp, rt
    Trap(0x0FFF0FFF, 0x010E0300, Action.HYP_RETURN_ADDRESS),  # mrs rt, ELR_hyp
    Trap(0xFFF0FFFF, 0xF3808E30, Action.HYP_RETURN_ADDRESS, thumb=True),
    Trap(0xFFFFF0FF, 0xF3EE8030, Action.HYP_RETURN_ADDRESS, thumb=True),
    Trap(0x0FFFFFF0, 0x016EF300, Action.HYP_SAVED_STATUS),  # msr SPSR_hyp, rt
    Trap(0x0FFF0FFF, 0x014E0300, Action.HYP_SAVED_STATUS),  # mrs rt, SPSR_hyp
    Trap(0xFFF0FFFF, 0xF3908E30, Action.HYP_SAVED_STATUS, thumb=True),
    Trap(0xFFFFF0FF, 0xF3FE8030, Action.HYP_SAVED_STATUS, thumb=True),
    Trap(0x0FFF0FFF, 0x0E8C0F10, Action.HYP_VECTORS),  # mcr p15, 4, rt, c12, c0, 0
    Trap(0x0FEF0F1F, 0x0E010F11, Action.SECURITY),  # mrc, mcr p15, 0, rt, c1, c1, n
    Trap(0x0FEF0FFF, 0x0E0C0F30, Action.SECURITY),  # mrc, mcr p15, 0, rt, c12, c0, 1: MVBAR
)
"""For cores that have a HYP mode."""
HYP_MISTAKE_TRAPS = (
    Trap(0xFFF3FE20, 0xF1020000, Action.MODE_CHANGE),  # cps, cpsie, cpsid with a mode
    Trap(0x0FF1F000, 0x0321F000, Action.MODE_CHANGE),  # msr cpsr_c.., #immediate
    Trap(0x0FF1FFF0, 0x0121F000, Action.MODE_CHANGE),  # msr cpsr_c.., rn
    Trap(0xFFFFF900, 0xF3AF8100, Action.MODE_CHANGE, thumb=True),
    Trap(0xFFF0F1FF, 0xF3808100, Action.MODE_CHANGE, thumb=True),
    Trap(0x0FFFF000, 0x025EF000, Action.OTHER_RETURN),  # subs pc, lr, #n
    Trap(0xFFFFFF00, 0xF3DE8F00, Action.OTHER_RETURN, thumb=True),
    Trap(0x0FFFFFFF, 0x01B0F00E, Action.OTHER_RETURN),  # movs pc, lr
    Trap(0x0E508000, 0x08508000, Action.OTHER_RETURN),  # ldm with pc and ^
    Trap(0xFE50FFFF, 0xF8100A00, Action.OTHER_RETURN),  # rfe
)
"""Looked for in code that is met in HYP mode; elsewhere they mean what they say."""
IDENTITY_TRAPS = (
    Trap(0x0FFF0FFF, 0x0E100FB0, Action.CORE_NUMBER),  # mrc p15, 0, rt, c0, c0, 5
    Trap(0x0FFF0FFF, 0x0E100F10, Action.CORE_NAME),  # mrc p15, 0, rt, c0, c0, 0
)
"""In HYP mode the engine gives its own numbers for these."""
THUMB_EVENTS = {0xBF40: Action.SEND_EVENT, 0xBF50: Action.SEND_LOCAL_EVENT}
"""sev and sevl in Thumb code. In ARM code such a half word is part of something else."""
HYP_REGISTERS = 4
"""Op1 of the system registers of HYP mode and EL2."""
A64_READS = (
    # mrs CNTFRQ_EL0, CNTPCT_EL0, CNTVCT_EL0: native_counter.py
    Trap(0xFFFFFF80, 0xD53CE200, Action.TIMER),  # mrs CNTHP_*_EL2
    Trap(0xFFFFFFE0, 0xD53CE060, Action.TIMER),  # mrs CNTVOFF_EL2
    Trap(0xFFFFFE00, 0xD53BE200, Action.TIMER),  # mrs CNTP_*_EL0, CNTV_*_EL0
    Trap(0xFFFFFFE0, 0xD53B9D00, Action.CYCLES),  # mrs PMCCNTR_EL0
    Trap(0xFFFFFFE0, 0xD53800A0, Action.CORE_NUMBER),  # mrs MPIDR_EL1: 0 at EL2 in the engine
)
"""The engine calls for each mrs, so that these need not be searched for."""
A64_TRAPS = (
    Trap(0xFFFFF000, 0xD51BE000, Action.TIMER),  # msr CNT*_EL0
    Trap(0xFFFFFF80, 0xD51CE200, Action.TIMER),  # msr CNTHP_*_EL2
    Trap(0xFFFFFFE0, 0xD51CE060, Action.TIMER),  # msr CNTVOFF_EL2
    Trap(0xFFFFFFE0, 0xD5181040, Action.FLOAT_CONTROL),  # msr CPACR_EL1
    Trap(0xFFFFFFFF, 0xD503209F, Action.SEND_EVENT),
    Trap(0xFFFFFFFF, 0xD50320BF, Action.SEND_LOCAL_EVENT),
    Trap(0xFFFFFFFF, 0xD503205F, Action.WAIT_FOR_EVENT),
    Trap(0xFFFBFFE0, 0xD518E100, Action.EVENT_STREAM),  # msr CNTKCTL_EL1, CNTHCTL_EL2
    Trap(0xFFFBFFE0, 0xD5181000, Action.MMU_SWITCH),  # msr SCTLR_EL1, SCTLR_EL2
    Trap(0xFFFFFFE0, 0xD51E1000, Action.CONTROL),  # msr SCTLR_EL3
    *(Trap(0xFFFFFFE0, 0xD500C000 | op1 << 16, Action.VECTORS) for op1 in (0x18, 0x1C, 0x1E)),  # msr VBAR_ELn
    Trap(0xFFFFFBFF, 0xD508711F, Action.CODE_CHANGED),  # ic iallu(is)
    Trap(0xFFFFFFE0, 0xD50B7520, Action.CODE_CHANGED),  # ic ivau
)


ZERO_TRAPS = (Trap(0xFFFFFFE0, 0xD50B7420, Action.ZERO_LINE),)
"""Looked for in code that is met with the MMU off: it needs Normal memory."""


def means(traps: tuple[Trap, ...], action: Action, word: int, thumb: bool = False) -> bool:
    """Whether a word that is executed is one of `traps` with this action.

    Hooks stand at virtual addresses, where another program may have other code.
    """
    return any(trap.is_meant(action, word, thumb) for trap in traps)


@dataclass
class CoreLinks:
    """Links a core's trapped instructions to what is outside of it."""

    timer: GenericTimer | None
    cycles: Callable[[], int]
    time_polled: Callable[[], None]
    code_changed: Callable[[], None]
    report: Callable[[str, str, int], None]
    """For mistakes that only a core notices: code, sentence, address."""
    forgiving: bool = False
    """Whether accesses work that a core would not do (`GpuOptions.forgiving`)."""
    bus: int = 0
    """Host address of the `BusState` that counts what is polled."""
    events: int = 0
    """That of the `EventState` of all cores."""
    control_followed: Callable[[int], None] = lambda core: None
    """For who wants to know that a core has got another SCTLR, with its MMU on perhaps."""


TIMER_UNITS = {(0, 2): PHYSICAL, (0, 3): VIRTUAL, (HYP_REGISTERS, 2): HYPERVISOR}
"""Level and CRm of the registers of a unit."""
CNTVOFF = (HYP_REGISTERS, 0, 3)


def timer_read(links: CoreLinks, crm: int, op2: int, level: int = 0) -> int | None:
    """A read of CNT register (CRm, op2) of a level; None if there is none."""
    timer = links.timer
    if timer is None:
        return None
    if (level, crm, op2) == CNTVOFF:
        return timer.offset
    if crm == 0:
        if op2 == 0:
            found: int | None = timer.frequency
            return found
        links.time_polled()
        return timer.count_of(VIRTUAL if op2 == 2 else PHYSICAL) if op2 < 3 else None
    unit = TIMER_UNITS.get((level, crm))
    if unit is None or op2 > 2:
        return 0
    if op2 < 2:
        links.time_polled()
    return (timer.read_value, timer.read_control, timer.read_compare)[op2](unit)


def timer_write(links: CoreLinks, crm: int, op2: int, value: int, level: int = 0) -> None:
    """A write of CNT register (CRm, op2) of a level."""
    timer = links.timer
    if timer is not None and (crm, op2) == (0, 0):
        timer.frequency = value & 0xFFFFFFFF
    if timer is not None and (level, crm, op2) == CNTVOFF:
        timer.offset = value
    unit = TIMER_UNITS.get((level, crm))
    if timer is not None and unit is not None and op2 < 3:
        (timer.write_value, timer.write_control, timer.write_compare)[op2](unit, value)
