"""`--timing` of programs that run: each frame that their V3D draws is timed as it is drawn."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from threading import Lock
from typing import TYPE_CHECKING

from vc4lab.timing.frame_times import FrameTime, FrameTimer, model_of
from vc4lab.timing.frames.feed import FrameFeed
from vc4lab.timing.gpu_clock import GpuClock

if TYPE_CHECKING:
    from vc4lab.timing.frames.frame import Frame
    from vc4lab.v3d.core import V3D


class ListClocks:
    """Clocks of a V3D's list threads, for guest time: each flush and each frame on its own.

    What a binning and a rendering that run side by side take from each other is not in it.
    """

    def __init__(self, timer: FrameTimer) -> None:
        self._model = model_of(timer.chip, timer.speed)
        self._clocks: list[int | None] = [None, None]
        self.error: Exception | None = None
        """Why guest time goes on with the estimate."""

    def binned(self, frame: Frame) -> None:
        """A flush is complete."""
        self._add(0, frame)

    def rendered(self, frame: Frame) -> None:
        """A frame, or a part of one, is drawn."""
        self._add(1, replace(frame, binnings=()))  # its flushes had their time

    def _add(self, thread: int, frame: Frame) -> None:
        if self.error is not None:
            return
        try:
            timing = next(iter(self._model.run([frame])))
        except ValueError as error:
            self.error = error
            return
        clocks = timing.rendering if thread else timing.binning
        self._clocks[thread] = (self._clocks[thread] or 0) + clocks

    def take(self, thread: int) -> int | None:
        """Return the clocks that a thread took since the last call; None: they are not known."""
        clocks, self._clocks[thread] = self._clocks[thread], None
        return clocks


class JobCounters:
    """The counters that the model knows, collected for jobs, which have any number of frames."""

    def __init__(self) -> None:
        self._lock = Lock()  # jobs end in one thread, frames are timed in another
        self._jobs: list[tuple[int, Callable[[Mapping[int, int]], object]]] = []
        self._frames: list[Mapping[int, int]] = []
        self._taken = 0

    def add(self, frames: int, call: Callable[[Mapping[int, int]], object]) -> None:
        """A job is over, with the last of so many frames since the start."""
        with self._lock:
            self._jobs.append((frames, call))
            self._give()

    def timed(self, counters: Mapping[int, int]) -> None:
        """The next frame is timed."""
        with self._lock:
            self._frames.append(counters)
            self._give()

    def end(self) -> None:
        """No further frame will be timed: what is known is given."""
        with self._lock:
            self._give(everything=True)

    def _give(self, everything: bool = False) -> None:
        while self._jobs:
            end, call = self._jobs[0]
            if self._taken + len(self._frames) < end and not everything:
                return
            count = max(end - self._taken, 0)
            found: Counter[int] = Counter()
            for one in self._frames[:count]:
                found.update(one)
            del self._frames[:count], self._jobs[0]
            self._taken += count
            call(found)


class LiveTiming:
    """Times the frames of a V3D on one board, in a thread beside those that draw.

    show: called in that thread with a line for each frame, if there is one. A program whose frames
    the model cannot time as fast as they come is held up. guest_time: what the guest sees of its
    lists (BFC, RFC, interrupts) comes when the chip would be done. slower: jobs end when the chip
    would be done (`clock`), or one that is so many times slower; None: as soon as they are drawn.
    """

    def __init__(self, chip: str, board: str, guest_time: bool = False, slower: float | None = None) -> None:
        self.timer = FrameTimer(chip, board, only=True)
        self._guest = ListClocks(self.timer) if guest_time else None
        self.clock = GpuClock(self.timer, slower) if slower is not None else None
        self.show: Callable[[str], object] | None = None
        self.milliseconds: list[float] = []
        self._stream = self.timer.stream(self._on_time)
        self._feed: FrameFeed | None = None
        self._count = 0
        self._shown = 0
        self._counters = JobCounters()

    def attach(self, v3d: V3D) -> None:
        """Listens to a V3D from now on."""
        if self._feed is None:
            self._stream.__enter__()
        else:
            self._feed.__exit__(None, None, None)
        self._feed = FrameFeed(v3d, self._on_frame, self._on_binning)
        self._feed.__enter__()
        if self._guest is not None:
            v3d.list_clocks = self._guest.take

    def end(self) -> None:
        """Listens no more, and times what is left."""
        if self.clock is not None:
            self.clock.end()
        if self._feed is not None:
            self._feed.__exit__(None, None, None)
            self._stream.__exit__(None, None, None)
            self._feed = None
        self._counters.end()

    def when_timed(self, call: Callable[[Mapping[int, int]], object]) -> None:
        """Calls with what performance counters counted in the frames that were drawn since the last
        such call, as far as only the model knows it: when all of them are timed."""
        self._counters.add(self._count, call)

    def _on_binning(self, frame: Frame) -> None:
        if self._guest is not None:
            self._guest.binned(frame)

    def _on_frame(self, frame: Frame) -> None:
        if self._guest is not None:
            self._guest.rendered(frame)
        self._count += 1
        self._stream.put(f"frame {self._count}", frame)
        if self.clock is not None:
            self.clock.add(frame)

    def _on_time(self, one: FrameTime) -> None:
        taken = one.boards[0].milliseconds
        self.milliseconds.append(taken)
        self._counters.timed(one.timing.counters)
        if self.show is not None:
            self.show(f"{one.name}: {one.clocks} clocks, {taken:.4g} ms on {self.timer.board}")

    def picture_shown(self, _number: int) -> None:
        """A picture is visible: what was drawn up to now was for it or for those before."""
        self._shown = self._count

    def lines(self, pictures: int | None = None) -> list[str]:
        """Return the lines for the end. pictures: how many were shown, if that is known; frames drawn
        after the last one are left out, if `picture_shown` was called for each."""
        timer = self.timer
        where = f"{timer.chip.name} on {timer.board} at {timer.hertz / 1e6:g} MHz"
        lines = []
        if self._stream.error is not None:
            left = self._count - len(self.milliseconds)
            text = " ".join(str(self._stream.error).split())[:300]
            lines.append(f"timing: {left} frames not timed: {text}")
        if self._guest is not None and self._guest.error is not None:
            text = " ".join(str(self._guest.error).split())[:300]
            lines.append(f"timing: guest time went on with the estimate: {text}")
        if not self.milliseconds:
            return [*lines, f"timing: no frame was timed ({where})"]
        taken = self.milliseconds[: self._shown] if pictures else self.milliseconds
        taken = taken or self.milliseconds
        total, longest = sum(taken), max(taken)
        shown = pictures or len(taken)
        what = "pictures" if pictures else "frames"
        jobs = f" in {len(taken)} jobs" if pictures else ""
        lines.append(
            f"timing: {shown} {what}{jobs} take {total:.4g} ms of the V3D ({where}); the longest "
            f"job {longest:.4g} ms"
        )
        lines.append(
            f"timing: {1000 * shown / max(total, 1e-9):.4g} frames a second, if the GPU bounds the program"
        )
        return lines + (self.clock.lines() if self.clock is not None else [])
