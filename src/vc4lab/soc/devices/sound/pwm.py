"""PWM at P + 0x20C000, as used for sound: a FIFO of samples played at the clock's pace.

A sample lasts RNG1 cycles of the PWM clock. Played words are counted when asked for (CPU,
DMA, the recorder), not by an event each.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from vc4lab.diagnostics import Reporter
from vc4lab.registers import Poll, Register
from vc4lab.soc.address.block import Block
from vc4lab.soc.clock import FAR, Clock

FIFO = 16
REFILL = FIFO // 2
"""So many free words make a DMA channel look again."""
ENABLED, USES_FIFO, CLEAR_FIFO = 1 << 0, 1 << 5, 1 << 6
SECOND = 8
"""Bits of channel 2 are so much higher."""
FULL, EMPTY, WRITE_ERROR, GAP, STATE = 1, 1 << 1, 1 << 2, 1 << 4, 1 << 9
STICKY = 0x1FC
DMA_ENABLE = 1 << 31
PS_PER_NS, PS_PER_S = 1_000, 10**12
SHORTEST_PS = 100_000
IDLE_NS = 1_000_000
FULL_SCALE = 32767

Sink = Callable[[int, int, int], None]


class Pwm(Block):
    """The two channels.

    Parameters
    ----------
    frequency
        The PWM clock in Hz at the moment, 0 if it stands still.
    """

    NAME = "pwm"
    OFFSET = 0x20C000
    CTL = Register(0x00, fields="0 enable, 5 use FIFO, 6 clear FIFO", doc="7 M/S; +8 for channel 2")
    STA = Register(
        0x04,
        access="w1c",
        bits=STICKY,
        reset=EMPTY,
        poll=Poll.EVENT,
        steady=True,
        timed=True,
        fields="0 full, 1 empty",
    )
    DMAC = Register(0x08, reset=0x707, fields="31 enable")
    RNG1 = Register(0x10, reset=32)
    DAT1 = Register(0x14)
    FIF1 = Register(0x18, access="w")
    RNG2 = Register(0x20, reset=32)
    DAT2 = Register(0x24)

    def __init__(self, clock: Clock, frequency: Callable[[], float], reporter: Reporter) -> None:
        super().__init__()
        self._clock = clock
        self._frequency = frequency
        self._reporter = reporter
        self._fifo: deque[int] = deque()
        self._next = 0
        """Picoseconds: when the next word is taken from the FIFO."""
        self._levels = [0, 0]
        self.played = 0
        """Words taken from the FIFO so far."""
        self.sink: Sink | None = None
        """Gets moment (ns), left and right level (16 bits, signed) at every change."""

    # -- time --------------------------------------------------------------------------------------

    @property
    def period(self) -> int:
        """Picoseconds of one sample, 0 if the clock stands still."""
        frequency = self._frequency()
        if frequency <= 0:
            return 0
        return max(int(max(self.RNG1, 1) * PS_PER_S / frequency), SHORTEST_PS)

    @property
    def sample_rate(self) -> int:
        """Samples a second, 0 if the clock stands still."""
        period = self.period
        return round(PS_PER_S / period) if period else 0

    @property
    def _players(self) -> list[int]:
        """Channels that take words from the FIFO."""
        control = self.CTL
        wanted = ENABLED | USES_FIFO
        return [n for n in (0, 1) if control >> SECOND * n & wanted == wanted]

    def catch_up(self) -> None:
        """Play what is due by now."""
        now = self._clock.now * PS_PER_NS
        period = self.period
        players = self._players
        if not period or not players:
            self._next = max(self._next, now)
            return
        fifo = self._fifo
        while self._next <= now and len(fifo) >= len(players):
            for channel in players:
                self._set_level(channel, fifo.popleft())
            self.played += len(players)
            self._report(self._next // PS_PER_NS, len(players) == 1)
            self._next += period
        if self._next <= now:
            if self.played:
                self.STA |= GAP
            self._next = now

    def _next_change(self, count: int) -> int:
        """When STA says something else than now, with so many words in the FIFO (ns)."""
        players, period = len(self._players), self.period
        if not players or not period or (count < players and self.STA & GAP):
            return FAR
        takes = count // players if FIFO > count >= players else 1
        return -(-(self._next + (takes - 1) * period) // PS_PER_NS)

    def _set_level(self, channel: int, word: int) -> None:
        full = max(self.RNG2 if channel else self.RNG1, 1)
        self._levels[channel] = int((2 * min(word, full) / full - 1) * FULL_SCALE)

    def _report(self, moment: int, mono: bool) -> None:
        if self.sink is not None:
            left, right = self._levels
            if mono:
                left = right = self._levels[self._players[0] if self._players else 0]
            self.sink(moment, left, right)

    # -- for the DMA -------------------------------------------------------------------------------

    def room(self) -> int:
        """Words that the FIFO takes from the DMA now."""
        self.catch_up()
        return FIFO - len(self._fifo) if self.DMAC & DMA_ENABLE else 0

    def wait(self) -> int:
        """Nanoseconds until half of the FIFO is free."""
        players = len(self._players)
        period = self.period
        if not players or not period or not self.DMAC & DMA_ENABLE:
            return IDLE_NS
        return REFILL // players * period // PS_PER_NS

    # -- registers ---------------------------------------------------------------------------------

    def on_write_CTL(self, value: int) -> None:
        self.catch_up()
        if value & CLEAR_FIFO:
            self._fifo.clear()
        self.CTL = value & 0xBFBF

    def on_read_STA(self) -> int:
        self.catch_up()
        count = len(self._fifo)
        self.changes_at = self._next_change(count)
        running = bool(self._players) and count > 0
        value = self.STA & STICKY | (FULL if count == FIFO else 0) | (0 if count else EMPTY)
        return value | (STATE if running else 0)

    def on_write_FIF1(self, value: int) -> None:
        if self._clock.now * PS_PER_NS >= self._next:
            self.catch_up()
        if len(self._fifo) < FIFO:
            self._fifo.append(value)
            return
        self.STA |= WRITE_ERROR
        why = "is full"
        if not self.period:
            why += ", and its clock is stopped (CM_PWMCTL)"
        elif not self._players:
            why += ", and no channel plays from it (CTL)"
        self._reporter.report("SOC-056", f"the PWM's FIFO {why}; a sample is lost", block="pwm")

    def on_write_RNG1(self, value: int) -> None:
        self.catch_up()
        self.RNG1 = value

    def on_write_DAT1(self, value: int) -> None:
        self.DAT1 = value
        self._play_data(0, value)

    def on_write_DAT2(self, value: int) -> None:
        self.DAT2 = value
        self._play_data(1, value)

    def _play_data(self, channel: int, value: int) -> None:
        control = self.CTL >> SECOND * channel
        if control & (ENABLED | USES_FIFO) == ENABLED:
            self._set_level(channel, value)
            both = self.CTL & ENABLED and self.CTL >> SECOND & ENABLED
            left, right = self._levels
            if self.sink is not None:
                level = self._levels[channel]
                self.sink(self._clock.now, *((left, right) if both else (level, level)))
