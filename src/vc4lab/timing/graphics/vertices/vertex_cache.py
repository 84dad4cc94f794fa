"""The vertex cache manager (VCM): collects batches of both threads and gives them room in the VPM.

A batch gets room for its attributes and for what its shader writes at once. The room of attributes
is free when the batch is shaded, the other one when no primitive wants its vertices any more
(`GraphicsFigures.released`). A thread's next batch gets room in any case if the thread holds no
more than what one primitive may need, so that nothing stands still, whatever a batch takes: set-up
and binner read vertices one after the other, and keep those of the primitive at hand themselves.
"""

from __future__ import annotations

from typing import Any

from vc4lab.simd import Value, call, const, i32, i64, kernel, load, max_, min_, ptr, select, staged, store
from vc4lab.timing.compute.kinds import FRACTION
from vc4lab.timing.event_scheduler import (
    Engine,
    count_blocked,
    count_busy,
    instance_of,
    number_of,
    state_of,
    wake,
    wake_self,
)
from vc4lab.timing.graphics.kinds import GraphicsModule, GraphicsQueue
from vc4lab.timing.graphics.state import Batch, GraphicsFigures
from vc4lab.timing.graphics.vertices.state import BINNING, RENDERING, BinningList, VertexCache, VertexThread
from vc4lab.timing.queues import first_piece, is_readable, queue_at, remove_piece, write_piece

IN_TURN, BINNING_FIRST, RENDERING_FIRST = 0, 1, 2
"""Which thread's batch is collected, if both have one."""

_GROUPS = (GraphicsQueue.BINNING_GROUPS, GraphicsQueue.RENDERING_GROUPS)


@staged
def batch_at(batches: Value, number: Value) -> Batch:
    """A batch by its number."""
    return Batch.at(batches + number.sext(i64) * Batch.size, 8)


@staged
def the_cache(engine: Engine, cluster: Any = 0) -> VertexCache:
    """The vertex cache manager of a cluster."""
    return VertexCache.at(state_of(engine, _instance(engine, cluster)))


@staged
def _instance(engine: Engine, cluster: Any) -> Value:
    return instance_of(engine, GraphicsModule.VERTEX_CACHE, const(i32, 0) + cluster)


@staged
def release(engine: Engine, thread: int, keep: Value, clock: Value, cluster: Any = 0) -> None:
    """Vertices of a thread's batches before `keep` are wanted no more.

    Those of thread 0 by the binner, those of thread 1 by the setup engine of a cluster.
    """
    number = (const(i32, thread) + cluster).sext(i64)
    place = GraphicsFigures.at(engine.chip).released + (number << 3)
    if keep.sext(i64) > load(i64, place):
        store(place, keep.sext(i64))
        if thread == BINNING:
            call_caches(engine, clock)
        else:
            call_cache(engine, clock, cluster)


@staged
def call_cache(engine: Engine, clock: Value, cluster: Any = 0) -> None:
    """The vertex cache manager of a cluster is called: there may be room again."""
    wake(engine, _instance(engine, cluster), clock + 1)


@staged
def call_caches(engine: Engine, clock: Value) -> None:
    """All of them are called."""
    for cluster in range(GraphicsFigures.at(engine.chip).compute.clusters):
        call_cache(engine, clock, cluster)


@staged
def _thread(cache: VertexCache, is_rendering: Value) -> VertexThread:
    both = cache.rendering.pointer, cache.binning.pointer
    return VertexThread.at(select(is_rendering, *both), 8)


@staged
def is_mine(batch: Batch, cluster: Value) -> Value:
    """Whether a batch has room in the VPM of this cluster."""
    return (batch.made != 0) & (batch.cluster == cluster)


@staged
def _give_back(cache: VertexCache, thread: VertexThread, rows: Value) -> None:
    cache.rows = cache.rows - rows
    thread.rows = thread.rows - rows


@staged
def _free(engine: Engine, cache: VertexCache, thread: VertexThread, number: Any) -> None:
    """Room of attributes that were shaded, and of vertices that no primitive wants any more."""
    cluster = number_of(engine)
    going = const(i32, 1)
    while going != 0:
        going = const(i32, 0)
        if thread.shaded < thread.batch:
            batch = batch_at(thread.batches, thread.shaded)
            mine = is_mine(batch, cluster)
            if (batch.done != 0) | ~mine:
                going = const(i32, 1)
                gone = (batch.shader >= 0) & mine
                _give_back(cache, thread, select(gone, batch.rows, const(i32, 0)))
                thread.shaded = thread.shaded + 1
    released = GraphicsFigures.at(engine.chip).released
    keeper = number + select(number == RENDERING, cluster.sext(i64), const(i64, 0))
    keep = load(i64, released + (keeper << 3)).trunc(i32)
    end = min_(keep, thread.batch)
    while thread.freed < end:
        batch = batch_at(thread.batches, thread.freed)
        if is_mine(batch, cluster):
            in_memory = select(batch.shader < 0, batch.rows, const(i32, 0))
            _give_back(cache, thread, batch.shaded_rows + in_memory)
            thread.held = thread.held - 1
        thread.freed = thread.freed + 1


@staged
def _take_group(engine: Engine, thread: VertexThread, number: int, clock: Value) -> None:
    """The next group of a thread, once the one at hand is collected."""
    if thread.batch >= thread.end:
        queue = queue_at(engine, _GROUPS[number], number_of(engine))
        if call(is_readable, engine.pointer, queue.pointer, clock) != 0:
            piece = first_piece(queue)
            first: Value = piece.place.trunc(i32)
            end: Value = piece.tag.trunc(i32)
            call(remove_piece, engine.pointer, queue.pointer, clock)
            if end == 0:  # all batches of a group
                place = thread.first_batch + (first.sext(i64) << 2)
                first = load(i32, place)
                end = load(i32, place + 4)
            thread.batch = first
            thread.end = end
            if number == BINNING:
                _wake_list(engine, clock)


@staged
def _wake_list(engine: Engine, clock: Value) -> None:
    wake(engine, _binning_list(engine), clock)


@staged
def _binning_list(engine: Engine) -> Value:
    return instance_of(engine, GraphicsModule.BINNING_LIST, const(i32, 0))


@staged
def _may_collect(
    engine: Engine, cache: VertexCache, thread: VertexThread, number: int, clock: Value
) -> Value:
    """Whether a thread's next batch can be collected (1)."""
    _take_group(engine, thread, number, clock)
    found = const(i32, 0)
    if thread.batch < thread.end:
        batch = batch_at(thread.batches, thread.batch)
        there = const(i32, 1)
        if number == BINNING:
            read = BinningList.at(state_of(engine, _binning_list(engine))).back
            there = select(batch.list_read < read, there, const(i32, 0))
        if there != 0:
            rows = batch.rows + batch.shaded_rows
            fits = (cache.rows + rows <= cache.room) & (thread.rows + rows <= thread.limit)
            found = select(fits | (thread.held <= cache.kept + 1), const(i32, 1), found)
            if found == 0:
                thread.since = select(thread.since < 0, clock, thread.since)
    return found


@staged
def _count_full(engine: Engine, cache: VertexCache, found: Value, clock: Value) -> None:
    """Counts the clocks in which threads have batches and there is room for none of them."""
    if found:
        if cache.full_since >= 0:
            count_blocked(engine, clock - cache.full_since)
        cache.full_since = const(i64, -1)
    elif (cache.binning.since >= 0) | (cache.rendering.since >= 0):
        cache.full_since = select(cache.full_since < 0, clock, cache.full_since)


@staged
def _collect(engine: Engine, cache: VertexCache, is_rendering: Value, clock: Value) -> None:
    """Collects a batch, and has its attributes fetched."""
    thread = _thread(cache, is_rendering)
    batch = batch_at(thread.batches, thread.batch)
    part = batch.named.sext(i64) * cache.index_part + ((1 << FRACTION) - 1)
    clocks = max_(part >> FRACTION, const(i64, 1))
    cluster = number_of(engine)
    fetches = queue_at(engine, GraphicsQueue.FETCHES, cluster)
    number = select(is_rendering, const(i64, RENDERING), const(i64, BINNING))
    wrote = call(
        write_piece,
        engine.pointer, fetches.pointer, clock, clock + clocks,
        number, thread.batch.sext(i64), number,
    )  # fmt: skip
    if wrote != 0:
        batch.made = const(i32, 1)
        batch.cluster = cluster
        rows = batch.rows + batch.shaded_rows
        cache.rows = cache.rows + rows
        cache.peak = max_(cache.peak, cache.rows)
        thread.rows = thread.rows + rows
        thread.held = thread.held + 1
        thread.batch = thread.batch + 1
        thread.last_at = clock
        if thread.since >= 0:
            thread.waited = thread.waited + (clock - thread.since)
            thread.since = const(i64, -1)
        cache.last = number.trunc(i32)
        cache.free_at = clock + clocks
        count_busy(engine, clocks)
        wake_self(engine, cache.free_at)
        if number == BINNING:
            reader = BinningList.at(state_of(engine, _binning_list(engine)))
            reader.collected = reader.collected + 1
            reader.used = max_(reader.used, batch.list_read)
            _wake_list(engine, cache.free_at)
        _free(engine, cache, thread, number)


@kernel(args=(ptr, ptr, i64))
def step_vertex_cache(address: Value, state: Value, clock: Value) -> None:
    """Gives room back, and collects a batch."""
    engine, cache = Engine.at(address), VertexCache.at(state)
    _free(engine, cache, cache.binning, const(i64, BINNING))
    _free(engine, cache, cache.rendering, const(i64, RENDERING))
    if cache.free_at <= clock:
        binning = _may_collect(engine, cache, cache.binning, BINNING, clock) != 0
        rendering = _may_collect(engine, cache, cache.rendering, RENDERING, clock) != 0
        its_turn = (cache.arbitration == IN_TURN) & (cache.last == BINNING)
        prefers = (cache.arbitration == RENDERING_FIRST) | its_turn
        _count_full(engine, cache, binning | rendering, clock)
        if binning | rendering:
            _collect(engine, cache, rendering & (~binning | prefers), clock)
    else:
        wake_self(engine, cache.free_at)
