"""Operators and conversions of staged values, and their results where operands are constants.

Operands of folded operations are raw (unsigned) element bits and their width; None means "leave it to run
time". Floats are never computed here: their result depends on the rounding mode.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self, TypeAlias

from vc4lab.simd.trace import current, staged_error
from vc4lab.simd.types import Type, f32, f64, i1, i64, ptr

Operand: TypeAlias = "Operators | float"
"""An operand of a staged value: another one, or a Python number."""


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


class Conversions(Operators):
    """The conversions of `Value`; `to` may be the element type, lanes are kept.

    The class variables make a constant of a type and its bits, and choose between two values.
    """

    __slots__ = ()

    text: str
    _bits: int | None

    if TYPE_CHECKING:

        def _constant(self, *operands: Any) -> Self: ...
        def _select(self, *operands: Any) -> Self: ...
        def _convert(self, op: str, to: Type) -> Self: ...

    def bitcast(self, to: Type) -> Self:
        """The value's bits as another type; element type of the same width keeps the lanes."""
        mine = self.type
        if not to.lanes and to.bits == mine.bits:
            to = to.like(mine)
        if to is mine:
            return self
        if to.bits * (to.lanes or 1) != mine.bits * (mine.lanes or 1):
            raise staged_error(f"bitcast from {mine} to {to}: the sizes differ")
        bits = self._bits if to.bits == mine.bits else None
        if bits is not None:
            return self._constant(to, bits)
        if mine.is_ptr != to.is_ptr:
            return self._convert("ptrtoint" if mine.is_ptr else "inttoptr", to)
        trace = current()
        if trace.eager:
            return self._convert("bitcast", to)
        source: Self = trace.casts.get(self.text, self)
        if to is source.type:
            return source
        result = source._convert("bitcast", to)
        trace.casts[result.text] = source
        return result

    def sext(self, to: Type) -> Self:
        """Sign-extends integers (a mask becomes 0 / -1)."""
        return self._resize("sext", to, 1)

    def zext(self, to: Type) -> Self:
        """Zero-extends integers (a mask becomes 0 / 1)."""
        return self._resize("zext", to, 1)

    def trunc(self, to: Type) -> Self:
        """The low bits of integers."""
        return self._resize("trunc", to, -1)

    def _resize(self, op: str, to: Type, direction: int) -> Self:
        to = to.like(self.type)
        if to is self.type:
            return self
        if not (to.is_int and self.type.is_int) or (to.bits - self.type.bits) * direction < 0:
            raise staged_error(f"{op} from {self.type} to {to} is not possible")
        if self._bits is not None:
            number = self._bits
            if op == "sext" and number >> (self.type.bits - 1):
                number -= 1 << self.type.bits
            return self._constant(to, number & ((1 << to.bits) - 1))
        return self._convert(op, to)

    def to_float(self, to: Type = f32) -> Self:
        """Signed integers to float, in the current rounding mode."""
        if not self.type.is_int:
            raise staged_error(f"to_float wants integers, not {self.type}")
        return self._convert("sitofp", to.like(self.type))

    def to_float_unsigned(self, to: Type = f32) -> Self:
        """Unsigned integers to float, in the current rounding mode."""
        if not self.type.is_int:
            raise staged_error(f"to_float_unsigned wants integers, not {self.type}")
        return self._convert("uitofp", to.like(self.type))

    def to_int(self, to: Type, inside: bool = False) -> Self:
        """Float to signed integers: toward zero, saturating, NaN gives 0.

        inside: a promise that there is nothing to saturate and no NaN.
        """
        to = to.like(self.type)
        if not (self.type.is_float and to.is_int):
            raise staged_error(f"to_int from {self.type} to {to} is not possible")
        if inside:
            return self._convert("fptosi", to)
        limit = float(1 << (to.bits - 1))
        above, below = self >= limit, self < -limit
        safe = self._select(above | below | (self != self), 0.0, self)
        whole = safe._convert("fptosi", to)
        return self._select(above, (1 << (to.bits - 1)) - 1, self._select(below, -1 << (to.bits - 1), whole))

    def fpext(self, to: Type = f64) -> Self:
        return self._convert("fpext", to.like(self.type))

    def fptrunc(self, to: Type = f32) -> Self:
        return self._convert("fptrunc", to.like(self.type))


def _signed(bits: int, width: int) -> int:
    return bits - (1 << width) if bits >> (width - 1) else bits


FOLD: dict[str, Any] = {
    "add": lambda a, b, w: a + b,
    "sub": lambda a, b, w: a - b,
    "mul": lambda a, b, w: a * b,
    "and": lambda a, b, w: a & b,
    "or": lambda a, b, w: a | b,
    "xor": lambda a, b, w: a ^ b,
    "shl": lambda a, b, w: a << b if b < w else None,
    "lshr": lambda a, b, w: a >> b if b < w else None,
    "ashr": lambda a, b, w: _signed(a, w) >> b if b < w else None,
    "eq": lambda a, b, w: a == b,
    "ne": lambda a, b, w: a != b,
    "ult": lambda a, b, w: a < b,
    "ule": lambda a, b, w: a <= b,
    "ugt": lambda a, b, w: a > b,
    "uge": lambda a, b, w: a >= b,
    "slt": lambda a, b, w: _signed(a, w) < _signed(b, w),
    "sle": lambda a, b, w: _signed(a, w) <= _signed(b, w),
    "sgt": lambda a, b, w: _signed(a, w) > _signed(b, w),
    "sge": lambda a, b, w: _signed(a, w) >= _signed(b, w),
}

NEUTRAL: dict[str, int] = {
    "add": 0, "sub": 0, "mul": 1, "and": -1, "or": 0, "xor": 0, "shl": 0, "lshr": 0, "ashr": 0,
}  # fmt: skip
"""The second operand with which an operation gives back its first."""

ABSORBING: dict[str, int] = {"and": 0, "mul": 0, "or": -1}
"""The operand with which an operation gives that operand, whatever the other one is."""

COMMUTATIVE = ("add", "mul", "and", "or", "xor")
"""Operations whose operands may change places."""

_INVERSE = {
    "icmp": (("eq", "ne"), ("ult", "uge"), ("ule", "ugt"), ("slt", "sge"), ("sle", "sgt")),
    "fcmp": (
        ("oeq", "une"), ("olt", "uge"), ("ole", "ugt"), ("ogt", "ule"), ("oge", "ult"),
        ("ord", "uno"),
    ),
}  # fmt: skip
INVERSE = {
    (kind, test): other
    for kind, pairs in _INVERSE.items()
    for pair in pairs
    for test, other in (pair, pair[::-1])
}
"""The test that holds exactly where this one does not."""
