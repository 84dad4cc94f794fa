"""Strict mode: guard zones after everything the firmware hands out, so that overruns are noticed.

After each block of VideoCore memory (the framebuffer is one) lies a zone of a pattern. A store of
the CPU into a zone is met at once, by a native hook; what the V3D, the DMA or the firmware wrote
there is found when they are through.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from functools import cache
from typing import Any

from vc4lab.simd import Struct, Value, build, call_pointer, i8, i32, i64, kernel, load, ptr
from vc4lab.soc.hardware import Hardware
from vc4lab.soc.videocore.vc_memory import Allocation

PATTERN = 0xA5
PAGE_SHIFT = 12
PAGE_ENTRIES = 1 << 20
SAY = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_int32)
MAX_ZONES = 256
Section = Callable[[], AbstractContextManager[None]]


class GuardState(Struct):
    """State of the hook: a byte for each page, and whom to call for a page with a zone."""

    pages = ptr
    say = ptr


@kernel(args=(ptr, i32, i64, i32, i64, ptr))
def note_store(
    _engine: Value, _kind: Value, address: Value, size: Value, _value: Value, state_at: Value
) -> None:
    """The engine's hook before a store to physical `address`."""
    state = GuardState.at(state_at)
    if load(i8, state.pages + ((address >> PAGE_SHIFT) & (PAGE_ENTRIES - 1))) != 0:
        call_pointer(state.say, None, (i64, i32), address, size)


@cache
def _hook() -> Any:
    entries = {"store": note_store}
    return build("soc_guards", entries, float_mode="default", key="soc-guards-1")["store"]


@dataclass(frozen=True)
class Zone:
    """The guard zone of a block."""

    start: int
    end: int
    block: Allocation


class GuardZones:
    """The zones of a machine, from before its first instruction on."""

    def __init__(self, machine: Hardware) -> None:
        self._machine = machine
        self._zones: dict[int, Zone] = {}
        self._pages = (ctypes.c_uint8 * PAGE_ENTRIES)()
        self._say = SAY(self._cpu_stores)
        say = ctypes.cast(self._say, ctypes.c_void_p).value
        self._state = GuardState(pages=ctypes.addressof(self._pages), say=say)
        pool = machine.videocore.pool
        pool.guarded = True
        pool.on_allocate, pool.on_release = self._made, self._gone
        for cpu in machine.cores:
            cpu.calls.add_hook(cpu._unicorn.UC_HOOK_MEM_WRITE, _hook().address, self._state.address)
        bridge = machine.v3d_bridge
        inner: Section = bridge.foreign or nullcontext
        bridge.foreign = lambda: self._around("the V3D", inner)
        writer: Section = machine.txp.foreign
        machine.txp.foreign = lambda: self._around("TXP", writer)

    def _made(self, block: Allocation, end: int) -> None:
        if len(self._zones) >= MAX_ZONES:
            return
        zone = Zone(block.address + block.size, end, block)
        self._zones[block.handle] = zone
        self._machine.memory.fill(zone.start, zone.end - zone.start, PATTERN)
        self._mark(zone, 1)

    def _gone(self, block: Allocation) -> None:
        zone = self._zones.pop(block.handle, None)
        if zone is not None:
            self._mark(zone, 0)

    def _mark(self, zone: Zone, value: int) -> None:
        for page in range(zone.start >> PAGE_SHIFT, (zone.end - 1 >> PAGE_SHIFT) + 1):
            self._pages[page & PAGE_ENTRIES - 1] = value

    def _cpu_stores(self, address: int, size: int) -> None:
        try:
            for zone in list(self._zones.values()):
                if address < zone.end and address + size > zone.start:
                    self._report("the CPU writes", zone, max(address, zone.start))
                    return
        except BaseException as error:
            self._machine.counter.fail(error)

    @contextmanager
    def _around(self, who: str, inner: Section) -> Iterator[None]:
        with inner():
            yield
        self.check(f"{who} has written")

    def check(self, who: str = "the DMA or the firmware wrote") -> None:
        """Look at every zone; `who` was at work since the last look. Raises StrictStop."""
        memory = self._machine.memory
        for zone in list(self._zones.values()):
            size = zone.end - zone.start
            data = memory.view(zone.start, size)
            if data != bytes([PATTERN]) * size:
                first = next(at for at in range(size) if data[at] != PATTERN)
                memory.fill(zone.start, size, PATTERN)
                self._report(who, zone, zone.start + first)

    def _report(self, who: str, zone: Zone, address: int) -> None:
        block = zone.block
        framebuffer = self._machine.videocore.framebuffer.allocation
        name = "the framebuffer" if block is framebuffer else f"VideoCore memory {block.handle}"
        self._machine.reporter.report(
            "SOC-086",
            f"{who} {address - zone.start} bytes past the end of {name} "
            f"(0x{block.address:08x}, {block.size} bytes)",
            address=address,
            block="guard",
        )
