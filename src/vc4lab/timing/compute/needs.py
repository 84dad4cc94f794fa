"""Decides whether an instruction has to wait, and for what."""

from __future__ import annotations

from vc4lab.simd import Value, call, const, i32, i64, kernel, load, max_, min_, ptr, select, staged, store
from vc4lab.timing.compute.dma import engine_of
from vc4lab.timing.compute.kinds import Cause, Flag, ModuleKind, QueueKind
from vc4lab.timing.compute.slice_caches import ON_ITS_WAY, fetch_uniforms
from vc4lab.timing.compute.state import Code, Figures, Qpu
from vc4lab.timing.compute.tmu import request_queue
from vc4lab.timing.event_scheduler import Engine, wake_self
from vc4lab.timing.queues import is_readable, queue_at, wait_for_room

SEMAPHORE_LIMIT = 15


@staged
def unit_of(figures: Figures, qpu: Qpu, unit: int) -> Value:
    """Which TMU of its slice a QPU uses: the third and fourth one swap theirs."""
    swapped = (qpu.port >> 1) & 1
    number = select(qpu.noswap != 0, const(i32, unit), unit ^ swapped)
    return select(number < figures.tmus, number, const(i32, 0))


@staged
def _word_missing(engine: Engine, qpu: Qpu, clock: Value) -> Value:
    """Whether the next uniform cannot be read yet."""
    fetch_uniforms(engine, qpu, clock)
    missing = const(i32, 0)
    if qpu.ahead == 0:
        missing = const(i32, int(Cause.UNIFORMS))
        if qpu.uniform_wait == ON_ITS_WAY:
            wake_self(engine, qpu.uniform_ready)
    return missing


@staged
def _room_missing(engine: Engine, qpu: Qpu, unit: int) -> Value:
    """Whether a TMU's request queue is full."""
    figures = Figures.at(engine.chip)
    number = request_queue(figures, qpu.number, unit_of(figures, qpu, unit))
    queue = queue_at(engine, QueueKind.TMU_REQUESTS, number)
    missing = const(i32, 0)
    if queue.count >= queue.capacity:
        wait_for_room(engine, queue)
        missing = const(i32, int(Cause.TMU_ROOM))
    return missing


@staged
def _result_missing(engine: Engine, qpu: Qpu, unit: int, clock: Value) -> Value:
    """Whether a TMU has no result yet."""
    figures = Figures.at(engine.chip)
    number = request_queue(figures, qpu.number, unit_of(figures, qpu, unit))
    queue = queue_at(engine, QueueKind.TMU_RESULTS, number)
    missing = const(i32, 0)
    if call(is_readable, engine.pointer, queue.pointer, clock) == 0:
        missing = const(i32, int(Cause.TMU_RESULT))
    return missing


@staged
def _until(engine: Engine, clock: Value, free: Value, cause: Cause) -> Value:
    """Waits for something that is free at a clock."""
    missing = const(i32, 0)
    if free > clock:
        wake_self(engine, free)
        missing = const(i32, int(cause))
    return missing


@staged
def _engine_missing(engine: Engine, qpu: Qpu, kind: int, cause: Cause) -> Value:
    """Whether a DMA engine is in use."""
    dma = engine_of(engine, kind)
    missing = const(i32, 0)
    if dma.busy != 0:
        dma.waiting = dma.waiting | (const(i64, 1) << qpu.number.sext(i64))
        missing = const(i32, int(cause))
    return missing


@staged
def _held(engine: Engine, qpu: Qpu, code: Code) -> Value:
    """Whether the mutex or a semaphore does not let it go on."""
    figures = Figures.at(engine.chip)
    flags = code.flags
    bit = const(i64, 1) << qpu.number.sext(i64)
    missing = const(i32, 0)
    if (flags & int(Flag.ACQUIRE)) != 0:
        if figures.mutex != 0:
            figures.mutex_waiting = figures.mutex_waiting | bit
            missing = const(i32, int(Cause.MUTEX))
    if (flags & int(Flag.RAISE | Flag.LOWER)) != 0:
        number = code.number.sext(i64)
        value = load(i32, figures.semaphores + (number << 2))
        lowers = (flags & int(Flag.LOWER)) != 0
        if select(lowers, value == 0, value >= SEMAPHORE_LIMIT):
            place = figures.semaphore_waiting + (number << 3)
            store(place, load(i64, place) | bit)
            missing = const(i32, int(Cause.SEMAPHORE))
    return missing


@kernel(args=(ptr, ptr, i64), returns=i32)
def what_is_missing(address: Value, state: Value, clock: Value) -> Value:
    """The cause for which the next instruction cannot be issued at a clock; 0 if there is none.

    Whatever it waits for calls the QPU again.
    """
    engine, qpu = Engine.at(address), Qpu.at(state)
    figures = Figures.at(engine.chip)
    code = Code.at(qpu.code + qpu.site.sext(i64) * Code.size)
    flags = code.flags
    missing = const(i32, 0)
    words = int(Flag.UNIFORM | Flag.SECOND_UNIFORM | Flag.PARAMETER)
    if (flags & words) != 0:
        missing = _word_missing(engine, qpu, clock)
    for unit, flag in enumerate((Flag.LOOKUP0, Flag.LOOKUP1)):
        if (missing == 0) & ((flags & int(flag)) != 0):
            missing = _room_missing(engine, qpu, unit)
    for unit, flag in enumerate((Flag.RESULT0, Flag.RESULT1)):
        if (missing == 0) & ((flags & int(flag)) != 0):
            missing = _result_missing(engine, qpu, unit, clock)
    if (missing == 0) & ((flags & int(Flag.SFU)) != 0):
        free = load(i64, figures.sfu_free + (qpu.slice.sext(i64) << 3))
        missing = _until(engine, clock, free, Cause.SFU)
    if (missing == 0) & ((flags & int(Flag.VPM_READ)) != 0):
        missing = _until(engine, clock, max_(qpu.vpm_ready, figures.vpm_free), Cause.VPM_READ)
    if (missing == 0) & ((flags & int(Flag.VPM_WRITE)) != 0):
        free = min_(qpu.vpm_written0, qpu.vpm_written1)
        missing = _until(engine, clock, free, Cause.VPM_WRITE)
    if (missing == 0) & ((flags & int(Flag.LOAD_START)) != 0):
        missing = _engine_missing(engine, qpu, ModuleKind.LOADER, Cause.LOAD_START)
    if (missing == 0) & ((flags & int(Flag.STORE_START)) != 0):
        missing = _engine_missing(engine, qpu, ModuleKind.STORER, Cause.STORE_START)
    if (missing == 0) & ((flags & int(Flag.LOAD_WAIT)) != 0):
        missing = select(qpu.loading != 0, int(Cause.LOAD_WAIT), missing)
    if (missing == 0) & ((flags & int(Flag.STORE_WAIT)) != 0):
        missing = select(qpu.storing != 0, int(Cause.STORE_WAIT), missing)
    if missing == 0:
        missing = _held(engine, qpu, code)
    return missing
