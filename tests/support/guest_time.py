"""Guest time that is moved by the test."""

from __future__ import annotations

from typing import Any

from vc4lab.soc.clock import Clock
from vc4lab.v3d.job_time import JobCounts
from vc4lab.v3d.progress import Progress


class HandTime:
    """A clock that stands until it is moved; `counts` collects what each job consisted of."""

    def __init__(self, hertz: int = 250_000_000) -> None:
        self.moment = 0
        self.hertz = hertz
        self.wanted: int | None = None
        self.progress = Progress(self)

    @classmethod
    def of(cls, v3d: Any, hertz: int = 250_000_000) -> HandTime:
        """Guest time for a V3D."""
        time = cls(hertz)
        v3d.progress = time.progress
        return time

    def now(self) -> int:
        return self.moment

    def clock(self) -> int:
        return self.hertz

    def wake(self, moment: int | None) -> None:
        self.wanted = moment

    def skip(self, nanoseconds: int) -> None:
        self.moment += nanoseconds

    def go_to(self, moment: int) -> None:
        """Let time go on; what is due shows."""
        self.moment = moment
        self.progress.show_due()

    def go_on(self) -> int:
        """Let time go on until nothing is left to show; the moment of the last."""
        while self.wanted is not None:
            self.go_to(self.wanted)
        return self.moment


__all__ = ["HandTime", "JobCounts"]


def skip_to_event(clock: Clock) -> None:
    """Lets time go on to the next event."""
    clock.skip(max(0, clock.next_event - clock.now))
