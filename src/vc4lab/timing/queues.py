"""The queues between modules: pieces of work, room for them, and who waits for it.

A queue takes one piece and gives one in a clock. A module that finds no room is called again when a
piece was read; of several that wait, one for each piece, in turn. A piece may be written before the
clock from which it can be read: so a module with a latency writes its results at once.
"""

from __future__ import annotations

from typing import Any

from vc4lab.simd import Array, Struct, Value, call, const, i32, i64, kernel, load, ptr, select, staged, store
from vc4lab.timing.declare import MAX_INSTANCES
from vc4lab.timing.event_scheduler import Engine, current_instance, wake, wake_self

_INSTANCE = MAX_INSTANCES - 1
_WORD_BITS = 6
_WORD = (1 << _WORD_BITS) - 1
"""Instances that are kept as bits, 64 to a word."""


class Piece(Struct):
    """A piece of work in a queue.

    ready: the clock from which it can be read. The rest means what the modules agree on.
    """

    ready = i64
    source = i64
    place = i64
    tag = i64


class QueueState(Struct):
    """A queue. capacity: its depth with what is in flight. writers: instances that wait for room, a
    bit each; waiting: how many they are. reader: the instance that reads it. filled: pieces times
    clocks; full: clocks without room.
    """

    pieces = ptr
    head = i32
    count = i32
    depth = i32
    capacity = i32
    slots = i32
    reader = i32
    peak = i32
    last = i32
    waiting = i32
    unused = i32
    written_at = i64
    read_at = i64
    changed_at = i64
    writers = Array(i64, MAX_INSTANCES >> _WORD_BITS)
    writes = i64
    reads = i64
    filled = i64
    full = i64


@staged
def queue_at(engine: Engine, kind: int, number: Any) -> QueueState:
    """A queue of a kind, by its number in the kind."""
    index = load(i32, engine.bases + 4 * int(kind)) + number
    return QueueState.at(engine.queues + index.sext(i64) * QueueState.size)


@staged
def _changed(queue: QueueState, clock: Value, change: int) -> None:
    """Keeps the occupancy of a queue."""
    passed = clock - queue.changed_at
    queue.filled = queue.filled + passed * queue.count.sext(i64)
    full = queue.count >= queue.capacity
    queue.full = queue.full + select(full, passed, const(i64, 0))
    queue.changed_at = clock
    count = queue.count + change
    queue.count = count
    queue.peak = select(count > queue.peak, count, queue.peak)


@kernel(args=(ptr, ptr, i64, i64, i64, i64, i64), returns=i32)
def write_piece(
    engine: Value, where: Value, clock: Value, ready: Value, source: Value, address: Value, tag: Value
) -> Value:
    """Writes a piece to a queue (1), or has the module called again when there is room (0)."""
    common, queue = Engine.at(engine), QueueState.at(where)
    done = const(i32, 0)
    if queue.count >= queue.capacity:
        wait_for_room(common, queue)
        me = current_instance(common)
        me.since = select(me.since == 0, clock + 1, me.since)
    elif queue.written_at == clock:
        wake_self(common, clock + 1)
    else:
        put_piece(queue, clock, ready, source, address, tag)
        wake(common, queue.reader, ready)
        if queue.waiting > 0:
            _wait_no_more(common, queue)
        me = current_instance(common)
        me.blocked = me.blocked + select(me.since == 0, const(i64, 0), clock + 1 - me.since)
        me.since = const(i64, 0)
        done = const(i32, 1)
    return done


@staged
def put_piece(
    queue: QueueState, clock: Value, ready: Value, source: Value, address: Value, tag: Value
) -> None:
    """Writes a piece to a queue that has room. Who reads it is not called."""
    at = (queue.head + queue.count) & (queue.slots - 1)
    piece = Piece.at(queue.pieces + at.sext(i64) * Piece.size, 8)
    piece.ready = ready
    piece.source = source
    piece.place = address
    piece.tag = tag
    queue.written_at = clock
    queue.writes = queue.writes + 1
    _changed(queue, clock, 1)


@staged
def wait_for_room(engine: Engine, queue: QueueState) -> None:
    """The module that is called now is called again when a queue that is full has room."""
    place = queue.writers + (engine.current.sext(i64).shr(_WORD_BITS) << 3)
    before = load(i64, place)
    after = before | (const(i64, 1) << (engine.current & _WORD).sext(i64))
    store(place, after)
    queue.waiting = queue.waiting + select(after != before, const(i32, 1), const(i32, 0))


@kernel(args=(ptr, ptr, i64), returns=i32)
def is_readable(engine: Value, where: Value, clock: Value) -> Value:
    """Whether a piece can be read now (1); else the module is called again when there is one."""
    common, queue = Engine.at(engine), QueueState.at(where)
    found = const(i32, 0)
    if queue.count > 0:
        piece = Piece.at(queue.pieces + queue.head.sext(i64) * Piece.size, 8)
        ready = piece.ready
        if ready > clock:
            wake_self(common, ready)
        elif queue.read_at == clock:
            wake_self(common, clock + 1)
        else:
            found = const(i32, 1)
    return found


@staged
def may_take(engine: Engine, queue: QueueState, free_at: Value, clock: Value) -> Value:
    """`is_readable` of a module that is free at a clock; before that it is called again then."""
    found = const(i32, 0)
    if free_at <= clock:
        found = call(is_readable, engine.pointer, queue.pointer, clock)
    elif queue.count > 0:
        wake_self(engine, free_at)
    return found


@staged
def first_piece(queue: QueueState) -> Piece:
    """The piece that `is_readable` or `may_take` found."""
    return Piece.at(queue.pieces + queue.head.sext(i64) * Piece.size, 8)


@kernel(args=(ptr, ptr, i64, i64))
def take_piece(engine: Value, where: Value, clock: Value, again: Value) -> None:
    """The piece was read; a module that waits for room is called at the next clock.

    again: when the module that is called now wants to read the next one, if there is one.
    """
    common, queue = Engine.at(engine), QueueState.at(where)
    drop_piece(queue, clock)
    if queue.waiting > 0:
        following = _next_writer(queue)
        queue.last = following
        wake(common, following, clock + 1)
    if queue.count > 0:
        wake_self(common, again)


@kernel(args=(ptr, ptr, i64))
def remove_piece(engine: Value, where: Value, clock: Value) -> None:
    """The piece was read, and the next one is wanted at the next clock (`take_piece`)."""
    call(take_piece, engine, where, clock, clock + 1)


@staged
def drop_piece(queue: QueueState, clock: Value) -> None:
    """The first piece was read; neither its reader nor who waits for room is called."""
    queue.head = (queue.head + 1) & (queue.slots - 1)
    queue.read_at = clock
    queue.reads = queue.reads + 1
    _changed(queue, clock, -1)


@staged
def _wait_no_more(engine: Engine, queue: QueueState) -> None:
    """The module that is called now has found room: a read must call one that still waits."""
    place = queue.writers + (engine.current.sext(i64).shr(_WORD_BITS) << 3)
    before = load(i64, place)
    after = before & ~(const(i64, 1) << (engine.current & _WORD).sext(i64))
    store(place, after)
    queue.waiting = queue.waiting - select(after != before, const(i32, 1), const(i32, 0))


@staged
def _next_writer(queue: QueueState) -> Value:
    """The next instance after the last one that waits for room; it waits no more."""
    number: Value = queue.last
    found = const(i32, 0)
    while found == 0:
        number = (number + 1) & _INSTANCE
        place = queue.writers + (number.sext(i64).shr(_WORD_BITS) << 3)
        word = load(i64, place)
        bit = (number & _WORD).sext(i64)
        later = word.shr(bit)
        if (later & 1) != 0:
            found = const(i32, 1)
            store(place, word & ~(const(i64, 1) << bit))
            queue.waiting = queue.waiting - 1
        elif later == 0:
            number = number | _WORD
    return number
