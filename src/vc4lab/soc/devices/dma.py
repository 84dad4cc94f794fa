"""The DMA: fifteen channels at P + 0x7000 and channel 15 at P + 0xE05000 (hardware reference 8.10).

What moves between RAM and RAM is there when its time is over, a piece of a block after the other: a
program that looks too early finds old bytes. Devices get and give at once what they have room for.
The end of a block comes as an event, so that time passes between linked blocks and a chain that
runs in a circle does not stop the machine.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import IntEnum
from functools import cache
from typing import ClassVar

from vc4lab.bits import sign_extend
from vc4lab.diagnostics import Reporter
from vc4lab.registers import Poll, Register
from vc4lab.soc.address.block import Block
from vc4lab.soc.clock import Clock, Event
from vc4lab.soc.devices.dma_transfer import (
    DEST_DREQ,
    DEST_INC,
    SRC_DREQ,
    SRC_IGNORE,
    SRC_INC,
    BadAddress,
    Mover,
)
from vc4lab.soc.devices.interrupts import DMA, InterruptController

ACTIVE, END, INT, DREQ, PAUSED, ERROR = 1, 1 << 1, 1 << 2, 1 << 3, 1 << 4, 1 << 8
ABORT, RESET = 1 << 30, 1 << 31
KEPT = 0x30FF0000
"""Bits of CS that only say how: priorities, wait for writes, no debugging."""
INTEN, TDMODE = 1 << 0, 1 << 1
READ_ERROR = 1 << 2
DEBUG_ERRORS = 7
VERSION = 2 << 25
LITE = 1 << 28
FIRST_LITE, CHANNELS, SHARED_LINE = 7, 16, 11
LITE_LENGTH = 0xFFFF
BLOCK_BITS = 0xFFFFFFE0
"""Bits of a control block's address that the channel takes; none of them set ends the chain."""
MAX_RAM, MAX_DEVICE = 256 << 10, 4096
"""Bytes moved by one event, between RAM and RAM and with a device."""
MAX_ROWS = 4096
NS_PER_BYTE, SHORTEST_NS = 2, 1_000
MAX_SEEN = 4096
CIRCLE_NS = 50_000
"""A block takes so long at least once the chain is known to run in a circle: a chain of tiny blocks
that never ends must not eat the host's time."""


class Dreq(IntEnum):
    """Devices by their number in the transfer information (PERMAP)."""

    PCM_TX = 2
    PCM_RX = 3
    PWM = 5
    EMMC = 11
    UART_TX = 12
    SDHOST = 13
    UART_RX = 14


@dataclass(frozen=True)
class Pacer:
    """A device that says by DREQ when it takes (or has) a word.

    `room()` is the number of words it takes at once, `wait()` the nanoseconds until there are some.
    """

    room: Callable[[], int]
    wait: Callable[[], int]


@dataclass
class DmaUnit:
    """Shared by all channels."""

    mover: Mover
    clock: Clock
    interrupts: InterruptController
    reporter: Reporter
    code_changed: Callable[[], None]
    pacers: dict[int, Pacer] = field(default_factory=dict)
    """By the device's `Dreq`; others are always ready."""
    at_once: bool = False
    """Whether bytes are there before their time is over (`--forgiving`)."""
    moving: bool = False
    shared_changed: Callable[[], None] = lambda: None
    """Channels 11 to 14 share a line; set by `Dma`."""


class DmaChannel(Block):
    """One channel; `_channel_class` makes the sixteen."""

    SIZE = 0x100
    NUMBER: ClassVar[int] = 0
    CS = Register(
        0x00, poll=Poll.EVENT, steady=True, fields="0 active, 1 end, 2 interrupt, 8 error, 31 reset"
    )
    CONBLK_AD = Register(0x04, poll=Poll.EVENT)
    TI = Register(0x08, access="r")
    SOURCE_AD = Register(0x0C, access="r", poll=Poll.EVENT)
    DEST_AD = Register(0x10, access="r", poll=Poll.EVENT)
    TXFR_LEN = Register(0x14, access="r", poll=Poll.EVENT, steady=True)
    STRIDE = Register(0x18, access="r")
    NEXTCONBK = Register(0x1C)
    DEBUG = Register(0x20, access="w1c", bits=DEBUG_ERRORS, fields="2:0 errors", doc="reads: 28 lite")

    def __init__(self, unit: DmaUnit, enabled: Callable[[int], bool]) -> None:
        super().__init__()
        self._unit = unit
        self._enabled = enabled
        self._loaded = False
        self._row = self._left = self._rows = 0
        self._event: Event | None = None
        self._token = object()
        self._seen: set[int] = set()
        self._shortest = SHORTEST_NS

    @property
    def lite(self) -> bool:
        """Whether it lacks 2D mode and long transfers."""
        return FIRST_LITE <= self.NUMBER < CHANNELS - 1

    # -- registers ---------------------------------------------------------------------------------

    def on_read_CS(self) -> int:
        value = self.CS
        if self._loaded and not value & ACTIVE:
            value |= PAUSED
        if self._loaded and self.TI & (SRC_DREQ | DEST_DREQ):
            value |= DREQ
        return value | (ERROR if self.DEBUG & DEBUG_ERRORS else 0)

    def on_write_CS(self, value: int) -> None:
        if value & RESET:
            self._reset()
            return
        was = self.CS & ACTIVE
        self.CS = value & KEPT | self.CS & ~value & (END | INT) | was
        self._update_line()
        if value & ABORT and self._loaded:
            self._cancel()
            self.CS &= ~ACTIVE
            self._load_next()
        if not value & ACTIVE:
            self.CS &= ~ACTIVE
            self._cancel_event()
        elif not was:
            self._activate()

    def on_write_CONBLK_AD(self, value: int) -> None:
        if not self.CS & ACTIVE:
            self.CONBLK_AD = value
            self._loaded = False

    def on_read_TXFR_LEN(self) -> int:
        return self._left | (self._rows << 16 if self.TI & TDMODE else 0)

    def on_read_DEBUG(self) -> int:
        lite = LITE if self.lite else 0
        return self.DEBUG & DEBUG_ERRORS | lite | VERSION | self.NUMBER << 8

    # -- control blocks ----------------------------------------------------------------------------

    def _activate(self) -> None:
        if not self._enabled(self.NUMBER):
            self._report("SOC-052", f"channel {self.NUMBER} is started, but its bit in ENABLE is 0")
            return
        if not self._loaded:
            if not self.CONBLK_AD & BLOCK_BITS:
                return
            self._seen.clear()
            self._shortest = SHORTEST_NS
            self.CS |= ACTIVE
            if not self._load():
                return
        self.CS |= ACTIVE
        if self._unit.moving:
            self._event = self._unit.clock.after(SHORTEST_NS, self._go_on)
        else:
            self._go_on()

    def _load(self) -> bool:
        """Take over the control block at CONBLK_AD; False if there is none."""
        address = self.CONBLK_AD
        if address & ~BLOCK_BITS:
            self._report("SOC-050", f"a control block at 0x{address:08x} is not aligned to 32 bytes", address)
            address &= BLOCK_BITS
        mover = self._unit.mover
        try:
            words = mover.control_block(address)
        except BadAddress as error:
            self._fail(error, "its control block, ")
            return False
        for register, word in zip((0x08, 0x0C, 0x10, 0x14, 0x18, 0x1C), words, strict=False):
            self.values[register] = word
        length = self.values[0x14]
        info = self.TI
        if self.lite:
            self._report_lite(info, length, address)
            info &= ~TDMODE
            self.TI = info
            length &= LITE_LENGTH
        self._row = length & 0xFFFF if info & TDMODE else length & 0x3FFFFFFF
        self._rows = length >> 16 & 0x3FFF if info & TDMODE else 0
        self._left = self._row
        self._loaded = True
        self._token = object()
        self._watch_for_circles(address, bool(info & (SRC_DREQ | DEST_DREQ)))
        return True

    def _report_lite(self, info: int, length: int, address: int) -> None:
        """Report what a control block asks of a lite channel that it does not have."""
        moved = length & LITE_LENGTH
        if info & TDMODE:
            what = f"no 2D mode (TI bit 1), and moves one row of {moved} bytes"
        elif length & ~LITE_LENGTH:
            what = f"16 bits for the length, and moves {moved} bytes instead of {length}"
        else:
            return
        self._report("SOC-117", f"channel {self.NUMBER} is a lite one: it has {what}", address)

    def _watch_for_circles(self, address: int, paced: bool) -> None:
        if paced:
            self._seen.clear()
        elif address in self._seen:
            self._shortest = CIRCLE_NS
            self._report(
                "SOC-053",
                f"channel {self.NUMBER}'s chain leads back to its control block at "
                f"0x{address:08x} and never ends",
                address,
            )
        elif len(self._seen) < MAX_SEEN:
            self._seen.add(address)

    def _load_next(self) -> bool:
        """Go to the linked block, if there is one."""
        self._loaded = False
        self.CONBLK_AD = self.NEXTCONBK
        return bool(self.CONBLK_AD & BLOCK_BITS) and self._load()

    # -- moving ------------------------------------------------------------------------------------

    @property
    def _is_within_ram(self) -> bool:
        """Whether no device takes part: bytes are there when their time is over."""
        mover = self._unit.mover
        if self._unit.at_once or self.TI & (SRC_DREQ | DEST_DREQ) or mover.is_device(self.DEST_AD):
            return False
        return bool(self.TI & SRC_IGNORE) or not mover.is_device(self.SOURCE_AD)

    def _step(self) -> None:
        """A moment has come for which the channel has waited."""
        self._event = None
        if (self._left or self._rows) and self._is_within_ram and self._moved(MAX_RAM) is None:
            return
        self._go_on()

    def _go_on(self) -> None:
        """Begin with what one event moves, or end the block."""
        self._event = None
        if not self._left and not self._rows and not self._complete():
            return
        unit = self._unit
        if self._is_within_ram:
            size = self._next_size()
            try:
                unit.mover.begin(self.TI, self.SOURCE_AD, self.DEST_AD, min(self._left, size))
            except BadAddress as error:
                self._fail(error, "")
                return
            self._event = unit.clock.after(max(size * NS_PER_BYTE, self._shortest), self._step)
            return
        pacer = self._pacer()
        room = pacer.room() if pacer is not None else MAX_RAM
        if room <= 0 and pacer is not None:
            self._event = unit.clock.after(max(pacer.wait(), SHORTEST_NS), self._step)
            return
        moved = self._moved(4 * room)
        if moved is not None:
            self._event = unit.clock.after(max(moved * NS_PER_BYTE, self._shortest), self._step)

    def _moved(self, most: int) -> int | None:
        """Move at most so many bytes; how many it were, None if the channel does not go on."""
        unit, token = self._unit, self._token
        unit.moving = True
        try:
            moved = self._move(most)
        except BadAddress as error:
            self._fail(error, "")
            return None
        finally:
            unit.moving = False
        goes_on = self._token is token and self.CS & ACTIVE and self._event is None
        return moved if goes_on else None

    def _next_size(self) -> int:
        """The bytes that `_move` moves next within RAM."""
        rows = min(self._rows, MAX_ROWS - 1)
        return min(self._left + rows * self._row, MAX_RAM)

    def _complete(self) -> bool:
        """The block is done; whether there is a next one."""
        self.CS |= END
        if self.TI & INTEN:
            self.CS |= INT
            self._update_line()
        if not self._load_next():
            self.CS &= ~ACTIVE
            return False
        return True

    def _pacer(self) -> Pacer | None:
        if not self.TI & (SRC_DREQ | DEST_DREQ):
            return None
        return self._unit.pacers.get(self.TI >> 16 & 31)

    def _move(self, most: int) -> int:
        """Move at most so many bytes; how many it were."""
        mover, info, token = self._unit.mover, self.TI, self._token
        device = mover.is_slow(self.SOURCE_AD) or mover.is_slow(self.DEST_AD)
        most = min(most, MAX_DEVICE if device else MAX_RAM)
        moved = 0
        wrote = False
        try:
            for _row in range(MAX_ROWS):
                size = min(self._left, most - moved)
                if size:
                    wrote |= mover.move(info, self.SOURCE_AD, self.DEST_AD, size)
                    if self._token is not token:
                        return moved
                    moved += size
                    self._left -= size
                    self.SOURCE_AD += size if info & SRC_INC else 0
                    self.DEST_AD += size if info & DEST_INC else 0
                if self._left or not self._rows:
                    break
                self._next_row()
        finally:
            if wrote:
                self._unit.code_changed()
        return moved

    def _next_row(self) -> None:
        stride = self.STRIDE
        self.SOURCE_AD += sign_extend(stride & 0xFFFF, 16)
        self.DEST_AD += sign_extend(stride >> 16, 16)
        self._rows -= 1
        self._left = self._row

    # -- ends --------------------------------------------------------------------------------------

    def _reset(self) -> None:
        self._cancel()
        self.reset_registers()
        self._row = self._left = self._rows = 0
        self._update_line()

    def _cancel_event(self) -> None:
        if self._event is not None:
            self._event.cancel()
            self._event = None

    def _cancel(self) -> None:
        self._cancel_event()
        self._loaded = False
        self._token = object()

    def _fail(self, error: BadAddress, what: str) -> None:
        self._cancel()
        self.CS &= ~ACTIVE
        self.DEBUG |= READ_ERROR
        self._report("SOC-051", f"channel {self.NUMBER} stops: {what}{error}", error.address)

    def _report(self, code: str, text: str, address: int | None = None) -> None:
        self._unit.reporter.report(code, text, address=address, block=self.NAME)

    def _update_line(self) -> None:
        lines = self._unit.interrupts
        if self.NUMBER < SHARED_LINE:
            lines.set_line(DMA + self.NUMBER, bool(self.CS & INT))
        elif self.NUMBER < CHANNELS - 1:
            self._unit.shared_changed()


class Dma(Block):
    """The registers of all channels together, and the channels."""

    NAME = "dma"
    OFFSET = 0x7000
    INT_STATUS = Register(0xFE0, access="r", poll=Poll.EVENT, steady=True)
    ENABLE = Register(0xFF0, reset=0x7FFF, bits=0x7FFF)

    def __init__(self, unit: DmaUnit) -> None:
        super().__init__()
        self.unit = unit
        self.channels = tuple(_channel_class(n)(unit, self._is_enabled) for n in range(CHANNELS))
        unit.shared_changed = self._update_shared

    def places(self) -> list[tuple[int, DmaChannel]]:
        """Offset in the peripheral window of every channel."""
        offsets = [self.OFFSET + 0x100 * n for n in range(CHANNELS - 1)] + [0xE05000]
        return list(zip(offsets, self.channels, strict=True))

    @property
    def busy(self) -> bool:
        """Whether a channel will do something by itself."""
        for channel in self.channels:  # noqa: SIM110 - any() takes three times as long
            if channel._event is not None:
                return True
        return False

    def _is_enabled(self, number: int) -> bool:
        return number == CHANNELS - 1 or bool(self.ENABLE >> number & 1)

    def on_read_INT_STATUS(self) -> int:
        return sum(bool(channel.CS & INT) << channel.NUMBER for channel in self.channels)

    def _update_shared(self) -> None:
        shared = self.channels[SHARED_LINE : CHANNELS - 1]
        level = any(channel.CS & INT for channel in shared)
        self.unit.interrupts.set_line(DMA + SHARED_LINE, level)


@cache
def _channel_class(number: int) -> type[DmaChannel]:
    return type(f"Dma{number}", (DmaChannel,), {"NAME": f"dma{number}", "NUMBER": number})
