"""Holds guest time back to the wall clock (`--realtime`): looked at once every vsync.

A guest that is slower than the real board is not hurried afterwards: beyond `MOST_BEHIND` the
lost time is given up. Nothing the guest sees depends on it.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from vc4lab.soc.clock import NANOSECONDS

MOST_BEHIND = NANOSECONDS // 4
LONGEST_SLEEP = NANOSECONDS


class Pace:
    """Sleeps while the guest is ahead of the wall clock."""

    def __init__(
        self,
        wall: Callable[[], int] = time.monotonic_ns,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._wall = wall
        self._sleep = sleep
        self._offset: int | None = None

    def keep(self, now: int) -> None:
        """The guest has reached the moment `now` (ns of guest time)."""
        wall = self._wall()
        if self._offset is None:
            self._offset = wall - now
        ahead = now + self._offset - wall
        if ahead > 0:
            self._sleep(min(ahead, LONGEST_SLEEP) / NANOSECONDS)
        elif ahead < -MOST_BEHIND:
            self._offset = wall - now
