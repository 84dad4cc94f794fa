"""Decides whether the first instruction of a segment has to wait, and for what.

The QPU is ahead of the event scheduler here: `at` is the clock of the instruction, `now` the one of the
scheduler. What another module could still change is looked at when the event scheduler is there.
"""

from __future__ import annotations

from vc4lab.simd import Value, const, i32, i64, kernel, load, max_, ptr, staged, store
from vc4lab.timing.compute.kinds import Cause, Flag, ModuleKind, QueueKind
from vc4lab.timing.compute.needs import unit_of
from vc4lab.timing.compute.slice_caches import is_there
from vc4lab.timing.compute.state import Figures, Qpu, Tmu
from vc4lab.timing.compute.tmu import request_queue
from vc4lab.timing.event_scheduler import Engine, instance_of, state_of, wake, wake_self
from vc4lab.timing.graphics.shaders.lines import thread_at
from vc4lab.timing.graphics.shaders.requests import words_place
from vc4lab.timing.graphics.shaders.state import (
    READS,
    RESULTS,
    SLOTS,
    Segment,
    ShaderQpu,
    ShadingFigures,
    Thread,
)
from vc4lab.timing.graphics.state import GraphicsFigures, TaskKind
from vc4lab.timing.graphics.tiles.scoreboard import take_lock
from vc4lab.timing.queues import drop_piece, queue_at, wait_for_room

STOPPED = -1
"""In place of a clock: the thread does not go on now."""


@staged
def blame(qpu: Qpu, segment: Segment, cause: Value | int, clocks: Value) -> None:
    """The first instruction of a segment has waited so long for a cause."""
    number = const(i64, int(cause)) if isinstance(cause, int) else cause.sext(i64)
    at = number << 3
    store(qpu.stalls + at, load(i64, qpu.stalls + at) + clocks)
    store(segment.stalls + at, load(i64, segment.stalls + at) + clocks)


@staged
def next_slot(at: Value, clock: Value, slot: Value) -> Value:
    """The first turn of a QPU at or after a clock, if `at` is one of its turns."""
    late = max_(clock - at, const(i64, 0))
    return at + (late + slot - 1).udiv(slot) * slot


@staged
def wait_until(engine: Engine, qpu: Qpu, segment: Segment, cause: Cause, at: Value, clock: Value) -> Value:
    """The instruction goes on at a clock that is known: its turn then."""
    until = next_slot(at, clock, Figures.at(engine.chip).slot)
    if until > at:
        blame(qpu, segment, int(cause), until - at)
    return until


@staged
def block(engine: Engine, thread: Thread, cause: Cause, at: Value, now: Value) -> Value:
    """Something is missing. If the event scheduler is there yet, the thread waits to be called for it."""
    thread.due = at
    if at > now:
        wake_self(engine, at)
    else:
        thread.cause = const(i32, int(cause))
    return const(i64, STOPPED)


@staged
def _line(engine: Engine, qpu: Qpu, thread: Thread, segment: Segment, at: Value, now: Value) -> Value:
    """Waits for the line of uniforms that was asked for."""
    if thread.line_comes != 0:
        at = wait_until(engine, qpu, segment, Cause.UNIFORMS, at, thread.line_at)
    else:
        at = block(engine, thread, Cause.UNIFORMS, at, now)
    return at


@staged
def _next_line(engine: Engine, qpu: Qpu, thread: Thread, segment: Segment, at: Value, now: Value) -> Value:
    """A line that is missing is asked for when the event scheduler is there."""
    if at > now:
        line = thread.uniform_line + segment.line.sext(i64)
        if is_there(engine, ModuleKind.UNIFORM_CACHE, qpu.slice, line) == 0:
            at = block(engine, thread, Cause.NONE, at, now)
    return at


@staged
def _room(
    engine: Engine, qpu: Qpu, thread: Thread, segment: Segment, unit: int, at: Value, now: Value
) -> Value:
    """Waits for room in a TMU's request queue."""
    figures = Figures.at(engine.chip)
    number = unit_of(figures, qpu, unit)
    queue = queue_at(engine, QueueKind.TMU_REQUESTS, request_queue(figures, qpu.number, number))
    held = load(i32, words_place(thread, number))
    full = (held > 0) & (held + segment.words > thread.room)
    if full | (queue.count >= queue.capacity):
        if at <= now:
            wait_for_room(engine, queue)
        at = block(engine, thread, Cause.TMU_ROOM, at, now)
    return at


@staged
def _result(
    engine: Engine, qpu: Qpu, thread: Thread, segment: Segment, unit: int, at: Value, now: Value
) -> Value:
    """Waits for a TMU's result; a program that asked for none goes on."""
    figures = Figures.at(engine.chip)
    number = unit_of(figures, qpu, unit).sext(i64)
    taken = load(i32, thread.taken + (number << 2))
    if taken < load(i32, thread.arrived + (number << 2)):
        place = number * RESULTS + (taken & (RESULTS - 1)).sext(i64)
        ready = load(i64, thread.ready + (place << 3))
        at = wait_until(engine, qpu, segment, Cause.TMU_RESULT, at, ready)
        if at > now:  # does its TMU wait until it is read?
            if _held(engine, qpu, number.trunc(i32)) >= figures.result_depth:
                at = block(engine, thread, Cause.NONE, at, now)
    elif taken < load(i32, thread.requested + (number << 2)):
        at = block(engine, thread, Cause.TMU_RESULT, at, now)
    return at


@staged
def _tmu_of(engine: Engine, qpu: Qpu, unit: Value) -> Value:
    """The instance of a unit of the QPU's slice."""
    return instance_of(engine, ModuleKind.TMU, qpu.slice * Figures.at(engine.chip).tmus + unit)


@staged
def _held(engine: Engine, qpu: Qpu, unit: Value) -> Value:
    tmu = Tmu.at(state_of(engine, _tmu_of(engine, qpu, unit)))
    return load(i32, tmu.held + (qpu.port.sext(i64) << 2))


@staged
def take_result(engine: Engine, qpu: Qpu, thread: Thread, unit: Value, clock: Value) -> None:
    """A result is read: the TMU may work on one more."""
    figures = Figures.at(engine.chip)
    queue = queue_at(engine, QueueKind.TMU_RESULTS, request_queue(figures, qpu.number, unit))
    place = thread.taken + (unit.sext(i64) << 2)
    taken = load(i32, place)
    if taken < load(i32, thread.arrived + (unit.sext(i64) << 2)):
        store(place, taken + 1)
        drop_piece(queue, clock)
        instance = _tmu_of(engine, qpu, unit)
        tmu = Tmu.at(state_of(engine, instance))
        held = tmu.held + (qpu.port.sext(i64) << 2)
        count = load(i32, held)
        store(held, count - 1)
        if count >= figures.result_depth:
            wake(engine, instance, clock + 1)


@staged
def _own_tile(engine: Engine, qpu: ShaderQpu, thread: Thread, at: Value, now: Value) -> Value:
    """Waits for the scoreboard. A thread before which an older one of its QPU comes gives way."""
    if (thread.kind == int(TaskKind.FRAGMENTS)) & (thread.locked == 0):
        other = thread_at(qpu, 1 - thread.number)
        if at > now:
            at = block(engine, thread, Cause.NONE, at, now)
        elif (other.alive != 0) & (other.order < thread.order):
            thread.ordered = const(i32, 1)
            at = give_way(qpu, thread, at)
        elif take_lock(engine, thread.task, now) != 0:
            thread.locked = const(i32, 1)
        else:
            at = block(engine, thread, Cause.SCOREBOARD, at, now)
    return at


@staged
def give_way(qpu: ShaderQpu, thread: Thread, at: Value) -> Value:
    """The other thread may run."""
    thread.waits = const(i32, 1)
    thread.due = at
    qpu.current = const(i32, 0)
    qpu.free_at = at
    return const(i64, STOPPED)


@staged
def take_turn(turns: Value, interval: Value, clock: Value) -> Value:
    """The clock of the first free turn of a shared unit at or after a clock; it is taken now.

    A QPU runs ahead of the event scheduler, so turns are not asked for in the order of their clocks:
    the unit keeps which of them are taken. Turns begin at multiples of their length; the first piece
    after a pause may begin within its turn.
    """
    turn = clock.udiv(interval)
    place = turns + ((turn & (SLOTS - 1)) << 3)
    left = const(i32, SLOTS)
    while (load(i64, place, 8) == turn + 1) & (left > 0):
        turn = turn + 1
        place = turns + ((turn & (SLOTS - 1)) << 3)
        left = left - 1
    store(place, turn + 1, 8)
    return max_(clock, turn * interval)


@staged
def _varying(engine: Engine, qpu: Qpu, thread: Thread, segment: Segment, at: Value) -> Value:
    """Waits for the next varying, which was begun when there was room for it."""
    shading = GraphicsFigures.at(engine.chip).shading
    number = thread.varyings
    before = number - shading.varying_depth
    asked: Value = thread.given
    if before >= 0:
        asked = load(i64, thread.read + ((before & (READS - 1)).sext(i64) << 3))
    turns = shading.varying_turns + qpu.slice.sext(i64) * (8 * SLOTS)
    begun = take_turn(turns, shading.varying_interval, asked)
    ready = begun + shading.varying_interval + shading.varying_latency
    at = wait_until(engine, qpu, segment, Cause.VARYINGS, at, ready)
    store(thread.read + ((number & (READS - 1)).sext(i64) << 3), at)
    thread.varyings = number + 1
    return at


@staged
def _vpm(engine: Engine, qpu: Qpu, thread: Thread, segment: Segment, at: Value) -> Value:
    """Waits for the VPM's port, and after a set-up for the first row."""
    figures = GraphicsFigures.at(engine.chip)
    shading: ShadingFigures = figures.shading
    if (segment.meets & int(Flag.VPM_READ)) != 0:
        at = wait_until(engine, qpu, segment, Cause.VPM_READ, at, thread.vpm_at)
    turns = shading.vpm_turns + qpu.cluster.sext(i64) * (8 * SLOTS)
    begun = take_turn(turns, figures.compute.vpm_interval, at)
    return wait_until(engine, qpu, segment, Cause.VPM_READ, at, begun)


@kernel(args=(ptr, ptr, ptr, ptr, i64, i64), returns=i64)
def wait_for_needs(address: Value, state: Value, where: Value, what: Value, at: Value, now: Value) -> Value:
    """The clock at which a segment can begin, at or after `at`, or STOPPED.

    First what may stop the thread, then turns of units, which are taken once.
    """
    engine, shader_qpu = Engine.at(address), ShaderQpu.at(state, 8)
    thread, segment = Thread.at(where, 8), Segment.at(what, 8)
    qpu = shader_qpu.common
    meets = segment.meets
    if (meets & int(Flag.UNIFORM)) != 0:
        at = _line(engine, qpu, thread, segment, at, now)
    for unit, bit in enumerate((Flag.RESULT0, Flag.RESULT1)):
        if (at >= 0) & ((meets & int(bit)) != 0):
            at = _result(engine, qpu, thread, segment, unit, at, now)
    for unit, bit in enumerate((Flag.LOOKUP0, Flag.LOOKUP1)):
        if (at >= 0) & ((meets & int(bit)) != 0):
            at = _room(engine, qpu, thread, segment, unit, at, now)
    if (at >= 0) & ((meets & int(Flag.MOVES_UNIFORMS)) != 0):
        at = _next_line(engine, qpu, thread, segment, at, now)
    if (at >= 0) & ((meets & int(Flag.UNLOCK | Flag.END)) != 0):
        if at > now:
            at = block(engine, thread, Cause.NONE, at, now)
    if (at >= 0) & ((meets & int(Flag.LOCK)) != 0):
        at = _own_tile(engine, shader_qpu, thread, at, now)
    if at >= 0:
        if (meets & int(Flag.VARYING)) != 0:
            at = _varying(engine, qpu, thread, segment, at)
        if (meets & int(Flag.SFU)) != 0:
            figures = GraphicsFigures.at(engine.chip)
            turns = figures.shading.sfu_turns + qpu.slice.sext(i64) * (8 * SLOTS)
            begun = take_turn(turns, figures.compute.sfu_interval, at)
            at = wait_until(engine, qpu, segment, Cause.SFU, at, begun)
        if (meets & int(Flag.VPM_READ | Flag.VPM_WRITE)) != 0:
            at = _vpm(engine, qpu, thread, segment, at)
        if (meets & int(Flag.TILE_LOAD)) != 0:
            latency = GraphicsFigures.at(engine.chip).shading.tile_latency
            at = wait_until(engine, qpu, segment, Cause.TILE_BUFFER, at, at + latency)
    return at
