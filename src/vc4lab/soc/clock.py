"""Virtual time: executed instructions plus skipped waits, and the events scheduled in it.

Guest time never comes from the host, so two runs of a program give the same bytes. One instruction
takes a fixed number of nanoseconds (the board's nominal speed); idle CPUs and polling loops skip
ahead, see `Bus` and `Machine`. Native code reads and moves it, too (`native_bus.py`).
"""

from __future__ import annotations

import heapq
from collections.abc import Callable

from vc4lab.simd import Struct, i64
from vc4lab.soc.native import COUNT, LIMIT, SliceCounter, words_of

NANOSECONDS = 1_000_000_000
FAR = 1 << 62
"""A moment that never comes."""


MAX_CORES = 64
LATEST = FAR - 1
"""Guest time stays below this, so that native sums do not overflow."""


class TimeState(Struct):
    """Guest time as native code and Python share it.

    `next_event` is the earlier one of `first_event`, the first of the queue, and of `marker`;
    `goes_on` is that event's `Event.goes_on`.
    """

    skipped = i64
    next_event = i64
    events_run = i64
    share = i64
    ns_per_instruction = i64
    company = i64
    wish = i64
    changes = i64
    marker = i64
    first_event = i64
    goes_on = i64


SKIPPED = TimeState.skipped.offset // 8
NEXT_EVENT = TimeState.next_event.offset // 8
EVENTS_RUN = TimeState.events_run.offset // 8
SHARE = TimeState.share.offset // 8
COMPANY = TimeState.company.offset // 8
WISH = TimeState.wish.offset // 8
CHANGES = TimeState.changes.offset // 8
MARKER = TimeState.marker.offset // 8
FIRST_EVENT = TimeState.first_event.offset // 8
GOES_ON = TimeState.goes_on.offset // 8
"""Members of the state, as `words_of` numbers them."""
MANY = 64
"""Events that were taken back may stay in the queue."""


class Event:
    """A call at a moment of guest time (nanoseconds); `cancel()` takes it back.

    `unnoticed` says whether nothing in the machine would notice it now: a timer whose interrupt
    is not enabled. `goes_on`: it does no more than end a slice, so that rounds in native code go on
    after it (`slices/native_steps.py`).
    """

    __slots__ = ("_clock", "action", "at", "cancelled", "goes_on", "unnoticed")

    def __init__(
        self,
        at: int,
        action: Callable[[], None],
        clock: Clock,
        unnoticed: Callable[[], bool] | None = None,
        goes_on: bool = False,
    ) -> None:
        self.at = at
        self.goes_on = goes_on
        self.action = action
        self.unnoticed = unnoticed
        self.cancelled = False
        self._clock = clock

    def cancel(self) -> None:
        """The event will not happen."""
        self.cancelled = True
        self._clock.note_cancelled()


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
        self._state = TimeState(
            next_event=FAR,
            share=1,
            ns_per_instruction=ns_per_instruction,
            wish=-1,
            marker=FAR,
            first_event=FAR,
        )
        self.address: int = self._state.address
        """The host's address of the `TimeState`."""
        self._words = words_of(self._state)
        self._count = counter.words
        self._queue: list[tuple[int, int, Event]] = []
        self._cancelled = 0
        """Events of the queue that were taken back, at most."""
        self._sequence = 0

    @property
    def now(self) -> int:
        """Guest time since power-on in nanoseconds."""
        words = self._words
        return words[SKIPPED] + self._count[COUNT] * self.ns_per_instruction // words[SHARE]

    @property
    def skipped(self) -> int:
        """Nanoseconds that passed without instructions."""
        return self._words[SKIPPED]

    @skipped.setter
    def skipped(self, nanoseconds: int) -> None:
        self._words[SKIPPED] = max(-LATEST, min(nanoseconds, LATEST))

    @property
    def events_run(self) -> int:
        """Events that have happened."""
        return self._words[EVENTS_RUN]

    @events_run.setter
    def events_run(self, number: int) -> None:
        self._words[EVENTS_RUN] = number & LATEST

    @property
    def company(self) -> bool:
        """Whether other cores run: a core that polls then ends its turn instead of skipping."""
        return bool(self._words[COMPANY])

    @company.setter
    def company(self, others: bool) -> None:
        self._words[COMPANY] = others

    @property
    def wish(self) -> int | None:
        """The moment until which the core whose turn it is waits, if it does."""
        moment = self._words[WISH]
        return None if moment < 0 else moment

    @wish.setter
    def wish(self, moment: int | None) -> None:
        self._words[WISH] = -1 if moment is None else moment

    @property
    def share(self) -> int:
        """So many cores take turns, each for this part of the time; time never goes back."""
        return self._words[SHARE]

    @share.setter
    def share(self, cores: int) -> None:
        if cores == self._words[SHARE]:
            return
        now = self.now
        self._words[SHARE] = cores
        self.skipped += now - self.now

    @property
    def _share(self) -> int:
        """`share` as it is saved and restored: nothing else changes."""
        return self._words[SHARE]

    @_share.setter
    def _share(self, cores: int) -> None:
        self._words[SHARE] = max(1, min(cores, MAX_CORES))

    @property
    def changes(self) -> int:
        """How often something may have changed that a register shows."""
        return self._words[CHANGES]

    def something_happened(self) -> None:
        """Registers may show something else now: no native answer holds any more."""
        self._words[CHANGES] += 1

    @property
    def limit(self) -> int:
        """The instruction count at which the next event is due."""
        return (self.next_event - self.skipped) * self.share // self.ns_per_instruction + 1

    def at(
        self,
        moment: int,
        action: Callable[[], None],
        unnoticed: Callable[[], bool] | None = None,
        goes_on: bool = False,
    ) -> Event:
        """Call `action` at `moment` (ns). A moment in the past comes as soon as possible."""
        event = Event(moment, action, self, unnoticed, goes_on)
        self._sequence += 1
        heapq.heappush(self._queue, (moment, self._sequence, event))
        self.look_ahead()
        self.shorten_slice()
        return event

    def after(
        self, delay: int, action: Callable[[], None], unnoticed: Callable[[], bool] | None = None
    ) -> Event:
        """Call `action` after `delay` nanoseconds."""
        return self.at(self.now + delay, action, unnoticed)

    @property
    def next_event(self) -> int:
        """Moment of the next event, `FAR` if there is none."""
        return self._words[NEXT_EVENT]

    @property
    def marker(self) -> int:
        """A moment at which the slice ends as at an event, although none happens; else `FAR`."""
        return self._words[MARKER]

    @marker.setter
    def marker(self, moment: int) -> None:
        self._words[MARKER] = moment
        self.look_ahead()

    def next_noticed(self) -> int:
        """Moment of the next event that has an effect somewhere in the machine, else `FAR`."""
        first = FAR
        for moment, _sequence, event in self._queue:
            if moment < first and not event.cancelled and (event.unnoticed is None or not event.unnoticed()):
                first = moment
        return first

    def look_ahead(self) -> None:
        """The queue has changed: note when the next event comes."""
        queue = self._queue
        while queue and queue[0][2].cancelled:
            heapq.heappop(queue)
        words = self._words
        marker = words[MARKER]
        if not queue:
            words[FIRST_EVENT], words[GOES_ON], words[NEXT_EVENT] = FAR, 0, marker
            return
        first, _sequence, event = queue[0]
        words[FIRST_EVENT] = first if first < FAR else FAR  # min() takes three times as long
        words[GOES_ON] = event.goes_on
        words[NEXT_EVENT] = first if first < marker else marker

    def note_cancelled(self) -> None:
        """An event was taken back. Many of them go at once: a program may set a timer anew again
        and again, and each moment is far away.
        """
        self._cancelled += 1
        queue = self._queue
        if self._cancelled > MANY and 2 * self._cancelled > len(queue):
            queue[:] = [entry for entry in queue if not entry[2].cancelled]
            heapq.heapify(queue)
            self._cancelled = 0
        self.look_ahead()

    def run_due(self) -> None:
        """Call the events whose moment has come, in order."""
        now = self.now
        while self.next_event <= now:
            self._words[EVENTS_RUN] += 1
            event = heapq.heappop(self._queue)[2]
            self.look_ahead()
            if event.unnoticed is None or not event.unnoticed():
                self.something_happened()
            event.action()

    def run_those_that_go_on(self) -> bool:
        """Call the due events that native rounds go on after; whether no other one is due."""
        now, words = self.now, self._words
        while words[NEXT_EVENT] <= now and words[GOES_ON]:
            words[EVENTS_RUN] += 1
            event = heapq.heappop(self._queue)[2]
            self.look_ahead()
            self.something_happened()
            event.action()
        return words[NEXT_EVENT] > now

    def skip(self, nanoseconds: int) -> None:
        """Let time go on without instructions; the CPU stops soon if an event is due then."""
        self._words[SKIPPED] += nanoseconds
        self.shorten_slice()

    def shorten_slice(self) -> None:
        """Make the CPU stop at the next event if that comes before the end of its slice."""
        words = self._words
        limit = (words[NEXT_EVENT] - words[SKIPPED]) * words[SHARE] // self.ns_per_instruction
        if limit < self._count[LIMIT]:
            self._count[LIMIT] = max(limit, 0)
