"""Primitives that go to no tiles, natively: the binner's assembly writes them one after the other.

All are in coding 3, absolute, and go to host address `DirectContext.output`.
"""

from __future__ import annotations

from typing import Any

from vc4lab.records.codes import ListPrimitive
from vc4lab.records.primitives import ESCAPE_ABSOLUTE
from vc4lab.simd import Type, Value, alloca, const, i1, i8, i16, i32, kernel, load, min_, ptr, staged, store
from vc4lab.v3d.ptb.context import DONE, BinnerContext, DirectContext
from vc4lab.v3d.ptb.draw import primitive_type, primitives
from vc4lab.v3d.ptb.lines_and_points import line_ends, vertex_index
from vc4lab.v3d.ptb.vg import take_trapezoids, take_triangles
from vc4lab.v3d.ptb.window import LANES, TriangleWindow, window_indices


@staged
def _write(context: Value, vertices: tuple[Value, ...], kind: Type = i16) -> None:
    d = DirectContext.at(context)
    place = d.output
    store(place, const(i8, ESCAPE_ABSOLUTE))
    for number, vertex in enumerate(vertices):
        store(place + (1 + number * kind.bits // 8), vertex if kind is i32 else vertex.trunc(kind))
    d.output = place + (1 + len(vertices) * kind.bits // 8)


@staged
def _write_positions(c: BinnerContext, *words: Value) -> Value:
    _write(c.pointer, words, i32)
    return const(i32, DONE)


@kernel(args=(ptr,), returns=None)
def direct_vertices(context: Value) -> None:
    """Writes the primitives of a draw (records 32 and 33) up to the first index that is too large.

    `length` becomes the number of vertices before that.
    """
    c = BinnerContext.at(context)
    good: Any = const(i32, 0)
    while (good < c.length) & ~vertex_index(c, good).ugt(c.max_index):
        good = good + 1
    c.bad_index = vertex_index(c, good)
    c.length = good
    kind, count = primitive_type(c.mode), primitives(c.mode, good)
    if kind == ListPrimitive.POINTS:
        for k in range(count):
            _write(context, (vertex_index(c, k),))
    elif kind == ListPrimitive.LINES:
        for k in range(count):
            _write(context, line_ends(c, k))
    else:
        window = TriangleWindow.at(alloca(TriangleWindow.size))
        corners = [window.field_ptr(name) for name in ("i0", "i1", "i2")]
        first: Any
        for first in range(0, count, LANES):
            row = window_indices(c, window, const(i1, False), first)
            for place, index in zip(corners, row, strict=True):
                store(place, index, align=64)
            rest: Any = min_(count - first, LANES)
            for k in range(rest):
                _write(context, tuple(load(i32, place + k * 4) for place in corners))


@kernel(args=(ptr,), returns=None)
def direct_triangles(context: Value) -> None:
    """Writes the triangles of a VG list."""
    take_triangles(BinnerContext.at(context), _write_positions)


@kernel(args=(ptr,), returns=None)
def direct_trapezoids(context: Value) -> None:
    """Writes the trapezoids of a VG list."""
    take_trapezoids(BinnerContext.at(context), _write_positions)
