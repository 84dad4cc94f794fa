"""What worker threads are told to do with a frame: tiles, operations, draws, as native arrays.

A *chain* is a list of operations that must run in order on one tile buffer: usually one tile, or
several if a store leaves the buffer uncleared. Chains are independent of each other.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from vc4lab.simd import Array, Struct, i32, ptr
from vc4lab.v3d.state.surface import Surface, SurfaceOp
from vc4lab.v3d.state.tile_context import COUNTERS
from vc4lab.v3d.state.tile_layout import (
    LAYOUTS,
    MULTISAMPLE,
    PART_COLOUR,
    PART_ZS,
    SINGLE,
    TileLayout,
)

if TYPE_CHECKING:
    from vc4lab.memory import GuestMemory

OP_TILE, OP_CLEAR_COLOUR, OP_CLEAR_ZS, OP_LOAD, OP_STORE, OP_DRAW, OP_DRAW_PIECES = range(7)
OP_CLEAR_MASK, OP_LOAD_FULL, OP_STORE_FULL, OP_NOTHING = range(7, 11)
"""Kinds of `TileOp`: a, b = tile's first pixel | words | word | surface | surface | segments
(first, count) | pieces of list (first, count; `TileJob.piece_first` says which segments a piece
has) | byte | guest address and parts (`PART_COLOUR` …) | the same | nothing."""

OP_WORDS = 4

STATUS_WORDS = 3
"""Words of a chain in `TileJob.statuses`: status, draw, address that a program was left for."""

FIRST_BUDGET = 1 << 16
"""Instructions in loops that a program may execute for a block of pixels at first. A tile where it
needs more is set aside (`TileScheduler`): an endless program would have all tiles of a frame wait.
"""


class TileOp(Struct):
    """One operation of a chain."""

    kind = i32
    a = i32
    b = i32
    reserved = i32


class DrawEntry(Struct):
    """A draw as native code calls it: function and parameters."""

    function = ptr
    params = ptr


class TileJob(Struct):
    """The arrays of one frame. `order` lists the chains to run; `next` is the shared counter.

    `failed` is not 0 when a chain's status is not OK; only then do `statuses` hold anything new.
    `budget`: instructions in loops that a fragment program may execute for a block of pixels.
    """

    memory = ptr
    next = i32
    order_count = i32
    failed = i32
    order = ptr
    chains = ptr
    ops = ptr
    segments = ptr
    piece_first = ptr
    draws = ptr
    surfaces = ptr
    statuses = ptr
    tile_width = i32
    tile_height = i32
    frame_width = i32
    frame_height = i32
    mode = i32
    budget = i32
    records = ptr  # a TileRecord for each operation; for the variant that records
    contexts = ptr  # host address of the TileContext of each thread


class TileRecord(Struct):
    """What drawing a tile took, in the place of its `OP_TILE`: `COUNTERS`, by this chain's last
    run. Members of other operations stay 0.
    """

    counters = Array(i32, len(COUNTERS))
    reserved = i32


@dataclass
class Draw:
    """One draw of a frame on the Python side.

    Attributes
    ----------
    function, params
        Host addresses of the pipeline's entry point and of its `DrawParams`.
    fallback
        Called once if tiles need the exact pipeline, with their share of the frame's tiles;
        returns that pipeline's entry point.
    keep
        Whatever must stay alive while the draw can run.
    program
        Equal for draws with the same fragment program.
    """

    function: int
    params: int
    fallback: Callable[[float], int] | None = None
    keep: Any = None
    program: Any = None


@dataclass
class FrameWork:
    """A frame under construction: `begin_tile`, `clear`, `load`, `draw`, `store` in list order.

    `segments` is the host address of `Segment` structs (tile, draw, list address, count) as the
    scan of the tile lists leaves them.
    """

    memory: GuestMemory
    width: int
    height: int
    draws: list[Draw] = field(default_factory=list)
    segments: int = 0
    tile_width: int = 64
    tile_height: int = 64
    layout: TileLayout = SINGLE
    ops: list[int] = field(default_factory=list)
    chains: list[int] = field(default_factory=list)
    surfaces: list[Surface] = field(default_factory=list)
    keep: list[Any] = field(default_factory=list)

    def begin_chain(self) -> None:
        """What follows does not depend on what the tile buffer held before."""
        self.chains.append(len(self.ops) // OP_WORDS)

    def tile(self, column: int, row: int) -> None:
        """Record 115: the tile that following operations work on."""
        self._op(OP_TILE, column * self.tile_width, row * self.tile_height)

    def clear(
        self,
        colour: int | None,
        zs: int | None,
        colour_high: int | None = None,
        mask: int | None = None,
    ) -> None:
        """Fills the tile buffer; `zs` is Z << 8 | stencil; None leaves a buffer alone.

        `colour_high` is the second colour word of record 114 (default: the same again).
        """
        if colour is not None:
            self._op(OP_CLEAR_COLOUR, colour, colour if colour_high is None else colour_high)
        if zs is not None:
            self._op(OP_CLEAR_ZS, zs)
        if mask is not None:
            self._op(OP_CLEAR_MASK, mask)

    def load(self, surface: Surface) -> None:
        """Fills the tile buffer from memory."""
        self._op(OP_LOAD, self._surface(surface))

    def load_full(self, address: int, parts: int = PART_COLOUR | PART_ZS) -> None:
        """Fills the tile buffer with what `store_full` wrote."""
        self._op(OP_LOAD_FULL, address, parts)

    def store_full(self, address: int, parts: int = PART_COLOUR | PART_ZS) -> None:
        """Writes parts of the tile buffer as they are, one after the other."""
        self._op(OP_STORE_FULL, address, parts)

    def draw(self, first: int, count: int) -> None:
        """Draws `count` segments."""
        if count:
            self._op(OP_DRAW, first, count)

    def store(self, surface: Surface) -> None:
        """Writes the tile to memory (clearing afterwards is a separate `clear`)."""
        self._op(OP_STORE, self._surface(surface))

    def set_segments(self, segments: Sequence[tuple[int, int]]) -> None:
        """Segments from (draw number, list address) pairs, for callers without a scan."""
        words: list[int] = []
        for draw, address in segments:
            words += [0, draw, address & 0xFFFFFFFF, 0]
        array = (ctypes.c_uint32 * max(len(words), 1))(*words)
        self.segments = ctypes.addressof(array)
        self.keep.append(array)

    def _op(self, kind: int, a: int, b: int = 0) -> None:
        if not self.chains:
            self.begin_chain()
        self.ops += (kind, a & 0xFFFFFFFF, b & 0xFFFFFFFF, 0)

    def _surface(self, surface: Surface) -> int:
        if surface in self.surfaces:
            return self.surfaces.index(surface)
        self.surfaces.append(surface)
        return len(self.surfaces) - 1


def _in_order(count: int) -> Any:
    """An array of the numbers from 0 on."""
    return (ctypes.c_int32 * max(count, 1)).from_buffer_copy(_numbers(count))


@lru_cache(maxsize=64)
def _numbers(count: int) -> bytes:
    return bytes((ctypes.c_int32 * max(count, 1))(*range(count)))


class NativeFrame:
    """The native arrays of a frame; keeps them alive.

    Parameters
    ----------
    memory, width, height
        Guest memory and the frame's size in pixels.
    draws, surfaces
        What segments and operations refer to by number.
    ops, chains
        ctypes arrays of `TileOp` and of the number of each chain's first operation; `chains` has
        one more element, the number of operations.
    segments, piece_first
        Host addresses of the scan's results (`piece_first` only for `OP_DRAW_PIECES`).
    """

    def __init__(
        self,
        memory: GuestMemory,
        width: int,
        height: int,
        *,
        draws: Sequence[Draw],
        surfaces: Sequence[Surface],
        ops: Any,
        chains: Any,
        count: int,
        segments: int,
        piece_first: int = 0,
        tile: tuple[int, int] = (64, 64),
        layout: TileLayout = SINGLE,
        keep: Any = None,
    ) -> None:
        self.draw_list = draws
        self.surface_list = surfaces
        self.provided = False
        """Whether the surfaces have their movers."""
        self._reordered = False
        self.count = count
        self.ops, self.chains, self.keep = ops, chains, keep
        self.order = _in_order(count)
        self.records: Any = None
        """`TileRecord`s, if they were asked for."""
        self.statuses = (ctypes.c_int32 * (STATUS_WORDS * max(count, 1)))()
        self.draws: Any = getattr(draws, "table", None)  # filled already
        if self.draws is None:
            self.draws = (ctypes.c_uint64 * (2 * max(len(draws), 1)))()
            for number, draw in enumerate(draws):
                self.draws[2 * number] = draw.function
                self.draws[2 * number + 1] = draw.params
        self.surfaces = (ctypes.c_char * (SurfaceOp.size * max(len(surfaces), 1)))()
        for number, surface in enumerate(surfaces):
            place = ctypes.addressof(self.surfaces) + number * SurfaceOp.size
            ctypes.memmove(place, surface.as_bytes, SurfaceOp.size)
        job = TileJob()
        self.job = job
        self.address: int = job.address
        """Host address of the `TileJob`."""
        job.memory = memory.base
        job.next, job.order_count = 0, count
        for name in ("order", "chains", "ops", "draws", "surfaces", "statuses"):
            setattr(job, name, ctypes.addressof(getattr(self, name)))
        job.segments, job.piece_first = segments, piece_first
        job.tile_width, job.tile_height = tile
        job.frame_width, job.frame_height = width, height
        job.mode = LAYOUTS.index(layout)
        job.budget = FIRST_BUDGET

    @classmethod
    def of(cls, work: FrameWork) -> NativeFrame:
        """The arrays of a frame that was put together in Python."""
        ends = [*work.chains, len(work.ops) // OP_WORDS]
        return cls(
            work.memory,
            work.width,
            work.height,
            draws=work.draws,
            surfaces=work.surfaces,
            ops=(ctypes.c_uint32 * max(len(work.ops), 1))(*work.ops),
            chains=(ctypes.c_int32 * len(ends))(*ends),
            count=len(work.chains),
            segments=work.segments,
            tile=(work.tile_width, work.tile_height),
            layout=work.layout,
            keep=work,
        )

    def renew(self, ops: Any, chains: Any, segments: int, piece_first: int) -> None:
        """Another frame of the same shape: as many chains, the same surfaces and draws' table."""
        if self._reordered:
            self._reordered = False
            ctypes.memmove(self.order, _numbers(self.count), ctypes.sizeof(self.order))
        job = self.job
        if ops is not self.ops or chains is not self.chains:
            self.ops, self.chains = ops, chains
            job.ops, job.chains = ctypes.addressof(ops), ctypes.addressof(chains)
        job.next, job.order_count, job.failed = 0, self.count, 0
        job.segments, job.piece_first = segments, piece_first

    @property
    def is_work(self) -> bool:
        """Whether more is to be done than moving words: draws, or samples that become pixels."""
        return bool(self.draw_list) or bool(self.job.mode & MULTISAMPLE)

    def provide_records(self) -> None:
        """Empty `records`, one for each operation."""
        size = TileRecord.size * max(self.chains[self.count], 1)
        self.records = (ctypes.c_char * size)()
        self.job.records = ctypes.addressof(self.records)

    def set_mover(self, number: int, to_memory: bool, address: int) -> None:
        """Host address of the native code that stores to (or loads from) a surface."""
        place = number * SurfaceOp.size + SurfaceOp.offset("storer" if to_memory else "loader")
        ctypes.c_uint64.from_buffer(self.surfaces, place).value = address

    def again(self, chains: list[int]) -> None:
        """Prepares another run of some chains only."""
        self._reordered = True
        for place, chain in enumerate(chains):
            self.order[place] = chain
            self.statuses[STATUS_WORDS * chain] = 0
        self.job.next, self.job.order_count, self.job.failed = 0, len(chains), 0

    def failed(self) -> list[tuple[int, int, int, int]]:
        """(chain, draw, status, address that a program was left for) of the chains that a draw
        stopped in this run.
        """
        if not self.job.failed:
            return []
        words, found = self.statuses, []
        for chain in sorted(self.order[: self.job.order_count]):
            status, draw, left = words[STATUS_WORDS * chain : STATUS_WORDS * (chain + 1)]
            if status:
                found.append((chain, draw, status, left))
        return found
