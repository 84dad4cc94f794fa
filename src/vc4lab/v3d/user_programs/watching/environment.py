"""A user program's environment while it is watched.

It only recognises what is certainly right; the rest it reports by a call to a `Watch`, which checks
exactly.
"""

from __future__ import annotations

import ctypes
from enum import IntEnum
from typing import TYPE_CHECKING, Any

from vc4lab.memory import MEMORY_MASK
from vc4lab.simd import (
    Array,
    Struct,
    call,
    call_pointer,
    const,
    i8,
    i32,
    i32x16,
    i64,
    kernel,
    load,
    mask_bits,
    ptr,
    select,
    splat,
    staged,
    store,
    var,
)
from vc4lab.v3d.user_programs.environment import UserEnvironment
from vc4lab.v3d.user_programs.state import QpuState, Status
from vc4lab.v3d.user_programs.watching.watch import MAX_FINDINGS, NOTES, Watch, Watched

if TYPE_CHECKING:
    from vc4lab.simd import Value

MEMORIES = 64
"""Named memories that `WatchState` has room for; accesses to others are checked by the watch."""

_TRAIL_BITS = 20
_TRAIL_MASK = (1 << _TRAIL_BITS) - 1
_LOOK = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_int32, ctypes.c_int32, ctypes.c_int32)


class WatchEvent(IntEnum):
    """Kinds of what is reported."""

    BROKEN = 0
    UNIFORM = 1
    STORE = 2
    LOAD = 3
    LOOKUP = 4
    TEXTURE = 5
    READ = 6
    END = 7


class WatchState(Struct):
    """memories: start and bytes of each; list_start, list_end: addresses at which a uniform may
    begin; near_start, near_end: likewise in the named memory that the last one outside of the list was
    in. trail: instructions executed last, 20 bits each, plus 1. reported: findings that were
    reported. loads: setups of transfers not waited for. store: instruction of one, plus 1. lanes:
    addresses of a lookup. look: C function (WatchEvent, instruction, value) -> whether to stop.
    """

    memories = Array(i32, 2 * MEMORIES)
    reported = Array(i8, MAX_FINDINGS)
    loads = Array(i32, NOTES)
    lanes = Array(i32, 16)
    trail = i64
    count = i32
    list_start = i32
    list_end = i32
    near_start = i32
    near_end = i32
    loading = i32
    store = i32
    moved = i32
    look = ptr


class WatchedQpu:
    """The state of a watched QPU, and the function that it calls."""

    def __init__(self, watch: Watch, qpu: QpuState) -> None:
        self.watch = watch
        self.qpu = qpu
        self.watched: Watched | None = None
        memories = watch.allowed.memories[:MEMORIES]
        self.state = WatchState(
            count=len(memories),
            list_start=watch.list.start,
            list_end=watch.list.start + max(watch.list.size - 3, 0),
        )
        for index, memory in enumerate(memories):
            self.state.memories[2 * index] = memory.start
            self.state.memories[2 * index + 1] = memory.size
        self._callback = _LOOK(self._look)
        self.state.look = ctypes.cast(self._callback, ctypes.c_void_p).value or 0
        qpu.watch = self.state.address

    def use(self, watched: Watched) -> None:
        """The program was compiled (again) with these numbers of findings."""
        if watched is not self.watched:
            self.watched = watched
            for number in range(len(watched.findings)):
                self.state.reported[number] = 0

    def _look(self, event: int, site: int, value: int) -> int:
        watch, state, qpu = self.watch, self.state, self.qpu
        if event == WatchEvent.BROKEN:
            assert self.watched is not None
            watch.broken(self.watched.findings[value])
        elif event == WatchEvent.UNIFORM:
            watch.moved = bool(state.moved)
            watch.uniform(site, value & 0xFFFFFFFF)
        elif event == WatchEvent.STORE:
            watch.store_rows(site, _word(qpu.store_setup), _word(qpu.store_stride), _word(value))
        elif event == WatchEvent.LOAD:
            watch.load_rows(site, _word(qpu.load_setup), _word(qpu.load_stride), _word(value))
        elif event == WatchEvent.LOOKUP:
            lanes = [lane for lane in range(16) if value >> lane & 1]
            watch.lookup(site, [(lane, _word(state.lanes[lane])) for lane in lanes])
        elif event == WatchEvent.TEXTURE:
            watch.texture(site, _word(value))
        elif event == WatchEvent.READ:
            watch.loads = {_word(state.loads[n]) for n in range(min(state.loading, NOTES))}
            watch.vpm_read(site, _word(qpu.reads.setup), value)
        elif event == WatchEvent.END:
            watch.store = state.store - 1
            watch.ended()
        return int(watch.stopped)


def _word(value: int) -> int:
    return int(value) & 0xFFFFFFFF


@kernel(args=(ptr, i32, i32), returns=i32)
def is_inside(address: Value, at: Value, size: Value) -> Value:
    """Whether bytes of guest memory lie in one of the named memories (0 or 1)."""
    state = WatchState.at(address)
    table = state.memories
    found = const(i32, 0)
    for index in range(state.count):
        start = load(i32, table + (index << 3))
        length = load(i32, table + (index << 3) + 4)
        found = found | select((at >= start) & (at + size <= start + length), 1, 0)
    return found


@kernel(args=(ptr, i32), returns=i32)
def uniform_inside(address: Value, at: Value) -> Value:
    """Whether a uniform lies in one of the named memories (0 or 1), in which others then may follow."""
    state = WatchState.at(address)
    table = state.memories
    found = const(i32, 0)
    for index in range(state.count):
        start = load(i32, table + (index << 3))
        last = start + load(i32, table + (index << 3) + 4) - 3
        if (at >= start) & (at < last):
            state.near_start = start
            state.near_end = last
            found = const(i32, 1)
    return found


@kernel(args=(ptr, i32x16, i32), returns=i32)
def lanes_outside(address: Value, where: Value, bits: Value) -> Value:
    """Those of the lanes in `bits` whose words lie in none of the named memories."""
    state = WatchState.at(address)
    table = state.memories
    at = where & (MEMORY_MASK & ~3)
    left = bits
    for index in range(state.count):
        start = load(i32, table + (index << 3))
        length = load(i32, table + (index << 3) + 4)
        inside = (at >= splat(start)) & (at <= splat(start + length - 4))
        left = left & ~mask_bits(inside)
    return left


class WatchedEnvironment(UserEnvironment):
    """As `UserEnvironment`, reporting to the watch."""

    watched: Watched

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.watch_address = self.qpu.watch
        self.watch = WatchState.at(self.watch_address)
        self.trail = var(i64, self.watch.trail)

    def leave(self) -> None:
        super().leave()
        self.watch.trail = self.trail.get()

    @staged
    def _unless(self, fine: Value, event: WatchEvent, value: Value | int) -> None:
        """Report to the watch if an i1 is false."""
        if ~fine:
            self._report(event, value)

    def _report(self, event: WatchEvent, value: Value | int) -> None:
        types = (i32, i32, i32)
        stop = call_pointer(self.watch.look, i32, types, int(event), self.site, value)
        if self.stops:
            self.stop_unless(stop == 0, Status.HALTED, 0)

    def _is_inside(self, at: Value, size: Value | int) -> Value:
        return call(is_inside, self.watch_address, at & MEMORY_MASK, size) != 0

    # -- restrictions ----------------------------------------------------------------------------

    def begin(self, site: int) -> None:
        super().begin(site)
        for number in self.watched.alone.get(site, ()):
            self._broken(True, number)
        for distance, before, number in self.watched.after.get(site, ()):
            found = self.trail.get().shr(_TRAIL_BITS * (distance - 1)) & _TRAIL_MASK
            self._broken(found == before + 1, number)
        self.trail.set((self.trail.get() << _TRAIL_BITS) | (site + 1))

    @staged
    def _broken(self, condition: Value | bool, number: int) -> None:
        place = self.watch.reported + number
        if (load(i8, place) == 0) & condition:
            store(place, const(i8, 1))
            self._report(WatchEvent.BROKEN, number)

    # -- memory ----------------------------------------------------------------------------------

    def next_uniform(self) -> Value:
        self._uniform_at(self.stream.get() & MEMORY_MASK)
        return super().next_uniform()

    @staged
    def _uniform_at(self, at: Value) -> None:
        if (at < self.watch.list_start) | (at >= self.watch.list_end):
            if (at < self.watch.near_start) | (at >= self.watch.near_end):
                self._unless(call(uniform_inside, self.watch_address, at) != 0, WatchEvent.UNIFORM, at)

    def uniforms_address(self, value: Value, relative: bool, mask: Value) -> None:
        self.watch.moved = select(mask[0], const(i32, 1), self.watch.moved)
        super().uniforms_address(value, relative, mask)

    def dma_start(self, side: str, value: Value) -> None:
        address = value[0]
        qpu, watch = self.qpu, self.watch
        if side == "read":
            place = select(watch.loading < NOTES, watch.loading, NOTES - 1)
            store(watch.loads + (place << 2), qpu.load_setup)
            watch.loading = place + 1
            setup, exponent = qpu.load_setup, (qpu.load_setup >> 24) & 15
            pitch = select(exponent == 0, qpu.load_stride & 0xFFFF, const(i32, 8) << exponent)
            rows, length = _or(setup >> 16, 15, 16), _or(setup >> 20, 15, 16) << 2
            event = WatchEvent.LOAD
        else:
            watch.store = self.site + 1
            setup = qpu.store_setup
            rows, length = _or(setup >> 23, 127, 128), _or(setup >> 16, 127, 128) << 2
            pitch = length + (qpu.store_stride & 0xFFFF)
            event = WatchEvent.STORE
        size = (rows - 1) * pitch + length  # at most: narrow elements take less
        self._unless(self._is_inside(address & ~3, size), event, address)
        super().dma_start(side, value)

    def dma_wait(self, side: str) -> None:
        self._waited(side)
        super().dma_wait(side)

    def dma_busy(self, side: str) -> Value:
        self._waited(side)
        return super().dma_busy(side)

    def _waited(self, side: str) -> None:
        if side == "read":
            self.watch.loading = 0
        else:
            self.watch.store = 0

    def reading(self, setup: Value, address: Value) -> None:
        self._unless(self.watch.loading == 0, WatchEvent.READ, address)

    def tmu_write(self, unit: int, register: str, value: Value, mask: Value, site: int) -> None:
        if register == "s":
            self._starts(unit, value, mask)
        super().tmu_write(unit, register, value, mask, site)

    @staged
    def _starts(self, unit: int, value: Value, mask: Value) -> None:
        state = self._unit(unit)
        if unit not in self.textured or state.written == 0:
            left = call(lanes_outside, self.watch_address, value, mask_bits(mask))
            if left != 0:
                store(self.watch.lanes, value)
                self._report(WatchEvent.LOOKUP, left)
        else:
            parameter = load(i32, state.parameters)
            base = parameter & (MEMORY_MASK & ~0xFFF)
            self._unless(self._is_inside(base, 1), WatchEvent.TEXTURE, parameter)

    def program_end(self) -> None:
        self._unless(self.watch.store == 0, WatchEvent.END, 0)
        super().program_end()


def _or(bits: Value, mask: int, zero: int) -> Value:
    """A field in which 0 stands for its range."""
    value = bits & mask
    return select(value == 0, zero, value)
