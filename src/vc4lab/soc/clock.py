"""Virtual time: executed instructions plus skipped waits, and the events that wait for a moment.

Guest time never comes from the host, so two runs of a program give the same bytes. One instruction
takes a fixed number of nanoseconds (the board's nominal speed); idle CPUs and polling loops skip
ahead, see `Bus` and `Machine`.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable

from vc4lab.soc.native import SliceCounter

NANOSECONDS = 1_000_000_000
FAR = 1 << 62
"""A moment that never comes."""


class Event:
    """A call at a moment of guest time (nanoseconds); `cancel()` takes it back."""

    __slots__ = ("action", "at", "cancelled")

    def __init__(self, at: int, action: Callable[[], None]) -> None:
        self.at = at
        self.action = action
        self.cancelled = False

    def cancel(self) -> None:
        """The event will not happen."""
        self.cancelled = True


class Clock:
    """Guest time in nanoseconds and the queue of events.

    Parameters
    ----------
    counter
        Counts the CPU's instructions and stops it at a limit.
    ns_per_instruction
        Nominal duration of one instruction.
    """

    def __init__(self, counter: SliceCounter, ns_per_instruction: int) -> None:
        self.counter = counter
        self.ns_per_instruction = ns_per_instruction
        self.skipped = 0
        self.events_run = 0
        self.company = False
        """Whether other cores run: a core that waits then ends its turn instead of skipping."""
        self.wish: int | None = None
        """The moment until which the core whose turn it is waits, if it does."""
        self._share = 1
        self._queue: list[tuple[int, int, Event]] = []
        self._sequence = 0

    @property
    def now(self) -> int:
        """Guest time since power-on in nanoseconds."""
        return self.skipped + self.counter.count * self.ns_per_instruction // self._share

    @property
    def share(self) -> int:
        """So many cores take turns, each for this part of the time; time never goes back."""
        return self._share

    @share.setter
    def share(self, cores: int) -> None:
        now = self.now
        self._share = cores
        self.skipped += now - self.now

    @property
    def limit(self) -> int:
        """The instruction count at which the next event is due."""
        return (self.next_event - self.skipped) * self._share // self.ns_per_instruction + 1

    def at(self, moment: int, action: Callable[[], None]) -> Event:
        """Call `action` at `moment` (ns). A moment in the past comes as soon as possible."""
        event = Event(moment, action)
        self._sequence += 1
        heapq.heappush(self._queue, (moment, self._sequence, event))
        self.shorten_slice()
        return event

    def after(self, delay: int, action: Callable[[], None]) -> Event:
        """Call `action` after `delay` nanoseconds."""
        return self.at(self.now + delay, action)

    @property
    def next_event(self) -> int:
        """Moment of the next event, `FAR` if there is none."""
        queue = self._queue
        while queue and queue[0][2].cancelled:
            heapq.heappop(queue)
        return queue[0][0] if queue else FAR

    def run_due(self) -> None:
        """Call the events whose moment has come, in order."""
        now = self.now
        while self.next_event <= now:
            self.events_run += 1
            heapq.heappop(self._queue)[2].action()

    def skip(self, nanoseconds: int) -> None:
        """Let time go on without instructions; the CPU stops soon if an event is due then."""
        self.skipped += nanoseconds
        self.shorten_slice()

    def skip_to_event(self, most: int = FAR) -> None:
        """Let time go on to the next event, at most by `most` nanoseconds."""
        wait = max(0, min(self.next_event - self.now, most))
        if self.company:
            self.wish = self.now + wait
            self.counter.stop()
        else:
            self.skip(wait)

    def shorten_slice(self) -> None:
        """Make the CPU stop at the next event if that comes before the end of its slice."""
        limit = (self.next_event - self.skipped) * self._share // self.ns_per_instruction
        if limit < self.counter.limit:
            self.counter.limit = max(limit, 0)
