"""The L2 cache; `sdram.py` is the memory after it."""

from __future__ import annotations

from vc4lab.simd import Value, call, const, i32, i64, kernel, load, ptr, select, staged, store
from vc4lab.timing.compute import tags
from vc4lab.timing.compute.kinds import LINE, LINE_BITS, MemorySource, QueueKind
from vc4lab.timing.compute.state import IN_FLIGHT, L2, TEXELS, Figures
from vc4lab.timing.event_scheduler import Engine, count_busy, wake_self
from vc4lab.timing.queues import (
    QueueState,
    first_piece,
    is_readable,
    may_take,
    queue_at,
    remove_piece,
    take_piece,
    wait_for_room,
    write_piece,
)

ASKED, CAME = 1, 2
"""States of a line that the L2 cache waits for."""

FROM_L2 = int(MemorySource.L2)
FROM_LOADER, FROM_STORER = int(MemorySource.LOADER), int(MemorySource.STORER)
"""Who asks the memory for user programs."""


@staged
def _place(array: Value, index: Value | int) -> Value:
    """The address of an i64 in an array."""
    return array + (index << 3)


@staged
def _answer_lines(engine: Engine, l2: L2, figures: Figures, clock: Value) -> None:
    """One request that waited for a line that has come is answered."""
    done, more = const(i32, 0), const(i32, 0)
    for entry in range(IN_FLIGHT):
        if load(i32, l2.state + (entry << 2)) == CAME:
            if done == 0:
                source = load(i64, _place(l2.source, entry))
                queue = queue_at(engine, QueueKind.L2_ANSWERS, source.trunc(i32))
                line = load(i64, _place(l2.pending, entry))
                tag = load(i64, _place(l2.tag, entry))
                wrote = call(
                    write_piece,
                    engine.pointer, queue.pointer, clock, clock + figures.l2_latency,
                    source, line, tag,
                )  # fmt: skip
                if wrote != 0:
                    store(l2.state + (entry << 2), const(i32, 0))
                    l2.count = l2.count - 1
                done = const(i32, 1)
            else:
                more = const(i32, 1)
    if (done != 0) & (more != 0):
        wake_self(engine, clock + 1)


@staged
def _take_lines(engine: Engine, l2: L2, clock: Value) -> None:
    """A line has come from memory."""
    answers = queue_at(engine, QueueKind.MEMORY_ANSWERS, const(i32, FROM_L2))
    if call(is_readable, engine.pointer, answers.pointer, clock) != 0:
        line = first_piece(answers).place
        call(remove_piece, engine.pointer, answers.pointer, clock)
        for entry in range(IN_FLIGHT):
            at = l2.state + (entry << 2)
            if (load(i32, at) == ASKED) & (load(i64, _place(l2.pending, entry)) == line):
                store(at, const(i32, CAME))


@staged
def _is_pending(l2: L2, line: Value) -> Value:
    found = const(i32, 0)
    for entry in range(IN_FLIGHT):
        asked = load(i32, l2.state + (entry << 2)) == ASKED
        if asked & (load(i64, _place(l2.pending, entry)) == line):
            found = const(i32, 1)
    return found


@staged
def _keep(l2: L2, line: Value, source: Value, tag: Value) -> None:
    """A request waits for its line."""
    place = const(i32, 0)
    for entry in range(IN_FLIGHT):
        if load(i32, l2.state + (entry << 2)) == 0:
            place = const(i32, 0) + entry
    store(l2.state + (place.sext(i64) << 2), const(i32, ASKED))
    store(_place(l2.pending, place), line)
    store(_place(l2.source, place), source)
    store(_place(l2.tag, place), tag)
    l2.count = l2.count + 1


@staged
def _take_request(engine: Engine, l2: L2, figures: Figures, clock: Value, queue: QueueState) -> None:
    """The oldest request: answered, sent on to memory, or left until there is room."""
    request = first_piece(queue)
    source, line, tag = request.source, request.place, request.tag
    joins = _is_pending(l2, line)
    taken = const(i32, 0)
    if (joins != 0) & (l2.count < l2.depth):
        l2.tags.hits = l2.tags.hits + 1
        _keep(l2, line, source, tag)
        taken = const(i32, 1)
    if joins == 0:
        memory = queue_at(engine, QueueKind.MEMORY_REQUESTS, const(i32, 0))
        answers = queue_at(engine, QueueKind.L2_ANSWERS, source.trunc(i32))
        room = (memory.count < memory.capacity) & (memory.written_at != clock)
        able = (answers.count < answers.capacity) & (answers.written_at != clock)
        if (l2.count < l2.depth) & room & able:
            if call(tags.access, l2.tags.pointer, line) != 0:
                l2.tags.hits = l2.tags.hits + 1
                call(
                    write_piece,
                    engine.pointer, answers.pointer, clock, clock + figures.l2_latency,
                    source, line, tag,
                )  # fmt: skip
            else:
                l2.tags.misses = l2.tags.misses + 1
                call(
                    write_piece,
                    engine.pointer, memory.pointer, clock, clock + 1,
                    const(i64, FROM_L2), line << LINE_BITS, const(i64, LINE),
                )  # fmt: skip
                _keep(l2, line, source, tag)
            taken = const(i32, 1)
    if taken != 0:
        texels = (tag & TEXELS) != 0
        interval = select(texels, figures.l2_texel_interval, figures.l2_interval)
        l2.accept_at = clock + interval
        count_busy(engine, interval)
        call(take_piece, engine.pointer, queue.pointer, clock, l2.accept_at)
    elif l2.count < l2.depth:
        _wait_for_room(engine, source, clock)


@staged
def _wait_for_room(engine: Engine, source: Value, clock: Value) -> None:
    """The cache is called when there is room for what a request needs; if only the turn of this
    clock is taken, at the next one."""
    memory = queue_at(engine, QueueKind.MEMORY_REQUESTS, const(i32, 0))
    answers = queue_at(engine, QueueKind.L2_ANSWERS, source.trunc(i32))
    if memory.count >= memory.capacity:
        wait_for_room(engine, memory)
    elif answers.count >= answers.capacity:
        wait_for_room(engine, answers)
    else:
        wake_self(engine, clock + 1)


@kernel(args=(ptr, ptr, i64))
def step_l2(address: Value, state: Value, clock: Value) -> None:
    """Takes a line that has come, answers who waited for one, and takes one request."""
    engine, l2 = Engine.at(address), L2.at(state)
    figures = Figures.at(engine.chip)
    _take_lines(engine, l2, clock)
    _answer_lines(engine, l2, figures, clock)
    requests = queue_at(engine, QueueKind.L2_REQUESTS, const(i32, 0))
    if may_take(engine, requests, l2.accept_at, clock) != 0:
        _take_request(engine, l2, figures, clock, requests)
