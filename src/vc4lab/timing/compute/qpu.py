"""A QPU: issues an instruction every four clocks, if nothing is missing for it.

What happens in the QPU alone (arithmetic, branches) runs ahead to the next instruction that meets
another module; that one is done at its own clock. `needs.py` says what it may have to wait for, and
`effects.py` what it does.
"""

from __future__ import annotations

from vc4lab.simd import Value, call, const, i32, i64, kernel, load, ptr, select, staged, store
from vc4lab.timing.compute.effects import do_effects, take_branch
from vc4lab.timing.compute.kinds import LINE_BITS, LOCAL, Cause, Flag, ModuleKind, QueueKind
from vc4lab.timing.compute.needs import what_is_missing
from vc4lab.timing.compute.slice_caches import look_up, move_uniforms
from vc4lab.timing.compute.state import CUT_OFF, Code, Figures, Host, Qpu
from vc4lab.timing.event_scheduler import Engine, instance_of, state_of, wake, wake_self
from vc4lab.timing.queues import first_piece, is_readable, queue_at, remove_piece


@staged
def _begin(engine: Engine, qpu: Qpu, clock: Value) -> None:
    """A program comes from the scheduler."""
    launches = queue_at(engine, QueueKind.LAUNCHES, qpu.number)
    if call(is_readable, engine.pointer, launches.pointer, clock) != 0:
        task = first_piece(launches).place.trunc(i32)
        if task != qpu.task:
            qpu.wanted = task
            engine.short_of_work = engine.current
            wake_self(engine, clock)
        else:
            call(remove_piece, engine.pointer, launches.pointer, clock)
            if qpu.programs == 0:
                qpu.started = clock
            else:
                at = qpu.stalls + (int(Cause.NO_PROGRAM) << 3)
                store(at, load(i64, at) + clock - qpu.stopped)
            qpu.programs = qpu.programs + 1
            qpu.running = const(i32, 1)
            qpu.stopped = const(i64, 0)
            qpu.due = clock
            qpu.since = clock
            move_uniforms(engine, qpu, qpu.stream, clock)
            wake_self(engine, clock)


@staged
def _end(engine: Engine, qpu: Qpu, clock: Value) -> None:
    """Its program has ended: the QPU is free for another one."""
    qpu.running = const(i32, 0)
    qpu.stopped = clock
    wake(engine, instance_of(engine, ModuleKind.SCHEDULER, const(i32, 0)), clock)
    host = Host.at(state_of(engine, instance_of(engine, ModuleKind.HOST, const(i32, 0))))
    programs = queue_at(engine, QueueKind.PROGRAMS, const(i32, 0))
    if (host.knows == 0) & (host.written == host.asked) & (programs.count == 0):
        host.held = const(i32, 1)
        engine.short_of_work = engine.current


@staged
def _blame(qpu: Qpu, code: Code, cause: Value, clocks: Value) -> None:
    """The instruction has waited so long for a cause."""
    at = cause.sext(i64) << 3
    store(qpu.stalls + at, load(i64, qpu.stalls + at) + clocks)
    store(code.stalls + at, load(i64, code.stalls + at) + clocks)


@staged
def _has_line(engine: Engine, qpu: Qpu, code: Code, clock: Value) -> Value:
    """Whether the instruction is there (1); else the instruction cache asks for it."""
    line = code.location.zext(i64).shr(LINE_BITS)
    there = const(i32, 1)
    if line != qpu.line:
        there = look_up(engine, ModuleKind.INSTRUCTION_CACHE, qpu, line, clock)
        qpu.line = select(there != 0, line, qpu.line)
        qpu.fetching = 1 - there
    return there


@staged
def _pass_on(qpu: Qpu, code: Code) -> None:
    """The next instruction: after this one, or where a branch leads that is due now."""
    due, ends = qpu.branch1, qpu.end1
    qpu.branch1 = qpu.branch2
    qpu.branch2 = qpu.branch3
    qpu.branch3 = const(i32, 0)
    qpu.end1 = qpu.end2
    qpu.end2 = const(i32, 0)
    qpu.site = select(due > 0, due - 1, code.following)
    if ends != 0:
        qpu.ended = const(i32, 1)


@staged
def _later(qpu: Qpu, code: Code) -> None:
    """Begin the instruction's effects that come after its delay slots."""
    if (code.flags & int(Flag.BRANCH)) != 0:
        qpu.branch3 = take_branch(qpu)
    if (code.flags & int(Flag.END)) != 0:
        qpu.end2 = const(i32, 1)


@staged
def _code(qpu: Qpu) -> Code:
    return Code.at(qpu.code + qpu.site.sext(i64) * Code.size)


@kernel(args=(ptr, ptr, i64))
def step_qpu(address: Value, state: Value, clock: Value) -> None:
    """Issues what can be issued from this clock on."""
    engine, qpu = Engine.at(address), Qpu.at(state)
    if qpu.running == 0:
        _begin(engine, qpu, clock)
    else:
        figures = Figures.at(engine.chip)
        if qpu.cause != int(Cause.NONE):
            _blame(qpu, _code(qpu), qpu.cause, clock - qpu.since)
            qpu.since = clock
        late = (clock - qpu.due) % figures.slot
        if qpu.fetching != 0:
            pass  # the instruction cache calls it
        elif clock < qpu.due:
            wake_self(engine, qpu.due)
        elif late != 0:
            wake_self(engine, clock + figures.slot - late)
        elif qpu.ended == 0:
            _issue(engine, qpu, figures, clock)


@staged
def _issue(engine: Engine, qpu: Qpu, figures: Figures, clock: Value) -> None:
    """Instructions from this clock on, until one has to wait or meets another module later."""
    go = const(i32, 1)
    first = const(i32, 1)
    while go != 0:
        if qpu.executed >= qpu.known:
            go = const(i32, 0)
            if qpu.final == 0:
                engine.short_of_work = engine.current
                wake_self(engine, clock)
            else:
                qpu.running = const(i32, 0)
                qpu.ended = const(i32, CUT_OFF)
                qpu.stopped = clock
        else:
            code = _code(qpu)
            meets = (code.flags & ~int(LOCAL)) != 0
            moves = code.location.zext(i64).shr(LINE_BITS) != qpu.line
            if (first == 0) & (meets | moves):
                go = const(i32, 0)
                qpu.cause = const(i32, int(Cause.NONE))
                wake_self(engine, clock)
            elif _has_line(engine, qpu, code, clock) == 0:
                go = const(i32, 0)
                qpu.cause = const(i32, int(Cause.INSTRUCTIONS))
                qpu.since = clock
            else:
                missing = const(i32, 0)
                if meets:
                    missing = call(what_is_missing, engine.pointer, qpu.pointer, clock)
                if missing != 0:
                    go = const(i32, 0)
                    qpu.cause = missing
                    qpu.since = clock
                else:
                    if meets:
                        call(do_effects, engine.pointer, qpu.pointer, clock)
                    code.executed = code.executed + 1
                    qpu.executed = qpu.executed + 1
                    qpu.cause = const(i32, int(Cause.NONE))
                    _pass_on(qpu, code)
                    _later(qpu, code)
                    first = const(i32, 0)
                    clock = clock + figures.slot
                    qpu.due = clock
                    if qpu.ended != 0:
                        go = const(i32, 0)
                        _end(engine, qpu, clock)
                    elif qpu.site < 0:
                        qpu.final = const(i32, 1)  # its program is left here
                        qpu.known = qpu.executed
