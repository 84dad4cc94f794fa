"""The mailboxes (P + 0xB880) between the ARM and the VideoCore firmware.

The word written to mailbox 1 reaches its channel when the firmware has had time for it: only then
it reads the message, does what it says and writes its answer, and the reply waits in mailbox 0. A
program that does not wait for the reply finds its own message unanswered. A full reply FIFO loses
the reply but not the request: many programs never read replies.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from vc4lab.diagnostics import Reporter
from vc4lab.listeners import Listeners
from vc4lab.registers import Poll, Register
from vc4lab.soc.address.block import Block
from vc4lab.soc.clock import Clock, Event
from vc4lab.soc.devices.interrupts import BASIC_MAILBOX, InterruptController

DEPTH = 8
ANSWER_NS = {"10us": 10_000, "100us": 100_000, "1ms": 1_000_000}
"""Guest time the firmware takes for a message, by the row `mailbox_answer_time`."""
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
    """Both mailboxes.

    Parameters
    ----------
    channels
        The handlers.
    answer_ns
        Nanoseconds that the firmware takes for a message.
    at_once
        Whether a message is answered before the program's next instruction (`--forgiving`): the
        time passes in the write.

    Attributes
    ----------
    requests
        Words that the firmware has not dealt with yet.
    messages
        Those that were answered, or that no channel answers.
    unheard
        Called with a message's word when the firmware has answered it and the program has not
        looked for a reply since it sent it.
    """

    NAME = "mailbox"
    OFFSET = 0xB880
    SIZE = 0x80
    READ = Register(0x00, count=4, doc="takes a word out, mirrored; a write is lost")
    PEEK = Register(0x10, access="r", steady=True)
    SENDER = Register(0x14, access="r")
    STATUS = Register(0x18, access="r", steady=True, poll=Poll.EVENT, fields="31 full, 30 empty, 7:0 level")
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
        answer_ns: int,
        at_once: bool = False,
    ) -> None:
        super().__init__()
        self._clock = clock
        self._interrupts = interrupts
        self._reporter = reporter
        self.channels = channels
        self._answer_ns = answer_ns
        self.at_once = at_once
        self._event: Event | None = None
        self.requests: deque[int] = deque()
        self._due = 0
        """When it has dealt with the first of them."""
        self._looked = False
        """Whether the program has looked for a reply since it sent the last message."""
        self.unheard: Callable[[int], None] = lambda word: None
        self.replies: deque[int] = deque()
        self.messages = 0
        self.message: Listeners[MailboxMessage] = Listeners()

    @property
    def is_busy(self) -> bool:
        """Whether the firmware has messages to deal with."""
        return bool(self.requests)

    def restored(self) -> None:
        """A state is restored, with the messages, but without events."""
        self._event = None
        if self.requests:
            self._event = self._clock.at(self._due, self._deal)

    def on_read_READ(self, _mirror: int) -> int:
        self._looked = True
        word = self.replies.popleft() if self.replies else 0
        self._update()
        return word

    def on_write_READ(self, _mirror: int, value: int) -> None:
        self._reporter.report(
            "SOC-010",
            f"0x{value:08x} is written to mailbox 0, from which the ARM reads: it is lost; messages to the "
            "firmware are written to mailbox 1 (P + 0xB8A0)",
            block="mailbox",
        )

    def on_read_PEEK(self) -> int:
        return self.replies[0] if self.replies else 0

    def on_read_STATUS(self) -> int:
        self._looked = True
        level = len(self.replies)
        return level | (EMPTY if level == 0 else 0) | (FULL if level >= DEPTH else 0)

    def on_read_STATUS1(self) -> int:
        return EMPTY

    def on_read_WRITE(self, _mirror: int) -> int:
        return 0

    def on_write_WRITE(self, _mirror: int, value: int) -> None:
        if self.at_once:
            self._clock.skip(self._answer_ns)
            self._answer(value)
            return
        self._looked = bool(self.CONFIG & 1)
        self.requests.append(value)
        if len(self.requests) > DEPTH and self._event is not None:
            self._event.cancel()
            self._deal()
        if self._event is None:
            self._take_up()

    def _take_up(self) -> None:
        """The firmware begins with the first message."""
        self._due = self._clock.now + self._answer_ns
        self._event = self._clock.at(self._due, self._deal)

    def _deal(self) -> None:
        """The firmware has had time for the first message."""
        self._event = None
        word = self.requests.popleft()
        self._answer(word)
        if not self._looked:
            self.unheard(word)
        if self.requests:
            self._take_up()

    def _answer(self, value: int) -> None:
        """Hand a message to its channel; the reply waits in mailbox 0."""
        self.messages += 1
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
