"""Points, lines and right-hand trapezoids become edges, boxes and planes, and their blocks run.

Points are squares, lines are parallelograms along their major axis or rectangles (undocumented, see
`vc4lab unknowns`). A right-hand trapezoid (RHT) is the area between an edge v0-v1 and the RHT X
boundary of record 100; an edge may cross the boundary, then a triangle lies on either side. Source:
hardware reference 7.2-7.6.
"""

from __future__ import annotations

from typing import Any

from vc4lab.records.states import MAX_POINT_SIZE
from vc4lab.simd.kernel import staged
from vc4lab.simd.members import f32, i1, i32
from vc4lab.simd.memory import load
from vc4lab.simd.value import Value, const, select
from vc4lab.simd.vector import abs_, fmax_, fmin_, is_nan, max_, min_, sqrt_
from vc4lab.v3d.fragment.block import BlockShader
from vc4lab.v3d.pse.coverage import for_each_block
from vc4lab.v3d.pse.setup import (
    DEPTH,
    POINT_SIZE,
    RECIPROCAL_W,
    ROW_BYTES,
    Box,
    Edge,
    Planes,
    Primitive,
    Vertex,
    VertexSource,
    bounding_box,
    depth_scale,
    float_unit,
    has_float_unit,
    number,
    offset_of_slopes,
    oriented_edge,
    raster_of,
)
from vc4lab.v3d.state.render_state import CLOCKWISE_IS_FORWARD, ENABLE_FORWARD, ENABLE_REVERSE


def word(vertex: Vertex, row: int) -> Value:
    """Word `row` of a vertex as a float."""
    return load(f32, vertex.words + row * ROW_BYTES)


class PrimitiveTracer:
    """Everything needed to trace the drawing of one primitive of a draw."""

    def __init__(self, shader: BlockShader, source: VertexSource, window: Box) -> None:
        self.shader = shader
        self.source = source
        self.window = window
        self.key = shader.constants.key
        params = shader.params
        self.facing = params.facing
        self.depth_factor = params.depth_factor
        self.depth_units = params.depth_units
        self.point_size = params.point_size
        self.line_width = params.line_width
        self.raster = raster_of(self.key)
        first = self.key.first_varying
        self.rows = list(range(first, first + self.key.n_varyings))
        self.flat = [bool(self.key.flat_flags >> k & 1) for k in range(self.key.n_varyings)]

    def run(self, primitive: Primitive) -> None:
        """Shades all blocks of a primitive."""
        primitive.z_steps = self.shader.depth_steps(primitive)
        for_each_block(
            primitive.box,
            primitive.edges,
            primitive.x0,
            primitive.y0,
            lambda dy: self.shader.row(primitive, dy),
            lambda block: self.shader.shade(primitive, block),
            self.shader.running,
        )


def depth_range(vertices: list[Vertex]) -> tuple[Value, Value]:
    """Lowest and highest Zs of a primitive's vertices."""
    values = [word(vertex, DEPTH) for vertex in vertices]
    low = high = values[0]
    for value in values[1:]:
        low, high = fmin_(low, value), fmax_(high, value)
    return low, high


def depth_offset(tracer: PrimitiveTracer, a: Value, b: Value, high: Value) -> Value | None:
    """Offset of the 24-bit depth: factor * steepest slope + units (record 101).

    `high`: the primitive's largest Zs, on which a unit may depend.
    """
    if not tracer.key.depth_offset:
        return None
    unit: Value | float = 1.0
    scale = depth_scale(tracer.key.unknowns)
    if has_float_unit(tracer.key.unknowns):
        unit = float_unit(high, scale)
    return offset_of_slopes(tracer.depth_factor, tracer.depth_units, a, b, unit, scale)


def add_constant(planes: Planes, value: Value) -> None:
    """A varying that is the same everywhere."""
    planes.a.append(None)
    planes.b.append(None)
    planes.c.append(value)
    planes.flat.append(True)


MIN_POINT_SIZE = 0.125
MIN_LINE_WIDTH, MAX_LINE_WIDTH = 0.125, 512.0
"""Sizes are clamped to these: below, the hardware misbehaves (HW-2726); above, 12.4 overflows."""


@staged
def draw_point(tracer: PrimitiveTracer, vertex: Vertex) -> None:
    """A square around the vertex; two implicit varyings run across it, all others are constant."""
    key = tracer.key
    size = word(vertex, POINT_SIZE) if key.point_size_in_vertex else tracer.point_size
    size = fmin_(fmax_(size, MIN_POINT_SIZE), MAX_POINT_SIZE)
    half = (size * 128.0).to_int(i32)  # in 1/256 pixel, as the corners below
    left, top = (vertex.x << 4) - half, (vertex.y << 4) - half
    # Samples lie on whole subpixels: the first one inside and the first one after, 12.4.
    square = [(edge + 15) >> 4 for edge in (left, top, left + 2 * half, top + 2 * half)]
    up, down = 15 - tracer.raster.highest, 15 - tracer.raster.lowest
    box = Box(
        max_((square[0] + up) >> 4, tracer.window.left),
        max_((square[1] + up) >> 4, tracer.window.top),
        min_((square[2] + down) >> 4, tracer.window.right),
        min_((square[3] + down) >> 4, tracer.window.bottom),
    )
    if (box.left < box.right) & (box.top < box.bottom):
        trace_point(tracer, vertex, size, box, square)


def square_edges(tracer: PrimitiveTracer, square: list[Value]) -> list[Edge]:
    """Edges around left, top, right, bottom (12.4); none if the box of pixels says it all."""
    points = tracer.raster.points
    if len(points) == 1:
        return []
    left, top, right, bottom = square
    one, zero = const(i32, 1), const(i32, 0)

    def edge(values: list[Value], step_x: Value, step_y: Value) -> Edge:
        values = [value >> 4 for value in values]
        return Edge(values[0], step_x, step_y, [value - values[0] for value in values[1:]])

    return [
        edge([x - left for x, _ in points], one, zero),
        edge([y - top for _, y in points], zero, one),
        edge([right - (x + 1) for x, _ in points], -one, zero),
        edge([bottom - (y + 1) for _, y in points], zero, -one),
    ]


def trace_point(tracer: PrimitiveTracer, vertex: Vertex, size: Value, box: Box, square: list[Value]) -> None:
    """A point whose box is not empty."""
    reciprocal = number(word(vertex, RECIPROCAL_W))
    # Read as VP * W + C like every varying, so the slopes carry the factor 1/Wc.
    slope = reciprocal / size
    half = const(f32, 0.5)
    varyings = Planes([slope, None], [None, -slope], [half, half], [False, False])
    for row in tracer.rows:
        add_constant(varyings, word(vertex, row))
    tracer.shader.suspect(is_nan(slope))
    depth = word(vertex, DEPTH)
    flat = const(f32, 0.0)
    tracer.run(
        Primitive(
            box, square_edges(tracer, square), vertex.x, vertex.y,
            (None, None, depth), (None, None, reciprocal), varyings, depth, depth,
            depth_offset(tracer, flat, flat, depth), const(i1, False),
        )
    )  # fmt: skip


@staged
def draw_line(tracer: PrimitiveTracer, vertices: list[Vertex], flat_words: Value) -> None:
    """A line of the given width as four edges; its ends are cut as the line shape says."""
    v0, v1 = vertices
    dx, dy = v1.x - v0.x, v1.y - v0.y
    steep = abs_(dy) > abs_(dx)
    width = fmin_(fmax_(tracer.line_width, MIN_LINE_WIDTH), MAX_LINE_WIDTH)
    fx, fy = dx.to_float(f32), dy.to_float(f32)
    if tracer.key.unknowns["line_shape"] == "rectangle":
        length = fmax_(sqrt_(fx * fx + fy * fy), 1.0)
        across_x, across_y = -fy / length, fx / length
    else:  # across the minor axis, always toward the same side of the line
        across_x = select(steep, select(dy > 0, const(f32, -1.0), const(f32, 1.0)), const(f32, 0.0))
        across_y = select(steep, const(f32, 0.0), select(dx > 0, const(f32, 1.0), const(f32, -1.0)))
    ox, oy = (across_x * width * 8.0).to_int(i32), (across_y * width * 8.0).to_int(i32)
    corners = [
        Vertex(v0.words, v0.x - ox, v0.y - oy),
        Vertex(v1.words, v1.x - ox, v1.y - oy),
        Vertex(v1.words, v1.x + ox, v1.y + oy),
        Vertex(v0.words, v0.x + ox, v0.y + oy),
    ]
    box = bounding_box(corners, tracer.window, tracer.raster)
    if ((dx != 0) | (dy != 0)) & (box.left < box.right) & (box.top < box.bottom):
        trace_line(tracer, vertices, flat_words, corners, box, (fx, fy, across_x, across_y, width))


def trace_line(
    tracer: PrimitiveTracer, vertices: list[Vertex], flat_words: Value, corners: list[Vertex],
    box: Box, shape: tuple[Value, Value, Value, Value, Value],
) -> None:  # fmt: skip
    """A line whose box is not empty. Attributes change along it and are constant across."""
    v0, v1 = vertices
    fx, fy, across_x, across_y, width = shape
    upright = const(i32, 0)
    edges = [
        oriented_edge(a, b, upright, tracer.raster)
        for a, b in zip(corners, corners[1:] + corners[:1], strict=True)
    ]
    # A position is v1 + s * direction + t * across; attributes follow s, the coordinate t.
    cross = fx * across_y - fy * across_x
    along_x, along_y = across_y * 16.0 / cross, -across_x * 16.0 / cross

    def plane(q0: Value) -> tuple[Value, Value]:
        return -q0 * along_x, -q0 * along_y

    z0, z1 = word(v0, DEPTH), word(v1, DEPTH)
    w0, w1 = word(v0, RECIPROCAL_W), number(word(v1, RECIPROCAL_W))
    # The line coordinate is read as VP + C, without W: 0 at one side, 1 at the other.
    side = 1.0 / (cross * width)
    if tracer.key.unknowns["line_coordinate"] == "left-is-1":
        side = -side
    varyings = Planes([-fy * side], [fx * side], [const(f32, 0.5)], [False])
    total = w0 + w1
    for row, flat in zip(tracer.rows, tracer.flat, strict=True):
        if flat:
            add_constant(varyings, load(f32, flat_words + row * ROW_BYTES))
            continue
        value = number(word(v1, row))
        a, b = plane((word(v0, row) - value) * w0)
        varyings.a.append(a)
        varyings.b.append(b)
        varyings.c.append(value)
        varyings.flat.append(False)
        total = total + (a + b + value)
    tracer.shader.suspect(is_nan(total))
    low, high = depth_range(vertices)
    za, zb = plane(z0 - z1)
    tracer.run(
        Primitive(
            box, edges, v1.x, v1.y, (za, zb, z1), (*plane(w0 - w1), w1), varyings, low, high,
            depth_offset(tracer, za, zb, high), const(i1, False),
        )
    )  # fmt: skip


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


def side_edges(tracer: PrimitiveTracer, vertices: list[Vertex], x: Value, side: Value) -> list[Edge]:
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
