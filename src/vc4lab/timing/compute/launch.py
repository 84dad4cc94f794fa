"""The host, which writes SRQPC, and the QPU scheduler, which gives programs to QPUs."""

from __future__ import annotations

from vc4lab.simd import Value, call, const, i32, i64, kernel, load, ptr, select, staged
from vc4lab.timing.compute.kinds import ModuleKind, QueueKind
from vc4lab.timing.compute.state import CUT_OFF, Figures, Host, Qpu, Scheduler
from vc4lab.timing.event_scheduler import Engine, count_busy, instance_of, state_of, wake_self
from vc4lab.timing.queues import first_piece, may_take, queue_at, remove_piece, write_piece

NOT_FREE = -1
"""In place of a QPU: none is free."""


@kernel(args=(ptr, ptr, i64))
def step_host(address: Value, state: Value, clock: Value) -> None:
    """Writes the next program to the queue: the QPU that had it here, and its number."""
    engine, host = Engine.at(address), Host.at(state)
    if host.written < host.asked:
        programs = queue_at(engine, QueueKind.PROGRAMS, const(i32, 0))
        at = (host.written & 63).sext(i64) << 3
        qpu, task = load(i32, host.starts + at), load(i32, host.starts + at + 4)
        wrote = call(
            write_piece,
            address, programs.pointer, clock, clock,
            qpu.sext(i64), task.sext(i64), const(i64, 0),
        )  # fmt: skip
        host.written = host.written + wrote
        if (wrote != 0) & (host.written < host.asked):
            wake_self(engine, clock + 1)


@staged
def _is_free(engine: Engine, number: Value, clock: Value) -> Value:
    """Whether a QPU has no program, and none is on its way to it."""
    qpu = Qpu.at(state_of(engine, instance_of(engine, ModuleKind.QPU, number)))
    launches = queue_at(engine, QueueKind.LAUNCHES, number)
    idle = (qpu.running == 0) & (qpu.ended != CUT_OFF) & (launches.count == 0)
    if idle & (qpu.stopped > clock):  # its last instructions ran ahead
        wake_self(engine, qpu.stopped)
    return idle & (qpu.stopped <= clock)


@staged
def _free_qpu(engine: Engine, scheduler: Scheduler, figures: Figures, wanted: Value, clock: Value) -> Value:
    """The QPU that had a program here, if it is free; else the first one that is."""
    found = const(i32, NOT_FREE)
    if _is_free(engine, wanted, clock):
        found = wanted
    else:
        for index in range(figures.slices * figures.qpus):
            number = const(i32, 0) + index
            usable = (scheduler.usable.shr(number.sext(i64)) & 1) != 0
            if (found < 0) & usable:
                found = select(_is_free(engine, number, clock), number, found)
    return found


@kernel(args=(ptr, ptr, i64))
def step_scheduler(address: Value, state: Value, clock: Value) -> None:
    """Gives the oldest program to a QPU; one whose program ends calls this again."""
    engine, scheduler = Engine.at(address), Scheduler.at(state)
    figures = Figures.at(engine.chip)
    programs = queue_at(engine, QueueKind.PROGRAMS, const(i32, 0))
    if may_take(engine, programs, scheduler.accept_at, clock) != 0:
        piece = first_piece(programs)
        qpu = _free_qpu(engine, scheduler, figures, piece.source.trunc(i32), clock)
        if qpu >= 0:
            launches = queue_at(engine, QueueKind.LAUNCHES, qpu)
            wrote = call(
                write_piece,
                address, launches.pointer, clock, clock + figures.launch,
                piece.source, piece.place, const(i64, 0),
            )  # fmt: skip
            if wrote != 0:
                call(remove_piece, address, programs.pointer, clock)
                scheduler.accept_at = clock + figures.start_interval
                count_busy(engine, figures.start_interval)
                if programs.count > 0:
                    wake_self(engine, scheduler.accept_at)
