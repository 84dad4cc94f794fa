"""Thread 0 of the control list executor: reads records and indices, and gives draws to others.

Its list is read ahead of need. After a draw it goes on when the vertex cache manager has collected
the last vertex of it; after a flush when the binner has ended all tile lists.
"""

from __future__ import annotations

from vc4lab.simd import Value, call, const, i32, i64, kernel, max_, ptr, staged
from vc4lab.timing.compute.kinds import MemorySource
from vc4lab.timing.event_scheduler import Engine, count_busy, instance_of, state_of, wake, wake_self
from vc4lab.timing.graphics.clusters.global_scheduler import command
from vc4lab.timing.graphics.kinds import GraphicsModule, GraphicsQueue
from vc4lab.timing.graphics.requests import ask_memory, take_answer
from vc4lab.timing.graphics.state import Fetch, GraphicsFigures, StepKind
from vc4lab.timing.graphics.vertices.state import BINNING, Binner, BinningList, BinningRecord, RecordKind
from vc4lab.timing.graphics.vertices.vertex_cache import batch_at, call_caches, the_cache
from vc4lab.timing.queues import queue_at, write_piece

FREE, COLLECTING, FLUSHING = 0, 1, 2
"""Values of `BinningList.waiting`."""


@staged
def _instance(engine: Engine, kind: GraphicsModule) -> Value:
    return instance_of(engine, kind, const(i32, 0))


@staged
def _record(thread: BinningList) -> BinningRecord:
    return BinningRecord.at(thread.records + thread.next.sext(i64) * BinningRecord.size, 8)


@staged
def _take_bytes(engine: Engine, thread: BinningList, clock: Value) -> None:
    """Bytes of the list, or indices, have come."""
    if take_answer(engine, MemorySource.BINNING_LIST, clock) != 0:
        thread.back = thread.back + 1
        call_caches(engine, clock - 1)


@staged
def _ask(engine: Engine, thread: BinningList, clock: Value) -> None:
    """Asks for the next bytes, no further ahead than there is room for."""
    limit: Value = max_(thread.taken, thread.used + 1) + thread.ahead
    for cluster in range(GraphicsFigures.at(engine.chip).compute.clusters):
        mine = the_cache(engine, cluster).binning
        if mine.batch < mine.end:
            limit = max_(limit, batch_at(mine.batches, mine.batch).list_read + 1)
    if thread.next < thread.count:
        limit = max_(limit, _record(thread).last_read + 1)
    under_way = thread.sent - thread.back
    if (thread.sent < thread.read_count) & (thread.sent < limit) & (under_way < thread.ahead):
        fetch = Fetch.at(thread.reads + thread.sent.sext(i64) * Fetch.size, 8)
        size = fetch.bytes
        if ask_memory(engine, MemorySource.BINNING_LIST, fetch.location, size, clock) != 0:
            thread.sent = thread.sent + 1
            thread.bytes = thread.bytes + size
            wake_self(engine, clock + 1)


@staged
def _wait(engine: Engine, thread: BinningList, clock: Value) -> None:
    """Whether what it waits for has come."""
    if thread.waiting == COLLECTING:
        if thread.collected >= thread.until:
            thread.waiting = const(i32, FREE)
    if thread.waiting == FLUSHING:
        binner = Binner.at(state_of(engine, _instance(engine, GraphicsModule.BINNER)))
        if binner.flushes > thread.flushes:
            thread.flushes = thread.flushes + 1
            thread.ended = clock
            thread.waiting = const(i32, FREE)
            wake(engine, _instance(engine, GraphicsModule.RENDERING_LIST), clock)


@staged
def _execute(engine: Engine, thread: BinningList, clock: Value) -> None:
    """Executes a record, or the part of it for which there is room."""
    record = _record(thread)
    done = const(i32, 1)
    if (record.group >= 0) & (thread.grouped == 0):
        if GraphicsFigures.at(engine.chip).dealt != 0:
            done = command(engine, BINNING, const(i32, int(StepKind.GROUP)), record.group, clock)
        else:
            groups = queue_at(engine, GraphicsQueue.BINNING_GROUPS, const(i32, 0))
            done = call(
                write_piece,
                engine.pointer, groups.pointer, clock, clock + 1,
                const(i64, 0), record.group.sext(i64), const(i64, 0),
            )  # fmt: skip
        thread.grouped = done
    if (record.item >= 0) & (done != 0):
        binned = queue_at(engine, GraphicsQueue.BINNED, const(i32, 0))
        done = call(
            write_piece,
            engine.pointer, binned.pointer, clock, clock + 1,
            const(i64, 0), record.item.sext(i64), const(i64, 0),
        )  # fmt: skip
    if done != 0:
        thread.grouped = const(i32, 0)
        thread.taken = max_(thread.taken, record.last_read + 1)
        thread.next = thread.next + 1
        thread.free_at = clock + thread.record_clocks
        thread.ended = thread.free_at
        count_busy(engine, thread.record_clocks)
        if record.group >= 0:
            thread.waiting = const(i32, COLLECTING)
            thread.until = record.until
        if record.kind == int(RecordKind.FLUSH):
            thread.waiting = const(i32, FLUSHING)
        wake_self(engine, thread.free_at)


@kernel(args=(ptr, ptr, i64))
def step_binning_list(address: Value, state: Value, clock: Value) -> None:
    """Takes bytes that have come, executes a record, and asks for bytes."""
    engine, thread = Engine.at(address), BinningList.at(state)
    _take_bytes(engine, thread, clock)
    _wait(engine, thread, clock)
    if (thread.waiting == FREE) & (thread.next < thread.count):
        if _record(thread).last_read < thread.back:
            if thread.free_at <= clock:
                _execute(engine, thread, clock)
            else:
                wake_self(engine, thread.free_at)
    _ask(engine, thread, clock)
