"""Which pages of memory the write at hand needs, and a replay would not find as they are.

They are taken before anything writes there, and become events of the frame as soon as the V3D has
carried out the write (`recorder.py`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from vc4lab.capture.pages import PAGE, Full
from vc4lab.jobs.model import Filled, PagesLoaded, Zeroed
from vc4lab.jobs.shadow import Shadow
from vc4lab.jobs.walk import list_ranges

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from vc4lab.capture.pages import PageKeeper
    from vc4lab.jobs.model import Event
    from vc4lab.memory import GuestMemory

ZEROS = bytes(PAGE)
BLANK = -1
"""Stands for a page of zeros, which no capture keeps."""
ALL = (0, 0)
"""Stands for all of memory among the ranges that were used."""
Range = tuple[int, int]


class UsedMemory:
    """The memory that a V3D uses, against that of a replay which begins with `memory` at power-on.

    Attributes
    ----------
    shadow
        What the replay has.
    is_full
        Whether there was no room for a page.
    """

    def __init__(self, memory: GuestMemory, keeper: PageKeeper) -> None:
        self.shadow = Shadow(memory)
        self.is_full = False
        self._memory = memory
        self._keeper = keeper
        self._pages: dict[int, int] = {}
        """Pages that the write at hand needs, and their numbers or BLANK."""
        self._used: set[Range] = set()
        """Ranges that the write at hand has used."""
        self._tile_memory: list[Range] = []

    def use(self, address: int, size: int) -> None:
        """The V3D is about to use a range."""
        if (address, size) not in self._used:
            self._used.add((address, size))
            self._take(self.shadow.differing(address, size))

    def use_everything(self) -> None:
        """Take all that a replay does not have: what the V3D is about to use is not known."""
        if ALL not in self._used:
            self._used.add(ALL)
            self._take(self.shadow.everywhere())

    def use_list(self, start: int, end: int | None) -> None:
        """A list, or a piece of one, that the program has written: not one of the binner's."""
        if not self._in_tile_memory(start):
            for address, size in list_ranges(self._memory.read, start, end):
                self.use(address, size)

    def give_tile_memory(self, address: int, size: int) -> None:
        """The binner gets memory, in which it writes as it likes."""
        if not size:
            return
        size = min(size, self._memory.ram_bytes)
        self.shadow.forget(address, size)
        if (address, size) not in self._tile_memory:
            self._tile_memory.append((address, size))

    def _in_tile_memory(self, address: int) -> bool:
        return any(start <= address < start + size for start, size in self._tile_memory)

    def _take(self, pages: Iterable[int]) -> None:
        """Keeps pages as they are now, before anything writes there."""
        if self.is_full:
            return
        try:
            for page in pages:
                data = self.shadow.take(page)
                self._pages.setdefault(page, BLANK if data == ZEROS else self._keeper.add(data))
        except Full:
            self.is_full = True

    def take_events(self) -> list[Event]:
        """The pages that were taken, as events; the next write begins."""
        self._used.clear()
        pages, self._pages = self._pages, {}
        return page_events(pages)


def page_events(pages: Mapping[int, int]) -> list[Event]:
    """The events that put pages into memory: by their numbers there those in the capture, or `BLANK`."""
    events: list[Event] = []
    run = _Run()
    for page, number in sorted(pages.items()):
        if not run.takes(page, number):
            events += run.events
            run = _Run(page, number)
    return events + run.events


class _Run:
    """Pages in a row whose numbers go on by one each, or stay the same."""

    def __init__(self, page: int = -2, number: int = -1) -> None:
        self._page, self._number = page, number
        self._count, self._step = 0 if page < 0 else 1, 0

    def takes(self, page: int, number: int) -> bool:
        """Whether a page goes on with it."""
        if page != self._page + self._count:
            return False
        if self._count == 1:
            self._step = number - self._number
            if self._step not in (0, 1) or (self._number < 0 and self._step):
                return False
        elif number != self._number + self._step * self._count:
            return False
        self._count += 1
        return True

    @property
    def events(self) -> list[Event]:
        """The run as an event, if there is anything in it."""
        at, count = self._page * PAGE, self._count
        if not count:
            return []
        if self._number < 0:
            return [Zeroed(at, count)]
        same = count > 1 and not self._step
        return [Filled(at, self._number, count) if same else PagesLoaded(at, self._number, count)]
