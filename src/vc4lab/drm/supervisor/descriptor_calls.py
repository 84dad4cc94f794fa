"""System calls on device descriptors: read, dup, fcntl, lseek, epoll, kcmp."""

from __future__ import annotations

import errno
import fcntl
import mmap
import os
import time
from typing import TYPE_CHECKING

from vc4lab.drm.processes.descriptors import EPOLL_DELETE, EPOLL_EVENT, EventPolls, control
from vc4lab.drm.supervisor.answers import Answer, Caller, Device, Outcome
from vc4lab.drm.uapi.results import Later, Refused

if TYPE_CHECKING:
    from vc4lab.drm.processes.descriptors import Opened

_COMPARE_FILES = 0
_PROCEEDS = (fcntl.F_GETFD, fcntl.F_SETFD, fcntl.F_GETFL, fcntl.F_SETFL)
_TASK_SIZE = (1 << 47) - mmap.PAGESIZE if os.uname().machine == "x86_64" else 1 << 48
"""Above all memory that a 64-bit program has."""
RELEASE_SECONDS = 0.01
"""So long after a close the descriptors are counted."""


class DescriptorCalls:
    """Answers calls on descriptors of the device, ioctl excepted."""

    def __init__(self, device: Device) -> None:
        self.device = device
        self.polls = EventPolls()
        self.sweep_at: float | None = None
        """When descriptions are to be looked at: something was closed."""

    # -- events ------------------------------------------------------------------------------------

    def read(self, caller: Caller, number: int, address: int, size: int) -> Answer:
        """Events of an open file: at once, or as soon as there is one."""
        opened = caller.served(number)
        if opened is None:
            return Outcome.PROCEED
        if address + size > _TASK_SIZE:
            raise Refused(errno.EFAULT, "no memory of a program is there")
        if self.device.size_of(opened) is not None:
            raise Refused(errno.EINVAL, "a dma-buf cannot be read")

        def take() -> int | None:
            if not self.device.readiness(opened):
                return None
            data = self.device.take_events(opened, size)
            try:
                caller.write(address, data)
            except Refused as refused:
                self.device.put_back_events(opened, data)
                return -refused.number
            return len(data)

        done = take()
        if done is not None:
            return done
        info = caller.position(number)
        if info is not None and info.flags & os.O_NONBLOCK:
            raise Refused(errno.EAGAIN)
        return Later(take)

    # -- copies ------------------------------------------------------------------------------------

    def duplicate(
        self, caller: Caller, number: int, *, at: int | None = None, at_least: int = 0, flags: int = 0
    ) -> Answer:
        """dup, dup2, dup3 and F_DUPFD: another description of the same open file."""
        opened = caller.served(number)
        if opened is None:
            return Outcome.PROCEED
        if at == number:
            if flags:
                raise Refused(errno.EINVAL)
            return number
        info = caller.position(number)
        mode = flags | ((info.flags if info else 0) & os.O_NONBLOCK)
        self.sweep_at = time.monotonic() + RELEASE_SECONDS  # `at` may close one
        result = caller.descriptors.give(
            caller.listener, caller.call, caller, opened, number=at, at_least=at_least, flags=mode
        )
        return result if result is not None and result < 0 else Outcome.ANSWERED

    def control(self, caller: Caller, number: int, command: int, argument: int) -> Answer:
        """fcntl."""
        if command in (fcntl.F_DUPFD, fcntl.F_DUPFD_CLOEXEC):
            flags = os.O_CLOEXEC if command == fcntl.F_DUPFD_CLOEXEC else 0
            return self.duplicate(caller, number, at_least=argument & 0x7FFFFFFF, flags=flags)
        if command in _PROCEEDS or caller.served(number) is None:
            return Outcome.PROCEED
        raise Refused(errno.EINVAL)

    def closed(self) -> Answer:
        """close: the kernel does it; what is gone is seen a little later."""
        if self.sweep_at is None:
            self.sweep_at = time.monotonic() + RELEASE_SECONDS
        return Outcome.PROCEED

    def refuse(self, caller: Caller, number: int) -> Answer:
        """write, pread, ftruncate and others that devices do not have."""
        if caller.served(number) is None:
            return Outcome.PROCEED
        raise Refused(errno.EINVAL, "not on a device")

    def seek(self, caller: Caller, number: int, offset: int, whence: int) -> Answer:
        """lseek: the position says whose descriptor it is, so it never moves."""
        opened = caller.served(number)
        if opened is None:
            return Outcome.PROCEED
        size = self.device.size_of(opened)
        if size is None:
            raise Refused(errno.ESPIPE)
        if offset or whence not in (os.SEEK_SET, os.SEEK_END):
            raise Refused(errno.EINVAL)
        return size if whence == os.SEEK_END else 0

    # -- epoll -------------------------------------------------------------------------------------

    def make_poll(self, caller: Caller, flags: int) -> Answer:
        """epoll_create: the supervisor's own, so that device descriptors can be added."""
        if flags & ~os.O_CLOEXEC:
            raise Refused(errno.EINVAL)
        number, descriptor = self.polls.make()
        result = caller.listener.give(caller.call, descriptor, close_on_exec=bool(flags))
        if result is None or result < 0:
            self.polls.forget(number)
        return result if result is not None and result < 0 else Outcome.ANSWERED

    def control_poll(self, caller: Caller, args: tuple[int, ...]) -> Answer:
        """epoll_ctl of a device descriptor: an eventfd stands for it."""
        poll, operation, number, address = args[:4]
        opened = caller.served(number & 0xFFFFFFFF)
        if opened is None:
            return Outcome.PROCEED
        copy = self.polls.find(caller, poll & 0xFFFFFFFF)
        descriptor = self.device.event_descriptor(opened)
        if copy is None or descriptor is None:
            return Outcome.PROCEED  # the kernel answers EPERM
        events = data = 0
        if operation != EPOLL_DELETE:
            events, data = EPOLL_EVENT.unpack(caller.read(address, EPOLL_EVENT.size))
        try:
            control(copy, operation, descriptor, events, data)
        except OSError as error:
            raise Refused(error.errno or errno.EINVAL) from None
        return 0

    def compare(self, caller: Caller, args: tuple[int, ...]) -> Answer:
        """kcmp of two descriptors: copies of one open file are the same."""
        first_process, second_process, kind, first, second = args[:5]
        if kind != _COMPARE_FILES:
            return Outcome.PROCEED
        found: list[Opened | None] = []
        for process, number in ((first_process, first), (second_process, second)):
            found.append(caller.descriptors.find(caller.other(process), number & 0xFFFFFFFF))
        if found[0] is None or found[1] is None:
            return Outcome.PROCEED if found[0] is found[1] else 1
        if found[0] is found[1]:
            return 0
        return 1 if id(found[0]) < id(found[1]) else 2
