"""Lines of instructions and uniforms for the threads of a QPU, out of the caches of its slice."""

from __future__ import annotations

from vc4lab.simd import Value, const, i32, i64, kernel, ptr, staged
from vc4lab.timing.compute.kinds import Cause, ModuleKind
from vc4lab.timing.compute.slice_caches import find_line, step_cache
from vc4lab.timing.compute.state import Figures, Qpu, SliceCache
from vc4lab.timing.event_scheduler import Engine, state_of, wake
from vc4lab.timing.graphics.shaders.state import THREADS, ShaderQpu, Thread

STRIDE = ShaderQpu.second.offset - ShaderQpu.first.offset


@staged
def thread_at(qpu: ShaderQpu, number: Value) -> Thread:
    """A thread of a QPU."""
    return Thread.at(qpu.field_ptr("first") + number.sext(i64) * STRIDE, 8)


@staged
def waiter_of(engine: Engine, qpu: Qpu, thread: Thread) -> Value:
    """The number of a thread among those of its slice."""
    return qpu.port + thread.number * Figures.at(engine.chip).qpus


@staged
def _thread_of(engine: Engine, instance: Value, waiter: Value) -> Thread:
    qpus = Figures.at(engine.chip).qpus
    return thread_at(ShaderQpu.at(state_of(engine, instance), 8), waiter.udiv(qpus))


@staged
def ask_uniforms(engine: Engine, qpu: Qpu, thread: Thread, line: Value, clock: Value, now: Value) -> None:
    """The line of uniforms is wanted at a clock; only if it is missing, that is now."""
    waiter = waiter_of(engine, qpu, thread)
    there = find_line(engine, ModuleKind.UNIFORM_CACHE, qpu.slice, waiter, line, now)
    thread.line_comes = there
    thread.line_at = clock + Figures.at(engine.chip).uniform_line_clocks


@staged
def _instructions_come(engine: Engine, number: Value, waiter: Value, line: Value, clock: Value) -> None:
    _thread_of(engine, number, waiter).line = line
    wake(engine, number, clock)


@staged
def _uniforms_come(engine: Engine, number: Value, waiter: Value, line: Value, clock: Value) -> None:
    thread = _thread_of(engine, number, waiter)
    thread.line_comes = const(i32, 1)
    thread.line_at = clock + Figures.at(engine.chip).uniform_line_clocks
    if thread.cause == int(Cause.UNIFORMS):
        wake(engine, number, thread.line_at)


@kernel(args=(ptr, ptr, i64))
def step_instructions(address: Value, state: Value, clock: Value) -> None:
    """The instruction cache of a slice."""
    engine, cache = Engine.at(address), SliceCache.at(state)
    step_cache(engine, cache, clock, _instructions_come, THREADS)


@kernel(args=(ptr, ptr, i64))
def step_uniforms(address: Value, state: Value, clock: Value) -> None:
    """The uniform cache of a slice."""
    engine, cache = Engine.at(address), SliceCache.at(state)
    step_cache(engine, cache, clock, _uniforms_come, THREADS)
