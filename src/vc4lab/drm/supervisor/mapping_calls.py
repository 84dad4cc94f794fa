"""Mappings of device memory: mmap, munmap, mremap and remap_file_pages.

The kernel maps what the descriptor is a description of. So before it does, the descriptor becomes
one of the buffer's file, and stays that until another buffer is mapped. Two threads that map
different buffers through one descriptor at once would get each other's: the second one waits until
the kernel is through with the first.
"""

from __future__ import annotations

import errno
import mmap
import os
import time
from dataclasses import dataclass

from vc4lab.drm.processes.descriptors import MemoryFile, Opened
from vc4lab.drm.processes.restarts import restart_with
from vc4lab.drm.processes.targets import DescriptorInfo, mappings
from vc4lab.drm.supervisor.answers import Answer, Caller, Device, Outcome
from vc4lab.drm.uapi.results import Refused

_LONGEST = 1.0
"""Seconds after which a call is taken to be over whose mapping is not there: it failed."""


@dataclass(frozen=True, slots=True)
class _UnderWay:
    """An mmap that the kernel was told to do."""

    number: int
    inode: int
    place: int
    until: float


class MappingCalls:
    """Answers calls on mappings of the device."""

    def __init__(self, device: Device) -> None:
        self.device = device
        self.mapped = False
        """Whether a program ever asked to map a buffer."""
        self.under_way: dict[int, _UnderWay] = {}
        """By thread, until its next call: then the kernel is through."""

    def map(self, caller: Caller, args: tuple[int, ...]) -> Answer:
        """mmap: the kernel does it if the file may map that place."""
        _, size, _, flags, number, offset = args
        number &= 0xFFFFFFFF
        text = caller.text_about(number) if number < 1 << 31 else None
        if text is None:  # never left to the kernel: another thread may just have it opened there
            raise Refused(errno.EBADF, "a descriptor that is not open")
        opened = caller.served_as(number, text)
        if opened is None:
            return Outcome.PROCEED
        self.mapped = True
        if flags & 3 == mmap.MAP_PRIVATE:
            raise Refused(errno.EINVAL, "a private mapping of device memory")
        place, memory = self.device.check_mapping(caller, opened, offset, size)
        if not caller.descriptors.is_of(text, memory):
            if self._is_needed(caller, number):
                return Outcome.AGAIN
            given = self._turn(caller, opened, number, DescriptorInfo(text).flags, memory)
            if given is None:
                return Outcome.ANSWERED
            if given < 0:
                return given
        if place == offset:
            until = time.monotonic() + _LONGEST
            self.under_way[caller.tid] = _UnderWay(number, memory.inode, place, until)
            return Outcome.PROCEED
        restart_with(caller.listener, caller.call, place)
        return Outcome.ANSWERED

    @staticmethod
    def _turn(caller: Caller, opened: Opened, number: int, flags: int, memory: MemoryFile) -> int | None:
        """From now on the descriptor is one of the memory."""
        flags &= os.O_CLOEXEC | os.O_NONBLOCK
        return caller.descriptors.give(
            caller.listener, caller.call, caller, opened,
            number=number, flags=flags, reply=False, memory=memory,
        )  # fmt: skip

    def _is_needed(self, caller: Caller, number: int) -> bool:
        """Whether the kernel may still have to map what the descriptor is of now."""
        now = time.monotonic()
        for tid, call in list(self.under_way.items()):
            if call.number != number or tid == caller.tid:
                continue
            other = caller.other(tid)
            if now < call.until and other.process == caller.process:
                found = mappings(tid, (call.inode,))
                if all(start != call.place for _, _, start in found):
                    return True
            del self.under_way[tid]
        return False

    def grow(self, caller: Caller, address: int, old: int, new: int) -> Answer:
        """mremap: a mapping of a device does not grow over what lies after it."""
        if new > old and self._is_mapped(caller, address):
            raise Refused(errno.EFAULT, "a mapping of device memory cannot grow")
        return Outcome.PROCEED

    def turn(self, caller: Caller, address: int) -> Answer:
        """remap_file_pages: a mapping of a device shows what it was made for."""
        if self._is_mapped(caller, address):
            raise Refused(errno.EINVAL, "a mapping of device memory cannot be rearranged")
        return Outcome.PROCEED

    def _is_mapped(self, caller: Caller, address: int) -> bool:
        """Whether device memory is mapped at an address of the program."""
        if not self.mapped:
            return False
        found = mappings(caller.tid, self.device.memories)
        return any(low <= address < high for low, high, _ in found)

    def unmap(self, caller: Caller, args: tuple[int, ...]) -> Answer:
        """munmap: the device may look at what was touched; the kernel does it."""
        self.device.unmapping(caller, args[0], args[1])
        return Outcome.PROCEED
