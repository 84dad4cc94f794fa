"""Which instruction each of Python's operators is on a staged value."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self, TypeAlias

from vc4lab.simd.types import Type, i1, i64, ptr

Operand: TypeAlias = "Operators | float"
"""What a staged value is computed with: another one, or a Python number."""


class Operators:
    """The operators of `Value`, which emits the instructions.

    The class variables take (integer instruction, float instruction, left, right); an empty name
    says that there is no such instruction.
    """

    __slots__ = ()
    __array_ufunc__ = None  # numpy scalars on the left give way
    __hash__ = object.__hash__

    type: Type

    if TYPE_CHECKING:

        def _arithmetic(self, *operands: Any) -> Self: ...
        def _compare(self, *operands: Any) -> Self: ...
        def _divide(self, *operands: Any) -> Self: ...
        def _offset(self, *operands: Any) -> Self: ...
        def bitcast(self, to: Type) -> Self: ...
        def __pos__(self) -> Self: ...
        def _negate(self) -> Self: ...

    # -- arithmetic
    def __add__(self, other: Operand) -> Self:
        if self.type.elem is ptr:
            return self._offset(self, other)
        return self._arithmetic("add", "fadd", self, other)

    def __radd__(self, other: Operand) -> Self:
        return self + other if self.type.elem is ptr else self._arithmetic("add", "fadd", other, self)

    def __sub__(self, other: Operand) -> Self:
        if self.type is ptr:
            if isinstance(other, Operators) and other.type is ptr:
                return self.bitcast(i64) - other.bitcast(i64)
            return self._offset(self, -other)
        return self._arithmetic("sub", "fsub", self, other)

    def __rsub__(self, other: Operand) -> Self:
        return self._arithmetic("sub", "fsub", other, self)

    def __mul__(self, other: Operand) -> Self:
        return self._arithmetic("mul", "fmul", self, other)

    def __rmul__(self, other: Operand) -> Self:
        return self._arithmetic("mul", "fmul", other, self)

    def __truediv__(self, other: Operand) -> Self:
        return self._arithmetic("", "fdiv", self, other, "use // or .udiv")

    def __rtruediv__(self, other: Operand) -> Self:
        return self._arithmetic("", "fdiv", other, self, "use // or .udiv")

    def __floordiv__(self, other: Operand) -> Self:
        return self._divide("sdiv", self, other)

    def __rfloordiv__(self, other: Operand) -> Self:
        return self._divide("sdiv", other, self)

    def __mod__(self, other: Operand) -> Self:
        return self._divide("srem", self, other)

    def __rmod__(self, other: Operand) -> Self:
        return self._divide("srem", other, self)

    def udiv(self, other: Operand) -> Self:
        """Unsigned division (by zero: as if by one)."""
        return self._divide("udiv", self, other)

    def urem(self, other: Operand) -> Self:
        """Unsigned remainder (by zero: as if by one)."""
        return self._divide("urem", self, other)

    def __neg__(self) -> Self:
        return self._negate() if self.type.is_float else self._arithmetic("sub", "", 0, self)

    # -- bits
    def __and__(self, other: Operand) -> Self:
        return self._arithmetic("and", "", self, other)

    __rand__ = __and__

    def __or__(self, other: Operand) -> Self:
        return self._arithmetic("or", "", self, other)

    __ror__ = __or__

    def __xor__(self, other: Operand) -> Self:
        return self._arithmetic("xor", "", self, other)

    __rxor__ = __xor__

    def __invert__(self) -> Self:
        return self._arithmetic("xor", "", self, True if self.type.elem is i1 else -1)

    def __lshift__(self, other: Operand) -> Self:
        return self._arithmetic("shl", "", self, other)

    def __rlshift__(self, other: Operand) -> Self:
        return self._arithmetic("shl", "", other, self)

    def __rshift__(self, other: Operand) -> Self:
        return self._arithmetic("ashr", "", self, other)

    def __rrshift__(self, other: Operand) -> Self:
        return self._arithmetic("ashr", "", other, self)

    def shr(self, other: Operand) -> Self:
        """Logical shift right. As in every shift, an amount >= the width is undefined."""
        return self._arithmetic("lshr", "", self, other)

    # -- comparisons
    def __eq__(self, other: Operand) -> Self:  # type: ignore[override]
        return self._compare("eq", "oeq", self, other)

    def __ne__(self, other: Operand) -> Self:  # type: ignore[override]
        return self._compare("ne", "une", self, other)

    def __lt__(self, other: Operand) -> Self:
        return self._compare("slt", "olt", self, other)

    def __le__(self, other: Operand) -> Self:
        return self._compare("sle", "ole", self, other)

    def __gt__(self, other: Operand) -> Self:
        return self._compare("sgt", "ogt", self, other)

    def __ge__(self, other: Operand) -> Self:
        return self._compare("sge", "oge", self, other)

    def ult(self, other: Operand) -> Self:
        return self._compare("ult", "", self, other)

    def ule(self, other: Operand) -> Self:
        return self._compare("ule", "", self, other)

    def ugt(self, other: Operand) -> Self:
        return self._compare("ugt", "", self, other)

    def uge(self, other: Operand) -> Self:
        return self._compare("uge", "", self, other)
