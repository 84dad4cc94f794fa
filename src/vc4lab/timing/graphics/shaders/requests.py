"""Texture requests of shaders: which lines they look up, and how results come back to threads."""

from __future__ import annotations

from vc4lab.simd import Value, const, i32, i64, load, max_, min_, ptr, select, staged, store
from vc4lab.timing.compute.kinds import Cause, ModuleKind, QueueKind
from vc4lab.timing.compute.state import Figures, Tmu
from vc4lab.timing.compute.tmu import LANES, Requests, look_up_line, request_queue, tmu_step
from vc4lab.timing.event_scheduler import Engine, instance_of, state_of, wake, wake_self
from vc4lab.timing.graphics.shaders.lines import thread_at
from vc4lab.timing.graphics.shaders.state import RESULTS, ShaderQpu, Thread
from vc4lab.timing.graphics.state import GraphicsFigures, Quad, Vector, Work
from vc4lab.timing.queues import put_piece, queue_at

_NUMBER, _WORDS, _LINES, _REQUEST, _VECTOR = 0, 1, 5, 8, 24
"""Bits of a request's tag: thread; words; whether its lines are known; its number among those that
the vector makes; the vector."""


@staged
def request_tag(thread: Thread, words: Value, lines: Value) -> Value:
    """The tag of a thread's next request."""
    low = thread.number | (words << _WORDS) | (lines << _LINES)
    request = (thread.requests & 0xFFFF).sext(i64) << _REQUEST
    return low.sext(i64) | request | (thread.task.sext(i64) << _VECTOR)


@staged
def words_place(thread: Thread, unit: Value) -> Value:
    """Return the address of the number of a thread's words that wait for a TMU."""
    return thread.words + (unit.sext(i64) << 2)


@staged
def _quad_lines(tmu: Tmu, work: Work, quad: Quad, request: Value) -> None:
    """The lines that a quad reads."""
    block = work.first_request + (quad.block.sext(i64) << 3)
    place = load(i64, block, 8) + request
    if place < load(i64, block + 8, 8):
        at = work.first_line + (place << 3)
        entry, end = load(i64, at, 8), load(i64, at + 8, 8)
        while entry < end:
            word = load(i32, work.lines + (entry << 2))
            if (word.shr(24) & 3) == quad.number:
                look_up_line(tmu, (word & 0xFFFFFF).sext(i64))
            entry = entry + 1


@staged
def _look_up(engine: Engine, tmu: Tmu, instance: Value, tag: Value) -> None:
    """The lines of a vector's request, quad by quad; its words leave the queue."""
    qpu = ShaderQpu.at(state_of(engine, instance), 8)
    low = tag.trunc(i32)
    place = words_place(thread_at(qpu, low & 1), tmu.unit)
    store(place, load(i32, place) - (low.shr(_WORDS) & 15))
    tmu.texels = low.shr(_LINES) & 1
    if tmu.texels != 0:
        figures = GraphicsFigures.at(engine.chip)
        work = Work.at(load(ptr, figures.works + 8))
        vector = Vector.at(work.vectors + tag.shr(_VECTOR) * Vector.size, 4)
        request = tag.shr(_REQUEST) & 0xFFFF
        first = work.quads + vector.first_quad.sext(i64) * Quad.size
        end = first + vector.quads.sext(i64) * Quad.size
        while first < end:
            _quad_lines(tmu, work, Quad.at(first, 4), request)
            first = first + Quad.size
        vector.missed = vector.missed + tmu.lines_left
    missing = tmu.lines_left.sext(i64)
    tmu.tags.misses = tmu.tags.misses + missing
    tmu.tags.hits = tmu.tags.hits + max_(LANES - missing, const(i64, 0))


@staged
def complete(engine: Engine, thread: Thread) -> Value:
    """Whether the results that a thread asked for have come, or are known to come: all of them, or
    as many as there is room for."""
    room = Figures.at(engine.chip).result_depth
    missing = const(i32, 0)
    for unit in (0, 1, 2, 3):
        asked = load(i32, thread.requested + 4 * unit)
        most = min_(asked, load(i32, thread.taken + 4 * unit) + room)
        arrived = load(i32, thread.arrived + 4 * unit)
        missing = missing + select(arrived < most, const(i32, 1), const(i32, 0))
    return missing == 0


@staged
def _hand_on(engine: Engine, tmu: Tmu, head: Value, ready: Value, clock: Value) -> Value:
    """A result goes to its thread, which is called if it waits for it."""
    figures = Figures.at(engine.chip)
    owner = load(i32, tmu.owner + (head << 2))
    number = request_queue(figures, owner, tmu.unit)
    results = queue_at(engine, QueueKind.TMU_RESULTS, number)
    done = const(i32, 0)
    if results.count < results.capacity:
        put_piece(results, clock, ready, head, const(i64, 0), const(i64, 0))
        instance = instance_of(engine, ModuleKind.QPU, owner)
        low = load(i64, tmu.tag + (head << 3)).trunc(i32)
        thread = thread_at(ShaderQpu.at(state_of(engine, instance), 8), low & 1)
        unit = tmu.unit.sext(i64)
        arrived = load(i32, thread.arrived + (unit << 2))
        place = (unit * RESULTS) + (arrived & (RESULTS - 1)).sext(i64)
        store(thread.ready + (place << 3), ready)
        store(thread.arrived + (unit << 2), arrived + 1)
        thread.complete_at = max_(thread.complete_at, ready)
        if thread.waits != 0:
            if complete(engine, thread):
                wake(engine, instance, thread.complete_at)
        elif thread.cause == int(Cause.TMU_RESULT):
            wake(engine, instance, ready)
        done = const(i32, 1)
    else:
        wake_self(engine, clock + 1)
    return done


step_shader_tmu = tmu_step(Requests(_look_up, _hand_on))
"""A TMU for shaders."""
