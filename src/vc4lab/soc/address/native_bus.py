"""The bus as a load or store of the CPU meets it: native code in front of the Python handlers.

Every access is counted here, and here guest time goes on for programs that poll (`polling.py`). A
read that was answered by Python a moment ago is answered from `Answer`s without it as long as
nothing can have changed: any write, any register with side effects and any new slice makes the
answers old (`TimeState.changes`). Counters that only follow guest time (`Rate`) are computed here
and never grow old. What is not known is asked of Python, so guest time does not depend on what is.
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
    i32,
    i64,
    kernel,
    min_,
    ptr,
    select,
    staged,
)
from vc4lab.soc.address.polling import (
    OWN_TIME,
    PollState,
    Read,
    Reader,
    forget_polls,
    guest_time,
    note_read,
    note_time,
    note_value,
    take_access_time,
)
from vc4lab.soc.clock import TimeState
from vc4lab.soc.native import SliceState

WAITING, AGAIN = 1, 2
"""Flags of a read for Python: the program waits; it read the register a moment ago."""
ANSWERS = 256
ALWAYS = -1
"""In place of a generation: an answer that does not grow old."""
ASK = -1
"""In place of a step: something outside is waited for, so Python is asked every time."""
TIMED = -2
"""In place of a step: the register is a timer, for which time has gone on."""


class Answer(Struct):
    """A register's value, or the rate at which it grows; `step`: ns to skip when it is polled;
    `until`: when it changes by itself.
    """

    register = i64
    generation = i64
    value = i64
    step = i64
    multiply = i64
    divide = i64
    shift = i64
    until = i64


class BusState(Struct):
    """Shared by the native side of a bus and Python; `step` is that of Python's last answer."""

    accesses = i64
    own_reads = i64
    last = i64
    base = i64
    step = i64
    polling = ptr
    slice = ptr
    time = ptr
    registers = ptr
    ask_read = ptr
    ask_write = ptr
    answers = Array(Answer, ANSWERS)


@staged
def answer_slot(offset: Any) -> Any:
    """Which answer is that of the register at `offset`: those polled together have their own."""
    return ((offset >> 2) ^ (offset >> 12)) & (ANSWERS - 1)


@staged
def compute(now: Value, answer: Answer) -> Value:
    """The value of a register that follows guest time."""
    return (now * answer.multiply).udiv(answer.divide).shr(answer.shift) & 0xFFFFFFFF


@staged
def holds(time: TimeState, answer: Answer, offset: Value, now: Value) -> Value:
    """Whether an answer is that of a register, and not old."""
    fresh = (answer.generation == time.changes) | (answer.generation == ALWAYS)
    return (answer.register == offset) & fresh & (now < answer.until)


@kernel(args=(ptr, i64, ptr), returns=i64)
def read_word(state: Value, offset: Value, engine: Value) -> Value:
    """A read of 32 bits."""
    bus = BusState.at(state)
    time, core = TimeState.at(bus.time), SliceState.at(bus.slice)
    polling = PollState.at(bus.polling)
    bus.accesses = bus.accesses + 1
    address = offset + bus.base
    read = note_read(polling, time, core, address)
    if read.again:
        bus.last = offset
    answer = Answer.at(bus.answers + answer_slot(offset) * Answer.size)
    now = read.now
    value = const(i64, 0)
    step: Value = answer.step
    if holds(time, answer, offset, now) & ((read.waiting & (step == ASK)) == 0):
        if step == TIMED:
            now = note_time(polling, time, core, address, read)
            if answer.generation == ALWAYS:
                value = compute(now, answer)
            else:
                value = answer.value
        else:
            value = answer.value
            step = min_(step, answer.until - now)
    else:
        told = select(read.waiting, const(i32, WAITING), const(i32, 0)) | select(
            read.again, const(i32, AGAIN), const(i32, 0)
        )
        bus.step = 0
        answered: Any = call_pointer(bus.ask_read, i64, (i64, i32), offset, told)
        value = answered & 0xFFFFFFFF
        step = bus.step
        if holds(time, answer, offset, now) == 0:
            time.changes = time.changes + 1
        now = guest_time(time, core.count)
    if step != TIMED:
        reader = Reader(engine, bus.registers)
        note_value(polling, time, core, reader, read._replace(now=now), value, step)
    return value


@kernel(args=(ptr, i64, i64))
def write_word(state: Value, offset: Value, value: Value) -> None:
    """A write of 32 bits."""
    bus = BusState.at(state)
    time = TimeState.at(bus.time)
    bus.accesses = bus.accesses + 1
    time.changes = time.changes + 1
    take_access_time(time, SliceState.at(bus.slice))
    forget_polls(PollState.at(bus.polling))
    call_pointer(bus.ask_write, None, (i64, i64), offset, value)


@kernel(args=(ptr, i64, i32, ptr), returns=i64)
def read(engine: Value, offset: Value, size: Value, state: Value) -> Value:
    """The engine's callback for a load: a word, a part of one, or two."""
    if size == 4:
        value = call(read_word, state, offset, engine)
    elif size == 8:
        low = call(read_word, state, offset, engine)
        value = low | call(read_word, state, offset + 4, engine) << 32
    else:
        word = call(read_word, state, offset & ~3, engine)
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


@staged
def note_own_time(bus: BusState) -> Value:
    """A read of a core's own counter, which is answered elsewhere: what the time is then."""
    bus.own_reads = bus.own_reads + 1
    polling = PollState.at(bus.polling)
    time, core = TimeState.at(bus.time), SliceState.at(bus.slice)
    address = const(i64, OWN_TIME)
    read = note_read(polling, time, core, address)
    if read.again:
        bus.last = address
    return note_time(polling, time, core, address, read)


@kernel(args=(ptr,))
def own_time(state: Value) -> None:
    """Note, from Python, that a read takes its own time."""
    note_own_time(BusState.at(state))


@kernel(args=(ptr, i64, i32))
def timer(state: Value, offset: Value, told: Value) -> None:
    """A timer is read that Python answers; `told` as Python was."""
    bus = BusState.at(state)
    time, core = TimeState.at(bus.time), SliceState.at(bus.slice)
    polling, now = PollState.at(bus.polling), guest_time(time, core.count)
    read = Read((told & AGAIN) != 0, (told & WAITING) != 0, polling.slot, now)
    note_time(polling, time, core, offset + bus.base, read)


@cache
def functions() -> Any:
    """The compiled module: `read`, `write`, `own_time`, `timer`."""
    entries = {"read": read, "write": write, "own_time": own_time, "timer": timer}
    return build("soc_bus", entries, float_mode="default", key="soc-bus")
