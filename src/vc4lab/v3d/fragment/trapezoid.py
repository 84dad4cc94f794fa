"""Right-hand trapezoids (RHT): the area between an edge v0-v1 and the RHT X boundary of record 100.

An edge may cross the boundary; then a triangle lies on either side. Source: hardware reference 7.4.
"""

from __future__ import annotations

from typing import Any

from vc4lab.simd import Value, const, f32, i32, is_nan, load, max_, min_, select, staged
from vc4lab.v3d.fragment.primitive_tracer import (
    PrimitiveTracer,
    add_constant,
    depth_offset,
    depth_range,
    word,
)
from vc4lab.v3d.pse.setup import (
    DEPTH,
    RECIPROCAL_W,
    ROW_BYTES,
    Box,
    Edge,
    Planes,
    Primitive,
    Vertex,
    bounding_box,
    number,
    oriented_edge,
)
from vc4lab.v3d.state.render_state import (
    CLOCKWISE_IS_FORWARD,
    ENABLE_FORWARD,
    ENABLE_REVERSE,
)


def boundary(tracer: PrimitiveTracer) -> Value:
    """The X boundary relative to the tile's first pixel, 12.4."""
    return tracer.shader.params.rht_boundary - (tracer.shader.tile_x << 4)


@staged
def draw_trapezoid(tracer: PrimitiveTracer, vertices: list[Vertex], flat_words: Value) -> None:
    """One RHT. Its facing is that of its edge: up (to higher rows) is counter-clockwise."""
    v0, v1 = vertices
    forward = (v1.y < v0.y) == ((tracer.facing & CLOCKWISE_IS_FORWARD) != 0)
    enabled = select(forward, tracer.facing & ENABLE_FORWARD, tracer.facing & ENABLE_REVERSE) != 0
    if tracer.key.unknowns["rht_facing"] == "any":
        enabled = (tracer.facing & (ENABLE_FORWARD | ENABLE_REVERSE)) != 0
    x = boundary(tracer)
    corners = [v0, v1, Vertex(v0.words, x, v0.y), Vertex(v0.words, x, v1.y)]
    box = bounding_box(corners, tracer.window, tracer.raster)
    if ~enabled & (v0.y != v1.y):
        tracer.shader.count("primitives_reversed", const(i32, 1))
    if enabled & (v0.y != v1.y) & (box.left < box.right) & (box.top < box.bottom):
        for side in range(2):
            reaches = max_(v0.x, v1.x) > x
            if side != 0:
                reaches = min_(v0.x, v1.x) < x
            if reaches:
                trace_side(tracer, vertices, flat_words, box, x, side, forward)


def side_edges(
    tracer: PrimitiveTracer, vertices: list[Vertex], x: Value, side: Value
) -> list[Edge]:
    """Four edges around the area left (side 0) or right (1) of the edge, up to the boundary."""
    v0, v1 = vertices
    down = v1.y < v0.y
    low = Vertex(v0.words, select(down, v1.x, v0.x), min_(v0.y, v1.y))
    high = Vertex(v0.words, select(down, v0.x, v1.x), max_(v0.y, v1.y))
    upright = const(i32, 0)

    def at(place: Value, vertex: Vertex) -> Vertex:
        return Vertex(vertex.words, place, vertex.y)

    return [
        oriented_edge(low, high, -side, tracer.raster),
        oriented_edge(at(x, high), at(x, low), -side, tracer.raster),
        oriented_edge(at(x, low), at(x + 16, low), upright, tracer.raster),
        oriented_edge(at(x + 16, high), at(x, high), upright, tracer.raster),
    ]


def trace_side(
    tracer: PrimitiveTracer, vertices: list[Vertex], flat_words: Value, box: Box, x: Value,
    side: Any, forward: Value,
) -> None:  # fmt: skip
    """Draws the part on one side. Attributes change along the edge's rows, not across."""
    v0, v1 = vertices
    scale = const(f32, 16.0) / (v0.y - v1.y).to_float(f32)
    plain = tracer.key.index_bits == 32  # x/y lists: the same depth and W everywhere

    def slope(q0: Value, q1: Value) -> Value | None:
        return None if plain else (q0 - q1) * scale

    z0, z1 = word(v0, DEPTH), word(v1, DEPTH)
    w0, w1 = number(word(v0, RECIPROCAL_W)), number(word(v1, RECIPROCAL_W))
    varyings = Planes([], [], [], [])
    total = w0 + w1
    for row, flat in zip(tracer.rows, tracer.flat, strict=True):
        if flat or plain:
            add_constant(varyings, load(f32, flat_words + row * ROW_BYTES))
            continue
        value = number(word(v1, row))
        b = (word(v0, row) - value) * w0 * scale
        varyings.a.append(None)
        varyings.b.append(b)
        varyings.c.append(value)
        varyings.flat.append(False)
        total = total + (b + value)
    if not plain:
        tracer.shader.suspect(is_nan(total))
    low, high = depth_range(vertices)
    steep = slope(z0, z1)
    flat_slope = const(f32, 0.0)
    offset = depth_offset(tracer, flat_slope, flat_slope if steep is None else steep, high)
    tracer.run(
        Primitive(
            box, side_edges(tracer, vertices, x, side), v1.x, v1.y,
            (None, steep, z1), (None, slope(w0, w1), w1), varyings, low, high, offset, ~forward,
        )
    )  # fmt: skip
