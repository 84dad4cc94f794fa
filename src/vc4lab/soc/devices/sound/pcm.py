"""PCM (I2S) at P + 0x203000: samples go out at the clock's pace to nowhere, silence comes in.

Words are counted when they are asked for. Source: BCM2835 ARM Peripherals 8.
"""

from __future__ import annotations

from collections.abc import Callable

from vc4lab.diagnostics import Reporter
from vc4lab.registers import Poll, Register
from vc4lab.soc.clock import FAR, NANOSECONDS, Clock, Event
from vc4lab.soc.devices.buses.absent import Absent
from vc4lab.soc.devices.interrupts import PCM, InterruptController

FIFO = 64
ENABLE, RECEIVE, TRANSMIT, CLEAR_TX, CLEAR_RX = 1, 1 << 1, 1 << 2, 1 << 3, 1 << 4
TX_SYNC, RX_SYNC, TX_ERROR, RX_ERROR = 1 << 13, 1 << 14, 1 << 15, 1 << 16
TX_WANTS, RX_WANTS, TX_ROOM, RX_DATA = 1 << 17, 1 << 18, 1 << 19, 1 << 20
TX_EMPTY, RX_FULL = 1 << 21, 1 << 22
KEPT = 0x038003E7
ERRORS = TX_ERROR | RX_ERROR
CHANNEL_1, CHANNEL_2 = 1 << 30, 1 << 14
SHORTEST_NS = 100
IDLE_NS = 1_000_000


class Pcm(Absent):
    """The I2S interface with nothing on it.

    Parameters
    ----------
    frequency
        The PCM clock in Hz at the moment, 0 if it stands still.
    """

    NAME = "pcm"
    TITLE = "PCM (I2S)"
    OFFSET = 0x203000
    CS = Register(
        0x00,
        poll=Poll.EVENT,
        steady=True,
        timed=True,
        fields="0 enable, 17 TX, 18 RX wanted, 19 room, 20 data",
    )
    WORDS = Register(0x04, doc="the FIFOs")
    MODE = Register(0x08, fields="23 clock from outside", doc="19:10 bits of a frame - 1")
    RXC = Register(0x0C)
    TXC = Register(0x10, fields="30 channel 1, 14 channel 2")
    DREQ = Register(0x14, reset=0x10303020)
    INTEN = Register(0x18, fields="3 RX, 2 TX error, 1 RX, 0 TX wanted", then="_update")
    INTSTC = Register(0x1C, doc="the same; write 1 clears")
    GRAY = Register(0x20)

    def __init__(
        self,
        reporter: Reporter,
        interrupts: InterruptController,
        clock: Clock,
        frequency: Callable[[], float],
    ) -> None:
        super().__init__(reporter, interrupts)
        self._clock = clock
        self._frequency = frequency
        self._queued = self._heard = 0
        """Words in the two FIFOs."""
        self._counted = 0
        """Moment up to which they are counted."""
        self._event: Event | None = None

    # -- time --------------------------------------------------------------------------------------

    @property
    def period(self) -> int:
        """Nanoseconds of a word, 0 if no clock comes."""
        frequency = self._frequency()
        if frequency <= 0 or self.MODE & 1 << 23:
            return 0
        words = bool(self.TXC & CHANNEL_1) + bool(self.TXC & CHANNEL_2) or 1
        frame = (self.MODE >> 10 & 0x3FF) + 1
        return max(int(frame * NANOSECONDS / frequency / words), SHORTEST_NS)

    def _catch_up(self) -> None:
        now = self._clock.now
        period = self.period
        if not period or not self.CS & ENABLE:
            self._counted = now
            return
        words = (now - self._counted) // period
        self._counted += words * period
        if self.CS & TRANSMIT:
            if words > self._queued:
                self.CS |= TX_ERROR
            self._queued = max(self._queued - words, 0)
        if self.CS & RECEIVE:
            if self._heard + words > FIFO:
                self.CS |= RX_ERROR
            self._heard = min(self._heard + words, FIFO)

    def _events(self) -> int:
        """INTSTC as it is now."""
        self._catch_up()
        status = self._status()
        value = bool(status & TX_WANTS and status & TRANSMIT) | bool(status & RX_WANTS) << 1
        return self.INTSTC | value | bool(status & TX_ERROR) << 2 | bool(status & RX_ERROR) << 3

    def _update(self) -> None:
        """Raise or lower the interrupt line; schedule the FIFO's next request."""
        if self._event is not None:
            self._event.cancel()
            self._event = None
        if not self.INTEN and not self._interrupts.lines >> PCM & 1:
            return
        raised = bool(self._events() & self.INTEN & 15)
        self._interrupts.set_line(PCM, raised)
        if not raised and self.CS & ENABLE:
            self._event = self._clock.after(self.wait(), self._update)

    # -- for the DMA -------------------------------------------------------------------------------

    def room(self) -> int:
        """Words that the TX FIFO takes from the DMA now."""
        self._catch_up()
        return FIFO - self._queued if self.CS & 1 << 9 else 0

    def data(self) -> int:
        """Words that the RX FIFO has for the DMA."""
        self._catch_up()
        return self._heard if self.CS & 1 << 9 else 0

    def wait(self) -> int:
        """Nanoseconds until half a FIFO has gone by."""
        return FIFO // 2 * self.period or IDLE_NS

    # -- registers ---------------------------------------------------------------------------------

    @property
    def _few(self) -> int:
        """So many words in its FIFO make the transmitter want more."""
        return FIFO - 1 if self.CS >> 5 & 3 else 0

    @property
    def _many(self) -> int:
        """So many words in its FIFO make the receiver ask to be read."""
        return (1, FIFO // 4, 3 * FIFO // 4, FIFO)[self.CS >> 7 & 3]

    def _next_change(self) -> int:
        """When CS says something else than now (ns)."""
        control, period = self.CS, self.period
        if not control & ENABLE or not period:
            return FAR
        words = []
        if control & TRANSMIT:
            left = [FIFO - 1, self._few, 0] if control & TX_ERROR else [FIFO - 1, self._few, 0, -1]
            words += [self._queued - level for level in left]
        if control & RECEIVE:
            there = [1, self._many, FIFO] if control & RX_ERROR else [1, self._many, FIFO, FIFO + 1]
            words += [level - self._heard for level in there]
        soonest = min((count for count in words if count > 0), default=0)
        return self._counted + soonest * period if soonest else FAR

    def _status(self) -> int:
        value = self.CS & (KEPT | ERRORS)
        if not value & ENABLE:
            return value
        few, many = self._few, self._many
        for bit, met in (
            (TX_WANTS, self._queued <= few),
            (TX_ROOM, self._queued < FIFO),
            (TX_EMPTY, not self._queued),
            (TX_SYNC, value & TRANSMIT),
            (RX_SYNC, value & RECEIVE),
            (RX_WANTS, self._heard >= many),
            (RX_DATA, self._heard),
            (RX_FULL, self._heard == FIFO),
        ):
            value |= bit if met else 0
        return value

    def on_write_CS(self, value: int) -> None:
        self._catch_up()
        errors = self.CS & ERRORS & ~value
        if value & CLEAR_TX:
            self._queued = 0
        if value & CLEAR_RX:
            self._heard = 0
        self.CS = value & KEPT | errors
        self._update()

    def on_read_CS(self) -> int:
        self._catch_up()
        self.changes_at = self._next_change()
        return self._status()

    def on_write_WORDS(self, value: int) -> None:
        self.report_use()
        self._catch_up()
        if self._queued < FIFO:
            self._queued += 1
        else:
            self.CS |= TX_ERROR
        self._update()

    def on_read_WORDS(self) -> int:
        self._catch_up()
        self._heard = max(self._heard - 1, 0)
        self._update()
        return 0

    def on_read_INTSTC(self) -> int:
        return self._events()

    def on_write_INTSTC(self, value: int) -> None:
        self.INTSTC &= ~value
        if value & 12:
            self.CS &= ~((TX_ERROR if value & 4 else 0) | (RX_ERROR if value & 8 else 0))
        self._update()
