"""Descriptors of the device inside of programs.

A device descriptor is a description of the memory file of its own, so that a program can map it.
Its file position says which open file it is: that survives dup, fork, exec and sockets. A lock on
the byte at that position is the kernel's own reference count: it goes away with the last
descriptor and the last mapping, wherever they are. Only dma-bufs have files of their own, because
programs ask for their size by seeking.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import resource
import select
import struct
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass

from vc4lab.drm.supervisor.filters import INPUT_WINDOW, IOCTL_MARK, WINDOW
from vc4lab.drm.supervisor.notifications import Listener, Notification
from vc4lab.drm.supervisor.targets import DescriptorInfo, Task

_LOCK = struct.Struct("hhxxxxqqixxxx")
EPOLL_ADD, EPOLL_DELETE = 1, 2
EPOLL_EVENT = struct.Struct("=IQ" if os.uname().machine == "x86_64" else "=IxxxxQ")
FIRST_COOKIE = 1 << 40
COOKIE_STEP = 16
SEEN = 1024
"""So many texts of /proc are remembered."""
_DUPLICATES = 1024
"""So many numbers from the one on that F_DUPFD asks for are tried."""
_SPARE = 320
"""So many numbers of this process stay free for its own looks at programs."""
EVENT_POLL_MARK = IOCTL_MARK << 32
"""Upper half of the data that marks one of the supervisor's epolls."""


def kept(descriptor: int) -> int:
    """A descriptor that stays open for a program. Raises OSError (EMFILE), and closes it then."""
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    if limit != resource.RLIM_INFINITY and descriptor >= limit - _SPARE:
        os.close(descriptor)
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
    return descriptor


class Opened:
    """What a device descriptor stands for: an open file or a dma-buf."""

    descriptions: int = 0
    file: int | None = None
    """A file of its own by which it is known, where programs seek; else the memory file is."""


class OpenedSocket(Opened, ABC):
    """What is a socket's end to the program: the kernel serves it, all but ioctl and fstat."""

    @abstractmethod
    def take_end(self) -> int:
        """The program's end; the caller closes it."""


@dataclass(frozen=True)
class Description:
    """One description of the memory file, or of an object's own file."""

    cookie: int
    opened: Opened
    file: int


class Descriptors:
    """All descriptions that programs hold."""

    def __init__(self, memory_file: int) -> None:
        self.memory_file = memory_file
        found = os.fstat(memory_file)
        self.identity = found.st_dev, found.st_ino
        self._next = FIRST_COOKIE
        self._known: dict[int, Description] = {}
        self._own: dict[int, Opened] = {}
        """Objects with files of their own, by inode."""
        self._seen: dict[bytes, Opened] = {}
        """By what /proc says of a descriptor, position included, until something is forgotten."""
        self._sockets: dict[int, tuple[int, OpenedSocket]] = {}
        """Sockets, by inode, each with its device."""

    # -- giving ------------------------------------------------------------------------------------

    def give(
        self,
        listener: Listener,
        call: Notification,
        task: Task,
        opened: Opened,
        *,
        number: int | None = None,
        at_least: int = 0,
        flags: int = 0,
        reply: bool = True,
        of_memory: bool = False,
    ) -> int | None:
        """Put a descriptor of `opened` into the program: at `number`, else in the window; when
        that is full, at the lowest free number, as if it had come over a socket.

        `of_memory`: of the memory file, even if the object has a file of its own.

        Returns its number, a negative errno, or None if the call does not wait any more.
        """
        if number is None:
            window = INPUT_WINDOW if isinstance(opened, OpenedSocket) else WINDOW
            more = range(at_least, at_least + _DUPLICATES if at_least else 0)
            free = (*range(max(window.start, at_least), window.stop), *more)
            number = next((number for number in free if not task.is_open(number)), None)
            if number is None and (at_least or window is INPUT_WINDOW):
                return -errno.EMFILE
        if isinstance(opened, OpenedSocket) and number is not None:
            return self._give_end(listener, call, opened, number, flags)
        mode = os.O_RDWR | os.O_CLOEXEC | flags & os.O_NONBLOCK
        base = self.memory_file if of_memory or opened.file is None else opened.file
        if base != self.memory_file:
            self._own[os.fstat(base).st_ino] = opened
        file = os.open(f"/proc/self/fd/{base}", mode)
        try:
            cookie = self._next
            self._next += COOKIE_STEP
            if base == self.memory_file:
                os.lseek(file, cookie, os.SEEK_SET)
            fcntl.fcntl(file, fcntl.F_OFD_SETLK, _LOCK.pack(fcntl.F_WRLCK, 0, cookie, 1, 0))
            self._known[cookie] = Description(cookie, opened, base)
            opened.descriptions += 1
            close_on_exec = bool(flags & os.O_CLOEXEC)
            result = listener.give(call, file, number, close_on_exec=close_on_exec, reply=reply)
        finally:
            os.close(file)
        if result is None or result < 0:
            self._forget(cookie)
        return result

    def _give_end(
        self, listener: Listener, call: Notification, opened: OpenedSocket, number: int, flags: int
    ) -> int | None:
        end = opened.take_end()
        try:
            os.set_blocking(end, not flags & os.O_NONBLOCK)
            found = os.fstat(end)
            self._sockets[found.st_ino] = found.st_dev, opened
            close_on_exec = bool(flags & os.O_CLOEXEC)
            result = listener.give(call, end, number, close_on_exec=close_on_exec)
        finally:
            os.close(end)
        if result is None or result < 0:
            self.forget_socket(opened)
        return result

    def forget_socket(self, opened: OpenedSocket) -> None:
        """Its last descriptor is gone."""
        for inode in [i for i, (_, known) in self._sockets.items() if known is opened]:
            del self._sockets[inode]

    # -- recognising -------------------------------------------------------------------------------

    def find(self, task: Task, number: int) -> Opened | None:
        """What a descriptor of a program stands for; None if it is not the device's."""
        if number >= 1 << 31:
            return None
        text = task.text_about(number)
        if text is None:
            return None
        seen = self._seen.get(text)
        if seen is not None:
            return seen
        info = DescriptorInfo(text)
        inode = info.value(b"ino")
        if inode is None:  # an older kernel
            found = task.inode_of(number)
            if found is None:
                return None
            if found[0] != self.identity[0]:
                device, socket = self._sockets.get(found[1], (0, None))
                return socket if device == found[0] else None
            inode_number = found[1]
        else:
            inode_number = int(inode)
        if inode_number == self.identity[1]:
            description = self._known.get(info.position)
            if description is None:
                return None
            if inode is not None and len(self._seen) < SEEN:
                self._seen[info.text] = description.opened
            return description.opened
        own = self._own.get(inode_number)
        if own is not None and task.inode_of(number) == (self.identity[0], inode_number):
            return own  # else the same number on another file system
        device, socket = self._sockets.get(inode_number, (0, None))
        if socket is not None and task.inode_of(number) == (device, inode_number):
            return socket
        return None

    def is_foreign(self, task: Task, number: int) -> bool:
        """Whether a descriptor is open and of a file that is not the device's memory."""
        found = task.inode_of(number) if number < 1 << 31 else None
        if found is None or found == self.identity:
            return False
        return found[0] != self.identity[0] or found[1] not in self._own

    # -- letting go --------------------------------------------------------------------------------

    def sweep(self) -> list[Opened]:
        """Forget descriptions that no program holds; what had its last one is returned."""
        gone = []
        for description in [d for d in self._known.values() if not self._is_held(d)]:
            opened = self._forget(description.cookie)
            if opened is not None:
                gone.append(opened)
        return gone

    def _is_held(self, description: Description) -> bool:
        asked = _LOCK.pack(fcntl.F_WRLCK, 0, description.cookie, 1, 0)
        answer = fcntl.fcntl(description.file, fcntl.F_OFD_GETLK, asked)
        return bool(_LOCK.unpack(answer)[0] != fcntl.F_UNLCK)

    def _forget(self, cookie: int) -> Opened | None:
        self._seen.clear()
        opened = self._known.pop(cookie).opened
        opened.descriptions -= 1
        if opened.descriptions:
            return None
        if opened.file is not None:
            self._own.pop(os.fstat(opened.file).st_ino, None)
        return opened


class EventPolls:
    """epoll instances of programs: the supervisor made them and keeps a copy of each.

    An epoll is known by an entry that never fires, whose data is its number.
    """

    def __init__(self) -> None:
        self._never = os.eventfd(0, os.EFD_CLOEXEC)
        self._copies: dict[int, int] = {}
        self._next = 1

    def make(self) -> tuple[int, int]:
        """A new one: its number and the supervisor's descriptor. Raises OSError."""
        poll = select.epoll(flags=select.EPOLL_CLOEXEC)
        descriptor = kept(os.dup(poll.fileno()))
        poll.close()
        os.set_inheritable(descriptor, False)
        number = self._next
        self._next += 1
        control(descriptor, EPOLL_ADD, self._never, 0, EVENT_POLL_MARK | number)
        self._copies[number] = descriptor
        return number, descriptor

    def find(self, task: Task, number: int) -> int | None:
        """The supervisor's descriptor of a program's epoll; None for others."""
        info = task.position(number)
        found = poll_number(info.text) if info is not None else None
        return self._copies.get(found) if found is not None else None

    def __iter__(self) -> Iterator[int]:
        return iter(list(self._copies))

    def forget(self, number: int) -> None:
        """Drop one that did not reach its program, or that no program has any more."""
        os.close(self._copies.pop(number))

    def close(self) -> None:
        """Drop all copies."""
        for descriptor in self._copies.values():
            os.close(descriptor)
        self._copies.clear()
        os.close(self._never)


def poll_number(text: bytes) -> int | None:
    """Which of the supervisor's epolls a fdinfo is of; None for others."""
    mark = b"data: %16x" % EVENT_POLL_MARK
    place = text.find(mark[:-8])
    if place < 0:
        return None
    start = place + len(mark) - 8
    return int(text[start : start + 8], 16)


def control(poll: int, operation: int, descriptor: int, events: int, data: int) -> None:
    """epoll_ctl with data of the caller's. Raises OSError."""
    library = ctypes.CDLL(None, use_errno=True)
    event = ctypes.create_string_buffer(EPOLL_EVENT.pack(events, data))
    if library.epoll_ctl(poll, operation, descriptor, event):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
