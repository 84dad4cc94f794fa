"""Primitive setup (PSE): where vertices are, what clip records replace, exact edges, boxes.

For lines, points and trapezoids, whose setup is traced into the tile function of a draw, and what
they have in common with triangles (`triangle_group.py`). Positions are 12.4 fixed point relative to
the tile's first pixel; an edge is kept as an integer E(x, y) that is >= 0 exactly at the pixel
centres the fill rule gives to the primitive. Source: hardware reference 7.2-7.6.

The four points of a pixel in multisample frames are not documented; `vc4lab unknowns` lists the choices.
Source: hardware reference 7.3, 7.5.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from vc4lab.memory.native import host
from vc4lab.simd.kernel import staged
from vc4lab.simd.members import f32, i32, i64
from vc4lab.simd.memory import Cell, alloca, load, opaque, prefetch, store
from vc4lab.simd.types import vec
from vc4lab.simd.value import Value, const, select
from vc4lab.simd.vector import fabs_, fmax_, max_, min_, umin
from vc4lab.v3d.state.tile_context import DrawParams, TileContext
from vc4lab.v3d.tile_lists.primitive_decoder import CLIP_ENTRY_BYTES, Decoder
from vc4lab.v3d.unknowns import Unknowns

if TYPE_CHECKING:
    from vc4lab.v3d.state.tile_context import FragmentKey

PATTERNS: dict[str, tuple[tuple[int, int], ...]] = {
    "rotated": ((3, 1), (7, 3), (1, 5), (5, 7)),
    "mirrored": ((5, 1), (1, 3), (7, 5), (3, 7)),
    "grid": ((2, 2), (6, 2), (2, 6), (6, 6)),
}
"""Positions of samples 0 to 3 in eighths of a pixel from its corner, by choice of the unknown."""

PATH_PATTERNS: dict[str, tuple[tuple[int, int], ...]] = {
    "grid": tuple((4 * x + 2, 4 * y + 2) for y in range(4) for x in range(4)),
    "rooks": tuple(((5 * row + 2) % 16, row) for row in range(16)),
}
"""Positions of the 16 samples of a path in 1/16 pixel, by choice of the unknown."""

CENTRE = 8
"""The pixel centre in 1/16 pixel."""


@dataclass(frozen=True)
class Raster:
    """How coverage is decided: the fill rule, and points (1/16 pixel) at which it is evaluated."""

    top_left: bool = True
    points: tuple[tuple[int, int], ...] = ((CENTRE, CENTRE),)

    @property
    def lowest(self) -> int:
        """Smallest coordinate of a sample inside its pixel."""
        return min(min(point) for point in self.points)

    @property
    def highest(self) -> int:
        """Largest coordinate of a sample inside its pixel."""
        return max(max(point) for point in self.points)


def sample_points(key: FragmentKey) -> tuple[tuple[int, int], ...]:
    """The place of each sample of the frame, in 1/16 pixel."""
    return _pattern(key.unknowns) if key.multisample else ((CENTRE, CENTRE),)


def _pattern(unknowns: Unknowns) -> tuple[tuple[int, int], ...]:
    return tuple((2 * x, 2 * y) for x, y in PATTERNS[unknowns["sample_positions"]])


def separate_samples(key: FragmentKey) -> bool:
    """Whether samples have a coverage of their own; without oversampling the centre's counts."""
    return key.multisample and (key.oversample or key.unknowns["ms_no_oversample"] == "samples")


def raster(unknowns: Unknowns, separate: bool) -> Raster:
    """How primitives are rasterised, with coverage at the samples or at the centre."""
    return _filled(unknowns, _pattern(unknowns) if separate else ((CENTRE, CENTRE),))


def _filled(unknowns: Unknowns, points: tuple[tuple[int, int], ...]) -> Raster:
    """Coverage at these points, and which edges of a triangle belong to it."""
    return Raster(unknowns["fill_rule"] == "top-left", points)


def raster_of(key: FragmentKey) -> Raster:
    """How a draw is rasterised."""
    if key.coverage:
        points = PATH_PATTERNS[key.unknowns["coverage_samples"]]
        if key.coverage_points < len(points):
            points = _pattern(key.unknowns) if key.coverage_points > 1 else ((CENTRE, CENTRE),)
        return _filled(key.unknowns, points)
    return raster(key.unknowns, separate_samples(key))


ROW_BYTES = 64
"""Distance of two words of a vertex in the shaded vertex buffer (16 vertices side by side)."""

POSITION, DEPTH, RECIPROCAL_W, POINT_SIZE = 0, 1, 2, 3
"""Words of a shaded vertex in PSE form."""

EDGE_LIMIT = 1 << 28
"""Edge values at a tile's origin are clamped to this: no step inside a tile is larger than 2^25."""


@dataclass
class Vertex:
    """A fetched vertex: pointer to its words (one row apart) and its position in the tile."""

    words: Value
    x: Value
    y: Value


@dataclass
class Edge:
    """E(x, y) = value + x * step_x + y * step_y for pixel (x, y) of the tile; inside if >= 0.

    `value` is that of sample 0 (or the centre); `deltas` lead from it to the other samples.
    """

    value: Value
    step_x: Value
    step_y: Value
    deltas: list[Value] = field(default_factory=list)


@dataclass
class Planes:
    """Attribute planes relative to a reference point: A * (x - x0) + B * (y - y0), and C there."""

    a: list[Value | None]
    b: list[Value | None]
    c: list[Value]
    flat: list[bool]
    """Varyings that reach the program as the vertex has them, bit by bit (others are numbers)."""


@dataclass
class Box:
    """Half-open pixel rectangle of the tile."""

    left: Value
    top: Value
    right: Value
    bottom: Value


@dataclass
class Primitive:
    """A primitive after setup. (x0, y0) is the planes' reference point, 12.4 in the tile."""

    box: Box
    edges: list[Edge]
    x0: Value
    y0: Value
    depth: tuple[Value | None, Value | None, Value]
    reciprocal_w: tuple[Value | None, Value | None, Value]
    varyings: Planes
    z_low: Value
    z_high: Value
    z_offset: Value | None
    reverse: Value
    z_steps: list[Value] | None = None
    z_scaled: bool = False
    """`z_low` and `z_high` are 24-bit depths (as floats), not Zs: see `block.clamps_scaled`."""


@dataclass
class VertexSource:
    """Finds a draw's vertices and makes positions tile-relative; loaded once per list.

    `vertices` and `address` are the same, as pointer and as number.
    """

    vertices: Value
    address: Value
    pitch: Value
    first: Value
    limit: Value
    offset_x: Value
    offset_y: Value

    @classmethod
    def load(cls, context: TileContext, params: DrawParams) -> VertexSource:
        """Reads a `TileContext` and a `DrawParams`."""
        return cls(
            params.vertices,
            load(i64, params.pointer + DrawParams.vertices.offset),
            params.batch_pitch.zext(i64),
            params.first_vertex,
            params.vertex_count - 1,
            params.viewport_x - (context.tile_x << 4),
            params.viewport_y - (context.tile_y << 4),
        )

    def words(self, index: Value) -> Value:
        """Pointer to word 0 of a vertex; an index outside the shaded range is clamped into it."""
        slot = umin(index - self.first, self.limit) + self.first
        return self.vertices + slot.shr(4).zext(i64) * self.pitch + ((slot & 15) << 2)

    def prefetch(self, index: Value) -> None:
        """The position of a vertex is to be read soon; any index will do."""
        prefetch(self.vertices + index.shr(4).zext(i64) * self.pitch)

    def locate(self, cells: Sequence[Cell]) -> list[Value]:
        """Pointers to word 0 of the vertices that a decoder's cells name."""
        return [self.words(cell.get()) for cell in cells]

    def vertex(self, words: Value) -> Vertex:
        """The vertex at `words`; position relative to the tile's first pixel, 12.4."""
        packed = load(i32, words)
        x = ((packed << 16) >> 16) + self.offset_x
        return Vertex(words, x, (packed >> 16) + self.offset_y)


def window(context: TileContext, params: DrawParams) -> Box:
    """The pixels of the tile that a draw may touch: clip window and frame, relative to the tile."""
    x, y = context.tile_x, context.tile_y
    right = min_(min_(params.clip_right, context.frame_width) - x, context.tile_width)
    top = min_(min_(params.clip_top, context.frame_height) - y, context.tile_height)
    return Box(max_(params.clip_left - x, 0), max_(params.clip_bottom - y, 0), right, top)


VG_DEPTH, VG_RECIPROCAL_W = 0.5, 1.0
"""Zs and 1/Wc of vertices that are only a position (VG mode, x/y lists)."""


def position_rows(rows: int) -> Value:
    """Memory for the words of vertices that are only a position, in `rows` rows."""
    scratch = alloca(rows * ROW_BYTES + 64)
    for row in range(rows):
        value = {DEPTH: VG_DEPTH, RECIPROCAL_W: VG_RECIPROCAL_W}.get(row, 0.0)
        store(scratch + row * ROW_BYTES, const(vec(f32, 4), value))
    return scratch


@dataclass
class PositionSource(VertexSource):
    """Vertices whose position stands in the list itself: no vertex buffer, varyings are zero."""

    scratch: Value

    @classmethod
    def open(cls, context: TileContext, params: DrawParams, rows: int) -> PositionSource:
        """As `load`; a vertex has `rows` words, of which only the first differs from 0, .5, 1."""
        base = VertexSource.load(context, params)
        return cls(**vars(base), scratch=position_rows(rows))

    def locate(self, cells: Sequence[Cell]) -> list[Value]:
        """Puts the packed coordinates in their places."""
        pointers = [self.scratch + 4 * k for k in range(len(cells))]
        for pointer, cell in zip(pointers, cells, strict=True):
            store(pointer, cell.get())
        return pointers


@staged
def substitute_clipped(
    memory: Value,
    scratch: Value,
    record: Value,
    flags: Value,
    originals: Sequence[Value],
    rows: Sequence[Value],
    weights: str,
) -> None:
    """Builds the vertices that a clip record replaces in `scratch`, vertex k at word k of each row.

    Positions, Zs and 1/Wc come from the record; varyings are weighted sums of the original ones.
    `rows`: offsets in bytes of the first varying and of what follows the last (i32). Unflagged
    vertices are not written. `weights`: the unknown "clip_weights"; "projected" ones are for
    varyings divided by Wc.
    """
    first, end = rows
    entry = record
    for k in (0, 1, 2)[: len(originals)]:
        if (flags.shr(k) & 1) != 0:
            pointer = host(memory, entry)
            store(scratch + 4 * k, load(i32, pointer))
            store(scratch + (ROW_BYTES + 4 * k), load(i32, pointer + 4))
            store(scratch + (2 * ROW_BYTES + 4 * k), load(i32, pointer + 8))
            row = first
            while row < end:
                total = const(f32, 0.0)
                for number, original in enumerate(originals):
                    weight = load(f32, pointer + (12 + 4 * number))
                    if weights == "projected":
                        weight = weight * load(f32, original + RECIPROCAL_W * ROW_BYTES)
                    total = total + weight * load(f32, original + row)
                if weights == "projected":
                    total = total / load(f32, pointer + 8)
                store(scratch + row + 4 * k, total)
                row = row + ROW_BYTES
            entry = entry + CLIP_ENTRY_BYTES


@staged
def fetch(
    source: VertexSource, memory: Value, decoder: Decoder, count: int, rows: Sequence[int],
    weights: str,
) -> tuple[list[Value], Value]:  # fmt: skip
    """Pointers to the words of a primitive's `count` vertices, and to the provoking vertex's own.

    Clip substitution is done, but flat varyings keep the values of the original last vertex.
    `rows` = (first varying's row, end row). `weights`: as for `substitute_clipped`.
    """
    cells = (decoder.i0, decoder.i1, decoder.i2)[:count]
    original = source.locate(cells)
    scratch = alloca(rows[1] * ROW_BYTES + 64)
    words = list(original)
    flags = decoder.flags.get()
    if flags != 0:
        offsets = [const(i32, row * ROW_BYTES) for row in rows]
        record = decoder.clip_record.get()
        substitute_clipped(memory, scratch, record, flags, original, offsets, weights)
        words = [select((flags.shr(k) & 1) != 0, scratch + 4 * k, original[k]) for k in range(count)]
    return words, original[count - 1]


@staged
def oriented_edge(a: Vertex, b: Vertex, sign: Value, raster: Raster) -> Edge:
    """The edge from `a` to `b`; `sign` is 0, or -1 if the primitive winds the other way.

    Exact for all 12.4 positions: the product is 64 bits wide and only then divided by the 16
    subpixels of a step, rounded down, which keeps the sign at every sample.
    """
    dx = ((b.x - a.x) ^ sign) - sign
    dy = ((b.y - a.y) ^ sign) - sign
    horizontal = (dx > 0) if raster.top_left else (dx < 0)
    inclusive = (dy < 0) | ((dy == 0) & horizontal)
    bias = select(inclusive, const(i64, 0), const(i64, -1))
    values = []
    for x, y in raster.points:
        at_sample = dx.sext(i64) * (y - a.y).sext(i64) - dy.sext(i64) * (x - a.x).sext(i64)
        value = (at_sample + bias) >> 4
        value = min_(max_(value, const(i64, -EDGE_LIMIT)), const(i64, EDGE_LIMIT))
        values.append(value.trunc(i32))
    return Edge(values[0], -dy, dx, [value - values[0] for value in values[1:]])


@staged
def bounding_box(vertices: Sequence[Vertex], window: Box, raster: Raster) -> Box:
    """Pixels with a sample that can lie inside the convex hull of `vertices`, inside `window`."""
    left, right = vertices[0].x, vertices[0].x
    top, bottom = vertices[0].y, vertices[0].y
    for vertex in vertices[1:]:
        left, right = min_(left, vertex.x), max_(right, vertex.x)
        top, bottom = min_(top, vertex.y), max_(bottom, vertex.y)
    up, down = 15 - raster.highest, raster.lowest
    return Box(
        max_((left + up) >> 4, window.left),
        max_((top + up) >> 4, window.top),
        min_(((right - down) >> 4) + 1, window.right),
        min_(((bottom - down) >> 4) + 1, window.bottom),
    )


def number(value: Value) -> Value:
    """A float word as the interpolator takes it: denormals and -0 become +0."""
    return value + opaque(value.type, 0.0)


EXPONENT, ONE = 0x7F800000, 0x3F800000
"""Exponent field of a float, and 1.0."""


def rounds_depth(unknowns: Unknowns) -> bool:
    """Whether depths are rounded to the nearest step, not down."""
    return unknowns["depth_rounding"] == "nearest"


def clips_quads(unknowns: Unknowns) -> bool:
    """Whether a quad is left if the Z planes (record 104) leave one of its pixels."""
    return unknowns["z_clip_pixels"] == "quads"


def has_float_unit(unknowns: Unknowns) -> bool:
    """Whether the unit of the depth offset depends on the depth."""
    return unknowns["depth_offset_unit"] == "float"


def depth_scale(unknowns: Unknowns) -> float:
    """Steps of the 24-bit depth in a Zs of 1.0; 2^24 saturates there."""
    return 2.0**24 if unknowns["depth_rounding"] == "times_2_24" else 2.0**24 - 1


def float_unit(high: Value, scale: Value | float) -> Value:
    """A unit of the depth offset that is one step of a float as large as the largest Zs."""
    power = min_(high.bitcast(i32) & EXPONENT, ONE).bitcast(f32)  # 1.0, 0.5, 0.25 ...
    return power * 2.0**-23 * scale


def offset_of_slopes(
    factor: Value, units: Value, a: Value, b: Value, unit: Value | float, scale: Value | float
) -> Value:
    """Offset of the 24-bit depth: factor * steepest slope + units (record 101)."""
    slope = fmax_(fabs_(a), fabs_(b)) * scale
    return factor * slope + units * unit
