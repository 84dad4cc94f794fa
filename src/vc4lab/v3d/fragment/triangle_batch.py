"""The triangles of a list: block by block, as the setup of triangles hands them over."""

from __future__ import annotations

from vc4lab.simd.floatmode import call_pointer
from vc4lab.simd.kernel import staged
from vc4lab.simd.members import f32, f32x16, i1, i16, i32, i64, ptr
from vc4lab.simd.memory import alloca, load, var
from vc4lab.simd.value import Value, const, select, splat
from vc4lab.v3d.fragment.block import BlockShader, clamps_scaled
from vc4lab.v3d.fragment.early_depth import rejects_early
from vc4lab.v3d.pse import batch as tb
from vc4lab.v3d.pse.batch import BlockPlace, CoveredBlock, TriangleBatch, block_bytes
from vc4lab.v3d.pse.coverage import PixelBlock
from vc4lab.v3d.pse.setup import (
    POINT_SIZE,
    ROW_BYTES,
    Box,
    Planes,
    Primitive,
    clips_quads,
    depth_scale,
    has_float_unit,
    position_rows,
    raster_of,
    separate_samples,
)
from vc4lab.v3d.state.frame_mode import LANE_X, LANE_Y
from vc4lab.v3d.state.tile_context import STATUS_NEEDS_SETUP, TRIANGLE_SETUPS, FragmentKey

NO_LANE = -1

INITIAL_DEPTH_LOOKS = 12
LOOKS_PER_REJECTION = 8
"""Blocks of a draw that are depth-tested early in each tile, and how many more after each that
fails: the test costs some nanoseconds.
"""


class TriangleTracer:
    """Traces the drawing of a list of triangles."""

    def __init__(self, shader: BlockShader) -> None:
        self.shader = shader
        self.key = shader.constants.key
        self.flat = [bool(self.key.flat_flags >> k & 1) for k in range(self.key.n_varyings)]
        self.others = len(raster_of(self.key).points) - 1
        """Samples with a coverage of their own, besides the first."""
        self.step = block_bytes(self.others + 1)
        self.rows = self.key.first_varying + self.key.n_varyings
        self.batch = TriangleBatch.at(alloca(TriangleBatch.size))
        self.planes = alloca((tb.FIXED_PLANES + self.key.n_varyings) * tb.PLANE_ROW)
        self.blocks = alloca(tb.LIST_BYTES)
        self.rejects_early = rejects_early(self.key, shader.constants.program)
        self.looks = var(i32, INITIAL_DEPTH_LOOKS)


def setup_number(key: FragmentKey) -> int:
    """Which element of `TileContext.setups` a draw calls."""
    return TRIANGLE_SETUPS.index((key.index_bits, separate_samples(key)))


@staged
def setup_function(tracer: TriangleTracer) -> Value:
    """The compiled setup of the draw's kind of list; 0, and a status, if there is none yet."""
    number = setup_number(tracer.key)
    function = load(ptr, tracer.shader.context.setups + 8 * number)
    if function == 0:
        tracer.shader.status.set(STATUS_NEEDS_SETUP + number)
    return function


def fill(tracer: TriangleTracer, function: Value, batch: TriangleBatch) -> None:
    """Calls the setup of the next blocks of the list, and counts."""
    shader = tracer.shader
    places = (shader.context.pointer, shader.params.pointer, batch.pointer)
    call_pointer(function, None, (ptr, ptr, ptr), *places, float_mode="keep")
    result = batch.result
    shader.suspect(result.suspects != 0)
    shader.count("primitives_reversed", result.turned)
    if tracer.key.counting:
        shader.count("primitives_valid", result.valid)
        shader.count("primitives_empty", result.valid - result.drawn)


@staged
def draw_triangles(tracer: TriangleTracer, address: Value) -> Value:
    """Draws the triangles of the list at `address`; the decoder's last status."""
    key, shader = tracer.key, tracer.shader
    batch = tracer.batch
    open_batch(tracer, address)
    function = setup_function(tracer)
    more = function != 0
    steps = DepthSteps(tracer) if key.multisample else None
    while more:
        fill(tracer, function, batch)
        more = batch.result.more != 0
        shader.count("quads_valid", batch.result.quads)
        if steps is not None:
            steps.invalidate()
        if shader.recorder is not None:
            shader.recorder.next_batch()
        end = batch.result.end.zext(i64)
        place = const(i64, 0)
        while place < end:
            listed = CoveredBlock.at(tracer.blocks + place, 1)
            where = BlockPlace.of(listed)
            if shader.recorder is not None:
                position = load(i32, batch.origins.number + where.lane.zext(i64))
                shader.recorder.of_lane(where.lane, position)
            if tracer.rejects_early:
                shade_seen(tracer, steps, listed, where)
            else:
                shader.shade_listed(*read_listed(tracer, steps, listed, where))
            place = place + tracer.step
            running = shader.running()
            if running is not None:
                if ~running:
                    place = end
                    more = const(i1, False)
    return batch.decoder.status


def read_listed(
    tracer: TriangleTracer, steps: DepthSteps | None, listed: CoveredBlock, where: BlockPlace
) -> tuple[Primitive, PixelBlock]:
    """A block of the list and its triangle as the shader takes them."""
    primitive = read_triangle(tracer, where)
    if steps is not None:
        primitive.z_steps = steps.of(where.lane, primitive)
    return primitive, read_block(tracer, primitive, listed, where)


@staged
def shade_seen(
    tracer: TriangleTracer, steps: DepthSteps | None, listed: CoveredBlock, where: BlockPlace
) -> None:
    """Shades a block unless its depth test certainly rejects all of it.

    It is read once more for the program: code generation goes by basic blocks, and would hold every
    number that is read before the branch in a register of its own.
    """
    shader = tracer.shader
    seen = const(i1, True)
    left = tracer.looks.get()
    if left > 0:
        seen = shader.may_pass(*read_listed(tracer, steps, listed, where))
        tracer.looks.set(left + select(seen, const(i32, -1), const(i32, LOOKS_PER_REJECTION)))
    if seen:
        shader.shade_listed(*read_listed(tracer, steps, listed, where))


class DepthSteps:
    """`BlockShader.depth_steps` of the triangle whose blocks are being shaded."""

    def __init__(self, tracer: TriangleTracer) -> None:
        self.shader = tracer.shader
        self.lane = var(i32, NO_LANE)
        self.cells = [var(i32, 0) for _ in range(self.shader.layout.samples)]

    def invalidate(self) -> None:
        """The next block is of another triangle."""
        self.lane.set(NO_LANE)

    def of(self, lane: Value, primitive: Primitive) -> list[Value]:
        """The steps of a block's triangle."""
        _renew(self, lane, primitive)
        return [cell.get() for cell in self.cells]


@staged
def _renew(steps: DepthSteps, lane: Value, primitive: Primitive) -> None:
    if lane != steps.lane.get():
        steps.lane.set(lane)
        for cell, value in zip(steps.cells, steps.shader.depth_steps(primitive) or [], strict=True):
            cell.set(value)


def open_batch(tracer: TriangleTracer, address: Value) -> None:
    """Puts the `TriangleBatch` at the beginning of a list."""
    key, rows = tracer.key, tracer.rows
    decoder, draw = tracer.batch.decoder, tracer.batch.draw
    decoder.fresh = 1
    decoder.cursor = address
    decoder.status = 0
    options = tb.OPTION_DEPTH_OFFSET if key.depth_offset else 0
    if has_float_unit(key.unknowns):
        options |= tb.OPTION_FLOAT_UNIT
    if clips_quads(key.unknowns):
        options |= tb.OPTION_CLIPPED_QUADS
    draw.options = options
    draw.depth_scale = depth_scale(key.unknowns)
    draw.flat = key.flat_flags
    draw.clip_scratch = alloca(rows * ROW_BYTES + 64)
    draw.planes, draw.blocks = tracer.planes, tracer.blocks
    draw.first_row, draw.end_row = key.first_varying * ROW_BYTES, rows * ROW_BYTES
    if key.index_bits == 32:
        draw.scratch = position_rows(max(rows, POINT_SIZE + 1))


def read_triangle(tracer: TriangleTracer, where: BlockPlace) -> Primitive:
    """The triangle of a block in the list, without its box, edges and reference point."""
    key = tracer.key
    lane = where.lane.zext(i64)
    planes, origins = tracer.planes + lane, tracer.batch.origins

    def member(place: Value) -> Value:
        return load(f32, place + lane)

    def part(row: int, number: int) -> Value:
        return load(f32, planes + (row * tb.PLANE_ROW + number * tb.PLANE_PART))

    varyings = Planes([], [], [], tracer.flat)
    for k, flat in enumerate(tracer.flat):
        row = tb.FIXED_PLANES + k
        varyings.a.append(None if flat else part(row, 0))
        varyings.b.append(None if flat else part(row, 1))
        varyings.c.append(part(row, 2))
    scaled = clamps_scaled(key)
    none = const(i32, 0)
    depth, reciprocal = ((part(row, 0), part(row, 1), part(row, 2)) for row in range(tb.FIXED_PLANES))
    return Primitive(
        Box(none, none, none, none), [], none, none,
        depth, reciprocal, varyings,
        member(origins.z_first if scaled else origins.z_low),
        member(origins.z_last if scaled else origins.z_high),
        member(origins.z_offset) if key.depth_offset else None,
        where.reverse, z_scaled=scaled,
    )  # fmt: skip


def read_block(
    tracer: TriangleTracer, primitive: Primitive, listed: CoveredBlock, where: BlockPlace
) -> PixelBlock:
    """A block of the list as the shader takes it."""
    samples = [load(i16, listed.others + 2 * k) for k in range(tracer.others)]
    dx = const(f32x16, [float(x) for x in LANE_X]) + splat(listed.dx)
    dy = const(f32x16, [float(y) for y in LANE_Y]) + splat(listed.dy)
    # bits above the 16 do not matter
    covered = load(i32, listed.pointer + CoveredBlock.covered.offset)
    bits = [flags.zext(i32) for flags in (listed.flags, *samples)]
    return PixelBlock(where.x, where.y, covered, bits, dx, dy, tracer.shader.row(primitive, dy))
