"""The event scheduler: moves modules on from event to event, and skips the clocks in which all is idle.

Every module has a clock at which it wants to be called next. The event scheduler calls the one with the
earliest; of several, the one declared first. A module sleeps until it asked to be woken, or until a
queue that it reads was written, or one that it waits to write was read. It keeps one clock for a
module, the earliest: a module that is called looks at everything that it waits for, and says again
when it wants to be called. All of it is native code, and the same modules with the same work have
the same clocks each time. How queues are written and read is in `queues.py`.
"""

from __future__ import annotations

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
    staged,
    store,
)
from vc4lab.timing.declare import MAX_INSTANCES

NEVER = (1 << 62) - 1
"""A clock that never comes."""

INSTANCE_BITS = 8
_INSTANCE = (1 << INSTANCE_BITS) - 1
MAX_QUEUE_KINDS = 32
assert MAX_INSTANCES == 1 << INSTANCE_BITS

BLOCK = 16
"""Instances that the event scheduler looks at together."""
_LAST_BIT = 63
"""The highest bit's number in an i64."""


class Pause(IntEnum):
    """Why the event scheduler returned."""

    IDLE = 0
    """Nothing will ever happen any more."""
    HUNGRY = 1
    """The instance `short_of_work` needs more of the work recorded."""
    TURN = 2
    """So many events have happened; more may."""


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
def instance_of(engine: Engine, kind: int, number: Any) -> Value:
    """An instance, by its kind and its number in the kind."""
    found: Value = load(i32, engine.firsts + 4 * int(kind)) + number
    return found


@staged
def state_of(engine: Engine, instance: Value) -> Value:
    """The address of an instance's state."""
    place = engine.instances + instance.sext(i64) * Instance.size
    return load(ptr, place)


@staged
def current_instance(engine: Engine) -> Instance:
    """The module that is called now."""
    return Instance.at(engine.instances + engine.current.sext(i64) * Instance.size)


@staged
def number_of(engine: Engine) -> Value:
    """The number of the module that is called now among those of its kind."""
    return current_instance(engine).number


@staged
def count_busy(engine: Engine, clocks: Any) -> None:
    """The module that is called now is at work for so many clocks."""
    me = current_instance(engine)
    me.busy = me.busy + clocks


@staged
def count_blocked(engine: Engine, clocks: Any) -> None:
    """The module that is called now has had work and no room for it for so many clocks."""
    me = current_instance(engine)
    me.blocked = me.blocked + clocks


@staged
def next_bit(bits: Value, last: Value) -> Value:
    """The number of a bit of 64 that is set: the next one after `last`, round and round."""
    number = last
    found = const(i32, 0)
    while found == 0:
        number = (number + 1) & _LAST_BIT
        found = (bits.shr(number.sext(i64)) & 1).trunc(i32)
    return number


# -- the event scheduler


@staged
def _earliest(engine: Engine) -> Value:
    """The earliest clock and its instance, as `wake` writes them."""
    found = load(i64x16, engine.wakes, 64)
    for part in range(1, engine.blocks):
        place = engine.wakes + ((const(i32, 0) + part).sext(i64) << 7)
        found = min_(found, load(i64x16, place, 64))
    return reduce_min(found)


def event_scheduler(steps: tuple[Function[None], ...]) -> Function[Value]:
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
