"""Carries out the effects of an issued instruction on the rest of the chip."""

from __future__ import annotations

from vc4lab.simd import Value, call, const, i32, i64, kernel, load, max_, min_, ptr, select, staged, store
from vc4lab.timing.compute.dma import start_load, start_store
from vc4lab.timing.compute.kinds import Flag, ModuleKind, QueueKind
from vc4lab.timing.compute.needs import unit_of
from vc4lab.timing.compute.slice_caches import fetch_uniforms, move_uniforms
from vc4lab.timing.compute.state import Code, Figures, Piece, Qpu, Tmu
from vc4lab.timing.compute.tmu import ADDRESSES, keep_vector, request_queue
from vc4lab.timing.event_scheduler import Engine, instance_of, next_bit, state_of, wake
from vc4lab.timing.queues import queue_at, remove_piece, write_piece
from vc4lab.v3d.user_programs.recording.format import KIND_SHIFT, MAX_LINES, SITE_SHIFT, Kind

_KIND = (1 << SITE_SHIFT - KIND_SHIFT) - 1


# -- the record


@staged
def _word(qpu: Qpu, number: int) -> Value:
    """A word of the record, counted from the next one."""
    return load(i32, qpu.record + ((qpu.next_word + number) << 2))


@staged
def take_branch(qpu: Qpu) -> Value:
    """Return the target of the branch that is executed: index of the instruction + 1; 0: it is not taken."""
    target = const(i32, 0)
    if qpu.next_word < qpu.words:
        kind = _word(qpu, 0).shr(KIND_SHIFT) & _KIND
        if kind == int(Kind.TAKEN):
            address = _word(qpu, 1)
            qpu.next_word = qpu.next_word + 2
            for number in range(qpu.piece_count):
                piece = Piece.at(qpu.pieces + number * Piece.size, 4)
                index = (address - piece.location).shr(3)
                if index.ult(piece.count):
                    target = piece.first + index + 1
        else:
            qpu.next_word = qpu.next_word + 1
    return target


@staged
def _take_entries(engine: Engine, qpu: Qpu, clock: Value) -> None:
    """Everything recorded of the instruction that is executed."""
    while qpu.next_word < qpu.words:
        head = _word(qpu, 0)
        if head.shr(SITE_SHIFT) != qpu.site:
            break
        kind = head.shr(KIND_SHIFT) & _KIND
        if kind <= int(Kind.TAKEN):
            break
        size = const(i64, 2)
        if kind == int(Kind.LOOKUP):
            place = qpu.record + ((qpu.next_word + 1) << 2)
            vector = keep_vector(qpu, place, const(i32, 16), const(i32, ADDRESSES))
            _request(engine, qpu, head & 1, vector, clock)
            size = const(i64, 17)
        elif kind == int(Kind.TEXTURE):
            if qpu.ahead > 0:
                _take_uniform(engine, qpu, clock)
            lines = min_(_word(qpu, 2), const(i32, MAX_LINES))
            place = qpu.record + ((qpu.next_word + 3) << 2)
            _request(engine, qpu, head & 1, keep_vector(qpu, place, lines, lines), clock)
            size = 3 + _word(qpu, 2).sext(i64)
        elif kind == int(Kind.UNIFORMS):
            move_uniforms(engine, qpu, _word(qpu, 1), clock)
        elif kind == int(Kind.LOAD):
            start_load(engine, qpu, _word(qpu, 1), _word(qpu, 2), _word(qpu, 3), clock)
            size = const(i64, 4)
        elif kind == int(Kind.STORE):
            start_store(engine, qpu, _word(qpu, 1), _word(qpu, 2), _word(qpu, 3), clock)
            size = const(i64, 4)
        elif kind == int(Kind.NOSWAP):
            qpu.noswap = _word(qpu, 1)
        elif _word(qpu, 1).shr(30) == 0:  # a set-up for reads
            qpu.vpm_ready = clock + Figures.at(engine.chip).vpm_latency
        qpu.next_word = qpu.next_word + size


# -- units


@staged
def _take_uniform(engine: Engine, qpu: Qpu, clock: Value) -> None:
    """The next word of the stream is read."""
    qpu.uniforms = qpu.uniforms + 1
    qpu.stream = qpu.stream + 4
    qpu.ahead = qpu.ahead - 1
    fetch_uniforms(engine, qpu, clock)


@staged
def _request(engine: Engine, qpu: Qpu, unit: Value, vector: Value, clock: Value) -> None:
    """A request goes to a TMU."""
    figures = Figures.at(engine.chip)
    number = select(unit == 0, unit_of(figures, qpu, 0), unit_of(figures, qpu, 1))
    queue = queue_at(engine, QueueKind.TMU_REQUESTS, request_queue(figures, qpu.number, number))
    qpu.lookups = qpu.lookups + 1
    source = qpu.number.sext(i64)
    call(
        write_piece,
        engine.pointer, queue.pointer, clock, clock + 1, source, const(i64, 0), vector,
    )  # fmt: skip


@staged
def _take_result(engine: Engine, qpu: Qpu, unit: int, clock: Value) -> None:
    """A result is read: the TMU may work on one more."""
    figures = Figures.at(engine.chip)
    number = unit_of(figures, qpu, unit)
    queue = queue_at(engine, QueueKind.TMU_RESULTS, request_queue(figures, qpu.number, number))
    call(remove_piece, engine.pointer, queue.pointer, clock)
    instance = instance_of(engine, ModuleKind.TMU, qpu.slice * figures.tmus + number)
    held = Tmu.at(state_of(engine, instance)).held + (qpu.port.sext(i64) << 2)
    store(held, load(i32, held) - 1)
    wake(engine, instance, clock + 1)


@staged
def _wake_one(engine: Engine, place: Value, last: Value, clock: Value) -> None:
    """Calls the next of the QPUs that wait, a bit each at `place`."""
    waiting = load(i64, place)
    if waiting != 0:
        number = next_bit(waiting, load(i32, last))
        store(last, number)
        store(place, waiting & ~(const(i64, 1) << number.sext(i64)))
        wake(engine, instance_of(engine, ModuleKind.QPU, number), clock + 1)


@staged
def _synchronise(engine: Engine, qpu: Qpu, figures: Figures, code: Code, clock: Value) -> None:
    """Mutex and semaphores."""
    flags = code.flags
    if (flags & int(Flag.ACQUIRE)) != 0:
        figures.mutex = qpu.number + 1
    if (flags & int(Flag.RELEASE)) != 0:
        figures.mutex = const(i32, 0)
        waiting = figures.field_ptr("mutex_waiting")
        _wake_one(engine, waiting, figures.field_ptr("mutex_last"), clock)
    if (flags & int(Flag.RAISE | Flag.LOWER)) != 0:
        number = code.number.sext(i64)
        place = figures.semaphores + (number << 2)
        lowers = (flags & int(Flag.LOWER)) != 0
        store(place, load(i32, place) + select(lowers, const(i32, -1), const(i32, 1)))
        waiting = figures.semaphore_waiting + (number << 3)
        _wake_one(engine, waiting, figures.semaphore_last + (number << 2), clock)


@kernel(args=(ptr, ptr, i64))
def do_effects(address: Value, state: Value, clock: Value) -> None:
    """The instruction is issued; nothing was missing."""
    engine, qpu = Engine.at(address), Qpu.at(state)
    figures = Figures.at(engine.chip)
    code = Code.at(qpu.code + qpu.site.sext(i64) * Code.size)
    flags = code.flags
    for flag in (Flag.UNIFORM, Flag.SECOND_UNIFORM, Flag.PARAMETER):
        if ((flags & int(flag)) != 0) & (qpu.ahead > 0):
            _take_uniform(engine, qpu, clock)
    for unit, flag in enumerate((Flag.RESULT0, Flag.RESULT1)):
        if (flags & int(flag)) != 0:
            _take_result(engine, qpu, unit, clock)
    if (flags & int(Flag.SFU)) != 0:
        store(figures.sfu_free + (qpu.slice.sext(i64) << 3), clock + figures.sfu_interval)
    if (flags & int(Flag.VPM_READ)) != 0:
        figures.vpm_free = clock + figures.vpm_interval
    if (flags & int(Flag.VPM_WRITE)) != 0:
        through = max_(clock, figures.vpm_free) + figures.vpm_interval
        figures.vpm_free = through
        first = qpu.vpm_written0 <= qpu.vpm_written1
        qpu.vpm_written0 = select(first, through, qpu.vpm_written0)
        qpu.vpm_written1 = select(first, qpu.vpm_written1, through)
    if (flags & int(Flag.ACQUIRE | Flag.RELEASE | Flag.RAISE | Flag.LOWER)) != 0:
        _synchronise(engine, qpu, figures, code, clock)
    if (flags & int(Flag.RECORDED)) != 0:
        _take_entries(engine, qpu, clock)
