"""What operations on integers become, and derivatives."""

from __future__ import annotations

from vc4lab.driver.compiler.lower.constants import ALL, ZERO, real
from vc4lab.driver.compiler.lower.floats import Floats
from vc4lab.driver.compiler.machine.code import ELEMENT, Const, Op, Operand, Reg
from vc4lab.driver.compiler.ssa.values import Value
from vc4lab.qpu.isa.operations import Condition, MulOp


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
        """The same of an operand."""
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
