"""The binner (PTB): cuts and culls primitives, and writes them into the lists of their tiles.

A draw is worked on in chunks: the primitives whose last vertex is in one batch. List memory is
written a block at a time, as blocks fill; a flush ends each tile's list and writes its last block.
In a chip of clusters each has a binner, which works on the batches that its cluster shaded; the
first one takes draws for all of them, and flushes when all of them are there.
"""

from __future__ import annotations

from typing import Any

from vc4lab.memory import MEMORY_MASK
from vc4lab.simd import Value, call, const, i32, i64, kernel, load, max_, min_, ptr, select, staged
from vc4lab.timing.compute.kinds import FRACTION, MemorySource
from vc4lab.timing.event_scheduler import (
    Engine,
    count_busy,
    instance_of,
    number_of,
    state_of,
    wake,
    wake_self,
)
from vc4lab.timing.graphics.kinds import GraphicsModule, GraphicsQueue, shaded_queue
from vc4lab.timing.graphics.requests import ask_memory
from vc4lab.timing.graphics.state import GraphicsFigures
from vc4lab.timing.graphics.vertices.state import BINNING, Binner, Chunk
from vc4lab.timing.graphics.vertices.vertex_cache import batch_at, call_cache, release
from vc4lab.timing.queues import first_piece, is_readable, queue_at, remove_piece

_ROUND = (1 << FRACTION) - 1


@staged
def _chunk(binner: Binner) -> Chunk:
    return Chunk.at(binner.chunks + binner.chunk.sext(i64) * Chunk.size, 8)


@staged
def _take_item(engine: Engine, binner: Binner, clock: Value) -> None:
    """The next draw or flush, for the binners of all clusters."""
    queue = queue_at(engine, GraphicsQueue.BINNED, const(i32, 0))
    if call(is_readable, engine.pointer, queue.pointer, clock) != 0:
        place = binner.first_chunk + (first_piece(queue).place << 2)
        call(remove_piece, engine.pointer, queue.pointer, clock)
        end = load(i32, place + 4)
        for number in range(_clusters(engine)):  # each goes on from where it is
            _binner(engine, number).end = end
        _call_others(engine, clock)


@staged
def _take_shaded(engine: Engine, clock: Value) -> None:
    """A batch is shaded: the room of its attributes is free."""
    cluster = number_of(engine)
    shaded = queue_at(engine, GraphicsQueue.SHADED, shaded_queue(cluster, BINNING))
    if call(is_readable, engine.pointer, shaded.pointer, clock) != 0:
        call(remove_piece, engine.pointer, shaded.pointer, clock)
        call_cache(engine, clock, cluster)
        _call_others(engine, clock)


@staged
def _clusters(engine: Engine) -> Value:
    return GraphicsFigures.at(engine.chip).compute.clusters


@staged
def _instance(engine: Engine, cluster: Any) -> Value:
    return instance_of(engine, GraphicsModule.BINNER, const(i32, 0) + cluster)


@staged
def _binner(engine: Engine, cluster: Any) -> Binner:
    """The binner of a cluster."""
    return Binner.at(state_of(engine, _instance(engine, cluster)))


@staged
def _call_others(engine: Engine, clock: Value) -> None:
    """The binners of the other clusters may be able to go on."""
    for number in range(_clusters(engine)):
        if number_of(engine) != number:
            wake(engine, _instance(engine, number), clock + 1)


@staged
def _pass_over(engine: Engine, binner: Binner, clock: Value) -> None:
    """Chunks of other clusters are passed over. Those without vertices are the first one's."""
    cluster = number_of(engine)
    going = (_clusters(engine) > 1).zext(i32)
    while (going != 0) & (binner.chunk < binner.end):
        chunk = _chunk(binner)
        mine: Value = cluster == 0
        known: Value = cluster == cluster
        if chunk.batch >= 0:
            batch = batch_at(binner.batches, chunk.batch)
            known = batch.made != 0
            mine = ~known | (batch.cluster == cluster)
        if mine:
            going = const(i32, 0)
        else:
            _pass(engine, binner, chunk, clock)
            _call_others(engine, clock)


@staged
def _pass(engine: Engine, binner: Binner, chunk: Chunk, clock: Value) -> None:
    """A chunk is through here; what no binner wants any more is let go."""
    binner.chunk = binner.chunk + 1
    binner.passed = max_(binner.passed, chunk.keep)
    keep: Value = binner.passed
    for number in range(_clusters(engine)):
        keep = min_(keep, _binner(engine, number).passed)
    release(engine, BINNING, keep, clock)


@staged
def _are_here(engine: Engine, binner: Binner) -> Value:
    """Whether the binners of all clusters have come as far (1)."""
    there = const(i32, 1)
    for number in range(_clusters(engine)):
        there = select(_binner(engine, number).chunk < binner.chunk, const(i32, 0), there)
    return there


@staged
def _begin(engine: Engine, binner: Binner, clock: Value) -> None:
    """Begins a chunk, if its vertices are there."""
    chunk = _chunk(binner)
    there = const(i32, 1)
    if chunk.tiles > 0:
        there = _are_here(engine, binner)
    if chunk.batch >= 0:
        there = batch_at(binner.batches, chunk.batch).done
        if (chunk.batch > 0) & (_clusters(engine) > 1):  # another cluster may have it
            there = there & batch_at(binner.batches, chunk.batch - 1).done
    if there != 0:
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
    if chunk.tiles > 0:
        binner.flushes = binner.flushes + 1
        wake(engine, instance_of(engine, GraphicsModule.BINNING_LIST, const(i32, 0)), clock + 1)
    _pass(engine, binner, chunk, clock)
    _call_others(engine, clock)
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
    if binner.working == 0:
        _pass_over(engine, binner, clock)
        if (binner.chunk >= binner.end) & (number_of(engine) == 0):
            _take_item(engine, binner, clock)
            _pass_over(engine, binner, clock)
    if (binner.working == 0) & (binner.chunk < binner.end):
        _begin(engine, binner, clock)
        if binner.working != 0:
            wake_self(engine, max_(clock, binner.started_part >> FRACTION))
