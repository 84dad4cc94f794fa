"""Texture and memory lookup unit: looks up the lines of each vector, and hands results on in order.

Tags are looked up a lane a clock as a vector comes in; the lines that are missing are asked of the
L2 cache, one a clock, while older vectors still wait for theirs.
"""

from __future__ import annotations

from vc4lab.simd import (
    Value,
    call,
    const,
    i32,
    i64,
    kernel,
    load,
    max_,
    ptr,
    select,
    staged,
    store,
)
from vc4lab.timing.clockwork import (
    Engine,
    count_busy,
    first_piece,
    instance_of,
    is_readable,
    queue_at,
    remove_piece,
    state_of,
    wake_self,
    write_piece,
)
from vc4lab.timing.compute import tags
from vc4lab.timing.compute.kinds import LINE_BITS, ModuleKind, QueueKind
from vc4lab.timing.compute.state import IN_FLIGHT, VECTORS, Figures, Qpu, Tmu

TEXTURE = -1
"""In place of a vector's number: a texture, whose texels count as being in the cache."""


@staged
def request_queue(figures: Figures, qpu: Value, unit: Value) -> Value:
    """The number of the queue from a QPU to a unit of its slice, and of the one back."""
    return qpu * figures.tmus + unit


@staged
def _take_lines(engine: Engine, tmu: Tmu, clock: Value) -> None:
    """A line has come for a vector."""
    answers = queue_at(engine, QueueKind.L2_ANSWERS, tmu.source)
    if call(is_readable, engine.pointer, answers.pointer, clock) != 0:
        slot = first_piece(answers).tag
        call(remove_piece, engine.pointer, answers.pointer, clock)
        figures = Figures.at(engine.chip)
        at = tmu.missing + (slot << 2)
        store(at, load(i32, at) - 1)
        ready = tmu.ready + (slot << 3)
        store(ready, max_(load(i64, ready), clock + figures.tmu_latency))


@staged
def _ask(engine: Engine, tmu: Tmu, clock: Value) -> None:
    """Asks for one line of the newest vector."""
    if tmu.sent < tmu.lines_left:
        requests = queue_at(engine, QueueKind.L2_REQUESTS, const(i32, 0))
        line = load(i64, tmu.lines + (tmu.sent.sext(i64) << 3))
        slot = (tmu.head + tmu.count - 1) & (IN_FLIGHT - 1)
        wrote = call(
            write_piece,
            engine.pointer, requests.pointer, clock, clock + 1,
            tmu.source.sext(i64), line, slot.sext(i64),
        )  # fmt: skip
        tmu.sent = tmu.sent + wrote
        if (wrote != 0) & (tmu.sent < tmu.lines_left):
            wake_self(engine, clock + 1)


@staged
def _hand_on(engine: Engine, tmu: Tmu, figures: Figures, clock: Value) -> None:
    """The oldest vector is complete: its result goes to its QPU."""
    if tmu.count > 0:
        head = tmu.head.sext(i64)
        asking = (tmu.count == 1) & (tmu.sent < tmu.lines_left)
        if (load(i32, tmu.missing + (head << 2)) == 0) & ~asking:
            qpu = load(i32, tmu.owner + (head << 2))
            number = request_queue(figures, qpu, tmu.unit)
            results = queue_at(engine, QueueKind.TMU_RESULTS, number)
            ready = max_(load(i64, tmu.ready + (head << 3)), clock)
            wrote = call(
                write_piece,
                engine.pointer, results.pointer, clock, ready,
                head, const(i64, 0), const(i64, 0),
            )  # fmt: skip
            if wrote != 0:
                tmu.head = (tmu.head + 1) & (IN_FLIGHT - 1)
                tmu.count = tmu.count - 1
                wake_self(engine, clock + 1)


@staged
def _look_up(tmu: Tmu, qpu: Qpu, vector: Value) -> None:
    """The tags of a vector's lanes: keeps the lines that are missing."""
    tmu.lines_left = const(i32, 0)
    tmu.sent = const(i32, 0)
    before = const(i64, -1)
    for lane in range(16):
        place = qpu.vectors + (vector << 6) + (lane << 2)
        line = load(i32, place).zext(i64).shr(LINE_BITS)
        if line != before:
            before = line
            if call(tags.access, tmu.tags.pointer, line) == 0:
                store(tmu.lines + (tmu.lines_left.sext(i64) << 3), line)
                tmu.lines_left = tmu.lines_left + 1
    tmu.tags.misses = tmu.tags.misses + tmu.lines_left.sext(i64)
    tmu.tags.hits = tmu.tags.hits + (16 - tmu.lines_left).sext(i64)


@staged
def _accept(engine: Engine, tmu: Tmu, figures: Figures, clock: Value) -> None:
    """Takes a request of one of the slice's QPUs, in turn."""
    first = tmu.slice * figures.qpus
    number: Value = tmu.last
    taken = const(i32, 0)
    for _ in range(figures.qpus):
        number = select(number + 1 >= figures.qpus, const(i32, 0), number + 1)
        if taken == 0:
            owner = first + number
            requests = queue_at(
                engine, QueueKind.TMU_REQUESTS, request_queue(figures, owner, tmu.unit)
            )
            held = tmu.held + (number << 2)
            if load(i32, held) < figures.result_depth:
                if call(is_readable, engine.pointer, requests.pointer, clock) != 0:
                    vector = first_piece(requests).tag
                    call(remove_piece, engine.pointer, requests.pointer, clock)
                    instance = instance_of(engine, ModuleKind.QPU, owner)
                    slot = ((tmu.head + tmu.count) & (IN_FLIGHT - 1)).sext(i64)
                    tmu.lines_left = const(i32, 0)
                    tmu.sent = const(i32, 0)
                    if vector >= 0:
                        _look_up(tmu, Qpu.at(state_of(engine, instance)), vector)
                    store(tmu.owner + (slot << 2), owner)
                    store(tmu.missing + (slot << 2), tmu.lines_left)
                    store(tmu.ready + (slot << 3), clock - 1 + figures.tmu_latency)
                    tmu.count = tmu.count + 1
                    store(held, load(i32, held) + 1)
                    tmu.last = number
                    tmu.accept_at = clock + figures.lane_clocks
                    count_busy(engine, figures.lane_clocks)
                    wake_self(engine, tmu.accept_at)
                    taken = const(i32, 1)


@kernel(args=(ptr, ptr, i64))
def step_tmu(address: Value, state: Value, clock: Value) -> None:
    """Takes a line, hands a result on, takes a vector, asks for a line."""
    engine, tmu = Engine.at(address), Tmu.at(state)
    figures = Figures.at(engine.chip)
    _take_lines(engine, tmu, clock)
    _hand_on(engine, tmu, figures, clock)
    if (tmu.sent >= tmu.lines_left) & (tmu.count < figures.tmu_vectors):
        if tmu.accept_at <= clock:
            _accept(engine, tmu, figures, clock)
        else:
            wake_self(engine, tmu.accept_at)
    _ask(engine, tmu, clock)


@staged
def keep_vector(qpu: Qpu, record: Value) -> Value:
    """Keeps the addresses of a request until the TMU looks at them; their number (i64)."""
    number = qpu.vector
    qpu.vector = (number + 1) & (VECTORS - 1)
    to = qpu.vectors + (number << 6)
    for lane in range(16):
        at = lane << 2
        store(to + at, load(i32, record + at))
    return number.sext(i64)
