"""The feed of frames: listens to a V3D while it draws, and makes tables of the work.

::

    with FrameFeed(v3d) as feed:
        ...                          # jobs run
        for frame in feed.take():
            print(frame.totals())
"""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Any

from vc4lab.listeners import Subscription
from vc4lab.timing.frames import build
from vc4lab.timing.frames.alone import binning_alone
from vc4lab.timing.frames.frame import Binning, Frame
from vc4lab.v3d.events import FrameWork, ListBinned, RecordsNoted

if TYPE_CHECKING:
    from vc4lab.v3d.core import V3D

MAX_BINNINGS = 64
"""Flushes that wait for the frame that uses their lists."""
MAX_PROGRAMS = 1024
"""Distinct programs that keep their numbers from frame to frame."""
MAX_NOTES = 1 << 28
"""Bytes of records that wait for a flush or frame; more belong to lists that have none."""


class FrameFeed:
    """Collects the frames that a V3D draws between the beginning and the end of a `with`.

    Parameters
    ----------
    v3d
        It draws as always, with pipelines that record: see README.md for what that costs.
    on_frame
        Called with each frame as soon as it is drawn; without it they are kept for `take`.

    on_binning
        Called with each flush as soon as it is complete, as a frame without tiles.

    A part of a frame that is drawn on its own, because a tile comes a second time, is a Frame, too.
    """

    def __init__(
        self,
        v3d: V3D,
        on_frame: Callable[[Frame], object] | None = None,
        on_binning: Callable[[Frame], object] | None = None,
    ) -> None:
        self._v3d = v3d
        self._on_binning = on_binning
        self._frames: list[Frame] = []
        self._on_frame: Callable[[Frame], object] = on_frame or self._frames.append
        self._subscriptions: list[Subscription[Any]] = []
        self._binning, self._main, self._in_tiles = _Notes(), _Notes(), _Notes()
        self._binnings: list[Binning] = []
        self._programs = build.Programs(v3d.memory, v3d.unknowns)

    def __enter__(self) -> FrameFeed:
        heard = self._v3d.listeners
        self._subscriptions = [
            heard.records_noted.subscribe(self._on_records),
            heard.list_binned.subscribe(self._on_binned),
            heard.frame_work.subscribe(self._on_work),
        ]
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        for one in self._subscriptions:
            one.close()
        self._subscriptions.clear()

    def take(self) -> list[Frame]:
        """The frames since the last call."""
        frames = self._frames[:]
        self._frames.clear()
        return frames

    def _on_records(self, event: RecordsNoted) -> None:
        if event.thread == 0:
            self._binning.add(event)
        elif event.pieces is not None:
            self._in_tiles.add(event)
        else:
            self._main.add(event)

    def _on_binned(self, event: ListBinned) -> None:
        notes, memory = self._binning.take(), self._v3d.memory
        self._binnings.append(build.binning(event, notes, memory, self._programs))
        del self._binnings[:-MAX_BINNINGS]
        if self._on_binning is not None:
            self._on_binning(binning_alone(self._binnings[-1], self._programs.words))

    def _on_work(self, event: FrameWork) -> None:
        main, in_tiles = self._main.take(), self._in_tiles.take()
        lists = build.addresses(in_tiles)
        used = [number for number, one in enumerate(self._binnings, 1) if one.holds(lists)]
        mine = self._binnings[: max(used, default=0)]
        del self._binnings[: len(mine)]
        found = build.frame(event, tuple(mine), main, in_tiles, self._programs)
        if len(found.programs) > MAX_PROGRAMS and not self._binnings:
            self._programs = build.Programs(self._v3d.memory, self._v3d.unknowns)
        self._on_frame(found)


class _Notes:
    """Records that belong to the next flush or frame, if it ever comes."""

    def __init__(self) -> None:
        self._events: list[RecordsNoted] = []
        self._bytes = 0

    def add(self, event: RecordsNoted) -> None:
        if self._bytes > MAX_NOTES:
            self.take()
        self._events.append(event)
        self._bytes += len(event.notes)

    def take(self) -> list[RecordsNoted]:
        events, self._events, self._bytes = self._events, [], 0
        return events
