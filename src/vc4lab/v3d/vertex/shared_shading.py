"""The vertices of one draw shaded by several threads: each takes pieces of a few batches.

`shade_range` (`shader_lookup.py`) comes here when a draw is worth it and there are helpers. What
one piece cannot do ends the rest, and the whole draw is done again by Python, as without helpers.
"""

from __future__ import annotations

import ctypes
from functools import lru_cache

from vc4lab.memory import lazy_zeros
from vc4lab.optimisations import SHARED_SHADING
from vc4lab.simd import (
    NativeModule,
    Struct,
    Value,
    atomic_add,
    build,
    call_pointer,
    const,
    i32,
    i64,
    kernel,
    load,
    min_,
    ptr,
    store,
)
from vc4lab.simd.team import PART_ARGUMENTS, Team, TeamState
from vc4lab.v3d.vertex.context import DONE, MAX_ARRAYS, VertexContext

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
