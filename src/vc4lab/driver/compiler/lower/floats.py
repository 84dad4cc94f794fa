"""What operations on floats become."""

from __future__ import annotations

from vc4lab.driver.compiler.lower.constants import HALF, MINUS_ONE, ONE, TWO, ZERO, real
from vc4lab.driver.compiler.lower.values import Values
from vc4lab.driver.compiler.machine.code import Operand, Reg, Wants
from vc4lab.driver.compiler.ssa.values import Value
from vc4lab.qpu.isa.operations import Condition

SINE = (6.2831855, -41.341679, 81.602232, -76.57502, 39.71109)
"""Of t, t^3, ... t^9 for sin(2 pi t), |t| <= 1/4: relative errors below 6e-9 (least squares with
weights that made the largest errors equal)."""


class Floats(Values):
    """Adds floats: sums and products, accurate reciprocals and roots, rounding, sines."""

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

    def _step(self, x: Operand, whole: Reg, condition: Condition, name: str, by: Operand = ONE) -> Reg:
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
