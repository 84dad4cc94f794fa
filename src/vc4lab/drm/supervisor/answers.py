"""The answers of system call handlers, and the device as the supervisor sees it."""

from __future__ import annotations

import errno
from collections.abc import Container, Iterable
from enum import Enum
from typing import TYPE_CHECKING, Protocol

from vc4lab.drm.processes.descriptors import Descriptors, MemoryFile, Opened, OpenedSocket
from vc4lab.drm.processes.notifications import Listener, Notification
from vc4lab.drm.processes.targets import KeptFiles, Task
from vc4lab.drm.uapi.results import Later, Refused

if TYPE_CHECKING:
    from vc4lab.drm.supervisor.file_status import FileStatus


class Outcome(Enum):
    """Answers that are no numbers."""

    PROCEED = "the kernel executes the call unchanged"
    ANSWERED = "answered already"
    AGAIN = "looked at again a moment later"


Answer = int | Later | Outcome


class Caller(Task):
    """The thread whose call is being answered; it can be given descriptors."""

    __slots__ = ("call", "descriptors", "listener")

    def __init__(
        self, kept: KeptFiles, call: Notification, listener: Listener, descriptors: Descriptors
    ) -> None:
        self.tid, self._kept = call.tid, kept
        self.call = call
        self.listener = listener
        self.descriptors = descriptors

    def give(self, opened: Opened, flags: int = 0) -> int:
        """A new descriptor of a device's object; its number there. Raises Refused."""
        return self._given(
            self.descriptors.give(self.listener, self.call, self, opened, flags=flags, reply=False)
        )

    def give_copy(self, descriptor: int, *, close_on_exec: bool = True) -> int:
        """A copy of one of the supervisor's descriptors; its number there. Raises Refused."""
        return self._given(
            self.listener.give(self.call, descriptor, close_on_exec=close_on_exec, reply=False)
        )

    def find(self, number: int) -> Opened | None:
        """Find what one of the caller's descriptors stands for."""
        return self.descriptors.find(self, number)

    def served(self, number: int) -> Opened | None:
        """Find that, but None for what the kernel serves."""
        opened = self.find(number)
        return None if isinstance(opened, OpenedSocket) else opened

    def served_as(self, number: int, text: bytes) -> Opened | None:
        """Find that from what /proc says about the descriptor."""
        opened = self.descriptors.identify(self, number, text)
        return None if isinstance(opened, OpenedSocket) else opened

    def _given(self, number: int | None) -> int:
        if number is None:
            raise Refused(errno.EINTR, "the call was interrupted")
        if number < 0:
            raise Refused(-number, "no descriptor could be created")
        return number


class Device(Protocol):
    """Answers what the supervisor asks of the device whose nodes it shows."""

    def open(self, name: str, caller: Caller) -> Opened:
        """Open a node. Raises Refused."""

    def ioctl(self, opened: Opened, caller: Caller, request: int, argument: int) -> Answer:
        """An ioctl on an open file or a dma-buf. Raises Refused."""

    def plain_ioctl(self, caller: Caller, number: int, request: int, argument: int) -> Answer:
        """An ioctl on a descriptor that is not the device's own: a sync file. Raises Refused."""

    def unmapping(self, caller: Caller, address: int, size: int) -> None:
        """A program unmaps something; called if the supervisor's `unmaps` is set."""

    def check_mapping(self, caller: Caller, opened: Opened, offset: int, size: int) -> tuple[int, MemoryFile]:
        """Find the memory file and the place in it that the file may map. Raises Refused."""

    @property
    def memories(self) -> Container[int]:
        """The numbers of the memory files that there are now."""

    def readiness(self, opened: Opened) -> int:
        """Poll's answer, asked for everything; an open file is readable if events wait."""

    def draws_shared(self) -> bool:
        """Whether a dma-buf may not be ready: a descriptor of it may have any number."""

    def take_events(self, opened: Opened, room: int) -> bytes:
        """Whole events that fit."""

    def put_back_events(self, opened: Opened, taken: bytes) -> None:
        """They could not be handed over."""

    def event_descriptor(self, opened: Opened) -> int | None:
        """A descriptor that is ready whenever `readiness` says so, for epoll, if there is one."""

    def status(self, opened: Opened) -> FileStatus:
        """Give the answer of fstat."""

    def size_of(self, opened: Opened) -> int | None:
        """Bytes of a dma-buf; None for a file without a position."""

    def name_of(self, opened: Opened) -> str:
        """The text of a link in /proc/…/fd."""

    def released(self, opened: Opened) -> None:
        """The last descriptor and mapping are gone."""

    def events_kept(self) -> Iterable[int]:
        """Numbers of the eventfds of programs of which the device keeps copies."""

    def forget_event(self, number: int) -> None:
        """No program has that eventfd any more."""

    def next_event(self) -> float | None:
        """When the device must be called again (time.monotonic)."""

    def tick(self, now: float) -> None:
        """It is that late."""
