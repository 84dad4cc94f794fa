"""The event with the pieces of work of tiles that were drawn: `events.FrameWork`."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from vc4lab.v3d.draws.preparation import DrawPreparer
from vc4lab.v3d.events import DrawWork, FrameWork
from vc4lab.v3d.tile_lists.list_vertices import ListReader
from vc4lab.v3d.tile_lists.scan_context import EXPANDED, Segment
from vc4lab.v3d.tiles.job import TileOp

if TYPE_CHECKING:
    from vc4lab.v3d.state.frame_mode import FrameMode
    from vc4lab.v3d.tile_lists.scan_context import ScanResult
    from vc4lab.v3d.tiles.collector import Collector
    from vc4lab.v3d.tiles.job import Draw, NativeFrame
    from vc4lab.v3d.tiles.threads import TileThreads

_WORD = 4


class WorkReporter:
    """Makes the event; kept while there is a listener."""

    def __init__(self, preparer: DrawPreparer) -> None:
        self._preparer = preparer
        self._reader = ListReader(preparer.memory.base)

    def event(
        self,
        mode: FrameMode,
        frame: NativeFrame,
        threads: TileThreads,
        collector: Collector,
        scan: ScanResult,
        draws: Sequence[Draw],
    ) -> FrameWork:
        """Make the event for what a frame took that has just been drawn."""
        recorded, lost = threads.recorded(frame)
        sizes, vertices, more_lost = self._reader.read(scan)
        pieces, job = collector.context, frame.job
        return FrameWork(
            mode.address,
            mode.width,
            mode.height,
            mode.multisample,
            mode.wide_colour,
            int(job.tile_width),
            int(job.tile_height),
            self._draws(scan, draws),
            tuple(frame.surface_list),
            _bytes(job.ops, TileOp.size * frame.chains[frame.count]),
            _bytes(job.chains, _WORD * (frame.count + 1)),
            _pairs(pieces.pieces, pieces.piece_ends, pieces.piece_count),
            _bytes(scan.tile_offsets, _WORD * (pieces.piece_count + 1)),
            _bytes(scan.segments, Segment.size * scan.segment_count),
            sizes,
            vertices,
            **recorded,
            lost=lost + more_lost,
        )

    def _draws(self, scan: ScanResult, draws: Sequence[Draw]) -> tuple[DrawWork, ...]:
        """The distinct render states."""
        uses = scan.draws
        records = _first_lists(scan)
        if any(use.state.list_format & EXPANDED for use in uses):
            records = scan.first_records()
        found = []
        for number, (use, draw) in enumerate(zip(uses, draws, strict=True)):
            made = draw.keep
            work = DrawWork(
                use.state,
                self._preparer.shader(use),
                records.get(number),
                use.primitives,
                use.vertices,
                None if made is None else made.pipeline,
                () if made is None else tuple(made.textures),
            )
            found.append(work)
        return tuple(found)


def _first_lists(scan: ScanResult) -> dict[int, int]:
    """The guest address of the first list of each draw."""
    import numpy as np

    data = _bytes(scan.segments, Segment.size * scan.segment_count)
    words = np.frombuffer(data, np.uint32).reshape(-1, Segment.size // _WORD)
    draws, first = np.unique(words[:, 1], return_index=True)
    return dict(zip(draws.tolist(), words[first, 2].tolist(), strict=True))


def _bytes(place: Any, size: int) -> bytes:
    return ctypes.string_at(place, size) if size else b""


def _pairs(starts: int, ends: int, count: int) -> bytes:
    """Two arrays of words as one of pairs."""
    import numpy as np

    arrays = [np.frombuffer(_bytes(place, _WORD * count), np.int32) for place in (starts, ends)]
    return np.stack(arrays, axis=1).tobytes()
