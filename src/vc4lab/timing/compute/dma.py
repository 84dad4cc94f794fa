"""The VPM DMA: one engine for loads (VDR) and one for stores (VDW), a transfer at a time each."""

from __future__ import annotations

from vc4lab.simd import Value, call, const, i32, i64, kernel, max_, ptr, select, staged
from vc4lab.timing.compute.kinds import FRACTION, Cause, ModuleKind, QueueKind
from vc4lab.timing.compute.memory import FROM_LOADER, FROM_STORER
from vc4lab.timing.compute.state import Dma, Figures, Qpu
from vc4lab.timing.event_scheduler import Engine, count_busy, instance_of, next_bit, state_of, wake, wake_self
from vc4lab.timing.queues import is_readable, queue_at, remove_piece, write_piece


@staged
def engine_of(engine: Engine, kind: int) -> Dma:
    """The engine of a direction."""
    return Dma.at(state_of(engine, instance_of(engine, kind, const(i32, 0))))


def _or(value: Value, zero: int) -> Value:
    """A field in which 0 stands for its range."""
    return select(value == 0, const(i32, zero), value)


def _bytes_shift(mode: Value) -> Value:
    """log2 of an element's bytes, from MODEW."""
    return select(mode >= 4, const(i32, 0), select(mode >= 2, const(i32, 1), const(i32, 2)))


@staged
def _begin(engine: Engine, dma: Dma, kind: int, owner: Value, clock: Value) -> None:
    """The shape is set: the transfer starts."""
    dma.busy = const(i32, 1)
    dma.owner = owner
    dma.sent = const(i32, 0)
    dma.back = const(i32, 0)
    dma.started = clock
    dma.time_part = clock << FRACTION
    dma.transfers = dma.transfers + 1
    dma.bytes = dma.bytes + (dma.rows * dma.row_bytes).sext(i64)
    wake(engine, instance_of(engine, kind, const(i32, 0)), clock + 1)


@staged
def start_load(engine: Engine, qpu: Qpu, address: Value, setup: Value, stride: Value, clock: Value) -> None:
    """A write of VPM_LD_ADDR while the engine is free."""
    dma = engine_of(engine, ModuleKind.LOADER)
    figures = Figures.at(engine.chip)
    shift = _bytes_shift(setup.shr(28) & 7)
    dma.rows = _or(setup.shr(16) & 15, 16)
    length = _or(setup.shr(20) & 15, 16)
    dma.row_bytes = length << shift
    pitch = setup.shr(24) & 15
    dma.pitch = select(pitch == 0, stride & 0x3FFF, const(i32, 8) << pitch).sext(i64)
    dma.location = address.zext(i64)
    words = ((dma.row_bytes + 3) >> 2).sext(i64)
    dma.pace_part = figures.load_row_part + words * figures.load_word_part
    qpu.loading = const(i32, 1)
    _begin(engine, dma, ModuleKind.LOADER, qpu.number, clock)


@staged
def start_store(engine: Engine, qpu: Qpu, address: Value, setup: Value, stride: Value, clock: Value) -> None:
    """A write of VPM_ST_ADDR while the engine is free."""
    dma = engine_of(engine, ModuleKind.STORER)
    figures = Figures.at(engine.chip)
    shift = _bytes_shift(setup & 7)
    dma.rows = _or(setup.shr(23) & 127, 128)
    length = _or(setup.shr(16) & 127, 128)
    dma.row_bytes = length << shift
    dma.pitch = (dma.row_bytes + (stride & 0xFFFF)).sext(i64)
    dma.location = address.zext(i64)
    words = ((dma.row_bytes + 3) >> 2).sext(i64)
    dma.pace_part = figures.store_row_part + words * figures.store_word_part
    qpu.storing = const(i32, 1)
    _begin(engine, dma, ModuleKind.STORER, qpu.number, clock)


@staged
def _finish(engine: Engine, dma: Dma, clock: Value) -> None:
    """The transfer is through: its QPU may wait for it, and another one for the engine."""
    dma.busy = const(i32, 0)
    count_busy(engine, clock - dma.started)
    waiting = dma.waiting
    if waiting != 0:
        number = next_bit(waiting, dma.last)
        dma.last = number
        dma.waiting = waiting & ~(const(i64, 1) << number.sext(i64))
        wake(engine, instance_of(engine, ModuleKind.QPU, number), clock)


@staged
def _send_row(engine: Engine, dma: Dma, source: int, clock: Value) -> Value:
    """Asks the memory for a row, or hands it one; whether there was room."""
    requests = queue_at(engine, QueueKind.MEMORY_REQUESTS, const(i32, 0))
    at = dma.location + dma.sent.sext(i64) * dma.pitch
    wrote = call(
        write_piece,
        engine.pointer, requests.pointer, clock, clock + 1,
        const(i64, source), at & 0x3FFFFFFF, dma.row_bytes.sext(i64),
    )  # fmt: skip
    dma.sent = dma.sent + wrote
    return wrote


@kernel(args=(ptr, ptr, i64))
def step_loader(address: Value, state: Value, clock: Value) -> None:
    """Rows are asked for ahead, and go into the VPM one after the other."""
    engine, dma = Engine.at(address), Dma.at(state)
    figures = Figures.at(engine.chip)
    answers = queue_at(engine, QueueKind.MEMORY_ANSWERS, const(i32, FROM_LOADER))
    if dma.busy != 0:
        if call(is_readable, address, answers.pointer, clock) != 0:
            call(remove_piece, address, answers.pointer, clock)
            dma.back = dma.back + 1
            dma.time_part = max_(dma.time_part + dma.pace_part, clock << FRACTION)
        if (dma.sent < dma.rows) & (dma.sent - dma.back < figures.load_ahead):
            if _send_row(engine, dma, FROM_LOADER, clock) != 0:
                wake_self(engine, clock + 1)
        if dma.back == dma.rows:
            end = (dma.time_part + ((1 << FRACTION) - 1)) >> FRACTION
            if clock >= end:
                owner = instance_of(engine, ModuleKind.QPU, dma.owner)
                qpu = Qpu.at(state_of(engine, owner))
                qpu.loading = const(i32, 0)
                if qpu.cause == int(Cause.LOAD_WAIT):
                    wake(engine, owner, clock)
                _finish(engine, dma, clock)
            else:
                wake_self(engine, end)


@kernel(args=(ptr, ptr, i64))
def step_storer(address: Value, state: Value, clock: Value) -> None:
    """Rows come out of the VPM at their pace, and go to memory, which does not answer."""
    engine, dma = Engine.at(address), Dma.at(state)
    if dma.busy != 0:
        due = (dma.time_part + dma.pace_part + ((1 << FRACTION) - 1)) >> FRACTION
        if clock < due:
            wake_self(engine, due)
        else:
            wrote = const(i32, 1)
            if dma.sent < dma.rows:
                wrote = _send_row(engine, dma, FROM_STORER, clock)
            if wrote != 0:
                late = max_(clock << FRACTION, dma.time_part + dma.pace_part)
                on_time = (clock << FRACTION) - (1 << FRACTION) < dma.time_part + dma.pace_part
                following = dma.time_part + dma.pace_part
                dma.time_part = select(on_time, following, late)
                if dma.sent >= dma.rows:
                    owner = instance_of(engine, ModuleKind.QPU, dma.owner)
                    qpu = Qpu.at(state_of(engine, owner))
                    qpu.storing = const(i32, 0)
                    if qpu.cause == int(Cause.STORE_WAIT):
                        wake(engine, owner, clock)
                    _finish(engine, dma, clock)
                else:
                    following_due = dma.time_part + dma.pace_part + ((1 << FRACTION) - 1)
                    wake_self(engine, following_due >> FRACTION)
