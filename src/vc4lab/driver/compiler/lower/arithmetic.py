"""Lowers operations on floats and integers, and derivatives."""

from __future__ import annotations

from vc4lab.driver.compiler.lower.values import Values
from vc4lab.driver.compiler.ssa.values import Value
from vc4lab.qpu.isa.operations import Condition, MulOp
from vc4lab.qpu.machine.builder import ALL, HALF, MINUS_ONE, ONE, TWO, ZERO, real
from vc4lab.qpu.machine.code import ELEMENT, Const, Op, Operand, Reg, Wants

SINE = (6.2831855, -41.341679, 81.602232, -76.57502, 39.71109)
"""Factors of t, t^3, ... t^9 for sin(2 pi t), |t| <= 1/4: relative errors below 6e-9 (least squares
with weights that made the largest errors equal)."""


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


class Arithmetic(Floats):
    """Adds integers of 32 bits, divided by way of floats, and differences of lanes."""

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
        return self.difference(self._arg(value), step)

    def difference(self, operand: Operand, step: int) -> Reg:
        """The difference of two lanes of an operand."""
        code = self.code
        x = code.as_reg(operand)
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
