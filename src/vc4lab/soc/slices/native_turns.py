"""A core's turn in native code, as long as nothing has to be seen by Python.

Cores that share work look at a lock and sleep again, thousands of times a second, and cores that
poll their counters look at them, and are interrupted by their timers; Python needs 50 microseconds
for such a turn. This does exactly what `Turns` does for them, and leaves a turn that ends in another
way to it, in the middle of its round (`native_steps.py`, `native_rounds.py`).
"""

from __future__ import annotations

from typing import Any

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
    nested,
    ptr,
    select,
    staged,
    store,
    unroll,
)
from vc4lab.soc.address.native_bus import BusState
from vc4lab.soc.address.polling import COUNTS, FURTHEST, NO_REGISTER, PATIENCE, PollState, guest_time
from vc4lab.soc.clock import TimeState
from vc4lab.soc.cores.code.native_events import MOST_CORES, CoreEvents, EventState
from vc4lab.soc.cores.cores import LONGEST_NAP
from vc4lab.soc.cores.engine.engine_calls import NO_MONITOR, RegisterBatch
from vc4lab.soc.cores.exceptions.native_entry import Batch
from vc4lab.soc.cores.exceptions.outcome import ExceptionCounts
from vc4lab.soc.cores.idle import IdleState, forget, look
from vc4lab.soc.cores.steady import SteadyState, forget_wait, goes_on_proving, note_rest, wants_proof
from vc4lab.soc.native import SPINS, SliceState
from vc4lab.soc.slices.native_interrupts import (
    ASK_PYTHON,
    ELSEWHERE,
    IS_TAKEN,
    NONE_WAITS,
    InterruptState,
    RegisterCalls,
    deliver,
    find_vector,
    judge,
    waiting_for,
)

LONGEST_SLICE = 500_000
"""Instructions after which Python looks at a core in any case."""
TURN = 20_000
"""Instructions of a turn when several cores run."""
ALONE = 200_000
"""Nanoseconds that a core runs while all others rest, before they may look again."""
LONGEST_POLL = 200_000
"""Nanoseconds for which a polling core is left alone while others work."""
CALM = 4
"""Both grow to 2**CALM times that while only one core works, and no event is sent."""
QUIET = 4
"""Rounds without work after which time skips."""
LOOKS = 2
"""Rounds without work in which every waiting core looks again."""
AWAKE, IN_WFI, POLLS, IN_WFE, IN_LOOP = range(5)
"""States of a core between its turns."""
LOOK, RESTS, WORKS = range(3)
"""Kinds of turns."""
NOT_BEGUN = 3
"""A turn that Python is to take from its beginning."""
STEP_BEGINS, ROUND_BEGINS, TURN_BEGINS, TURN_ENDS, ALL_WAIT = range(5)
"""Places where Python goes on: with due events, a round, a turn in a round, or the rest of one, or when no
core has worked."""
POLL_WORDS = PollState.size // 8


class CoreTurn(Struct):
    """A core: what it does (`sleeps`, and the moments as in `Core`), and how its engine is run.

    The engine's call wants `engine`, `end_address`, PC and status as `place` has them, `thumb` (the
    bits of the status that say Thumb). `pages` is its table of pages, `alignment` its
    `CoreAlignment`, `context` its engine's copy of its state with the monitor at `monitor`, if
    load-exclusive lets it look up. `ran`: it has had a turn; `slept`: it has come to a wfe; `polled`:
    it has had to do with devices, its counter or exceptions in the last one. `verdict` is
    what becomes of the interrupts that wait for it.
    """

    sleeps = i64
    wish = i64
    wake_at = i64
    vain = i64
    ran = i64
    slept = i64
    polled = i64
    engine = ptr
    end_address = i64
    place = nested(Batch)
    thumb = i64
    pages = ptr
    alignment = i64
    own = ptr
    context = ptr
    monitor = i64
    verdict = i64
    idle = ptr
    steady = ptr
    irqs = nested(InterruptState)
    polls = nested(PollState)


class TurnState(Struct):
    """All that the rounds need. `base` is what `polls` held before a core had its turn.

    When Python goes on in the middle of a round, `core` has ended its slice, which began at
    `accesses`, `local_accesses`, `own_reads`, `taken` and `began`; `rest` are the cores after it,
    and `worked` of those before it have worked. `events_seen` are those before the last round. While it
    `proves` that it waits, it is executed block by block; its slice ends `until` so many instructions.

    `meet_events` lets those happen that rounds go on after. `look` says whether accesses have done
    what Python has to see, and notes what waits for the cores; `looked` was the sum of accesses.
    """

    slice = ptr
    time = ptr
    events = ptr
    polling = ptr
    bus = ptr
    local_bus = ptr
    running_place = ptr
    start = ptr
    calls = nested(RegisterCalls)
    save = ptr
    lines = ptr
    nowhere = ptr
    meet_events = ptr
    look = ptr
    is_storm = ptr
    looked = i64
    masks = i64
    events_seen = i64
    quiet = i64
    hopeless = i64
    rounds = i64
    slices = i64
    core = i64
    rest = i64
    alone = i64
    error = i64
    accesses = i64
    local_accesses = i64
    own_reads = i64
    taken = i64
    worked = i64
    began = i64
    proves = i64
    until = i64
    base = nested(PollState)
    fresh = nested(PollState)
    cores = Array(CoreTurn, MOST_CORES)


LAST_COUNT, TIMER_COUNT = PollState.last_count.offset, PollState.timer_count.offset


@staged
def copy_polls(source: Value, target: Value, added: Value) -> None:
    """Copy a `PollState`, whose counts of instructions are taken relative to `added`."""
    for index in unroll(POLL_WORDS):
        value = load(i64, source + 8 * index)
        if 8 * index in (LAST_COUNT, TIMER_COUNT):
            value = value + added
        store(target + 8 * index, value)


@staged
def longer(time: int, calm: Value) -> Value:
    """A time that doubles with each four calm turns."""
    doubled = max_(const(i64, 0), min_(calm >> 2, const(i64, CALM)))
    return const(i64, time) << doubled


@staged
def core_of(turns: TurnState, number: Any) -> CoreTurn:
    return CoreTurn.at(turns.cores + number * CoreTurn.size)


@kernel(args=(ptr, i64, i64), returns=i64)
def verdict_of(state: Value, number: Value, now: Value) -> Value:
    """Judge what becomes of the interrupts that wait for a core now."""
    turns = TurnState.at(state)
    core = core_of(turns, number)
    waiting = call(waiting_for, turns.lines, number, core.irqs.pace, now)
    return judge(core.irqs, core.place, waiting).zext(i64)


@kernel(args=(ptr, i64, i1), returns=i32)
def take_turn(state: Value, number: Value, alone: Value) -> Value:
    """A core's turn: whether it `RESTS`, `WORKS`, or Python has to look, or to begin it."""
    turns = TurnState.at(state)
    core = core_of(turns, number)
    counts = ExceptionCounts.at(CoreEvents.at(core.own).counts)
    count, taken = SliceState.at(turns.slice).count, counts.taken
    verdict = call(verdict_of, state, number, guest_time(TimeState.at(turns.time), count))
    ends = const(i32, NOT_BEGUN)
    if _takes_interrupt(turns, core, verdict, again=False):
        ends = call(run_turn, state, number, alone, count, taken, verdict)
    return ends


@staged
def _takes_interrupt(turns: TurnState, core: CoreTurn, verdict: Value, again: bool) -> Value:
    """Let a core take its interrupt, if one is to be taken; False if Python has to do it.

    `again`: in the middle of a slice, where it may be part of a storm.
    """
    known = verdict != ASK_PYTHON
    if verdict == IS_TAKEN:
        irqs, place, calls = core.irqs.pointer, core.place, turns.calls.pointer
        vector = call(find_vector, irqs, core.engine, place.pointer, calls)
        known = vector != ELSEWHERE
        if known and again:
            known = call_pointer(turns.is_storm, i32, (i64,), load(i64, place.values)) == 0
        if known:
            counts = CoreEvents.at(core.own).counts
            call(deliver, irqs, core.engine, place.pointer, vector, turns.slice, counts, calls)
    return known


@staged
def _watch_masks(turns: TurnState, core: CoreTurn, verdict: Value) -> None:
    """While an interrupt waits, the slice ends where the core changes its masks."""
    slice_ = SliceState.at(turns.slice)
    slice_.masks, slice_.masked, slice_.unmasked = 0, 0, 0
    slice_.seen = slice_.pages
    if verdict != NONE_WAITS:
        status = load(i64, core.place.values + RegisterBatch.STEP)
        slice_.masks, slice_.masked, slice_.status = turns.masks, status & turns.masks, 0
        slice_.status_register = CoreEvents.at(core.own).status_register
        slice_.seen = turns.nowhere


@kernel(args=(ptr, i64), returns=i1)
def start(state: Value, number: Value) -> Value:
    """Let a core run to the limit of the slice; whether that has ended it, and nothing else."""
    turns = TurnState.at(state)
    core, slice_ = core_of(turns, number), SliceState.at(turns.slice)
    own, place = CoreEvents.at(core.own), core.place
    counts = ExceptionCounts.at(own.counts)
    expected = counts.taken
    slice_.spins, own.waits = 0, 0
    counts.last = slice_.count
    core.irqs.first.count = slice_.count
    pc, status = load(i64, place.values), load(i64, place.values + RegisterBatch.STEP)
    entry = pc | select((status & core.thumb) != 0, const(i64, 1), const(i64, 0))
    zero = const(i64, 0)
    run = (ptr, i64, i64, i64, i64)
    error = call_pointer(turns.start, i32, run, core.engine, entry, core.end_address, zero, zero)
    read = (ptr, ptr, ptr, i32)
    wanted = place.count.trunc(i32)
    call_pointer(turns.calls.read, i32, read, core.engine, place.numbers, place.places, wanted)
    turns.error = error.sext(i64)
    plain = (error == 0) & (slice_.noted == 0) & (slice_.new_page == 0) & (slice_.code_changed == 0)
    plain = plain & (counts.taken == expected) & (own.waits == 0) & (slice_.spins < SPINS)
    return plain & (slice_.unmasked == 0) & (slice_.count >= slice_.limit)


@staged
def _touched(turns: TurnState, core: CoreTurn) -> Value:
    """Whether a core has had to do with devices, its counter or exceptions in its turn."""
    bus, local_bus = BusState.at(turns.bus), BusState.at(turns.local_bus)
    taken = ExceptionCounts.at(CoreEvents.at(core.own).counts).taken
    reads = (bus.own_reads != turns.own_reads) | (taken != turns.taken)
    return reads | (bus.accesses != turns.accesses) | (local_bus.accesses != turns.local_accesses)


@kernel(args=(ptr, i64, i64), returns=i1)
def prove(state: Value, number: Value, limit: Value) -> Value:
    """Run a core that waits block by block, as `Waits.execute`; whether its slice goes on."""
    turns = TurnState.at(state)
    core, slice_ = core_of(turns, number), SliceState.at(turns.slice)
    steady = SteadyState.at(core.steady)
    steady.proves, steady.blocks = 1, 0
    turns.proves, turns.until = 1, limit
    slice_.limit = slice_.count
    plain = call(start, state, number)
    rest = const(i1, 0)
    going = plain
    while going & (slice_.count < limit):
        pc, place = load(i64, core.place.values), slice_.block
        if call(goes_on_proving, steady.pointer, core.idle, pc, place, slice_.block_size):
            slice_.limit = slice_.count + 1
            plain = call(start, state, number)
            going = plain & (_touched(turns, core) == 0)
        else:
            rest, going = const(i1, 1), const(i1, 0)
    if plain:
        turns.proves = 0
    return rest


@staged
def _run_slice(turns: TurnState, number: Value, alone_until: Value) -> None:
    """Let a core run until its slice ends."""
    time, slice_ = TimeState.at(turns.time), SliceState.at(turns.slice)
    core = core_of(turns, number)
    left = max_(const(i64, 0), min_(time.next_event - time.skipped, const(i64, FURTHEST)))
    limit = min_((left * time.share).udiv(time.ns_per_instruction) + 1, alone_until)
    slice_.limit = limit
    slice_.spins, CoreEvents.at(core.own).waits = 0, 0
    turns.error, turns.proves = 0, 0
    runs: Value = slice_.count < limit
    if wants_proof(SteadyState.at(core.steady)):
        runs = call(prove, turns.pointer, number, limit)
    if runs:
        slice_.limit = limit
        call(start, turns.pointer, number)


@kernel(args=(ptr, i64, i1, i64, i64, i64), returns=i32)
def run_turn(state: Value, number: Value, alone: Value, count: Value, taken: Value, verdict: Value) -> Value:
    """Run the turn of a core that has taken its interrupt; `count` and `taken` are from before that."""
    turns = TurnState.at(state)
    time, slice_ = TimeState.at(turns.time), SliceState.at(turns.slice)
    events = EventState.at(turns.events)
    core = core_of(turns, number)
    own = CoreEvents.at(core.own)
    counts = ExceptionCounts.at(own.counts)
    bus, local_bus = BusState.at(turns.bus), BusState.at(turns.local_bus)
    time.company = select(alone, const(i64, 0), const(i64, 1))
    time.wish = -1
    polls = core.pointer + CoreTurn.polls.offset
    copy_polls(polls, turns.polling, count)
    turns.core, turns.began, turns.taken = number, count, taken
    turns.accesses, turns.local_accesses = bus.accesses, local_bus.accesses
    turns.own_reads = bus.own_reads
    turns.slices = turns.slices + 1
    events.current = number
    core.ran = 1
    time.changes = time.changes + 1
    slice_.end = count + select(alone, const(i64, LONGEST_SLICE), const(i64, TURN))
    slice_.ram, slice_.pages, slice_.noted = turns.calls.ram, core.pages, 0
    store(turns.running_place, core.alignment)
    plain, goes_on = const(i1, 1), const(i1, 1)
    while goes_on:
        expected = counts.taken
        _watch_masks(turns, core, verdict)
        _run_slice(turns, number, slice_.end)
        plain = (turns.error == 0) & (slice_.noted == 0) & (slice_.new_page == 0)
        plain = plain & (slice_.code_changed == 0) & (counts.taken == expected) & (turns.proves == 0)
        accesses = bus.accesses + local_bus.accesses
        if plain & (accesses != turns.looked):
            plain = call_pointer(turns.look, i32, (i64,), bus.accesses - turns.accesses) != 0
            turns.looked = accesses
        goes_on = plain & (slice_.unmasked != 0) & (own.waits == 0) & (slice_.spins < SPINS)
        if goes_on:
            verdict = call(verdict_of, state, number, guest_time(time, slice_.count))
            goes_on = _takes_interrupt(turns, core, verdict, again=True)
    plain = plain & (slice_.unmasked == 0)
    reads = _touched(turns, core)
    polling = PollState.at(turns.polling)
    measures = (polling.timer != NO_REGISTER) | (polling.looked == COUNTS)
    in_vain = alone & (measures == 0) & (polling.polls > PATIENCE)
    limit = (slice_.count >= slice_.limit) & (slice_.spins < SPINS) & (in_vain == 0)
    pc = load(i64, core.place.values)
    loops = const(i1, 0)
    if plain & limit & (own.waits == 0) & (time.wish < 0):
        if reads:
            forget(IdleState.at(core.idle))
        elif call(look, core.idle, pc, const(i1, 1)):
            loops = const(i1, 1)
    ends = const(i32, LOOK)
    if plain:
        if own.waits != 0:
            event = ((events.events & own.bit) != 0) | (counts.taken != own.returns)
            if (event == 0) & (own.yields == 0) & (_monitors(turns, core) == 0):
                _sleep(turns, number, core)
                ends = const(i32, RESTS)
        elif limit:
            copy_polls(turns.polling, polls, -slice_.count)
            if time.wish >= 0:
                now = guest_time(time, slice_.count)
                core.sleeps, core.wish = POLLS, time.wish
                core.wake_at = min_(time.wish, now + longer(LONGEST_POLL, core.vain))
                core.vain = core.vain + 1
                ends = const(i32, RESTS)
            elif loops:
                call(look, core.idle, pc, const(i1, 0))
                status = load(i64, core.place.values + RegisterBatch.STEP)
                thumb = (status & core.thumb) != 0
                call(note_rest, core.steady, core.idle, pc, slice_.count - count, thumb)
                _rest(turns, number, core, IN_LOOP)
                ends = const(i32, RESTS)
            else:
                core.sleeps, core.vain = AWAKE, 0
                forget_wait(SteadyState.at(core.steady))
                naps = events.pointer + EventState.naps.offset + 8 * number
                store(naps, const(i64, 0))
                ends = const(i32, WORKS)
        elif (slice_.count < slice_.limit) & (slice_.spins < SPINS):
            copy_polls(turns.polling, polls, -slice_.count)
            _rest(turns, number, core, IN_WFI)
            ends = const(i32, RESTS)
    if ends != LOOK:
        core.polled = reads.zext(i64)
        time.company = 0
    return ends


@staged
def _monitors(turns: TurnState, core: CoreTurn) -> Value:
    """Whether a load-exclusive lets a core look up from its wfe (`Cpu.monitors_memory`)."""
    armed = const(i1, 0)
    if core.context != 0:
        call_pointer(turns.save, i32, (ptr, ptr), core.engine, core.context)
        armed = load(i64, core.context + core.monitor) != NO_MONITOR - (1 << 64)
    return armed


@staged
def _rest(turns: TurnState, number: Value, core: CoreTurn, how: int) -> None:
    """A core waits (`Core.rest`)."""
    events = EventState.at(turns.events)
    core.sleeps = how
    naps = events.pointer + EventState.naps.offset + 8 * number
    rounds = min_(load(i64, naps) + 1, const(i64, LONGEST_NAP))
    store(naps, rounds)
    store(events.pointer + EventState.nap.offset + 8 * number, rounds)


@staged
def _sleep(turns: TurnState, number: Value, core: CoreTurn) -> None:
    """A core sleeps in its wfe, as `Turns` has it."""
    count = SliceState.at(turns.slice).count
    _rest(turns, number, core, IN_WFE)
    core.slept = 1
    fresh = turns.pointer + TurnState.fresh.offset
    copy_polls(fresh, core.pointer + CoreTurn.polls.offset, const(i64, 0))
    copy_polls(fresh, turns.pointer + TurnState.base.offset, -count)
