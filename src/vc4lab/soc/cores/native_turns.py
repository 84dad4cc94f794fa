"""Rounds of turns in native code, as long as each core waits again at the end of its turn.

Cores that share work look at a lock and sleep again, thousands of times a second, and cores that
poll their counters look at them; Python needs 50 microseconds for such a turn. This does exactly
what `Turns` does for them, and leaves a turn that ends in another way to it, in the middle of its
round (`native_rounds.py`).
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
    nested,
    ptr,
    select,
    staged,
    store,
    unroll,
)
from vc4lab.soc.address.native_bus import BusState
from vc4lab.soc.address.polling import COUNTS, FURTHEST, NO_REGISTER, PATIENCE, PollState, guest_time
from vc4lab.soc.clock import FAR, TimeState
from vc4lab.soc.cores.cores import LONGEST_NAP
from vc4lab.soc.cores.engine_calls import NO_MONITOR, RegisterBatch
from vc4lab.soc.cores.generic_timer import Pace
from vc4lab.soc.cores.idle import IdleState, forget, look
from vc4lab.soc.cores.native_entry import Batch
from vc4lab.soc.cores.native_events import MOST_CORES, CoreEvents, EventState
from vc4lab.soc.cores.native_interrupts import (
    ASK_PYTHON,
    ELSEWHERE,
    IS_TAKEN,
    NONE_WAITS,
    WAITS_MASKED,
    InterruptState,
    RegisterCalls,
    deliver,
    find_vector,
    judge,
    may_come,
    waiting_for,
)
from vc4lab.soc.cores.outcome import ExceptionCounts
from vc4lab.soc.devices.local_block import LineState
from vc4lab.soc.native import SPINS, SliceState

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
AWAKE, IN_WFI, POLLS, IN_WFE = range(4)
"""What a core does between its turns."""
LOOK, RESTS, WORKS = range(3)
"""What a turn was."""
NOT_BEGUN = 3
"""A turn that Python is to take from its beginning."""
STEP_BEGINS, ROUND_BEGINS, TURN_BEGINS, TURN_ENDS, ALL_WAIT = range(5)
"""Where Python goes on: with due events, a round, a turn in a round, or the rest of one, or when no
core has worked."""
POLL_WORDS = PollState.size // 8


class CoreTurn(Struct):
    """A core: what it does (`sleeps`, and the moments as in `Core`), and how its engine is run.

    The engine's call wants `engine`, `end_address`, PC and status as `place` has them, `thumb` (the
    bits of the status that say Thumb). `pages` is its table of pages, `alignment` its
    `CoreAlignment`, `context` its engine's copy of its state with the monitor at `monitor`, if
    load-exclusive lets it look up. `ran`: it has had a turn; `slept`: it has come to a wfe; `worked`:
    it has had a turn that was not in vain;
    `polled`: it has had to do with devices, its counter or exceptions in the last one. `verdict` is
    what becomes of the interrupts that wait for it.
    """

    sleeps = i64
    wish = i64
    wake_at = i64
    vain = i64
    ran = i64
    slept = i64
    worked = i64
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
    irqs = nested(InterruptState)
    polls = nested(PollState)


class TurnState(Struct):
    """All that the rounds need. `base` is what `polls` held before a core had its turn.

    When Python goes on in the middle of a round, `core` has ended its slice, which began at
    `accesses`, `local_accesses`, `own_reads`, `taken` and `began`; `rest` are the cores after it,
    and `worked` of those before it have worked. `events_seen` are those before the last round.

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
    base = nested(PollState)
    fresh = nested(PollState)
    cores = Array(CoreTurn, MOST_CORES)


LAST_COUNT, TIMER_COUNT = PollState.last_count.offset, PollState.timer_count.offset


@staged
def _copy_polls(source: Value, target: Value, added: Value) -> None:
    """Copy a `PollState`, whose counts of instructions are taken relative to `added`."""
    for index in unroll(POLL_WORDS):
        value = load(i64, source + 8 * index)
        if 8 * index in (LAST_COUNT, TIMER_COUNT):
            value = value + added
        store(target + 8 * index, value)


@staged
def _longer(time: int, calm: Value) -> Value:
    """A time that doubles with each four calm turns."""
    doubled = max_(const(i64, 0), min_(calm >> 2, const(i64, CALM)))
    return const(i64, time) << doubled


@staged
def _core(turns: TurnState, number: Any) -> CoreTurn:
    return CoreTurn.at(turns.cores + number * CoreTurn.size)


@kernel(args=(ptr, i64, i64), returns=i64)
def _verdict(state: Value, number: Value, now: Value) -> Value:
    """What becomes of the interrupts that wait for a core now."""
    turns = TurnState.at(state)
    core = _core(turns, number)
    waiting = call(waiting_for, turns.lines, number, core.irqs.pace, now)
    return judge(core.irqs, core.place, waiting).zext(i64)


@kernel(args=(ptr, i64), returns=i1)
def look_at_interrupts(state: Value, now: Value) -> Value:
    """Note what waits for the cores; False if Python has to deal with it."""
    turns = TurnState.at(state)
    running = EventState.at(turns.events).running
    known = const(i1, 1)
    for number in unroll(MOST_CORES):
        if ((running >> number) & 1) != 0:
            core = _core(turns, number)
            core.verdict = call(_verdict, state, const(i64, number), now)
            known = known & (core.verdict != ASK_PYTHON)
    return known


@staged
def _is_interrupted(core: CoreTurn) -> Value:
    """Whether an interrupt ends what a core sleeps in; it need not be unmasked to end a wfi."""
    return (core.verdict == IS_TAKEN) | ((core.verdict == WAITS_MASKED) & (core.sleeps == IN_WFI))


@kernel(args=(ptr, i64), returns=i64)
def find_ready(state: Value, now: Value) -> Value:
    """The cores that get a turn, as bits; those that were sent an event have taken it."""
    turns = TurnState.at(state)
    events = EventState.at(turns.events)
    ready = const(i64, 0)
    for number in unroll(MOST_CORES):
        core, bit = _core(turns, number), 1 << number
        runs = ((events.running >> number) & 1) != 0
        awake = (core.sleeps == AWAKE) | _is_interrupted(core)
        sent = (core.sleeps == IN_WFE) & ((events.events & bit) != 0) & (awake == 0) & runs
        soon = (now >= core.wish) | ((turns.quiet == 0) & (now >= core.wake_at))
        if sent:
            events.events = events.events & ~bit
        wakes = awake | sent | ((core.sleeps == POLLS) & soon)
        ready = ready | select(wakes & runs, const(i64, bit), const(i64, 0))
    return ready


@staged
def _next_wish(turns: TurnState, except_: Value, wakes: bool) -> Value:
    """The first moment at which a core that polls looks again, of all but some (bits)."""
    events = EventState.at(turns.events)
    first = const(i64, FAR)
    for number in unroll(MOST_CORES):
        core = _core(turns, number)
        polls = (core.sleeps == POLLS) & (((events.running & ~except_) >> number & 1) != 0)
        moment = core.wake_at if wakes else core.wish
        first = min_(first, select(polls, moment, const(i64, FAR)))
    return first


@kernel(args=(ptr, i64, i1), returns=i32)
def take_turn(state: Value, number: Value, alone: Value) -> Value:
    """A core's turn: whether it `RESTS`, `WORKS`, or Python has to look, or to begin it."""
    turns = TurnState.at(state)
    core = _core(turns, number)
    counts = ExceptionCounts.at(CoreEvents.at(core.own).counts)
    count, taken = SliceState.at(turns.slice).count, counts.taken
    verdict = call(_verdict, state, number, guest_time(TimeState.at(turns.time), count))
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
        vector = call(find_vector, irqs, core.engine, calls)
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


@staged
def _run_engine(turns: TurnState, core: CoreTurn, alone_until: Value) -> Value:
    """Let a core run until its slice ends: the engine's number of what else has ended that."""
    time, slice_ = TimeState.at(turns.time), SliceState.at(turns.slice)
    own = CoreEvents.at(core.own)
    place = core.place
    left = max_(const(i64, 0), min_(time.next_event - time.skipped, const(i64, FURTHEST)))
    slice_.limit = min_((left * time.share).udiv(time.ns_per_instruction) + 1, alone_until)
    slice_.spins, own.waits = 0, 0
    error = const(i32, 0)
    if slice_.count < slice_.limit:
        ExceptionCounts.at(own.counts).last = slice_.count
        core.irqs.first.count = slice_.count
        pc, status = load(i64, place.values), load(i64, place.values + RegisterBatch.STEP)
        entry = pc | select((status & core.thumb) != 0, const(i64, 1), const(i64, 0))
        zero = const(i64, 0)
        run = (ptr, i64, i64, i64, i64)
        error = call_pointer(turns.start, i32, run, core.engine, entry, core.end_address, zero, zero)
        read = (ptr, ptr, ptr, i32)
        wanted = place.count.trunc(i32)
        call_pointer(turns.calls.read, i32, read, core.engine, place.numbers, place.places, wanted)
    return error


@kernel(args=(ptr, i64, i1, i64, i64, i64), returns=i32)
def run_turn(state: Value, number: Value, alone: Value, count: Value, taken: Value, verdict: Value) -> Value:
    """The same for a core that has taken its interrupt; `count` and `taken` are from before that."""
    turns = TurnState.at(state)
    time, slice_ = TimeState.at(turns.time), SliceState.at(turns.slice)
    events = EventState.at(turns.events)
    core = _core(turns, number)
    own = CoreEvents.at(core.own)
    counts = ExceptionCounts.at(own.counts)
    bus, local_bus = BusState.at(turns.bus), BusState.at(turns.local_bus)
    time.company = select(alone, const(i64, 0), const(i64, 1))
    time.wish = -1
    polls = core.pointer + CoreTurn.polls.offset
    _copy_polls(polls, turns.polling, count)
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
        turns.error = _run_engine(turns, core, slice_.end).sext(i64)
        plain = (turns.error == 0) & (slice_.noted == 0) & (slice_.new_page == 0)
        plain = plain & (slice_.code_changed == 0) & (counts.taken == expected)
        accesses = bus.accesses + local_bus.accesses
        if plain & (accesses != turns.looked):
            plain = call_pointer(turns.look, i32, (i64,), bus.accesses - turns.accesses) != 0
            turns.looked = accesses
        goes_on = plain & (slice_.unmasked != 0) & (own.waits == 0) & (slice_.spins < SPINS)
        if goes_on:
            verdict = call(_verdict, state, number, guest_time(time, slice_.count))
            goes_on = _takes_interrupt(turns, core, verdict, again=True)
    plain = plain & (slice_.unmasked == 0)
    reads = (bus.own_reads != turns.own_reads) | (counts.taken != turns.taken)
    reads = reads | (bus.accesses != turns.accesses) | (local_bus.accesses != turns.local_accesses)
    polling = PollState.at(turns.polling)
    measures = (polling.timer != NO_REGISTER) | (polling.looked == COUNTS)
    in_vain = alone & (measures == 0) & (polling.polls > PATIENCE)
    limit = (slice_.count >= slice_.limit) & (slice_.spins < SPINS) & (in_vain == 0)
    pc = load(i64, core.place.values)
    if plain & limit & (own.waits == 0) & (time.wish < 0):
        if reads:
            forget(IdleState.at(core.idle))
        else:
            plain = call(look, core.idle, pc, const(i1, 1)) == 0
    ends = const(i32, LOOK)
    if plain:
        if own.waits != 0:
            event = ((events.events & own.bit) != 0) | (counts.taken != own.returns)
            if (event == 0) & (own.yields == 0) & (_monitors(turns, core) == 0):
                _sleep(turns, number, core)
                ends = const(i32, RESTS)
        elif limit:
            _copy_polls(turns.polling, polls, -slice_.count)
            if time.wish >= 0:
                now = guest_time(time, slice_.count)
                core.sleeps, core.wish = POLLS, time.wish
                core.wake_at = min_(time.wish, now + _longer(LONGEST_POLL, core.vain))
                core.vain = core.vain + 1
                ends = const(i32, RESTS)
            else:
                core.sleeps, core.vain, core.worked = AWAKE, 0, 1
                naps = events.pointer + EventState.naps.offset + 8 * number
                store(naps, const(i64, 0))
                ends = const(i32, WORKS)
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
def _sleep(turns: TurnState, number: Value, core: CoreTurn) -> None:
    """A core sleeps in its wfe, as `Core.rest` and `Turns` have it."""
    events, count = EventState.at(turns.events), SliceState.at(turns.slice).count
    core.sleeps, core.slept = IN_WFE, 1
    naps = events.pointer + EventState.naps.offset + 8 * number
    rounds = min_(load(i64, naps) + 1, const(i64, LONGEST_NAP))
    store(naps, rounds)
    store(events.pointer + EventState.nap.offset + 8 * number, rounds)
    fresh = turns.pointer + TurnState.fresh.offset
    _copy_polls(fresh, core.pointer + CoreTurn.polls.offset, const(i64, 0))
    _copy_polls(fresh, turns.pointer + TurnState.base.offset, -count)


@staged
def _any_event(turns: TurnState) -> Value:
    """Whether a core that sleeps has been sent an event, or an interrupt."""
    events = EventState.at(turns.events)
    found = const(i1, 0)
    for number in unroll(MOST_CORES):
        core, runs = _core(turns, number), (events.running >> number & 1) != 0
        sent = (core.sleeps == IN_WFE) & ((events.events >> number & 1) != 0)
        found = found | (runs & (sent | _is_interrupted(core)))
    return found


@staged
def _any_timer(turns: TurnState) -> Value:
    """Whether a timer may interrupt its core some day."""
    running, lines = EventState.at(turns.events).running, LineState.at(turns.lines)
    found = const(i1, 0)
    for number in unroll(MOST_CORES):
        if (running >> number & 1) != 0:
            core = _core(turns, number)
            pace = Pace.at(core.irqs.pace)
            found = found | may_come(lines, number, pace, core.irqs, core.place)
    return found


@staged
def _set_share(turns: TurnState, cores: Value) -> None:
    """So many cores have worked: each has its part of the time, as `Clock.share` sets it."""
    time, count = TimeState.at(turns.time), SliceState.at(turns.slice).count
    if time.share != cores:
        now = guest_time(time, count)
        time.share = cores
        time.skipped = time.skipped + now - guest_time(time, count)


@kernel(args=(ptr, i64), returns=i32)
def take_round(state: Value, ready: Value) -> Value:
    """A turn of each core in `ready`; how the last one ended: Python goes on with it, if it must."""
    turns = TurnState.at(state)
    time = TimeState.at(turns.time)
    alone = (ready & (ready - 1)) == 0
    if alone:
        now = guest_time(time, SliceState.at(turns.slice).count)
        moment = now + _longer(ALONE, EventState.at(turns.events).calm)
        time.marker = min_(moment, _next_wish(turns, ready, wakes=True))
        time.next_event = min_(time.first_event, time.marker)
    turns.alone = select(alone, const(i64, 1), const(i64, 0))
    turns.rest = ready
    turns.worked = 0
    ends = const(i32, RESTS)
    goes_on = const(i1, 1)
    number = const(i64, 0)
    while (turns.rest != 0) & goes_on:
        if (turns.rest & 1) != 0:
            ends = call(take_turn, state, number, alone)
            goes_on = (ends == RESTS) | (ends == WORKS)
            turns.core = number
            turns.worked = turns.worked + select(ends == WORKS, const(i64, 1), const(i64, 0))
        turns.rest = turns.rest.shr(1)
        number = number + 1
    if goes_on:
        time.marker = FAR
        time.next_event = time.first_event
        worked = turns.worked
        if worked != 0:
            events = EventState.at(turns.events)
            if alone:
                events.calm = events.calm + 1
            elif worked > 1:
                events.calm = 0
            turns.quiet, turns.hopeless = 0, 0
        _set_share(turns, max_(worked, const(i64, 1)))
    return ends


@kernel(args=(ptr, i64), returns=i32)
def take_step(state: Value, ready: Value) -> Value:
    """A round, and what follows if no core has worked in it: where Python goes on."""
    turns = TurnState.at(state)
    time, slice_ = TimeState.at(turns.time), SliceState.at(turns.slice)
    where = const(i32, STEP_BEGINS)
    ends = const(i32, RESTS)
    turns.rounds = turns.rounds + 1
    turns.events_seen = time.events_run
    if ready != 0:
        ends = call(take_round, state, ready)
    else:
        turns.worked = 0
        _set_share(turns, const(i64, 1))
    if ends == LOOK:
        where = const(i32, TURN_ENDS)
    elif ends == NOT_BEGUN:
        where = const(i32, TURN_BEGINS)
    elif turns.worked != 0:
        turns.quiet = 0
    elif call(look_at_interrupts, state, guest_time(time, slice_.count)) == 0:
        where = const(i32, ALL_WAIT)
    elif (turns.quiet + 1 < QUIET) & _any_event(turns):
        turns.quiet = turns.quiet + 1
    else:
        wish = _next_wish(turns, const(i64, 0), wakes=False)
        hope = (wish < FAR) | _any_timer(turns)
        if (wish < time.next_event) | ((time.goes_on != 0) & hope):
            turns.quiet = turns.quiet + 1
            ahead = min_(wish, time.next_event) - guest_time(time, slice_.count)
            time.skipped = time.skipped + max_(ahead, const(i64, 0))
        else:
            where = const(i32, ALL_WAIT)
    return where


@kernel(args=(ptr,), returns=i32)
def take_turns(state: Value) -> Value:
    """Rounds, until Python has to look: where it goes on."""
    turns = TurnState.at(state)
    time, slice_ = TimeState.at(turns.time), SliceState.at(turns.slice)
    count = slice_.count
    _copy_polls(turns.polling, turns.pointer + TurnState.base.offset, -count)
    bus, local_bus = BusState.at(turns.bus), BusState.at(turns.local_bus)
    turns.looked = bus.accesses + local_bus.accesses
    where = const(i32, STEP_BEGINS)
    going = const(i1, 1)
    while going:
        going = guest_time(time, slice_.count) < time.next_event
        if (going == 0) & (time.goes_on != 0):
            going = call_pointer(turns.meet_events, i32, ()) != 0
        if going:
            now = guest_time(time, slice_.count)
            going = call(look_at_interrupts, state, now)
            if going:
                where = call(take_step, state, call(find_ready, state, now))
                going = where == STEP_BEGINS
            else:
                where = const(i32, ROUND_BEGINS)
    if where != TURN_ENDS:
        count = slice_.count
        _copy_polls(turns.pointer + TurnState.base.offset, turns.polling, count)
    return where


@cache
def module() -> Any:
    functions = {"take_turns": take_turns}
    return build("soc_turns", functions, float_mode="default", key="soc-turns")
