"""Waits of both SD controllers: one moment that a command, a block, or its end is waited for.

A command goes before a transfer; a transfer that was interrupted by one goes on afterwards.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

from vc4lab.diagnostics import Reporter
from vc4lab.soc.address.block import Block
from vc4lab.soc.clock import Clock, Event
from vc4lab.soc.devices.interrupts import InterruptController
from vc4lab.soc.sd.sd_card import SdCard

NOTHING, READ, WRITE = range(3)
"""Directions of a transfer."""
NONE = -1
"""No command is under way."""


class SdController(Block, ABC):
    """A controller's command and transfer, and the event that is waited for.

    Parameters
    ----------
    card
        The card.
    is_connected
        Whether the pins lead to the slot.
    """

    def __init__(
        self,
        card: SdCard,
        clock: Clock,
        interrupts: InterruptController,
        reporter: Reporter,
        is_connected: Callable[[], bool],
    ) -> None:
        super().__init__()
        self.card = card
        self._clock = clock
        self._interrupts = interrupts
        self._reporter = reporter
        self._is_connected = is_connected
        self._event: Event | None = None
        self._command = NONE
        """The register's word of the command under way."""
        self._direction = NOTHING
        self._left = 0
        """Blocks that are still moved."""
        self._buffer = bytearray()
        self._at = 0
        """Bytes of the buffer that were taken (reading)."""
        self._ready = False
        """Whether the program may move data now."""

    def _after(self, delay: int) -> None:
        """The next step is so many nanoseconds away."""
        if self._event is not None:
            self._event.cancel()
        self._event = self._clock.after(delay, self._step)

    def _step(self) -> None:
        """The moment that was waited for."""
        self._event = None
        if self._command != NONE:
            self._do_command(self._command)
        elif self._direction == READ and not self._ready:
            self._fetch()
        elif self._direction == WRITE and not self._ready:
            self._store()

    @abstractmethod
    def _do_command(self, command: int) -> None:
        """The command has come to the card."""

    @abstractmethod
    def _fetch(self) -> None:
        """The card has sent what was waited for."""

    @abstractmethod
    def _store(self) -> None:
        """Go on after what was written has come to the card."""

    def _end_transfer(self) -> None:
        """No transfer is under way, nor waited for."""
        self._direction = NOTHING
        self._ready = False
        self._left = self._at = 0
        self._buffer.clear()
        if self._event is not None and self._command == NONE:
            self._event.cancel()
            self._event = None

    def _wrong(self, what: str) -> None:
        name = self.NAME.upper()
        self._reporter.report("SOC-063", f"the {name} controller gets {what}", block=self.NAME)
