"""The generic timer answered by native code: programs wait by reading it, systems tick by it.

AArch64: a hook at each MRS instruction, and at each MSR of CNT*_TVAL, CNT*_CTL and CNT*_CVAL.
CNTFRQ is among them, as it often stands in a waiting loop. Python is asked for the others, for the
cycle counter and for MPIDR.
AArch32: at each place where `traps.py` finds MRRC, MRC or MCR; what is not a plain read of a count
there, or an access to the physical or virtual unit, is left to Python.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache
from typing import Any

from vc4lab.simd import (
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
    ptr,
    select,
    staged,
    store,
)
from vc4lab.soc.address.native_bus import BusState, note_own_time
from vc4lab.soc.address.polling import guest_time
from vc4lab.soc.clock import TimeState
from vc4lab.soc.cores.code.native_places import NativePlace, PlaceState, go_on_after, host_address
from vc4lab.soc.cores.engine.engine_calls import EngineCalls
from vc4lab.soc.cores.generic_timer import (
    ENABLE,
    MASKED,
    MET,
    NANOSECONDS,
    PHYSICAL,
    TICKS,
    VIRTUAL,
    WHOLE,
    WORD,
    GenericTimer,
    Pace,
)
from vc4lab.soc.native import SliceState

CRN, CRM, OP0, OP1, OP2, VALUE = 0, 4, 8, 12, 16, 24
"""Offsets of the numbers in the engine's description of a system register, and of what is written."""
PAIR_MASK, PAIR = 0xFFF00FEF, 0xEC500F0E
"""MRRC p15, 0 or 1, rt, rt2, c14 without a condition."""
VIRTUAL_PAIR = 1 << 4
"""Which of both."""
SINGLE_MASK, SINGLE = 0xFFEF0F9E, 0xEE0E0F12
"""MRC and MCR p15, 0, rt, c14, c2 or c3, 0 to 3 without a condition: TVAL and CTL, and none."""
LEVEL = 3 << 2
"""The exception level in PSTATE."""
READS, CONTROL, VIRTUAL_SINGLE = 1 << 20, 1 << 5, 1 << 0
"""Bits of it: which way, CTL instead of TVAL, which unit."""
TVAL, CTL, CVAL = range(3)
"""Op2 of a unit's registers; CRm of the physical and the virtual one are 2 and 3."""
PLAIN_REGISTERS = 13
"""r0 to r12 have consecutive numbers in the engine."""
WHOLE_BITS = WHOLE.bit_length() - 1
ON_CHANGE = ctypes.CFUNCTYPE(None, ctypes.c_int64)
"""A unit was set by native code."""
ON_SYSTEM_INSTRUCTION = ctypes.CFUNCTYPE(
    ctypes.c_int32, ctypes.c_void_p, ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p
)
"""The engine, a register's number, the description of a system register, the hook's own; the result
is 1 if the instruction is done."""


class CounterState(Struct):
    """State of a core's hooks. `core_number` is its MPIDR."""

    bus = ptr
    read_register = ptr
    write_register = ptr
    pace = ptr
    value = i64
    first_register = i64
    pc_register = i64
    next = i64
    other = ptr
    changed = ptr
    status_register = i64
    core_number = i64


@staged
def time_now(counter: CounterState) -> Value:
    """Guest time in nanoseconds."""
    bus = BusState.at(counter.bus)
    return guest_time(TimeState.at(bus.time), SliceState.at(bus.slice).count)


@staged
def count_of(counter: CounterState, virtual: Value, now: Value) -> Value:
    """`GenericTimer.count_of` of a unit."""
    pace = Pace.at(counter.pace)
    crystal = (now - pace.since) * TICKS
    below = (crystal & (WHOLE - 1)) * pace.prescaler
    ticks = crystal * pace.whole + crystal.shr(WHOLE_BITS) * pace.prescaler + below.shr(WHOLE_BITS)
    offset = select(virtual, pace.virtual_offset, const(i64, 0))
    return pace.count_then + ticks.udiv(NANOSECONDS) - offset


@staged
def read_count(counter: CounterState, virtual: Value) -> None:
    """Leave it in `value`; reading it again and again is waiting."""
    counter.value = count_of(counter, virtual, note_own_time(BusState.at(counter.bus)))


@staged
def _of_unit(counter: CounterState, name: str, virtual: Value) -> Any:
    """The address of a unit's element in an array of `Pace`."""
    place = counter.pace + Pace.offset(name)
    return select(virtual, place + 8 * VIRTUAL, place + 8 * PHYSICAL)


@kernel(args=(ptr, i1, i32))
def read_unit(state: Value, virtual: Value, which: Value) -> None:
    """Leave CNT*_TVAL, CNT*_CTL or CNT*_CVAL of a unit in `value`, as `timer_read` gives it."""
    counter = CounterState.at(state)
    now = time_now(counter)
    if which != CVAL:
        now = note_own_time(BusState.at(counter.bus))
    compare = load(i64, _of_unit(counter, "compare", virtual))
    count = count_of(counter, virtual, now)
    if which == TVAL:
        counter.value = (compare - count) & WORD
    elif which == CTL:
        control = load(i64, _of_unit(counter, "control", virtual))
        met = ((control & ENABLE) != 0) & count.uge(compare)
        counter.value = control | select(met, const(i64, MET), const(i64, 0))
    else:
        counter.value = compare


@kernel(args=(ptr, i1, i32, i64))
def write_unit(state: Value, virtual: Value, which: Value, value: Value) -> None:
    """Set one of them, as `timer_write` does."""
    counter = CounterState.at(state)
    compare = _of_unit(counter, "compare", virtual)
    if which == TVAL:
        store(compare, count_of(counter, virtual, time_now(counter)) + value.trunc(i32).sext(i64))
    elif which == CTL:
        store(_of_unit(counter, "control", virtual), value & (ENABLE | MASKED))
    else:
        store(compare, value)
    unit = select(virtual, const(i64, VIRTUAL), const(i64, PHYSICAL))
    call_pointer(counter.changed, None, (i64,), unit)


@staged
def _is_unit(system: Value) -> Value:
    """Whether a system register of AArch64 is one of CNTP_*_EL0 and CNTV_*_EL0."""
    part, which = load(i32, system + CRM), load(i32, system + OP2)
    place = (load(i32, system + OP0) == 3) & (load(i32, system + OP1) == 3)
    return place & (load(i32, system + CRN) == 14) & ((part & -2) == 2) & which.ult(3)


@staged
def _is_program(engine: Value, counter: CounterState) -> Value:
    """Whether a core in AArch64 state is in EL0."""
    place = counter.pointer + CounterState.value.offset
    counter.value = 0
    register = counter.status_register.trunc(i32)
    call_pointer(counter.read_register, i32, (ptr, i32, ptr), engine, register, place)
    return (counter.value & LEVEL) == 0


@kernel(args=(ptr, i32, ptr, ptr), returns=i32)
def _read_system_register(engine: Value, target: Value, system: Value, state: Value) -> Value:
    """The engine's callback before MRS: 1 if the instruction is done."""
    counter = CounterState.at(state)
    which = load(i32, system + OP2)
    group, part = load(i32, system + CRN), load(i32, system + CRM)
    kind = load(i32, system + OP1)
    timer = group == 14
    common = load(i32, system + OP0) == 3
    cycles = (group == 9) & (part == 13) & (which == 0) & (kind == 3)
    number = (group == 0) & (part == 0) & (which == 5) & (kind == 0)
    done = const(i32, 0)
    place = counter.pointer + CounterState.value.offset
    write = (ptr, i32, ptr)
    if common & timer & (part == 0) & (kind == 3) & which.ult(3):
        if which == 0:
            counter.value = Pace.at(counter.pace).frequency
        else:
            read_count(counter, which == 2)
        call_pointer(counter.write_register, i32, write, engine, target, place)
        done = const(i32, 1)
    elif _is_unit(system):
        call(read_unit, state, part == 3, which)
        call_pointer(counter.write_register, i32, write, engine, target, place)
        done = const(i32, 1)
    elif common & number:
        if not _is_program(engine, counter):
            counter.value = counter.core_number
            call_pointer(counter.write_register, i32, write, engine, target, place)
            done = const(i32, 1)
    elif common & (timer | cycles):
        done = call_pointer(counter.other, i32, (*write, ptr), engine, target, system, state)
    return done


@kernel(args=(ptr, i32, ptr, ptr), returns=i32)
def _write_system_register(engine: Value, source: Value, system: Value, state: Value) -> Value:
    """The engine's callback before an MSR of a unit: 1 if the instruction is done."""
    done = const(i32, 0)
    if _is_unit(system):
        part, which = load(i32, system + CRM), load(i32, system + OP2)
        call(write_unit, state, part == 3, which, load(i64, system + VALUE))
        done = const(i32, 1)
    return done


@kernel(args=(ptr, i64, i32, ptr))
def _read_pair(engine: Value, address: Value, size: Value, state: Value) -> None:
    """The engine's callback before an MRRC of AArch32."""
    place = PlaceState.at(state)
    word = load(i32, place.code)
    low, high = word.shr(12) & 15, word.shr(16) & 15
    plain = (low < PLAIN_REGISTERS) & (high < PLAIN_REGISTERS) & (size == 4)
    if ((word & PAIR_MASK) == PAIR) & plain:
        counter = CounterState.at(place.owner)
        read_count(counter, (word & VIRTUAL_PAIR) != 0)
        write = counter.write_register
        first = counter.first_register.trunc(i32)
        value = counter.pointer + CounterState.value.offset
        call_pointer(write, i32, (ptr, i32, ptr), engine, first + low, value)
        call_pointer(write, i32, (ptr, i32, ptr), engine, first + high, value + 4)
        _go_on(engine, counter, address)
    else:
        call_pointer(place.other, None, (ptr, i64, i32, ptr), engine, address, size, state)


@kernel(args=(ptr, i64, i32, ptr))
def _access_unit(engine: Value, address: Value, size: Value, state: Value) -> None:
    """The engine's callback before an MRC or MCR of AArch32."""
    place = PlaceState.at(state)
    word = load(i32, place.code)
    target = word.shr(12) & 15
    if ((word & SINGLE_MASK) == SINGLE) & (target < PLAIN_REGISTERS) & (size == 4):
        counter = CounterState.at(place.owner)
        register = counter.first_register.trunc(i32) + target
        value = counter.pointer + CounterState.value.offset
        virtual = (word & VIRTUAL_SINGLE) != 0
        which = select((word & CONTROL) != 0, const(i32, CTL), const(i32, TVAL))
        if (word & READS) != 0:
            call(read_unit, place.owner, virtual, which)
            call_pointer(counter.write_register, i32, (ptr, i32, ptr), engine, register, value)
        else:
            counter.value = 0
            call_pointer(counter.read_register, i32, (ptr, i32, ptr), engine, register, value)
            call(write_unit, place.owner, virtual, which, counter.value)
        _go_on(engine, counter, address)
    else:
        call_pointer(place.other, None, (ptr, i64, i32, ptr), engine, address, size, state)


@staged
def _go_on(engine: Value, counter: CounterState, address: Value) -> None:
    """The instruction at an address is done."""
    register = counter.pc_register.trunc(i32)
    onward = counter.pointer + CounterState.next.offset
    executed = SliceState.at(BusState.at(counter.bus).slice)
    go_on_after(engine, executed, address, counter.write_register, register, onward)


@cache
def _hooks() -> Any:
    functions = {
        "mrs": _read_system_register,
        "msr": _write_system_register,
        "mrrc": _read_pair,
        "mrc": _access_unit,
    }
    return build("soc_counter", functions, float_mode="default", key="soc-counter")


class NativeCounter:
    """The counter of one core.

    Parameters
    ----------
    bus
        Host address of the `BusState` whose polls are counted.
    timer
        Whose counter it is.
    calls
        The engine's functions to read and write registers.
    first, pc
        The engine's numbers of r0 and the PC (AArch32).
    status, core_number
        The engine's number of PSTATE, and what MPIDR reads as (AArch64).
    other
        Python for a read of the registers that native code leaves to it (AArch64): whether it is
        done.
    changed
        Called with a unit that was written.
    """

    def __init__(
        self,
        bus: int,
        timer: GenericTimer,
        calls: EngineCalls,
        first: int = 0,
        pc: int = 0,
        other: Callable[[], bool] = lambda: False,
        *,
        changed: Callable[[int], None],
        status: int = 0,
        core_number: int = 0,
    ) -> None:
        self._timer = timer
        self._other = ON_SYSTEM_INSTRUCTION(lambda *_details: other())
        self._changed = ON_CHANGE(changed)
        self._state = CounterState(
            bus=bus,
            read_register=calls.address_of("uc_reg_read"),
            write_register=calls.address_of("uc_reg_write"),
            pace=timer.pace.address,
            first_register=first,
            pc_register=pc,
            other=host_address(self._other),
            changed=host_address(self._changed),
            status_register=status,
            core_number=core_number,
        )

    @property
    def hook(self) -> tuple[int, int]:
        """For the engine: host addresses of the function for MRS and of its state."""
        return _hooks()["mrs"].address, self._state.address

    @property
    def write_hook(self) -> tuple[int, int]:
        """The hook of MSR, as `hook`."""
        return _hooks()["msr"].address, self._state.address

    def pair(self, code: int, python: Callable[[int, int], None]) -> NativePlace:
        """An MRRC whose word is at this host address; `python(address, size)` does the others."""
        return NativePlace(_hooks()["mrrc"].address, self._state.address, code, python)

    def single(self, code: int, python: Callable[[int, int], None]) -> NativePlace:
        """Make the hook of an MRC or MCR, as `pair`."""
        return NativePlace(_hooks()["mrc"].address, self._state.address, code, python)
