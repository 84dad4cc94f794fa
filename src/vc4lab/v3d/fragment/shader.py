"""A fragment program's environment while it is compiled: uniforms, varyings, coordinates, TMU and TLB.

The environment hands the QPU compiler staged values of one 4x4 block; state that a program changes
(MS_FLAGS, stencil setup, a moved uniform pointer) lives in staged cells. Source: hardware
reference 4.11-4.18, 7.6, 7.9.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from vc4lab.memory.native import host
from vc4lab.qpu.isa.registers import Write
from vc4lab.qpu.program.program import Program
from vc4lab.qpu.run.environment import Noted
from vc4lab.simd.members import i1, i8, i32, i32x16, ptr
from vc4lab.simd.memory import Cell, load, opaque, store, var
from vc4lab.simd.types import mask16
from vc4lab.simd.value import Value, const, select, splat
from vc4lab.simd.vector import any_, iota
from vc4lab.v3d.state import tile_context as tc
from vc4lab.v3d.state.frame_mode import PLANE_BYTES, SAMPLE_BYTES
from vc4lab.v3d.state.tile_context import DrawParams, FragmentKey, TileContext
from vc4lab.v3d.tlb.depth_stencil import STENCIL_CELLS, DepthTest, StencilState, sample_depth, z_test
from vc4lab.v3d.tlb.samples import (
    ColourAccesses,
    StagedColourAccesses,
    colour_write,
    flags_word,
    sample_masks,
)
from vc4lab.v3d.tmu.late_textures import sample_late
from vc4lab.v3d.tmu.requests import Requests, TexturingEnvironment, texture_numbers
from vc4lab.v3d.tmu.sampler import direct_lookup, sample

if TYPE_CHECKING:
    from vc4lab.memory.native import TouchedLines
    from vc4lab.v3d.unknowns import Unknowns

INLINED_REQUESTS = 2
"""Programs with more requests of one texture kind call a function for them: they compile faster."""

INLINED_NEAREST = 16
"""The limit where a request is little more than an address, of which those of a filter kernel share
most.
"""


@dataclass
class Interpolants:
    """One varying of a block: VP per lane (f32 vector) and C (scalar f32)."""

    vp: Value
    c: Value
    flat: bool


@dataclass
class BlockInputs:
    """The inputs of a block, as staged values; `colour`, `zs`, `mask` point to its words (or are
    what the layout of the environment takes for a pointer).

    `flags`: lanes that each sample has on; `z_steps`: depth of each sample beyond the pixel
    centre's, or None with one sample.
    """

    x: Value
    y: Value
    flags: list[Value]
    reverse: Value
    w: Value
    z: Value
    varyings: list[Interpolants]
    colour: Any
    zs: Any
    mask: Value
    z_steps: list[Value] | None = None


@dataclass
class DrawConstants:
    """Values that stay the same for all blocks of a draw, loaded once before the loops."""

    key: FragmentKey
    program: Program
    memory: Value
    uniforms_address: Value
    uniforms: list[Value] | None
    textures: list[Value] = field(default_factory=list)
    budget: Value | None = None
    interrupts: Value | None = None
    late: Value | None = None
    left: Value | None = None

    @classmethod
    def load(
        cls, key: FragmentKey, program: Program, context: TileContext, params: DrawParams
    ) -> DrawConstants:
        """Loads what is known before any block is reached.

        Uniforms of a straight-line program become scalars here: the compiler's passes would not
        move their loads out of the block loop.
        """
        memory, address = context.memory, params.uniforms
        uniforms: list[Value] | None = None
        if not program.moves_stream:
            uniforms = [
                load(i32, host(memory, address + 4 * site.index))
                for site in program.uniform_sites
                if site.kind == "uniform"
            ]
        base = params.textures
        numbers = key.texture_of or range(len(key.textures))
        textures = [load(ptr, base + 8 * k, align=8) for k in numbers]
        budget = context.budget if program.has_branches else None
        late = params.late if None in key.textures else None
        return cls(
            key,
            program,
            memory,
            address,
            uniforms,
            textures,
            budget,
            context.pointer + TileContext.interrupts.offset,
            late,
            context.pointer + TileContext.left.offset,
        )


def flags_part(unknowns: Unknowns) -> bool:
    """Whether MS_FLAGS that a program writes act on TLB_Z only."""
    return unknowns["ms_flags_write"] == "tlb_z"


class FragmentEnvironment(TexturingEnvironment):
    """The environment of one inlined fragment program; create one for each block traced."""

    def __init__(self, constants: DrawConstants, inputs: BlockInputs, status: Cell) -> None:
        self.constants = constants
        self.inputs = inputs
        self.status = status
        self.budget = constants.budget
        self.layout = constants.key.layout
        self.flags = [var(mask16, mask) for mask in inputs.flags]
        """Lanes of each sample that colour writes take."""
        self.asked = self.flags
        """These lanes as MS_FLAGS has them, for TLB_Z; they part where a write acts only there."""
        if flags_part(constants.key.unknowns) and constants.program.writes(Write.FLAGS):
            self.asked = [var(mask16, mask) for mask in inputs.flags]
        self.reverse = var(i1, inputs.reverse)
        self.stencil: StencilState | None = None
        counted = StagedColourAccesses if self._counts_while_running() else ColourAccesses
        self.accesses: Any = counted(self.layout)
        self.touched_lines: TouchedLines | None = None
        """Takes the lines of memory that texture requests read."""
        self._uniforms_read = 0
        self._varyings_read = 0
        self._pointer: Any = None
        if constants.uniforms is None:
            self._pointer = var(i32, constants.uniforms_address)
        self.requests = Requests(
            texture_numbers(constants.program),
            len(constants.key.textures),
            sample=self._sample,
            lookup=lambda addresses: direct_lookup(constants.memory, addresses),
            take_uniform=self._take_parameter,
            zero=lambda: const(i32x16, 0),
        )
        if constants.program.writes(Write.TLB_STENCIL_SETUP):
            self.stencil = StencilState(*(var(i32, 0) for _ in STENCIL_CELLS))

    def _counts_while_running(self) -> bool:
        several = self.layout.samples * self.layout.words > 1
        return several and self.constants.program.has_branches

    def noted(self) -> Noted:
        shape, values = self.requests.noted()
        return Noted((self._varyings_read, shape), values)

    def recall(self, noted: Noted) -> None:
        self._varyings_read, shape = noted.shape
        self.requests.recall(Noted(shape, noted.values))

    # -- inputs ------------------------------------------------------------------------------

    def initial_registers(self) -> dict[tuple[str, int], Value]:
        return {("a", 15): self.word(self.inputs.w), ("b", 15): self.inputs.z}

    def uniform(self) -> Value:
        constants = self.constants
        if constants.uniforms is not None:
            value = constants.uniforms[self._uniforms_read]
            self._uniforms_read += 1
            return splat(value)
        value = load(i32, host(constants.memory, self._pointer.get()))
        self._skip_uniform()
        return splat(value)

    def _take_parameter(self) -> Value | None:
        word = None
        if self.constants.late is not None:
            word = load(i32, host(self.constants.memory, self._pointer.get()))
        self._skip_uniform()
        return word

    def _skip_uniform(self) -> None:
        if self._pointer is not None:
            self._pointer.set(self._pointer.get() + 4)

    def uniforms_address(self, value: Value, relative: bool, mask: Value) -> None:
        here = self._pointer.get()
        self._pointer.set(select(mask[0], here + value[0] if relative else value[0], here))

    def varying(self) -> tuple[Value, Value]:
        """VP and C of the next varying; after the last one (a program error) zeros."""
        number = self._varyings_read
        self._varyings_read += 1
        if number >= len(self.inputs.varyings):
            return const(i32x16, 0), const(i32x16, 0)
        varying = self.inputs.varyings[number]
        constant = splat(varying.c)
        return self.word(varying.vp), constant.bitcast(i32) if varying.flat else self.word(constant)

    def word(self, number: Value) -> Value:
        """An interpolated number (no NaN, no denormal; -0 means +0) as a word of the program."""
        if self.constants.key.engine == "fast":
            return number
        return (number + opaque(number.type, 0.0)).bitcast(i32)

    def x_coord(self) -> Value:
        return self.inputs.x

    def y_coord(self) -> Value:
        return self.inputs.y

    def element_number(self) -> Value:
        return iota()

    def qpu_number(self) -> Value:
        return const(i32x16, 0)

    def ms_flags(self) -> Value:
        word = flags_word([cell.get() for cell in self.asked])
        return word & 1 if self._one_flag else word

    def rev_flag(self) -> Value:
        return splat(self.reverse.get().zext(i32))

    def set_ms_flags(self, value: Value, mask: Value) -> None:
        if self.constants.key.unknowns["ms_flags_write"] == "nothing":
            return
        masks = sample_masks(value & 1 if self._one_flag else value, self.layout.samples)
        for cell, new in zip(self.asked, masks, strict=True):
            cell.set(select(mask, new, cell.get()))

    @property
    def _one_flag(self) -> bool:
        """Whether only bit 0 of MS_FLAGS is there."""
        return self.constants.key.one_flag

    def set_rev_flag(self, value: Value, mask: Value) -> None:
        self.reverse.set(select(mask[0], (value[0] & 1) != 0, self.reverse.get()))

    # -- texture unit ------------------------------------------------------------------------

    def _sample(self, number: int, coordinates: list[Value], parameters: list[Value]) -> tuple[Value, ...]:
        constants, kinds = self.constants, self.constants.key.textures
        kind = kinds[number]
        if kind is None:
            assert constants.late is not None
            return (sample_late(constants.late, coordinates, parameters),)
        shared = kinds.count(kind) > (INLINED_NEAREST if kind.plain else INLINED_REQUESTS)
        result = sample(
            kind,
            constants.textures[number],
            constants.memory,
            *coordinates,
            shared=shared,
            lines=self.touched_lines,
        )
        return result if isinstance(result, tuple) else (result,)

    # -- tile buffer -------------------------------------------------------------------------

    def tlb_z(self, value: Value, mask: Value) -> None:
        key = self.constants.key
        test = DepthTest(self.layout, key.depth_function, key.z_update)
        fits = value.text == self.inputs.z.text  # the depth as it came
        for number, cell in enumerate(self.asked):
            flags = cell.get()
            step = self.inputs.z_steps[number] if self.inputs.z_steps else None
            depth = value if fits and step is None else sample_depth(value, step)
            passed = z_test(
                test, self.stencil, self.reverse.get(), self.inputs.zs + SAMPLE_BYTES * number,
                depth, flags & mask,
            )  # fmt: skip
            cell.set(passed | (flags & ~mask))
            if cell is not self.flags[number]:
                self.flags[number].set(passed | (self.flags[number].get() & ~mask))

    def tlb_stencil(self, value: Value) -> None:
        assert self.stencil is not None
        self.stencil.setup(value[int(self.constants.key.unknowns["stencil_setup_lane"])])

    def tlb_colour(self, value: Value, mask: Value, all_samples: bool) -> None:
        sample, word = self.accesses.write(all_samples)
        base = self.inputs.colour + word * PLANE_BYTES
        if sample is None:
            for number, cell in enumerate(self.flags):
                place = base + SAMPLE_BYTES * number
                colour_write(self.layout, place, value, cell.get() & mask)
            return
        flags = [cell.get() for cell in self.flags]
        if isinstance(sample, int):
            active = flags[sample]
        else:
            active = const(mask16, 0)
            for number, lanes in enumerate(flags):
                active = active | (lanes & splat(sample == number))
        colour_write(self.layout, base + sample * SAMPLE_BYTES, value, active & mask)

    def tlb_colour_load(self) -> Value:
        sample, word = self.accesses.load()
        place = self.inputs.colour + (word * PLANE_BYTES + sample * SAMPLE_BYTES)
        return self.layout.load_block(place)

    def tlb_alpha_mask(self, value: Value, mask: Value) -> None:
        if not self.constants.key.vg_mask:
            return
        for number, cell in enumerate(self.flags):
            place = self.inputs.mask + SAMPLE_BYTES * number
            colour_write(self.layout, place, value & 255, cell.get() & mask)

    def tlb_alpha_load(self) -> Value:
        if not self.constants.key.vg_mask:
            return const(i32x16, 0)
        return self.layout.load_block(self.inputs.mask)

    def tlb_coverage_load(self) -> Value:
        from vc4lab.v3d.pse.coverage_pipe import load_coverage

        return load_coverage(self.constants.key, self.inputs.zs, [c.get() for c in self.flags])

    def host_interrupt(self, value: Value, mask: Value) -> None:
        assert self.constants.interrupts is not None
        place = load(ptr, self.constants.interrupts)
        store(place, select(any_((value != 0) & mask), const(i8, 1), load(i8, place)))

    # -- order among programs: blocks run one after the other ----------------------------------

    def scoreboard_wait(self) -> None:
        pass

    def scoreboard_unlock(self) -> None:
        pass

    # -- what ends a program that has no end: the draw is given up ------------------------------

    def loop_limit(self) -> None:
        self.status.set(tc.STATUS_ENDLESS)

    def left_program(self, target: Value) -> None:
        self.status.set(tc.STATUS_LEFT)
        if self.constants.left is not None:
            store(self.constants.left, target)
