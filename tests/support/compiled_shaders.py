"""Compiled programs on the reference interpreter, beside the reference evaluator of SSA functions."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from tests.support.shader_runs import LANES, any_inputs

from vc4lab.driver.compiler.interface import (
    CompiledShader,
    CompiledVertex,
    Stage,
    Uniform,
    UniformKind,
    Varying,
    VertexKey,
)
from vc4lab.driver.compiler.ssa.from_tgsi import to_ssa
from vc4lab.driver.compiler.ssa.ops import Words
from vc4lab.driver.compiler.ssa.reference import Inputs, Outputs, run
from vc4lab.driver.compiler.tgsi.operations import Kind
from vc4lab.driver.compiler.tgsi.program import File, Program
from vc4lab.drm.kernel.shader_rules import check_shader
from vc4lab.qpu.isa.ops import Mask, Word
from vc4lab.qpu.lint.lint import lint
from vc4lab.qpu.program.program import Program as QpuProgram
from vc4lab.qpu.run.environment import Environment, RegisterKey
from vc4lab.qpu.run.interpreter import Interpreter

STREAM = 0x10000
CONSTANTS = 0x200000
W = np.array([1.0, 2.0, 0.5, 4.0], np.float32)
VIEWPORT = (16 * 400.0, -16 * 300.0, 0.5, 0.5)


def word_of(value: float) -> int:
    """A float's bits."""
    return int(np.array([value], np.float32).view(np.uint32)[0])


def bytes_of(words: Words) -> list[Words]:
    """The bytes of each word as floats from 0 to 1."""
    return [((words >> 8 * k & 255) / 255.0).astype(np.float32).view(np.uint32) for k in range(4)]


def smooth_word(unit: int, coordinates: list[Words]) -> Words:
    """A texture's word: each byte changes slowly with the coordinates."""
    total = sum((k + 1) * one.view(np.float32).astype(np.float64) for k, one in enumerate(coordinates))
    word = np.zeros(LANES, np.uint32)
    for k in range(4):
        byte = np.rint(127.5 + 127.5 * np.sin(0.7 * total + unit + k)).astype(np.uint32)
        word |= byte << np.uint32(8 * k)
    return word


def smooth_sampler(_name: str, texture: str, unit: int, args: list[Words]) -> list[Words]:
    """`smooth_word` for the reference."""
    count = 3 if texture.endswith(("CUBE", "3D")) else 2
    coordinates = args[: 1 if texture.endswith("1D") else min(count, 2) if "3D" in texture else count]
    if texture.endswith("CUBE"):
        floats = [one.view(np.float32) for one in coordinates]
        largest = np.max(np.abs(floats), axis=0)
        coordinates = [(one / largest).astype(np.float32).view(np.uint32) for one in floats]
    if texture.endswith("1D"):
        coordinates = [*coordinates, np.full(LANES, word_of(0.5), np.uint32)]
    return bytes_of(smooth_word(unit, coordinates))


@dataclass
class Ran:
    """What a program did."""

    colour: Words = field(default_factory=lambda: np.zeros(LANES, np.uint32))
    coloured: NDArray[np.bool_] = field(default_factory=lambda: np.zeros(LANES, np.bool_))
    depth: Words = field(default_factory=lambda: np.zeros(LANES, np.uint32))
    deep: NDArray[np.bool_] = field(default_factory=lambda: np.zeros(LANES, np.bool_))
    stencil: list[int] = field(default_factory=list)
    vpm: list[Words] = field(default_factory=list)
    instructions: int = 0


class ShaderStage(Environment):
    """What a compiled program sees: uniforms by their description, inputs as the reference's."""

    def __init__(
        self,
        shader: CompiledShader,
        inputs: Inputs,
        varyings: dict[Varying, Words],
        vpm: list[Words],
        destination: Words,
    ) -> None:
        self.shader = shader
        self.inputs = inputs
        self.ran = Ran()
        self._place = 0
        self._w = np.resize(W, LANES)
        self._varyings = [varyings[one] for one in shader.varyings] if varyings else []
        self._vpm = list(vpm)
        self._left = 0
        self._destination = destination
        self._pending: dict[str, Words] = {}
        self._kinds: list[Uniform] = []
        self._results: list[Words] = []
        self._last: Uniform | None = None

    def initial_registers(self) -> dict[RegisterKey, Word]:
        return {("a", 15): self._w.view(np.uint32), ("b", 15): np.full(LANES, 1 << 23, np.uint32)}

    # uniforms
    def _next(self) -> Uniform:
        assert self._place < len(self.shader.uniforms), "the uniform stream has ended"
        self._place += 1
        return self.shader.uniforms[self._place - 1]

    def uniform(self) -> Word:
        return np.full(LANES, self.value_of(self._next()), np.uint32)

    def value_of(self, one: Uniform) -> int:
        kind = one.kind
        self._last = one
        if kind is UniformKind.LITERAL:
            return one.value
        if kind is UniformKind.CONSTANT:
            words = self.inputs.uniforms[one.index]
            return int(words[one.value]) if one.value < len(words) else 0
        if kind is UniformKind.UNIFORMS_ADDRESS:
            return STREAM
        if kind is UniformKind.CONSTANTS_ADDRESS:
            return CONSTANTS + one.value
        if kind is UniformKind.CONSTANTS_LIMIT:
            return 4 * len(self.inputs.uniforms[one.index]) - 4 - one.value
        scales = (
            UniformKind.VIEWPORT_X_SCALE,
            UniformKind.VIEWPORT_Y_SCALE,
            UniformKind.VIEWPORT_Z_SCALE,
            UniformKind.VIEWPORT_Z_OFFSET,
        )
        if kind in scales:
            return word_of(VIEWPORT[scales.index(kind)])
        if kind is UniformKind.STENCIL:
            return 0xC0000000 | one.index
        if kind is UniformKind.ALPHA_REF:
            return word_of(0.5)
        if kind is UniformKind.BLEND_COLOR:
            return 0x40C02080
        if kind is UniformKind.BLEND_ALPHA:
            return 0x40404040
        if kind is UniformKind.BLEND_COMPONENT:
            return word_of((0x80, 0x20, 0xC0, 0x40)[one.index] / 255)
        if kind in (UniformKind.TEXTURE_WIDTH_RCP, UniformKind.TEXTURE_HEIGHT_RCP):
            return word_of(1.0)
        if kind is UniformKind.TEXTURE_BORDER:
            return 0
        raise AssertionError(f"{one} is read as a plain uniform")

    def uniforms_address(self, value: Word, relative: bool, mask: Mask) -> None:
        self._place = (int(np.broadcast_to(value, LANES)[0]) - STREAM) // 4

    # planes
    def varying(self) -> tuple[Word, Word]:
        value = self._varyings.pop(0).view(np.float32)
        c = np.float32(0)
        return ((value - c) / self._w).astype(np.float32).view(np.uint32), np.full(
            LANES, word_of(c), np.uint32
        )

    # the VPM
    def vpm_setup(self, side: str, value: Word) -> None:
        setup = int(np.broadcast_to(value, LANES)[0])
        if side == "read":
            assert not self._left, "words of the last set-up are not read"
            self._left = setup >> 20 & 15 or 16

    def vpm_read(self) -> Word:
        assert self._left, "no word left of the set-up"
        self._left -= 1
        return self._vpm.pop(0) if self._vpm else np.zeros(LANES, np.uint32)

    def vpm_write(self, value: Word, mask: Mask) -> None:
        self.ran.vpm.append(np.array(np.broadcast_to(value, LANES)))

    # textures
    def tmu_write(self, unit: int, register: str, value: Word, mask: Mask, site: int) -> None:
        value = np.array(np.broadcast_to(value, LANES))
        if register == "s" and not self._pending:
            self._results.append(self._memory(value))
            return
        kind = self._next()
        self._kinds.append(kind)
        self._pending[register] = value
        if register != "s":
            return
        kinds = [one.kind for one in self._kinds]
        assert kinds[:2] == [UniformKind.TEXTURE_P0, UniformKind.TEXTURE_P1]
        assert len({one.index for one in self._kinds}) == 1
        letters = "str" if "r" in self._pending else "st"
        coordinates = [self._pending[letter] for letter in letters]
        self._results.append(smooth_word(kind.index, coordinates))
        self._pending, self._kinds = {}, []

    def _memory(self, address: Words) -> Words:
        words = self.inputs.uniforms[0]
        place = (address.astype(np.int64) - CONSTANTS) // 4
        assert ((place >= 0) & (place < len(words))).all(), "a look-up outside of the constants"
        return words[place]

    def tmu_load(self, unit: int) -> Word:
        return self._results.pop(0)

    # the tile buffer
    def tlb_stencil(self, value: Word) -> None:
        self.ran.stencil.append(int(np.broadcast_to(value, LANES)[0]))

    def tlb_z(self, value: Word, mask: Mask) -> None:
        mask = np.broadcast_to(True if mask is None else mask, LANES)
        self.ran.depth = np.where(mask, value, self.ran.depth).astype(np.uint32)
        self.ran.deep = self.ran.deep | mask

    def tlb_colour(self, value: Word, mask: Mask, all_samples: bool) -> None:
        mask = np.broadcast_to(True if mask is None else mask, LANES)
        self.ran.colour = np.where(mask, value, self.ran.colour).astype(np.uint32)
        self.ran.coloured = self.ran.coloured | mask

    def tlb_colour_load(self) -> Word:
        return self._destination

    def scoreboard_wait(self) -> None:
        pass

    def element_number(self) -> Word:
        return np.arange(LANES, dtype=np.uint32)

    def x_coord(self) -> Word:
        return np.arange(LANES, dtype=np.uint32) % 2 + 8

    def y_coord(self) -> Word:
        return np.arange(LANES, dtype=np.uint32) // 2 % 2 + 20

    def rev_flag(self) -> Word:
        return np.zeros(LANES, np.uint32)


def any_pixels(program: Program, seed: int) -> Inputs:
    """Random inputs; constants that are read as integers are small ones, gl_FragCoord is that of
    `ShaderStage`'s pixels.
    """
    inputs = any_inputs(seed, budget=5000)
    inputs.sampler = smooth_sampler
    rng = np.random.default_rng(seed)
    constants = rng.uniform(-2, 2, 4096).astype(np.float32).view(np.uint32)
    for instruction in program.instructions:
        if instruction.operation.takes in (Kind.INT, Kind.UINT):
            for source in instruction.sources:
                register = source.register
                if register.file is File.CONST and register.index is None:
                    for letter in source.swizzle:
                        constants[4 * register.number + "xyzw".index(letter)] = 3
    inputs.uniforms = (constants,)
    table = dict(inputs.inputs)
    lanes = np.arange(LANES)
    position = (lanes % 2 + 8.5, lanes // 2 % 2 + 20.5, np.full(LANES, 0.5), 1 / np.resize(W, LANES))
    for one in program.declarations:
        if one.file is File.IN and one.semantic is not None:
            if one.semantic.name == "POSITION":
                for component, values in enumerate(position):
                    words = np.ascontiguousarray(values, np.float32).view(np.uint32)
                    table[one.first, component] = words
            elif one.semantic.name == "FACE":
                table[one.first, 0] = np.full(LANES, word_of(1.0), np.uint32)
    inputs.inputs = table
    return inputs


def output_numbers(program: Program) -> dict[tuple[str, int], int]:
    """The register of each output by its semantic."""
    return {
        (one.semantic.name, one.semantic.index + number - one.first): number
        for one in program.declarations
        if one.file is File.OUT and one.semantic is not None
        for number in range(one.first, one.last + 1)
    }


def reference(program: Program, inputs: Inputs) -> Outputs:
    """What the shader gives, before any step of the compiler."""
    with np.errstate(all="ignore"):
        return run(to_ssa(program), inputs)


def check_rules(words: tuple[int, ...]) -> None:
    """Neither the lint nor the kernel finds anything."""
    assert lint(words) == []
    check_shader(words)


def differing_colours(program: Program, expected: Outputs, ran: Ran) -> list[str]:
    """Colour bytes that are not within 3 of what they should be."""
    found = []
    number = output_numbers(program).get(("COLOR", 0))
    for component in range(4):
        words = expected.outputs.get((number, component)) if number is not None else None
        if words is None:
            continue
        floats = words.view(np.float32)
        counts = ~expected.discarded & np.isfinite(floats)
        wanted = np.rint(np.clip(np.nan_to_num(floats), 0, 1) * 255)
        given = (ran.colour >> np.uint32(8 * component)) & 255
        wrong = counts & (np.abs(wanted - given) > 3)
        if wrong.any():
            found.append(f"{'xyzw'[component]}: {given[wrong]} for {wanted[wrong]}")
    return found


def is_near(expected: Words, given: Words) -> NDArray[np.bool_]:
    """Floats that agree to 2e-3; what is no number or too large to compute with counts as equal."""
    with np.errstate(all="ignore"):
        a = expected.view(np.float32).astype(np.float64)
        b = given.view(np.float32).astype(np.float64)
        wild = ~np.isfinite(a) | ~np.isfinite(b)
        return wild | (np.abs(a - b) <= 2e-3 * np.maximum(1, np.abs(a)))


def expected_vertices(program: Program, key: VertexKey, stage: Stage, expected: Outputs) -> list[Words]:
    """The words that a vertex or coordinate program writes."""
    numbers = output_numbers(program)
    zero, one = np.zeros(LANES, np.uint32), np.full(LANES, word_of(1.0), np.uint32)

    def output(name: str, index: int, component: int) -> Words:
        absent = one if component == 3 else zero
        return expected.outputs.get((numbers.get((name, index), -1), component), absent)

    position = [output("POSITION", 0, component) for component in range(4)]
    x, y, z, w = (words.view(np.float32).astype(np.float64) for words in position)
    with np.errstate(all="ignore"):
        screen = [
            np.trunc(np.clip(np.nan_to_num(place * scale / w), -(2**31), 2**31 - 1))
            for place, scale in zip((x, y), VIEWPORT, strict=False)
        ]
        depth = (z * VIEWPORT[2] / w + VIEWPORT[3]).astype(np.float32).view(np.uint32)
        by_w = (1 / w).astype(np.float32).view(np.uint32)
    halves = [place.astype(np.int64).astype(np.uint32) & 0xFFFF for place in screen]
    words = [] if stage is Stage.VERTEX else position
    words = [*words, halves[0] | halves[1] << np.uint32(16), depth, by_w]
    if key.has_point_size:
        words.append(output("PSIZE", 0, 0))
    if stage is Stage.VERTEX:
        words += [output(v.name, v.index, v.component) for v in key.varyings]
    return words


def all_varyings(program: Program) -> tuple[Varying, ...]:
    """Every component of every output that is no header."""
    return tuple(
        Varying(name, index, component)
        for name, index in output_numbers(program)
        if name not in ("POSITION", "PSIZE")
        for component in range(4)
    )


def attribute_words(compiled: CompiledVertex, stage: Stage, inputs: Inputs) -> list[Words]:
    """The VPM as a program of this stage finds it, of elements of four floats."""
    found = []
    for slot in compiled.attributes:
        is_vertex = stage is Stage.VERTEX
        offset = slot.vertex_offset if is_vertex else slot.coordinate_offset
        if offset is not None:
            for component in range(slot.size // 4):
                zero = np.zeros(LANES, np.uint32)
                found.append(inputs.inputs.get((slot.element, component), zero))
    return found


def run_compiled(
    shader: CompiledShader,
    inputs: Inputs,
    varyings: dict[Varying, Words] | None = None,
    vpm: list[Words] | None = None,
    destination: Words | None = None,
    before: list[Words] | None = None,
    budget: int = 1 << 16,
) -> Ran:
    """Run it on 16 lanes. before: the implicit varyings of points and lines."""
    stage = ShaderStage(
        shader,
        inputs,
        varyings or {},
        vpm or [],
        np.zeros(LANES, np.uint32) if destination is None else destination,
    )
    stage._varyings[:0] = before or []
    interpreter = Interpreter(QpuProgram(list(shader.words), 0), stage)
    with np.errstate(all="ignore"):
        assert interpreter.run(budget) == "end"
    stage.ran.instructions = interpreter.count
    assert not stage._varyings, "varyings are left"
    return stage.ran


def varyings_for(program: Program, inputs: Inputs) -> dict[Varying, Words]:
    """What each varying is if inputs are as given."""
    found = {}
    for one in program.declarations:
        if one.file is File.IN and one.semantic is not None:
            for number in range(one.first, one.last + 1):
                index = one.semantic.index + number - one.first
                for component in range(4):
                    varying = Varying(one.semantic.name, index, component, one.interpolation)
                    zero = np.zeros(LANES, np.uint32)
                    found[varying] = inputs.inputs.get((number, component), zero)
    return found
