"""Holds guest time back to the wall clock (`--realtime`), sleeping while the guest waits.

While the guest works, it is looked at once every vsync. While all its cores wait, one sleep goes
on to the next event that has an effect in the machine, or until a file descriptor (a key, a
debugger's packet) has something; what had no effect meanwhile is made up for in one go.

A guest that is slower than the real board is not hurried afterwards: beyond `MAX_BEHIND` the
lost time is given up, and that is reported once. Nothing the guest sees depends on it.
"""

from __future__ import annotations

import select
import time
from collections.abc import Callable

from vc4lab import interruption
from vc4lab.soc.clock import NANOSECONDS

MAX_BEHIND = NANOSECONDS // 4
WORTH_TELLING = NANOSECONDS
"""Losses of this much in all are reported; the compilation of a first frame is less."""
LONGEST_SLEEP = NANOSECONDS
CALM_SLACK = NANOSECONDS // 20
"""A program that polls, and of which nothing is seen, may be so far ahead of the wall."""
SHORTEST_REST = NANOSECONDS // 50
"""A guest that waits may be so far ahead of the wall: short waits are slept at the next vsync."""


def wait_for(seconds: float, descriptors: list[int]) -> None:
    """Sleep, until one of the descriptors has something to read, or a signal comes."""
    signals = [interruption.descriptor()]
    try:
        ready = select.select(signals + descriptors, [], [], seconds)[0]
    except (OSError, ValueError):  # one of them is closed
        ready = select.select(signals, [], [], seconds)[0]
    if signals[0] in ready:
        interruption.drain()


class Pace:
    """Sleeps while the guest is ahead of the wall clock.

    Parameters
    ----------
    tell
        Called once with a sentence when the guest is much too slow.

    Attributes
    ----------
    longest
        Longest rest in seconds, for callers that check something in between.
    sleeps
        How often it has slept.
    lost
        Nanoseconds of the wall clock that were given up.
    """

    def __init__(
        self,
        wall: Callable[[], int] = time.monotonic_ns,
        sleep: Callable[[float, list[int]], None] = wait_for,
        tell: Callable[[str], None] = lambda _text: None,
    ) -> None:
        self._wall = wall
        self._sleep = sleep
        self._report = tell
        self._offset: int | None = None
        self._made_up = 0
        """Guest time up to which it has rested: being late until then is expected."""
        self._slack = 0
        self.longest = LONGEST_SLEEP / NANOSECONDS
        self.sleeps = 0
        self.lost = 0

    def keep(self, now: int, calm: bool = False, descriptors: list[int] | None = None) -> None:
        """The guest has reached the moment `now` (ns of guest time).

        `calm`: nothing of it was seen for a while. It may then be a little ahead, so that
        it is not woken for every vsync; descriptors that become readable end the sleep.
        """
        ahead = self._ahead(now)
        self._slack = min(CALM_SLACK, int(self.longest * NANOSECONDS)) if calm else 0
        if ahead > self._slack:
            self._sleep_for(min(ahead, LONGEST_SLEEP), descriptors or [])
        elif ahead < -MAX_BEHIND and now >= self._made_up:
            self._give_up(-ahead, now)

    def rest(self, now: int, until: int, descriptors: list[int]) -> None:
        """All cores wait at `now`, and nothing has an effect before `until`."""
        ahead = self._ahead(now) + until - now
        if now < self._made_up or ahead < max(SHORTEST_REST, self._slack):
            return
        ahead = min(ahead, int(self.longest * NANOSECONDS))
        wanted = self._wall() + ahead
        self._sleep_for(ahead, descriptors)
        assert self._offset is not None
        if self._wall() - wanted > MAX_BEHIND:
            self._offset += self._wall() - wanted  # the host was asleep, not the guest slow
        self._made_up = self._wall() - self._offset

    def is_behind(self, now: int) -> bool:
        """Whether `now` is a moment that was slept through."""
        return now < self._made_up

    def _ahead(self, moment: int) -> int:
        wall = self._wall()
        if self._offset is None:
            self._offset = wall - moment
        return moment + self._offset - wall

    def _sleep_for(self, nanoseconds: int, descriptors: list[int]) -> None:
        self.sleeps += 1
        self._sleep(nanoseconds / NANOSECONDS, descriptors)

    def _give_up(self, behind: int, now: int) -> None:
        told = self.lost > WORTH_TELLING
        self.lost += behind
        self._offset = self._wall() - now
        if self.lost > WORTH_TELLING and not told:
            self._report(
                f"--realtime: this computer is too slow: {self.lost / NANOSECONDS:.1f} s late "
                f"after {now / NANOSECONDS:.1f} s of guest time; the program runs slower than on "
                "the board"
            )
