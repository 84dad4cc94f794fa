"""Which pages of memory files processes touched, as the kernel's page tables say.

Writing 1 to /proc/PID/clear_refs clears the accessed bits of a process; /proc/PID/smaps later says
how much of each mapping was accessed since. What the processor has in its TLB would not be marked
again (with large TLBs most of a picture), and only writing 4, for marks of written pages, drops it:
the program's first write to each page after that is a fault of the kernel, some 0.5 us; else the
program runs at full speed. A kernel without those marks misses pages.

Now and then a page too many counts. A kernel that looks for idle memory by itself (DAMON, reclaim)
takes the accessed bit from the page tables and marks the page of memory instead, which smaps shows
in every mapping of it, whichever process had accessed it; comparing contents does. Seen
with DAMON: one such page in 3 of 1,420 looks, each time in both mappings of a buffer.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Container
from dataclasses import dataclass

PAGE = 4096
FAULT_AROUND = 16
"""The kernel maps so many pages at the first read of one of them, and marks all as accessed."""
MAX_CHILDREN = 256


@dataclass(frozen=True)
class Region:
    """A mapping of a memory file; numbers of pages."""

    start: int
    end: int
    offset: int
    """Its beginning in the file."""
    reads: bool
    writes: bool
    resident: int
    touched: int

    def surely_touched(self, resident_before: int) -> int:
        """At least so many pages were touched, however many the kernel mapped beside them."""
        fresh = min(max(0, self.resident - resident_before), self.touched)
        return self.touched - fresh + -(-fresh // FAULT_AROUND)


_MAPPING = re.compile(
    rb"^([0-9a-f]+)-([0-9a-f]+) (\S+) ([0-9a-f]+) \S+ (\d+) +/memfd:.*\n"
    rb"((?:[A-Z][A-Za-z_]*:.*\n)+)",
    re.MULTILINE,
)


class Looker:
    """Looks at mappings of memory files; `inodes` are the numbers of those that there are now."""

    def __init__(self, inodes: Container[int]) -> None:
        self._inodes = inodes

    def regions(self, process: int) -> list[Region]:
        """List what a process maps. Raises OSError if it is gone or cannot be looked at."""
        with open(f"/proc/{process}/smaps", "rb", buffering=0) as file:
            text = b"".join(iter(lambda: file.read(1 << 20), b""))
        found = []
        for match in _MAPPING.finditer(text):
            if int(match[5]) not in self._inodes:
                continue
            start, end, offset = (int(match[number], 16) for number in (1, 2, 4))
            reads, writes = (right in match[3] for right in (b"r", b"w"))
            resident, touched = (_pages(match[6], name) for name in (b"Rss:", b"Referenced:"))
            found.append(Region(start, end, offset, reads, writes, resident, touched))
        return found

    def clear(self, process: int) -> None:
        """Start again. Raises OSError."""
        file = os.open(f"/proc/{process}/clear_refs", os.O_WRONLY | os.O_CLOEXEC)
        try:
            os.write(file, b"1")
            with contextlib.suppress(OSError):  # a kernel without marks of written pages
                os.write(file, b"4")
        finally:
            os.close(file)


def children(process: int) -> list[int]:
    """Processes that a process started and that live."""
    try:
        with open(f"/proc/{process}/task/{process}/children", encoding="ascii") as file:
            return [int(word) for word in file.read().split()[:MAX_CHILDREN]]
    except (OSError, ValueError):
        return []


def _pages(values: bytes, name: bytes) -> int:
    place = values.find(name)
    return int(values[place + len(name) :].split(None, 1)[0]) * 1024 // PAGE if place >= 0 else 0
