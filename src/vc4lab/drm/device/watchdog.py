"""Gives a job up in which no tile comes to its end: its shaders end, but take next to for ever.

A shader that never ends is found by its own count of instructions, at once. The chip, where a tile
with such loops takes longer than a tenth of a second, is reset by the kernel.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vc4lab.v3d.lists.frame import FrameRenderer

LOOK_SECONDS = 1.0
PATIENCE = 10.0
"""Seconds for one tile; tiles of programs that are meant to be seen take milliseconds."""


class Watchdog:
    """Looks at a renderer once a second, in a thread of its own."""

    def __init__(self, frames: FrameRenderer) -> None:
        self.frames = frames
        self.patience = PATIENCE
        self._end = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Begin to look."""
        if self._thread is None:
            self._end.clear()
            self._thread = threading.Thread(target=self._run, name="vc4lab-watchdog", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """No more looks."""
        self._end.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def _run(self) -> None:
        seen: tuple[int, ...] | None = None
        since = 0.0
        while not self._end.wait(min(LOOK_SECONDS, self.patience)):
            now, progress = time.monotonic(), self.frames.progress
            if progress is None or progress != seen:
                seen, since = progress, now
            elif now - since >= self.patience:
                self.frames.abandon()
