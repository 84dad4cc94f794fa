"""The supervised programs as /proc shows them: memory, descriptors, paths.

A thread's number may be used again by another thread: what is kept by number is looked at again
when it fails, and a caller asks whether a call still waits before it trusts what it read.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Container
from dataclasses import dataclass
from functools import cache
from typing import Any

from vc4lab.drm.processes.filters import WINDOW
from vc4lab.drm.processes.memory_rights import PAGE, KnownPages, read_memory, write_memory
from vc4lab.drm.processes.notifications import RESTART
from vc4lab.drm.uapi.results import Refused

KEPT_FILES = 128
"""So many threads' memory files stay open, and so many files about descriptors."""
MAX_PATH = 4096


class KeptFiles:
    """Open files of /proc about threads: opening one costs as much as reading it five times.

    A file about a descriptor says what is there now, whenever it is read, and nothing any more when
    its thread is gone. A memory file stays what it is when another thread gets the number: `sweep`
    closes those of dead threads.
    """

    def __init__(self) -> None:
        self.memories: dict[int, int] = {}
        self.descriptors: dict[tuple[int, int], int] = {}
        """By thread and descriptor."""
        self.readable = KnownPages()

    def keep(self, kept: dict[Any, int], key: Any, file: int) -> None:
        """One more, and perhaps the oldest one less."""
        kept[key] = file
        if len(kept) > KEPT_FILES:
            self.drop(kept, next(iter(kept)))

    def drop(self, kept: dict[Any, int], key: Any) -> None:
        """Close one, if it is there."""
        file = kept.pop(key, None)
        if file is not None:
            os.close(file)

    def sweep(self) -> None:
        """Close the files of threads that are gone."""
        for tid in {*self.memories, *(tid for tid, _ in self.descriptors)}:
            if not os.path.exists(f"/proc/{tid}"):
                self.drop(self.memories, tid)
                for key in [key for key in self.descriptors if key[0] == tid]:
                    self.drop(self.descriptors, key)

    def close(self) -> None:
        """Close all."""
        kept: dict[Any, int]
        for kept in (self.memories, self.descriptors):
            for key in list(kept):
                self.drop(kept, key)


class Task:
    """A thread that made a system call."""

    __slots__ = ("_kept", "tid")

    def __init__(self, tid: int, kept: KeptFiles) -> None:
        self.tid = tid
        self._kept = kept

    def other(self, tid: int) -> Task:
        """Another thread or process."""
        return Task(tid, self._kept)

    # -- memory ------------------------------------------------------------------------------------

    def _memory(self) -> int:
        found = self._kept.memories.get(self.tid)
        if found is None:
            try:
                found = os.open(f"/proc/{self.tid}/mem", os.O_RDWR | os.O_CLOEXEC)
            except OSError as error:
                raise Refused(errno.EFAULT, f"/proc/{self.tid}/mem: {error.strerror}") from None
            self._kept.keep(self._kept.memories, self.tid, found)
        return found

    def forget(self) -> None:
        """The thread's memory has changed (exec) or the number belongs to another."""
        self._kept.drop(self._kept.memories, self.tid)

    def read_some(self, address: int, size: int) -> bytes:
        """Up to `size` bytes: fewer where readable memory ends. Raises Refused (EFAULT)."""
        last = (address + size - 1) // PAGE
        if size and not self._kept.readable.holds(self.tid, address // PAGE, last):
            data = read_memory(self.tid, address, size)
            if data is not None:
                if not data:
                    raise Refused(errno.EFAULT, f"no readable memory at 0x{address:x}")
                if len(data) == size:
                    self._kept.readable.add(self.tid, address // PAGE, last)
                return data
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
        """Exactly `size` bytes, where the program may read them. Raises Refused (EFAULT)."""
        data = self.read_some(address, size)
        while len(data) < size:
            data += self.read_some(address + len(data), size - len(data))
        return data

    def write(self, address: int, data: bytes) -> None:
        """Store bytes where the program itself could. Raises Refused (EFAULT)."""
        if not data:
            return
        done = 0
        while done < len(data):
            count = write_memory(self.tid, address + done, data[done:])
            if count is None:  # it cannot be called here
                self._write_unchecked(address, data)
                return
            if count <= 0:
                raise Refused(errno.EFAULT, f"no writable memory at 0x{address + done:x}")
            done += count

    def _write_unchecked(self, address: int, data: bytes) -> None:
        done = 0
        for _ in range(2 + len(data) // PAGE):
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

    # -- descriptors -------------------------------------------------------------------------------

    def position(self, number: int) -> DescriptorInfo | None:
        """Read what /proc says about a descriptor; None if it is closed."""
        text = self.text_about(number)
        return DescriptorInfo(text) if text is not None else None

    def text_about(self, number: int) -> bytes | None:
        """The text of `position`."""
        key = self.tid, number
        kept = self._kept.descriptors
        known = kept.get(key)
        if known is not None:
            try:
                return os.pread(known, 4096, 0)
            except OSError:  # closed, or the thread is gone: perhaps its number belongs to another
                self._kept.drop(kept, key)
        try:
            file = os.open(f"/proc/{self.tid}/fdinfo/{number}", os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return None
        try:
            text = os.read(file, 4096)
        except OSError:
            os.close(file)
            return None
        if number in WINDOW:
            self._kept.keep(kept, key, file)
        else:
            os.close(file)
        return text

    def path_of(self, number: int) -> str:
        """The path that a descriptor leads to; "" if it is closed."""
        return self._link(f"fd/{number}")

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
        return self._link("cwd") or "/"

    @property
    def shares_root(self) -> bool:
        """Whether its root directory and its mounts are this process's."""
        return all(self._link(name) == _own(name) for name in ("root", "ns/mnt"))

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
    def user(self) -> int:
        """The user by whose rights it opens files; -1 if it is gone."""
        return int(self.status().get("Uid", "-1").split()[-1])

    @property
    def process(self) -> int:
        """Number of the process that the thread belongs to."""
        return int(self.status().get("Tgid", self.tid))

    def is_in_group(self, group: int) -> bool:
        """Whether it is for files."""
        table = self.status()
        groups = [*table.get("Gid", "0 0 0 0").split()[3:], *table.get("Groups", "").split()]
        return str(group) in groups

    def may(self, capability: int) -> bool:
        """Whether it has one of the kernel's capabilities, by number: as the device's own process
        would have it, so not in a user namespace of its own, where each program has all."""
        held = int(self.status().get("CapEff", "0"), 16) >> capability & 1
        return bool(held) and self._link("ns/user") == _own("ns/user")

    @property
    def name(self) -> str:
        """The name that the program calls itself."""
        try:
            with open(f"/proc/{self.tid}/comm", encoding="utf-8", errors="replace") as file:
                return file.read().strip()
        except OSError:
            return "?"

    @property
    def executable(self) -> str:
        """The file that it executes; "" if it is gone."""
        return self._link("exe")

    def _link(self, name: str) -> str:
        try:
            return os.readlink(f"/proc/{self.tid}/{name}")
        except OSError:
            return ""

    def interruption(self) -> int | None:
        """Give the end of the thread's call because of a signal that it would handle, if one waits.

        "Start again" may only be said to a thread that the kernel has woken for the signal: another
        would see that answer itself. The kernel wakes the main thread for a signal of the process
        if that does not block it; which one else, it does not say. Then it is EINTR.
        """
        table = self.status()
        try:
            heeded = ~(int(table["SigBlk"], 16) | int(table["SigIgn"], 16))
            if int(table["SigPnd"], 16) & heeded:
                return RESTART
            shared = int(table["ShdPnd"], 16) & heeded
            if not shared:
                return None
            process = int(table["Tgid"])
            if process == self.tid or table["Threads"] == "1":
                return RESTART
            main = self.other(process).status()
            if not main["State"].startswith("Z"):
                shared &= int(main["SigBlk"], 16)
            return -errno.EINTR if shared else None
        except (KeyError, ValueError):
            return None


@cache
def _own(name: str) -> str:
    """A link of /proc about this process."""
    return os.readlink(f"/proc/self/{name}")


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

    @property
    def is_locked(self) -> bool:
        """Whether this open file itself has a lock on the byte at its position."""
        position = self.value(b"pos") or b""
        lock = (self.value(b"lock") or b"").split()
        return lock[-2:] == [position, position] and b"OFDLCK" in lock and b"WRITE" in lock

    @property
    def event_number(self) -> int:
        """The number of an eventfd; -1 before kernel 5.2."""
        return int(self.value(b"eventfd-id") or b"-1")


def mappings(process: int | str, inodes: Container[int]) -> list[tuple[int, int, int]]:
    """List where a process maps files without names: start and end of addresses, the place in the file.

    Only those whose numbers are among `inodes`.
    """
    try:
        with open(f"/proc/{process}/maps", "rb") as file:
            lines = file.read().split(b"\n")
    except OSError:
        return []
    found = []
    for line in lines:
        fields = line.split(None, 5) if b"memfd:" in line else ()
        if len(fields) == 6 and int(fields[4]) in inodes and fields[5].startswith(b"/memfd:"):
            low, _, high = fields[0].partition(b"-")
            found.append((int(low, 16), int(high, 16), int(fields[2], 16)))
    return found
