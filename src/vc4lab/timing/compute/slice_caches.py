"""The instruction and the uniform cache of a slice: they look lines up, and ask the L2 cache.

QPUs look into them when they need a line. Lines that several QPUs want at once are asked for once.
"""

from __future__ import annotations

from collections.abc import Callable

from vc4lab.simd import Value, call, const, i32, i64, kernel, load, ptr, select, staged, store
from vc4lab.timing.compute import tags
from vc4lab.timing.compute.kinds import LINE_BITS, Cause, ModuleKind, QueueKind
from vc4lab.timing.compute.state import IN_FLIGHT, Figures, Qpu, SliceCache
from vc4lab.timing.event_scheduler import Engine, instance_of, state_of, wake, wake_self
from vc4lab.timing.queues import first_piece, is_readable, queue_at, remove_piece, write_piece

Came = Callable[[Engine, Value, Value, Value, Value], None]
"""Handles a line that has come: (engine, the QPU's instance, the slice's waiter, line, clock). Waiters
of a slice are its QPUs; if each has two, first one of each, then the other."""

NOT_WAITING, IN_THE_CACHE, ON_ITS_WAY = 0, 1, 2
"""States of a QPU's stream of uniforms: it waits for nothing, for a line that the cache has asked for,
for one that comes from the cache."""


@staged
def cache_of(engine: Engine, kind: int, number: Value) -> SliceCache:
    """A slice's cache of a kind."""
    return SliceCache.at(state_of(engine, instance_of(engine, kind, number)))


@staged
def _pending(cache: SliceCache, line: Value) -> Value:
    """Whether a line was asked for and has not come."""
    found = const(i32, 0)
    for entry in range(cache.count):
        if load(i64, cache.pending + (entry << 3)) == line:
            found = const(i32, 1)
    return found


@staged
def look_up(engine: Engine, kind: int, qpu: Qpu, line: Value, clock: Value) -> Value:
    """Whether a line is there (1). If not, it is asked for, and the QPU is called when it comes."""
    return find_line(engine, kind, qpu.slice, qpu.port, line, clock)


@staged
def find_line(engine: Engine, kind: int, number: Value, waiter: Value, line: Value, clock: Value) -> Value:
    """Look a line up as `look_up` does, for a waiter of a slice, which waits for one line at a time."""
    cache = cache_of(engine, kind, number)
    hit = const(i32, 0)
    if _pending(cache, line) == 0:
        hit = call(tags.access, cache.tags.pointer, line)
        if hit == 0:
            cache.tags.misses = cache.tags.misses + 1
            if cache.count < IN_FLIGHT:
                place = cache.count.sext(i64)
                store(cache.pending + (place << 3), line)
                store(cache.asked + (place << 2), const(i32, 0))
                cache.count = cache.count + 1
                wake(engine, instance_of(engine, kind, number), clock)
            else:  # a program that never waits for what it asks
                hit = const(i32, 1)
    if hit == 0:
        at = waiter.sext(i64)
        store(cache.wanted + (at << 3), line)
        store(cache.waits + (at << 2), const(i32, 1))
    return hit


@staged
def is_there(engine: Engine, kind: int, number: Value, line: Value) -> Value:
    """Whether a slice's cache has a line (1); nothing changes."""
    cache = cache_of(engine, kind, number)
    there = const(i32, 0)
    if _pending(cache, line) == 0:
        there = call(tags.holds, cache.tags.pointer, line)
    return there


@staged
def _ask(engine: Engine, cache: SliceCache, clock: Value) -> None:
    """Asks the L2 cache for one line."""
    requests = queue_at(engine, QueueKind.L2_REQUESTS, const(i32, 0))
    done = const(i32, 0)
    for entry in range(cache.count):
        asked = cache.asked + (entry << 2)
        if load(i32, asked) == 0:
            if done == 0:
                line = load(i64, cache.pending + (entry << 3))
                source = cache.source.sext(i64)
                wrote = call(
                    write_piece,
                    engine.pointer, requests.pointer, clock, clock + 1,
                    source, line, const(i64, 0),
                )  # fmt: skip
                store(asked, wrote)
                done = const(i32, 1)
            else:
                wake_self(engine, clock + 1)


@staged
def _forget(cache: SliceCache, line: Value) -> None:
    """A line is no longer waited for."""
    kept = const(i32, 0)
    for entry in range(cache.count):
        at = entry
        found = load(i64, cache.pending + (at << 3))
        asked = load(i32, cache.asked + (at << 2))
        if found != line:
            to = kept.sext(i64)
            store(cache.pending + (to << 3), found)
            store(cache.asked + (to << 2), asked)
            kept = kept + 1
    cache.count = kept


@staged
def step_cache(engine: Engine, cache: SliceCache, clock: Value, came: Came, of_each: int = 1) -> None:
    """Takes a line that has come and asks for one that is missing. of_each: waiters of a QPU."""
    answers = queue_at(engine, QueueKind.L2_ANSWERS, cache.source)
    if call(is_readable, engine.pointer, answers.pointer, clock) != 0:
        line = first_piece(answers).place
        call(remove_piece, engine.pointer, answers.pointer, clock)
        _forget(cache, line)
        qpus = Figures.at(engine.chip).qpus
        first = instance_of(engine, ModuleKind.QPU, cache.slice * qpus)
        for number in range(qpus * of_each):
            at = const(i32, 0) + number
            waits = load(i32, cache.waits + (at << 2)) != 0
            if waits & (load(i64, cache.wanted + (at << 3)) == line):
                store(cache.waits + (at << 2), const(i32, 0))
                came(engine, first + at.urem(qpus), at, line, clock)
    _ask(engine, cache, clock)


@staged
def _uniforms_came(qpu: Qpu, figures: Figures, clock: Value) -> None:
    """A line of uniforms is in the cache; it has to come to the QPU, if it is still wanted."""
    stale = qpu.uniform_stale != 0
    qpu.uniform_wait = select(stale, const(i32, NOT_WAITING), const(i32, ON_ITS_WAY))
    qpu.uniform_stale = const(i32, 0)
    qpu.uniform_ready = clock + figures.uniform_line_clocks


@staged
def fetch_uniforms(engine: Engine, qpu: Qpu, clock: Value) -> None:
    """Words of the stream are fetched ahead, a line after the other."""
    figures = Figures.at(engine.chip)
    if (qpu.uniform_wait == ON_ITS_WAY) & (qpu.uniform_ready <= clock):
        qpu.uniform_wait = const(i32, NOT_WAITING)
        qpu.uniform_line = select(qpu.uniform_stale != 0, const(i64, -1), qpu.uniform_next)
        qpu.uniform_stale = const(i32, 0)
    while (qpu.ahead < figures.ahead) & (qpu.uniform_wait == NOT_WAITING):
        at = qpu.stream + (qpu.ahead << 2)
        line = at.zext(i64).shr(LINE_BITS)
        if line == qpu.uniform_line:
            qpu.ahead = qpu.ahead + 1
        else:
            qpu.uniform_next = line
            there = look_up(engine, ModuleKind.UNIFORM_CACHE, qpu, line, clock)
            qpu.uniform_wait = select(there != 0, const(i32, ON_ITS_WAY), const(i32, IN_THE_CACHE))
            qpu.uniform_ready = clock + figures.uniform_line_clocks


@staged
def move_uniforms(engine: Engine, qpu: Qpu, address: Value, clock: Value) -> None:
    """The uniforms address is written; a line that is on its way has to come first."""
    qpu.stream = address
    qpu.uniforms = qpu.uniforms + Figures.at(engine.chip).ahead.sext(i64)
    qpu.ahead = const(i32, 0)
    qpu.uniform_line = const(i64, -1)
    qpu.uniform_stale = select(qpu.uniform_wait != 0, const(i32, 1), const(i32, 0))
    fetch_uniforms(engine, qpu, clock)


@staged
def _instructions_come(engine: Engine, number: Value, waiter: Value, line: Value, clock: Value) -> None:
    qpu = Qpu.at(state_of(engine, number))
    qpu.line = line
    qpu.fetching = const(i32, 0)
    wake(engine, number, clock)


@staged
def _uniforms_come(engine: Engine, number: Value, waiter: Value, line: Value, clock: Value) -> None:
    qpu = Qpu.at(state_of(engine, number))
    _uniforms_came(qpu, Figures.at(engine.chip), clock)
    fetch_uniforms(engine, qpu, clock)
    if qpu.cause == int(Cause.UNIFORMS):
        wake(engine, number, clock)


@kernel(args=(ptr, ptr, i64))
def step_instruction_cache(address: Value, state: Value, clock: Value) -> None:
    """Takes a line that has come and asks for one that is missing."""
    step_cache(Engine.at(address), SliceCache.at(state), clock, _instructions_come)


@kernel(args=(ptr, ptr, i64))
def step_uniform_cache(address: Value, state: Value, clock: Value) -> None:
    """Step a uniform cache as `step_instruction_cache` does; QPUs get their next words."""
    step_cache(Engine.at(address), SliceCache.at(state), clock, _uniforms_come)
