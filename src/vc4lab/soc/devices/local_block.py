"""The per-core block at 0x40000000 (BCM2836/7, "QA7"): routing, core mailboxes, core timers.

It decides which core sees which interrupt. A mailbox 3 that is written while its core is parked
holds the address at which the core begins.

The 64-bit core timer clocks the generic timers of all cores. Its source is the crystal or the APB
clock, half of the ARM's; the prescaler takes `prescaler` of 2**31 of its ticks, and each counts
once or twice. Source: BCM2836 ARM-local peripherals (QA7), 3.1 and 4.1 to 4.3; bits 9 and 8 of the
control register are those of Linux's irq-bcm2836.c, too.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from vc4lab.registers import Poll, Register
from vc4lab.simd import Array, Struct, i64
from vc4lab.soc.address.block import Block
from vc4lab.soc.clock import Clock, Event
from vc4lab.soc.cores.generic_timer import (
    FREQUENCY,
    HYPERVISOR,
    MICROSECONDS,
    PHYSICAL,
    VIRTUAL,
    GenericTimer,
)
from vc4lab.soc.devices.interrupts import InterruptController
from vc4lab.soc.devices.timers import SHORTEST_PERIOD
from vc4lab.soc.native import words_of

CORES = 4
GPU_BIT, LOCAL_TIMER_BIT = 8, 11
TIMER_UNITS = (PHYSICAL, PHYSICAL, HYPERVISOR, VIRTUAL)
"""Bits 0-3 of a core's timer lines: secure and non-secure physical, hypervisor, virtual."""
IRQ_WAITS, FIQ_WAITS = 1, 2
"""Kinds of what waits for a core."""
EDGE_NS = 625, 24
"""The local timer counts both edges of the crystal, 38.4 MHz: 24 of them in 625 ns."""
START_MAILBOX = 3
BY_TWO, APB = 1 << 9, 1 << 8


@cache
def _units(lines: int) -> tuple[tuple[int, int], ...]:
    """Which units interrupt a core, given its timer lines, by an IRQ (1) or an FIQ (2)."""
    return tuple(
        (unit, FIQ_WAITS if lines >> bit & 0x10 else IRQ_WAITS)
        for bit, unit in enumerate(TIMER_UNITS)
        if lines >> bit & 0x11
    )


class LineState(Struct):
    """Interrupts that wait for each core, for native code: `others` says what all but its timers ask for, as
    `note_lines` has left it, `timers` is TIMER_INTERRUPTS.
    """

    others = Array(i64, CORES)
    timers = Array(i64, CORES)


class LocalBlock(Block):
    """Routing of the GPU's lines, four mailboxes and four timer lines a core, a local timer."""

    NAME = "local"
    OFFSET = 0
    CONTROL = Register(
        0x00, then="_clock_timers", doc="of the core timer: 9 counts by 2, 8 half the ARM's clock"
    )
    PRESCALER = Register(0x08, then="_clock_timers", doc="0x80000000 divides by 1")
    GPU_ROUTING = Register(0x0C, fields="1:0 core of the IRQ, 3:2 core of the FIQ", then="_attention")
    PMU_ROUTING_SET = Register(0x10)
    PMU_ROUTING_CLEAR = Register(0x14)
    TIMER_LOW = Register(0x1C, poll=Poll.TIME, doc="core timer; a read holds the high word")
    TIMER_HIGH = Register(0x20, poll=Poll.TIME, doc="as held; a write sets the timer")
    LOCAL_ROUTING = Register(0x24, fields="1:0 core of the local timer, 2 as FIQ")
    AXI_COUNT = Register(0x2C)
    AXI_INTERRUPT = Register(0x30)
    LOCAL_CONTROL = Register(0x34, fields="31 fired, 29 interrupt, 28 enable, 27:0 reload")
    LOCAL_CLEAR = Register(0x38, access="w", fields="31 clear, 30 reload")
    TIMER_INTERRUPTS = Register(0x40, bits=0xFF, count=CORES, fields="3:0 IRQ, 7:4 FIQ", then="_attention")
    MAILBOX_INTERRUPTS = Register(0x50, bits=0xFF, count=CORES, fields="3:0 IRQ, 7:4 FIQ", then="_attention")
    IRQ_SOURCE = Register(0x60, access="r", count=CORES, poll=Poll.EVENT)
    FIQ_SOURCE = Register(0x70, access="r", count=CORES, poll=Poll.EVENT)
    MAILBOX_SET = Register(0x80, access="w", count=16, doc="mailbox m of core n at 16 n + 4 m")
    MAILBOX_CLEAR = Register(0xC0, count=16, poll=Poll.EVENT, steady=True)

    FIRED, INTERRUPT, ENABLE, RELOAD = 1 << 31, 1 << 29, 1 << 28, (1 << 28) - 1

    def __init__(
        self,
        interrupts: InterruptController,
        clock: Clock,
        timers: list[GenericTimer],
        attention: Callable[[], None],
        start_core: Callable[[int, int], bool],
        prescaler: int = MICROSECONDS,
        arm_clock: int = 0,
    ) -> None:
        super().__init__()
        self._interrupts = interrupts
        self._clock = clock
        self._timers = timers
        self._apb_clock = arm_clock // 2
        self._attention = attention
        self._start_core = start_core
        self._mailboxes = [0] * 16
        self._held_low = self._held_high = 0
        """The other half of the core timer, between two accesses."""
        self._local_event: Event | None = None
        self._carry = 0
        """24ths of a nanosecond that the local timer's last period was too short."""
        self.PRESCALER = prescaler
        self._clock_timers()
        self._lines = LineState()
        self._line_words = words_of(self._lines)

    # -- which core is interrupted -----------------------------------------------------------------

    def sources(self, core: int, fast: bool) -> int:
        """IRQ_SOURCE or FIQ_SOURCE of a core."""
        shift = 4 if fast else 0
        value = 0
        lines = self.values[0x40 + 4 * core]
        if lines:
            enabled = lines >> 4 & 15 if fast else lines & ~(lines >> 4) & 15
            for bit, unit in enumerate(TIMER_UNITS):
                if enabled >> bit & 1 and self._timers[core].level(unit):
                    value |= 1 << bit
        lines = self.values[0x50 + 4 * core]
        if lines:
            enabled = lines >> 4 & 15 if fast else lines & ~(lines >> 4) & 15
            for mailbox in range(4):
                if enabled >> mailbox & 1 and self._mailboxes[4 * core + mailbox]:
                    value |= 1 << 4 + mailbox
        routed = self.GPU_ROUTING >> (2 if fast else 0) & 3
        if core == routed:
            raised = self._interrupts.pending_fiq if fast else self._interrupts.pending_irq
            value |= raised << GPU_BIT
        if self.LOCAL_CONTROL & self.FIRED and self.LOCAL_CONTROL & self.INTERRUPT:
            route = self.LOCAL_ROUTING & 7
            if route == core + shift:
                value |= 1 << LOCAL_TIMER_BIT
        return value

    def pending(self, core: int) -> int:
        """Whether an IRQ and an FIQ wait for a core (bits): `sources` in short, for each turn."""
        return self._others()[core] | self._of_timers(core)

    def look_at_lines(self) -> list[int]:
        """Look at the lines of all cores; native code sees them, too."""
        others = self.note_lines()
        return [others[core] | self._of_timers(core) for core in range(len(self._timers))]

    def note_lines(self) -> list[int]:
        """Let native code see what all but the timers asks of each core."""
        others, words, values = self._others(), self._line_words, self.values
        for core in range(CORES):
            words[core] = others[core]
            words[CORES + core] = values[0x40 + 4 * core]
        return others

    @property
    def line_address(self) -> int:
        """Host address of the `LineState`."""
        return self._lines.address

    def _of_timers(self, core: int) -> int:
        """The interrupts that a core's timers ask for."""
        found = 0
        lines = self.values[0x40 + 4 * core]
        if lines:
            timer = self._timers[core]
            for unit, kind in _units(lines):
                if timer.level(unit):
                    found |= kind
        return found

    def _others(self) -> list[int]:
        """The interrupts that all the rest asks of each core."""
        values, interrupts = self.values, self._interrupts
        found = [0] * CORES
        if interrupts.pending_irq:
            found[values[0x0C] & 3] = IRQ_WAITS
        if interrupts.pending_fiq:
            found[values[0x0C] >> 2 & 3] |= FIQ_WAITS
        control = values[0x34]
        if control & self.FIRED and control & self.INTERRUPT:
            route = self.LOCAL_ROUTING
            found[route & 3] |= FIQ_WAITS if route & 4 else IRQ_WAITS
        if any(self._mailboxes):
            for index, word in enumerate(self._mailboxes):
                lines = values[0x50 + (index & ~3)] >> (index & 3) & 0x11
                if word and lines:
                    found[index >> 2] |= FIQ_WAITS if lines & 0x10 else IRQ_WAITS
        return found

    def can_interrupt(self, core: int) -> bool:
        """Whether anything could interrupt a core some day."""
        if self.values[0x50 + 4 * core] or self.LOCAL_CONTROL & self.INTERRUPT:
            return True
        if self.values[0x40 + 4 * core] and self._timers[core].armed:
            return True
        routed = core in (self.GPU_ROUTING & 3, self.GPU_ROUTING >> 2 & 3)
        return routed and self._interrupts.any_enabled

    def on_read_IRQ_SOURCE(self, core: int) -> int:
        return self.sources(core, False)

    def on_read_FIQ_SOURCE(self, core: int) -> int:
        return self.sources(core, True)

    # -- mailboxes ---------------------------------------------------------------------------------

    def on_write_MAILBOX_SET(self, index: int, value: int) -> None:
        core, mailbox = index >> 2, index & 3
        if mailbox == START_MAILBOX and value and self._start_core(core, value):
            return
        self._mailboxes[index] |= value
        self._attention()

    def start_of(self, core: int) -> int:
        """The word in mailbox 3 of a core: for a parked one, the address at which it begins."""
        return self._mailboxes[4 * core + START_MAILBOX]

    def take_start(self, core: int) -> None:
        """The firmware's stub clears that mailbox before it leaves for there."""
        self._mailboxes[4 * core + START_MAILBOX] = 0

    def on_read_MAILBOX_CLEAR(self, index: int) -> int:
        return self._mailboxes[index]

    def on_write_MAILBOX_CLEAR(self, index: int, value: int) -> None:
        self._mailboxes[index] &= ~value

    # -- timers ------------------------------------------------------------------------------------

    def _clock_timers(self) -> None:
        """Count from now on as CONTROL and PRESCALER say."""
        source = self._apb_clock if self.CONTROL & APB else FREQUENCY
        step = 2 if self.CONTROL & BY_TWO else 1
        for timer in self._timers:
            timer.write_prescaler(self.PRESCALER * source * step // FREQUENCY)

    def on_read_TIMER_LOW(self) -> int:
        self._held_high, low = divmod(self._timers[0].count, 1 << 32)
        return low

    def on_read_TIMER_HIGH(self) -> int:
        return self._held_high

    def on_write_TIMER_LOW(self, value: int) -> None:
        self._held_low = value

    def on_write_TIMER_HIGH(self, value: int) -> None:
        for timer in self._timers:
            timer.write_count(value << 32 | self._held_low)

    def on_write_LOCAL_CONTROL(self, value: int) -> None:
        was = self.LOCAL_CONTROL
        self.LOCAL_CONTROL = value & ~self.FIRED | was & self.FIRED
        if (was ^ value) & self.ENABLE or self._local_event is None:
            self._restart_local()
        if was & self.FIRED and value & self.INTERRUPT:
            self._attention()

    def on_write_LOCAL_CLEAR(self, value: int) -> None:
        if value & self.FIRED:
            self.LOCAL_CONTROL &= ~self.FIRED
        if value & 1 << 30:
            self._restart_local()

    def _restart_local(self) -> None:
        self._carry = 0
        self._reload_local()

    def _reload_local(self) -> None:
        """Count down from the reload value."""
        if self._local_event is not None:
            self._local_event.cancel()
            self._local_event = None
        reload = self.LOCAL_CONTROL & self.RELOAD
        if self.LOCAL_CONTROL & self.ENABLE and reload:
            wait, self._carry = divmod(reload * EDGE_NS[0] + self._carry, EDGE_NS[1])
            self._local_event = self._clock.after(
                max(wait, SHORTEST_PERIOD), self._local_fired, self._is_unheard
            )

    def _is_unheard(self) -> bool:
        """Whether no core is interrupted when the local timer reloads."""
        return not self.LOCAL_CONTROL & self.INTERRUPT

    def _local_fired(self) -> None:
        self._local_event = None
        self.LOCAL_CONTROL |= self.FIRED
        if self.LOCAL_CONTROL & self.INTERRUPT:
            self._attention()
        self._reload_local()
