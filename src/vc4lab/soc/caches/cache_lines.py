"""Which lines of RAM the ARM's data cache holds: native hooks at each load and store of a core.

Used only with `--caches`. The cache is modelled very large: a line stays until the program
cleans or invalidates it, which is the worst that can happen on a board. RAM holds what the ARM
sees; where memory has other bytes than the cache, they are kept in a shadow of the RAM.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from vc4lab.memory import MEMORY_MASK, MEMORY_SIZE, GuestMemory, lazy_zeros
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

HELD, DIRTY, STALE, DIFFERS, BEHIND_L2 = 1, 2, 4, 8, 16
"""Flags of a line: the cache has it; it was written and not cleaned; memory is newer; the shadow has what
memory has; the CPU wrote it through the VideoCore's L2 (Pi Zero and 1)."""
UNCACHED, WRITE_BACK, WRITE_THROUGH, READ_ALLOCATE = range(4)
"""Policies of a page of 4 KiB. Read-allocate is write-back, but a store does not bring a line into the cache
(ARM1176).
"""
PAGE_SHIFT = 12
PAGE_ENTRIES = 1 << 20
MAX_EVENTS = 64


class CacheState(Struct):
    """Shared by the hooks of one core and Python; tables of lines are those of all cores."""

    attributes = ptr
    flags = ptr
    writers = ptr
    pages = ptr
    ram = ptr
    shadow = ptr
    read_register = ptr
    pc_register = i32
    line_shift = i32
    mark = i32
    dirtied = i32
    held = i32
    events = i32
    pc = i64
    event_address = Array(i64, MAX_EVENTS)
    event_pc = Array(i64, MAX_EVENTS)


@staged
def _read_pc(state: CacheState, engine: Value) -> Value:
    """The instruction that makes the access."""
    place = state.pointer + CacheState.pc.offset
    call_pointer(state.read_register, i32, (ptr, i32, ptr), engine, state.pc_register, place)
    return load(i64, place)


@staged
def _copy_line(target: Value, source: Value, size: Value) -> Value:
    at = const(i64, 0)
    while at < size:
        store(target + at, load(i64, source + at))
        at = at + 8
    return at


@kernel(args=(ptr, i32, i64, i32, i64, ptr))
def note_store(
    engine: Value, _kind: Value, address: Value, size: Value, _value: Value, state_at: Value
) -> None:
    """The engine's hook before a store to physical `address`."""
    state = CacheState.at(state_at)
    attribute = load(i8, state.attributes + ((address >> PAGE_SHIFT) & (PAGE_ENTRIES - 1)))
    shift = state.line_shift.sext(i64)
    line = (address & MEMORY_MASK) >> shift
    last = ((address + size.sext(i64) - 1) & MEMORY_MASK) >> shift
    while line <= last:
        place = state.flags + line
        flags = load(i8, place).zext(i32)
        held = (attribute == READ_ALLOCATE) & ((flags & HELD) != 0)
        if (attribute == WRITE_BACK) | held:
            if (flags & DIRTY) == 0:
                if (flags & DIFFERS) == 0:
                    at = line << shift
                    _copy_line(state.shadow + at, state.ram + at, const(i64, 1) << shift)
                store(state.writers + line * 8, _read_pc(state, engine))
                state.dirtied = 1
            store(place, (flags | HELD | DIRTY | DIFFERS | state.mark).trunc(i8))
            store(state.pages + (line >> (PAGE_SHIFT - shift)), const(i8, 1))
        elif (attribute == UNCACHED) & (flags != state.mark):
            store(place, state.mark.trunc(i8))
        line = line + 1


@kernel(args=(ptr, i32, i64, i32, i64, ptr))
def note_load(
    engine: Value, _kind: Value, address: Value, size: Value, _value: Value, state_at: Value
) -> None:
    """The engine's hook before a load from physical `address`."""
    state = CacheState.at(state_at)
    attribute = load(i8, state.attributes + ((address >> PAGE_SHIFT) & (PAGE_ENTRIES - 1)))
    if attribute != UNCACHED:
        line = (address & MEMORY_MASK) >> state.line_shift.sext(i64)
        place = state.flags + line
        flags = load(i8, place).zext(i32)
        if (flags & (HELD | STALE)) != HELD:
            if (flags & STALE) != 0:
                if state.events < MAX_EVENTS:
                    index = state.events.sext(i64) * 8
                    store(state.event_address + index, address)
                    store(state.event_pc + index, _read_pc(state, engine))
                    state.events = state.events + 1
            store(place, ((flags | HELD) & ~STALE).trunc(i8))
            store(state.pages + ((address & MEMORY_MASK) >> PAGE_SHIFT), const(i8, 1))
            state.held = 1


@cache
def hooks() -> Any:
    """The two hooks as native functions."""
    return build(
        "soc_cache_lines",
        {"store": note_store, "load": note_load},
        float_mode="default",
        key="soc-cache-lines-2",
    )


class Lines:
    """The tables of all lines: flags, writer, content of memory. Untouched parts cost nothing."""

    def __init__(self, memory: GuestMemory, line_size: int) -> None:
        self.size = line_size
        self.shift = line_size.bit_length() - 1
        count = MEMORY_SIZE >> self.shift
        self.flags = _table(count)
        self.authors = _table(count)
        self.writers = _table(count * 8).view(np.int64)
        self.pages = _table(MEMORY_SIZE >> PAGE_SHIFT)
        self.ram = memory.array(0, MEMORY_SIZE).reshape(count, line_size)
        self.shadow = _table(MEMORY_SIZE).reshape(count, line_size)

    def state(self, read_register: int, pc_register: int, mark: int) -> Any:
        """The hooks' state for one core, and its table of page attributes."""
        attributes = _table(PAGE_ENTRIES)
        state = CacheState(
            attributes=attributes.ctypes.data,
            flags=self.flags.ctypes.data,
            writers=self.writers.ctypes.data,
            pages=self.pages.ctypes.data,
            ram=self.ram.ctypes.data,
            shadow=self.shadow.ctypes.data,
            read_register=read_register,
            pc_register=pc_register,
            line_shift=self.shift,
            mark=mark,
        )
        return state, attributes

    def marked(self, flag: int) -> np.ndarray:
        """Numbers of the lines with one of these flags."""
        pages = np.flatnonzero(self.pages)
        per_page = 1 << PAGE_SHIFT - self.shift
        lines = (pages[:, None] * per_page + np.arange(per_page)).ravel()
        found: np.ndarray = lines[self.flags[lines] & flag != 0]
        return found

    def of(self, address: int, size: int) -> slice:
        """The lines of a range; it ends at the end of the RAM."""
        start = address & MEMORY_MASK
        end = min(start + max(size, 1), MEMORY_SIZE)
        return slice(start >> self.shift, (end - 1 >> self.shift) + 1)


def _table(size: int) -> np.ndarray:
    """Zeros that take no memory until they are written."""
    return np.frombuffer(lazy_zeros(size), np.uint8)
