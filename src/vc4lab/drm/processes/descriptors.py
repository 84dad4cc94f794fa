"""Descriptors of the device inside of programs.

A descriptor leads its program to its file, whatever this process answers: by /proc/self/fd, over a
socket, with another system call table. So it is a description of a file with nothing in it but what
the open file may map: at first an empty one of the open file's own, and from a mapping on that of
the buffer which is mapped, because the kernel maps what the descriptor is of.

Its file position says which open file it is: that survives dup, fork, exec and sockets. A lock on
the byte at that position is the kernel's own reference count: it goes away with the last
descriptor and the last mapping, wherever they are. Only a description that has the lock counts:
another one of the same file, at the same position, stands for nothing. Dma-bufs are known by their
own files, because programs ask for their size by seeking.
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
from typing import Protocol

from vc4lab.drm.processes.filters import INPUT_WINDOW, IOCTL_MARK, WINDOW
from vc4lab.drm.processes.notifications import Listener, Notification
from vc4lab.drm.processes.targets import DescriptorInfo, Task
from vc4lab.memory import MEMORY_SIZE

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
APPARENT_SIZE = MEMORY_SIZE
"""Bytes of an open file's own file: some programs look at it before they map a buffer."""
_FEW = 16
"""So many descriptions of an object are looked at each time."""
_NAME = "vc4lab-file"
_SEALS = fcntl.F_SEAL_SEAL | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_WRITE
EVENT_POLL_MARK = IOCTL_MARK << 32
"""Upper half of the data that marks one of the supervisor's epolls."""


def check_spare(descriptor: int) -> None:
    """Raises OSError (EMFILE) if the descriptor leaves this process too few numbers."""
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    if limit != resource.RLIM_INFINITY and descriptor >= limit - _SPARE:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))


def kept(descriptor: int) -> int:
    """A descriptor that stays open for a program. Raises OSError (EMFILE), and closes it then."""
    try:
        check_spare(descriptor)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def is_held(descriptor: int, start: int = 0, size: int = 0) -> bool:
    """Whether another description of the same file has a lock there; size 0: to the end."""
    asked = _LOCK.pack(fcntl.F_WRLCK, 0, start, size, 0)
    answer = fcntl.fcntl(descriptor, fcntl.F_OFD_GETLK, asked)
    return bool(_LOCK.unpack(answer)[0] != fcntl.F_UNLCK)


def sealed_file(size: int = APPARENT_SIZE) -> int:
    """A file that nothing can be written to, only to be known by. Raises OSError."""
    file = kept(os.memfd_create(_NAME, os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING))
    os.ftruncate(file, size)
    fcntl.fcntl(file, fcntl.F_ADD_SEALS, _SEALS)
    return file


class MemoryFile(Protocol):
    """A file of the device's memory."""

    descriptor: int
    inode: int


class Opened:
    """The object that a device descriptor stands for: an open file or a dma-buf."""

    descriptions: int = 0
    file: int | None = None
    """A file of its own, with nothing in it."""
    is_sought = False
    """Whether programs seek in it: then it is known by its file, not by a position."""


class OpenedSocket(Opened, ABC):
    """A descriptor that is a socket's end to the program: the kernel serves it, all but ioctl and fstat."""

    @abstractmethod
    def take_end(self) -> int:
        """The program's end; the caller closes it."""


@dataclass(frozen=True, slots=True, eq=False)
class Description:
    """One description of an object's own file, or of the memory that it may map."""

    cookie: int
    opened: Opened
    inode: int
    memory: MemoryFile | None
    """The memory; None for the object's own file."""

    @property
    def file(self) -> int:
        """A descriptor of the same file."""
        found = self.memory.descriptor if self.memory is not None else self.opened.file
        assert found is not None
        return found


@dataclass(frozen=True, slots=True)
class _Place:
    """A file system, as /proc names it, or as stat does: two of them have the same inodes."""

    mount: bytes | None = None
    device: int | None = None

    @classmethod
    def of(cls, descriptor: int) -> _Place:
        """That of one of this process's descriptors."""
        with open(f"/proc/self/fdinfo/{descriptor}", "rb") as file:
            mount = DescriptorInfo(file.read()).value(b"mnt_id")
        return cls(mount, os.fstat(descriptor).st_dev)

    def is_in(self, whole: _Place) -> bool:
        """Whether it is the one of which all is known."""
        return whole.device == self.device if self.mount is None else whole.mount == self.mount


class Descriptors:
    """All descriptions that programs hold."""

    def __init__(self) -> None:
        file = sealed_file()
        try:
            self._place = _Place.of(file)
            """The folder of files without names."""
        finally:
            os.close(file)
        self._next = FIRST_COOKIE
        self._known: dict[int, Description] = {}
        self._of: dict[Opened, list[Description]] = {}
        """The descriptions of each object, the newest last."""
        self._look_at: dict[Opened, int] = {}
        """With so many of them all are looked at."""
        self._own: dict[int, Opened] = {}
        """Objects that are known by their files, by inode."""
        self._seen: dict[bytes, Opened] = {}
        """By what /proc says of a descriptor, position included, until something is forgotten."""
        self._sockets: dict[int, tuple[_Place, OpenedSocket]] = {}
        """Sockets, by inode, each with its file system."""

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
        memory: MemoryFile | None = None,
    ) -> int | None:
        """Put a descriptor of `opened` into the program: at `number`, else in the window; when
        that is full, at the lowest free number, as if it had come over a socket.

        `memory`: of this file instead of the object's own.

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
        if opened.file is None:
            opened.file = sealed_file()
        base = opened.file if memory is None else memory.descriptor
        file = os.open(f"/proc/self/fd/{base}", os.O_RDWR | os.O_CLOEXEC | flags & os.O_NONBLOCK)
        cookie = None
        result = None
        try:
            inode = os.fstat(file).st_ino if memory is None else memory.inode
            cookie = self._next
            self._next += COOKIE_STEP
            if memory is None and opened.is_sought:
                self._own[inode] = opened
            else:
                os.lseek(file, cookie, os.SEEK_SET)
            fcntl.fcntl(file, fcntl.F_OFD_SETLK, _LOCK.pack(fcntl.F_WRLCK, 0, cookie, 1, 0))
            self._known[cookie] = description = Description(cookie, opened, inode, memory)
            self._of.setdefault(opened, []).append(description)
            opened.descriptions += 1
            close_on_exec = bool(flags & os.O_CLOEXEC)
            result = listener.give(call, file, number, close_on_exec=close_on_exec, reply=reply)
        finally:
            os.close(file)
            if (result is None or result < 0) and cookie in self._known:
                self._forget(self._known[cookie])
        return result

    def _give_end(
        self, listener: Listener, call: Notification, opened: OpenedSocket, number: int, flags: int
    ) -> int | None:
        end = opened.take_end()
        try:
            os.set_blocking(end, not flags & os.O_NONBLOCK)
            found = os.fstat(end)
            self._sockets[found.st_ino] = _Place.of(end), opened
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
        """Find what a descriptor of a program stands for; None if it is not the device's."""
        text = task.text_about(number) if number < 1 << 31 else None
        return self.identify(task, number, text) if text is not None else None

    def identify(self, task: Task, number: int, text: bytes) -> Opened | None:
        """Find what a descriptor stands for by what /proc says about it."""
        seen = self._seen.get(text)
        if seen is not None:
            return seen
        info = DescriptorInfo(text)
        said = info.value(b"ino")
        if said is not None:
            inode, place = int(said), _Place(mount=info.value(b"mnt_id"))
        else:  # before Linux 5.14; a file system that does not answer is waited for
            found = task.inode_of(number)
            if found is None:
                return None
            inode, place = found[1], _Place(device=found[0])
        if not place.is_in(self._place):
            where, socket = self._sockets.get(inode, (None, None))
            return socket if where is not None and place.is_in(where) else None
        description = self._known.get(info.position)
        if description is not None and description.inode == inode and info.is_locked:
            if said is not None and len(self._seen) < SEEN:
                self._seen[text] = description.opened
            return description.opened
        return self._own.get(inode)

    def is_of(self, text: bytes, memory: MemoryFile) -> bool:
        """Whether what /proc says of one of the device's descriptors is of this memory."""
        description = self._known.get(DescriptorInfo(text).position)
        return description is not None and description.memory is memory

    # -- letting go --------------------------------------------------------------------------------

    def sweep(self, *, whole: bool = False) -> list[Opened]:
        """Forget descriptions that no program holds; what had its last one is returned.

        Of an object with many, each mapping of a buffer has one, only the newest are looked at
        until there are twice as many as at the last full look, or with `whole`: each keeps a file
        of memory open.
        """
        gone = []
        for opened, descriptions in list(self._of.items()):
            if whole or len(descriptions) > self._look_at.get(opened, _FEW):
                for description in [d for d in descriptions if not _is_held(d)]:
                    self._drop(description)
                self._look_at[opened] = max(_FEW, 2 * len(descriptions))
            while descriptions and not _is_held(descriptions[-1]):
                self._drop(descriptions[-1])
            if not descriptions:
                self._end(opened)
                gone.append(opened)
        return gone

    def _drop(self, description: Description) -> None:
        self._seen.clear()
        del self._known[description.cookie]
        self._of[description.opened].remove(description)
        description.opened.descriptions -= 1

    def _forget(self, description: Description) -> None:
        """It did not reach its program."""
        self._drop(description)
        if not description.opened.descriptions:
            self._end(description.opened)

    def _end(self, opened: Opened) -> None:
        """It has no description any more."""
        del self._of[opened]
        self._look_at.pop(opened, None)
        if opened.file is None:
            return
        if opened.is_sought:
            self._own.pop(os.fstat(opened.file).st_ino, None)
        else:
            os.close(opened.file)
            opened.file = None


def _is_held(description: Description) -> bool:
    """Whether a program has it."""
    return is_held(description.file, description.cookie, 1)


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
