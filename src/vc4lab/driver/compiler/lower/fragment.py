"""A pixel's program: inputs from planes, outputs to the tile buffer."""

from __future__ import annotations

from vc4lab.driver.compiler.interface import (
    ALL_SAMPLES,
    FragmentKey,
    Primitives,
    Uniform,
    UniformKind,
    Varying,
)
from vc4lab.driver.compiler.lower.blend import colour_words
from vc4lab.driver.compiler.lower.samples import Samples
from vc4lab.driver.compiler.ssa.values import Function, Value
from vc4lab.driver.compiler.tgsi.program import File, Program, Property
from vc4lab.mesa.protocol.codes import Compare
from vc4lab.qpu.isa.operations import Condition, MulOp, Signal
from vc4lab.qpu.isa.registers import Write
from vc4lab.qpu.machine.builder import ONE, OPPOSITE, real
from vc4lab.qpu.machine.code import (
    MS_FLAGS,
    REV_FLAG,
    VARYING,
    X_COORD,
    Y_COORD,
    Const,
    Op,
    Operand,
    Reg,
    TooComplex,
    Wants,
)

W_PLACE, Z_PLACE = 15, 32 + 15
"""Registers that hold a pixel's W and Z at the beginning: rA15 and rB15."""
FLAT = "CONSTANT"
"""The interpolation of what all pixels of a primitive have from its provoking vertex."""
FIRST_TLB = 2
"""No access to the tile buffer in the instructions before."""
DEPTHS = real(2.0**24 - 1)
SAMPLES = real(4.0)
WHOLE_CENTRES = Property("FS_COORD_PIXEL_CENTER", ("INTEGER",))
"""gl_FragCoord without the half of a pixel (ARB_fragment_coord_conventions)."""
COMPARED: dict[Compare, tuple[str, bool, Condition]] = {
    # alpha and reference: operation, whether they change places, lanes that pass
    Compare.LESS: ("fmax", True, Condition.CS),
    Compare.GEQUAL: ("fmax", True, Condition.CC),
    Compare.GREATER: ("fmax", False, Condition.CS),
    Compare.LEQUAL: ("fmax", False, Condition.CC),
    Compare.EQUAL: ("fsub", False, Condition.ZS),
    Compare.NOTEQUAL: ("fsub", False, Condition.ZC),
}


class Fragment(Samples):
    """A fragment program on its way."""

    def __init__(self, program: Program, function: Function, key: FragmentKey) -> None:
        super().__init__(function, key.textures)
        self.key = key
        self.w, self.z = Reg(None, Wants.FILE), Reg(None, Wants.FILE)
        self.inputs = [(self.w, W_PLACE), (self.z, Z_PLACE)]
        self.varyings: dict[Op, Varying] = {}
        self._made: dict[Varying, Reg] = {}
        self._implicit: list[Reg] = []
        self._declared, self._system_values = (
            {
                number: one
                for one in program.declarations
                if one.file is file
                for number in range(one.first, one.last + 1)
            }
            for file in (File.IN, File.SV)
        )
        self._outputs_of = {
            one.semantic.name: one.first
            for one in reversed(program.declarations)
            if one.file is File.OUT and one.semantic is not None
        }
        self._centres_are_whole = WHOLE_CENTRES in program.properties
        self._mask: Reg | None = None
        self._tlb: list[Op] = []
        self.reads_color = False
        self.writes_depth = False

    def run(self) -> None:
        """Lower the whole program."""
        self._implicit_varyings()
        self.body()
        self._finish()

    # ---------------------------------------------------------------- inputs

    def _implicit_varyings(self) -> None:
        """Points come with their x and y, lines with their coordinate, before all others."""
        counts = {Primitives.POINTS: 2, Primitives.LINES: 1, Primitives.TRIANGLES: 0}
        before: list[Op] = []
        for _ in range(counts[self.key.primitives]):
            made, op = self._interpolated()
            op.after, op.stays = list(before), True
            before.append(op)
            self._implicit.append(made)
        self._before = before

    def _interpolated(self) -> tuple[Reg, Op]:
        """The next word of the stream, (A dx + B dy) * W + C, and the operation that takes it."""
        code = self.code
        op = Op("varying", None, MulOp.FMUL, [VARYING, self.w])
        op.second = Reg(op, Wants.R5)
        product = code.add(op)
        assert product is not None
        return code.make("fadd", product, op.second), op

    def _provoking(self) -> tuple[Reg, Op]:
        """A flat varying: C, bit by bit. To add it to 0 would make 0 of small integers."""
        code = self.code
        op = code.op("mov", VARYING)
        op.name = "flat varying"
        op.second = Reg(op, Wants.R5)
        code.add(op, None)
        return code.move(op.second), op

    def _varying(self, name: str, index: int, component: int, interpolation: str) -> Reg:
        varying = Varying(name, index, component, interpolation)
        if varying not in self._made:
            made, op = self._provoking() if interpolation == FLAT else self._interpolated()
            op.after = list(self._before)
            self.varyings[op] = varying
            self._made[varying] = made
        return self._made[varying]

    def _input(self, value: Value) -> Operand:
        number, component = value.attributes
        declared = self._declared.get(number)
        if declared is None or declared.semantic is None:
            return Const(0)
        name = declared.semantic.name
        index = declared.semantic.index + number - declared.first
        if name == "POSITION":
            return self._position(component)
        if name == "FACE":
            return self._face() if not component else ONE
        if name == "PCOORD" or (
            name in ("GENERIC", "TEXCOORD")
            and self.key.primitives is Primitives.POINTS
            and self.key.sprite_coords >> index & 1
        ):
            return self._sprite(component)
        if name == "COLOR" and self.key.is_two_sided:
            return self._two_sided(index, component, declared.interpolation)
        return self._varying(name, index, component, declared.interpolation)

    def _system(self, value: Value) -> Operand:
        number, component = value.attributes
        declared = self._system_values.get(number)
        if declared is None or declared.semantic is None:
            return Const(0)
        name = declared.semantic.name
        if name == "POSITION":
            return self._position(component)
        if name == "FACE":
            return self._face() if not component else ONE
        if name == "PCOORD":
            return self._sprite(component)
        raise TooComplex("TGSI-009", f"fragment shaders have no {name}")

    def _position(self, component: int) -> Operand:
        """gl_FragCoord: rows count from the first one in memory."""
        code = self.code
        if component < 2:
            whole = code.make("itof", X_COORD if not component else Y_COORD)
            return whole if self._centres_are_whole else code.make("fadd", whole, real(0.5))
        if component == 2:
            return code.make("fmul", code.make("itof", self.z), real(2.0**-24))
        return self.reciprocal(self.w)

    def _face(self) -> Reg:
        """1 of front faces, else -1."""
        code = self.code
        flags = code.flags(code.op("mov", REV_FLAG))
        base = code.move(ONE)
        return code.conditional(code.op("mov", real(-1.0)), flags, Condition.ZC, base)

    def _two_sided(self, index: int, component: int, interpolation: str) -> Reg:
        code = self.code
        front = self._varying("COLOR", index, component, interpolation)
        back = self._varying("BCOLOR", index, component, interpolation)
        flags = code.flags(code.op("mov", REV_FLAG))
        return code.conditional(code.op("mov", back), flags, Condition.ZC, code.move(front))

    def _sprite(self, component: int) -> Operand:
        """The place in a point; the hardware's y is 1 at the first row in memory."""
        if component > 1:
            return ONE if component == 3 else Const(0)
        if self.key.primitives is not Primitives.POINTS:
            return Const(0)
        found: Reg = self._implicit[component]
        if component == 1 and not self.key.sprite_origin_is_lower:
            return self.code.make("fsub", ONE, found)
        return found

    # ---------------------------------------------------------------- outputs

    def color_value(self, component: int) -> Operand:
        """A component of the colour."""
        if component == 3 and self.key.color is not None and self.key.color.alpha_to_one:
            return ONE
        return self._shader_color(component)

    def _shader_color(self, component: int) -> Operand:
        number = self._outputs_of.get("COLOR")
        found = self.output_of((number, component)) if number is not None else None
        return Const(0) if found is None else found

    def _finish(self) -> None:
        """Stencil, depth, colour, in this order."""
        self._discard()
        depth = self._depth()
        samples = self._samples()
        for index in range(self.key.stencil_words):
            op = self.code.write(Write.TLB_STENCIL_SETUP, Uniform(UniformKind.STENCIL, index))
            self.tlb(op)
        if samples is not None:
            # Boards take the flags only with the depth (row ms_flags_write of the unknowns).
            flags = self.code.write(Write.FLAGS, samples, "a")
            self._write_tlb(Write.TLB_Z, self.z if depth is None else depth, flags)
        elif depth is not None:
            self._write_tlb(Write.TLB_Z, depth)
        if self.key.color is not None:
            for address, word in colour_words(self, self.key.color):
                self._write_tlb(address, word)

    def tlb(self, op: Op) -> None:
        """An access to the tile buffer, after all before; the first waits for its turn."""
        op.peripheral = True
        if not self._tlb:
            wait = Op("wait for the scoreboard")
            wait.signal = Signal.SCOREBOARD_WAIT
            wait.first = FIRST_TLB
            self.code.add(wait, None)
            self._tlb.append(wait)
        op.first = FIRST_TLB
        op.after = [*op.after, self._tlb[-1]]
        self._tlb.append(op)

    def _depth(self) -> Operand | None:
        if not self.key.writes_z:
            return None
        number = self._outputs_of.get("POSITION")
        self.code.line = 0
        found = self.output_of((number, 2)) if number is not None else None
        if found is None:
            return self.z
        self.writes_depth = True
        code = self.code
        clamped = self.saturate(found)
        return code.make("ftoi", code.make("fmul", clamped, DEPTHS))

    def _samples(self) -> Operand | None:
        """The samples of each lane that are drawn, as MS_FLAGS has them; None: all covered ones."""
        key, code = self.key, self.code
        mask: Operand = Const(key.sample_mask)
        if key.alpha_to_coverage:
            alpha = self.saturate(code.as_reg(self._shader_color(3)))
            count = code.make("ftoi", code.make("fmul", alpha, SAMPLES))
            first = code.make("sub", code.make("shl", Const(1), count), Const(1))
            mask = first if key.sample_mask == ALL_SAMPLES else code.make("and", first, mask)
        elif key.sample_mask == ALL_SAMPLES:
            return None
        return code.make("and", code.make("mov", MS_FLAGS), mask)

    def _discard(self) -> None:
        """Which lanes are kept, as a word that is 0 there."""
        code = self.code
        test = self.key.alpha_test
        if test in (None, Compare.ALWAYS):
            return
        assert test is not None
        if test is Compare.NEVER:
            self._mask = code.move(Const(0xFFFFFFFF))
            return
        name, swapped, condition = COMPARED[test]
        args = [self.color_value(3), Uniform(UniformKind.ALPHA_REF)]
        flags = code.flags(code.op(name, *(args[::-1] if swapped else args)))
        base = code.move(Const(0xFFFFFFFF))
        mask = code.conditional(code.op("mov", Const(0)), flags, condition, base)
        if self.discarded is not None:
            mask = code.make("or", mask, self.get(self.discarded))
        self._mask = mask

    @property
    def uses_discard(self) -> bool:
        """Whether lanes may be left out."""
        return self._mask is not None or self.discarded is not None

    def _write_tlb(self, address: int, operand: Operand, after: Op | None = None) -> None:
        """A write in the lanes that are kept."""
        code = self.code
        op = code.op("mov", operand)
        op.name = Write(address).name.lower()
        op.target = int(address)
        if self._mask is not None:
            flags = code.flags(code.op("mov", self._mask))
            op.flags, op.condition = flags, int(Condition.ZS)
        elif self.discarded is not None:
            line, code.line = code.line, self._discard_line
            flags, condition = self._condition(self.discarded, operand)
            code.line = line
            op.flags, op.condition = flags, int(OPPOSITE[condition])
        if after is not None:
            op.after = [after]
        code.add(op, None)
        self.tlb(op)
