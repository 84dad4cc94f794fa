"""The fragment program for four quads anywhere in the tile, or for two times four at once."""

from __future__ import annotations

from typing import Any

from vc4lab.optimisations import PAIRED_BATCHES
from vc4lab.qpu.isa.operations import Signal
from vc4lab.qpu.jit.emitter import emit_interleaved
from vc4lab.qpu.program.program import Program
from vc4lab.simd import (
    Function,
    Value,
    const,
    f32,
    i1,
    i32,
    i32x16,
    iota,
    load,
    mask_bits,
    masked_store,
    popcount_,
    ptr,
    select,
    shuffle,
    splat,
    staged,
    vec,
)
from vc4lab.simd.trace import current
from vc4lab.v3d.fragment.block import BlockShader, clamps_scaled
from vc4lab.v3d.fragment.quad_queue import Tail, record_bytes
from vc4lab.v3d.fragment.shader import BlockInputs, DrawConstants, FragmentEnvironment
from vc4lab.v3d.pse.batch import FIXED_PLANES
from vc4lab.v3d.pse.coverage import PixelBlock
from vc4lab.v3d.pse.setup import Box, Planes, Primitive
from vc4lab.v3d.state.tile_context import DrawParams, FragmentKey, TileContext
from vc4lab.v3d.state.tile_layout import QUAD_ROW_BYTES, TileLayout

_QUAD_LANES = [lane >> 2 for lane in range(16)]
_LANE_BIT = [1 << (lane & 3) for lane in range(16)]
_LANE_X = [lane & 1 for lane in range(16)]
_LANE_Y = [lane >> 1 & 1 for lane in range(16)]
_i32x4 = vec(i32, 4)
_f32x4 = vec(f32, 4)


class QuadPlaces:
    """Where four quads are: a stand-in for the pointer to a block."""

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
        """What the program sees of four quads, and the lanes of those that have a pixel."""
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
