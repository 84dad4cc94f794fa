"""Times frames on the boards of a chip, as they come.

::

    timer = FrameTimer("videocore4", "pi3")
    with timer.stream() as stream:
        stream.put("job0000", frame)            # any number of frames, one after the other
    for one in stream.times:
        print(one.name, one.clocks, one.board("pi1").milliseconds)
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from queue import Queue
from types import TracebackType
from typing import TYPE_CHECKING, Any

from vc4lab.timing.boards import BoardSpeed, Speeds, board_of, speeds_of
from vc4lab.timing.chip import Chip, load_chip
from vc4lab.timing.result import BoardTime

if TYPE_CHECKING:
    from vc4lab.timing.frames.frame import Frame
    from vc4lab.timing.graphics.model import FrameModel
    from vc4lab.timing.graphics.result import FrameTiming

WAITING = 2
"""Frames that wait for a model; who has more of them waits, so that memory is bounded."""


@dataclass(frozen=True)
class FrameTime:
    """A frame on every board; `timing`: on the board that is shown."""

    name: str
    timing: FrameTiming
    boards: tuple[BoardTime, ...]

    @property
    def clocks(self) -> int:
        """On the board that is shown."""
        return self.timing.clocks

    def board(self, name: str) -> BoardTime:
        """Its time on a board."""
        return next(one for one in self.boards if one.board == name)

    def to_json(self) -> dict[str, Any]:
        """Return it as plain values."""
        return {"name": self.name, "boards": [one.to_json() for one in self.boards], **self.timing.to_json()}


class FrameTimer:
    """Times frames on every board of a chip, or on one of them.

    chip: a name, a file, or a `Chip`; board: the one that is shown. Raises BadChip, ValueError,
    OSError.
    """

    def __init__(
        self, chip: Chip | str | os.PathLike[str] = "videocore4", board: str = "", *, only: bool = False
    ) -> None:
        self.chip = chip if isinstance(chip, Chip) else load_chip(chip)
        self.board = board_of(self.chip, board)
        speeds = speeds_of(self.chip)
        if only:
            speeds = Speeds({self.board: speeds.of_board[self.board]})
        self.speeds = speeds

    @property
    def speed(self) -> BoardSpeed:
        """How fast the board that is shown is."""
        return self.speeds.of_board[self.board]

    @property
    def hertz(self) -> float:
        """The V3D's clock there."""
        return self.speed.clock

    def stream(self, on_time: Callable[[FrameTime], object] | None = None) -> FrameStream:
        """Frames that follow one another. on_time: called with each, instead of keeping them."""
        return FrameStream(self, on_time)


class FrameStream:
    """Frames that follow one another: while one is rendered the next is binned.

    Each speed of the boards has a model in a thread of its own. Use it as a context manager: at the
    end of the block all frames are timed. `times` has them; `error` what a model raised.
    """

    def __init__(self, timer: FrameTimer, on_time: Callable[[FrameTime], object] | None) -> None:
        self.times: list[FrameTime] = []
        self._timer = timer
        self._on_time = on_time or self.times.append
        self._models = {speed: _Model(timer.chip, speed, self._done) for speed in timer.speeds.distinct}
        self._lock = threading.Lock()
        self._names: dict[int, str] = {}
        self._found: dict[int, dict[BoardSpeed, FrameTiming]] = {}
        self._count = 0

    @property
    def error(self) -> Exception | None:
        """The exception that a model raised (StandsStill, BadChip, NotTimed), or None."""
        return next((one.error for one in self._models.values() if one.error is not None), None)

    def __enter__(self) -> FrameStream:
        for model in self._models.values():
            model.start()
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        for model in self._models.values():
            model.end()

    def put(self, name: str, frame: Frame) -> None:
        """Another frame; returns when the models have room for it."""
        with self._lock:
            self._names[self._count] = name
            self._count += 1
        for model in self._models.values():
            model.put(frame)

    def _done(self, speed: BoardSpeed, number: int, timing: FrameTiming) -> None:
        """A model has timed a frame; they come in order from each of them."""
        with self._lock:
            found = self._found.setdefault(number, {})
            found[speed] = timing
            if len(found) < len(self._models):
                return
            del self._found[number]
            clocks = {speed: one.clocks for speed, one in found.items()}
            shown = found[self._timer.speed]
            name = self._names.pop(number)
            self._on_time(FrameTime(name, shown, self._timer.speeds.times(clocks)))


class _Model(threading.Thread):
    """A model that takes frames from a queue."""

    def __init__(
        self, chip: Chip, speed: BoardSpeed, done: Callable[[BoardSpeed, int, FrameTiming], None]
    ) -> None:
        super().__init__(daemon=True, name=f"model {speed.clock:g} {speed.memory:g}")
        self.error: Exception | None = None
        self._chip, self._speed, self._report = chip, speed, done
        self._queue: Queue[Frame | None] = Queue(WAITING)

    def put(self, frame: Frame) -> None:
        """Waits for room."""
        self._queue.put(frame)

    def end(self) -> None:
        """No more frames; waits until all are timed."""
        self._queue.put(None)
        self.join()

    def run(self) -> None:
        """The thread."""
        frames = self._frames()
        try:
            timings = model_of(self._chip, self._speed).run(frames)
            for number, timing in enumerate(timings):
                self._report(self._speed, number, timing)
        except Exception as error:
            self.error = error
        for _ in frames:  # what is left is not timed, but must not fill the queue
            pass

    def _frames(self) -> Iterator[Frame]:
        while (frame := self._queue.get()) is not None:
            yield frame


def model_of(chip: Chip, speed: BoardSpeed) -> FrameModel:
    """A model of a chip on a board."""
    from vc4lab.timing.graphics.model import FrameModel

    return FrameModel(chip, speed)


def steady_timing(model: FrameModel, frame: Frame) -> FrameTiming:
    """A frame among frames like it: while it is rendered, the next one is binned.

    Raises StandsStill, BadChip, NotTimed.
    """
    first = next(iter(model.run([frame, frame])))
    return replace(first, clocks=first.clocks - first.binning)  # its own, before it


def clocks_of(chip: Chip, speed: BoardSpeed, frames: Iterable[Frame]) -> list[int]:
    """The clocks of frames that follow one another. Raises StandsStill, BadChip, NotTimed."""
    return [timing.clocks for timing in model_of(chip, speed).run(frames)]
