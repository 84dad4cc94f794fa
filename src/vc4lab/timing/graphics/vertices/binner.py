"""The binner (PTB): cuts and culls primitives, and writes them into the lists of their tiles.

A draw is worked on in chunks: the primitives whose last vertex is in one batch. List memory is
written a block at a time, as blocks fill; a flush ends each tile's list and writes its last block.
"""

from __future__ import annotations

from vc4lab.memory import MEMORY_MASK
from vc4lab.simd import Value, call, const, i32, i64, kernel, load, max_, ptr, select, staged
from vc4lab.timing.clockwork import (
    Engine,
    count_busy,
    first_piece,
    instance_of,
    is_readable,
    queue_at,
    remove_piece,
    wake,
    wake_self,
)
from vc4lab.timing.compute.kinds import FRACTION, MemorySource
from vc4lab.timing.graphics.kinds import GraphicsModule, GraphicsQueue
from vc4lab.timing.graphics.requests import ask_memory
from vc4lab.timing.graphics.vertices.state import BINNING, Binner, Chunk
from vc4lab.timing.graphics.vertices.vertex_cache import batch_at, call_cache, release

_ROUND = (1 << FRACTION) - 1


@staged
def _chunk(binner: Binner) -> Chunk:
    return Chunk.at(binner.chunks + binner.chunk.sext(i64) * Chunk.size, 8)


@staged
def _take_item(engine: Engine, binner: Binner, clock: Value) -> None:
    """The next draw or flush."""
    queue = queue_at(engine, GraphicsQueue.BINNED, const(i32, 0))
    if call(is_readable, engine.pointer, queue.pointer, clock) != 0:
        place = binner.first_chunk + (first_piece(queue).place << 2)
        call(remove_piece, engine.pointer, queue.pointer, clock)
        binner.chunk = load(i32, place)
        binner.end = load(i32, place + 4)


@staged
def _take_shaded(engine: Engine, clock: Value) -> None:
    """A batch is shaded: the room of its attributes is free."""
    shaded = queue_at(engine, GraphicsQueue.SHADED, const(i32, BINNING))
    if call(is_readable, engine.pointer, shaded.pointer, clock) != 0:
        call(remove_piece, engine.pointer, shaded.pointer, clock)
        call_cache(engine, clock)


@staged
def _begin(binner: Binner, clock: Value) -> None:
    """Begins a chunk, if its vertices are there."""
    chunk = _chunk(binner)
    there = chunk.batch < 0
    if chunk.batch >= 0:
        there = batch_at(binner.batches, chunk.batch).done != 0
    if there:
        part = chunk.primitives.sext(i64) * binner.primitive_part
        part = part + chunk.entries.sext(i64) * binner.entry_part
        part = part + chunk.clipped.sext(i64) * binner.clip_part
        part = part + chunk.tiles.sext(i64) * binner.tile_part
        # what is left of a clock goes on with the chunk after it
        late = binner.end_part < (clock - 1) << FRACTION
        begins = select(late, clock << FRACTION, binner.end_part)
        binner.started_part = begins
        binner.end_part = begins + part
        binner.working = const(i32, 1)
        binner.written = const(i32, 0)


@staged
def _write(engine: Engine, binner: Binner, chunk: Chunk, clock: Value) -> None:
    """The next block of list memory is full."""
    size = chunk.write_bytes.sext(i64)
    place = chunk.location + binner.written.sext(i64) * size
    if ask_memory(engine, MemorySource.TILE_LISTS, place & MEMORY_MASK, size, clock) != 0:
        binner.written = binner.written + 1
        binner.bytes = binner.bytes + size
        wake_self(engine, clock + 1)


@staged
def _end(engine: Engine, binner: Binner, chunk: Chunk, clock: Value) -> None:
    """A chunk is through."""
    count_busy(engine, (binner.end_part - binner.started_part) >> FRACTION)
    binner.primitives = binner.primitives + chunk.primitives.sext(i64)
    binner.entries = binner.entries + chunk.entries.sext(i64)
    release(engine, BINNING, chunk.keep, clock)
    if chunk.tiles > 0:
        binner.flushes = binner.flushes + 1
        wake(engine, instance_of(engine, GraphicsModule.BINNING_LIST, const(i32, 0)), clock + 1)
    binner.chunk = binner.chunk + 1
    binner.working = const(i32, 0)


@staged
def _go_on(engine: Engine, binner: Binner, clock: Value) -> None:
    """Writes what is due of the chunk at hand, or ends it."""
    chunk = _chunk(binner)
    if binner.written < chunk.writes:
        whole = binner.end_part - binner.started_part
        number = (binner.written + 1).sext(i64)
        due = binner.started_part + whole * number // chunk.writes.sext(i64)
        due = (due + _ROUND) >> FRACTION
        if clock < due:
            wake_self(engine, due)
        else:
            _write(engine, binner, chunk, clock)
    else:
        end = (binner.end_part + _ROUND) >> FRACTION
        if clock < end:
            wake_self(engine, end)
        else:
            _end(engine, binner, chunk, clock)


@kernel(args=(ptr, ptr, i64))
def step_binner(address: Value, state: Value, clock: Value) -> None:
    """Goes on with a chunk, and begins the next one."""
    engine, binner = Engine.at(address), Binner.at(state)
    _take_shaded(engine, clock)
    if binner.working != 0:
        _go_on(engine, binner, clock)
    if (binner.working == 0) & (binner.chunk >= binner.end):
        _take_item(engine, binner, clock)
    if (binner.working == 0) & (binner.chunk < binner.end):
        _begin(binner, clock)
        if binner.working != 0:
            wake_self(engine, max_(clock, binner.started_part >> FRACTION))
