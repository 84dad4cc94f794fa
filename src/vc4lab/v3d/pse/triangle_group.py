"""Eight triangles that are drawn: their boxes, exact edges and attribute planes.

Everything is a vector with a lane for each triangle. Planes (depth, 1/Wc, varyings, and the range
of the depths) are made row by row of the shaded vertices, so that one function serves draws of any
number of varyings. Those are planes of (v - v2) / Wc, so that VP * W + C is perspective-correct;
flat ones have no plane and the provoking vertex's value, bit by bit. Source: hardware reference
7.2-7.6.
"""

from __future__ import annotations

from dataclasses import dataclass

from vc4lab.simd.kernel import staged
from vc4lab.simd.members import f32, f64, i32, i64
from vc4lab.simd.memory import load, store
from vc4lab.simd.types import Type, vec
from vc4lab.simd.value import Value, const, select, splat
from vc4lab.simd.vector import floor_, fmax_, fmin_, iota, is_nan, mask_bits, max_, min_
from vc4lab.v3d.pse.batch import (
    CORNERS,
    GROUP_SIZE,
    MAX_DELTAS,
    OPTION_DEPTH_OFFSET,
    OPTION_FLOAT_UNIT,
    PLACE_REVERSE,
    PLANE_PART,
    PLANE_ROW,
    WAITING_SIZE,
    BatchDraw,
    TriangleBatch,
    TriangleGroup,
)
from vc4lab.v3d.pse.coverage import COLUMNS_BELOW, ROWS_BELOW
from vc4lab.v3d.pse.setup import (
    DEPTH,
    EDGE_LIMIT,
    RECIPROCAL_W,
    ROW_BYTES,
    Box,
    Raster,
    VertexSource,
    float_unit,
    number,
    offset_of_slopes,
)
from vc4lab.v3d.pse.triangle_blocks import FOUR, four_words
from vc4lab.v3d.state.frame_mode import BLOCK, Z_MAX
from vc4lab.v3d.state.render_state import CLOCKWISE_IS_FORWARD
from vc4lab.v3d.state.tile_context import DrawParams

_i32x8, _i64x8, _f64x8 = vec(i32, GROUP_SIZE), vec(i64, GROUP_SIZE), vec(f64, GROUP_SIZE)


def corner(place: Value, number: int = 0, kind: Type = _i32x8) -> Value:
    """All lanes of corner (edge) `number` of a member, which stands at `place`."""
    return load(kind, corner_ptr(place, number, kind))


def set_corner(place: Value, value: Value, number: int = 0) -> None:
    """Writes all lanes of corner `number` of a member."""
    store(corner_ptr(place, number, value.type), value)


def corner_ptr(place: Value, number: int, kind: Type = _i32x8) -> Value:
    """The address of all lanes of corner `number` of a member."""
    return place + number * GROUP_SIZE * kind.elem.size


def queue_ptr(place: Value, number: int, kind: Type = _i32x8) -> Value:
    """As `corner_ptr`, of a member of `WaitingTriangles`."""
    return place + number * WAITING_SIZE * kind.elem.size


@dataclass
class Shape:
    """Corners in the tile (12.4) and the doubled area with its sign, as doubles.

    `differences`: x0 - x2, x1 - x2, y0 - y2, y1 - y2. Products of 12.4 differences are exact.
    """

    x: list[Value]
    y: list[Value]
    differences: tuple[Value, Value, Value, Value]
    area: Value

    @classmethod
    def of(cls, packed: list[Value], source: VertexSource) -> Shape:
        """From the packed positions of the three corners."""
        x = [((p << 16) >> 16) + splat(source.offset_x, GROUP_SIZE) for p in packed]
        y = [(p >> 16) + splat(source.offset_y, GROUP_SIZE) for p in packed]
        x02, x12 = ((x[k] - x[2]).to_float(f64) for k in (0, 1))
        y02, y12 = ((y[k] - y[2]).to_float(f64) for k in (0, 1))
        return cls(x, y, (x02, x12, y02, y12), x02 * y12 - x12 * y02)

    def forward(self, facing: Value) -> Value:
        """Which of them face forward, by record 96."""
        return (self.area < 0.0) ^ splat((facing & CLOCKWISE_IS_FORWARD) == 0, GROUP_SIZE)

    def box(self, window: Box, raster: Raster) -> Box:
        """Pixels with a sample that can lie inside, as `setup.bounding_box`."""
        up, down = 15 - raster.highest, raster.lowest
        (x0, x1, x2), (y0, y1, y2) = self.x, self.y
        return Box(
            max_((min_(min_(x0, x1), x2) + up) >> 4, splat(window.left, GROUP_SIZE)),
            max_((min_(min_(y0, y1), y2) + up) >> 4, splat(window.top, GROUP_SIZE)),
            min_(((max_(max_(x0, x1), x2) - down) >> 4) + 1, splat(window.right, GROUP_SIZE)),
            min_(((max_(max_(y0, y1), y2) - down) >> 4) + 1, splat(window.bottom, GROUP_SIZE)),
        )


def without(lanes: int, axis: int) -> int:
    """Lanes of four blocks without these of the first column (axis 0) or row."""
    return ~four_words([0 if at[axis] else lanes for at in FOUR])


def set_up(
    source: VertexSource, window: Box, params: DrawParams, batch: TriangleBatch, raster: Raster
) -> None:
    """Sets up the first `ready` waiting triangles."""
    group, waiting = batch.group, batch.waiting
    ready = splat(group.ready, GROUP_SIZE)

    def lanes_at(place: Value, kind: Type) -> Value:
        """The group's lanes: those without a triangle have the first one, so that nothing odd is
        computed there."""
        first = splat(load(kind.elem, place), GROUP_SIZE)
        return select(iota(GROUP_SIZE) < ready, load(kind, place), first)

    def filled(place: Value) -> Value:
        """Writes these lanes back to memory; the place."""
        store(place, lanes_at(place, _i64x8))
        return place

    words = [filled(queue_ptr(waiting.words, k, _i64x8)) for k in range(CORNERS)]
    flat_words = filled(waiting.flat_words)
    packed = [lanes_at(queue_ptr(waiting.position, k), _i32x8) for k in range(CORNERS)]
    shape = Shape.of(packed, source)
    reverse = select(shape.forward(params.facing), const(_i32x8, 0), const(_i32x8, 1 << PLACE_REVERSE))
    box = shape.box(window, raster)
    left, top = box.left & ~1, box.top & ~1
    slot = group.slot * (4 * GROUP_SIZE)
    lanes = const(_i32x8, [4 * lane << 16 for lane in range(GROUP_SIZE)]) + splat(slot << 16, GROUP_SIZE)
    everything = const(_i32x8, -1)
    odd_x, odd_y = (box.left & 1) != 0, (box.top & 1) != 0
    dx = (left << 4) + 8 - shape.x[2]
    dy = (top << 4) + 8 - shape.y[2]
    store(group.place, (left | (top << 8) | lanes | reverse).to_float(f32))
    store(group.dx, dx.to_float(f32) * 0.0625)
    store(group.dy, dy.to_float(f32) * 0.0625)
    store(group.width, box.right - left)
    store(group.height, box.bottom - top)
    everywhere = const(_i64x8, -1)
    first_columns = const(_i64x8, without(COLUMNS_BELOW[1], 0))
    store(group.first_columns, select(odd_x, first_columns, everywhere))
    store(group.first_rows, select(odd_y, const(_i64x8, without(ROWS_BELOW[1], 1)), everywhere))
    origins = (
        (batch.origins.x2, shape.x[2]),
        (batch.origins.y2, shape.y[2]),
        (batch.origins.number, load(_i32x8, waiting.number)),
    )
    for place, value in origins:
        store(place + slot.zext(i64), value)

    sign = select(shape.area < 0.0, everything, const(_i32x8, 0))
    for side in range(CORNERS):
        a, b = ((shape.x[k], shape.y[k]) for k in (side, (side + 1) % CORNERS))
        edge = (((b[0] - a[0]) ^ sign) - sign, ((b[1] - a[1]) ^ sign) - sign)
        set_edge(group, side, edge, a, (left, top), raster)

    x02, x12, y02, y12 = shape.differences
    scale = const(f64, 16.0) / shape.area
    weights = [difference * scale for difference in (y12, 0.0 - y02, 0.0 - x12, x02)]
    set_planes(batch, params, source.vertices, words, flat_words, weights)


def set_edge(
    group: TriangleGroup, number: int, edge: tuple[Value, Value], a: tuple[Value, Value],
    start: tuple[Value, Value], raster: Raster,
) -> None:  # fmt: skip
    """Eight edges with direction `edge` from `a`, as `setup.oriented_edge` makes one."""
    dx, dy = edge
    fx, fy = dx.to_float(f64), dy.to_float(f64)
    horizontal = (dx > 0) if raster.top_left else (dx < 0)
    inclusive = (dy < 0) | ((dy == 0) & horizontal)
    bias = select(inclusive, const(_f64x8, 0.0), const(_f64x8, -1.0))
    values: list[Value] = []
    for px, py in raster.points:
        at_sample = fx * (py - a[1]).to_float(f64) - fy * (px - a[0]).to_float(f64)
        value = floor_((at_sample + bias) * 0.0625)
        value = fmin_(fmax_(value, float(-EDGE_LIMIT)), float(EDGE_LIMIT))
        values.append(value._convert("fptosi", _i32x8))
    for k, value in enumerate(values[1:]):
        set_corner(group.deltas, value - values[0], number * MAX_DELTAS + k)
    set_corner(group.edge_start, values[0] + start[1] * dx - start[0] * dy, number)
    set_corner(group.step_x, -dy, number)
    set_corner(group.step_y, dx, number)
    set_corner(group.right, (-dy) * BLOCK, number)
    set_corner(group.down, dx * BLOCK, number)


_f32x8 = vec(f32, GROUP_SIZE)


@staged
def set_planes(
    batch: TriangleBatch,
    params: DrawParams,
    vertices: Value,
    words: list[Value],
    flat_words: Value,
    weights: list[Value],
) -> None:
    """Planes relative to vertex 2. `words`, `flat_words`: pointers to eight offsets each, from
    `vertices` to word 0 of a corner; `weights` (f64, 1 / pixel): y1 - y2, y2 - y0, x2 - x1,
    x0 - x2 over the doubled area.
    """
    draw = batch.draw
    slot = (batch.group.slot * (4 * GROUP_SIZE)).zext(i64)
    place = draw.planes + slot
    z = rows(vertices, words, DEPTH * ROW_BYTES)
    w = rows(vertices, words, RECIPROCAL_W * ROW_BYTES)
    depths, reciprocals = [[value.fpext(f64) for value in three] for three in (z, w)]
    a, b = plane(weights, *(depths[k] - depths[2] for k in (0, 1)))
    set_plane(place, a, b, number(z[2]))
    low, high = fmin_(fmin_(z[0], z[1]), z[2]), fmax_(fmax_(z[0], z[1]), z[2])
    set_depths(batch, params, slot, low, high)
    if (draw.options & OPTION_DEPTH_OFFSET) != 0:
        store(batch.origins.z_offset + slot, depth_offset(draw, params, a, b, high))
    odd = is_nan(a + b)
    a, b = plane(weights, *(reciprocals[k] - reciprocals[2] for k in (0, 1)))
    set_plane(place + PLANE_ROW, a, b, number(w[2]))
    odd = odd | is_nan(a + b)
    row, end, flat = draw.first_row, draw.end_row, draw.flat
    place = place + 2 * PLANE_ROW
    while row < end:
        if (flat & 1) != 0:
            store(place + 2 * PLANE_PART, lanes(i32, vertices + row, flat_words))
        else:
            x = rows(vertices, words, row)
            wide = [value.fpext(f64) for value in x]
            a, b = plane(weights, *((wide[k] - wide[2]) * reciprocals[k] for k in (0, 1)))
            set_plane(place, a, b, number(x[2]))
            odd = odd | is_nan(a + b + x[2])
        place = place + PLANE_ROW
        row = row + ROW_BYTES
        flat = flat.shr(1)
    batch.result.suspects = batch.result.suspects | mask_bits(odd)


def rows(vertices: Value, words: list[Value], row: Value | int) -> list[Value]:
    """A row of the three vertices, as floats."""
    return [lanes(f32, vertices + row, place) for place in words]


def lanes(kind: Type, base: Value, offsets: Value) -> Value:
    """The values at eight offsets, which are in memory.

    Single loads are quicker than the gather instruction, and have no use for a vector of offsets.
    """
    values = [load(kind, base + load(i64, offsets + 8 * lane)) for lane in range(GROUP_SIZE)]
    result = splat(values[0], GROUP_SIZE)
    for lane, value in enumerate(values[1:], 1):
        result = result.insert(lane, value)
    return result


def plane(weights: list[Value], q0: Value, q1: Value) -> tuple[Value, Value]:
    """Slopes of what differs from vertex 2 by q0 at vertex 0 and q1 at vertex 1."""
    a = q0 * weights[0] + q1 * weights[1]
    b = q0 * weights[2] + q1 * weights[3]
    return a.fptrunc(f32), b.fptrunc(f32)


def set_plane(place: Value, a: Value, b: Value, c: Value) -> None:
    """Writes eight planes."""
    for part, value in enumerate((a, b, c)):
        store(place + PLANE_PART * part, value)


def set_depths(batch: TriangleBatch, params: DrawParams, slot: Value, low: Value, high: Value) -> None:
    """The range of Zs, what it is in 24 bits, and where the Z planes (record 104) may cut it."""
    inside = (low >= splat(params.z_min, GROUP_SIZE)) & (high <= splat(params.z_max, GROUP_SIZE))
    batch.group.clipped_lanes = mask_bits(~inside)
    origins = batch.origins
    store(origins.z_low + slot, low)
    store(origins.z_high + slot, high)
    for place, bound in ((origins.z_first, low), (origins.z_last, high)):
        # Rounding keeps order: clamping before or after the product is the same. 2: no overflow.
        scaled = fmin_(fmax_(bound, 0.0), 2.0) * splat(batch.draw.depth_scale, GROUP_SIZE)
        store(place + slot, fmin_(scaled, float(Z_MAX)))


def depth_offset(draw: BatchDraw, params: DrawParams, a: Value, b: Value, high: Value) -> Value:
    """As `primitives.depth_offset`, of eight triangles."""
    by_depth = splat((draw.options & OPTION_FLOAT_UNIT) != 0, GROUP_SIZE)
    scale = splat(draw.depth_scale, GROUP_SIZE)
    unit = select(by_depth, float_unit(high, scale), const(_f32x8, 1.0))
    factor, units = (splat(v, GROUP_SIZE) for v in (params.depth_factor, params.depth_units))
    return offset_of_slopes(factor, units, a, b, unit, scale)
