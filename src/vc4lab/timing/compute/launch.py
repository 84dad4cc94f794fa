"""The host, which writes SRQPC, and the QPU scheduler, which gives programs to QPUs."""

from __future__ import annotations

from vc4lab.simd import Value, call, const, i32, i64, kernel, load, ptr
from vc4lab.timing.clockwork import (
    Engine,
    count_busy,
    first_piece,
    may_take,
    queue_at,
    remove_piece,
    wake_self,
    write_piece,
)
from vc4lab.timing.compute.kinds import QueueKind
from vc4lab.timing.compute.state import Figures, Host, Scheduler


@kernel(args=(ptr, ptr, i64))
def step_host(address: Value, state: Value, clock: Value) -> None:
    """Writes the next program to the queue."""
    engine, host = Engine.at(address), Host.at(state)
    if host.written < host.asked:
        programs = queue_at(engine, QueueKind.PROGRAMS, const(i32, 0))
        qpu = load(i32, host.starts + ((host.written & 63).sext(i64) << 2))
        wrote = call(
            write_piece,
            address, programs.pointer, clock, clock,
            qpu.sext(i64), const(i64, 0), const(i64, 0),
        )  # fmt: skip
        host.written = host.written + wrote
        if (wrote != 0) & (host.written < host.asked):
            wake_self(engine, clock + 1)


@kernel(args=(ptr, ptr, i64))
def step_scheduler(address: Value, state: Value, clock: Value) -> None:
    """Gives the oldest program to its QPU."""
    engine, scheduler = Engine.at(address), Scheduler.at(state)
    figures = Figures.at(engine.chip)
    programs = queue_at(engine, QueueKind.PROGRAMS, const(i32, 0))
    if may_take(engine, programs, scheduler.accept_at, clock) != 0:
        qpu = first_piece(programs).source
        launches = queue_at(engine, QueueKind.LAUNCHES, qpu.trunc(i32))
        wrote = call(
            write_piece,
            address, launches.pointer, clock, clock + figures.launch,
            qpu, const(i64, 0), const(i64, 0),
        )  # fmt: skip
        if wrote != 0:
            call(remove_piece, address, programs.pointer, clock)
            scheduler.accept_at = clock + figures.start_interval
            count_busy(engine, figures.start_interval)
            if programs.count > 0:
                wake_self(engine, scheduler.accept_at)
