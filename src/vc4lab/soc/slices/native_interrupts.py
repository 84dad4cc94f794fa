"""Interrupts that native rounds deliver to their cores in AArch32 state (`native_turns.py`).

What waits for a core: its timers, which are compared with the time here, and all the rest as the
local block has last noted it. FIQs, HYP mode, AArch64 and handlers in Thumb code are left to
Python, which does the same with the same registers (`core_interrupts.py`, `exceptions.py`), and so
is every interrupt while something listens to exceptions.
"""

from __future__ import annotations

from typing import Any

from vc4lab.memory import MEMORY_MASK
from vc4lab.simd import (
    Struct,
    Value,
    call_pointer,
    const,
    i1,
    i32,
    i64,
    kernel,
    load,
    nested,
    ptr,
    select,
    staged,
    store,
)
from vc4lab.soc.cores.engine.engine_calls import RegisterBatch
from vc4lab.soc.cores.exceptions.exceptions import (
    ABORT_MASKED,
    HIGH_VECTORS,
    HYP,
    INSTRUCTIONS_PER_EXCEPTION,
    IRQ,
    IRQ_MASKED,
    IT_AND_JAZELLE,
    MODE_MASK,
    SCTLR_TE,
    SCTLR_V,
    THUMB,
    ArmException,
)
from vc4lab.soc.cores.exceptions.native_entry import Batch
from vc4lab.soc.cores.exceptions.open_exceptions import NEAR
from vc4lab.soc.cores.exceptions.outcome import ExceptionCounts
from vc4lab.soc.cores.generic_timer import ENABLE, MASKED, Pace
from vc4lab.soc.devices.local_block import FIQ_WAITS, IRQ_WAITS, TIMER_UNITS, LineState
from vc4lab.soc.native import SliceState

NOT_KNOWN = 4
"""Of what waits for a core: Python has to look at its timers."""
NONE_WAITS, WAITS_MASKED, IS_TAKEN, ASK_PYTHON = range(4)
"""What becomes of it."""
LOW_VECTORS, OFFSET, BACK = 0x20, ArmException.IRQ.value.vector, ArmException.IRQ.value.arm_offset
ELSEWHERE = -1
"""In place of a vector."""
FAST = 0x10
"""Of TIMER_INTERRUPTS, beside the bit of an IRQ: it is an FIQ."""


class OpenState(Struct):
    """`OpenExceptions` of a core: `known` if there is a first one, taken in `status`.

    `renewed`: it is an interrupt that native code has delivered, at `place`, to `vector`.
    """

    known = i64
    status = i64
    modes = i64
    taken = i64
    count = i64
    renewed = i64
    place = i64
    vector = i64


class InterruptState(Struct):
    """How a core takes an interrupt. `handler`: what is known to be one at the vector below 0x20.

    `delivers`: native code may do it.
    """

    delivers = i64
    handler = i64
    pace = ptr
    before = nested(Batch)
    after = nested(Batch)
    first = nested(OpenState)


class RegisterCalls(Struct):
    """The engine's functions to read and write registers, and where the guest's RAM is."""

    read = ptr
    write = ptr
    ram = ptr


@kernel(args=(ptr, i64, ptr, i64), returns=i64)
def waiting_for(line_state: Value, core: Value, pace_at: Value, now: Value) -> Value:
    """What waits for a core: `IRQ_WAITS`, `FIQ_WAITS`, `NOT_KNOWN`."""
    state, pace = LineState.at(line_state), Pace.at(pace_at)
    found = load(i64, state.others + 8 * core)
    lines = load(i64, state.timers + 8 * core)
    if lines != 0:
        for bit, unit in enumerate(TIMER_UNITS):
            control = load(i64, pace.control + 8 * unit)
            moment = load(i64, pace.moments + 8 * unit)
            asks = ((control & (ENABLE | MASKED)) == ENABLE) & (now >= moment)
            wired = lines >> bit & (FAST | 1)
            kind = select((wired & FAST) != 0, const(i64, FIQ_WAITS), const(i64, IRQ_WAITS))
            kind = select(moment < 0, const(i64, NOT_KNOWN), kind)
            found = found | select(asks & (wired != 0), kind, const(i64, 0))
    return found


@staged
def may_come(lines: LineState, number: Any, pace: Pace, irqs: InterruptState, place: Batch) -> Value:
    """Whether one of the core's timers may interrupt it some day (a part of `can_come`)."""
    armed = const(i1, 0)
    for unit in sorted(set(TIMER_UNITS)):
        control = load(i64, pace.control + 8 * unit)
        armed = armed | ((control & (ENABLE | MASKED)) == ENABLE)
    wired = load(i64, lines.timers + 8 * number) != 0
    return armed & wired & (judge(irqs, place, const(i64, IRQ_WAITS)) == IS_TAKEN)


@staged
def judge(irqs: InterruptState, place: Batch, waiting: Value) -> Value:
    """What becomes of what waits for a core."""
    step = RegisterBatch.STEP
    found = const(i32, NONE_WAITS)
    if waiting != 0:
        found = const(i32, ASK_PYTHON)
        if (waiting == IRQ_WAITS) & (irqs.delivers != 0):
            status, routing = load(i64, place.values + step), load(i64, place.values + 2 * step)
            masked = (status & IRQ_MASKED) != 0
            known = select(masked, const(i32, WAITS_MASKED), const(i32, IS_TAKEN))
            plain = ((status & MODE_MASK) != HYP) & (routing == 0)
            found = select(plain, known, found)
    return found


@staged
def _note(first: OpenState, counts: ExceptionCounts, count: Value, taken: tuple[Value, ...]) -> None:
    """`OpenExceptions.note`; `taken` is address, vector, status before, status after."""
    address, vector, before, after = taken
    number = counts.taken + 1
    by_mode = (first.modes >> (before & MODE_MASK) & 1) != 0
    by_mask = ((before & IRQ_MASKED) != 0) & ((first.status & IRQ_MASKED) == 0)
    near = (count - first.count <= NEAR) & ((first.status & IRQ_MASKED) != 0)
    runs = select(first.modes != 0, by_mode, by_mask | near)
    runs = runs & (first.known != 0) & (number == first.taken + 1)
    first.taken = number
    if runs == 0:
        first.known, first.renewed = 1, 1
        first.status, first.place, first.vector = before, address, vector
        first.modes = 0
    mode = after & MODE_MASK
    if mode != (first.status & MODE_MASK):
        first.modes = first.modes | (const(i64, 1) << mode)
    if (first.modes == 0) & ((first.status & IRQ_MASKED) != 0):
        first.count = count


@kernel(args=(ptr, ptr, ptr), returns=i64)
def find_vector(state: Value, engine: Value, calls_at: Value) -> Value:
    """Where a core would take its IRQ; `ELSEWHERE` if Python has to find that out."""
    irqs, calls = InterruptState.at(state), RegisterCalls.at(calls_at)
    before = irqs.before
    step, batch = RegisterBatch.STEP, (ptr, ptr, ptr, i32)
    wanted = before.count.trunc(i32)
    call_pointer(calls.read, i32, batch, engine, before.numbers, before.places, wanted)
    control, base = (load(i64, before.values + step * slot) for slot in (1, 2))
    high = (control & SCTLR_V) != 0
    vector = select(high, const(i64, HIGH_VECTORS), base & ~31) + OFFSET
    known = vector >= LOW_VECTORS
    if known == 0:
        word = load(i32, calls.ram + (vector & MEMORY_MASK)).zext(i64)
        known = (word == irqs.handler) & (word != 0)
    known = known & ((control & SCTLR_TE) == 0)
    return select(known, vector, const(i64, ELSEWHERE))


@kernel(args=(ptr, ptr, ptr, i64, ptr, ptr, ptr))
def deliver(
    state: Value,
    engine: Value,
    place_at: Value,
    vector: Value,
    slice_at: Value,
    counts_at: Value,
    calls_at: Value,
) -> None:
    """Let a core take its IRQ (`Cpu.interrupt`) at the vector that `find_vector` has found."""
    irqs, place, calls = InterruptState.at(state), Batch.at(place_at), RegisterCalls.at(calls_at)
    slice_, counts = SliceState.at(slice_at), ExceptionCounts.at(counts_at)
    before, after = irqs.before, irqs.after
    step, batch = RegisterBatch.STEP, (ptr, ptr, ptr, i32)
    status, address = load(i64, before.values), load(i64, place.values)
    new = status & ~(MODE_MASK | THUMB | IT_AND_JAZELLE) | IRQ | IRQ_MASKED | ABORT_MASKED
    values = new, (address + BACK) & 0xFFFFFFFF, status, vector
    for slot, value in enumerate(values):
        store(after.values + step * slot, value)
    count = after.count.trunc(i32)
    call_pointer(calls.write, i32, batch, engine, after.numbers, after.places, count)
    count = place.count.trunc(i32)
    call_pointer(calls.read, i32, batch, engine, place.numbers, place.places, count)
    entered = load(i64, place.values + step)
    _note(irqs.first, counts, slice_.count, (address, vector, status, entered))
    counts.taken = counts.taken + 1
    slice_.count = slice_.count + INSTRUCTIONS_PER_EXCEPTION
