"""Which epoll instances, eventfds and mappings the programs still have.

Of the first two the supervisor keeps copies, so the kernel's count does not say when a program's
last one is gone; what /proc shows does. It is looked at only when many copies are kept.
"""

from __future__ import annotations

import os
from collections.abc import Container, Iterable, Iterator

from vc4lab.drm.processes.descriptors import poll_number
from vc4lab.drm.processes.targets import DescriptorInfo, mappings

FIRST_LOOK = 64
"""So many copies are kept before anything is looked at."""


class Census:
    """Decides when to look, and what is gone: it was not there in two looks, one after the other.

    A descriptor on its way through a socket is in no program for a moment.
    """

    def __init__(self) -> None:
        self.look_at = FIRST_LOOK
        self._missing: set[tuple[str, int]] = set()

    def gone(
        self, polls: Iterable[int], events: Iterable[int], processes: Iterable[int]
    ) -> tuple[set[int], set[int]]:
        """Numbers of the kept epoll instances and of the eventfds that no program has any more."""
        kept = {("poll", n) for n in polls} | {("event", n) for n in events}
        if len(kept) < self.look_at:
            return set(), set()
        missing = kept - set(_found(processes))
        gone = missing & self._missing
        self._missing = missing - gone
        if not self._missing:
            self.look_at = max(FIRST_LOOK, 2 * (len(kept) - len(gone)))
        return {n for kind, n in gone if kind == "poll"}, {n for kind, n in gone if kind == "event"}


def _found(processes: Iterable[int]) -> Iterator[tuple[str, int]]:
    """Find what the processes have."""
    for process in processes:
        folder = f"/proc/{process}/fd"
        try:
            numbers = os.listdir(folder)
        except OSError:
            continue
        for number in numbers:
            try:
                link = os.readlink(f"{folder}/{number}")
                if link not in ("anon_inode:[eventpoll]", "anon_inode:[eventfd]"):
                    continue
                with open(f"/proc/{process}/fdinfo/{number}", "rb") as file:
                    text = file.read()
            except OSError:
                continue
            if link.endswith("[eventpoll]"):
                found = poll_number(text)
                if found is not None:
                    yield "poll", found
            else:
                yield "event", DescriptorInfo(text).event_number


def mapped_ranges(inodes: Container[int]) -> list[tuple[int, int]]:
    """Ranges of these memory files that other processes map, as (start, end)."""
    ranges = []
    for name in os.listdir("/proc"):
        if name.isdigit() and int(name) != os.getpid():
            found = mappings(name, inodes)
            ranges += [(start, start + high - low) for low, high, start in found]
    return ranges
