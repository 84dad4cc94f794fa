"""Abandons a job in which no tile is completed: its shaders end, but take far too long.

A shader that never ends is found at once by its count of instructions. On a board the kernel resets
the chip when a tile takes longer than a tenth of a second.
"""

from __future__ import annotations

import threading
import time
import weakref
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vc4lab.v3d.draws.frame import FrameRenderer

LOOK_SECONDS = 1.0
PATIENCE = 10.0
"""Seconds for one tile; tiles of programs that are meant to be seen take milliseconds."""


class Watchdog:
    """Looks at a renderer once a second, in a thread of its own."""

    def __init__(self, frames: FrameRenderer) -> None:
        self.frames = frames
        self.patience = PATIENCE
        self._end = threading.Event()
        weakref.finalize(self, self._end.set)
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Begin to look."""
        if self._thread is None:
            self._end.clear()
            self._thread = threading.Thread(
                target=_look_on, args=(weakref.ref(self), self._end, self.pause),
                name="vc4lab-watchdog", daemon=True,
            )  # fmt: skip
            self._thread.start()

    def stop(self) -> None:
        """No more looks."""
        self._end.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    @property
    def pause(self) -> float:
        """Seconds between two looks."""
        return min(LOOK_SECONDS, self.patience)

    def look(self, seen: _Seen) -> None:
        """Give up what has not come on for too long."""
        now, progress = time.monotonic(), self.frames.progress
        if progress is None or progress != seen.progress:
            seen.progress, seen.since = progress, now
        elif now - seen.since >= self.patience:
            self.frames.abandon()


class _Seen:
    """How far the renderer had come, and since when."""

    def __init__(self) -> None:
        self.progress: tuple[int, ...] | None = None
        self.since = 0.0


def _look_on(owner: weakref.ref[Watchdog], end: threading.Event, pause: float) -> None:
    """The thread. While it waits it keeps no one alive."""
    seen = _Seen()
    while not end.wait(pause):
        watchdog = owner()
        if watchdog is None:
            return
        watchdog.look(seen)
        pause = watchdog.pause
        del watchdog
