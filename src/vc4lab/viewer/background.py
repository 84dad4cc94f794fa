"""Recording a running program: frames are taken at once and packed by another thread."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from PIL.Image import Image

    from vc4lab.viewer.recorder import Recorder

BACKLOG = 8
"""Frames that may wait to be packed."""


class BackgroundRecorder:
    """Hands frames to a recorder in a thread of its own.

    Parameters
    ----------
    recorder
        Not to be used by others before `finish`.
    may_drop
        Leave frames out while too many wait; else the caller waits.
    """

    def __init__(self, recorder: Recorder, *, may_drop: bool) -> None:
        self._recorder = recorder
        self._may_drop = may_drop
        self._queue: queue.Queue[tuple[Callable[[], Image], int] | None] = queue.Queue(BACKLOG)
        self._last: int | None = None
        self.dropped = 0
        """Frames that were left out."""
        self._thread = threading.Thread(target=self._serve, name="recorder", daemon=True)
        self._thread.start()

    def wants(self, at: int) -> bool:
        """Whether a frame of time `at` (ns) would be kept."""
        return self._last is None or at - self._last >= self._recorder.step

    def add(self, image: Callable[[], Image], at: int) -> bool:
        """Take the frame of time `at` (ns), which `image` makes later; False if it was dropped."""
        try:
            self._queue.put((image, at), block=not self._may_drop)
        except queue.Full:
            self.dropped += 1
            return False
        self._last = at
        return True

    def finish(self) -> None:
        """Wait until all is packed."""
        self._queue.put(None)
        self._thread.join()

    def _serve(self) -> None:
        while (item := self._queue.get()) is not None:
            image, at = item
            self._recorder.add(image(), at)
