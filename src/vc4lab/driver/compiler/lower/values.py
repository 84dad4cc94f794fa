"""What each value of a flat shader becomes.

Values are lowered when something asks for them, so that what nothing asks for is not. Those that
other blocks read are asked for at the end of their block.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence

from vc4lab.driver.compiler.lower.builder import OPPOSITE, Builder
from vc4lab.driver.compiler.machine.code import (
    ELEMENT,
    Const,
    Flags,
    Op,
    Operand,
    Reg,
    Wants,
)
from vc4lab.driver.compiler.result import Uniform, UniformKind
from vc4lab.driver.compiler.ssa.optimise import walk
from vc4lab.driver.compiler.ssa.values import Block, Function, If, Jump, Loop, Value
from vc4lab.qpu.isa.operations import Condition, MulOp

ZERO, ONE, MINUS_ONE, TWO, HALF = (
    Const(0), Const(0x3F800000), Const(0xBF800000), Const(0x40000000), Const(0x3F000000),
)  # fmt: skip
ALL = Const(0xFFFFFFFF)


def real(value: float) -> Const:
    """A float as a constant."""
    return Const(struct.unpack("<I", struct.pack("<f", value))[0])


COMPARISONS: dict[str, tuple[str, bool, Condition]] = {
    # operation whose flags say it, whether its operands change places, the lanes where it holds
    "flt": ("fmax", True, Condition.CS),
    "fge": ("fmax", True, Condition.CC),
    "feq": ("fsub", False, Condition.ZS),
    "fne": ("fsub", False, Condition.ZC),
    "ilt": ("max", True, Condition.CS),
    "ige": ("max", True, Condition.CC),
    "ult": ("sub", False, Condition.CS),
    "uge": ("sub", False, Condition.CC),
    "ieq": ("sub", False, Condition.ZS),
    "ine": ("sub", False, Condition.ZC),
}
"""The C flag of max is a > b, exactly; fsub gives 0 for equal numbers, and for those whose
difference is denormal."""
SIMPLE = {
    **{"and": "and", "or": "or", "xor": "xor", "not": "not"},
    **{"shl": "shl", "shr": "shr", "asr": "asr", "iadd": "add", "imin": "min", "imax": "max"},
    **{"f2i": "ftoi", "i2f": "itof"},
}
SINE = (6.2831855, -41.341679, 81.602232, -76.57502, 39.71109)
"""Of t, t^3, ... t^9 for sin(2 pi t), |t| <= 1/4: relative errors below 6e-9 (least squares with
weights that made the largest errors equal)."""


class Values:
    """A function on its way to operations. Stages add inputs, samples and outputs."""

    def __init__(self, function: Function) -> None:
        self.function = function
        self.code = Builder()
        self._operands: dict[Value, Operand] = {}
        self._shared: set[Reg] = set()
        """Registers that are more than one value: nothing may be written over them."""
        self._conditions: dict[Value, list[tuple[Flags, Condition, bool, int]]] = {}
        self._loops: tuple[int, ...] = ()
        self.outputs: dict[tuple[int, int], Value] = {}
        self.discarded: Value | None = None
        self._uses: dict[Value, int] = {}
        self._crossing: dict[Block, list[Value]] = {}
        self._blocks: dict[Value, int] = {}
        self._count()

    # ---------------------------------------------------------------- the function

    def _count(self) -> None:
        """How often each value is used, and which are used outside of their blocks."""
        made: dict[Value, Block] = {}
        uses = self._uses
        crossing: dict[Value, None] = {}

        def use(values: Sequence[Value], block: Block | None) -> None:
            for value in values:
                uses[value] = uses.get(value, 0) + 1
                if value in made and made[value] is not block:
                    crossing[value] = None

        last: Block | None = None
        for node in walk(self.function.body):
            if isinstance(node, Block):
                last = node
                for value in node.values:
                    made[value] = node
                    use(value.args, node)
                    if value.op == "output":
                        self.outputs[value.attributes] = value.args[0]
                    elif value.op == "discard_if":
                        self.discarded = value.args[0]
            elif isinstance(node, If):
                use((node.condition,), last)
            elif isinstance(node, Loop):
                use(node.initial, last)
            elif isinstance(node, Jump):
                use(node.values, last)
        for value in crossing:
            if value.op not in ("constant", "uniform"):
                self._crossing.setdefault(made[value], []).append(value)

    def body(self) -> None:
        """Lower all nodes; afterwards outputs can be asked for."""
        self._nodes(self.function.body)

    def _nodes(self, nodes: Sequence[object]) -> None:
        for node in nodes:
            if isinstance(node, Block):
                for value in self._crossing.get(node, ()):
                    self._settle(value)
            elif isinstance(node, Loop):
                self._loop(node)

    def _settle(self, value: Value) -> None:
        """A value that other blocks read: in a register of a file."""
        operand = self.get(value)
        if not isinstance(operand, Reg) or operand.wants in (Wants.R4, Wants.R5):
            self._operands[value] = self.code.move(operand, Wants.FILE)
        elif operand.wants is Wants.ANY:
            operand.wants = Wants.FILE

    def _loop(self, node: Loop) -> None:
        code = self.code
        tail = node.body[-1]
        assert isinstance(tail, If)
        again, out = tail.then[0], tail.otherwise[0]
        assert isinstance(again, Jump)
        assert isinstance(out, Jump)
        homes = []
        for name, initial in zip(node.parameters, node.initial, strict=True):
            home = code.move(self.get(initial), Wants.FILE)
            home.is_home = True
            homes.append(home)
            self._operands[name] = home
            self._shared.add(home)
        outer = self._loops
        start = code.begin_block((*outer, len(code.blocks)))
        start.begins_loop = True
        self._loops = start.loops
        self._conditions = {}
        self._nodes(node.body[:-1])
        for value in dict.fromkeys(out.values):
            if value.op not in ("constant", "uniform") and value not in again.values:
                self._settle(value)
        ends = self._carry(node, homes, again.values)
        flags, condition = self._repeat_flags(tail.condition, ends)
        code.block.variables = ends
        code.block.repeats = start.number
        code.block.repeat_flags, code.block.repeat_condition = flags, int(condition)
        self._loops = outer
        self._conditions = {}
        by_value = dict(zip(again.values, ends, strict=True))
        for name, value in zip(node.results, out.values, strict=True):
            found = by_value.get(value)
            self._operands[name] = self.get(value) if found is None else found
            if found is not None:
                self._shared.add(found)
        code.begin_block(outer)

    def _carry(self, node: Loop, homes: list[Reg], values: Sequence[Value]) -> list[Reg]:
        """At the end of a turn variables get what the next one has; the registers they are then."""
        code = self.code
        parameters = set(node.parameters)
        new: list[tuple[Operand, Value | None, bool]] = []
        for name, value in zip(node.parameters, values, strict=True):
            if value.op == "select" and value not in self._operands and value.args[2] is name:
                operand, condition, holds = self.get(value.args[1]), value.args[0], True
                source = value.args[1]
            elif value.op == "select" and value not in self._operands and value.args[1] is name:
                operand, condition, holds = self.get(value.args[2]), value.args[0], False
                source = value.args[2]
            else:
                operand, condition, holds, source = self.get(value), None, True, value
            if source in parameters and source is not name:
                operand = code.move(operand)
            new.append((operand, condition, holds))
        ends = []
        for home, (operand, condition, holds) in zip(homes, new, strict=True):
            op = code.op("mov", operand)
            if condition is None:
                op.tied = home
                end = code.add(op)
            else:
                flags, lanes = self._condition(condition, operand, home, late=True)
                end = code.conditional(op, flags, lanes if holds else OPPOSITE[lanes], home)
            assert end is not None
            end.wants = Wants.FILE
            end.block = home.block
            end.uses += 1
            ends.append(end)
        return ends

    def _repeat_flags(self, condition: Value, ends: list[Reg]) -> tuple[Flags, Condition]:
        """The flags by which the loop goes on, set after everything else."""
        block = self.code.block
        known = self._conditions.get(condition, [])
        flags = next((one for one, _, late, at in known if late and at == block.number), None)
        if flags is None:
            flags = self.code.flags(self.code.op("mov", self.get(condition)))
            flags.setter.together = [one.op for one in ends if one.op is not None]
            lanes = Condition.ZC
        else:
            lanes = next(one for other, one, _, _ in known if other is flags)
        flags.setter.together += [
            one for one in block.ops if one.flags is not None and one.flags is not flags
        ]
        flags.users.append(Op("branch"))
        return flags, lanes

    # ---------------------------------------------------------------- values

    def get(self, value: Value) -> Operand:
        """The operand that a value is."""
        found = self._operands.get(value)
        if found is not None:
            return found
        if value.op == "constant":
            return Const(value.attributes[0])
        if value.op == "uniform":
            buffer, register, component = value.attributes
            return Uniform(UniformKind.CONSTANT, buffer, 4 * register + component)
        self._lower(value)
        return self._operands[value]

    def _lower(self, value: Value) -> None:
        """A value and all that it needs, the deepest first, without recursion."""
        waiting = [value]
        while waiting:
            top = waiting[-1]
            if top in self._operands:
                waiting.pop()
                continue
            missing = [
                arg
                for arg in self._needed(top)
                if arg not in self._operands and arg.op not in ("constant", "uniform")
            ]
            if missing:
                waiting += missing[::-1]
                continue
            self.code.line = top.line
            self._operands[top] = self._make(top)
            waiting.pop()

    def _needed(self, value: Value) -> list[Value]:
        """What must be lowered before: operands, or those of signs and bytes that are folded in."""
        if value.op not in ("fadd", "fmul", "fmin", "fmax"):
            return list(value.args)
        found = []
        for arg in value.args:
            inner = arg
            if value.op == "fadd" and inner.op == "fneg" and inner not in self._operands:
                inner = inner.args[0]
            if inner.op == "component" and self._uses.get(inner) == 1:
                inner = inner.args[0]
            found.append(inner)
        return found

    def _make(self, value: Value) -> Operand:
        op, code = value.op, self.code
        if op in COMPARISONS:
            return self._boolean(value)
        if op in SIMPLE:
            return code.make(SIMPLE[op], *(self.get(arg) for arg in value.args))
        handler: Callable[[Value], Operand] = getattr(self, f"_{op}")
        return handler(value)

    def _arg(self, value: Value, number: int = 0) -> Operand:
        return self.get(value.args[number])

    # ---------------------------------------------------------------- floats

    def plain_byte(self, value: Value) -> tuple[Reg, int] | None:
        """The word and the unpack that an operation on floats may read as this value."""
        return None

    def _floats(self, name: str, *values: Value) -> Reg:
        """An operation on two floats; one of them may be unpacked on the way."""
        for number, value in enumerate(values):
            byte = self.plain_byte(value)
            if byte is None:
                continue
            word, unpack = byte
            other = self.get(values[1 - number])
            if other is word:
                continue
            args = [word, other] if number == 0 else [other, word]
            op = self.code.op(name, *args)
            op.unpacks = (unpack, 0) if number == 0 else (0, unpack)
            result = self.code.add(op)
            assert result is not None
            return result
        return self.code.make(name, *map(self.get, values))

    def _fadd(self, value: Value) -> Operand:
        first, second = value.args
        if second.op == "fneg":
            return self._floats("fsub", first, second.args[0])
        if first.op == "fneg":
            return self._floats("fsub", second, first.args[0])
        return self._floats("fadd", first, second)

    def _fmul(self, value: Value) -> Operand:
        return self._floats("fmul", *value.args)

    def _fmin(self, value: Value) -> Operand:
        return self._floats("fmin", *value.args)

    def _fmax(self, value: Value) -> Operand:
        return self._floats("fmax", *value.args)

    def _fneg(self, value: Value) -> Operand:
        return self.code.make("fsub", ZERO, self._arg(value))

    def _fabs(self, value: Value) -> Operand:
        operand = self.code.as_reg(self._arg(value))
        return self.code.make("fmaxabs", operand, operand)

    def _fsat(self, value: Value) -> Operand:
        return self.saturate(self._arg(value))

    def saturate(self, operand: Operand) -> Reg:
        """Between 0 and 1."""
        return self.code.make("fmin", self.code.make("fmax", operand, ZERO), ONE)

    def reciprocal(self, operand: Operand) -> Reg:
        """1 / x: the unit's 15 bits and a step of Newton's."""
        code = self.code
        x = code.as_reg(operand)
        first = code.special("recip", x)
        error = code.make("fsub", TWO, code.make("fmul", x, first))
        return code.make("fmul", first, error)

    def _frcp(self, value: Value) -> Operand:
        return self.reciprocal(self._arg(value))

    def _fdiv(self, value: Value) -> Operand:
        by = self.reciprocal(self._arg(value, 1))
        if value.args[0].op == "constant" and value.args[0].attributes[0] == ONE.word:
            return by
        return self.code.make("fmul", self._arg(value), by)

    def _root(self, operand: Operand) -> Reg:
        """1 / sqrt(x), with a step of Newton's."""
        code = self.code
        x = code.as_reg(operand)
        first = code.special("recipsqrt", x)
        half = code.make("fmul", HALF, code.make("fmul", first, first))
        error = code.make("fsub", real(1.5), code.make("fmul", x, half))
        return code.make("fmul", first, error)

    def _frsq(self, value: Value) -> Operand:
        return self._root(self._arg(value))

    def _fsqrt(self, value: Value) -> Operand:
        x = self.code.as_reg(self._arg(value))
        return self.code.make("fmul", x, self._root(x))

    def _fexp2(self, value: Value) -> Operand:
        return self.code.special("exp", self._arg(value))

    def _flog2(self, value: Value) -> Operand:
        return self.code.special("log", self._arg(value))

    def _fpow(self, value: Value) -> Operand:
        code = self.code
        power = code.make("fmul", code.special("log", self._arg(value)), self._arg(value, 1))
        return code.special("exp", power)

    def _whole(self, operand: Operand) -> Reg:
        """Towards 0."""
        return self.code.make("itof", self.code.make("ftoi", operand))

    def _ftrunc(self, value: Value) -> Operand:
        return self._whole(self._arg(value))

    def _step(
        self, x: Operand, whole: Reg, condition: Condition, name: str, by: Operand = ONE
    ) -> Reg:
        """`whole` moved by 1 where x - whole says so."""
        flags = self.code.flags(self.code.op("fsub", x, whole))
        return self.code.conditional(self.code.op(name, whole, by), flags, condition, whole)

    def _ffloor(self, value: Value) -> Operand:
        return self._floor(self._arg(value))

    def _floor(self, operand: Operand) -> Reg:
        x = self.code.as_reg(operand)
        return self._step(x, self._whole(x), Condition.NS, "fsub")

    def _fceil(self, value: Value) -> Operand:
        x = self.code.as_reg(self._arg(value))
        return self._step(x, self._whole(x), Condition.CS, "fadd")

    def _ffract(self, value: Value) -> Operand:
        return self.fraction(self._arg(value))

    def fraction(self, operand: Operand) -> Reg:
        """x - floor x."""
        code = self.code
        x = code.as_reg(operand)
        op = code.op("fsub", x, self._whole(x))
        flags = code.flags(op, Wants.ANY)
        rest = op.target
        assert isinstance(rest, Reg)
        return code.conditional(code.op("fadd", rest, ONE), flags, Condition.NS, rest)

    def _fround(self, value: Value) -> Operand:
        """Halves go to the even side: floor(x + 1/2), less 1 where that is odd and 1/2 above x."""
        code = self.code
        x = code.as_reg(self._arg(value))
        up = self._floor(code.make("fadd", x, HALF))
        tie = code.make("fsub", code.make("fsub", up, x), HALF)
        odd = self.fraction(code.make("fmul", up, HALF))
        mask = self._word(code.op("fsub", tie, ZERO), Condition.ZS)
        odd_mask = self._word(code.op("fsub", odd, ZERO), Condition.ZC)
        flags = code.flags(code.op("and", mask, odd_mask))
        base = code.move(up)
        return code.conditional(code.op("fsub", up, ONE), flags, Condition.ZC, base)

    def _word(self, op: Op, condition: Condition) -> Reg:
        """All bits in the lanes of a condition."""
        flags = self.code.flags(op)
        base = self.code.move(ZERO)
        return self.code.conditional(self.code.op("mov", ALL), flags, condition, base)

    def _fsign(self, value: Value) -> Operand:
        code = self.code
        flags = code.flags(code.op("fadd", self._arg(value), ZERO))
        plus = code.conditional(code.op("mov", ONE), flags, Condition.CS, code.move(ZERO))
        return code.conditional(code.op("mov", MINUS_ONE), flags, Condition.NS, plus)

    def _fsin(self, value: Value) -> Operand:
        return self._sine(self.code.make("fmul", self._arg(value), real(0.15915494)))

    def _fcos(self, value: Value) -> Operand:
        turns = self.code.make("fmul", self._arg(value), real(0.15915494))
        return self._sine(self.code.make("fadd", turns, real(0.25)))

    def _sine(self, turns: Reg) -> Reg:
        """sin of so many turns: t = |fraction - 1/2| - 1/4 is a quarter of a turn at most."""
        code = self.code
        # fraction f; sin(2 pi f) = sin(2 pi t) with t = 1/4 - |f' - 1/2|, f' = fraction(f + 1/4)
        moved = self.fraction(code.make("fadd", turns, real(0.25)))
        centred = code.make("fsub", moved, HALF)
        t = code.make("fsub", real(0.25), code.make("fmaxabs", centred, centred))
        square = code.make("fmul", t, t)
        total = code.move(real(SINE[-1]))
        for factor in SINE[-2::-1]:
            total = code.make("fadd", code.make("fmul", total, square), real(factor))
        return code.make("fmul", total, t)

    # ---------------------------------------------------------------- conditions

    def _condition(
        self, value: Value, *operands: Operand | None, late: bool = False
    ) -> tuple[Flags, Condition]:
        """Flags that say whether a value holds, for an operation with these operands. late: they
        are set after all that the block has.
        """
        known = self._conditions.setdefault(value, [])
        block = self.code.block.number
        for flags, condition, is_late, where in known:
            if is_late == late and where == block and self.code.may_use(flags, *operands):
                return flags, condition
        if value.op == "not" and value not in self._operands:
            flags, condition = self._condition(value.args[0], *operands, late=late)
            return flags, OPPOSITE[condition]
        op, condition = self._setter(value)
        flags = self.code.flags(op)
        known.append((flags, condition, late, block))
        return flags, condition

    def _setter(self, value: Value) -> tuple[Op, Condition]:
        """The operation whose flags say whether a value holds."""
        code = self.code
        if value.op in COMPARISONS and value not in self._operands:
            name, swapped, condition = COMPARISONS[value.op]
            args = [self.get(arg) for arg in value.args]
            if value.op in ("ieq", "ine") and value.args[1].op == "constant":
                if value.args[1].attributes[0] == 0:
                    return code.op("mov", args[0]), condition
            return code.op(name, *(args[::-1] if swapped else args)), condition
        if value.op in ("and", "or", "xor") and value not in self._operands:
            return code.op(value.op, *(self.get(arg) for arg in value.args)), Condition.ZC
        return code.op("mov", self.get(value)), Condition.ZC

    def _boolean(self, value: Value) -> Operand:
        """A comparison as a word."""
        op, condition = self._setter(value)
        return self._word(op, condition)

    def _b2f(self, value: Value) -> Operand:
        return self._choose(value.args[0], ONE, ZERO, False, False)

    def _select(self, value: Value) -> Operand:
        condition, first, second = value.args
        return self._choose(
            condition,
            self.get(first),
            self.get(second),
            self._is_free(first),
            self._is_free(second),
        )

    def _is_free(self, value: Value) -> bool:
        """Whether a value's register may be written over by the one that reads it."""
        operand = self._operands.get(value)
        return (
            self._uses.get(value) == 1
            and isinstance(operand, Reg)
            and operand not in self._shared
            and operand.block == self.code.block.number
            and operand.wants in (Wants.ANY, Wants.FILE)
            and operand.uses == 0
        )

    def _choose(
        self, condition: Value, first: Operand, second: Operand, first_free: bool, second_free: bool
    ) -> Reg:
        """`first` where the condition holds, else `second`."""
        code = self.code
        first_op = code.may_change(first) if first_free else None
        second_op = code.may_change(second) if second_free else None
        if second_free:
            assert isinstance(second, Reg)
            return self._put_over(condition, first, first_op, second, True)
        if first_free and second_op is None:
            assert isinstance(first, Reg)
            return self._put_over(condition, second, second_op, first, False)
        return self._put_over(condition, first, first_op, code.move(second), True)

    def _put_over(
        self, condition: Value, new: Operand, maker: Op | None, old: Reg, holds: bool
    ) -> Reg:
        """`new` over `old` in the lanes where the condition holds or does not; what makes it can
        do that itself if nothing else reads it.
        """
        code = self.code
        operands = [new, old] if maker is None else [*maker.args, old]
        flags, lanes = self._condition(condition, *operands)
        lanes = lanes if holds else OPPOSITE[lanes]
        if maker is None or code.may_change(new) is None:
            return code.conditional(code.op("mov", new), flags, lanes, old)
        return code.in_lanes(maker, flags, lanes, old)

    # ---------------------------------------------------------------- integers

    def _fold_minmax(self, value: Value, condition: Condition) -> Operand:
        code = self.code
        first, second = self._arg(value), self._arg(value, 1)
        flags = code.flags(code.op("sub", first, second))
        return code.conditional(code.op("mov", second), flags, condition, code.move(first))

    def _umin(self, value: Value) -> Operand:
        return self._fold_minmax(value, Condition.CC)

    def _umax(self, value: Value) -> Operand:
        return self._fold_minmax(value, Condition.CS)

    def _ineg(self, value: Value) -> Operand:
        return self.code.make("sub", ZERO, self._arg(value))

    def _iabs(self, value: Value) -> Operand:
        x = self.code.as_reg(self._arg(value))
        return self.code.make("max", x, self.code.make("sub", ZERO, x))

    def _isign(self, value: Value) -> Operand:
        return self.code.make("max", self.code.make("min", self._arg(value), Const(1)), ALL)

    def _f2u(self, value: Value) -> Operand:
        return self.code.make("ftoi", self.code.make("fmax", self._arg(value), ZERO))

    def _u2f(self, value: Value) -> Operand:
        return self.from_unsigned(self.code.as_reg(self._arg(value)))

    def from_unsigned(self, x: Reg) -> Reg:
        """An unsigned word as a float."""
        code = self.code
        base = code.make("itof", x)
        flags = code.flags(code.op("mov", x))
        wrapped = code.op("fadd", base, real(4294967296.0))
        return code.conditional(wrapped, flags, Condition.NS, base)

    def multiply(self, first: Operand, second: Operand) -> Reg:
        """The low word of a product, of 24-bit ones."""
        code = self.code
        low = code.make("mul24", first, second)
        eight = real(0.0)._replace(word=24)
        parts = []
        for a, b in ((first, second), (second, first)):
            if isinstance(a, Const) and a.word < 1 << 24:
                continue
            parts.append(code.make("mul24", code.make("shr", a, eight), b))
        if not parts:
            return low
        high = parts[0] if len(parts) == 1 else code.make("add", *parts)
        return code.make("add", low, code.make("shl", high, eight))

    def _imul(self, value: Value) -> Operand:
        return self.multiply(self._arg(value), self._arg(value, 1))

    def _divide(self, a: Reg, b: Reg) -> tuple[Reg, Reg]:
        """Quotient and rest of unsigned words (b = 0: anything): three estimates, each of the rest
        of the one before, and a last step.
        """
        code = self.code
        # slightly less than 1 / b, so that no estimate is too large
        reciprocal = self.reciprocal(self.from_unsigned(b))
        reciprocal = code.make("fmul", reciprocal, real(1 - 2.0**-20))
        quotient: Reg | None = None
        rest = a
        for _ in range(3):
            part = code.make("ftoi", code.make("fmul", self.from_unsigned(rest), reciprocal))
            rest = code.make("sub", rest, self.multiply(part, b))
            quotient = part if quotient is None else code.make("add", quotient, part)
        assert quotient is not None
        more = code.move(quotient)
        flags = code.flags(code.op("sub", rest, b))
        lanes = Condition.CC
        quotient = code.conditional(code.op("add", quotient, Const(1)), flags, lanes, more)
        less = code.move(rest)
        return quotient, code.conditional(code.op("sub", rest, b), flags, lanes, less)

    def _unless_zero(self, b: Reg, result: Reg, otherwise: Operand) -> Reg:
        """`result`, or another word where b is 0."""
        code = self.code
        base = code.move(result)
        flags = code.flags(code.op("mov", b))
        return code.conditional(code.op("mov", otherwise), flags, Condition.ZS, base)

    def _unsigned_division(self, value: Value) -> tuple[Reg, Reg, Reg]:
        a, b = (self.code.as_reg(self.get(arg)) for arg in value.args)
        return b, *self._divide(a, b)

    def _udiv(self, value: Value) -> Operand:
        b, quotient, _ = self._unsigned_division(value)
        return self._unless_zero(b, quotient, ALL)

    def _umod(self, value: Value) -> Operand:
        b, _, rest = self._unsigned_division(value)
        return self._unless_zero(b, rest, ALL)

    def _signed_division(self, value: Value) -> tuple[Reg, Reg, Reg, Reg]:
        """a, b and quotient and rest of their magnitudes."""
        code = self.code
        a, b = (code.as_reg(self.get(arg)) for arg in value.args)
        sizes = [code.make("max", x, code.make("sub", ZERO, x)) for x in (a, b)]
        return a, b, *self._divide(*sizes)

    def _negated_where(self, sign: Op, result: Reg) -> Reg:
        code = self.code
        flags = code.flags(sign)
        base = code.move(result)
        return code.conditional(code.op("sub", ZERO, result), flags, Condition.NS, base)

    def _idiv(self, value: Value) -> Operand:
        a, b, quotient, _ = self._signed_division(value)
        signed = self._negated_where(self.code.op("xor", a, b), quotient)
        return self._unless_zero(b, signed, ZERO)

    def _imod(self, value: Value) -> Operand:
        a, b, _, rest = self._signed_division(value)
        signed = self._negated_where(self.code.op("mov", a), rest)
        return self._unless_zero(b, signed, ALL)

    # ---------------------------------------------------------------- neighbours

    def _derivative(self, value: Value, step: int) -> Operand:
        """The difference of the two lanes of a pair that are `step` lanes apart."""
        code = self.code
        x = code.as_reg(self._arg(value))
        after = self._rotated(x, 16 - step)
        before = self._rotated(x, step)
        high = code.make("fsub", x, before)
        flags = code.flags(code.op("and", ELEMENT, Const(step)))
        return code.conditional(code.op("fsub", after, x), flags, Condition.ZS, high)

    def _rotated(self, x: Reg, by: int) -> Reg:
        op = Op("rotate", None, MulOp.V8MIN, [x])
        op.rotate = by
        result = self.code.add(op)
        assert result is not None
        return result

    def _ddx(self, value: Value) -> Operand:
        return self._derivative(value, 1)

    def _ddy(self, value: Value) -> Operand:
        return self._derivative(value, 2)
