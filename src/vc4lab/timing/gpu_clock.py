"""The clock of a chip that running programs wait for: their jobs end when it would be done.

::

    clock = GpuClock(timer)
    clock.add(frame)                    # pieces of work of the job at hand, drawn already
    clock.finish(ready)                 # waits until the chip would be done with it

A job is binned when it is ready and the binning before it is over, and rendered when it is binned
and the rendering before it is over. Each of its frames is timed on its own: what binning and
rendering side by side take from each other is not in it. Where the simulator takes longer than the
chip, there is nothing to wait for, and the program is held up: that is counted.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from threading import Event
from typing import TYPE_CHECKING

from vc4lab.timing.frame_times import FrameTimer, model_of

if TYPE_CHECKING:
    from vc4lab.timing.frames.frame import Frame

LONGEST_WAIT = 60.0
"""Seconds at once: what waits has limits."""
MOST_OF_TEN = 9
"""Jobs of ten that would be in time with the advised factor."""


class GpuClock:
    """When the jobs of a running program end on the chip.

    Parameters
    ----------
    timer
        The chip and the board.
    slower
        The chip runs so many times slower than it would, so that the simulator keeps pace.
    now
        Seconds.
    wait
        Waits so many seconds; true, if it need not wait any more.

    Attributes
    ----------
    jobs, late
        How many were finished, and how many of them took the simulator longer than the chip.
    error
        Why jobs are not waited for any more.
    """

    def __init__(
        self,
        timer: FrameTimer,
        slower: float = 1.0,
        *,
        now: Callable[[], float] = time.monotonic,
        wait: Callable[[float], bool] | None = None,
    ) -> None:
        self.slower = slower
        self.jobs = 0
        self.late = 0
        self.error: Exception | None = None
        self._ended = Event()
        self.wait = wait or self._ended.wait
        self._now = now
        self._model = model_of(timer.chip, timer.speed)
        self._tick = slower / timer.hertz
        self._parts: list[tuple[float, float]] = []
        self._binned = self._rendered = self._signalled = -math.inf
        self._taken: list[tuple[float, float]] = []
        """Seconds of each job: those of the simulator, and those of the chip as slow as it is made."""

    def add(self, frame: Frame) -> None:
        """A frame, or a part of one, of the job at hand was drawn."""
        if self.error is not None:
            return
        try:
            timing = next(iter(self._model.run([frame])))
        except ValueError as error:
            self.error = error
            return
        self._parts.append((timing.binning * self._tick, timing.rendering * self._tick))

    def finish(self, ready: float) -> None:
        """The job at hand is drawn; it could begin at `ready`. Returns when the chip is done."""
        parts, self._parts = self._parts, []
        if not parts or self.error is not None:
            return
        begin = max(ready, self._rendered)
        for binning, rendering in parts:
            self._binned = max(ready, self._binned) + binning
            self._rendered = max(self._binned, self._rendered) + rendering
        drawn = self._now()
        while (left := self._rendered - self._now()) > 0:
            if self.wait(min(left, LONGEST_WAIT)):
                return
        self.jobs += 1
        self.late += drawn > self._rendered
        self._taken.append((drawn - max(ready, self._signalled), self._rendered - begin))
        self._signalled = self._now()

    def end(self) -> None:
        """Nothing is waited for any more."""
        self._ended.set()

    def lines(self) -> list[str]:
        """Return the lines that report, at the end, how many jobs were in time."""
        lines = []
        if self.error is not None:
            text = " ".join(str(self.error).split())[:300]
            lines.append(f"timing: jobs ended as soon as they were drawn: {text}")
        if not self.jobs:
            return lines
        if self.slower != 1:
            lines.append(
                f"timing: the chip is made {self.slower:g} times slower: so many times higher are "
                "a board's frames a second than those that the program counts"
            )
        if not self.late:
            return [*lines, f"timing: all jobs ({self.jobs}) ended when the chip was done with them"]
        spent, chip = (sum(one) * 1000 / self.jobs for one in zip(*self._taken, strict=True))
        ratios = sorted(taken / max(on_chip, 1e-9) for taken, on_chip in self._taken)
        enough = ratios[min(len(ratios) * MOST_OF_TEN // 10, len(ratios) - 1)] * self.slower
        lines.append(
            f"timing: {self.jobs - self.late} of {self.jobs} jobs ended when the chip was done "
            f"with them; the simulator held the program up in {self.late}: a job takes "
            f"it {spent:.4g} ms, the chip {chip:.4g}"
        )
        if enough > self.slower:
            lines.append(f"timing: with --timing-slower {math.ceil(enough)} nine of ten would end in time")
        return lines
