"""An open file of an input device.

A program's descriptor is the other end of a socket: reading, O_NONBLOCK, poll, epoll and passing it
on are the kernel's work, at its speed. Only ioctl and fstat come to the supervisor.

Two things differ from a real device. What waits to be read is not taken back when a program asks
for the state of all keys. And a revoked file reads as ended (0 bytes), not as ENODEV.
"""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Sequence

from vc4lab.drm.input.devices import Change, EvdevDevice
from vc4lab.drm.supervisor.descriptors import OpenedSocket
from vc4lab.drm.uapi import evdev as e

_RETRY_SECONDS = 0.02
"""So often a program that did not read is looked at again."""
_LOST = [(e.EV_SYN, e.SYN_DROPPED, 0), e.REPORT]
_MAX_WRITTEN = 24 * 64


class EvdevFile(OpenedSocket):
    """What one open() of an input node made."""

    def __init__(self, device: EvdevDevice, process: int, program: str) -> None:
        self.device = device
        self.process = process
        self.program = program
        self.clock = 0
        self.masks: dict[int, bytes] = {}
        """Which codes of a type the program has selected, if it has."""
        self.is_revoked = False
        self.retry_at: float | None = None
        """Events were lost: when to try to say so."""
        self._ours, self._theirs = socket.socketpair()
        self._ours.setblocking(False)
        device.files.append(self)

    def __str__(self) -> str:
        return f"{self.program}[{self.process}] {self.device.node}"

    @property
    def watched(self) -> int:
        """Readable when the program wrote, or when its last descriptor is gone."""
        return self._ours.fileno()

    def take_end(self) -> int:
        """The program's end; the caller closes it."""
        return self._theirs.detach()

    def close(self) -> None:
        """The last descriptor is gone."""
        if self in self.device.files:
            self.device.files.remove(self)
        if self.device.grab is self:
            self.device.grab = None
        self._ours.close()
        self._theirs.close()

    def revoke(self) -> None:
        """No more events; the descriptor stays."""
        self.is_revoked = True
        self.device.files.remove(self)
        if self.device.grab is self:
            self.device.grab = None
        with contextlib.suppress(OSError):
            self._ours.shutdown(socket.SHUT_WR)

    # -- to the program ----------------------------------------------------------------------------

    def deliver(self, changes: Sequence[Change], moment: int) -> None:
        """Changes that happened together, ended by a report, if the program has selected any."""
        wanted = [change for change in changes if self._wants(change[0], change[1])]
        if wanted:
            self._send([*wanted, e.REPORT], moment)

    def retry(self, now: float) -> None:
        """Say that events were lost, as soon as there is room."""
        if self.retry_at is not None and now >= self.retry_at:
            self._send([], int(now * 1e9))

    def _send(self, events: list[Change], moment: int) -> None:
        if self.retry_at is not None:
            events = [*_LOST, *events]
        seconds, nanoseconds = divmod(self._in_its_clock(moment), 10**9)
        data = b"".join(
            e.EVENT.pack(
                e.EVENT.make(
                    sec=seconds, usec=nanoseconds // 1000, type=kind, code=code, value=value
                )
            )
            for kind, code, value in events
        )
        try:
            # all or nothing: the kernel takes one small message of a stream whole
            self._ours.send(data, socket.MSG_NOSIGNAL)
            self.retry_at = None
        except BlockingIOError:
            self.retry_at = time.monotonic() + _RETRY_SECONDS
        except OSError:
            self.retry_at = None  # the program's end is closed

    def _in_its_clock(self, moment: int) -> int:
        return moment - time.monotonic_ns() + time.clock_gettime_ns(self.clock)

    def _wants(self, kind: int, code: int) -> bool:
        types = self.masks.get(e.EV_SYN)
        if types is not None and not _has(types, kind):
            return False
        codes = self.masks.get(kind)
        return codes is None or code >= e.CODES.get(kind, 0) or _has(codes, code)

    # -- from the program --------------------------------------------------------------------------

    def take_written(self) -> list[Change] | None:
        """What the program wrote: lights, mostly. None when its last descriptor is gone."""
        try:
            data = self._ours.recv(_MAX_WRITTEN)
        except BlockingIOError:
            return []
        except OSError:
            return None
        if not data:
            return None
        whole = len(data) // e.EVENT.size * e.EVENT.size
        events = e.EVENT.parse_all(data[:whole])
        return [(event.type, event.code, event.value) for event in events]


def _has(mask: bytes, number: int) -> bool:
    return number >> 3 < len(mask) and bool(mask[number >> 3] >> (number & 7) & 1)
