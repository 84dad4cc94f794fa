"""An open file of the device: its handles, events and rights."""

from __future__ import annotations

import contextlib
import errno
import os
import struct
from collections import deque
from typing import TYPE_CHECKING

from vc4lab.drm.objects.handles import Handles
from vc4lab.drm.objects.masters import Master
from vc4lab.drm.processes.descriptors import Opened, kept
from vc4lab.drm.uapi.results import Refused

if TYPE_CHECKING:
    from vc4lab.drm.objects.fences import SyncObject
    from vc4lab.drm.objects.gem_objects import GemObject

MAX_EVENT_BYTES = 4096
"""Bytes of events that wait in one file: the kernel refuses more with ENOMEM."""
EVENT_VBLANK, EVENT_FLIP, EVENT_SEQUENCE = 1, 2, 3
_EVENT = struct.Struct("<IIQIIII")
_SEQUENCE = struct.Struct("<IIQqQ")


class OpenFile(Opened):
    """An open file, as one open() of a node made it; dup and fork share it."""

    _number = 0

    def __init__(self, node: str, process: int, program: str) -> None:
        OpenFile._number += 1
        self.number = OpenFile._number
        self.node = node
        self.process = process
        self.program = program
        self.name = f"{program}[{process}]"
        """Program and process, as messages name them."""
        self.is_render = node.startswith("render")
        self.master: Master | None = None
        """Who had the display when it was opened, or its own."""
        self.owns_master = self.was_master = False
        self.is_authenticated = self.is_render
        self.magic = 0
        self.was_let_in = False
        """Whether its number was used."""
        self.has_interface_version = False
        self.lacked_memory = False
        """Whether it was reported that no memory was left for one of its buffers."""
        self.client_caps: dict[int, int] = {}
        self.buffers: Handles[GemObject] = Handles()
        self.handles_of: dict[int, int] = {}
        """So many handles of an object this file has, by the object's id()."""
        self.primes: dict[int, list[int]] = {}
        """Handles that were exported or came by an import, by the object's id()."""
        self.syncobjs: Handles[SyncObject] = Handles()
        self.frame_buffers: set[int] = set()
        self.blobs: set[int] = set()
        self.perfmons: Handles[object] = Handles()
        self.events: deque[bytes] = deque()
        self.awaited = 0
        """Events that were promised and have not come."""
        self._eventfd: int | None = None

    def __str__(self) -> str:
        return f"{self.name} {self.node}"

    @property
    def is_master(self) -> bool:
        """Whether it has the display, all of it or what is leased to it."""
        return self.owns_master and self.master is not None and self.master.is_current

    def holds(self, number: int) -> bool:
        """Whether it may see an object of the display: a lease has only some."""
        return self.master is None or self.master.holds(number)

    # -- events ------------------------------------------------------------------------------------

    @property
    def has_room(self) -> bool:
        """Whether one more event may wait."""
        return (len(self.events) + self.awaited + 1) * _EVENT.size <= MAX_EVENT_BYTES

    def promise_event(self) -> None:
        """Keep room for an event that will come. Raises Refused (ENOMEM)."""
        if not self.has_room:
            raise Refused(errno.ENOMEM, "too many unread events")
        self.awaited += 1

    def add_event(self, kind: int, user: int, time: float, sequence: int, crtc: int) -> None:
        """A vblank, flip or sequence event that was promised, for the program to read."""
        self.awaited -= 1
        if kind == EVENT_SEQUENCE:
            nanoseconds = int(time * 1e9)
            event = _SEQUENCE.pack(kind, _SEQUENCE.size, user, nanoseconds, sequence)
        else:
            seconds, fraction = int(time), time % 1.0
            event = _EVENT.pack(
                *(kind, _EVENT.size, user, seconds & 0xFFFFFFFF, int(fraction * 1e6)),
                *(sequence & 0xFFFFFFFF, crtc),
            )
        self.events.append(event)
        if self._eventfd is not None:
            os.eventfd_write(self._eventfd, 1)

    def take_events(self, room: int) -> bytes:
        """Whole events that fit."""
        out = b""
        while self.events and len(out) + len(self.events[0]) <= room:
            out += self.events.popleft()
        if not self.events and self._eventfd is not None:
            with contextlib.suppress(BlockingIOError):
                os.eventfd_read(self._eventfd)
        return out

    def put_back(self, taken: bytes) -> None:
        """Events that could not be handed over are the next ones again."""
        for place in reversed(range(0, len(taken), _EVENT.size)):
            self.events.appendleft(taken[place : place + _EVENT.size])
        if self._eventfd is not None and self.events:
            os.eventfd_write(self._eventfd, 1)

    @property
    def event_descriptor(self) -> int:
        """An eventfd that is readable while events wait."""
        if self._eventfd is None:
            count = 1 if self.events else 0
            self._eventfd = kept(os.eventfd(count, os.EFD_CLOEXEC | os.EFD_NONBLOCK))
        return self._eventfd

    def close(self) -> None:
        """Let go of the host's descriptor."""
        if self._eventfd is not None:
            os.close(self._eventfd)
            self._eventfd = None
