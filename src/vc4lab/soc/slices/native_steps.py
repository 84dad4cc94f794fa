"""Rounds of turns in native code: which cores are ready, and what follows when all wait.

This does exactly what `Turns` does (`native_turns.py`, `native_rounds.py`).
"""

from __future__ import annotations

from functools import cache
from typing import Any

from vc4lab.simd import (
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
    staged,
    store,
    unroll,
)
from vc4lab.soc.address.native_bus import BusState
from vc4lab.soc.address.polling import guest_time
from vc4lab.soc.clock import FAR, TimeState
from vc4lab.soc.cores.code.native_events import MOST_CORES, EventState
from vc4lab.soc.cores.generic_timer import Pace
from vc4lab.soc.devices.local_block import LineState
from vc4lab.soc.native import SliceState
from vc4lab.soc.slices.native_interrupts import ASK_PYTHON, IS_TAKEN, WAITS_MASKED, may_come
from vc4lab.soc.slices.native_turns import (
    ALL_WAIT,
    ALONE,
    AWAKE,
    IN_LOOP,
    IN_WFE,
    IN_WFI,
    LOOK,
    LOOKS,
    NOT_BEGUN,
    POLLS,
    QUIET,
    RESTS,
    ROUND_BEGINS,
    STEP_BEGINS,
    TURN_BEGINS,
    TURN_ENDS,
    WORKS,
    CoreTurn,
    TurnState,
    copy_polls,
    core_of,
    longer,
    take_turn,
    verdict_of,
)


@kernel(args=(ptr, i64), returns=i1)
def look_at_interrupts(state: Value, now: Value) -> Value:
    """Note what waits for the cores; False if Python has to deal with it."""
    turns = TurnState.at(state)
    running = EventState.at(turns.events).running
    known = const(i1, 1)
    for number in unroll(MOST_CORES):
        if ((running >> number) & 1) != 0:
            core = core_of(turns, number)
            core.verdict = call(verdict_of, state, const(i64, number), now)
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
    stirred = TimeState.at(turns.time).events_run != turns.events_seen
    looks = stirred | ((turns.quiet > 0) & (turns.quiet <= LOOKS))
    for number in unroll(MOST_CORES):
        core, bit = core_of(turns, number), 1 << number
        runs = ((events.running >> number) & 1) != 0
        awake = (core.sleeps == AWAKE) | _is_interrupted(core)
        sent = (core.sleeps == IN_WFE) & ((events.events & bit) != 0) & (awake == 0) & runs
        soon = (now >= core.wish) | ((turns.quiet == 0) & (now >= core.wake_at))
        if sent:
            events.events = events.events & ~bit
        again = const(i1, 0)
        if (core.sleeps == IN_LOOP) & (awake == 0) & runs:
            place = events.pointer + EventState.nap.offset + 8 * number
            nap = load(i64, place) - 1
            store(place, nap)
            again = looks | (nap <= 0)
        wakes = awake | sent | again | ((core.sleeps == POLLS) & soon)
        ready = ready | select(wakes & runs, const(i64, bit), const(i64, 0))
    return ready


@staged
def _next_wish(turns: TurnState, except_: Value, wakes: bool) -> Value:
    """The first moment at which a core that polls looks again, of all but some (bits)."""
    events = EventState.at(turns.events)
    first = const(i64, FAR)
    for number in unroll(MOST_CORES):
        core = core_of(turns, number)
        polls = (core.sleeps == POLLS) & (((events.running & ~except_) >> number & 1) != 0)
        moment = core.wake_at if wakes else core.wish
        first = min_(first, select(polls, moment, const(i64, FAR)))
    return first


@staged
def _any_event(turns: TurnState) -> Value:
    """Whether a core that sleeps has been sent an event, or an interrupt, or watches memory."""
    events = EventState.at(turns.events)
    found = const(i1, 0)
    for number in unroll(MOST_CORES):
        core, runs = core_of(turns, number), (events.running >> number & 1) != 0
        sent = (core.sleeps == IN_WFE) & ((events.events >> number & 1) != 0)
        found = found | (runs & (sent | (core.sleeps == IN_LOOP) | _is_interrupted(core)))
    return found


@staged
def _any_timer(turns: TurnState) -> Value:
    """Whether a timer may interrupt its core some day."""
    running, lines = EventState.at(turns.events).running, LineState.at(turns.lines)
    found = const(i1, 0)
    for number in unroll(MOST_CORES):
        if (running >> number & 1) != 0:
            core = core_of(turns, number)
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
        moment = now + longer(ALONE, EventState.at(turns.events).calm)
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
    copy_polls(turns.polling, turns.pointer + TurnState.base.offset, -count)
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
        copy_polls(turns.pointer + TurnState.base.offset, turns.polling, count)
    return where


@cache
def module() -> Any:
    functions = {"take_turns": take_turns}
    return build("soc_turns", functions, float_mode="default", key="soc-turns")
