"""The bus as a load or store of the CPU meets it: native code in front of the Python handlers.

Every access is counted here, and here guest time goes on for programs that poll. A read that was
answered by Python a moment ago is answered from `Answer`s without it as long as nothing can have
changed: any write, any register with side effects and any new slice makes the answers old
(`TimeState.changes`). Counters that only follow guest time (`Rate`) are computed here and never
grow old. What is not known is asked of Python, so guest time does not depend on what is.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from vc4lab.simd import (
    Array,
    Struct,
    Value,
    build,
    call,
    call_pointer,
    const,
    i1,
    i32,
    i64,
    kernel,
    load,
    max_,
    min_,
    ptr,
    select,
    splat,
    staged,
    store,
    unroll,
)
from vc4lab.soc.clock import FAR, TimeState
from vc4lab.soc.native import SliceState

ACCESS_NS = 50
"""Guest time of a device access, which is much slower than an instruction. The slice's end is not
moved for it, so events come late by what a slice's accesses add up to."""
POLLS_BEFORE_SKIP = 4
"""So many equal reads in a row are patience, more are waiting."""
POLL_DISTANCE = 64
"""A loop that only polls reads again within so many instructions."""
FAR_POLL = 320
"""One that computes something from what it read may take so many; it is believed later."""
NEAR = 8
PATIENCE = POLLS_BEFORE_SKIP * NEAR
"""A near poll counts for this many far ones."""
POLLED_TOGETHER = 8
"""Registers a polling loop looks at, at most."""
NO_REGISTER = -1
"""In place of an offset: no register."""
OWN_TIME = -2
"""In place of an offset: a core's own counter (generic timer, cycle counter)."""
TIME_STEP = 10_000
"""Nanoseconds a polled timer goes on per read."""
WAITING, AGAIN = 1, 2
"""Flags of a read for Python: the program waits; it read the register a moment ago."""
ANSWERS = 256
ALWAYS = -1
"""In place of a generation: an answer that does not grow old."""
ASK = -1
"""In place of a step: something outside is waited for, so Python is asked every time."""
FURTHEST = 1 << 58
"""Times further away than this are the same to a slice."""


class PollState(Struct):
    """What a core polls: registers read with nothing written between, how often, its patience."""

    polls = i64
    patience = i64
    known = i64
    seen = Array(i64, POLLED_TOGETHER)


class Answer(Struct):
    """A register's value, or the rate at which it grows; `step`: ns to skip when it is polled."""

    register = i64
    generation = i64
    value = i64
    step = i64
    multiply = i64
    divide = i64
    shift = i64
    padding = i64


class BusState(Struct):
    """What the native side of a bus and Python share."""

    accesses = i64
    last = i64
    last_count = i64
    events_seen = i64
    polling = ptr
    slice = ptr
    time = ptr
    ask_read = ptr
    ask_write = ptr
    answers = Array(Answer, ANSWERS)


@staged
def answer_slot(offset: Any) -> Any:
    """Which answer is that of the register at `offset`: those polled together have their own."""
    return ((offset >> 2) ^ (offset >> 12)) & (ANSWERS - 1)


@staged
def guest_time(time: TimeState, executed: Value) -> Value:
    """Nanoseconds since power-on, as `Clock.now`."""
    return time.skipped + (executed * time.ns_per_instruction).udiv(time.share)


@staged
def forget_polls(polling: PollState) -> None:
    """Nothing is polled any more."""
    polling.polls = 0
    polling.known = 0
    store(polling.seen, splat(const(i64, NO_REGISTER), POLLED_TOGETHER), 8)


@staged
def note_read(bus: BusState, offset: Value) -> Value:
    """Count a read of a register; whether the program waits by reading it again and again."""
    time = TimeState.at(bus.time)
    executed = SliceState.at(bus.slice).count
    polling = PollState.at(bus.polling)
    time.skipped = time.skipped + ACCESS_NS
    distance = executed - bus.last_count
    bus.last_count = executed
    seen = polling.seen
    again = const(i1, 0)
    for index in unroll(POLLED_TOGETHER):
        again = again | (load(i64, seen + index * 8) == offset)
    close = distance < FAR_POLL
    waiting = const(i1, 0)
    if close & again:
        bus.last = offset
        polls = polling.polls + select(distance < POLL_DISTANCE, const(i64, NEAR), const(i64, 1))
        polling.polls = polls
        waiting = polls > PATIENCE
    else:
        if (polling.known >= POLLED_TOGETHER) | (distance >= FAR_POLL):
            forget_polls(polling)
        store(seen + polling.known * 8, offset, 8)
        polling.known = polling.known + 1
        polling.polls = 0
    return waiting


@staged
def let_time_pass(bus: BusState, step: Value) -> None:
    """The program waits: after some patience skip to the next event, at most by `step`."""
    time = TimeState.at(bus.time)
    core = SliceState.at(bus.slice)
    polling = PollState.at(bus.polling)
    if bus.events_seen != time.events_run:
        bus.events_seen = time.events_run
        polling.patience = POLLS_BEFORE_SKIP
    if polling.patience > 0:
        polling.patience = polling.patience - 1
    else:
        now = guest_time(time, core.count)
        skip = max_(const(i64, 0), min_(time.next_event - now, step))
        if time.company != 0:
            time.wish = now + skip
            core.limit = 0
        else:
            time.skipped = time.skipped + skip
            rest = max_(const(i64, 0), min_(time.next_event - time.skipped, const(i64, FURTHEST)))
            core.limit = min_(core.limit, (rest * time.share).udiv(time.ns_per_instruction))


@staged
def compute(bus: BusState, answer: Answer) -> Value:
    """The value of a register that follows guest time."""
    time = TimeState.at(bus.time)
    ticks = guest_time(time, SliceState.at(bus.slice).count) * answer.multiply
    return ticks.udiv(answer.divide).shr(answer.shift) & 0xFFFFFFFF


@staged
def holds(bus: BusState, answer: Answer, offset: Value) -> Value:
    """Whether an answer is that of a register, and not old."""
    changes = TimeState.at(bus.time).changes
    fresh = (answer.generation == changes) | (answer.generation == ALWAYS)
    return (answer.register == offset) & fresh


@kernel(args=(ptr, i64), returns=i64)
def read_word(state: Value, offset: Value) -> Value:
    """A read of 32 bits."""
    bus = BusState.at(state)
    bus.accesses = bus.accesses + 1
    waiting = note_read(bus, offset)
    answer = Answer.at(bus.answers + answer_slot(offset) * Answer.size)
    value = const(i64, 0)
    if holds(bus, answer, offset) & ((waiting & (answer.step == ASK)) == 0):
        if waiting:
            let_time_pass(bus, answer.step)
        if answer.generation == ALWAYS:
            value = compute(bus, answer)
        else:
            value = answer.value
    else:
        again = PollState.at(bus.polling).polls > 0
        told = select(waiting, const(i32, WAITING), const(i32, 0)) | select(
            again, const(i32, AGAIN), const(i32, 0)
        )
        answered: Any = call_pointer(bus.ask_read, i64, (i64, i32), offset, told)
        value = answered
        if holds(bus, answer, offset) == 0:
            time = TimeState.at(bus.time)
            time.changes = time.changes + 1
    return value & 0xFFFFFFFF


@kernel(args=(ptr, i64, i64))
def write_word(state: Value, offset: Value, value: Value) -> None:
    """A write of 32 bits."""
    bus = BusState.at(state)
    time = TimeState.at(bus.time)
    bus.accesses = bus.accesses + 1
    time.changes = time.changes + 1
    time.skipped = time.skipped + ACCESS_NS
    forget_polls(PollState.at(bus.polling))
    call_pointer(bus.ask_write, None, (i64, i64), offset, value)


@kernel(args=(ptr, i64, i32, ptr), returns=i64)
def read(engine: Value, offset: Value, size: Value, state: Value) -> Value:
    """The engine's callback for a load: a word, a part of one, or two."""
    if size == 4:
        value = call(read_word, state, offset)
    elif size == 8:
        low = call(read_word, state, offset)
        value = low | call(read_word, state, offset + 4) << 32
    else:
        word = call(read_word, state, offset & ~3)
        bits = size.zext(i64) * 8
        value = word.shr((offset & 3) * 8) & ((const(i64, 1) << bits) - 1)
    return value


@kernel(args=(ptr, i64, i32, i64, ptr))
def write(engine: Value, offset: Value, size: Value, value: Value, state: Value) -> None:
    """The engine's callback for a store; a part of a word zeroes the rest."""
    if size == 4:
        call(write_word, state, offset, value & 0xFFFFFFFF)
    elif size == 8:
        call(write_word, state, offset, value & 0xFFFFFFFF)
        call(write_word, state, offset + 4, value.shr(32))
    else:
        call(write_word, state, offset & ~3, (value << (offset & 3) * 8) & 0xFFFFFFFF)


@kernel(args=(ptr, i64), returns=i1)
def note(state: Value, offset: Value) -> Value:
    """A read that is answered elsewhere: a core's own counter. Whether the program waits."""
    return note_read(BusState.at(state), offset)


@kernel(args=(ptr, i64))
def wait(state: Value, step: Value) -> None:
    """The program waits by a read that Python answers."""
    let_time_pass(BusState.at(state), step)


@cache
def functions() -> Any:
    """The compiled module: `read`, `write`, `note`, `wait`."""
    entries = {"read": read, "write": write, "note": note, "wait": wait}
    return build("soc_bus", entries, float_mode="default", key="soc-bus")


assert FAR > FURTHEST
