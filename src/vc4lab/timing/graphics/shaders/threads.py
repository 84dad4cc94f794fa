"""Threads of a QPU begin, give way to each other, and end."""

from __future__ import annotations

from vc4lab.simd import Value, call, const, i32, i64, load, min_, select, staged, store
from vc4lab.timing.compute.kinds import LINE_BITS, Cause, ModuleKind
from vc4lab.timing.compute.slice_caches import cache_of
from vc4lab.timing.compute.state import Figures, Qpu, SliceCache
from vc4lab.timing.event_scheduler import Engine, count_busy, wake_self
from vc4lab.timing.graphics.kinds import GraphicsQueue, shaded_queue
from vc4lab.timing.graphics.shaders.lines import ask_uniforms, thread_at
from vc4lab.timing.graphics.shaders.needs import blame, block, next_slot, take_result
from vc4lab.timing.graphics.shaders.requests import complete
from vc4lab.timing.graphics.shaders.state import Segment, ShaderQpu, Thread
from vc4lab.timing.graphics.state import Batch, GraphicsFigures, Shader, TaskKind, Vector
from vc4lab.timing.graphics.tiles.scheduler import end_thread, work_of
from vc4lab.timing.graphics.tiles.scoreboard import drop_lock, take_lock
from vc4lab.timing.queues import first_piece, is_readable, queue_at, remove_piece, write_piece

RENDERING = 1
"""The list thread of vectors."""


# -- which thread runs


@staged
def choose_thread(engine: Engine, qpu: ShaderQpu, clock: Value) -> Value:
    """Lets a thread run: the oldest one that can, or a new one. Whether there is one (1)."""
    found = const(i32, 0)
    if clock < qpu.free_at:
        wake_self(engine, qpu.free_at)
    else:
        oldest = _oldest(engine, qpu, clock)
        if oldest != 0:
            _resume(engine, qpu, thread_at(qpu, oldest - 1), clock)
            found = const(i32, 1)
        else:
            found = _begin(engine, qpu, clock)
    return found


@staged
def _oldest(engine: Engine, qpu: ShaderQpu, clock: Value) -> Value:
    """The older thread of those that can go on now, + 1."""
    chosen, order = const(i32, 0), const(i32, 0)
    for number in (0, 1):
        thread = thread_at(qpu, const(i32, number))
        other = thread_at(qpu, const(i32, 1 - number))
        if thread.alive != 0:
            held = (thread.ordered != 0) & (other.alive != 0) & (other.order < thread.order)
            if complete(engine, thread) & ~held:
                if thread.complete_at > clock:
                    wake_self(engine, thread.complete_at)
                elif (chosen == 0) | (thread.order < order):
                    chosen = const(i32, number + 1)
                    order = thread.order
    return chosen


@staged
def _resume(engine: Engine, qpu: ShaderQpu, thread: Thread, clock: Value) -> None:
    """A thread goes on. While another one ran it lost nothing but its turn."""
    at = next_slot(qpu.free_at, clock, Figures.at(engine.chip).slot)
    waited = at - thread.due
    idle = min_(at - qpu.free_at, waited)
    step = min_(thread.step, thread.steps - 1)
    number = load(i32, thread.route + (step.sext(i64) << 2))
    segment = Segment.at(thread.segments + number.sext(i64) * Segment.size, 8)
    if idle > 0:
        blame(qpu.common, segment, int(Cause.TMU_RESULT), idle)
    place = segment.stalls + 8 * int(Cause.THREAD_SWITCH)
    store(place, load(i64, place) + waited - idle)
    qpu.idle = qpu.idle + idle
    qpu.current = thread.number + 1
    thread.waits = const(i32, 0)
    thread.switched = const(i32, 1)
    thread.due = at


# -- the beginning of a thread


@staged
def _begin(engine: Engine, qpu: ShaderQpu, clock: Value) -> Value:
    """A new thread, if there is work and room for it; 1 if it can run at once."""
    begun = const(i32, 0)
    if (qpu.first.alive == 0) | (qpu.second.alive == 0):
        shaders = queue_at(engine, GraphicsQueue.SHADERS, qpu.common.number)
        if call(is_readable, engine.pointer, shaders.pointer, clock) != 0:
            piece = first_piece(shaders)
            task, kind, given = piece.place.trunc(i32), piece.tag.trunc(i32), piece.ready
            call(remove_piece, engine.pointer, shaders.pointer, clock)
            number = select(qpu.first.alive == 0, const(i32, 0), const(i32, 1))
            thread = thread_at(qpu, number)
            _start(engine, qpu, thread, number, task, kind, given, clock)
            begun = thread.line_comes
            if begun == 0:  # uniforms are asked for before instructions
                wake_self(engine, clock)
    return begun


@staged
def _start(
    engine: Engine, qpu: ShaderQpu, thread: Thread, number: Value, task: Value, kind: Value,
    given: Value, clock: Value,
) -> None:  # fmt: skip
    figures = GraphicsFigures.at(engine.chip)
    list_thread = select(kind == int(TaskKind.COORDINATES), const(i32, 0), const(i32, RENDERING))
    work = work_of(figures, list_thread)
    row = const(i32, 0)
    if kind == int(TaskKind.FRAGMENTS):
        row = Vector.at(work.vectors + task.sext(i64) * Vector.size, 4).shader
    else:
        row = Batch.at(work.batches + task.sext(i64) * Batch.size, 4).shader
    shader = Shader.at(work.shaders + row.sext(i64) * Shader.size, 8)
    thread.shader = shader.pointer
    thread.segments = work.segments
    thread.route = work.routes + (shader.first_step.sext(i64) << 2)
    thread.steps = shader.steps
    thread.step = const(i32, 0)
    thread.issued = const(i32, 0)
    thread.alive = const(i32, 1)
    thread.kind = kind
    thread.task = task
    thread.number = number
    qpu.order = qpu.order + 1
    thread.order = qpu.order
    for name in ("waits", "ordered", "switched", "locked", "accesses", "requests", "varyings", "announced"):
        setattr(thread, name, const(i32, 0))
    for unit in (0, 1, 2, 3):
        for place in (thread.requested, thread.arrived, thread.taken, thread.words):
            store(place + 4 * unit, const(i32, 0))
    words = figures.shading.request_words
    thread.room = select(shader.threads > 1, words >> 1, words)
    for name in ("due", "started", "complete_at", "vpm_at"):
        setattr(thread, name, clock)
    thread.given = given
    thread.line = const(i64, -1)
    qpu.current = number + 1
    misses = _instructions(engine, qpu).tags.misses + 1
    seen = shader.seen + (qpu.common.slice.sext(i64) << 3)
    thread.cached = select(load(i64, seen) == misses, const(i32, 1), const(i32, 0))
    thread.misses = misses
    thread.uniform_line = shader.uniforms.zext(i64).shr(LINE_BITS)
    qpu.common.uniforms = qpu.common.uniforms + figures.compute.ahead.sext(i64)
    ask_uniforms(engine, qpu.common, thread, thread.uniform_line, clock, clock)
    thread.line_at = given + figures.shading.first_uniforms
    place = qpu.tasks + (kind.sext(i64) << 3)
    store(place, load(i64, place) + 1)


@staged
def _instructions(engine: Engine, qpu: ShaderQpu) -> SliceCache:
    return cache_of(engine, ModuleKind.INSTRUCTION_CACHE, qpu.common.slice)


# -- the end of a thread


@staged
def announce_end(engine: Engine, qpu: Qpu, thread: Thread, clock: Value) -> None:
    """The scheduler may give the QPU another thread, which begins after the last instruction.

    That is so from the signal on: the two instructions after it may read neither uniforms nor
    varyings, and new W and Z come into register 14 of the next thread meanwhile (hardware reference
    4.13, 4.19).
    """
    thread.announced = const(i32, 1)
    halves = select(Shader.at(thread.shader, 8).threads > 1, const(i32, 1), const(i32, 2))
    end_thread(engine, qpu.number, halves, clock)


@staged
def end_task(engine: Engine, qpu: ShaderQpu, thread: Thread, clock: Value) -> Value:
    """The program has ended: what it made is handed on (1), or waits until there is room."""
    blocked = _results(engine, qpu, thread, clock)
    if (blocked == 0) & (thread.kind == int(TaskKind.FRAGMENTS)):
        blocked = _end_vector(engine, qpu, thread, clock)
    elif blocked == 0:
        blocked = _end_batch(engine, qpu, thread, clock)
    if blocked == 0:
        _free(engine, qpu, thread, clock)
    return 1 - blocked


@staged
def _results(engine: Engine, qpu: ShaderQpu, thread: Thread, clock: Value) -> Value:
    """Results that the program did not read are dropped when they have come; 1 if some have not."""
    missing = const(i32, 0)
    for unit in (0, 1, 2, 3):
        arrived = load(i32, thread.arrived + 4 * unit)
        left = arrived - load(i32, thread.taken + 4 * unit)
        while left > 0:
            take_result(engine, qpu.common, thread, const(i32, unit), clock)
            left = left - 1
        asked = load(i32, thread.requested + 4 * unit)
        missing = select(arrived < asked, const(i32, 1), missing)
    if missing != 0:
        block(engine, thread, Cause.TMU_RESULT, clock, clock)
    return missing


@staged
def _end_vector(engine: Engine, qpu: ShaderQpu, thread: Thread, clock: Value) -> Value:
    """Its colours and depths are written, and the next vector may have the tile."""
    blocked = const(i32, 0)
    if thread.locked == 0:  # it keeps its place in the order
        if take_lock(engine, thread.task, clock) != 0:
            thread.locked = const(i32, 1)
        else:
            block(engine, thread, Cause.SCOREBOARD, clock, clock)
            blocked = const(i32, 1)
    if blocked == 0:
        pixels = queue_at(engine, GraphicsQueue.PIXELS, qpu.common.cluster)
        wrote = call(
            write_piece,
            engine.pointer, pixels.pointer, clock, clock + 1,
            qpu.common.number.sext(i64), thread.task.sext(i64), thread.accesses.sext(i64),
        )  # fmt: skip
        if wrote == 0:
            block(engine, thread, Cause.OUTPUT, clock, clock)
            blocked = const(i32, 1)
        elif thread.locked == 1:
            drop_lock(engine, thread.task, clock)
    return blocked


@staged
def _end_batch(engine: Engine, qpu: ShaderQpu, thread: Thread, clock: Value) -> Value:
    """Its vertices are in the VPM."""
    figures = GraphicsFigures.at(engine.chip)
    list_thread = select(thread.kind == int(TaskKind.COORDINATES), const(i32, 0), const(i32, RENDERING))
    shaded = queue_at(engine, GraphicsQueue.SHADED, shaded_queue(qpu.common.cluster, list_thread))
    number = thread.task.sext(i64)
    Batch.at(work_of(figures, list_thread).batches + number * Batch.size, 4).done = const(i32, 1)
    wrote = call(
        write_piece,
        engine.pointer, shaded.pointer, clock, clock + 1,
        const(i64, 0), number, list_thread.sext(i64),
    )  # fmt: skip
    blocked = const(i32, 0)
    if wrote == 0:
        block(engine, thread, Cause.OUTPUT, clock, clock)
        blocked = const(i32, 1)
    return blocked


@staged
def _free(engine: Engine, qpu: ShaderQpu, thread: Thread, clock: Value) -> None:
    """The thread is free."""
    shader = Shader.at(thread.shader, 8)
    figures = GraphicsFigures.at(engine.chip)
    misses = _instructions(engine, qpu).tags.misses + 1
    if misses == thread.misses:
        store(shader.seen + (qpu.common.slice.sext(i64) << 3), misses)
    clocks = shader.instructions.sext(i64) * figures.compute.slot
    count_busy(engine, clocks)
    shader.runs = shader.runs + 1
    shader.clocks = shader.clocks + clock - thread.started
    place = qpu.busy + (thread.kind.sext(i64) << 3)
    store(place, load(i64, place) + clocks)
    place = qpu.spent + (thread.kind.sext(i64) << 3)
    store(place, load(i64, place) + clock - thread.started)
    thread.alive = const(i32, 0)
    qpu.current = const(i32, 0)
    qpu.free_at = clock
    if thread.announced == 0:
        announce_end(engine, qpu.common, thread, clock)
