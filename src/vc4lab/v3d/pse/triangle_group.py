"""Eight triangles that are drawn: their boxes, exact edges and where their planes are counted from.

Everything is a vector with a lane for each triangle. Source: hardware reference 7.2-7.5.
"""

from __future__ import annotations

from dataclasses import dataclass

from vc4lab.simd import (
    Type,
    Value,
    const,
    f32,
    f64,
    floor_,
    fmax_,
    fmin_,
    i32,
    i64,
    iota,
    load,
    max_,
    min_,
    select,
    splat,
    store,
    vec,
)
from vc4lab.v3d.pse.batch import (
    CORNERS,
    GROUP_SIZE,
    MAX_DELTAS,
    PLACE_REVERSE,
    WAITING_SIZE,
    TriangleBatch,
    TriangleGroup,
)
from vc4lab.v3d.pse.coverage import COLUMNS_BELOW, ROWS_BELOW
from vc4lab.v3d.pse.samples import Raster
from vc4lab.v3d.pse.setup import (
    EDGE_LIMIT,
    Box,
    VertexSource,
)
from vc4lab.v3d.pse.triangle_blocks import FOUR, four_words
from vc4lab.v3d.pse.triangle_planes import set_planes
from vc4lab.v3d.state.render_state import (
    CLOCKWISE_IS_FORWARD,
)
from vc4lab.v3d.state.tile_context import DrawParams
from vc4lab.v3d.state.tile_layout import BLOCK

_i32x8, _i64x8, _f64x8 = vec(i32, GROUP_SIZE), vec(i64, GROUP_SIZE), vec(f64, GROUP_SIZE)


def corner(place: Value, number: int = 0, kind: Type = _i32x8) -> Value:
    """All lanes of corner (edge) `number` of a member, which stands at `place`."""
    return load(kind, corner_ptr(place, number, kind))


def set_corner(place: Value, value: Value, number: int = 0) -> None:
    """Writes all lanes of corner `number` of a member."""
    store(corner_ptr(place, number, value.type), value)


def corner_ptr(place: Value, number: int, kind: Type = _i32x8) -> Value:
    """Where all lanes of corner `number` of a member are."""
    return place + number * GROUP_SIZE * kind.elem.size


def queue_ptr(place: Value, number: int, kind: Type = _i32x8) -> Value:
    """The same of a member of `WaitingTriangles`."""
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
    reverse = select(
        shape.forward(params.facing), const(_i32x8, 0), const(_i32x8, 1 << PLACE_REVERSE)
    )
    box = shape.box(window, raster)
    left, top = box.left & ~1, box.top & ~1
    slot = group.slot * (4 * GROUP_SIZE)
    lanes = const(_i32x8, [4 * lane << 16 for lane in range(GROUP_SIZE)]) + splat(
        slot << 16, GROUP_SIZE
    )
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
    for place, value in ((batch.origins.x2, shape.x[2]), (batch.origins.y2, shape.y[2])):
        store(place + slot.zext(i64), value)

    sign = select(shape.area < 0.0, everything, const(_i32x8, 0))
    for number in range(CORNERS):
        a, b = ((shape.x[k], shape.y[k]) for k in (number, (number + 1) % CORNERS))
        edge = (((b[0] - a[0]) ^ sign) - sign, ((b[1] - a[1]) ^ sign) - sign)
        set_edge(group, number, edge, a, (left, top), raster)

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
