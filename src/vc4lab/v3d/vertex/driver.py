"""The native loop over batches of vertices, for all shaders, and its parts for several threads.

It is compiled once, not with each shader. A shader's own module holds the program for one batch and an
entry that calls `shade` in here with a `description`: numbers that say what to fetch and how to proceed.

`shade_range` (`shader_lookup.py`) comes here when a draw is worth it and there are helpers. What
one piece cannot do ends the rest, and the whole draw is done again by Python, as without helpers.
"""

from __future__ import annotations

import ctypes
from functools import lru_cache
from typing import Any

from vc4lab.memory import lazy_zeros
from vc4lab.memory.native import host
from vc4lab.optimisations import SHARED_SHADING
from vc4lab.simd.floatmode import FP_INVALID, FP_OVERFLOW, call_pointer, call_with_flags
from vc4lab.simd.kernel import kernel, staged
from vc4lab.simd.members import f32, i16, i32, i32x16, i64, ptr
from vc4lab.simd.memory import atomic_add, load, store, var
from vc4lab.simd.native import NativeFunction, NativeModule, build
from vc4lab.simd.struct import Struct
from vc4lab.simd.team import PART_ARGUMENTS, Team, TeamState
from vc4lab.simd.types import mask16
from vc4lab.simd.value import Value, const, select
from vc4lab.simd.vector import any_, is_nan, min_
from vc4lab.v3d.vertex.context import (
    CHUNK,
    DEOPT,
    DONE,
    EXACT_AFTER_CHUNKS,
    MAX_ARRAYS,
    VertexContext,
    VertexKey,
)
from vc4lab.v3d.vertex.fetch import GROUP_WORDS, describe, fetch, find_wanted

SHADE = "vc4_vertex_shade"
"""Name under which a shader's module imports `shade`."""

ENTRY = (ptr, ptr)
"""Arguments of a shader's entry: context, the exact build's entry (or 0); it returns a status."""

BATCH_ARGS = (ptr, ptr)
"""Arguments of a shader's batch: context, output; returns whether a lane needs the exact build."""

_PITCH, _EXACT, _GROUPS, _CHECKED, _HEAD = 0, 4, 8, 12, 16
"""Byte offsets in a description; after the head are the groups, then the words to be checked."""


def description(key: VertexKey, exact: bool, checked: set[int]) -> list[int]:
    """The numbers for `shade`. checked: uniforms that must not be NaN, by position."""
    fetched = describe(key)
    masks = [0] * (max(checked, default=-1) // 16 + 1)
    for position in checked:
        masks[position // 16] |= 1 << position % 16
    return [key.pitch, int(exact), len(fetched) // GROUP_WORDS, len(masks), *fetched, *masks]


@staged
def uniforms_with_nan(c: VertexContext, numbers: Value) -> Value:
    """Whether a uniform that is to be checked is NaN: all batches have the same."""
    masks = numbers + (_HEAD + load(i32, numbers + _GROUPS) * (4 * GROUP_WORDS))
    place = host(c.memory, c.uniforms)
    found = const(mask16, False)
    count = load(i32, numbers + _CHECKED)
    for group in range(count):
        looked = load(i16, masks + 4 * group).bitcast(mask16)
        found = found | (is_nan(load(i32x16, place + 64 * group).bitcast(f32)) & looked)
    return any_(found)


@staged
def run_batches(context: Value, function: Value, numbers: Value, start: Value, end: Value) -> None:
    """Shades the batches `start` … `end` - 1, as far as they are wanted."""
    c = VertexContext.at(context)
    groups, count = numbers + _HEAD, load(i32, numbers + _GROUPS)
    pitch = load(i32, numbers + _PITCH).sext(i64)
    wild = var(i32, 0)
    for number in range(start, end):
        batch: Any = number
        find_wanted(context, batch)
        if (c.wanted != 0) & (c.stopped == 0):
            fetch(context, groups, count, batch)
            target = c.output + batch.sext(i64) * pitch
            found = call_pointer(function, i32, BATCH_ARGS, context, target, float_mode="keep")
            wild.set(wild.get() | found)
            c.batches = c.batches + 1
    nan = uniforms_with_nan(c, numbers)
    c.wild = select((wild.get() != 0) | nan, const(i32, 1), const(i32, 0))


@kernel(args=(ptr, ptr, ptr, i32, i32), returns=None)
def _run(context: Value, function: Value, numbers: Value, start: Value, end: Value) -> None:
    run_batches(context, function, numbers, start, end)


@kernel(args=(ptr, ptr, ptr, ptr), returns=i32)
def shade(context: Value, exact_entry: Value, function: Value, numbers: Value) -> Value:
    """Shades the batches `next_batch` … `until` - 1 by calling `function`; a status.

    A fast build lets the exact one shade chunks with special floats again; without (0) it returns
    DEOPT before such a chunk.
    """
    c = VertexContext.at(context)
    exact = load(i32, numbers + _EXACT) != 0
    status = const(i32, DONE)
    failures = const(i32, 0)
    while (status == DONE) & (c.next_batch < c.until):
        start, until, batches = c.next_batch, c.until, c.batches
        end = min_(start + CHUNK, until)
        _, flags = call_with_flags(_run, context, function, numbers, start, end)
        special = (c.wild != 0) | ((flags & (FP_INVALID | FP_OVERFLOW)) != 0)
        if exact | ~special:
            c.next_batch = end
            status = c.stopped
        else:
            c.stopped = 0
            c.batches = batches
            c.deopts = c.deopts + 1
            failures = failures + 1
            if exact_entry == 0:
                status = const(i32, DEOPT)
            else:
                c.until = select(failures < EXACT_AFTER_CHUNKS, end, until)
                arguments = (context, exact_entry)
                status = call_pointer(exact_entry, i32, ENTRY, *arguments, float_mode="keep")
                c.until = until
    return status


@lru_cache(maxsize=1)
def driver() -> NativeFunction:
    """`shade`, compiled for the host."""
    return build("vertex_driver", {"shade": shade}, key="vertex driver")["shade"]


BATCHES_PER_PIECE = 16
"""Batches that a thread takes at once."""
MIN_WORK_PER_HELPER = 1 << 16
"""Instructions of a program times batches for which a helper is woken: 25 µs."""

_CONTEXT_BYTES = (VertexContext.size + 63) & ~63

_INPUTS = ("memory", "output", "used", "uniforms", "first", "last", "interrupts")
"""Members of a VertexContext that all threads need, besides the arrays."""


class SharedShading(Struct):
    """The draw at hand, and what is always there."""

    team = ptr  # TeamState
    shade = ptr  # 0: there were no helpers yet
    part = ptr
    contexts = ptr  # a VertexContext for each helper
    template = ptr  # that of the calling thread
    entry = ptr  # as of a ShaderEntry
    exact = ptr
    next = i32  # batch
    until = i32
    failed = i32
    batches = i32


@kernel(args=PART_ARGUMENTS, returns=None)
def shade_part(shared: Value, number: Value) -> None:
    """Shades pieces until none is left, or one is not done."""
    s = SharedShading.at(shared)
    t = VertexContext.at(s.template)
    context = s.template
    if number != 0:
        context = s.contexts + (number - 1).zext(i64) * _CONTEXT_BYTES
        mine = VertexContext.at(context)
        for name in _INPUTS:
            setattr(mine, name, getattr(t, name))
        for array in ("bases", "strides"):
            for k in range(MAX_ARRAYS):
                word = load(i32, t.field_ptr(array) + 4 * k)
                store(mine.field_ptr(array) + 4 * k, word)
    c = VertexContext.at(context)
    batches = const(i32, 0)
    start = atomic_add(s.pointer + SharedShading.next.offset, BATCHES_PER_PIECE)
    while (start < s.until) & (s.failed == 0):
        c.next_batch = start
        c.until = min_(start + BATCHES_PER_PIECE, s.until)
        c.stopped = 0
        c.batches = 0
        if call_pointer(s.entry, i32, (ptr, ptr), context, s.exact) != DONE:
            s.failed = 1
        batches = batches + c.batches
        start = atomic_add(s.pointer + SharedShading.next.offset, BATCHES_PER_PIECE)
    atomic_add(s.pointer + SharedShading.batches.offset, batches)


@kernel(args=(ptr, ptr, ptr, i32), returns=i32)
def shade_together(shared: Value, entry: Value, exact: Value, helpers: Value) -> Value:
    """Batches `next_batch` … `until` - 1 of the template, which gets the sum of `batches`; whether
    done."""
    s = SharedShading.at(shared)
    c = VertexContext.at(s.template)
    s.entry = entry
    s.exact = exact
    s.next = c.next_batch
    s.until = c.until
    s.failed = 0
    s.batches = 0
    team = TeamState.at(s.team)
    types = (ptr, ptr, ptr, i32)
    call_pointer(team.together, None, types, s.team, s.part, shared, helpers)
    c.batches = s.batches
    return (s.failed == 0).zext(i32)


@lru_cache(maxsize=1)
def _native() -> NativeModule:
    functions = {"part": shade_part, "shade": shade_together}
    return build("shared_shading", functions, float_mode="default", key="shared shading")


class Sharing:
    """A SharedShading for a VertexContext; it is used from the moment the team has helpers."""

    def __init__(self, team: Team, template: int) -> None:
        self.team = team
        self.state = SharedShading(team=team.address, template=template)
        self._size = (team.threads - 1) * _CONTEXT_BYTES
        if SHARED_SHADING.serves():
            team.on_first_helper(self._begin)

    def _begin(self) -> None:
        self._room = lazy_zeros(self._size + 64)
        self.state.contexts = ctypes.addressof(ctypes.c_char.from_buffer(self._room))
        for name, function in _native().functions.items():
            setattr(self.state, name, function.address)
