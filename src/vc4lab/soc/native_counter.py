"""CNTPCT and CNTVCT of an AArch64 core: a native hook at each MRS instruction.

Programs wait by reading them, so like a polled register they are answered without Python. The
other registers of the generic timer are trapped where they stand (`traps.py`).
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
)
from vc4lab.soc.clock import TimeState
from vc4lab.soc.generic_timer import NANOSECONDS, TICKS
from vc4lab.soc.native import SliceState
from vc4lab.soc.native_bus import (
    OWN_TIME,
    TIME_STEP,
    BusState,
    guest_time,
    let_time_pass,
    note_read,
)

CRN, CRM, OP0, OP1, OP2 = 0, 4, 8, 12, 16
"""Where the engine's description of a system register has its numbers."""
COUNT = ctypes.CFUNCTYPE(ctypes.c_uint64)


class CounterState(Struct):
    """What the hook needs; `plain`: the counter has followed the crystal since power-on."""

    bus = ptr
    write_register = ptr
    count = ptr
    plain = i64
    value = i64


@kernel(args=(ptr, i32, ptr, ptr), returns=i32)
def _read_system_register(engine: Value, target: Value, system: Value, state: Value) -> Value:
    """The engine's callback before MRS: 1 if the instruction is done."""
    counter: Any = CounterState.at(state)
    which = load(i32, system + OP2)
    timer = (load(i32, system + CRN) == 14) & (load(i32, system + CRM) == 0)
    unprivileged = (load(i32, system + OP0) == 3) & (load(i32, system + OP1) == 3)
    done = const(i32, 0)
    if timer & unprivileged & ((which == 1) | (which == 2)):
        bus: Any = BusState.at(counter.bus)
        if note_read(bus, const(i64, OWN_TIME)):
            let_time_pass(bus, const(i64, TIME_STEP))
        if counter.plain != 0:
            executed = SliceState.at(bus.slice).count
            ticks = guest_time(TimeState.at(bus.time), executed) * TICKS
            counter.value = ticks.udiv(NANOSECONDS)
        else:
            counted: Any = call_pointer(counter.count, i64, ())
            counter.value = counted
        place = counter.field_ptr("value")
        call_pointer(counter.write_register, i32, (ptr, i32, ptr), engine, target, place)
        done = const(i32, 1)
    return done


@cache
def _hook() -> Any:
    functions = {"mrs": _read_system_register}
    return build("soc_counter", functions, float_mode="default", key="soc-counter")["mrs"]


class NativeCounter:
    """The counter of one core.

    Parameters
    ----------
    bus
        Host address of the `BusState` whose polls are counted.
    count
        Gives the counter's value where it does not simply follow the crystal.
    write_register
        Host address of the engine's function for that.
    """

    def __init__(self, bus: int, count: Callable[[], int], write_register: int) -> None:
        self._count = COUNT(count)
        self._state: Any = CounterState(
            bus=bus,
            write_register=write_register,
            count=ctypes.cast(self._count, ctypes.c_void_p).value,
            plain=1,
        )

    def ask(self) -> None:
        """From now on `count` is asked: the counter goes at another pace."""
        self._state.plain = 0

    @property
    def hook(self) -> tuple[int, int]:
        """For the engine: host addresses of the function and of its state."""
        return _hook().address, self._state.address
