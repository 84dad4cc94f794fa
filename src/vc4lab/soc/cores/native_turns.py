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
from vc4lab.soc.address.polling import COUNTS, FURTHEST, NO_REGISTER, PollState, guest_time
from vc4lab.soc.clock import FAR, TimeState
from vc4lab.soc.cores.cores import LONGEST_NAP
from vc4lab.soc.cores.engine_calls import NO_MONITOR, RegisterBatch
from vc4lab.soc.cores.native_entry import Batch
from vc4lab.soc.cores.native_events import MOST_CORES, CoreEvents, EventState
from vc4lab.soc.cores.outcome import ExceptionCounts
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
ROUND_BEGINS, TURN_ENDS, ALL_WAIT = range(3)
"""Where Python goes on: with a round, in the middle of one, or when no core has worked."""
POLL_WORDS = PollState.size // 8


class CoreTurn(Struct):
    """A core: what it does (`sleeps`, and the moments as in `Core`), and how its engine is run.

    The engine's call wants `engine`, `end_address`, PC and status as `place` has them, `thumb` (the
    bits of the status that say Thumb). `pages` is its table of pages, `alignment` its
    `CoreAlignment`, `context` its engine's copy of its state with the monitor at `monitor`, if
    load-exclusive lets it look up. `ran`: it has had a turn; `worked`: one that was not in vain;
    `polled`: it has read its counter in the last one.
    """

    sleeps = i64
    wish = i64
    wake_at = i64
    vain = i64
    ran = i64
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
    polls = nested(PollState)


class TurnState(Struct):
    """All that the rounds need. `base` is what `polls` held before a core had its turn.

    When Python goes on in the middle of a round, `core` has ended its slice, which began at
    `accesses`, `local_accesses`, `own_reads`, `taken` and `began`; `rest` are the cores after it,
    and `worked` of those before it have worked.
    """

    slice = ptr
    time = ptr
    events = ptr
    polling = ptr
    bus = ptr
    local_bus = ptr
    running_place = ptr
    start = ptr
    read = ptr
    save = ptr
    ram = ptr
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


@kernel(args=(ptr, i64), returns=i64)
def find_ready(state: Value, now: Value) -> Value:
    """The cores that get a turn, as bits; those that were sent an event have taken it."""
    turns = TurnState.at(state)
    events = EventState.at(turns.events)
    ready = const(i64, 0)
    for number in unroll(MOST_CORES):
        core, bit = _core(turns, number), 1 << number
        sent = ((core.sleeps == IN_WFE) & ((events.events & bit) != 0)) != 0
        soon = (now >= core.wish) | ((turns.quiet == 0) & (now >= core.wake_at))
        wakes = (core.sleeps == AWAKE) | sent | ((core.sleeps == POLLS) & soon)
        if sent:
            events.events = events.events & ~bit
        runs = ((events.running >> number) & 1) != 0
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
    """A core's turn: whether it `RESTS`, `WORKS`, or Python has to look."""
    turns = TurnState.at(state)
    time, slice_ = TimeState.at(turns.time), SliceState.at(turns.slice)
    events = EventState.at(turns.events)
    core = _core(turns, number)
    own = CoreEvents.at(core.own)
    counts = ExceptionCounts.at(own.counts)
    bus, local_bus = BusState.at(turns.bus), BusState.at(turns.local_bus)
    count = slice_.count
    time.company = select(alone, const(i64, 0), const(i64, 1))
    time.wish = -1
    polls = core.pointer + CoreTurn.polls.offset
    _copy_polls(polls, turns.polling, count)
    turns.core, turns.began, turns.taken = number, count, counts.taken
    turns.accesses, turns.local_accesses = bus.accesses, local_bus.accesses
    turns.own_reads = bus.own_reads
    turns.slices = turns.slices + 1
    events.current = number
    core.ran = 1
    time.changes = time.changes + 1
    slice_.end = count + select(alone, const(i64, LONGEST_SLICE), const(i64, TURN))
    left = max_(const(i64, 0), min_(time.next_event - time.skipped, const(i64, FURTHEST)))
    slice_.limit = min_((left * time.share).udiv(time.ns_per_instruction) + 1, slice_.end)
    counts.last = count
    slice_.ram, slice_.seen, slice_.pages = turns.ram, core.pages, core.pages
    slice_.masks, slice_.masked, slice_.unmasked = 0, 0, 0
    slice_.spins, slice_.noted, own.waits = 0, 0, 0
    store(turns.running_place, core.alignment)
    place = core.place
    pc, status = load(i64, place.values), load(i64, place.values + RegisterBatch.STEP)
    entry = pc | select((status & core.thumb) != 0, const(i64, 1), const(i64, 0))
    zero = const(i64, 0)
    run = (ptr, i64, i64, i64, i64)
    failed = call_pointer(turns.start, i32, run, core.engine, entry, core.end_address, zero, zero)
    turns.error = failed.sext(i64)
    read = (ptr, ptr, ptr, i32)
    wanted = place.count.trunc(i32)
    call_pointer(turns.read, i32, read, core.engine, place.numbers, place.places, wanted)
    plain = (failed == 0) & (slice_.noted == 0) & (slice_.new_page == 0)
    plain = plain & (slice_.code_changed == 0) & (counts.taken == turns.taken)
    plain = plain & (bus.accesses == turns.accesses) & (slice_.unmasked == 0)
    plain = plain & (local_bus.accesses == turns.local_accesses)
    polling = PollState.at(turns.polling)
    measures = (polling.timer != NO_REGISTER) | (polling.looked == COUNTS)
    reads = (bus.own_reads != turns.own_reads) & measures
    ends = const(i32, LOOK)
    if plain:
        if own.waits != 0:
            event = ((events.events & own.bit) != 0) | (counts.taken != own.returns)
            if (event == 0) & (own.yields == 0) & (_monitors(turns, core) == 0):
                _sleep(turns, number, core)
                ends = const(i32, RESTS)
        elif reads & (slice_.count >= slice_.limit) & (slice_.spins < SPINS):
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
    core.sleeps = IN_WFE
    naps = events.pointer + EventState.naps.offset + 8 * number
    rounds = min_(load(i64, naps) + 1, const(i64, LONGEST_NAP))
    store(naps, rounds)
    store(events.pointer + EventState.nap.offset + 8 * number, rounds)
    fresh = turns.pointer + TurnState.fresh.offset
    _copy_polls(fresh, core.pointer + CoreTurn.polls.offset, const(i64, 0))
    _copy_polls(fresh, turns.pointer + TurnState.base.offset, -count)


@staged
def _any_event(turns: TurnState) -> Value:
    """Whether a core that sleeps in wfe has been sent an event."""
    events = EventState.at(turns.events)
    found = const(i1, 0)
    for number in unroll(MOST_CORES):
        sent = ((events.events & events.running) >> number & 1) != 0
        found = found | (sent & (_core(turns, number).sleeps == IN_WFE))
    return found


@staged
def _set_share(turns: TurnState, cores: Value) -> None:
    """So many cores have worked: each has its part of the time, as `Clock.share` sets it."""
    time, count = TimeState.at(turns.time), SliceState.at(turns.slice).count
    if time.share != cores:
        now = guest_time(time, count)
        time.share = cores
        time.skipped = time.skipped + now - guest_time(time, count)


@kernel(args=(ptr, i64), returns=i1)
def take_round(state: Value, ready: Value) -> Value:
    """A turn of each core in `ready`; False: Python goes on in the middle of it."""
    turns = TurnState.at(state)
    time = TimeState.at(turns.time)
    alone = (ready & (ready - 1)) == 0
    event = time.next_event
    if alone:
        now = guest_time(time, SliceState.at(turns.slice).count)
        moment = now + _longer(ALONE, EventState.at(turns.events).calm)
        time.marker = min_(moment, _next_wish(turns, ready, wakes=True))
        time.next_event = min_(event, time.marker)
    turns.alone = select(alone, const(i64, 1), const(i64, 0))
    turns.rest = ready
    turns.worked = 0
    goes_on = const(i1, 1)
    number = const(i64, 0)
    while (turns.rest != 0) & goes_on:
        if (turns.rest & 1) != 0:
            ends = call(take_turn, state, number, alone)
            goes_on = ends != LOOK
            turns.worked = turns.worked + select(ends == WORKS, const(i64, 1), const(i64, 0))
        turns.rest = turns.rest.shr(1)
        number = number + 1
    if goes_on:
        time.marker = FAR
        time.next_event = event
        worked = turns.worked
        if worked != 0:
            events = EventState.at(turns.events)
            if alone:
                events.calm = events.calm + 1
            elif worked > 1:
                events.calm = 0
            turns.quiet, turns.hopeless = 0, 0
        _set_share(turns, max_(worked, const(i64, 1)))
    return goes_on


@kernel(args=(ptr,), returns=i32)
def take_turns(state: Value) -> Value:
    """Rounds, until Python has to look: where it goes on."""
    turns = TurnState.at(state)
    time, slice_ = TimeState.at(turns.time), SliceState.at(turns.slice)
    count = slice_.count
    _copy_polls(turns.polling, turns.pointer + TurnState.base.offset, -count)
    where = const(i32, ROUND_BEGINS)
    going = const(i1, 1)
    while going:
        now = guest_time(time, slice_.count)
        going = now < time.next_event
        if going:
            ready = call(find_ready, state, now)
            if ready != 0:
                going = call(take_round, state, ready)
            else:
                turns.worked = 0
                _set_share(turns, const(i64, 1))
            turns.rounds = turns.rounds + 1
            if going == 0:
                where = const(i32, TURN_ENDS)
            elif turns.worked != 0:
                turns.quiet = 0
            elif (turns.quiet + 1 < QUIET) & _any_event(turns):
                turns.quiet = turns.quiet + 1
            else:
                wish = _next_wish(turns, const(i64, 0), wakes=False)
                if wish < time.next_event:
                    turns.quiet = turns.quiet + 1
                    ahead = wish - guest_time(time, slice_.count)
                    time.skipped = time.skipped + max_(ahead, const(i64, 0))
                else:
                    where = const(i32, ALL_WAIT)
                    going = const(i1, 0)
    if where != TURN_ENDS:
        count = slice_.count
        _copy_polls(turns.pointer + TurnState.base.offset, turns.polling, count)
    return where


@cache
def module() -> Any:
    functions = {"take_turns": take_turns}
    return build("soc_turns", functions, float_mode="default", key="soc-turns")
