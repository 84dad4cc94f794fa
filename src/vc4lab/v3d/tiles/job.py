"""The work of a frame for worker threads, as native arrays, and what drawing it took.

A *chain* is a list of operations that must run in order on one tile buffer: usually one tile, or
several if a store leaves the buffer uncleared. Chains are independent of each other. Threads of the
recording variant of the loop note what each tile took, and pieces of work in streams
(`../state/tile_context.py`).
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from vc4lab.memory.native import StreamMemory
from vc4lab.simd import Array, Struct, i32, ptr
from vc4lab.v3d.events import TileDrawn
from vc4lab.v3d.job_time import JOB_CLOCKS, JobCounts, job_clocks
from vc4lab.v3d.state.frame_mode import LAYOUTS, MULTISAMPLE, SINGLE, Surface, SurfaceOp, TileLayout, twins
from vc4lab.v3d.state.tile_context import COUNTERS, FIRST_WORK_COUNTER, STREAMS, ChainWork, TileWork

if TYPE_CHECKING:
    from vc4lab.memory import GuestMemory

OP_TILE, OP_CLEAR_COLOUR, OP_CLEAR_ZS, OP_LOAD, OP_STORE, OP_DRAW_PIECES = range(6)
OP_CLEAR_MASK, OP_LOAD_FULL, OP_STORE_FULL, OP_NOTHING = range(6, 10)
"""Kinds of `TileOp`: a, b = tile's first pixel | words | word | surface | surface | pieces of list
(first, count; `TileJob.piece_first` says which segments a piece has) | byte | guest address and
parts (`PART_COLOUR` …) | the same | nothing."""

OP_WORDS = 4

STATUS_WORDS = 3
"""Words of a chain in `TileJob.statuses`: status, draw, address that a program was left for."""

FIRST_BUDGET = 1 << 16
"""Instructions in loops that a program may execute for a block of pixels at first. A tile where it
needs more is set aside (`TileThreads`): an endless program would have all tiles of a frame wait.
"""


class TileOp(Struct):
    """One operation of a chain."""

    kind = i32
    a = i32
    b = i32
    reserved = i32


class DrawCall(Struct):
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
    works = ptr  # a ChainWork for each chain; for the variant that records pieces of work


class TileRecord(Struct):
    """Work of drawing a tile, in the place of its `OP_TILE`: `COUNTERS`, by this chain's last
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


class Draws(Protocol):
    """The draws of a frame; `table`: two u64 each, addresses of function and parameters."""

    table: Any

    def __len__(self) -> int: ...
    def __getitem__(self, number: int, /) -> Draw: ...


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
        draws: Draws,
        surfaces: Sequence[Surface],
        ops: Any,
        chains: Any,
        count: int,
        segments: int,
        piece_first: int = 0,
        tile: tuple[int, int] = (64, 64),
        layout: TileLayout = SINGLE,
        keep: object = None,
    ) -> None:
        self.draw_list = draws
        self.surface_list = surfaces
        self.provided = False
        """Whether the surfaces have their transfers."""
        self._reordered = False
        self.count = count
        self.ops, self.chains, self.keep = ops, chains, keep
        self.order = _in_order(count)
        self.records: Any = None
        """`TileRecord`s, if they were asked for."""
        self.works: Any = None
        """`ChainWork`s, if they were asked for."""
        self.statuses = (ctypes.c_int32 * (STATUS_WORDS * max(count, 1)))()
        self.draws: Any = draws.table
        self.surfaces = (ctypes.c_char * (SurfaceOp.size * max(len(surfaces), 1)))()
        for number, surface in enumerate(surfaces):
            place = ctypes.addressof(self.surfaces) + number * SurfaceOp.size
            ctypes.memmove(place, surface.as_bytes, SurfaceOp.size)
        for number, twin in enumerate(twins(surfaces, layout)):
            self._surface_word(number, "twin", ctypes.c_uint32).value = twin
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
        """Whether more is to be done than moving words: draws, or samples to be resolved."""
        return bool(self.draw_list) or bool(self.job.mode & MULTISAMPLE)

    def stored(self) -> list[tuple[int, int]]:
        """Guest address and size of what the frame's stores write in its surfaces, whole rows."""
        import numpy as np

        ops = np.frombuffer(self.ops, np.int32).reshape(-1, OP_WORDS)[: self.chains[self.count]]
        numbers = set(ops[ops[:, 0] == OP_STORE, 1].tolist())
        rows = ops[ops[:, 0] == OP_TILE, 2]
        if not numbers or not len(rows):
            return []
        first, end = int(rows.min()), int(rows.max()) + self.job.tile_height
        return [self.surface_list[number].rows(first, end) for number in sorted(numbers)]

    def provide_records(self) -> None:
        """Empty `records`, one for each operation."""
        size = TileRecord.size * max(self.chains[self.count], 1)
        self.records = (ctypes.c_char * size)()
        self.job.records = ctypes.addressof(self.records)

    def provide_works(self) -> None:
        """Empty `works`, one for each chain."""
        chain: Any = ChainWork.python
        self.works = (chain * max(self.count, 1))()
        self.job.works = ctypes.addressof(self.works)

    def set_transfer(self, number: int, to_memory: bool, address: int) -> None:
        """Host address of the native code that stores to (or loads from) a surface."""
        member = "storer" if to_memory else "loader"
        self._surface_word(number, member, ctypes.c_uint64).value = address

    def _surface_word(self, number: int, member: str, kind: Any) -> Any:
        place = number * SurfaceOp.size + SurfaceOp.offset(member)
        return kind.from_buffer(self.surfaces, place)

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


ROOM = {"lists": 1 << 26, "blocks": 1 << 28, "requests": 1 << 28, "lines": 1 << 29}
"""Bytes of each stream of a thread: some hundred times what a frame of a driver's program takes."""


class WorkMemory:
    """The streams of one thread. `address` is the host address of their `TileWork`."""

    def __init__(self) -> None:
        work = TileWork()
        self.work = work
        self.address: int = work.address
        self._parts = [StreamMemory(getattr(work, name), ROOM[name]) for name in STREAMS]

    def clear(self) -> None:
        """Nothing is recorded yet."""
        for part in self._parts:
            part.clear()

    def part(self, number: int, start: int, end: int) -> memoryview:
        """Bytes of a stream, by its number in STREAMS."""
        return self._parts[number].part(start, end)

    @property
    def lost(self) -> int:
        """How many records found no room."""
        return sum(part.stream.lost for part in self._parts)


def recorded(frame: NativeFrame, memories: Sequence[WorkMemory]) -> tuple[dict[str, bytes], int]:
    """Take what was recorded of a frame, chain by chain, by stream; and how many records were lost."""
    parts: list[list[memoryview]] = [[] for _ in STREAMS]
    for chain in range(frame.count):
        work = frame.works[chain]
        memory = memories[work.thread]
        for number, found in enumerate(parts):
            start, end = work.start[number], work.end[number]
            if end > start:
                found.append(memory.part(number, start, end))
    joined = {name: b"".join(found) for name, found in zip(STREAMS, parts, strict=True)}
    return joined, sum(memory.lost for memory in memories)


def tiles_drawn(frame: NativeFrame) -> tuple[TileDrawn, ...]:
    """The tiles of a frame that `TileThreads.run` has drawn with `record`, in list order.

    A list may name a tile's coordinates again and again while it works on it: that is one tile.
    """
    count = frame.chains[frame.count]
    ops = np.frombuffer(frame.ops, np.uint32, OP_WORDS * count).reshape(count, OP_WORDS)
    words = ctypes.sizeof(frame.records) // 4
    records = np.frombuffer(frame.records, np.int32, words).reshape(-1, TileRecord.size // 4)
    found: list[tuple[tuple[int, int], list[int]]] = []
    for number in (ops[:, 0] == OP_TILE).nonzero()[0].tolist():
        amounts = records[number, : len(COUNTERS)].tolist()
        x, y = ops[number, 1:3].tolist()
        if found and found[-1][0] == (x, y):
            amounts = list(map(int.__add__, found.pop()[1], amounts))
        found.append(((x, y), amounts))
    return tuple(_tile(*place, amounts) for place, amounts in found)


def _tile(x: int, y: int, amounts: list[int]) -> TileDrawn:
    clocks = job_clocks(JobCounts(0, 0, 0, *amounts[FIRST_WORK_COUNTER:])) - JOB_CLOCKS
    return TileDrawn(x, y, clocks, dict(zip(COUNTERS, amounts, strict=True)))
