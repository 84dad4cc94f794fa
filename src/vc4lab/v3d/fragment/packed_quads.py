"""Quads of several triangles share a run of the program: for small triangles and long programs.

A 4x4 block holds four quads, of which a small triangle covers one or two; the program would mostly
compute what is thrown away. Here the covered quads of all triangles wait in a queue, their
triangles' planes in records, and any four of them are shaded together, in their order, or two times
four at once. Two quads at the same place may go together if they have no pixel in common: each is
written by itself.

A quad is a word: its offset in the tile buffer in 15:0, covered pixels in 19:16, those between the
Z planes in 23:20. Beside it stands the record of its triangle, in bytes from the first record.
"""

from __future__ import annotations

from typing import Any

from vc4lab.optimisations import PACKED_QUADS, PAIRED_BATCHES
from vc4lab.qpu.isa.operations import Signal
from vc4lab.qpu.isa.registers import Read, Write
from vc4lab.qpu.jit.core import looks_back
from vc4lab.qpu.jit.emitter import emit_interleaved
from vc4lab.qpu.program.program import Program
from vc4lab.qpu.run.plan import plan
from vc4lab.simd.kernel import Function, call, staged
from vc4lab.simd.members import f32, i1, i32, i32x16, i64, ptr
from vc4lab.simd.memory import alloca, load, masked_store, store
from vc4lab.simd.struct import Struct
from vc4lab.simd.trace import current
from vc4lab.simd.types import vec
from vc4lab.simd.value import Value, const, select, splat
from vc4lab.simd.vector import iota, mask_bits, popcount_, shuffle
from vc4lab.v3d.fragment.block import BlockShader, clamps_scaled
from vc4lab.v3d.fragment.shader import BlockInputs, DrawConstants, FragmentEnvironment
from vc4lab.v3d.fragment.triangle_batch import (
    NO_LANE,
    TriangleTracer,
    fill,
    open_batch,
    read_triangle,
    setup_function,
)
from vc4lab.v3d.pse.batch import FIXED_PLANES, BlockPlace, CoveredBlock
from vc4lab.v3d.pse.coverage import PixelBlock
from vc4lab.v3d.pse.setup import Box, Planes, Primitive
from vc4lab.v3d.state.frame_mode import QUAD_BYTES, QUAD_ROW_BYTES, SINGLE, TileLayout
from vc4lab.v3d.state.tile_context import DrawParams, FragmentKey, TileContext

QUEUE_LIMIT = 64
"""Quads after which the queue is emptied before the next triangle."""
MAX_QUADS = QUEUE_LIMIT + 4
MAX_RECORDS = QUEUE_LIMIT
"""A triangle in the queue has a quad there."""


class Tail(Struct):
    """The end of a record, after its planes (three floats each)."""

    x0 = i32
    y0 = i32
    z_low = f32
    z_high = f32
    z_offset = f32


def record_bytes(key: FragmentKey) -> int:
    """Size of a triangle's record."""
    return (FIXED_PLANES + key.n_varyings) * 12 + Tail.size


class QuadQueue:
    """The queue of a draw while its triangles are rasterised."""

    def __init__(self, key: FragmentKey) -> None:
        self.size = record_bytes(key)
        self.quads = alloca(MAX_QUADS * 4 + 64)
        self.owners = alloca(MAX_QUADS * 4 + 64)
        self.records = alloca(MAX_RECORDS * self.size + 16)  # read four words at a time

    def write(self, number: Value, primitive: Primitive) -> None:
        """Puts a triangle into record `number`."""
        place = self.records + number * self.size
        planes = primitive.varyings
        attributes = zip(planes.a, planes.b, planes.c, strict=True)
        for k, plane in enumerate([primitive.depth, primitive.reciprocal_w, *attributes]):
            for part, value in enumerate(plane):
                if value is not None:
                    store(place + (12 * k + 4 * part), value)
        tail = Tail.at(place + (self.size - Tail.size))
        tail.x0, tail.y0 = primitive.x0, primitive.y0
        tail.z_low, tail.z_high = primitive.z_low, primitive.z_high
        if primitive.z_offset is not None:
            tail.z_offset = primitive.z_offset

    def push(self, count: Value, record: Value, listed: CoveredBlock, place: BlockPlace) -> Value:
        """Appends the covered quads of a block; the new number of quads."""
        first = SINGLE.even_offset(place.x, place.y)
        covered, flags = listed.covered.zext(i32), listed.flags.zext(i32)
        owner = record * self.size
        for quad in range(4):
            mine = covered.shr(4 * quad) & 15
            offset = first + (quad & 1) * QUAD_BYTES + (quad >> 1) * QUAD_ROW_BYTES
            word = offset | (mine << 16) | ((flags.shr(4 * quad) & 15) << 20)
            store(self.quads + count * 4, word)
            store(self.owners + count * 4, owner)
            count = count + (mine != 0).zext(i32)
        return count


_QUAD_LANES = [lane >> 2 for lane in range(16)]
_LANE_BIT = [1 << (lane & 3) for lane in range(16)]
_LANE_X = [lane & 1 for lane in range(16)]
_LANE_Y = [lane >> 1 & 1 for lane in range(16)]
_i32x4 = vec(i32, 4)
_f32x4 = vec(f32, 4)


class QuadPlaces:
    """The places of four quads: a stand-in for the pointer to a block."""

    def __init__(self, pointers: list[Value]) -> None:
        self.pointers = pointers

    def __add__(self, offset: Any) -> QuadPlaces:
        assert not offset, "one sample, one word"
        return self


class QuadLayout(TileLayout):
    """A tile buffer of which four quads anywhere make a block."""

    def load_block(self, pointer: Any) -> Value:
        quads = [load(_i32x4, place) for place in pointer.pointers]
        halves = [shuffle(quads[k], quads[k + 1], list(range(8))) for k in (0, 2)]
        return shuffle(halves[0], halves[1], list(range(16)))

    def update_block(self, pointer: Any, old: Value, value: Value, active: Value) -> None:
        """Quad by quad: two of them may be the same."""
        for quad, place in enumerate(pointer.pointers):
            lanes = list(range(4 * quad, 4 * quad + 4))
            masked_store(place, shuffle(value, lanes), shuffle(active, lanes))


PACKED = QuadLayout()


def shade_queue(key: FragmentKey, program: Program) -> Function[Any]:
    """Function (context, params, quads, owners, records, count) that shades what is in a queue.

    It returns the status in bits 7:0, and in bits 31:16 lanes with floats that only the exact
    engine knows.
    """

    def body(
        context_pointer: Value, params_pointer: Value, quads: Value, owners: Value,
        records: Value, count: Value,
    ) -> Value:  # fmt: skip
        context = TileContext.at(context_pointer)
        params = DrawParams.at(params_pointer)
        constants = DrawConstants.load(key, program, context, params)
        shader = QuadShader(constants, context, params)
        shade_quads(shader, quads, owners, records, count)
        return shader.status.get() | (mask_bits(shader.wild.get()) << 16)

    return Function((ptr, ptr, ptr, ptr, ptr, i32), i32, body, name="shade_queue")


@staged
def shade_quads(shader: QuadShader, quads: Value, owners: Value, records: Value, count: Value) -> None:
    """Shades up to four quads at a time."""
    number = const(i32, 0)
    while number < count:
        number = number + shader.shade_next(quads, owners, records, number, count)


def different(words: Value, left: Value) -> Value:
    """How many of four quads, from the first on, are there and have no pixel in common."""
    trouble = iota(4) >= splat(left, 4)
    for distance in (1, 2, 3):
        other = shuffle(words, [(lane - distance) % 4 for lane in range(4)])
        same = (((words ^ other) & 0xFFFF) == 0) & ((words & other).shr(16) != 0)
        trouble = trouble | (same & (iota(4) >= distance))
    bits = mask_bits(trouble) | 16
    return popcount_((bits & -bits) - 1)


def signals(program: Program, wanted: tuple[Signal, ...]) -> bool:
    """Whether an instruction has one of these signals."""
    return any(word >> 60 in wanted for word in program.words)


class QuadShader(BlockShader):
    """Traces the shading of four quads of one draw."""

    def shade_next(self, quads: Value, owners: Value, records: Value, number: Value, count: Value) -> Value:
        """Shades some of the quads from `number` on; how many it took."""
        first = load(i32, quads + number * 4) & 0xFFFF, load(i32, owners + number * 4)
        batches = []
        taken = const(i32, 0)
        for _ in range(2 if self.in_pairs() else 1):
            at = (number + taken) * 4
            words, their = load(_i32x4, quads + at), load(_i32x4, owners + at)
            here = different(words, count - number - taken)
            there = iota(4) < splat(here, 4)
            words = select(there, words, splat(first[0], 4))
            their = select(there, their, splat(first[1], 4))
            batches.append(self._four(words, their, records))
            taken = taken + here
        self.count("quads_valid", taken)
        self._run(batches)
        return taken

    def in_pairs(self) -> bool:
        """Whether two runs of the program are compiled into each other.

        They write in their order, so they may meet at a pixel, unless the program looks what is
        there: it would do so too early.
        """
        looks = signals(self.constants.program, (Signal.LOAD_COLOUR, Signal.LOAD_COLOUR_END))
        serves = PAIRED_BATCHES.serves(current().module.target.level)
        return serves and self.constants.key.engine == "fast" and not looks

    def _run(self, batches: list[tuple[BlockInputs, Value]]) -> None:
        """Runs the program for each batch of inputs; the second of a pair: lanes in quads."""
        if len(batches) == 1:
            self._inline(*batches[0])
            return
        environments = [self._environment(inputs) for inputs, _ in batches]
        settings = self.constants.key.unknowns
        emit_interleaved(self.constants.program, environments, settings=settings)
        for environment, (_, in_quads) in zip(environments, batches, strict=True):
            self.wild.set(self.wild.get() | (environment.wild.get() & in_quads))

    def _four(self, words: Value, owners: Value, records: Value) -> tuple[BlockInputs, Value]:
        """Gather the program's view of four quads, and the lanes of those that have a pixel."""
        covered = shuffle(words.shr(16), _QUAD_LANES)
        lanes = (covered.shr(4) & const(i32x16, _LANE_BIT)) != 0
        places = words & 0xFFFF
        x = shuffle((places & (QUAD_ROW_BYTES - 1)).shr(3), _QUAD_LANES) + const(i32x16, _LANE_X)
        y = shuffle(places.shr(QUAD_ROW_BYTES.bit_length() - 1) << 1, _QUAD_LANES) + const(i32x16, _LANE_Y)
        primitive = self._read([records + owners[quad] for quad in range(4)])
        dx = ((x << 4) + 8 - primitive.x0).to_float(f32) * 0.0625
        dy = ((y << 4) + 8 - primitive.y0).to_float(f32) * 0.0625
        block = PixelBlock(x, y, const(i32, 0), [], dx, dy, self.row(primitive, dy))
        in_quads = (covered & 15) != 0
        return self._inputs(primitive, block, lanes, in_quads, places), in_quads

    def _read(self, records: list[Value]) -> Primitive:
        """The triangles of four records, every number in the lanes of its quad."""
        key = self.constants.key

        groups: dict[int, Value] = {}

        def group(index: int) -> Value:
            """Four neighbouring words of each record, record by record."""
            if index not in groups:
                words = [load(_f32x4, record + 16 * index) for record in records]
                halves = [shuffle(words[k], words[k + 1], list(range(8))) for k in (0, 2)]
                groups[index] = shuffle(halves[0], halves[1], list(range(16)))
            return groups[index]

        def number(offset: int, kind: Any) -> Value:
            word = offset % 16 // 4
            lanes = [4 * quad + word for quad in _QUAD_LANES]
            return shuffle(group(offset // 16), lanes).bitcast(kind)

        def plane(k: int) -> tuple[Value, Value, Value]:
            a, b, c = (number(12 * k + part, f32) for part in (0, 4, 8))
            return a, b, c

        varyings = Planes([], [], [], [])
        for k in range(key.n_varyings):
            flat = bool(key.flat_flags >> k & 1)
            at = FIXED_PLANES + k
            a, b, c = (None, None, number(12 * at + 8, f32)) if flat else plane(at)
            varyings.a.append(a)
            varyings.b.append(b)
            varyings.c.append(c)
            varyings.flat.append(flat)
        tail = record_bytes(key) - Tail.size
        none = const(i32, 0)
        return Primitive(
            Box(none, none, none, none), [],
            number(tail + Tail.x0.offset, i32), number(tail + Tail.y0.offset, i32),
            plane(0), plane(1), varyings,
            number(tail + Tail.z_low.offset, f32), number(tail + Tail.z_high.offset, f32),
            number(tail + Tail.z_offset.offset, f32) if key.depth_offset else None,
            const(i1, False), z_scaled=clamps_scaled(key),
        )  # fmt: skip

    def _inputs(
        self, primitive: Primitive, block: PixelBlock, lanes: Value, in_quads: Value, places: Value
    ) -> BlockInputs:
        return BlockInputs(
            x=splat(self.tile_x) + block.x,
            y=splat(self.tile_y) + block.y,
            flags=[lanes],
            reverse=primitive.reverse,
            w=self._w(primitive, block, in_quads),
            z=self.clamped_depth(primitive, block),
            varyings=self._varyings(primitive, block),
            colour=QuadPlaces([self.colour + places[quad] for quad in range(4)]),
            zs=QuadPlaces([self.zs + places[quad] for quad in range(4)]),
            mask=self.mask,
        )

    def _environment(self, inputs: BlockInputs) -> FragmentEnvironment:
        environment = super()._environment(inputs)
        environment.layout = PACKED
        return environment


MIN_INSTRUCTIONS = 40
"""Instructions from which the program is worth the packing."""

_SIDE_BY_SIDE = (Write.TLB_STENCIL_SETUP, Write.FLAGS, Write.QUAD, Write.ACC5)
_SAME_IN_ANY_QUAD = (Read.UNIFORM, Read.VARYING, Read.NOP, Read.PIXEL_COORD)
"""Reads that do not depend on where in a vector the quad is; unmapped ones give lane numbers."""


def packs_quads(key: FragmentKey, program: Program) -> bool:
    """Whether the quads of a draw are packed.

    It must not matter which quads run together, so nothing crosses lanes; textures are quickest for
    quads side by side; stencil setup and facing are one for all quads.
    """
    plain = key.layout == SINGLE and not (key.vg_mask or key.counting or key.coverage)
    return (
        plain
        and key.engine != "interpreter"
        and len(program.words) >= MIN_INSTRUCTIONS
        and not program.has_branches
        and not key.textures
        and not any(program.writes(register) for register in _SIDE_BY_SIDE)
        and not any(program.reads(k) for k in range(32, 64) if k not in _SAME_IN_ANY_QUAD)
        and not looks_back([plan(word) for word in program.words])
        and not signals(program, (Signal.LOAD_COVERAGE, Signal.LOAD_ALPHA_MASK))
        and not any(getattr(i, "rotation", None) is not None for i in program.instructions)
        and PACKED_QUADS.serves(current().module.target.level)
    )


@staged
def draw_packed(tracer: TriangleTracer, address: Value) -> Value:
    """As `triangle_batch.draw_triangles`, with the quads of several triangles together."""
    context, key = tracer.shader.context, tracer.key
    batch = tracer.batch
    open_batch(tracer, address)
    function = setup_function(tracer)
    queue = QuadQueue(key)
    shade = shade_queue(key, tracer.shader.constants.program)
    quads, records, lane = const(i32, 0), const(i32, 0), const(i32, NO_LANE)
    place, end = const(i64, 0), const(i64, 0)
    more = function != 0
    going = more
    while going:
        if place >= end:
            fill(tracer, function, batch)
            more = batch.result.more != 0
            place, end = const(i64, 0), batch.result.end.zext(i64)
            lane = const(i32, NO_LANE)
        while (place < end) & (quads < QUEUE_LIMIT):
            listed = CoveredBlock.at(tracer.blocks + place, 1)
            where = BlockPlace.of(listed)
            if where.lane != lane:
                lane = where.lane
                primitive = read_triangle(tracer, where)
                primitive.x0, primitive.y0 = (
                    load(i32, origin + lane.zext(i64)) for origin in (batch.origins.x2, batch.origins.y2)
                )
                queue.write(records, primitive)
                records = records + 1
            quads = queue.push(quads, records - 1, listed, where)
            place = place + tracer.step
        going = more | (place < end)
        if (quads >= QUEUE_LIMIT) | ~going:
            outcome = call(
                shade, context.pointer, tracer.shader.params.pointer, queue.quads, queue.owners,
                queue.records, quads,
            )  # fmt: skip
            tracer.shader.status.set(tracer.shader.status.get() | (outcome & 0xFF))
            tracer.shader.suspect(outcome.shr(16) != 0)
            quads, records, lane = const(i32, 0), const(i32, 0), const(i32, NO_LANE)
    return batch.decoder.status
