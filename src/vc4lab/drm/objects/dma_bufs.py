"""Buffers as descriptors, and when programs that poll them go on."""

from __future__ import annotations

import contextlib
import errno
import os
import select
import socket
import struct
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from vc4lab.drm.objects.fences import Fence, all_of
from vc4lab.drm.objects.syncobjs import SyncObjects
from vc4lab.drm.processes.descriptors import Opened, kept, sealed_file
from vc4lab.drm.supervisor.answers import Answer, Caller
from vc4lab.drm.uapi.numbers import DMA_BUF_TYPE
from vc4lab.drm.uapi.results import Later, Refused, invalid

if TYPE_CHECKING:
    from vc4lab.drm.device.gpu import Gpu
    from vc4lab.drm.objects.gem_objects import GemObject

_FILL = bytes(1 << 16)
SYNC, EXPORT_SYNC_FILE, IMPORT_SYNC_FILE = 0x40086200, 0xC0086202, 0x40086203
"""Linux include/uapi/linux/dma-buf.h; the last two since Linux 6.0."""
SET_NAME = DMA_BUF_TYPE, 1
SYNC_READ, SYNC_WRITE, SYNC_END = 1, 2, 4
_SYNC_RW, _SYNC_KNOWN = SYNC_READ | SYNC_WRITE, 7
MAX_ATTACHED = 1024
"""Fences of programs that a buffer takes before they are done."""
_SYNC_FILE = struct.Struct("<Ii")


class Exporter(Protocol):
    """The buffers of the driver that made a dma-buf's."""

    def hold(self, target: GemObject) -> GemObject:
        """One more holder."""

    def drop(self, target: GemObject) -> None:
        """One holder less."""

    def export(self, target: GemObject) -> DmaBuf:
        """The dma-buf of a buffer."""

    def dma_buf_released(self, buffer: DmaBuf) -> None:
        """The last descriptor of a dma-buf is gone."""


class DmaBuf(Opened):
    """A buffer as a descriptor."""

    is_sought = True

    def __init__(self, target: GemObject, owner: Exporter) -> None:
        self.object = target
        self.owner = owner
        """Those of the driver that made the buffer."""
        self.pieces = [(target.address, target.size)]
        """Its scatter table: where it lies in memory."""
        self.file: int | None = sealed_file(target.size)
        """It only has a size; what is mapped is the memory."""
        self._stand_in: StandIn | None = None

    def readiness(self, finished: int) -> int:
        """Poll's answer once so many jobs are through, as Linux's fences of the buffer have it:
        readable after the last job that draws into it, writable after all that use it.
        """
        target = self.object
        readable = finished >= target.write_seqno and not target.attached(writes=True)
        writable = finished >= target.seqno and not target.attached(writes=False)
        return readable * select.POLLIN | writable * select.POLLOUT

    def fence(self, gpu: Gpu, *, writes: bool) -> Fence:
        """Done when the jobs and fences that write to it are, or all that use it."""
        target = self.object
        job = gpu.fence_after(target.write_seqno if writes else target.seqno)
        return all_of([job, *target.attached(writes=writes)])

    def stand_in(self, gpu: Gpu) -> int:
        """A descriptor that is readable and writable whenever the buffer is, for epoll."""
        if self._stand_in is None:
            self._stand_in = StandIn(self, gpu)
        return self._stand_in.descriptor

    def close(self) -> None:
        """Let go of the host's descriptors."""
        if self._stand_in is not None:
            self._stand_in.close()
            self._stand_in = None
        if self.file is not None:
            os.close(self.file)
            self.file = None


class StandIn:
    """A socket for a dma-buf in programs' epolls: eventfds cannot be neither readable nor writable.

    It is looked at when a job is handed in and when one is through, in the threads that do that.
    """

    def __init__(self, buffer: DmaBuf, gpu: Gpu) -> None:
        self._buffer, self._gpu = buffer, gpu
        self._near, self._far = socket.socketpair()
        self._near.setblocking(False)
        self._far.setblocking(False)
        self._near.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 0)  # the least there is
        self._shown = select.POLLOUT
        self._lock = threading.Lock()
        self.descriptor = self._near.fileno()
        kept(self.descriptor)
        gpu.watchers = (*gpu.watchers, self.look)
        self.look()

    def look(self) -> None:
        """Show what poll says now; from any thread."""
        with self._lock:
            if self._near.fileno() < 0:
                return
            wanted = self._buffer.readiness(self._gpu.finished)
            changed, self._shown = wanted ^ self._shown, wanted
            if changed & select.POLLOUT:
                with contextlib.suppress(BlockingIOError):
                    while True:  # full of bytes, it is not writable
                        if wanted & select.POLLOUT:
                            self._far.recv(len(_FILL))
                        else:
                            self._near.send(_FILL)
            with contextlib.suppress(BlockingIOError):
                if changed & select.POLLIN and wanted & select.POLLIN:
                    self._far.send(b"r")
                elif changed & select.POLLIN:
                    self._near.recv(1)

    def close(self) -> None:
        """It leaves the epolls that it is in."""
        self._gpu.watchers = tuple(look for look in self._gpu.watchers if look != self.look)
        with self._lock:
            self._near.close()
            self._far.close()


@dataclass(frozen=True)
class DmaBufCalls:
    """The ioctls of dma-bufs. Source: Linux drivers/dma-buf/dma-buf.c.

    `wake` is called, from any thread, when a fence of a program's is done.
    """

    gpu: Gpu
    syncobjs: SyncObjects
    wake: Callable[[], None]

    def ioctl(self, opened: DmaBuf, caller: Caller, request: int, argument: int) -> Answer:
        """Raises Refused."""
        if request == SYNC:
            return self._sync(opened, caller, argument)
        if request in (EXPORT_SYNC_FILE, IMPORT_SYNC_FILE):
            asked = caller.read(argument, _SYNC_FILE.size)
            flags, number = _SYNC_FILE.unpack(asked)
            if flags & ~_SYNC_RW or not flags:
                raise invalid(f"flags 0x{flags:x}")
            # readers wait for what writes to it, writers for all that uses it
            if request == IMPORT_SYNC_FILE:
                return self._attach(opened, caller, number, writes=bool(flags & SYNC_WRITE))
            caller.write(argument, asked)  # before there is a file, whether that is possible
            fence = opened.fence(self.gpu, writes=not flags & SYNC_WRITE)
            number = self.syncobjs.give_file(caller, fence)
            caller.write(argument, _SYNC_FILE.pack(flags, number))
            return 0
        if (request >> 8 & 0xFF, request & 0xFF) == SET_NAME:
            return 0
        raise Refused(errno.ENOTTY)

    def _sync(self, opened: DmaBuf, caller: Caller, argument: int) -> Answer:
        """Waiting for the GPU before the processor looks."""
        (flags,) = struct.unpack("<Q", caller.read(argument, 8))
        if flags & ~_SYNC_KNOWN or not flags & _SYNC_RW:
            raise invalid(f"flags 0x{flags:x}")
        if flags & SYNC_END:
            return 0  # processor and GPU see the same bytes
        target, writes = opened.object, not flags & SYNC_WRITE
        if target.attached(writes=writes):
            fence = opened.fence(self.gpu, writes=writes)
            return Later(lambda: 0 if fence.is_done else None, when=fence.then)
        return self.gpu.wait(target.write_seqno if writes else target.seqno) or 0

    def _attach(self, opened: DmaBuf, caller: Caller, number: int, *, writes: bool) -> int:
        """Let what uses the buffer from now on wait for a sync file, as for a job."""
        fence = self.syncobjs.fence_in(caller, number)
        target = opened.object
        left = [one for one in target.fences if not one[0].is_done and one != (fence, writes)]
        if len(left) >= MAX_ATTACHED:
            raise Refused(errno.ENOMEM, f"{len(left)} fences that are not done")
        target.fences = (*left, (fence, writes))
        self._look()
        fence.then(self._look)
        return 0

    def _look(self) -> None:
        for look in self.gpu.watchers:
            look()
        self.wake()
