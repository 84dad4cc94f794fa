"""An open file of the device: its handles, events and rights."""

from __future__ import annotations

import contextlib
import heapq
import os
import struct
from collections import deque
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from vc4lab.drm.supervisor.descriptors import Opened, kept

if TYPE_CHECKING:
    from vc4lab.drm.device.fences import SyncObject
    from vc4lab.drm.device.gem_objects import GemObject

MAX_EVENT_BYTES = 4096
"""Of events that wait in one file: the kernel refuses more with ENOMEM."""
EVENT_VBLANK, EVENT_FLIP = 1, 2
_EVENT = struct.Struct("<IIQIIII")

T = TypeVar("T")


class Handles(Generic[T]):
    """Small numbers for objects, the lowest free one first, from 1 on."""

    def __init__(self) -> None:
        self.objects: dict[int, T] = {}
        self.sets: dict[bytes, Any] = {}
        """What is remembered of several numbers until one of them may mean another object."""
        self._free: list[int] = []
        self._next = 1

    def add(self, thing: T) -> int:
        """A number for it."""
        if self._free:
            number = heapq.heappop(self._free)
        else:
            number, self._next = self._next, self._next + 1
        self.objects[number] = thing
        self.sets.clear()
        return number

    def remove(self, number: int) -> T | None:
        """Free a number; its object, or None."""
        thing = self.objects.pop(number, None)
        if thing is not None:
            self.sets.clear()
            heapq.heappush(self._free, number)
        return thing


class OpenFile(Opened):
    """What one open() of a node made; dup and fork share it."""

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
        self.is_master = False
        self.is_authenticated = self.is_render
        self.magic = 0
        self.has_interface_version = False
        self.lacked_memory = False
        """Whether it was reported that no memory was left for one of its buffers."""
        self.client_caps: dict[int, int] = {}
        self.buffers: Handles[GemObject] = Handles()
        self.handle_of: dict[int, int] = {}
        """Handle by the id() of an object of this file."""
        self.syncobjs: Handles[SyncObject] = Handles()
        self.frame_buffers: set[int] = set()
        self.blobs: set[int] = set()
        self.perfmons: Handles[object] = Handles()
        self.events: deque[bytes] = deque()
        self._eventfd: int | None = None

    def __str__(self) -> str:
        return f"{self.name} {self.node}"

    # -- events ------------------------------------------------------------------------------------

    @property
    def has_room(self) -> bool:
        """Whether one more event may wait."""
        return (len(self.events) + 1) * _EVENT.size <= MAX_EVENT_BYTES

    def add_event(self, kind: int, user: int, time: float, sequence: int, crtc: int) -> None:
        """A vblank or flip event for the program to read."""
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
