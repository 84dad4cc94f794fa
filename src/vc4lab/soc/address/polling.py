"""Programs that wait by reading registers again and again: what they read, and how time goes on.

A core that reads the same few registers, with nothing written between, waits. What it reads last
says how far guest time may skip: for a status register to the next event, for a timer by a small
step. A value that differs from the one read before may be what the core has waited for, so nothing
is skipped until all has been looked at again. While a timer is among the registers, its steps are
the only ones: the program measures a pause or a time-out with it. A loop that counts its looks
measures a time-out, too: registers of the core differ from look to look, and nothing is skipped.
"""

from __future__ import annotations

from typing import NamedTuple

from vc4lab.simd import (
    Array,
    Struct,
    Value,
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
"""Guest time of a device access, which is much slower than an instruction."""
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
"""In place of an address: no register."""
OWN_TIME = -2
"""In place of an address: a core's own counter (generic timer, cycle counter)."""
TIME_STEP = 10_000
"""Nanoseconds a polled timer goes on per read, at most."""
PART_OF_WAIT = 3
"""Each such step is at most 1/8 of the wait so far (a shift), so that short waits end in time."""
SHORTEST_STEP = 500
"""No step is shorter, so that a wait begins with some reads in a row."""
PART_IN_COMPANY, WISHED_STEP, LONGEST_WISH = 2, 4_000, 100_000
"""A core in company ends its turn for 1/4 of the wait so far, within these bounds: turns of many
cores that poll timers cost much."""
BEATS = 1
"""Two equal distances between reads of a timer are a loop; the next other one leaves it."""
TIME_IS_POLLED = 16
"""Reads of other registers in a row after which the timer that was read is not waited for."""
NOT_LOOKED, PLAIN, COUNTS = 0, -1, -2
"""Knowledge of the core's registers: none, that they stay as they are, that they change."""
MIX = 0x5851F42D4C957F2D
"""A fingerprint of registers is multiplied by it for each of them (Knuth's MMIX generator)."""
FURTHEST = 1 << 58
"""Times further away than this are the same to a slice."""


class PollState(Struct):
    """The registers that a core polls, with nothing written between the reads, and their last values.

    `slot` is the place of the last one among them. `polls` counts the reads, by `NEAR`; `patience`
    those that pass before time skips. `timer` is the timer among the registers: read at
    `timer_count` instructions, `beat` after the read before, as far as `beats` reads before; its
    wait has begun at `began` (ns), and `others` reads of other registers followed the last one.
    `looked` says what is known of the core's registers, or at which place (plus 1) they gave their
    `fingerprint`.
    """

    polls = i64
    patience = i64
    known = i64
    last_count = i64
    events_seen = i64
    timer = i64
    timer_count = i64
    beat = i64
    beats = i64
    began = i64
    others = i64
    slot = i64
    looked = i64
    fingerprint = i64
    seen = Array(i64, POLLED_TOGETHER)
    values = Array(i64, POLLED_TOGETHER)


class CoreRegisters(Struct):
    """How native code reads a core's integer registers: `RegisterBatch.addresses`."""

    read = ptr
    numbers = ptr
    places = ptr
    values = ptr
    count = i64
    step = i64


@staged
def guest_time(time: TimeState, executed: Value) -> Value:
    """Nanoseconds since power-on, as `Clock.now`."""
    spent = executed * time.ns_per_instruction
    if time.share != 1:
        spent = spent.udiv(time.share)
    return time.skipped + spent


@staged
def take_access_time(time: TimeState, core: SliceState) -> Value:
    """The time of a device access passes; an event that is due by then ends the slice.

    Returns what the time is now.
    """
    time.skipped = time.skipped + ACCESS_NS
    now = guest_time(time, core.count)
    if now >= time.next_event:
        core.limit = 0
    return now


@staged
def forget_polls(polling: PollState) -> None:
    """Nothing is polled any more."""
    polling.polls = 0
    polling.known = 0
    polling.timer = NO_REGISTER
    polling.looked = NOT_LOOKED
    store(polling.seen, splat(const(i64, NO_REGISTER), POLLED_TOGETHER), 8)


@kernel(args=(ptr, i64, i64), returns=i64)
def begin_polling(state: Value, address: Value, distance: Value) -> Value:
    """A register is read for the first time: its place among those that are polled."""
    polling = PollState.at(state)
    if (polling.known >= POLLED_TOGETHER) | (distance >= FAR_POLL):
        forget_polls(polling)
    slot: Value = polling.known
    store(polling.seen + slot * 8, address, 8)
    polling.known = slot + 1
    polling.polls = 0
    polling.looked = NOT_LOOKED
    return slot


class Reader(NamedTuple):
    """The core that reads: its engine (0: it is Python), and its `CoreRegisters`."""

    engine: Value
    registers: Value


class Read(NamedTuple):
    """A read of a register at the time `now`: whether the program polls it, and so waits."""

    again: Value
    waiting: Value
    slot: Value
    now: Value


@staged
def note_read(polling: PollState, time: TimeState, core: SliceState, address: Value) -> Read:
    """Count a read of a register."""
    now = take_access_time(time, core)
    executed = core.count
    distance = executed - polling.last_count
    polling.last_count = executed
    slot: Value = polling.slot
    again = load(i64, polling.seen + slot * 8) == address
    if again == 0:
        for index in unroll(POLLED_TOGETHER):
            same = load(i64, polling.seen + index * 8) == address
            again = again | same
            slot = select(same, const(i64, index), slot)
        polling.slot = slot
    again = again & (distance < FAR_POLL)
    waiting = const(i1, 0)
    if again:
        polls = polling.polls + select(distance < POLL_DISTANCE, const(i64, NEAR), const(i64, 1))
        polling.polls = polls
        waiting = polls > PATIENCE
    else:
        slot = call(begin_polling, polling.pointer, address, distance)
        polling.slot = slot
    return Read(again, waiting, slot, now)


@staged
def note_value(
    polling: PollState,
    time: TimeState,
    core: SliceState,
    reader: Reader,
    read: Read,
    value: Value,
    step: Value,
) -> None:
    """Note the value that the `read` of a register that is no timer has given; `step` is its own."""
    place = polling.values + read.slot * 8
    changed = load(i64, place) != value
    if changed:
        store(place, value, 8)
    others = polling.others + 1
    polling.others = others
    if read.again & changed:
        polling.patience = max_(polling.known, const(i64, POLLS_BEFORE_SKIP))
        polling.looked = NOT_LOOKED
    elif read.waiting:
        timed = polling.timer != NO_REGISTER
        if (timed == 0) | (others > TIME_IS_POLLED):
            longest = select(timed, const(i64, TIME_STEP), const(i64, FAR))
            lose_patience(polling, time, core, reader, read, min_(step, longest))


@staged
def note_time(polling: PollState, time: TimeState, core: SliceState, address: Value, read: Read) -> Value:
    """A timer is read: before its value is computed, time goes on if the program waits.

    A program that waits again has left the loop of its last wait, which a distance shows that is
    unlike the equal ones before. Of several timers, as of the halves of one, that counts which
    was the last to be read for the first time, or is read alone. Returns what the time is then.
    """
    executed, now = core.count, read.now
    waiting = read.waiting
    if polling.timer == address:
        distance = executed - polling.timer_count
        polling.timer_count = executed
        polling.others = 0
        if distance == polling.beat:
            polling.beats = BEATS
        else:
            if polling.beats >= BEATS:
                polling.began = now
            polling.beat = distance
            polling.beats = 0
    else:
        if polling.timer == NO_REGISTER:
            polling.began = now
        others: Value = polling.others + 1
        if (read.again == 0) | (others > TIME_IS_POLLED):
            polling.timer = address
            polling.timer_count = executed
            polling.beats = 0
            others = const(i64, 0)
        polling.others = others
        waiting = waiting & (others == 0)
    if waiting:
        waited = now - polling.began
        if time.company == 0:
            part = waited >> PART_OF_WAIT
            if part >= SHORTEST_STEP:
                now = skip_time(time, core, now, min_(part, const(i64, TIME_STEP)))
        else:
            part = waited >> PART_IN_COMPANY
            if part >= WISHED_STEP:
                time.wish = now + min_(part, const(i64, LONGEST_WISH))
                core.limit = 0
    return now


@staged
def lose_patience(
    polling: PollState, time: TimeState, core: SliceState, reader: Reader, read: Read, step: Value
) -> None:
    """The program waits: after some patience skip to the next event, at most by `step`.

    A loop that counts is executed: what its count is in the end depends on the time.
    """
    now = read.now
    if polling.events_seen != time.events_run:
        polling.events_seen = time.events_run
        polling.patience = max_(polling.known, const(i64, POLLS_BEFORE_SKIP))
        polling.looked = NOT_LOOKED
    patience = polling.patience
    if patience > 0:
        polling.patience = patience - 1
    looked: Value = polling.looked
    if looked >= NOT_LOOKED:
        looked = call(look_at_registers, polling.pointer, reader.engine, reader.registers)
    if (patience <= 0) & (looked == PLAIN):
        if time.company == 0:
            skip_time(time, core, now, step)
        else:
            time.wish = now + max_(const(i64, 0), min_(time.next_event - now, step))
            core.limit = 0


@kernel(args=(ptr, ptr, ptr), returns=i64)
def look_at_registers(state: Value, engine: Value, place: Value) -> Value:
    """Compare the core's registers with those at the last read of the same device register."""
    polling = PollState.at(state)
    looked = const(i64, PLAIN)
    if (engine != 0) & (place != 0):
        registers = CoreRegisters.at(place)
        types = (ptr, ptr, ptr, i32)
        count = registers.count
        numbers, places = registers.numbers, registers.places
        call_pointer(registers.read, i32, types, engine, numbers, places, count.trunc(i32))
        fingerprint = const(i64, 0)
        for number in range(count):
            value = load(i64, registers.values + number * registers.step)
            fingerprint = (fingerprint + value) * MIX
        here = polling.slot + 1
        looked = polling.looked
        if looked == NOT_LOOKED:
            polling.fingerprint = fingerprint
            looked = here
        elif looked == here:
            same = fingerprint == polling.fingerprint
            looked = select(same, const(i64, PLAIN), const(i64, COUNTS))
    polling.looked = looked
    return looked


@staged
def skip_time(time: TimeState, core: SliceState, now: Value, step: Value) -> Value:
    """Skip from `now` to the next event, at most by `step`; returns what the time is then."""
    event, before = time.next_event, time.skipped
    skip = max_(const(i64, 0), min_(event - now, step))
    skipped = before + skip
    time.skipped = skipped
    rest = max_(const(i64, 0), min_(event - skipped, const(i64, FURTHEST)))
    core.limit = min_(core.limit, (rest * time.share).udiv(time.ns_per_instruction))
    return now + skip


assert FAR > FURTHEST
