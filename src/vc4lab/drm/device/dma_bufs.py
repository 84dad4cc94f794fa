"""Buffers as descriptors, and when programs that poll them go on."""

from __future__ import annotations

import contextlib
import os
import select
import socket
import threading
from typing import TYPE_CHECKING, Protocol

from vc4lab.drm.supervisor.descriptors import Opened, kept, sealed_file

if TYPE_CHECKING:
    from vc4lab.drm.device.gem_objects import GemObject
    from vc4lab.drm.device.gpu import Gpu

_FILL = bytes(1 << 16)


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
        """What poll says once so many jobs are through, as Linux's fences of the buffer have it:
        readable after the last job that draws into it, writable after all that use it.
        """
        readable = select.POLLIN if finished >= self.object.write_seqno else 0
        return readable | (select.POLLOUT if finished >= self.object.seqno else 0)

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
