"""Texture and memory lookup unit: looks up the lines of each vector, and hands results on in order.

Tags are looked up a lane a clock as a vector comes in; the lines that are missing are asked of the
L2 cache, one a clock, while older vectors still wait for theirs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from vc4lab.memory.native import QUAD_SHIFT
from vc4lab.simd import (
    Function,
    Value,
    call,
    const,
    i32,
    i64,
    kernel,
    load,
    max_,
    min_,
    ptr,
    select,
    staged,
    store,
)
from vc4lab.timing.compute import tags
from vc4lab.timing.compute.kinds import LINE_BITS, ModuleKind, QueueKind
from vc4lab.timing.compute.state import IN_FLIGHT, LINES, TEXELS, VECTORS, Figures, Qpu, Tmu
from vc4lab.timing.event_scheduler import Engine, count_busy, instance_of, state_of, wake_self
from vc4lab.timing.queues import (
    QueueState,
    first_piece,
    is_readable,
    queue_at,
    remove_piece,
    take_piece,
    write_piece,
)
from vc4lab.v3d.user_programs.recording.format import MAX_LINES


class Requests(NamedTuple):
    """The two actions in which the users of a TMU (user programs, shaders) differ.

    lines: (engine, TMU, the QPU's instance, tag of the request) looks the lines of a request up
    (`look_up_line`). hand_on: (engine, TMU, place of the oldest vector, clock it is complete) gives
    its result to its QPU, if there is room (1).
    """

    lines: Callable[[Engine, Tmu, Value, Value], None]
    hand_on: Callable[[Engine, Tmu, Value, Value, Value], Value]


LANES = 16
"""Accesses that a vector counts as."""
QUADS = 4
"""Quads of a vector."""

ADDRESSES = -1
"""In place of a number of lines: a vector of 16 addresses."""

_VECTOR_BYTES = 4 * MAX_LINES
_LINE_IN_MEMORY = (1 << QUAD_SHIFT) - 1


@staged
def request_queue(figures: Figures, qpu: Value, unit: Value) -> Value:
    """The number of the queue from a QPU to a unit of its slice, and of the one back."""
    return qpu * figures.tmus + unit


@staged
def _take_lines(engine: Engine, tmu: Tmu, clock: Value) -> None:
    """A line has come for a vector."""
    answers = queue_at(engine, QueueKind.L2_ANSWERS, tmu.source)
    if call(is_readable, engine.pointer, answers.pointer, clock) != 0:
        slot = first_piece(answers).tag & (TEXELS - 1)
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
            tmu.source.sext(i64), line, (slot + tmu.texels * TEXELS).sext(i64),
        )  # fmt: skip
        tmu.sent = tmu.sent + wrote
        if (wrote != 0) & (tmu.sent < tmu.lines_left):
            wake_self(engine, clock + 1)


@staged
def _hand_on(engine: Engine, tmu: Tmu, requests: Requests, clock: Value) -> None:
    """The oldest vector is complete: its result goes to its QPU."""
    if tmu.count > 0:
        head = tmu.head.sext(i64)
        asking = (tmu.count == 1) & (tmu.sent < tmu.lines_left)
        if (load(i32, tmu.missing + (head << 2)) == 0) & ~asking:
            ready = max_(load(i64, tmu.ready + (head << 3)), clock)
            if requests.hand_on(engine, tmu, head, ready, clock) != 0:
                tmu.head = (tmu.head + 1) & (IN_FLIGHT - 1)
                tmu.count = tmu.count - 1
                wake_self(engine, clock + 1)


@staged
def result_queue(engine: Engine, tmu: Tmu, head: Value) -> QueueState:
    """Return the queue that the result of a vector goes into."""
    qpu = load(i32, tmu.owner + (head << 2))
    number = request_queue(Figures.at(engine.chip), qpu, tmu.unit)
    return queue_at(engine, QueueKind.TMU_RESULTS, number)


@staged
def _hand_on_result(engine: Engine, tmu: Tmu, head: Value, ready: Value, clock: Value) -> Value:
    results = result_queue(engine, tmu, head)
    return call(
        write_piece,
        engine.pointer, results.pointer, clock, ready,
        head, const(i64, 0), const(i64, 0),
    )  # fmt: skip


@staged
def look_up_line(tmu: Tmu, line: Value) -> None:
    """A line of the newest vector; it is kept if it is missing."""
    tmu.looked_up = tmu.looked_up + 1
    if call(tags.access, tmu.tags.pointer, line) == 0:
        store(tmu.lines + (tmu.lines_left.sext(i64) << 3), line)
        tmu.lines_left = min_(tmu.lines_left + 1, const(i32, LINES - 1))


@staged
def _look_up_lanes(engine: Engine, tmu: Tmu, instance: Value, vector: Value) -> None:
    """The lines of a vector, whose addresses or texels' lines the QPU keeps.

    Lanes that follow each other in a line look it up once; of texels, each quad looks up its lines.
    """
    qpu = Qpu.at(state_of(engine, instance))
    place = qpu.vectors + vector * _VECTOR_BYTES
    count = load(i32, qpu.vector_lines + (vector << 2))
    tmu.texels = select(count == ADDRESSES, const(i32, 0), const(i32, 1))
    if count == ADDRESSES:
        before = const(i64, -1)
        for lane in range(LANES):
            line = load(i32, place + (lane << 2)).zext(i64).shr(LINE_BITS)
            if line != before:
                before = line
                look_up_line(tmu, line)
    else:
        for number in range(count):
            word = load(i32, place + ((const(i32, 0) + number).sext(i64) << 2))
            look_up_line(tmu, (word & _LINE_IN_MEMORY).zext(i64))
    tmu.tags.misses = tmu.tags.misses + tmu.lines_left.sext(i64)
    tmu.tags.hits = tmu.tags.hits + max_(LANES - tmu.lines_left, const(i32, 0)).sext(i64)


@staged
def _more_lines(tmu: Tmu, figures: Figures) -> Value:
    """Clocks that texels take which are in more than a line for each quad."""
    more = max_(tmu.looked_up - QUADS, const(i32, 0)) * tmu.texels
    return more.sext(i64) * figures.texel_line_clocks


@staged
def _accept(engine: Engine, tmu: Tmu, figures: Figures, users: Requests, clock: Value) -> None:
    """Takes a request of one of the slice's QPUs, in turn."""
    first = tmu.slice * figures.qpus
    number: Value = tmu.last
    taken = const(i32, 0)
    for _ in range(figures.qpus):
        number = select(number + 1 >= figures.qpus, const(i32, 0), number + 1)
        if taken == 0:
            owner = first + number
            requests = queue_at(engine, QueueKind.TMU_REQUESTS, request_queue(figures, owner, tmu.unit))
            held = tmu.held + (number << 2)
            if load(i32, held) < figures.result_depth:
                if call(is_readable, engine.pointer, requests.pointer, clock) != 0:
                    tag = first_piece(requests).tag
                    instance = instance_of(engine, ModuleKind.QPU, owner)
                    slot = ((tmu.head + tmu.count) & (IN_FLIGHT - 1)).sext(i64)
                    tmu.lines_left = const(i32, 0)
                    tmu.sent = const(i32, 0)
                    tmu.looked_up = const(i32, 0)
                    users.lines(engine, tmu, instance, tag)
                    clocks = figures.lane_clocks + _more_lines(tmu, figures)
                    tmu.accept_at = clock + clocks
                    call(take_piece, engine.pointer, requests.pointer, clock, tmu.accept_at)
                    store(tmu.owner + (slot << 2), owner)
                    store(tmu.tag + (slot << 3), tag)
                    store(tmu.missing + (slot << 2), tmu.lines_left)
                    ready = clock - 1 + figures.tmu_latency + clocks - figures.lane_clocks
                    store(tmu.ready + (slot << 3), ready)
                    tmu.count = tmu.count + 1
                    store(held, load(i32, held) + 1)
                    tmu.last = number
                    count_busy(engine, clocks)
                    wake_self(engine, tmu.accept_at)
                    taken = const(i32, 1)


def tmu_step(requests: Requests) -> Function[None]:
    """The kernel of a TMU: takes a line, hands a result on, takes a vector, asks for a line."""

    @kernel(args=(ptr, ptr, i64))
    def step(address: Value, state: Value, clock: Value) -> None:
        engine, tmu = Engine.at(address), Tmu.at(state)
        figures = Figures.at(engine.chip)
        _take_lines(engine, tmu, clock)
        _hand_on(engine, tmu, requests, clock)
        if (tmu.sent >= tmu.lines_left) & (tmu.count < figures.tmu_vectors):
            if tmu.accept_at <= clock:
                _accept(engine, tmu, figures, requests, clock)
            else:
                wake_self(engine, tmu.accept_at)
        _ask(engine, tmu, clock)

    return step


step_tmu = tmu_step(Requests(_look_up_lanes, _hand_on_result))
"""Steps a TMU for user programs."""


@staged
def keep_vector(qpu: Qpu, record: Value, count: Value, lines: Value) -> Value:
    """Keeps the words of a request until the TMU looks at them; their number (i64).

    count: of the words; lines: as in `Qpu.vector_lines`.
    """
    number = qpu.vector.sext(i64)
    qpu.vector = (qpu.vector + 1) & (VECTORS - 1)
    to = qpu.vectors + number * _VECTOR_BYTES
    for word in range(count):
        at = (const(i32, 0) + word).sext(i64) << 2
        store(to + at, load(i32, record + at))
    store(qpu.vector_lines + (number << 2), lines)
    return number
