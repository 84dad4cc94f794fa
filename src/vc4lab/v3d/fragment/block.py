"""Runs the fragment program on one 4x4 block: interpolates W, Z and varyings, then shades.

The program is inlined by the QPU compiler, or, for the reference interpreter, the block is written to a
`FragmentBatch` of a queue that Python works off. Source: hardware reference 7.2, 7.6.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from vc4lab.optimisations import SCALED_DEPTHS
from vc4lab.qpu.jit.emitter import emit_program
from vc4lab.records.codes import Compare
from vc4lab.simd.floatmode import call_pointer
from vc4lab.simd.kernel import staged
from vc4lab.simd.members import f32, f32x16, i32, i32x16, ptr
from vc4lab.simd.memory import load, opaque, store, var
from vc4lab.simd.types import mask16
from vc4lab.simd.value import Value, const, select, splat
from vc4lab.simd.vector import fmax_, fmin_, is_nan, mask_bits, mask_from_bits, popcount_
from vc4lab.v3d.fragment.counting import CountingEnvironment, add, place_of
from vc4lab.v3d.fragment.early_depth import may_pass, passing
from vc4lab.v3d.fragment.shader import BlockInputs, DrawConstants, FragmentEnvironment, Interpolants
from vc4lab.v3d.pse.coverage import QUAD_OF_LANE, PixelBlock, lanes_of_quads, quads_of
from vc4lab.v3d.pse.setup import CENTRE, Primitive, clips_quads, depth_scale, rounds_depth, sample_points
from vc4lab.v3d.state.frame_mode import LANE_X, LANE_Y, Z_MAX
from vc4lab.v3d.state.tile_context import (
    QUEUED_BLOCKS,
    STATUS_OK,
    DrawParams,
    FragmentBatch,
    FragmentKey,
    FragmentQueue,
    TileContext,
)
from vc4lab.v3d.tlb.samples import any_lane, flags_word

if TYPE_CHECKING:
    from vc4lab.v3d.fragment.recording import WorkRecorder

_NAN = 0x7FC00000


def clamps_scaled(key: FragmentKey) -> bool:
    """Whether a draw's depths are clamped to a triangle's range after they are scaled, not before.

    It gives the same numbers, with fewer operations, if nothing comes in between, and if NaNs are
    not an issue: the fast engine gives them up anyway.
    """
    plain = not key.depth_offset and not rounds_depth(key.unknowns)
    return plain and key.engine == "fast" and SCALED_DEPTHS.serves()


def interpolate(a: Value | None, row: Value | None, dx: Value) -> Value | None:
    """A * dx + (B * dy); None stands for a plane without slope."""
    if a is None:
        return row
    slope = dx * splat(a)
    return slope if row is None else slope + row


class BlockShader:
    """Traces the shading of blocks of one draw."""

    def __init__(self, constants: DrawConstants, context: TileContext, params: DrawParams) -> None:
        self.constants = constants
        self.layout = constants.key.layout
        self.context = context
        self.params = params
        self.wild = var(mask16, const(mask16, 0))
        self.status = var(i32, 0)
        self.tile_x = context.tile_x
        self.tile_y = context.tile_y
        self.colour = context.colour
        self.zs = context.zs
        self.mask = context.mask
        self.z_min = params.z_min
        self.z_max = params.z_max
        self.depth_scale = depth_scale(constants.key.unknowns)
        self.recorder = self._make_recorder() if constants.key.recording else None

    def _make_recorder(self) -> WorkRecorder:
        from vc4lab.v3d.fragment.recording import WorkRecorder

        return WorkRecorder(self.context)

    def running(self) -> Value | None:
        """Whether to go on with the next block; None if programs of this draw always end."""
        key = self.constants.key
        if key.engine != "interpreter" and not self.constants.program.has_branches:
            return None
        return self.status.get() == 0

    def count(self, name: str, amount: Value) -> None:
        """Adds to a counter of the tile context."""
        add(self.context, name, amount)

    def counted(self, name: str) -> Value:
        """The value of a counter of the tile context."""
        return load(i32, place_of(self.context, name))

    def suspect(self, found: Value) -> None:
        """Notes (i1) that a NaN is among a primitive's numbers: only the exact engine has those."""
        self.wild.set(self.wild.get() | splat(found))

    def depth_steps(self, primitive: Primitive) -> list[Value] | None:
        """24-bit depth of each sample minus that of the pixel centre; None with one sample."""
        key = self.constants.key
        if not key.multisample:
            return None
        choices = key.unknowns
        sloped = choices["ms_depth"] == "plane"
        if not key.oversample and choices["ms_no_oversample"] == "single":
            sloped = False
        a, b, _ = primitive.depth
        steps = []
        for x, y in sample_points(key):
            step = const(f32, 0.0)
            if sloped:
                for slope, distance in ((a, x - CENTRE), (b, y - CENTRE)):
                    if slope is not None:
                        step = step + slope * (distance / 16)
            step = fmin_(fmax_(step * self.depth_scale, float(-Z_MAX)), float(Z_MAX))
            steps.append(step.to_int(i32))
        return steps

    def row(self, primitive: Primitive, dy: Value) -> list[Value | None]:
        """B * dy of every plane, for all blocks of a row: depth, 1/Wc, varyings."""
        slopes = [primitive.depth[1], primitive.reciprocal_w[1], *primitive.varyings.b]
        return [None if b is None else dy * splat(b) for b in slopes]

    def shade(self, primitive: Primitive, block: PixelBlock) -> None:
        """Interpolates and shades `block`, which has at least one covered pixel."""
        quads = quads_of(block.bits)
        in_quads = lanes_of_quads(quads)
        self.count("quads_valid", popcount_(quads))
        if self.constants.key.coverage:
            self._accumulate(primitive, block)
            return
        depth = self.depth(primitive, block)
        in_range = self.in_range(depth)
        flags = [mask_from_bits(bits) & in_range for bits in block.samples]
        self.run(primitive, block, in_quads, flags, self.depth_word(depth, primitive.z_offset))

    def shade_listed(self, primitive: Primitive, block: PixelBlock) -> None:
        """As `shade`, of a block whose `samples` have gone through the Z planes and are counted."""
        in_quads = (splat(block.bits) & const(i32x16, QUAD_OF_LANE)) != 0
        flags = [mask_from_bits(bits) for bits in block.samples]
        self.run(primitive, block, in_quads, flags, self.clamped_depth(primitive, block))

    def may_pass(self, primitive: Primitive, block: PixelBlock) -> Value:
        """Whether a pixel of a block as `shade_listed` takes it would pass the depth test (i1)."""
        flags = [mask_from_bits(bits) for bits in block.samples]
        flags = flags * (self.layout.samples // len(flags))
        depth = self.clamped_depth(primitive, block)
        zs = self.zs + self._offset(block)
        return may_pass(self.constants.key, zs, flags, depth, primitive.z_steps)

    def run(
        self, primitive: Primitive, block: PixelBlock, in_quads: Value, flags: list[Value], z: Value
    ) -> None:
        """Runs the program; `in_quads`: lanes of covered quads, `z`: 24-bit depths."""
        if len(flags) < self.layout.samples:
            flags = flags * self.layout.samples  # they share the coverage of the centre
        offset = self._offset(block)
        inputs = BlockInputs(
            x=splat(self.tile_x + block.x) + const(i32x16, LANE_X),
            y=splat(self.tile_y + block.y) + const(i32x16, LANE_Y),
            flags=flags,
            reverse=primitive.reverse,
            w=self._w(primitive, block, in_quads),
            z=z,
            varyings=self._varyings(primitive, block),
            colour=self.colour + offset,
            zs=self.zs + offset,
            mask=self.mask + offset,
            z_steps=primitive.z_steps,
        )
        if self.recorder is not None:
            passed = self._passed(primitive, flags, z, offset)
            self.recorder.open(block, primitive.reverse, any_lane(flags), passed)
        if self.constants.key.engine == "interpreter":
            self._interpret(inputs, block)
        else:
            self._inline(inputs, in_quads)

    def _passed(self, primitive: Primitive, flags: list[Value], z: Value, offset: Value) -> Value:
        """Lanes that pass the depth test now; all where there is none or blocks are queued."""
        key = self.constants.key
        if key.engine == "interpreter" or key.depth_function == Compare.ALWAYS:
            return any_lane(flags)
        return passing(key, self.zs + offset, flags, z, primitive.z_steps)

    def in_range(self, depth: Value) -> Value:
        """Lanes that the Z planes (record 104) leave."""
        lanes = (depth >= splat(self.z_min)) & (depth <= splat(self.z_max))
        if clips_quads(self.constants.key.unknowns):
            lanes = lanes_of_quads(quads_of(mask_bits(lanes)))
        return lanes

    def depth_word(self, depth: Value, offset: Value | None) -> Value:
        """The 24-bit depth of Zs, `offset` included (in steps, per lane)."""
        z24 = depth * self.depth_scale
        if offset is not None:
            z24 = z24 + splat(offset)
        if rounds_depth(self.constants.key.unknowns):
            z24 = z24 + 0.5
        return fmin_(fmax_(z24, 0.0), float(Z_MAX)).to_int(i32, inside=True)  # NaN became 0

    def _accumulate(self, primitive: Primitive, block: PixelBlock) -> None:
        """The coverage pipe in place of a program."""
        from vc4lab.v3d.pse import coverage_pipe

        if self.recorder is not None:
            lanes = any_lane([mask_from_bits(bits) for bits in block.samples])
            self.recorder.open(block, primitive.reverse, lanes, lanes)
        key, place = self.constants.key, self.zs + self._offset(block)
        word = coverage_pipe.accumulator(key, place)
        word = coverage_pipe.accumulate(key, word, block.samples, primitive.reverse)
        coverage_pipe.set_accumulator(key, place, word)

    def _offset(self, block: PixelBlock) -> Value:
        return self.layout.even_offset(block.x, block.y)

    def _plane_depth(self, primitive: Primitive, block: PixelBlock) -> Value:
        a, _, c = primitive.depth
        slope = interpolate(a, block.row[0], block.dx)
        return splat(c) if slope is None else slope + splat(c)

    def depth(self, primitive: Primitive, block: PixelBlock) -> Value:
        """Zs per lane. It cannot leave the range of the vertices, so rounding must not either."""
        depth = self._plane_depth(primitive, block)
        return fmin_(fmax_(depth, splat(primitive.z_low)), splat(primitive.z_high))

    def clamped_depth(self, primitive: Primitive, block: PixelBlock) -> Value:
        """The 24-bit depths of a block."""
        if not primitive.z_scaled:
            return self.depth_word(self.depth(primitive, block), primitive.z_offset)
        scaled = self._plane_depth(primitive, block) * self.depth_scale
        clamped = fmin_(fmax_(scaled, splat(primitive.z_low)), splat(primitive.z_high))
        return clamped.to_int(i32, inside=True)

    def _w(self, primitive: Primitive, block: PixelBlock, in_quads: Value) -> Value:
        """W = 1 / (1/Wc); 1.0 in quads without coverage, so that nothing odd is computed there."""
        a, _, c = primitive.reciprocal_w
        slope = interpolate(a, block.row[1], block.dx)
        reciprocal = splat(c) if slope is None else slope + splat(c)
        usable = in_quads & (reciprocal != 0.0)
        w = const(f32, 1.0) / select(usable, reciprocal, splat(const(f32, 1.0)))
        return self._one_nan(w)

    def _varyings(self, primitive: Primitive, block: PixelBlock) -> list[Interpolants]:
        planes = primitive.varyings
        result = []
        for a, row, c, flat in zip(planes.a, block.row[2:], planes.c, planes.flat, strict=True):
            vp = interpolate(a, row, block.dx)
            vp = splat(const(f32, 0.0)) if vp is None else self._one_nan(vp)
            result.append(Interpolants(vp, c, flat))
        return result

    def _one_nan(self, value: Value) -> Value:
        """A NaN that was computed is the same on all processors: theirs keep an operand's, or not.

        Programs of the fast engine see none (`suspect`).
        """
        if self.constants.key.engine == "fast":
            return value
        return select(is_nan(value), const(i32x16, _NAN).bitcast(f32), value)

    def _environment(self, inputs: BlockInputs) -> FragmentEnvironment:
        if not self.constants.key.counting:
            return FragmentEnvironment(self.constants, inputs, self.status)
        if self.recorder is not None:
            return self.recorder.environment(self.constants, inputs, self.status)
        return CountingEnvironment(self.constants, inputs, self.status, self.context)

    def _inline(self, inputs: BlockInputs, in_quads: Value) -> None:
        environment: Any = self._environment(inputs)
        key = self.constants.key
        exact = key.engine == "exact"
        program = self.constants.program
        emit_program(program, environment, exact=exact, settings=key.unknowns, learned=program.targets)
        if self.recorder is not None:
            self.recorder.close(environment.instructions.get())
        if not exact:
            self.wild.set(self.wild.get() | (environment.wild.get() & in_quads))

    def _interpret(self, inputs: BlockInputs, block: PixelBlock) -> None:
        """Puts the block into the queue; a full queue is run."""
        queue = FragmentQueue.at(self.context.batch)
        waiting = queue.count
        place = self.context.batch + (waiting * FragmentBatch.size + FragmentQueue.size)
        batch = FragmentBatch.at(place)
        zero = opaque(f32x16, 0.0)  # makes -0 +0, as for the compiled program
        for name in ("x", "y", "z"):
            store(batch.field_ptr(name), getattr(inputs, name))
        store(batch.w, inputs.w + zero)
        for name in ("flags", "asked"):
            store(batch.field_ptr(name), flags_word(inputs.flags))
        for number, step in enumerate(inputs.z_steps or ()):
            store(batch.z_steps + 4 * number, step)
        batch.reverse = inputs.reverse.zext(i32)
        batch.valid = quads_of(mask_bits(any_lane(inputs.flags)))
        batch.uniforms = self.params.uniforms
        batch.place = self._offset(block)
        batch.n_varyings = len(inputs.varyings)
        for k, varying in enumerate(inputs.varyings):
            store(batch.varyings_vp + 64 * k, varying.vp + zero)
            store(batch.varyings_c + 4 * k, varying.c)
        queue.count = waiting + 1
        status = run_queue(self.context, self.params, QUEUED_BLOCKS)
        before = self.status.get()
        self.status.set(select(before == STATUS_OK, status, before))


@staged
def run_queue(context: TileContext, params: DrawParams, needed: int) -> Value:
    """Lets the reference interpreter run the blocks of the queue if there are that many; a status."""
    queue = FragmentQueue.at(context.batch)
    status = const(i32, STATUS_OK)
    if queue.count >= needed:
        arguments = (ptr, ptr)
        outcome = call_pointer(context.callback, i32, arguments, context.pointer, params.pointer)
        status = outcome
    return status
