"""The clockwork: moves modules on from event to event, and skips the clocks in which all is idle.

Every module has a clock at which it wants to be called next. The clockwork calls the one with the
earliest; of several, the one declared first. A module sleeps until it asked to be woken, or until a
queue that it reads was written, or one that it waits to write was read. It keeps one clock for a
module, the earliest: a module that is called looks at everything that it waits for, and says again
when it wants to be called. All of it is native code, and the same modules with the same work have
the same clocks each time.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from typing import Any

from vc4lab.simd import (
    Array,
    Function,
    Struct,
    Value,
    call,
    const,
    i32,
    i64,
    i64x16,
    kernel,
    load,
    min_,
    ptr,
    reduce_min,
    select,
    staged,
    store,
)
from vc4lab.timing.declare import MAX_INSTANCES

NEVER = (1 << 62) - 1
"""A clock that never comes."""

INSTANCE_BITS = 8
_INSTANCE = (1 << INSTANCE_BITS) - 1
_WORD_BITS = 6
_WORD = (1 << _WORD_BITS) - 1
"""Instances that are kept as bits, 64 to a word."""
MAX_QUEUE_KINDS = 32
assert MAX_INSTANCES == 1 << INSTANCE_BITS

BLOCK = 16
"""Instances that the clockwork looks at together."""


class Pause(IntEnum):
    """Why the clockwork returned."""

    IDLE = 0
    """Nothing will ever happen any more."""
    HUNGRY = 1
    """The instance `short_of_work` needs more of the work recorded."""
    TURN = 2
    """So many events have happened; more may."""


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


class Instance(Struct):
    """A module. busy, blocked: clocks at work, and clocks with work done but no room for it.

    since: the clock since which it has found no room + 1, or 0.
    """

    state = ptr
    kind = i32
    number = i32
    busy = i64
    blocked = i64
    events = i64
    since = i64


class Engine(Struct):
    """All of it. chip: the figures and memories that the modules share.

    firsts: by kind of module, its first instance. bases: by kind of queue, its first queue.
    blocks: of instances that there are.
    """

    wakes = Array(i64, MAX_INSTANCES)
    firsts = Array(i32, MAX_INSTANCES)
    bases = Array(i32, MAX_QUEUE_KINDS)
    clock = i64
    events = i64
    left = i64
    instances = ptr
    queues = ptr
    chip = ptr
    current = i32
    short_of_work = i32
    blocks = i32
    unused = i32


# -- what modules use


@staged
def wake(engine: Engine, instance: Value, clock: Value) -> None:
    """An instance is to be called at a clock, if not earlier."""
    place = engine.wakes + (instance.sext(i64) << 3)
    key = (clock << INSTANCE_BITS) | instance.sext(i64)
    store(place, min_(load(i64, place), key))


@staged
def wake_self(engine: Engine, clock: Value) -> None:
    """The module that is called now is to be called again at a clock."""
    wake(engine, engine.current, clock)


@staged
def queue_at(engine: Engine, kind: int, number: Any) -> QueueState:
    """A queue of a kind, by its number in the kind."""
    index = load(i32, engine.bases + 4 * int(kind)) + number
    return QueueState.at(engine.queues + index.sext(i64) * QueueState.size)


@staged
def instance_of(engine: Engine, kind: int, number: Any) -> Value:
    """An instance, by its kind and its number in the kind."""
    return load(i32, engine.firsts + 4 * int(kind)) + number


@staged
def state_of(engine: Engine, instance: Value) -> Value:
    """The address of an instance's state."""
    place = engine.instances + instance.sext(i64) * Instance.size
    return load(ptr, place)


@staged
def _current(engine: Engine) -> Instance:
    """The module that is called now."""
    return Instance.at(engine.instances + engine.current.sext(i64) * Instance.size)


@staged
def number_of(engine: Engine) -> Value:
    """The number of the module that is called now among those of its kind."""
    return _current(engine).number


@staged
def count_busy(engine: Engine, clocks: Any) -> None:
    """The module that is called now is at work for so many clocks."""
    me = _current(engine)
    me.busy = me.busy + clocks


@staged
def count_blocked(engine: Engine, clocks: Any) -> None:
    """The module that is called now has had work and no room for it for so many clocks."""
    me = _current(engine)
    me.blocked = me.blocked + clocks


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
    engine: Value,
    where: Value,
    clock: Value,
    ready: Value,
    source: Value,
    address: Value,
    tag: Value,
) -> Value:
    """Writes a piece to a queue (1), or has the module called again when there is room (0)."""
    common, queue = Engine.at(engine), QueueState.at(where)
    done = const(i32, 0)
    if queue.count >= queue.capacity:
        wait_for_room(common, queue)
        me = _current(common)
        me.since = select(me.since == 0, clock + 1, me.since)
    elif queue.written_at == clock:
        wake_self(common, clock + 1)
    else:
        put_piece(queue, clock, ready, source, address, tag)
        wake(common, queue.reader, ready)
        if queue.waiting > 0:
            _wait_no_more(common, queue)
        me = _current(common)
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


@staged
def next_bit(bits: Value, last: Value) -> Value:
    """The number of a bit of 64 that is set: the next one after `last`, round and round."""
    number = last
    found = const(i32, 0)
    while found == 0:
        number = (number + 1) & _WORD
        found = (bits.shr(number.sext(i64)) & 1).trunc(i32)
    return number


# -- the clockwork


@staged
def _earliest(engine: Engine) -> Value:
    """The earliest clock and its instance, as `wake` writes them."""
    found = load(i64x16, engine.wakes, 64)
    for part in range(1, engine.blocks):
        place = engine.wakes + ((const(i32, 0) + part).sext(i64) << 7)
        found = min_(found, load(i64x16, place, 64))
    return reduce_min(found)


def clockwork(steps: tuple[Function[None], ...]) -> Function[Value]:
    """The kernel that moves modules of these kinds on until a `Pause`."""

    @kernel(args=(ptr,), returns=i32)
    def run(address: Value) -> Value:
        engine = Engine.at(address)
        pause = const(i32, int(Pause.TURN))
        while engine.left > 0:
            key = _earliest(engine)
            clock = key >> INSTANCE_BITS
            if clock >= NEVER >> INSTANCE_BITS:
                pause = const(i32, int(Pause.IDLE))
                break
            current = (key & _INSTANCE).trunc(i32)
            store(engine.wakes + (current.sext(i64) << 3), const(i64, NEVER))
            engine.clock = clock
            engine.current = current
            engine.left = engine.left - 1
            engine.events = engine.events + 1
            instance = Instance.at(engine.instances + current.sext(i64) * Instance.size)
            instance.events = instance.events + 1
            kind, state = instance.kind, instance.state
            for number, step in enumerate(steps):
                if kind == number:
                    call(step, address, state, clock)
            if engine.short_of_work >= 0:
                pause = const(i32, int(Pause.HUNGRY))
                break
        return pause

    return run


Step = Callable[[Value, Value, Value], None]
