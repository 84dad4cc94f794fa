"""poll and select on device descriptors.

The kernel sees a file of memory, which is always ready. So a call with a device descriptor in
its set is answered here: the device says about its own, and the program's other descriptors are
copied (pidfd_getfd) and asked. Where copying is not allowed (Docker's default profile) the kernel
answers, and says "ready" at once.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import select
import struct
import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from vc4lab.drm.processes.descriptors import kept
from vc4lab.drm.processes.filters import WINDOW
from vc4lab.drm.supervisor.answers import Answer, Caller, Device, Outcome
from vc4lab.drm.uapi.results import Later, Refused

if TYPE_CHECKING:
    from vc4lab.drm.processes.descriptors import Opened

_PIDFD_GETFD = 438
_ENTRY = struct.Struct("<iHH")
_MAX_ENTRIES = 4096
_IN = select.POLLIN | select.POLLRDNORM
_OUT = select.POLLOUT | select.POLLWRNORM
_PRIORITY = select.POLLPRI


class PollCalls:
    """poll, ppoll, select and pselect6."""

    def __init__(self, device: Device) -> None:
        self.device = device
        self.may_copy = True
        self._library = ctypes.CDLL(None, use_errno=True)

    def poll(self, caller: Caller, address: int, count: int, timeout: float | None) -> Answer:
        """poll and ppoll. `timeout` in seconds; None: forever."""
        if not 0 < count <= _MAX_ENTRIES:
            return Outcome.PROCEED
        raw = caller.read(address, _ENTRY.size * count)
        entries = list(_ENTRY.iter_unpack(raw))
        if not self._may_be_ours(number for number, _, _ in entries):
            return Outcome.PROCEED
        wanted = [(number, events) for number, events, _ in entries]

        def finish(results: list[int]) -> int:
            packed = b"".join(
                _ENTRY.pack(number, events, found)
                for (number, events, _), found in zip(entries, results, strict=True)
            )
            caller.write(address, packed)
            return sum(1 for found in results if found)

        return self._wait(caller, wanted, timeout, finish)

    def select(self, caller: Caller, args: tuple[int, ...], timeout: float | None) -> Answer:
        """select and pselect6."""
        size = 8 * -(-min(args[0], 1024) // 64)
        masks = [int.from_bytes(caller.read(place, size), "little") if place else 0 for place in args[1:4]]
        numbers = _set_bits((masks[0] | masks[1] | masks[2]) & ((1 << min(args[0], 1024)) - 1))
        if not self._may_be_ours(numbers):
            return Outcome.PROCEED
        kinds = (_IN | select.POLLHUP | select.POLLERR, _OUT | select.POLLERR, _PRIORITY)
        asked = (_IN, _OUT, _PRIORITY)
        wanted = [
            (n, sum(bits for mask, bits in zip(masks, asked, strict=True) if mask >> n & 1)) for n in numbers
        ]

        def finish(results: list[int]) -> int:
            total = 0
            for place, mask, bits in zip(args[1:4], masks, kinds, strict=True):
                if not place:
                    continue
                out = 0
                for n, found in zip(numbers, results, strict=True):
                    if mask >> n & 1 and found & bits:
                        out |= 1 << n
                caller.write(place, out.to_bytes(size, "little"))
                total += out.bit_count()
            return total

        return self._wait(caller, wanted, timeout, finish)

    def _may_be_ours(self, numbers: Iterable[int]) -> bool:
        """Whether the kernel's answer might be wrong. Sockets bring dma-bufs at any number."""
        return any(number in WINDOW for number in numbers) or self.device.draws_shared()

    def _wait(  # noqa: C901
        self,
        caller: Caller,
        wanted: list[tuple[int, int]],
        timeout: float | None,
        finish: Callable[[list[int]], int],
    ) -> Answer:
        ours: dict[int, Opened] = {}
        everywhere = self.device.draws_shared()
        for number, _ in wanted:
            if number in WINDOW or (everywhere and number >= 0):
                opened = ours.get(number) or caller.served(number)
                if opened is not None:
                    ours[number] = opened
        if not ours:
            return Outcome.PROCEED
        foreign = self._copies(caller, [n for n, _ in wanted if n >= 0 and n not in ours])
        if foreign is None:
            return Outcome.PROCEED
        poller = select.poll()
        watch = select.epoll() if foreign else None
        for number, copy in foreign.items():
            if copy >= 0:
                bits = 0
                for other, events in wanted:
                    bits |= events if other == number else 0
                poller.register(copy, bits)
                if watch is not None:
                    with contextlib.suppress(OSError):  # files are always ready, poll says so
                        watch.register(copy, bits)
        places = {copy: number for number, copy in foreign.items()}

        def look() -> list[int]:
            ready = {places[copy]: bits for copy, bits in poller.poll(0)} if foreign else {}
            results = []
            for number, events in wanted:
                if number < 0:
                    results.append(0)
                elif number in ours:
                    results.append(events & self.device.readiness(ours[number]))
                elif foreign[number] < 0:
                    results.append(select.POLLNVAL)
                else:
                    always = select.POLLERR | select.POLLHUP
                    results.append(ready.get(number, 0) & (events | always))
            return results

        def done() -> int | None:
            results = look()
            return None if not any(results) and not late() else finish(results)

        def drop() -> None:
            _close(foreign)
            if watch is not None:
                watch.close()

        deadline = None if timeout is None else time.monotonic() + timeout

        def late() -> bool:
            return deadline is not None and time.monotonic() >= deadline

        answer = None
        try:
            answer = done()
        finally:
            if answer is not None:
                drop()
        if answer is not None:
            return answer
        watched = watch.fileno() if watch is not None else None
        return Later(done, deadline, 0, watch=watched, drop=drop)

    def _copies(self, caller: Caller, numbers: list[int]) -> dict[int, int] | None:
        """Our copies of a program's descriptors (-1: closed); None if that is not allowed."""
        if not numbers:
            return {}
        if not self.may_copy:
            return None
        copies: dict[int, int] = {}
        try:
            process = os.pidfd_open(caller.process)
        except OSError:
            return None
        try:
            for number in set(numbers):
                copy = self._library.syscall(_PIDFD_GETFD, process, number, 0)
                if copy < 0 and ctypes.get_errno() != errno.EBADF:
                    _close(copies)
                    self.may_copy = False
                    return None
                copies[number] = kept(copy) if copy >= 0 else copy
        except OSError:
            _close(copies)
            raise Refused(errno.ENOMEM, "too many descriptors to wait for") from None
        finally:
            os.close(process)
        return copies


def _close(copies: dict[int, int]) -> None:
    for copy in copies.values():
        if copy >= 0:
            os.close(copy)


def _set_bits(mask: int) -> list[int]:
    """The numbers of a mask's set bits."""
    numbers = []
    while mask:
        lowest = mask & -mask
        numbers.append(lowest.bit_length() - 1)
        mask ^= lowest
    return numbers
