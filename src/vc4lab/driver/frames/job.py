"""A frame that is being drawn: its clears and draws until something needs the pixels.

A program that clears its window and draws to it, then to textures, and then to the window again has
one frame for the window in this way: what was drawn need not be stored, and loaded again. Frames
that wait do not depend on each other: none reads or writes what another one writes. The frame at
hand may read what they write; then they are drawn before it.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from vc4lab.bounded import Bounded
from vc4lab.driver.frames.target import FIRST_BLOCK, FrameTarget, RenderPlan, clear_records, rendering_list
from vc4lab.driver.gpu.memory import PAGE, TILE_MEMORY, TILE_MEMORY_BYTES
from vc4lab.driver.gpu.runner import Lists
from vc4lab.images.tiling import round_up
from vc4lab.records import declarations as d
from vc4lab.records import states
from vc4lab.records.codes import BlockSize, ListData, ListPrimitive
from vc4lab.records.control import build

if TYPE_CHECKING:
    from vc4lab.driver.draws.frame_draws import FrameDraws, KeptDraws, PlacedDraw, Vertices
    from vc4lab.driver.draws.prepared import PreparedDraw
    from vc4lab.driver.gpu.memory import GpuMemory, GpuResource
    from vc4lab.mesa.state.pipe import Framebuffer

MOST_LISTS = 16
"""Lists of some kilobytes each."""
STATE_BYTES = 48
"""Bytes of a tile in the tile state data array."""
DEPTH, STENCIL, COLOUR0 = 1, 2, 4
"""Bits of a clear's buffers."""
ZS = DEPTH | STENCIL


class FrameSurfaces(NamedTuple):
    """Surfaces that frames go to.

    Attributes
    ----------
    number
        From 1 on; none comes again for other surfaces.
    lists
        Rendering lists that frames had, by what is done with the tiles.
    """

    framebuffer: Framebuffer
    target: FrameTarget
    number: int
    lists: Bounded[tuple[int, ...], bytes]


class FrameJob:
    """Clears and draws for one frame buffer; its draws are added to `draws`, which are none yet.

    Attributes
    ----------
    surfaces
        The surfaces that it draws to.
    writes, reads
        Resources that it draws to, and those that its draws use.
    drawn
        The numbers of its draws in the program's frame.
    assumed_stencil
        The value of all of the stencil when only the depth was cleared, to which the stencil was
        cleared again; None: it was not.
    """

    def __init__(self, surfaces: FrameSurfaces, draws: FrameDraws) -> None:
        self._draws = draws
        self.surfaces = surfaces
        self.framebuffer = framebuffer = surfaces.framebuffer
        self.target = surfaces.target
        self.writes: dict[int, GpuResource] = {}
        for one in (*framebuffer.cbufs, framebuffer.zsbuf):
            if one is not None:
                resource: Any = one.resource
                self.writes[resource.number] = resource
        self.reads: dict[int, GpuResource] = {}
        self.cleared = 0
        self.drawn: list[int] = []
        self._kept: KeptDraws | None = None
        """Its draws, while another frame gets some (`FramesAside`)."""
        self.uses_depth = False
        self.writes_depth = False
        self.writes_stencil = False
        self.assumed_stencil: int | None = None
        self._colour = self._depth = self._stencil = 0

    def again(self) -> FrameJob:
        """A frame that begins in the same way, before its first draw."""
        made = object.__new__(FrameJob)
        made.__dict__.update(self.__dict__, reads={}, drawn=[])
        return made

    def can_clear(self, buffers: int) -> bool:
        """Whether a clear of these can still be the tile buffer's."""
        if self.draws:
            return False
        zs = buffers & ZS
        if zs == DEPTH and self._depth_resource.stencil is not None:
            return True
        return not (zs and zs != ZS and self.target.has_stencil and not self.cleared & ZS)

    def clear(self, buffers: int, colour: int, depth: int, stencil: int) -> None:
        """Begin with these values; `colour` in the tile buffer's order, `depth` of 24 bits."""
        if not self.target.has_stencil and buffers & ZS:
            buffers |= ZS
        elif buffers & ZS == DEPTH and not self.cleared & ZS:
            # The tile buffer clears both. All of the stencil is one value: it is that again.
            self.assumed_stencil = stencil = self._depth_resource.stencil or 0
            buffers |= STENCIL
        if buffers & COLOUR0:
            self._colour = colour
        if buffers & DEPTH:
            self._depth = depth
        if buffers & STENCIL:
            self._stencil = stencil
        self.cleared |= buffers
        self.uses_depth |= bool(buffers & ZS)
        self.writes_depth |= bool(buffers & ZS)

    @property
    def draws(self) -> int:
        """How many it has."""
        return self._draws.sink.draws if self._kept is None else self._kept.draws

    @property
    def is_aside(self) -> bool:
        """Whether it waits while another frame gets its draws."""
        return self._kept is not None

    def put_aside(self) -> None:
        """Another frame gets its draws next."""
        self._kept = self._draws.keep()

    def go_on(self) -> None:
        """It gets draws next, the first ones or more of them."""
        self._draws.begin(self.surfaces.number, self._kept)
        self._kept = None

    def add(self, placed: PlacedDraw, blocks: tuple[int, int], vertices: Vertices | None = None) -> bool:
        """Add a draw, with the blocks of its stages' constants. Raises OutOfMemory.

        vertices: its own; False if they are not where they may be.
        """
        return self._draws.add(placed, blocks, vertices)

    def changes(self) -> None:
        """A draw's plan is changed, for once."""
        self._draws.changes()

    def depth(self, made: PreparedDraw) -> None:
        """Note what a draw needs of the depth buffer."""
        self.uses_depth |= made.uses_depth
        self.writes_depth |= made.writes_depth
        self.writes_stencil |= made.uses_stencil

    @property
    def _depth_resource(self) -> GpuResource:
        """The resource that `target.depth` is in."""
        assert self.framebuffer.zsbuf is not None
        resource: Any = self.framebuffer.zsbuf.resource
        found: GpuResource = resource
        return found

    @property
    def begins_the_same(self) -> bool:
        """Whether a frame that begins as this one did would do so by the same clears."""
        assumed = self.assumed_stencil
        return assumed is None or self._depth_resource.stencil == assumed

    def has_drawn(self) -> None:
        """It is drawn: what is known of its stencil."""
        if self.target.depth is None:
            return
        resource = self._depth_resource
        if self.writes_stencil or not self.target.has_stencil:
            resource.stencil = None
        elif self.cleared & STENCIL and resource.stencil != self._stencil:
            level = resource.levels[0]
            is_whole = (self.target.width, self.target.height) == (level.width, level.height)
            is_one = is_whole and len(resource.levels) == 1 and level.layers == 1
            resource.stencil = self._stencil if is_one else None

    @property
    def has_work(self) -> bool:
        """Whether anything is to be done."""
        return bool(self.draws or self.cleared)

    @property
    def has_only_blits(self) -> bool:
        """Whether all its draws are blits, as those that make mip levels."""
        return bool(self.draws) and not self.drawn

    def lists(self, memory: GpuMemory) -> Lists:
        """Both lists, in the arena. Raises OutOfMemory."""
        columns, rows = self.target.tiles
        tile_lists = round_up(TILE_MEMORY + STATE_BYTES * columns * rows, PAGE)
        start = end = 0
        if self.draws:
            begin = _begin(tile_lists, columns, rows, is_sampled=self.target.is_sampled)
            records = self._draws.records if self._kept is None else self._kept.records
            data = begin + records + _END
            start = memory.keep(data)
            end = start + len(data)
        data = self._rendering_list(tile_lists if self.draws else 0)
        place = memory.keep(data)
        return Lists(start, end, place, place + len(data))

    def _rendering_list(self, tile_lists: int) -> bytes:
        """The whole list; most frames have the one of the frame before."""
        loads_colour = self.target.colour is not None and not self.cleared & COLOUR0
        loads_depth = self.uses_depth and self.cleared & ZS != ZS
        moves = loads_colour, loads_depth, self.writes_depth
        key = tile_lists, *moves, self.cleared, self._colour, self._depth, self._stencil
        known = self.surfaces.lists.get(key)
        if known is None:
            known = rendering_list(RenderPlan(self.target, tile_lists, *moves))
            if self.cleared:
                known = clear_records(self._colour, self._depth, self._stencil) + known
            self.surfaces.lists[key] = known
        return known


@lru_cache(maxsize=64)
def _begin(tile_lists: int, columns: int, rows: int, *, is_sampled: bool) -> bytes:
    """The records before the draws of a binning list."""
    mode = build(
        d.TileBinningMode,
        address=tile_lists,
        memory_size=TILE_MEMORY + TILE_MEMORY_BYTES - tile_lists,
        state_address=TILE_MEMORY,
        tiles_x=columns,
        tiles_y=rows,
        multisample=is_sampled,
        auto_initialise=1,
        initial_block=BlockSize.B32,
        block=BlockSize.B128,
    )
    return mode + build(d.StartTileBinning) + build(states.PrimitiveListFormat, **_TRIANGLES)


_TRIANGLES = {"type": ListPrimitive.TRIANGLES, "data": ListData.INDEX16}
_END = build(d.IncrementSemaphore) + build(d.Flush)
assert BlockSize.B32.size == FIRST_BLOCK


MOST = 8


class FramesAside:
    """Those of a queue, the oldest first."""

    def __init__(self) -> None:
        self._jobs: list[FrameJob] = []

    def __len__(self) -> int:
        return len(self._jobs)

    @property
    def is_full(self) -> bool:
        """Whether there is no room for another one."""
        return len(self._jobs) >= MOST

    def put(self, job: FrameJob) -> None:
        """One more. What it depends on was drawn, and there is room for it."""
        job.put_aside()
        self._jobs.append(job)

    def take(self, framebuffer: Framebuffer) -> FrameJob | None:
        """The frame that goes to these surfaces goes on."""
        for job in self._jobs:
            if job.framebuffer is framebuffer or job.framebuffer == framebuffer:
                self._jobs.remove(job)
                return job
        return None

    def take_those(self, writes: Collection[int] | None, reads: Collection[int] = ()) -> list[FrameJob]:
        """Frames that come before what writes to these resources and reads those, by number (None:
        all frames), to be drawn now.
        """
        taken = [
            job
            for job in self._jobs
            if writes is None
            or any(number in writes or number in reads for number in job.writes)
            or any(number in writes for number in job.reads)
        ]
        if taken:
            self._jobs = [job for job in self._jobs if job not in taken]
        return taken
