"""Which instructions convert a staged value to another type."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from vc4lab.simd.operators import Operators
from vc4lab.simd.trace import current, staged_error
from vc4lab.simd.types import Type, f32, f64


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
        """The same bits as another type; element type of the same width keeps the lanes."""
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
