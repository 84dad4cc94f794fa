"""Staged values: what a kernel computes with while it is traced, with Python's operators."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from vc4lab.bounded import Bounded
from vc4lab.simd.operators import ABSORBING, COMMUTATIVE, FOLD, INVERSE, NEUTRAL, Conversions, Operand
from vc4lab.simd.trace import current, staged_error
from vc4lab.simd.types import (
    Type,
    bits_to_number,
    f32,
    i1,
    i32,
    i64,
    literal,
    number_to_bits,
    ptr,
    splat_literal,
    vec,
)

Number = int | float


# -- making values


_constants: Bounded[tuple[Type, int], Value] = Bounded(1 << 15)


def const_bits(type_: Type, bits: int) -> Value:
    """A constant with the raw element bits in every lane."""
    known = _constants.get((type_, bits))
    if known is None:
        known = _constants[type_, bits] = Value(type_, splat_literal(type_, bits), bits)
    return known


def const(type_: Type, number: float | Sequence[float]) -> Value:
    """A compile-time constant: a number for every lane, or a list of one number per lane."""
    if isinstance(number, list | tuple):
        if len(number) != type_.lanes:
            raise staged_error(f"{len(number)} numbers for {type_}")
        words = [number_to_bits(type_, n) for n in number]
        if len(set(words)) == 1:
            return const_bits(type_, words[0])
        elem = type_.elem
        inner = ", ".join(f"{elem.text} {literal(elem, w)}" for w in words)
        return Lanes(type_, f"<{inner}>", words)
    return const_bits(type_, number_to_bits(type_, number))


def splat(value: Operand, n: int = 16) -> Value:
    """`value` (a scalar, or a Python number as i32/f32) in `n` lanes."""
    scalar = as_value(value)
    if scalar.type.lanes:
        if scalar.type.lanes == n:
            return scalar
        raise staged_error(f"splat wants a scalar, not {scalar.type}")
    type_ = vec(scalar.type, n)
    if scalar._bits is not None:
        return const_bits(type_, scalar._bits)
    trace = current()
    one = trace.once(f"insertelement {type_.text} poison, {scalar.type.text} {scalar.text}, i32 0")
    text = trace.once(f"shufflevector {type_.text} {one}, {type_.text} poison, <{n} x i32> zeroinitializer")
    trace.splats[text] = scalar
    return Value(type_, text)


def as_value(value: Any) -> Value:
    """A Python bool, int or float as i1, i32 or f32; Values as they are."""
    if isinstance(value, Value):
        return value
    if isinstance(value, bool):
        return const_bits(i1, int(value))
    if hasattr(value, "__index__"):
        return const(i32, value)
    if hasattr(value, "__float__"):
        return const(f32, value)
    raise staged_error(f"{value!r} is not a staged value or a number")


def coerce(value: Operand | None, type_: Type) -> Value:
    """`value` as a `type_`: Python numbers convert, scalars spread, anything else is an error."""
    if isinstance(value, Value):
        if value.type is type_:
            return value
        if not value.type.lanes and type_.lanes and value.type is type_.elem:
            return splat(value, type_.lanes)
        raise staged_error(f"expected {type_}, found {value.type}")
    if value.__class__ is int and type_.is_int:
        return const_bits(type_, value & ((1 << type_.bits) - 1))
    if type_.is_ptr and value is None:
        value = 0
    if hasattr(value, "__index__"):
        return const_bits(type_, number_to_bits(type_, value))
    if not hasattr(value, "__float__"):
        raise staged_error(f"expected {type_}, found {value!r}")
    if not type_.is_float:
        raise staged_error(f"expected {type_}, found the float {value!r}")
    return const_bits(type_, number_to_bits(type_, value))


def unify(a: Operand, b: Operand, what: str) -> tuple[Value, Value]:
    """Both operands in one type, by the splat rules."""
    if isinstance(a, Value):
        if not isinstance(b, Value):
            return a, coerce(b, a.type)
        if a.type is b.type:
            return a, b
        if a.type.elem is b.type.elem:
            if not a.type.lanes:
                return splat(a, b.type.lanes), b
            if not b.type.lanes:
                return a, splat(b, a.type.lanes)
        raise staged_error(f"{what}: {a.type} and {b.type} do not match")
    if isinstance(b, Value):
        return coerce(a, b.type), b
    return as_value(a), as_value(b)


# -- operations


def arithmetic(int_op: str, float_op: str, a: Operand, b: Operand, hint: str = "") -> Value:
    """A binary operation; integer constants are computed at once, floats never (rounding mode)."""
    x, y = unify(a, b, f"operands of {int_op or float_op}")
    type_ = x.type
    op = float_op if type_.is_float else int_op
    if not op or type_.is_ptr:
        raise staged_error(f"{int_op or float_op} is not defined for {type_} {hint}".rstrip())
    if x._bits is not None and y._bits is not None and not type_.is_float:
        folded = FOLD[op](x._bits, y._bits, type_.bits)
        if folded is not None:
            return const_bits(type_, folded & ((1 << type_.bits) - 1))
    elif not type_.is_float:
        if type_.elem is i1:
            known = _logic(op, x, y)
            if known is not None:
                return known
        if x._bits is not None and op in COMMUTATIVE:
            x, y = y, x
        if y._bits is not None:
            ones = (1 << type_.bits) - 1
            if op in NEUTRAL and y._bits == NEUTRAL[op] & ones:
                return x
            if op in ABSORBING and y._bits == ABSORBING[op] & ones:
                return y
        if op == "mul" and y._bits is not None and y._bits.bit_count() == 1:
            op, y = "shl", const_bits(type_, y._bits.bit_length() - 1)
    trace = current()
    if trace.eager:
        found: Value = trace.eager.arithmetic(op, x, y)
        return found
    return Value(type_, trace.once(f"{op} {type_.text} {x.text}, {y.text}"))


def compare(int_op: str, float_op: str, a: Operand, b: Operand) -> Value:
    x, y = unify(a, b, "operands of a comparison")
    type_ = x.type
    result = i1.like(type_)
    op = float_op if type_.is_float else int_op
    if not op:
        raise staged_error(f"{int_op} compares integers, not {type_}")
    if x._bits is not None and y._bits is not None and type_.is_int:
        return const_bits(result, int(FOLD[op](x._bits, y._bits, type_.bits)))
    kind = "fcmp" if type_.is_float else "icmp"
    eager = current().eager
    if eager:
        found: Value = eager.compare(kind, op, x, y)
        return found
    return _compared(result, kind, op, type_.text, x.text, y.text)


def _compared(result: Type, kind: str, test: str, type_text: str, x: str, y: str) -> Value:
    trace = current()
    name = trace.once(f"{kind} {test} {type_text} {x}, {y}")
    trace.compares[name] = kind, test, type_text, x, y
    return Value(result, name)


def inverted(condition: Value) -> Value | None:
    """The opposite comparison, if `condition` is one."""
    known = current().compares.get(condition.text)
    if known is None:
        return None
    kind, test, *operands = known
    return _compared(condition.type, kind, INVERSE[kind, test], *operands)


def unordered(x: Value, y: Value) -> Value:
    """Whether one of two floats is NaN."""
    eager = current().eager
    if eager:
        found: Value = eager.compare("fcmp", "uno", x, y)
        return found
    return _compared(i1.like(x.type), "fcmp", "uno", x.type.text, x.text, y.text)


def _logic(op: str, x: Value, y: Value) -> Value | None:
    """A simpler form of an operation on truth values, where there is one."""
    compares = current().compares
    first = compares.get(x.text)
    if first is None:
        return None
    if op == "xor" and y._bits == 1:
        return inverted(x)
    kind, test, type_text, a, b = first
    second = compares.get(y.text)
    if op == "or" and second is not None and a == b and test == "uno":
        if second[:3] == first[:3] and second[3] == second[4]:
            return _compared(x.type, kind, test, type_text, a, second[3])
    return None


def divide(op: str, a: Operand, b: Operand) -> Value:
    """Total integer division: a divisor of 0 counts as 1, the most negative / -1 wraps.

    (The processor's instruction would trap, and guest data must never crash the simulator.)
    """
    x, y = unify(a, b, f"operands of {op}")
    if not x.type.is_int:
        raise staged_error(f"{op} divides integers, not {x.type}; use /")
    if y._bits is None:
        bad = y == 0
        if op[0] == "s":
            bad = bad | ((y == -1) & (x == (-1 << (x.type.bits - 1))))
        y = select(bad, 1, y)
    elif y._bits == 0:
        y = const(x.type, 1)
    elif op[0] == "s" and y.constant == -1:
        return -x if op == "sdiv" else const(x.type, 0)
    trace = current()
    if trace.eager:
        found: Value = trace.eager.divide(op, x, y)
        return found
    return Value(x.type, trace.once(f"{op} {x.type.text} {x.text}, {y.text}"))


def offset_pointer(base: Value, offset: Operand) -> Value:
    """`base` plus a number of bytes (integers are sign-extended)."""
    step = coerce(offset, i64) if not isinstance(offset, Value) else offset
    if not step.type.is_int:
        raise staged_error(f"a pointer moves by integers (bytes), not {step.type}")
    trace = current()
    if trace.eager:
        found: Value = trace.eager.offset_pointer(base, step)
        return found
    if step._bits is not None and not step.type.lanes and not base.type.lanes:
        # one step from where the pointer comes from, not a chain
        number = step._bits - (step._bits >> (step.type.bits - 1) << step.type.bits)
        start, before = trace.offsets.get(base.text, (base.text, 0))
        number += before
        if not number:
            return Value(ptr, start)
        name = trace.once(f"getelementptr i8, ptr {start}, i64 {number}")
        trace.offsets[name] = start, number
        return Value(ptr, name)
    text = f"getelementptr i8, {base.type.text} {base.text}, {step.type.text} {step.text}"
    return Value(ptr.like(step.type) if step.type.lanes else base.type, trace.once(text))


def select(condition: Operand, a: Any, b: Any) -> Value:
    """`a` where `condition` (i1 for the whole value, or a mask per lane) holds, else `b`."""
    if not isinstance(condition, Value):
        chosen: Value = a if condition else b
        return chosen
    if condition.type.elem is not i1:
        raise staged_error(f"select wants an i1 or a mask, not {condition.type}")
    x, y = unify(a, b, "values of select")
    lanes = condition.type.lanes
    if lanes and not x.type.lanes:
        x, y = splat(x, lanes), splat(y, lanes)
    if lanes and lanes != x.type.lanes:
        raise staged_error(f"select: a {condition.type} cannot choose between {x.type}")
    if condition._bits is not None:
        return x if condition._bits else y
    trace = current()
    if trace.eager:
        found: Value = trace.eager.select(condition, x, y)
        return found
    if x.text == y.text:
        return x
    c = f"{condition.type.text} {condition.text}"
    t = x.type.text
    return Value(x.type, trace.once(f"select {c}, {t} {x.text}, {t} {y.text}"))


# -- the values themselves


class Value(Conversions):
    """An immutable value of the program being traced: scalar or vector, known by `.type`.

    Integers are signless; operators and comparisons are signed, methods (`udiv`, `shr`, `ult`, …)
    unsigned. Python numbers and scalars spread to the lanes of the other operand.
    """

    __slots__ = ("_bits", "text", "type")
    _arithmetic = staticmethod(arithmetic)
    _compare = staticmethod(compare)
    _divide = staticmethod(divide)
    _offset = staticmethod(offset_pointer)
    _constant = staticmethod(const_bits)
    _select = staticmethod(select)

    def __init__(self, type_: Type, text: str, bits: int | None = None) -> None:
        self.type = type_
        self.text = text
        self._bits = bits  # raw element bits, if every lane is this compile-time constant

    @property
    def constant(self) -> Any:
        """The Python number if this is a (splat) compile-time constant, else None."""
        return None if self._bits is None else bits_to_number(self.type, self._bits)

    def __repr__(self) -> str:
        return f"<{self.type} {self.text}>"

    def __bool__(self) -> bool:
        raise staged_error(
            f"a staged {self.type} has no truth value while tracing; use it in an if/while of a "
            "@kernel or @staged function, or select()"
        )

    if TYPE_CHECKING:

        def __index__(self) -> int:
            """`range` of a staged value is a native loop."""

    def __iter__(self) -> Any:
        raise staged_error(f"a staged {self.type} cannot be iterated; use x[i]")

    def __pos__(self) -> Value:
        return self

    def _negate(self) -> Value:
        if self._bits is not None:
            return const_bits(self.type, self._bits ^ (1 << (self.type.bits - 1)))
        trace = current()
        if trace.eager:
            sign = 1 << (self.type.bits - 1)
            return Lanes(self.type, "", trace.eager.words(self) ^ sign)
        return Value(self.type, trace.once(f"fneg {self.type.text} {self.text}"))

    def _convert(self, op: str, to: Type) -> Value:
        trace = current()
        if trace.eager:
            found: Value = trace.eager.convert(op, self, to)
            return found
        return Value(to, trace.once(f"{op} {self.type.text} {self.text} to {to.text}"))

    # -- lanes
    def __getitem__(self, index: Operand) -> Value:
        """Lane `index`: a Python int or a staged i32 (taken modulo the number of lanes)."""
        position = self._lane(index)
        if self._bits is not None:
            return const_bits(self.type.elem, self._bits)
        trace = current()
        if trace.eager:
            found: Value = trace.eager.lane(self, index)
            return found
        same: Value | None = trace.splats.get(self.text)
        if same is not None:
            return same
        text = trace.once(f"extractelement {self.type.text} {self.text}, {position}")
        return Value(self.type.elem, text)

    def insert(self, index: Operand, value: Operand) -> Value:
        """A copy with lane `index` replaced."""
        position = self._lane(index)
        new = coerce(value, self.type.elem)
        eager = current().eager
        if eager:
            found: Value = eager.insert(self, index, new)
            return found
        text = f"insertelement {self.type.text} {self.text}, {new.type.text} {new.text}, {position}"
        return Value(self.type, current().once(text))

    def _lane(self, index: Operand) -> str:
        lanes = self.type.lanes
        if not lanes:
            raise staged_error(f"a scalar {self.type} has no lanes")
        if isinstance(index, Value):
            if index.type.lanes or not index.type.is_int:
                raise staged_error(f"a lane index is a scalar integer, not {index.type}")
            index = index & (lanes - 1) if lanes & (lanes - 1) == 0 else index.urem(lanes)
            return f"{index.type.text} {index.text}"
        if not 0 <= index < lanes:
            raise IndexError(f"lane {index} of {self.type}")
        return f"i32 {index}"


class Lanes(Value):
    """A value of which every lane is known: a constant, or what an eager run computes."""

    __slots__ = ("words",)

    def __init__(self, type_: Type, text: str, words: Any) -> None:
        super().__init__(type_, text)
        self.words = words
        """Raw element bits of each lane: a list, or a numpy array of unsigned integers or bools."""


def is_staged(value: Any) -> bool:
    """Is this known only when the kernel runs?"""
    return isinstance(value, Value)
