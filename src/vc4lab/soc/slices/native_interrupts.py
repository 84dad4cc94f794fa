"""Interrupts that native rounds deliver to their cores (`native_turns.py`).

What waits for a core: its timers, which are compared with the time here, and all the rest as the
local block has last noted it. FIQs, HYP mode, EL3 and handlers in Thumb code are left to Python,
which does the same with the same registers (`core_interrupts.py`, `exceptions.py`,
`arm64_entry.py`), and so is every interrupt while something listens to exceptions.
"""

from __future__ import annotations

from typing import Any

from vc4lab.memory import MEMORY_MASK
from vc4lab.simd import (
    Array,
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
from vc4lab.soc.cores.exceptions.arm64_entry import (
    CURRENT_SPX,
    FLAGS,
    IRQ_VECTOR,
    LOW,
    LOWER,
    SCR_IRQ,
    AtEntry,
)
from vc4lab.soc.cores.exceptions.arm64_entry import MASKED as ALL_MASKED
from vc4lab.soc.cores.exceptions.exceptions import (
    ABORT_MASKED,
    HCR_IMO,
    HCR_TGE,
    HIGH_VECTORS,
    HYP,
    INSTRUCTIONS_PER_EXCEPTION,
    IRQ,
    IRQ_MASKED,
    IT_AND_JAZELLE,
    MODE_MASK,
    SCTLR_M,
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
"""A kind of what waits for a core: Python has to look at its timers."""
NONE_WAITS, WAITS_MASKED, IS_TAKEN, ASK_PYTHON = range(4)
"""Verdicts about it."""
LOW_VECTORS, OFFSET, BACK = 0x20, ArmException.IRQ.value.vector, ArmException.IRQ.value.arm_offset
ELSEWHERE = -1
"""In place of a vector."""
WAYS = 6
"""From the stack pointers of EL0, EL1 and EL2 to EL1 or EL2."""
FAST = 0x10
"""A bit of TIMER_INTERRUPTS, beside the bit of an IRQ: it is an FIQ."""


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

    `delivers`: native code may do it. `wide`: the core is in AArch64 state, and has a batch in
    `after` for each stack pointer's bank and level (`way_of`); others have the first one only.
    """

    delivers = i64
    handler = i64
    wide = i64
    pace = ptr
    before = nested(Batch)
    after = Array(Batch, WAYS)
    first = nested(OpenState)


class RegisterCalls(Struct):
    """The engine's functions to read and write registers, and where the guest's RAM is."""

    read = ptr
    write = ptr
    ram = ptr


@kernel(args=(ptr, i64, ptr, i64), returns=i64)
def waiting_for(line_state: Value, core: Value, pace_at: Value, now: Value) -> Value:
    """Find what waits for a core: `IRQ_WAITS`, `FIQ_WAITS`, `NOT_KNOWN`."""
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
def _read(batch: Batch, slot: Any) -> Value:
    """The value of a register of a batch, as it was last read."""
    return load(i64, batch.values + RegisterBatch.STEP * slot)


@staged
def _levels(place: Batch) -> tuple[Value, Value]:
    """The exception level of a core in AArch64 state, and the one that takes its IRQs, if not EL3."""
    status, routing = _read(place, 1), _read(place, 2)
    to_second = (routing & (HCR_TGE | HCR_IMO)) != 0
    return status >> 2 & 3, select(to_second, const(i64, 2), const(i64, 1))


@staged
def judge(irqs: InterruptState, place: Batch, waiting: Value) -> Value:
    """Judge what becomes of what waits for a core."""
    found = const(i32, NONE_WAITS)
    if waiting != 0:
        found = const(i32, ASK_PYTHON)
        if (waiting == IRQ_WAITS) & (irqs.delivers != 0):
            status, routing = _read(place, 1), _read(place, 2)
            masked = (status & IRQ_MASKED) != 0
            plain = ((status & MODE_MASK) != HYP) & (routing == 0)
            if irqs.wide != 0:
                level, target = _levels(place)
                masked = (level > target) | ((level == target) & masked)
                plain = (_read(place, 3) & SCR_IRQ) == 0
            known = select(masked, const(i32, WAITS_MASKED), const(i32, IS_TAKEN))
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


@staged
def _wide_vector(before: Batch, place: Batch) -> Value:
    """`Arm64Entry.enter`'s vector; `ELSEWHERE` where it has to be looked whether anything is there."""
    level, target = _levels(place)
    base, control = _read(before, target + AtEntry.VECTORS - 1), _read(before, target + AtEntry.CONTROLS - 1)
    own = select((_read(place, 1) & 1) != 0, const(i64, CURRENT_SPX), const(i64, 0))
    vector = base + IRQ_VECTOR + select(level < target, const(i64, LOWER), own)
    known = base.uge(LOW) | ((control & SCTLR_M) != 0)
    return select(known, vector, const(i64, ELSEWHERE))


@kernel(args=(ptr, ptr, ptr, ptr), returns=i64)
def find_vector(state: Value, engine: Value, place_at: Value, calls_at: Value) -> Value:
    """Find the vector at which a core would take its IRQ; `ELSEWHERE` if Python has to find that out."""
    irqs, calls = InterruptState.at(state), RegisterCalls.at(calls_at)
    before = irqs.before
    batch = (ptr, ptr, ptr, i32)
    wanted = before.count.trunc(i32)
    call_pointer(calls.read, i32, batch, engine, before.numbers, before.places, wanted)
    vector = const(i64, ELSEWHERE)
    if irqs.wide != 0:
        vector = _wide_vector(before, Batch.at(place_at))
    else:
        control, base = _read(before, 1), _read(before, 2)
        high = (control & SCTLR_V) != 0
        vector = select(high, const(i64, HIGH_VECTORS), base & ~31) + OFFSET
        known = vector >= LOW_VECTORS
        if known == 0:
            word = load(i32, calls.ram + (vector & MEMORY_MASK)).zext(i64)
            known = (word == irqs.handler) & (word != 0)
        known = known & ((control & SCTLR_TE) == 0)
        vector = select(known, vector, const(i64, ELSEWHERE))
    return vector


@staged
def _store(batch: Batch, values: tuple[Value, ...]) -> None:
    """Store the wanted values of a batch's registers."""
    for slot, value in enumerate(values):
        store(batch.values + RegisterBatch.STEP * slot, value)


@staged
def _fill_wide(irqs: InterruptState, place: Batch, vector: Value) -> Value:
    """Fill a batch with the changes where a core in AArch64 state takes its IRQ (`Arm64Entry.enter`)."""
    before = irqs.before
    address, status = _read(place, 0), _read(place, 1)
    level, target = _levels(place)
    bank = select((status & 1) != 0, level, const(i64, 0))
    way = 2 * bank + target - 1
    after = Batch.at(irqs.pointer + InterruptState.after.offset + way * Batch.size)
    new = status & FLAGS | ALL_MASKED | target << 2 | 1
    end = new, _read(before, target + AtEntry.VECTORS - 1), vector
    if bank == target:
        _store(after, (address, status, *end))
    else:
        stack, others = _read(before, AtEntry.STACK), _read(before, target + AtEntry.STACKS)
        _store(after, (address, status, stack, others, *end))
    return after.pointer


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
    batch = (ptr, ptr, ptr, i32)
    status, address = _read(place, 1), _read(place, 0)
    chosen = irqs.pointer + InterruptState.after.offset
    if irqs.wide != 0:
        chosen = _fill_wide(irqs, place, vector)
    else:
        status = _read(irqs.before, 0)
        new = status & ~(MODE_MASK | THUMB | IT_AND_JAZELLE) | IRQ | IRQ_MASKED | ABORT_MASKED
        _store(Batch.at(chosen), (new, (address + BACK) & 0xFFFFFFFF, status, vector))
    after = Batch.at(chosen)
    count = after.count.trunc(i32)
    call_pointer(calls.write, i32, batch, engine, after.numbers, after.places, count)
    count = place.count.trunc(i32)
    call_pointer(calls.read, i32, batch, engine, place.numbers, place.places, count)
    entered = _read(place, 1)
    _note(irqs.first, counts, slice_.count, (address, vector, status, entered))
    counts.taken = counts.taken + 1
    slice_.count = slice_.count + INSTRUCTIONS_PER_EXCEPTION
