"""CNTPCT and CNTVCT answered by native code: programs wait by reading them.

AArch64: a hook at each MRS instruction, and CNTFRQ too, which often stands in the same loop. Python
is asked for the other registers of the timer, for the cycle counter and for MPIDR.
AArch32: at each place where `traps.py` finds MRRC; what
is not a plain read of a count there is left to Python. The other registers of the generic timer
are trapped where they stand.
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
    call_pointer,
    const,
    i32,
    i64,
    kernel,
    load,
    ptr,
    select,
    staged,
)
from vc4lab.soc.address.native_bus import BusState, note_own_time
from vc4lab.soc.address.polling import guest_time
from vc4lab.soc.clock import TimeState
from vc4lab.soc.cores.generic_timer import NANOSECONDS, TICKS, WHOLE, GenericTimer, Pace
from vc4lab.soc.native import SliceState

CRN, CRM, OP0, OP1, OP2 = 0, 4, 8, 12, 16
"""Where the engine's description of a system register has its numbers."""
PAIR_MASK, PAIR = 0xFFF00FEF, 0xEC500F0E
"""MRRC p15, 0 or 1, rt, rt2, c14 without a condition."""
VIRTUAL_PAIR = 1 << 4
"""Which of both."""
PLAIN_REGISTERS = 13
"""r0 to r12 have consecutive numbers in the engine."""
WHOLE_BITS = WHOLE.bit_length() - 1
ON_INSTRUCTION = ctypes.CFUNCTYPE(
    None, ctypes.c_void_p, ctypes.c_uint64, ctypes.c_uint32, ctypes.c_void_p
)
ON_SYSTEM_INSTRUCTION = ctypes.CFUNCTYPE(
    ctypes.c_int32, ctypes.c_void_p, ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p
)
"""The engine, a register's number, the description of a system register, the hook's own; the result
is 1 if the instruction is done."""


class CounterState(Struct):
    """What the hooks of a core need."""

    bus = ptr
    write_register = ptr
    pace = ptr
    value = i64
    first_register = i64
    pc_register = i64
    next = i64
    other = ptr


class PlaceState(Struct):
    """An MRRC: where the host has its word, and Python for what is none."""

    counter = ptr
    code = ptr
    other = ptr


@staged
def read_count(counter: CounterState, virtual: Value) -> None:
    """Leave `GenericTimer.count_of` in `value`; reading it again and again is waiting."""
    bus = BusState.at(counter.bus)
    note_own_time(bus)
    pace = Pace.at(counter.pace)
    now = guest_time(TimeState.at(bus.time), SliceState.at(bus.slice).count)
    crystal = (now - pace.since) * TICKS
    below = (crystal & (WHOLE - 1)) * pace.prescaler
    ticks = crystal * pace.whole + crystal.shr(WHOLE_BITS) * pace.prescaler + below.shr(WHOLE_BITS)
    offset = select(virtual, pace.behind, const(i64, 0))
    counter.value = pace.count_then + ticks.udiv(NANOSECONDS) - offset


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
    if common & timer & (part == 0) & (kind == 3) & which.ult(3):
        if which == 0:
            counter.value = Pace.at(counter.pace).frequency
        else:
            read_count(counter, which == 2)
        place = counter.pointer + CounterState.value.offset
        call_pointer(counter.write_register, i32, (ptr, i32, ptr), engine, target, place)
        done = const(i32, 1)
    elif common & (timer | cycles | number):
        done = call_pointer(counter.other, i32, (ptr, i32, ptr, ptr), engine, target, system, state)
    return done


@kernel(args=(ptr, i64, i32, ptr))
def _read_pair(engine: Value, address: Value, size: Value, state: Value) -> None:
    """The engine's callback before an MRRC of AArch32."""
    place = PlaceState.at(state)
    word = load(i32, place.code)
    low, high = word.shr(12) & 15, word.shr(16) & 15
    plain = (low < PLAIN_REGISTERS) & (high < PLAIN_REGISTERS) & (size == 4)
    if ((word & PAIR_MASK) == PAIR) & plain:
        counter = CounterState.at(place.counter)
        read_count(counter, (word & VIRTUAL_PAIR) != 0)
        write = counter.write_register
        first = counter.first_register.trunc(i32)
        value = counter.pointer + CounterState.value.offset
        call_pointer(write, i32, (ptr, i32, ptr), engine, first + low, value)
        call_pointer(write, i32, (ptr, i32, ptr), engine, first + high, value + 4)
        executed = SliceState.at(BusState.at(counter.bus).slice)
        rest = executed.block + executed.block_size - address - 4
        if rest > 0:
            executed.count = executed.count - rest.shr(2)
        counter.next = address + 4
        register = counter.pc_register.trunc(i32)
        onward = counter.pointer + CounterState.next.offset
        call_pointer(write, i32, (ptr, i32, ptr), engine, register, onward)
    else:
        call_pointer(place.other, None, (ptr, i64, i32, ptr), engine, address, size, state)


@cache
def _hooks() -> Any:
    functions = {"mrs": _read_system_register, "mrrc": _read_pair}
    return build("soc_counter", functions, float_mode="default", key="soc-counter")


class NativeCounter:
    """The counter of one core.

    Parameters
    ----------
    bus
        Host address of the `BusState` whose polls are counted.
    timer
        Whose counter it is.
    write_register
        Host address of the engine's function for that.
    first, pc
        The engine's numbers of r0 and the PC (AArch32).
    other
        Python for a read of the registers that native code leaves to it (AArch64): whether it is
        done.
    """

    def __init__(
        self,
        bus: int,
        timer: GenericTimer,
        write_register: int,
        first: int = 0,
        pc: int = 0,
        other: Callable[[], bool] = lambda: False,
    ) -> None:
        self._timer = timer
        self._other = ON_SYSTEM_INSTRUCTION(lambda *_details: other())
        self._state = CounterState(
            bus=bus,
            write_register=write_register,
            pace=timer.pace.address,
            first_register=first,
            pc_register=pc,
            other=ctypes.cast(self._other, ctypes.c_void_p).value,
        )

    @property
    def hook(self) -> tuple[int, int]:
        """For the engine: host addresses of the function for MRS and of its state."""
        return _hooks()["mrs"].address, self._state.address

    def place(self, code: int, python: Callable[[int, int], None]) -> NativePair:
        """An MRRC whose word is at this host address; `python(address, size)` does the others."""
        return NativePair(self._state.address, code, python)


class NativePair:
    """One MRRC of an AArch32 core."""

    def __init__(self, counter: int, code: int, python: Callable[[int, int], None]) -> None:
        self._python = ON_INSTRUCTION(lambda _engine, address, size, _data: python(address, size))
        self._state = PlaceState(
            counter=counter,
            code=code,
            other=ctypes.cast(self._python, ctypes.c_void_p).value,
        )

    def move(self, code: int) -> None:
        """The address belongs to another page of memory now."""
        self._state.code = code

    @property
    def hook(self) -> tuple[int, int]:
        """For the engine: host addresses of the function and of its state."""
        return _hooks()["mrrc"].address, self._state.address
