"""A QPU that runs shaders: two threads that give way to each other, segment by segment.

A thread runs ahead of the event scheduler as long as nothing that another module could still change
matters to it (`needs.py`); its requests to TMUs are written for the clock at which they will
be made. One call so takes a thread from one wait to the next.
"""

from __future__ import annotations

from vc4lab.simd import Value, call, const, i32, i64, kernel, load, min_, ptr, select, staged, store
from vc4lab.timing.compute.kinds import LINE_BITS, Cause, Flag, ModuleKind, QueueKind
from vc4lab.timing.compute.needs import unit_of
from vc4lab.timing.compute.slice_caches import find_line, is_there
from vc4lab.timing.compute.state import Figures, Qpu
from vc4lab.timing.compute.tmu import request_queue
from vc4lab.timing.event_scheduler import Engine, wake, wake_self
from vc4lab.timing.graphics.shaders.lines import ask_uniforms, thread_at, waiter_of
from vc4lab.timing.graphics.shaders.needs import (
    blame,
    block,
    give_way,
    next_slot,
    take_result,
    wait_for_needs,
)
from vc4lab.timing.graphics.shaders.requests import request_tag, words_place
from vc4lab.timing.graphics.shaders.state import Segment, ShaderQpu, Thread
from vc4lab.timing.graphics.shaders.threads import announce_end, choose_thread, end_task
from vc4lab.timing.graphics.state import Shader, TaskKind
from vc4lab.timing.graphics.tiles.scoreboard import drop_lock
from vc4lab.timing.queues import put_piece, queue_at

INSTRUCTION_BITS = 3
"""An instruction has 8 bytes."""


@staged
def _has_line(engine: Engine, qpu: Qpu, thread: Thread, line: Value, at: Value, now: Value) -> Value:
    """Whether a line of instructions is there (1); else the thread waits."""
    there = const(i32, 1)
    if line != thread.line:
        if at > now:
            there = is_there(engine, ModuleKind.INSTRUCTION_CACHE, qpu.slice, line)
        if there != 0:
            waiter = waiter_of(engine, qpu, thread)
            kind = ModuleKind.INSTRUCTION_CACHE
            there = find_line(engine, kind, qpu.slice, waiter, line, now)
        if there != 0:
            thread.line = line
        else:
            block(engine, thread, Cause.INSTRUCTIONS, at, now)
    return there


@staged
def _request(engine: Engine, qpu: Qpu, thread: Thread, segment: Segment, unit: int, clock: Value) -> None:
    """A request goes to a TMU."""
    figures = Figures.at(engine.chip)
    number = unit_of(figures, qpu, unit)
    queue = queue_at(engine, QueueKind.TMU_REQUESTS, request_queue(figures, qpu.number, number))
    lines = select(thread.kind == int(TaskKind.FRAGMENTS), const(i32, 1), const(i32, 0))
    tag = request_tag(thread, segment.words, lines)
    put_piece(queue, clock, clock + 1, qpu.number.sext(i64), const(i64, 0), tag)
    wake(engine, queue.reader, clock + 1)
    place = words_place(thread, number)
    store(place, load(i32, place) + segment.words)
    place = thread.requested + (number.sext(i64) << 2)
    store(place, load(i32, place) + 1)
    thread.requests = thread.requests + 1
    qpu.lookups = qpu.lookups + 1


@kernel(args=(ptr, ptr, ptr, ptr, i64, i64))
def do_effects(address: Value, state: Value, where: Value, what: Value, at: Value, now: Value) -> None:
    """The first instruction of a segment is issued."""
    engine, qpu = Engine.at(address), ShaderQpu.at(state, 8).common
    thread, segment = Thread.at(where, 8), Segment.at(what, 8)
    figures = Figures.at(engine.chip)
    meets = segment.meets
    if (meets & int(Flag.MOVES_UNIFORMS)) != 0:
        line = thread.uniform_line + segment.line.sext(i64)
        ask_uniforms(engine, qpu, thread, line, at, now)
    for unit, bit in enumerate((Flag.RESULT0, Flag.RESULT1)):
        if (meets & int(bit)) != 0:
            take_result(engine, qpu, thread, unit_of(figures, qpu, unit), at)
    for unit, bit in enumerate((Flag.LOOKUP0, Flag.LOOKUP1)):
        if (meets & int(bit)) != 0:
            _request(engine, qpu, thread, segment, unit, at)
    if (meets & int(Flag.VPM_SETUP)) != 0:
        thread.vpm_at = at + figures.vpm_latency
    if ((meets & int(Flag.UNLOCK)) != 0) & (thread.locked == 1):
        thread.locked = const(i32, 2)
        drop_lock(engine, thread.task, now)
    if (meets & int(Flag.END)) != 0:
        announce_end(engine, qpu, thread, now)


@staged
def _begin_segment(
    engine: Engine, qpu: ShaderQpu, thread: Thread, segment: Segment, at: Value, now: Value
) -> Value:
    """Waits for what a segment meets and does it: the clock after its first instruction; or less
    than 0."""
    meets = segment.meets
    switches = meets & int(Flag.SWITCH | Flag.LAST_SWITCH)
    if (switches != 0) & (thread.switched == 0):
        if at > now:
            at = block(engine, thread, Cause.NONE, at, now)
        else:
            last = (meets & int(Flag.LAST_SWITCH)) != 0
            thread.ordered = select(last, const(i32, 1), thread.ordered)
            at = give_way(qpu, thread, at)
    if (at >= 0) & ((meets & ~int(Flag.SWITCH | Flag.LAST_SWITCH)) != 0):
        at = call(
            wait_for_needs,
            engine.pointer, qpu.pointer, thread.pointer, segment.pointer, at, now,
        )  # fmt: skip
        if at >= 0:
            call(
                do_effects,
                engine.pointer, qpu.pointer, thread.pointer, segment.pointer, at, now,
            )  # fmt: skip
    return at


@staged
def _issue(engine: Engine, qpu: ShaderQpu, thread: Thread, segment: Segment, at: Value, now: Value) -> Value:
    """Issues a segment's instructions line by line: the clock after them; or less than 0."""
    slot = Figures.at(engine.chip).slot
    shader = Shader.at(thread.shader, 8)
    go = const(i32, 1)
    while go != 0:
        place = shader.code + ((segment.first + thread.issued) << INSTRUCTION_BITS)
        line = place.zext(i64).shr(LINE_BITS)
        if _has_line(engine, qpu.common, thread, line, at, now) == 0:
            at = const(i64, -1)
            go = const(i32, 0)
        elif thread.issued == 0:
            at = _begin_segment(engine, qpu, thread, segment, at, now)
        if at >= 0:
            inside = (place.shr(INSTRUCTION_BITS)) & 7
            count = min_(8 - inside, segment.slots - thread.issued)
            at = at + count.sext(i64) * slot
            thread.issued = thread.issued + count
            thread.due = at
            if thread.issued >= segment.slots:
                go = const(i32, 0)
        else:
            go = const(i32, 0)
    return at


@kernel(args=(ptr, ptr, ptr, i64), returns=i32)
def run_thread(address: Value, state: Value, where: Value, now: Value) -> Value:
    """Runs a thread as far as it gets; 1 if it has ended."""
    engine, qpu = Engine.at(address), ShaderQpu.at(state, 8)
    thread = Thread.at(where, 8)
    slot = Figures.at(engine.chip).slot
    due = thread.due
    at = next_slot(due, now, slot)
    thread.due = at
    if thread.cause != int(Cause.NONE):
        segment = _segment_at(thread, min_(thread.step, thread.steps - 1))
        blame(qpu.common, segment, thread.cause, at - due)
        thread.cause = const(i32, int(Cause.NONE))
    ended = const(i32, 0)
    while at >= 0:
        if thread.step >= thread.steps:
            if at > now:
                wake_self(engine, at)
            else:
                ended = end_task(engine, qpu, thread, now)
            at = const(i64, -1)
        else:
            segment = _segment_at(thread, thread.step)
            if thread.cached == 0:
                at = _issue(engine, qpu, thread, segment, at, now)
            else:
                at = _begin_segment(engine, qpu, thread, segment, at, now)
                if at >= 0:
                    at = at + segment.slots.sext(i64) * slot
                    thread.due = at
            if at >= 0:
                thread.step = thread.step + 1
                thread.issued = const(i32, 0)
                thread.switched = const(i32, 0)
                thread.accesses = thread.accesses + segment.tile
                segment.executed = segment.executed + 1
                common = qpu.common
                common.executed = common.executed + segment.slots.sext(i64)
                common.uniforms = common.uniforms + segment.uniforms.sext(i64)
    return ended


@staged
def _segment_at(thread: Thread, step: Value) -> Segment:
    number = load(i32, thread.route + (step.sext(i64) << 2))
    return Segment.at(thread.segments + number.sext(i64) * Segment.size, 8)


@kernel(args=(ptr, ptr, i64))
def step_shader_qpu(address: Value, state: Value, clock: Value) -> None:
    """Goes on with the thread that runs, or with another one."""
    engine, qpu = Engine.at(address), ShaderQpu.at(state, 8)
    go = const(i32, 1)
    while go != 0:
        go = const(i32, 0)
        if qpu.current > 0:
            thread = thread_at(qpu, qpu.current - 1)
            if thread.due > clock:
                wake_self(engine, thread.due)
            else:
                call(run_thread, address, state, thread.pointer, clock)
                go = select(qpu.current == 0, const(i32, 1), go)
        else:
            go = choose_thread(engine, qpu, clock)
