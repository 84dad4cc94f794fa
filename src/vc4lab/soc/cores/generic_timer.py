"""The generic timer of one core (ARM ARM chapter D10, B8 for AArch32), on virtual time.

The engine's own follows the host's clock and never interrupts, so its registers are trapped
(`traps.py`) and come here. One counter, three compare units: physical, virtual (which may be set
back against the others by CNTVOFF) and that of HYP mode or EL2. All cores' counters are clocked by
the crystal (or half of the ARM's clock) through the local block's prescaler (`local_block.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from vc4lab.simd import Array, Struct, i64
from vc4lab.soc.clock import FAR, Clock, Event
from vc4lab.soc.native import words_of

FREQUENCY = 19_200_000
"""The crystal, and what the firmware leaves in CNTFRQ."""
WHOLE = 1 << 31
"""Prescaler of a counter that counts every tick of the crystal: the firmware's stub for AArch64."""
MICROSECONDS = 0x06AAAAAB
"""Prescaler of a counter that counts microseconds: what it is after a reset."""
PHYSICAL, VIRTUAL, HYPERVISOR = UNITS = range(3)
ENABLE, MASKED, MET = 1, 2, 4
STREAMS, FALLS = 1 << 2, 1 << 3
"""Bits of CNTKCTL: a bit of the counter sends events, when it becomes 0 instead of 1."""
TICKS, NANOSECONDS = 12, 625
"""19.2 MHz: 12 ticks in 625 ns."""
UNSURE = -1
"""In place of a moment."""
FASTEST = 1 << 40
"""The quickest of all prescalers: beyond what any register can ask for."""
WORD = 0xFFFFFFFF
LONG = (1 << 64) - 1


class Pace(Struct):
    """How the counter counts, for native code, too: since when, and how far it was then.

    It has `whole` ticks in each of the crystal's and `prescaler` more in 2**31 of them. CNTVOFF is
    `virtual_offset`, CNTFRQ `frequency`; `control` and `compare` are the units' CNT*_CTL and
    CNT*_CVAL, `moments` those at which they ask for their interrupts, in ns, `UNSURE` where they
    may do so already. One that is not enabled, or masked, has none.
    """

    whole = i64
    prescaler = i64
    since = i64
    count_then = i64
    virtual_offset = i64
    frequency = i64
    control = Array(i64, len(UNITS))
    compare = Array(i64, len(UNITS))
    moments = Array(i64, len(UNITS))


def _words(name: str) -> slice:
    """An array of a `Pace` as `words_of` numbers its members."""
    first = Pace.offset(name) // 8
    return slice(first, first + len(UNITS))


WHOLE_TICKS, PRESCALER, SINCE, COUNT_THEN = (
    Pace.offset(name) // 8 for name in ("whole", "prescaler", "since", "count_then")
)
"""Members as `words_of` numbers them."""


def _pace(name: str) -> Any:
    def read(timer: GenericTimer) -> int:
        return int(getattr(timer.pace, name))

    def write(timer: GenericTimer, value: int) -> None:
        setattr(timer.pace, name, value)

    return property(read, write)


def _signed(value: int) -> int:
    """A number of 64 bits as memory has it."""
    value &= LONG
    return value - (value >> 63 << 64)


class GenericTimer:
    """CNT*_CTL, CNT*_CVAL and CNT*_TVAL of a core; `attention` is called when a timer fires."""

    def __init__(self, clock: Clock, attention: Callable[[], None]) -> None:
        self._clock = clock
        self._attention = attention
        self._events: list[Event | None] = [None for _unit in UNITS]
        self.pace = Pace(whole=1, frequency=FREQUENCY)
        self._words = words = words_of(self.pace)
        self._control, self._compare = words[_words("control")], words[_words("compare")]
        self._moments = words[_words("moments")]
        self.streams = [0, 0]
        """CNTKCTL, CNTHCTL: when the counter wakes a core in wfe."""

    @property
    def _prescaler(self) -> int:
        """Ticks of the counter in 2**31 ticks of the crystal."""
        return int(self.pace.whole * WHOLE + self.pace.prescaler)

    @_prescaler.setter
    def _prescaler(self, ticks: int) -> None:
        ticks = max(0, min(ticks, FASTEST))
        self.pace.whole, self.pace.prescaler = divmod(ticks, WHOLE)

    _since = _pace("since")
    _count_then = _pace("count_then")
    frequency = _pace("frequency")
    """CNTFRQ: a note for programs, without effect."""

    @property
    def count(self) -> int:
        """CNTPCT"""
        words = self._words
        crystal = (self._clock.now - words[SINCE]) * TICKS
        ticks = words[WHOLE_TICKS] * WHOLE + words[PRESCALER]
        return words[COUNT_THEN] + crystal * ticks // (NANOSECONDS * WHOLE)

    @property
    def has_streams(self) -> bool:
        """Whether the counter sends its core events."""
        return bool((self.streams[0] | self.streams[1]) & STREAMS)

    def next_in_stream(self) -> int | None:
        """Nanoseconds until the counter next sends its core an event; None: it does not."""
        waits = []
        for control, shift in zip(self.streams, (self.offset, 0), strict=True):
            if not control & STREAMS or not self._prescaler:
                continue
            half = 1 << (control >> 4 & 15)
            count = self.count - shift
            phase = 0 if control & FALLS else half
            ticks = 2 * half - (count - phase) % (2 * half)
            waits.append(-(-ticks * NANOSECONDS * WHOLE // (TICKS * self._prescaler)))
        return min(waits, default=None)

    @property
    def offset(self) -> int:
        """CNTVOFF"""
        return int(self.pace.virtual_offset) & LONG

    @offset.setter
    def offset(self, value: int) -> None:
        self.pace.virtual_offset = value - (value >> 63 << 64)
        self.schedule(VIRTUAL)

    def count_of(self, unit: int) -> int:
        """The count that a unit compares with: CNTPCT or CNTVCT."""
        return self.count - self.offset & LONG if unit == VIRTUAL else self.count

    def write_prescaler(self, value: int) -> None:
        """Ticks of the counter in 2**31 ticks of the crystal; 0 stops it."""
        if value == self._prescaler:
            return
        self._count_then, self._since = self.count, self._clock.now
        self._prescaler = value
        for unit in UNITS:
            self.schedule(unit)

    def write_count(self, value: int) -> None:
        """The counter goes on from another value."""
        self._count_then, self._since = value & LONG >> 1, self._clock.now
        for unit in UNITS:
            self.schedule(unit)

    def level(self, unit: int) -> bool:
        """Whether the timer asks for its interrupt."""
        if self._control[unit] & (ENABLE | MASKED) != ENABLE:
            return False
        event = self._events[unit]
        # Its moment is the first at which the unit's condition is met.
        return self._met(unit) if event is None else self._clock.now >= event.at

    def _met(self, unit: int) -> bool:
        return self.count_of(unit) >= self._compare[unit] & LONG

    @property
    def armed(self) -> bool:
        """Whether an interrupt will come by itself."""
        return any(control & (ENABLE | MASKED) == ENABLE for control in self._control)

    def read_control(self, unit: int) -> int:
        """CNT*_CTL"""
        control = self._control[unit]
        return control | (MET if control & ENABLE and self._met(unit) else 0)

    def write_control(self, unit: int, value: int) -> None:
        """CNT*_CTL"""
        self._control[unit] = value & (ENABLE | MASKED)
        self.schedule(unit)

    def read_compare(self, unit: int) -> int:
        """CNT*_CVAL"""
        return self._compare[unit] & LONG

    def write_compare(self, unit: int, value: int) -> None:
        """CNT*_CVAL"""
        self._compare[unit] = _signed(value)
        self.schedule(unit)

    def read_value(self, unit: int) -> int:
        """CNT*_TVAL: ticks to go, as a 32-bit number."""
        return self._compare[unit] - self.count_of(unit) & WORD

    def write_value(self, unit: int, value: int) -> None:
        """CNT*_TVAL"""
        value &= WORD
        signed = value - (value >> 31 << 32)
        self.write_compare(unit, self.count_of(unit) + signed)

    @property
    def settings(self) -> tuple[list[int], list[int]]:
        """CNT*_CTL and CNT*_CVAL of all units, as they are saved."""
        return self._control.tolist(), [value & LONG for value in self._compare]

    def restore(self, control: Sequence[int], compare: Sequence[int]) -> None:
        """Set them."""
        for unit in UNITS:
            self._control[unit] = control[unit] & (ENABLE | MASKED)
            self._compare[unit] = _signed(compare[unit])
            self.schedule(unit)

    def schedule(self, unit: int) -> None:
        """Schedule the interrupt of a unit anew, as what it is set to has changed."""
        event = self._events[unit]
        if event is not None:
            event.cancel()
            self._events[unit] = None
        self._moments[unit] = FAR
        if self._control[unit] & (ENABLE | MASKED) == ENABLE:
            count = self.count
            seen = count - self.offset & LONG if unit == VIRTUAL else count
            to_go = (self._compare[unit] & LONG) - seen
            ticks = count + to_go - self._count_then
            speed = TICKS * self._prescaler
            met = to_go <= 0
            if speed > 0 and not met:
                moment = self._since - (-ticks * NANOSECONDS * WHOLE // speed)
                self._events[unit] = self._clock.at(moment, self._attention, goes_on=True)
                self._moments[unit] = min(moment, FAR)
            if met:
                self._moments[unit] = UNSURE
                self._attention()
