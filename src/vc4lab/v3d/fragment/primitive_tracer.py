"""What points, lines and trapezoids share when they are traced: their draw, depths and blocks.

Source: hardware reference 7.2-7.6.
"""

from __future__ import annotations

from vc4lab.simd import Value, f32, fmax_, fmin_, load
from vc4lab.v3d.fragment.block import BlockShader
from vc4lab.v3d.pse.coverage import for_each_block
from vc4lab.v3d.pse.samples import raster_of
from vc4lab.v3d.pse.setup import (
    DEPTH,
    ROW_BYTES,
    Box,
    Planes,
    Primitive,
    Vertex,
    VertexSource,
    depth_scale,
    float_unit,
    has_float_unit,
    offset_of_slopes,
)


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
