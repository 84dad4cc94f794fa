"""The supervised programs as /proc shows them: memory, descriptors, paths.

A thread's number may be used again by another thread: what is kept by number is looked at again
when it fails, and a caller asks whether a call still waits before it trusts what it read.
"""

from __future__ import annotations

import errno
import os
import struct
from collections import OrderedDict
from dataclasses import dataclass

from vc4lab.drm.uapi.ioctls import Refused

KEPT_MEMORIES = 128
"""So many threads' memory files stay open."""
MAX_PATH = 4096
_PAGE = 4096


class Task:
    """A thread that made a system call."""

    def __init__(self, tid: int, memories: OrderedDict[int, int]) -> None:
        self.tid = tid
        self._memories = memories

    def other(self, tid: int) -> Task:
        """Another thread or process."""
        return Task(tid, self._memories)

    # -- memory ------------------------------------------------------------------------------------

    def _memory(self) -> int:
        found = self._memories.get(self.tid)
        if found is None:
            try:
                found = os.open(f"/proc/{self.tid}/mem", os.O_RDWR | os.O_CLOEXEC)
            except OSError as error:
                raise Refused(errno.EFAULT, f"/proc/{self.tid}/mem: {error.strerror}") from None
            self._memories[self.tid] = found
            if len(self._memories) > KEPT_MEMORIES:
                _, oldest = self._memories.popitem(last=False)
                os.close(oldest)
        return found

    def forget(self) -> None:
        """The thread's memory has changed (exec) or the number belongs to another."""
        found = self._memories.pop(self.tid, None)
        if found is not None:
            os.close(found)

    def read_some(self, address: int, size: int) -> bytes:
        """Up to `size` bytes: fewer where the mapping ends. Raises Refused (EFAULT) for none."""
        for _ in range(2):
            try:
                data = os.pread(self._memory(), size, address)
            except (OSError, OverflowError):
                break
            if data or not size:
                return data
            self.forget()
        raise Refused(errno.EFAULT, f"no memory at 0x{address:x}")

    def read(self, address: int, size: int) -> bytes:
        """Exactly `size` bytes. Raises Refused (EFAULT)."""
        data = self.read_some(address, size)
        while len(data) < size:
            data += self.read_some(address + len(data), size - len(data))
        return data

    def write(self, address: int, data: bytes) -> None:
        """Store bytes. Raises Refused (EFAULT)."""
        done = 0
        for _ in range(2 + len(data) // _PAGE):
            if done == len(data):
                return
            try:
                count = os.pwrite(self._memory(), data[done:], address + done)
            except (OSError, OverflowError):
                break
            if count == 0 and not done:
                self.forget()
            done += count
        if done < len(data):
            raise Refused(errno.EFAULT, f"no writable memory at 0x{address + done:x}")

    def text(self, address: int) -> str:
        """A path. Raises Refused (EFAULT, ENAMETOOLONG)."""
        data = b""
        while b"\0" not in data:
            size = 256 - address % 256
            data += self.read_some(address, size)
            address += size
            if len(data) > MAX_PATH:
                raise Refused(errno.ENAMETOOLONG)
        return os.fsdecode(data[: data.index(b"\0")])

    def u32(self, address: int) -> int:
        """A word of memory. Raises Refused."""
        value: int = struct.unpack("<I", self.read(address, 4))[0]
        return value

    def mappings_of(self, inode: int) -> list[tuple[int, int]]:
        """Where a memory file is mapped, as (start, end) of addresses."""
        try:
            with open(f"/proc/{self.tid}/maps", "rb") as file:
                lines = file.read().split(b"\n")
        except OSError:
            return []
        wanted, found = b" %d " % inode, []
        for line in lines:
            if wanted in line and b"memfd:" in line:
                low, _, high = line.split(None, 1)[0].partition(b"-")
                found.append((int(low, 16), int(high, 16)))
        return found

    # -- descriptors -------------------------------------------------------------------------------

    def position(self, number: int) -> DescriptorInfo | None:
        """What /proc says about a descriptor; None if it is closed."""
        try:
            file = os.open(f"/proc/{self.tid}/fdinfo/{number}", os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return None
        try:
            text = os.read(file, 4096)
        except OSError:
            return None
        finally:
            os.close(file)
        return DescriptorInfo(text)

    def path_of(self, number: int) -> str:
        """Where a descriptor leads; "" if it is closed."""
        try:
            return os.readlink(f"/proc/{self.tid}/fd/{number}")
        except OSError:
            return ""

    def inode_of(self, number: int) -> tuple[int, int] | None:
        """Device and inode of a descriptor's file."""
        try:
            found = os.stat(f"/proc/{self.tid}/fd/{number}")
        except OSError:
            return None
        return found.st_dev, found.st_ino

    def is_open(self, number: int) -> bool:
        """Whether the number is taken."""
        return os.path.lexists(f"/proc/{self.tid}/fd/{number}")

    @property
    def directory(self) -> str:
        """The current directory."""
        try:
            return os.readlink(f"/proc/{self.tid}/cwd")
        except OSError:
            return "/"

    # -- the process -------------------------------------------------------------------------------

    def status(self) -> dict[str, str]:
        """/proc/…/status as a table; empty when the thread is gone."""
        try:
            with open(f"/proc/{self.tid}/status", encoding="utf-8", errors="replace") as file:
                lines = [line.partition(":") for line in file]
        except OSError:
            return {}
        return {name: value.strip() for name, _, value in lines}

    @property
    def process(self) -> int:
        """Number of the process that the thread belongs to."""
        return int(self.status().get("Tgid", self.tid))

    @property
    def name(self) -> str:
        """What the program calls itself."""
        try:
            with open(f"/proc/{self.tid}/comm", encoding="utf-8", errors="replace") as file:
                return file.read().strip()
        except OSError:
            return "?"

    def has_signal(self) -> bool:
        """Whether a signal waits that the thread would handle."""
        table = self.status()
        try:
            pending = int(table["SigPnd"], 16) | int(table["ShdPnd"], 16)
            return bool(pending & ~int(table["SigBlk"], 16) & ~int(table["SigIgn"], 16))
        except (KeyError, ValueError):
            return False


@dataclass(frozen=True)
class DescriptorInfo:
    """/proc/…/fdinfo of one descriptor."""

    text: bytes

    def value(self, name: bytes) -> bytes | None:
        """The rest of the line that begins with a name."""
        place = self.text.find(name + b":")
        if place < 0:
            return None
        place += len(name) + 1
        return self.text[place : self.text.find(b"\n", place)].strip()

    @property
    def position(self) -> int:
        return int(self.value(b"pos") or 0)

    @property
    def flags(self) -> int:
        """The open file's flags as open() took them."""
        return int(self.value(b"flags") or b"0", 8)


class Targets:
    """All supervised threads."""

    def __init__(self) -> None:
        self._memories: OrderedDict[int, int] = OrderedDict()

    def task(self, tid: int) -> Task:
        """The thread with that number."""
        return Task(tid, self._memories)

    def close(self) -> None:
        """Let go of all memory."""
        while self._memories:
            os.close(self._memories.popitem()[1])
