"""Interrupts that were enabled in the wrong register, and core timers whose interrupt goes nowhere.

The controller has three: ENABLE_IRQS_1 (lines 0 to 31), ENABLE_IRQS_2 (32 to 63) and
ENABLE_BASIC_IRQS (the ARM's own). The right bit in the wrong one enables a line that most often has
no device, and the one that was meant never comes.
"""

from __future__ import annotations

from vc4lab.soc.cores.exceptions.exceptions import ArmException
from vc4lab.soc.devices.interrupts import BASIC, InterruptController
from vc4lab.soc.hardware import Hardware

REGISTERS = ("ENABLE_IRQS_1 (0xB210)", "ENABLE_IRQS_2 (0xB214)", "ENABLE_BASIC_IRQS (0xB218)")
BANK = 32
LOCAL, TIMER_ROUTES = 0x40000000, 0x40
"""The local peripherals, and TIMER_INTERRUPTS among them, a word for each core."""
BANKS = range(3)


def wrong_bank(controller: InterruptController) -> tuple[int, int] | None:
    """A line that waits without being enabled, and another with its bit that is; else None.

    Lines are numbered as in FIQ_CONTROL: those of the ARM from 64 on. A line that was ever up is
    one that the program may mean.
    """
    enabled = controller.enabled | controller.basic_enabled << BASIC
    waiting = (controller.lines | controller.basic_lines << BASIC) & ~enabled
    unused = enabled & ~controller.ever_raised
    while waiting and unused:
        line = (waiting & -waiting).bit_length() - 1
        waiting &= waiting - 1
        if controller.listens(line):
            continue
        for bank in BANKS:
            other = bank * BANK + line % BANK
            if other != line and unused >> other & 1:
                return line, other
    return None


def wrong_bank_text(line: int, other: int, name: str) -> str:
    """The sentence about such a pair; `name` is what the line belongs to."""
    bit = line % BANK
    return (
        f"the interrupt of line {line} ({name}) waits, but is not enabled; bit {bit} is set in "
        f"{REGISTERS[other // BANK]}, where it enables line {other}: that of line {line} is bit "
        f"{bit} of {REGISTERS[line // BANK]}"
    )


def unheard_timer(hardware: Hardware) -> int | None:
    """Number of a core that listens to interrupts, whose timer is set and not routed; else None."""
    local = hardware.local
    if local is None:
        return None
    for core in hardware.processors.running:
        timer = core.cpu.links.timer
        routes = local.values[TIMER_ROUTES + 4 * core.number]
        if timer is not None and timer.armed and not routes and core.cpu.accepts(ArmException.IRQ):
            return int(core.number)
    return None


def unheard_timer_text(core: int) -> str:
    """The sentence about it."""
    place = LOCAL + TIMER_ROUTES + 4 * core
    return (
        f"core {core}'s own timer (CNTP or CNTV) is on and not masked, but its interrupt goes nowhere: core "
        f"timers are enabled at 0x{place:08x} (TIMER_INTERRUPTS), which is 0, and not at the controller of "
        "0xB200"
    )
