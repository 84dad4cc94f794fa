"""A vertex's programs: attributes from the VPM by their formats, header and varyings into it."""

from __future__ import annotations

from vc4lab.driver.compiler.interface import NO_ELEMENT, VERTEX_NUMBER, Stage, Uniform, UniformKind, VertexKey
from vc4lab.driver.compiler.lower.samples import Samples
from vc4lab.driver.compiler.ssa.values import Function, Value
from vc4lab.driver.compiler.tgsi.program import File, Program
from vc4lab.mesa.protocol.formats import Format, layout_of
from vc4lab.qpu.isa.operations import AddOp, MulOp, Pack, Unpack
from vc4lab.qpu.isa.registers import Write
from vc4lab.qpu.machine.builder import ONE, ZERO, real
from vc4lab.qpu.machine.code import VPM, Const, Op, Operand, Reg, TooComplex, Wants

LETTERS = {"R": 0, "G": 1, "B": 2, "A": 3}
BYTES = (Unpack.B8A, Unpack.B8B, Unpack.B8C, Unpack.B8D)
HALVES = (Unpack.H16A, Unpack.H16B)
KINDS = ("FLOAT", "UNORM", "SNORM", "USCALED", "SSCALED", "UINT", "SINT")


def _channel(number: int, component: int) -> tuple[int, int, str] | None:
    """First bit, bits and kind of a component; None: the format has none. Raises TooComplex."""
    layout = layout_of(number)
    is_known = layout is not None and bool(layout.channels) and layout.kind in KINDS
    if layout is not None and layout.kind == "FLOAT":
        is_known &= all(bits in (16, 32) for _, bits in layout.channels)
    if layout is None or not is_known:
        name = Format._value2member_map_.get(number, number)
        raise TooComplex("TGSI-008", f"vertices cannot have the format {name}")
    at = 0
    for letter, bits in layout.channels:
        if LETTERS.get(letter) == component:
            return at, bits, layout.kind
        at += bits
    return None


def words_of(number: int, component: int) -> int:
    """How many words of an element there must be for a component; 0: none."""
    found = _channel(number, component)
    return 0 if found is None else (found[0] + found[1] + 31) // 32


def component_of(vertex: Vertex, number: int, element: int, component: int) -> Operand:
    """A component of an element as a float (or, of pure integers, a word)."""
    found = _channel(number, component)
    if found is None:
        return ONE if component == 3 else ZERO
    at, bits, kind = found
    word = vertex.word(element, at // 32)
    code = vertex.code
    if bits == 32 and kind in ("FLOAT", "UINT", "SINT"):
        return word
    if bits == 8 and kind == "UNORM":
        return _unpacked(vertex, word, BYTES[at % 32 // 8])
    if bits == 16 and kind == "FLOAT":
        return _unpacked(vertex, word, HALVES[at % 32 // 16])
    is_signed = kind in ("SNORM", "SSCALED", "SINT")
    whole = _bits(vertex, word, at % 32, bits, is_signed)
    if kind in ("UINT", "SINT"):
        return whole
    if bits == 32 and not is_signed:
        value: Reg = vertex.from_unsigned(whole)
    else:
        value = code.make("itof", whole)
    if kind == "UNORM":
        return code.make("fmul", value, real(1.0 / ((1 << bits) - 1)))
    if kind == "SNORM":
        # (2 c + 1) / (2^b - 1), as OpenGL ES 2.0 and OpenGL 2.0 have it
        scaled = code.make("fmul", value, real(2.0 / ((1 << bits) - 1)))
        return code.make("fadd", scaled, real(1.0 / ((1 << bits) - 1)))
    return value


def _unpacked(vertex: Vertex, word: Reg, unpack: Unpack) -> Reg:
    op = Op("unpack", AddOp.OR, MulOp.V8MIN, [word])
    op.is_unpack = True
    op.unpacks = (int(unpack),)
    result = vertex.code.add(op)
    assert result is not None
    return result


def _bits(vertex: Vertex, word: Reg, at: int, bits: int, is_signed: bool) -> Reg:
    """Some bits of a word, with or without their sign."""
    code = vertex.code
    if bits == 32:
        return word
    if at + bits < 32:
        word = code.make("shl", word, _count(32 - at - bits))
    return code.make("asr" if is_signed else "shr", word, _count(32 - bits))


def _count(number: int) -> Operand:
    """A shift count; those that are no small immediates have an equal one modulo 32."""
    return Const(number if number < 16 else number - 32 & 0xFFFFFFFF)


SETUP = 0x1A00
"""Horizontal, 32 bits, one row after the other, from row 0."""
READS = 16
"""Rows that one read set-up covers."""


class Vertex(Samples):
    """A vertex or coordinate program on its way.

    sizes: for each element that the program reads the words of it that are in the VPM.
    """

    def __init__(
        self, program: Program, function: Function, key: VertexKey, stage: Stage, sizes: dict[int, int]
    ) -> None:
        super().__init__(function, key.textures, has_derivatives=False)
        self.key = key
        self._stage = stage
        self._outputs_of: dict[tuple[str, int], int] = {}
        for one in program.declarations:
            if one.file is File.OUT and one.semantic is not None:
                for number in range(one.first, one.last + 1):
                    name, index = one.semantic.name, one.semantic.index + number - one.first
                    self._outputs_of[name, index] = number
        self._system_values = system_values(program)
        self._words: dict[tuple[int, int], Reg] = {}
        self._read(sizes)

    def run(self) -> None:
        """Lower the whole program."""
        self.body()
        self._finish()

    # ---------------------------------------------------------------- attributes

    def _read(self, sizes: dict[int, int]) -> None:
        """All words of the VPM, in order: the unit gives no others. A program has at least one."""
        places = [(element, word) for element in sorted(sizes) for word in range(sizes[element])]
        code = self.code
        last: Op | None = None
        for number, place in enumerate(places or [(NO_ELEMENT, 0)]):
            if number % READS == 0:
                count = min(len(places) - number, READS) or 1
                setup = SETUP | (count % READS) << 20 | number
                op = self._setup(setup, "a")
                op.after = [] if last is None else [last]
                last = op
            read = code.op("mov", VPM)
            read.name, read.stays = "read vpm", True
            assert last is not None
            read.after = [last]
            result = code.add(read)
            assert result is not None
            self._words[place] = result
            last = read

    def _setup(self, word: int, file: str) -> Op:
        """Set up the VPM's reading ("a") or writing ("b") side, by a word in the program: code compiled
        for a host then knows each row."""
        op = Op("set up vpm", AddOp.OR)
        op.loads = word
        op.target, op.target_file = int(Write.VPM_SETUP), file
        self.code.add(op, None)
        return op

    def _input(self, value: Value) -> Operand:
        element, component = value.attributes
        if element >= len(self.key.formats):
            return ONE if component == 3 else Const(0)
        return component_of(self, self.key.formats[element], element, component)

    def word(self, element: int, number: int) -> Reg:
        """A word of an element."""
        found = self._words[element, number]
        self._shared.add(found)
        return found

    def _system(self, value: Value) -> Operand:
        number, component = value.attributes
        name = self._system_values.get(number)
        if component or name is None:
            return Const(0)
        if name == "INSTANCEID":
            return Uniform(UniformKind.INSTANCE)
        if name == "VERTEXID":
            return self.word(VERTEX_NUMBER, 0)
        raise TooComplex("TGSI-009", f"vertex shaders have no {name}")

    # ---------------------------------------------------------------- outputs

    def output(self, name: str, index: int, component: int) -> Operand:
        """A component of an output; what the shader does not write is 0, w 1."""
        number = self._outputs_of.get((name, index))
        found = None if number is None else self.output_of((number, component))
        if found is None:
            return ONE if component == 3 else Const(0)
        return found

    def _finish(self) -> None:
        """The header that the stage has (hardware reference 3.8), then the varyings."""
        code = self.code
        position = [self.output("POSITION", 0, component) for component in range(4)]
        by_w = self.reciprocal(position[3])
        screen: Reg | None = None
        scales = UniformKind.VIEWPORT_X_SCALE, UniformKind.VIEWPORT_Y_SCALE
        for scale, one, pack in zip(scales, position, (Pack.H16A, Pack.H16B), strict=False):
            scaled = code.make("fmul", code.make("fmul", one, Uniform(scale)), by_w)
            op = code.op("ftoi", scaled)
            op.pack, op.tied = int(pack), screen
            screen = code.add(op, Wants.FILE_A)
        scaled = code.make("fmul", position[2], Uniform(UniformKind.VIEWPORT_Z_SCALE))
        depth = code.make("fadd", code.make("fmul", scaled, by_w), Uniform(UniformKind.VIEWPORT_Z_OFFSET))
        assert screen is not None
        words: list[Operand] = [] if self._stage is Stage.VERTEX else list(position)
        words += [screen, depth, by_w]
        lines = [code.line] * len(words)
        if self.key.has_point_size:
            size = self._outputs_of.get(("PSIZE", 0))
            # OpenGL: sizes are clamped to those that there are; the PTB would leave out size 0
            words.append(ONE if size is None else code.make("fmax", self.output("PSIZE", 0, 0), ONE))
            lines.append(code.line)
        for varying in self.key.varyings if self._stage is Stage.VERTEX else ():
            words.append(self.output(varying.name, varying.index, varying.component))
            lines.append(code.line)
        last = self._setup(SETUP, "b")
        for operand, code.line in zip(words, lines, strict=True):
            maker = code.may_change(operand) if words.count(operand) == 1 else None
            if maker is None:
                op = code.write(Write.VPM, operand)
                op.name = "write vpm"
            else:
                op = maker
                op.target = int(Write.VPM)
                code.to_end(op)
            op.after = [last]
            last = op


def system_values(program: Program) -> dict[int, str]:
    """The names of a program's system values, by their registers."""
    return {
        number: one.semantic.name
        for one in program.declarations
        if one.file is File.SV and one.semantic is not None
        for number in range(one.first, one.last + 1)
    }


def sizes_of(program: Program, function: Function, key: VertexKey) -> dict[int, int]:
    """The elements that a function reads, and how many words of each, from its first on."""
    found: dict[int, int] = {}
    names = system_values(program)
    for value in function.values():
        if value.op == "input":
            element, component = value.attributes
            if element < len(key.formats):
                words = words_of(key.formats[element], component)
                if words:
                    found[element] = max(found.get(element, 0), words)
        elif value.op == "system" and names.get(value.attributes[0]) == "VERTEXID":
            found[VERTEX_NUMBER] = 1
    return found
