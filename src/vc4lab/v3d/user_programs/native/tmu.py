"""The texture unit of user programs in native code: direct lookups, and samples whose parameters
are only known when the program runs.

A configuration (P0..P3) is looked up among the slots of the shared state; for a new one the host is
asked, which compiles a sampler for its kind. Results wait in a ring.
"""

from __future__ import annotations

from typing import Any

from vc4lab.memory import MEMORY_MASK
from vc4lab.simd import (
    Function,
    Value,
    all_,
    call,
    call_pointer,
    const,
    i32,
    i32x16,
    i64,
    iota,
    kernel,
    load,
    ptr,
    splat,
    staged,
    store,
)
from vc4lab.v3d.tmu.sampler import direct_lookup
from vc4lab.v3d.tmu.texture_slots import TextureSlot, same_parameters
from vc4lab.v3d.user_programs.state import RESULTS, QpuState, SharedState, Unit

_REACH = MEMORY_MASK - 63
"""A whole vector fits after any address up to this."""


@staged
def push(unit: Unit, words: Value) -> None:
    """Append a result to the ring of a unit."""
    place = (unit.head + unit.count) & (RESULTS - 1)
    store(unit.results + (place << 6), words, 64)
    unit.count = unit.count + 1


@staged
def pop(unit: Unit) -> Value:
    """Take the oldest result; the caller has looked that there is one."""
    words = load(i32x16, unit.results + (unit.head << 6), 64)
    unit.head = (unit.head + 1) & (RESULTS - 1)
    unit.count = unit.count - 1
    return words


_GATHER = Function((ptr, i32x16), i32x16, direct_lookup, "lookup_anywhere")


@staged
def lookup(memory: Value, address: Value) -> Value:
    """The words at 16 addresses; neighbours are loaded at once."""
    wanted = address & (MEMORY_MASK & ~3)
    first = wanted[0]
    if all_(wanted == splat(first) + (iota() << 2)) & (first <= _REACH):
        words = load(i32x16, memory + first.zext(i64))
    else:
        words = call(_GATHER, memory, address, cold=True)
    return words


@kernel(args=(ptr, ptr, i32, i32x16))
def sample(shared: Value, qpu: Value, number: Value, s: Value) -> None:
    """A write of S that ends a texture request whose other coordinates and parameters are there."""
    _sample(shared, qpu, number, s, False)


@kernel(args=(ptr, ptr, i32, i32x16))
def sample_recorded(shared: Value, qpu: Value, number: Value, s: Value) -> None:
    """Sample, as `sample`; `QpuState.lines` takes the lines of memory that the texels lie in."""
    _sample(shared, qpu, number, s, True)


@staged
def _sample(shared: Value, qpu: Value, number: Value, s: Value, records: bool) -> None:
    common = SharedState.at(shared)
    unit = Unit.at(qpu + QpuState.units.offset + number * Unit.size)
    coordinates = unit.coordinates
    store(coordinates, s, 64)
    used = unit.written
    place = unit.parameters
    found: Any = const(i32, -1)
    for index in range(common.slots):
        at = common.textures + index * TextureSlot.size
        same = same_parameters(at, place, used)
        if records:
            same = same & (TextureSlot.at(at).recorder != 0)
        if same:
            found = index
            break
    if found < 0:
        found = call_pointer(common.resolve, i32, (ptr, i32), qpu, number)
    slot = TextureSlot.at(common.textures + (found & 15) * TextureSlot.size)
    results = unit.scratch
    lines = (qpu + QpuState.lines.offset,) if records else ()
    call_pointer(
        slot.recorder if records else slot.sampler,
        None,
        (ptr,) * (4 + len(lines)),
        slot.descriptor,
        common.memory,
        coordinates,
        results,
        *lines,
        float_mode="keep",
    )
    for k in range(slot.words):
        push(unit, load(i32x16, results + (k << 6), 64))
    for k in range(4):
        store(coordinates + (k << 6), splat(const(i32, 0)), 64)
    unit.written = 0
