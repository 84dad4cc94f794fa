"""The mailboxes (P + 0xB880) between the ARM and the VideoCore firmware.

A message is answered at once: the word written to mailbox 1 goes to its channel, the reply waits in
mailbox 0. A full reply FIFO loses the reply but not the request: many programs never read replies.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from vc4lab.diagnostics import Reporter
from vc4lab.listeners import Listeners
from vc4lab.registers import Register
from vc4lab.soc.address.block import Block
from vc4lab.soc.clock import Clock
from vc4lab.soc.devices.interrupts import BASIC_MAILBOX, InterruptController

DEPTH = 8
MESSAGE_NS = 100_000
"""Guest time the firmware takes for a message."""
EMPTY, FULL = 1 << 30, 1 << 31
MISALIGNED = "; a buffer's address must be a multiple of 16, as the low four bits are the channel"
CHANNELS = (
    "power", "framebuffer", "virtual UART", "VCHIQ", "LEDs", "buttons", "touch", "count",
    "property tags", "property tags (VC to ARM)",
)  # fmt: skip

Channel = Callable[[int], int | None]
"""Takes the 28 data bits (in place, low four bits 0), gives the reply's data or None."""


class MailboxMessage(NamedTuple):
    """A message on a channel, before it is answered (`is_answered`: after that)."""

    channel: int
    data: int
    reply: int | None
    is_answered: bool


class Mailbox(Block):
    """Both mailboxes; `channels` has the handlers."""

    NAME = "mailbox"
    OFFSET = 0xB880
    SIZE = 0x80
    READ = Register(0x00, access="r", count=4, doc="takes a word out, mirrored")
    PEEK = Register(0x10, access="r", steady=True)
    SENDER = Register(0x14, access="r")
    STATUS = Register(0x18, access="r", steady=True, fields="31 full, 30 empty, 7:0 level")
    CONFIG = Register(0x1C, bits=0xFF, then="_update")
    WRITE = Register(0x20, count=4, doc="sends, mirrored")
    PEEK1 = Register(0x30, access="r")
    SENDER1 = Register(0x34, access="r")
    STATUS1 = Register(0x38, access="r", steady=True, doc="31 full: never here")
    CONFIG1 = Register(0x3C)

    def __init__(
        self,
        interrupts: InterruptController,
        clock: Clock,
        reporter: Reporter,
        channels: dict[int, Channel],
    ) -> None:
        super().__init__()
        self._clock = clock
        self._interrupts = interrupts
        self._reporter = reporter
        self.channels = channels
        self.replies: deque[int] = deque()
        self.messages = 0
        self.message: Listeners[MailboxMessage] = Listeners()

    def on_read_READ(self, _mirror: int) -> int:
        word = self.replies.popleft() if self.replies else 0
        self._update()
        return word

    def on_read_PEEK(self) -> int:
        return self.replies[0] if self.replies else 0

    def on_read_STATUS(self) -> int:
        level = len(self.replies)
        return level | (EMPTY if level == 0 else 0) | (FULL if level >= DEPTH else 0)

    def on_read_STATUS1(self) -> int:
        return EMPTY

    def on_read_WRITE(self, _mirror: int) -> int:
        return 0

    def on_write_WRITE(self, _mirror: int, value: int) -> None:
        self.messages += 1
        self._clock.skip(MESSAGE_NS)
        number = value & 15
        channel = self.channels.get(number)
        if channel is None:
            name = CHANNELS[number] if number < len(CHANNELS) else "no such channel"
            hint = "" if number < len(CHANNELS) else MISALIGNED
            self._reporter.report(
                "SOC-010",
                f"a message on mailbox channel {number} ({name}), which gets no answer{hint}",
                address=value & ~15,
                block="mailbox",
            )
            return
        data = value & 0xFFFFFFF0
        if self.message.subscriptions:
            self.message.emit(MailboxMessage(number, data, None, is_answered=False))
        reply = channel(data)
        if self.message.subscriptions:
            self.message.emit(MailboxMessage(number, data, reply, is_answered=True))
        if reply is not None and len(self.replies) < DEPTH:
            self.replies.append(reply & 0xFFFFFFF0 | number)
        self._update()

    def _update(self) -> None:
        self._interrupts.set_basic(BASIC_MAILBOX, bool(self.replies) and bool(self.CONFIG & 1))
