"""The history of a pixel: every primitive that touched it, in the order of the chip.

The job that drew the pixel runs again, its tile with the interpreter (`watch.py`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from vc4lab.debug.frame.copies import maker_in, maker_of, source_of
from vc4lab.debug.frame.index import cursors_of
from vc4lab.debug.frame.one_tile import keep_tile
from vc4lab.debug.frame.places import NoSuchPlace, surface_place
from vc4lab.debug.frame.tile_list import TileList, TilePrimitive, number_in_draw
from vc4lab.debug.frame.touch import Touch, outcome_of
from vc4lab.debug.frame.watch import PixelState, PixelWatch
from vc4lab.debug.kept_memory import KeptMemory
from vc4lab.jobs.pictures import surface_word
from vc4lab.jobs.walk import stored_ranges
from vc4lab.v3d.reference.fragment import batch_callback
from vc4lab.v3d.state.frame_mode import COLOUR
from vc4lab.v3d.state.tile_context import BlockWork, ListWork
from vc4lab.v3d.tiles.job import OP_DRAW_PIECES, OP_LOAD, OP_LOAD_FULL, OP_WORDS

if TYPE_CHECKING:
    from vc4lab.debug.frame.copies import TextureSource
    from vc4lab.debug.frame.index import FrameJob
    from vc4lab.debug.frame.runs import FrameRuns
    from vc4lab.debug.frame.stage import Stage
    from vc4lab.debug.frame.watch import Moment, Texel, WatchedBlock
    from vc4lab.v3d.events import DrawWork, FrameWork, ListBinned
    from vc4lab.v3d.state.frame_mode import FrameMode
    from vc4lab.v3d.tiles.collector import Collector


@dataclass
class PixelHistory:
    """Holds the history of a pixel in one job.

    Attributes
    ----------
    frame, x, y
        Number of the frame, and the pixel in the picture.
    job
        What drew it.
    tile
        First pixel of its tile.
    primitives
        All in the list of the tile.
    touches
        Those that have the pixel in a block which they cover, in order.
    end
        The pixel in the tile buffer when the tile was stored.
    final
        Its word in memory after the job; None: it was stored in full resolution, every sample.
    is_blue_first
        Whether colours have blue in their lowest byte.
    loaded
        The address of the surface (of the tile, in full resolution) from which the tile was loaded;
        None: it was cleared.
    earlier
        What happened to the pixel in the job of the frame that drew what was loaded.
    """

    frame: int
    x: int
    y: int
    job: FrameJob
    tile: tuple[int, int]
    primitives: list[TilePrimitive]
    touches: list[Touch]
    end: PixelState
    final: int | None
    is_blue_first: bool
    loaded: int | None = None
    earlier: PixelHistory | None = None

    @property
    def before(self) -> PixelState | None:
        """The pixel before the first touch; None: nothing touched it."""
        return self.touches[0].before if self.touches else None


class _Tile:
    """Draws the tile of a pixel, and keeps what came of it. wanted: see `PixelWatch`."""

    def __init__(
        self, stage: Stage, job: FrameJob, x: int, y: int, *, program: bool, wanted: int = -1
    ) -> None:
        self.stage, self.job = stage, job
        width, height = job.mode.tile(stage.v3d.unknowns)
        self.x, self.y = x // width * width, y // height * height
        self.watch = PixelWatch(x, y, job.mode.layout, program=program, wanted=wanted)
        self.works: tuple[DrawWork, ...] = ()
        self.primitives: list[TilePrimitive] = []
        self.touches: list[Touch] = []
        self.loaded: int | None = None
        self.end: PixelState | None = None
        self._cursors: list[tuple[int, int]] = []

    def binned(self, event: ListBinned, first: int) -> None:
        self._cursors += enumerate(cursors_of(event), first)

    def draw(self, mode: FrameMode, collector: Collector) -> None:
        if not keep_tile(collector, self.stage.memory.read, self.x, self.y):
            return
        frames, listeners = self.stage.v3d.frames, self.stage.v3d.listeners
        pipelines, threads = frames.preparer.pipelines, frames.tile_threads
        frames.preparer.forget()
        engine, pipelines.engine = pipelines.engine, "interpreter"
        self.watch.attach(threads)
        heard = listeners.frame_work.subscribe(self._done)
        try:
            frames.draw(mode, collector)
            self.end = self.watch.pixel()
        finally:
            heard.close()
            pipelines.engine = engine
            threads.give_blocks_to(batch_callback())
            frames.preparer.forget()

    def _done(self, event: FrameWork) -> None:
        self.loaded, self.works = _loaded(event), event.draws
        tile = TileList(self.stage.memory, event, self.job.draws, self._cursors)
        self.primitives = tile.primitives
        count = len(event.blocks) // BlockWork.size
        start = self.watch.recorded // BlockWork.size - count
        segments = _segments(event.lists)
        work: Any = BlockWork.python
        for block in self.watch.blocks:
            number = block.record - start
            if not 0 <= number < count:
                continue  # of a run that was repeated
            recorded = work.from_buffer_copy(event.blocks, number * BlockWork.size)
            primitive = tile.at(segments[number], recorded.position)
            self.touches.append(self._touch(block, recorded, primitive, event))

    def _touch(
        self, block: WatchedBlock, recorded: Any, primitive: TilePrimitive | None, event: FrameWork
    ) -> Touch:
        work = event.draws[block.state]
        state = work.state
        covered = bool(recorded.covered >> block.lane & 1)
        outcome, why = outcome_of(block, state, covered)
        draw = primitive.draw if primitive is not None else None
        number = None
        if draw is not None and primitive is not None:
            number = number_in_draw(self.stage.memory, draw, primitive.vertices)
        config, code = int(state.config) & 0xFFFFFFFF, 0 if work.shader is None else work.shader.code
        sources = tuple(_source(work, one) for one in block.texels)
        return Touch(draw, number, primitive, covered, outcome, why, block, config, code, sources)


def _source(work: DrawWork, texel: Texel) -> TextureSource | None:
    """Return the texel that a request of a draw sampled; None: it is not known."""
    if work.pipeline is None or texel.number >= len(work.textures):
        return None
    return source_of(work.pipeline.key.textures[texel.number], work.textures[texel.number], texel.coordinates)


def _loaded(event: FrameWork) -> int | None:
    """Address of the colour surface that the tile is loaded from; None: it is not."""
    ops = np.frombuffer(event.ops, np.int32).reshape(-1, OP_WORDS)
    for kind, number in ops[:, :2].tolist():
        if kind == OP_LOAD and event.surfaces[number].buffer == COLOUR:
            return int(event.surfaces[number].address)
        if kind == OP_LOAD_FULL:
            return int(number) & 0xFFFFFFFF
        if kind == OP_DRAW_PIECES:
            break
    return None


def _segments(lists: bytes) -> list[int]:
    """The segment of each recorded block."""
    found: list[int] = []
    kind: Any = ListWork.python
    for place in range(0, len(lists), ListWork.size):
        one = kind.from_buffer_copy(lists, place)
        found += [int(one.segment)] * int(one.blocks)
    return found


def pixel_history(frame: FrameRuns, x: int, y: int, *, program: bool = False) -> PixelHistory:
    """Return the history of a pixel of a frame's picture. Raises NoSuchPlace, CaptureError."""
    job = frame.job
    colour = job.colour
    place = surface_place(colour, frame.shown) if frame.shown is not None and colour is not None else (0, 0)
    width, height = job.size
    if frame.shown is not None and place is not None:
        width, height = frame.shown.width, frame.shown.height
    if not (0 <= x < width and 0 <= y < height):
        raise NoSuchPlace(f"the picture of frame {frame.number} has {width}x{height} pixels: no ({x}, {y})")
    first_x, first_y = place or (0, 0)
    return history_of(frame, job, x + first_x, y + first_y, program=program)


def history_of(frame: FrameRuns, job: FrameJob, x: int, y: int, *, program: bool = False) -> PixelHistory:
    """Return the history of a pixel of a job's colour surface, in that job. Raises NoSuchPlace."""
    is_blue_first = frame.is_blue_first
    tile = _Tile(frame.stage, job, x, y, program=program)
    frame.stage.run_tile(job, x, y, tile.draw, tile.binned)
    if tile.end is None:
        raise NoSuchPlace(f"job {job.number} of frame {frame.number} has no tile with the pixel ({x}, {y})")
    return PixelHistory(
        frame.number,
        x,
        y,
        job,
        (tile.x, tile.y),
        tile.primitives,
        tile.touches,
        tile.end,
        None if job.colour is None else surface_word(frame.stage.memory, job.colour, x, y),
        is_blue_first,
        tile.loaded,
        _earlier(frame, job, x, y, tile.loaded, program=program),
    )


def moment_of(frame: FrameRuns, history: PixelHistory, touch: Touch) -> tuple[Moment, tuple[DrawWork, ...]]:
    """Return the moment before the program of a touch began, and the draws of its tile.

    The frame's memory is afterwards as it was then. Raises NoSuchPlace, CaptureError.
    """
    job, memory = history.job, frame.stage.memory
    order = touch.block.order
    tile = _Tile(frame.stage, job, history.x, history.y, program=False, wanted=order)

    def draw(mode: FrameMode, collector: Collector) -> None:
        before = KeptMemory(memory).take(stored_ranges(job.surfaces, job.stored))
        tile.draw(mode, collector)
        before.put_back()

    frame.stage.run_tile(job, history.x, history.y, draw, tile.binned)
    if tile.watch.moment is None:
        raise NoSuchPlace("the program was not run again")
    return tile.watch.moment, tile.works


def _earlier(
    frame: FrameRuns, job: FrameJob, x: int, y: int, loaded: int | None, *, program: bool
) -> PixelHistory | None:
    """Return the pixel's history in the job before that drew what was loaded; None: none did."""
    maker = None if loaded is None else maker_in(frame, job.number, loaded)
    if maker is None or not _has(maker, x, y):
        return None
    return history_of(frame, maker, x, y, program=program)


def followed(frame: FrameRuns, history: PixelHistory, source: TextureSource) -> PixelHistory | None:
    """The history of a texel that a touch of a history sampled; None: no captured job drew it.

    Raises CaptureError.
    """
    found = maker_of(frame, history.job, source.address)
    if found is None:
        return None
    where, job = found
    return history_of(where, job, source.column, source.row) if _has(job, source.column, source.row) else None


def loaded_by(frame: FrameRuns, history: PixelHistory) -> PixelHistory | None:
    """The history of the pixel in the job of a frame before that drew what was loaded.

    None: no captured job did. Raises CaptureError.
    """
    found = None if history.loaded is None else maker_of(frame, history.job, history.loaded)
    if found is None or not _has(found[1], history.x, history.y):
        return None
    return history_of(*found, history.x, history.y)


def _has(job: FrameJob, x: int, y: int) -> bool:
    """Whether a pixel is in what a job draws."""
    width, height = job.size
    return x < width and y < height
