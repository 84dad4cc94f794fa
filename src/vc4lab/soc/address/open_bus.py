"""The address space where nothing is: bus addresses used by the ARM, and wild pointers.

A program for another board may poll there forever, so only the first access of a kind in a region
comes to Python.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache
from typing import Any

from vc4lab.diagnostics import Reporter
from vc4lab.memory import BUS_PERIPHERALS
from vc4lab.simd import (
    Array,
    Struct,
    Value,
    build,
    call_pointer,
    const,
    i8,
    i32,
    i64,
    kernel,
    load,
    ptr,
    staged,
    store,
)
from vc4lab.soc.native import SliceCounter

REGION_BITS = 20
"""One message for each region of this size."""
REGIONS = 1 << 32 - REGION_BITS
READ, WRITTEN = 0, 1
SAY = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_int32)
OF_A_PI_4 = 0xFE000000
"""From here on a Raspberry Pi 4 has its peripherals, and those of its ARM cores."""
OTHER_BASES = ((0x20000000, "Pi Zero or 1"), (0x3F000000, "Pi 2 or 3"))


class OpenBusState(Struct):
    """Shared by native code and Python; `told`: regions whose use was reported."""

    accesses = i64
    start = i64
    say = ptr
    told = Array(i8, 2 * REGIONS)


@staged
def _touch(state: OpenBusState, offset: Value, what: int) -> None:
    state.accesses = state.accesses + 1
    address = state.start + offset
    region = address.shr(REGION_BITS) & (REGIONS - 1)
    told = state.told + region + what * REGIONS
    if load(i8, told) == 0:
        store(told, const(i8, 1))
        call_pointer(state.say, None, (i64, i32), address, what)


@kernel(args=(ptr, i64, i32, ptr), returns=i64)
def _read(engine: Value, offset: Value, size: Value, state: Value) -> Value:
    _touch(OpenBusState.at(state), offset, READ)
    return const(i64, 0)


@kernel(args=(ptr, i64, i32, i64, ptr))
def _write(engine: Value, offset: Value, size: Value, value: Value, state: Value) -> None:
    _touch(OpenBusState.at(state), offset, WRITTEN)


@cache
def _functions() -> Any:
    entries = {"read": _read, "write": _write}
    return build("soc_open_bus", entries, float_mode="default", key="soc-open-bus")


def why_nothing(address: int, peripherals: int) -> tuple[str, str]:
    """Code of the message for an empty address, and what may have been meant, in brackets.

    `peripherals`: where this board's are.
    """
    if address >> 24 == BUS_PERIPHERALS:
        meant = peripherals + (address & 0xFFFFFF)
        return "SOC-003", (
            f" (a peripheral's bus address: the ARM's peripherals are at 0x{peripherals:08x}, "
            f"this one at 0x{meant:08x})"
        )
    if address >= OF_A_PI_4:
        return "SOC-003", (
            f" (where a Raspberry Pi 4 has its peripherals; this board's are at "
            f"0x{peripherals:08x}. As a bus address it would be RAM at "
            f"0x{address & 0x3FFFFFFF:08x})"
        )
    if address >> 30 in (2, 3):
        return "SOC-003", f" (the RAM is at 0x{address & 0x3FFFFFFF:08x})"
    for base, boards in OTHER_BASES:
        if base != peripherals and base <= address < base + 0x01000000:
            return "SOC-002", (
                f" (where a {boards} has its peripherals; this board's are at 0x{peripherals:08x})"
            )
    if address >> 30 == 1:
        return "SOC-002", f" (as a bus address it would be RAM at 0x{address & 0x3FFFFFFF:08x})"
    return "SOC-002", ""


FIRST_PUSHES = 0xFFFFF000
"""From here on a program writes whose stack pointer is 0 when it pushes first."""
NO_STACK = (
    " (the stack pointer was 0, as if never set: what is pushed goes to the last addresses; set sp "
    "before the first function is called)"
)


class OpenBus:
    """Answers 0 to every read from `start` on, swallows writes, and says so."""

    def __init__(
        self,
        start: int,
        counter: SliceCounter,
        reporter: Reporter,
        place: Callable[[int], str] = hex,
        peripherals: int = 0,
    ) -> None:
        self._peripherals = peripherals
        self._counter = counter
        self._reporter = reporter
        self._place = place
        self._say = SAY(self._report)
        say = ctypes.cast(self._say, ctypes.c_void_p).value
        self._state = OpenBusState(start=start, say=say)

    @property
    def accesses(self) -> int:
        """Loads and stores so far."""
        return int(self._state.accesses)

    @property
    def native_window(self) -> tuple[int, int, int]:
        """For the engine: host addresses of the functions for reads and writes, and their state."""
        functions = _functions()
        return functions["read"].address, functions["write"].address, self._state.address

    def _report(self, address: int, what: int) -> None:
        region = address >> REGION_BITS << REGION_BITS
        code, why = why_nothing(region, self._peripherals)
        if address >= FIRST_PUSHES:
            why = NO_STACK
        try:
            place = self._place(self._counter.block)
            self._reporter.report(
                code,
                f"0x{region:08x}.. is {'written' if what else 'read'} by the CPU near {place}; "
                "the ARM finds nothing there" + why,
                address=region,
                block="cpu",
            )
        except BaseException as error:
            self._counter.fail(error)
