"""Defines the values of vc4asm's expressions: numbers, lanes, registers, labels.

Integers are 64 bits wide and wrap; operators are those of vc4asm's expression page.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import IntFlag
from typing import Final

_SIGN: Final = 1 << 63
_MASK: Final = (1 << 64) - 1


class Trouble(ValueError):  # noqa: N818 - becomes a Mistake where its place is known
    """An operator that does not take its operands."""


class Access(IntFlag):
    """Says what a register expression may be used for, and through which file."""

    A = 1
    B = 2
    AB = 3
    READ = 4
    WRITE = 8
    ACQUIRE = 16
    RELEASE = 32
    SEMAPHORE = 48


@dataclass(frozen=True, order=True, slots=True)
class Packing:
    """A pack or unpack that a suffix asks for.

    code: of the manual's tables, without saturation. saturates; kind: "" (as the operation is),
    "i" or "f"; request: "pack", "unpack" or "" where the place decides.
    """

    code: int
    saturates: bool = False
    kind: str = ""
    request: str = ""

    @property
    def pack_code(self) -> int:
        """The pack's code in the tables."""
        return self.code | (8 if self.saturates else 0)


NO_PACKING: Final = Packing(0)


@dataclass(frozen=True, slots=True)
class Register:
    """A register operand. rotate: upward by so many lanes, 16: by r5, -16: down by r5."""

    number: int
    access: Access
    rotate: int = 0
    packing: Packing = NO_PACKING

    @property
    def order(self) -> tuple[int, int, int]:
        """For comparisons: the kind of register counts most."""
        return int(self.access), self.rotate, self.number

    @property
    def is_semaphore(self) -> bool:
        return bool(self.access & Access.SEMAPHORE)

    @property
    def is_nothing(self) -> bool:
        return self.number == 39 and self.access & Access.AB == Access.AB


@dataclass(frozen=True, slots=True)
class Lanes:
    """Two bits for each lane. sign: -1 with negative elements, 1 with 2 and 3, else 0."""

    bits: int
    sign: int


@dataclass(frozen=True, slots=True)
class Label:
    """Byte offset of a label; 0 while it is not known."""

    offset: int
    known: bool = True


Value = int | float | Lanes | Register | Label

NOTHING: Final = Register(39, Access.AB | Access.READ | Access.WRITE)
"""The operand `-`."""


def wrapped(number: int) -> int:
    """An integer as its 64 bits mean it."""
    return ((number + _SIGN) & _MASK) - _SIGN


def kind_of(value: Value) -> str:
    """Return the kind of a value, in words."""
    if isinstance(value, int):
        return "an integer"
    if isinstance(value, float):
        return "a floating-point number"
    if isinstance(value, Lanes):
        return "a list of 16 lanes"
    return "a label" if isinstance(value, Label) else "a register"


def _rank(value: Value) -> int:
    """Values of different kinds compare by this."""
    if isinstance(value, int | float):
        return 0
    if isinstance(value, Lanes):
        return 2 + value.sign
    return 5 if isinstance(value, Label) else 4


def _ordered(value: Value) -> tuple[int | float, ...]:
    if isinstance(value, Lanes):
        return (value.bits,)
    if isinstance(value, Label):
        return (value.offset,)
    if isinstance(value, Register):
        return value.order
    return (value,)


def compare(left: Value, right: Value) -> int | None:
    """-1, 0 or 1; None if a NaN is in it."""
    if _rank(left) != _rank(right):
        return -1 if _rank(left) < _rank(right) else 1
    a, b = _ordered(left), _ordered(right)
    if a == b:
        same = not isinstance(left, Register) or left.packing == right.packing  # type: ignore[union-attr]
        return 0 if same else -1
    if a < b:
        return -1
    return 1 if a > b else None


# Operators ---------------------------------------------------------------------------------------


def _integer(value: Value) -> int:
    if not isinstance(value, int):
        raise Trouble(f"takes integers, not {kind_of(value)}")
    return value


def _number(value: Value) -> int | float:
    if not isinstance(value, int | float):
        raise Trouble(f"takes numbers, not {kind_of(value)}")
    return value


def _shift(left: Value, right: Value, up: bool) -> Value:
    if isinstance(left, Register):
        return _rotated(left, right, up)
    by = _integer(right) * (1 if up else -1)
    if isinstance(left, float):
        return math.ldexp(left, max(-5000, min(5000, by)))
    number = _integer(left)
    return wrapped(number << by) if 0 <= by < 64 else (0 if by >= 64 else number >> -by)


def _rotated(left: Register, right: Value, up: bool) -> Register:
    """`r1 << 3` takes each lane's value from lane + 3 below in a source; see Register.rotate."""
    if isinstance(right, Register):
        if right.number != 37 or left.rotate or right.rotate:
            raise Trouble("rotates a register by r5 or by a number")
        return replace(left, rotate=16 if up else -16)
    by = _integer(right)
    if abs(left.rotate) == 16:
        raise Trouble("cannot rotate by r5 and by a number")
    return replace(left, rotate=(left.rotate + (by if up else -by)) & 15)


def _logical(left: Value, right: Value, up: bool) -> int:
    by = _integer(right) * (1 if up else -1)
    bits = _integer(left) & _MASK
    return wrapped(bits << min(by, 64) if by >= 0 else bits >> -by)


def _turned(left: Value, right: Value, width: int, up: bool) -> int:
    mask = (1 << width) - 1
    bits, by = _integer(left) & mask, _integer(right) % width
    by = by if up else width - by
    return wrapped((bits << by | bits >> (width - by)) & mask)


def _moved(register: Register, by: int) -> Register:
    number = register.number + by
    last = 15 if register.is_semaphore else 63
    if not 0 <= number <= last:
        raise Trouble(f"leads to register number {number}, which is not in 0..{last}")
    return replace(register, number=number)


def _add(left: Value, right: Value) -> Value:
    if isinstance(right, Register | Label) and isinstance(left, int):
        left, right = right, left
    if isinstance(left, Register):
        return _moved(left, _integer(right))
    if isinstance(left, Label):
        return replace(left, offset=left.offset + _integer(right))
    return _arithmetic(left, right, lambda a, b: a + b)


def _subtract(left: Value, right: Value) -> Value:
    if isinstance(left, Register):
        return _moved(left, -_integer(right))
    if isinstance(left, Label):
        if isinstance(right, Label):
            return left.offset - right.offset
        return replace(left, offset=left.offset - _integer(right))
    return _arithmetic(left, right, lambda a, b: a - b)


def _arithmetic(left: Value, right: Value, operation: Callable[[float, float], float]) -> int | float:
    a, b = _number(left), _number(right)
    try:
        result = operation(a, b)
    except OverflowError:
        raise Trouble("gives a number that is too large") from None
    return wrapped(result) if isinstance(result, int) else result


def _divide(left: Value, right: Value) -> int | float:
    a, b = _number(left), _number(right)
    if isinstance(a, int) and isinstance(b, int):
        if b == 0:
            raise Trouble("divides by zero")
        return wrapped(abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1))
    if b == 0:
        return math.nan if a == 0 or a != a else math.copysign(math.inf, a) * math.copysign(1, b)
    return a / b


def _remainder(left: Value, right: Value) -> int | float:
    a, b = _number(left), _number(right)
    if b == 0:
        raise Trouble("divides by zero")
    if isinstance(a, int) and isinstance(b, int):
        return wrapped(abs(a) % abs(b) * (1 if a >= 0 else -1))
    return math.fmod(a, b)


def _power(left: Value, right: Value) -> int | float:
    a, b = _number(left), _number(right)
    try:
        result: float | complex = float(a) ** float(b)
    except (OverflowError, ZeroDivisionError):
        raise Trouble("gives a number that is too large") from None
    if isinstance(result, complex):
        raise Trouble("gives no real number")
    if isinstance(a, int) and isinstance(b, int):
        if not abs(result) < 2.0**63:
            raise Trouble("gives a number that is too large")
        return math.floor(result + 0.5)
    return result


def _both(left: Value, right: Value) -> Value:
    if isinstance(left, Register) and isinstance(right, Register):
        return Register(left.number & right.number, left.access & right.access, left.rotate & right.rotate)
    return _integer(left) & _integer(right)


def _identical(left: Value, right: Value) -> bool:
    if isinstance(left, float) and isinstance(right, float):
        return left == right or (left != left and right != right)
    return type(left) is type(right) and left == right


def _negated(value: Value) -> Value:
    if isinstance(value, Lanes):
        low, high = value.bits & 0xFFFF, value.bits >> 16
        if high & ~low or value.sign > 0:
            raise Trouble("of 2, 3 or -2 does not fit in a lane")
        return Lanes(low | (low & ~high) << 16, -1)
    number = _number(value)
    return wrapped(-number) if isinstance(number, int) else -number


def _math(function: Callable[[float], float]) -> Callable[[Value], float]:
    def apply(value: Value) -> float:
        try:
            return function(float(_number(value)))
        except OverflowError:
            raise Trouble("gives a number that is too large") from None
        except ValueError as error:
            if isinstance(error, Trouble):
                raise
            return math.nan

    return apply


def _whole(function: Callable[[float], int]) -> Callable[[Value], int]:
    def apply(value: Value) -> int:
        number = _number(value)
        if isinstance(number, float) and not abs(number) < 2.0**63:
            raise Trouble("gives a number that is too large")
        return function(number)

    return apply


def _magnitude(value: Value) -> int | float:
    return abs(_number(value))


FUNCTIONS: Final[dict[str, Callable[[Value], Value]]] = {
    "abs": _magnitude,
    "ceil": _whole(math.ceil),
    "floor": _whole(math.floor),
    "exp2": _math(lambda x: 2.0**x),
    "exp10": _math(lambda x: 10.0**x),
    **{
        name: _math(getattr(math, name))
        for name in [
            "sqrt",
            "exp",
            "log",
            "log2",
            "log10",
            "cos",
            "sin",
            "tan",
            "acos",
            "asin",
            "atan",
            "cosh",
            "sinh",
            "tanh",
            "acosh",
            "asinh",
            "atanh",
            "erf",
            "erfc",
        ]
    },
}
"""Operators that have names."""

PREFIXES: Final[dict[str, Callable[[Value], Value]]] = {
    "+": lambda value: value,
    "-": _negated,
    "~": lambda value: ~_integer(value),
    "!": lambda value: int(not _integer(value)),
}

BINARY: Final[dict[str, tuple[int, Callable[[Value, Value], Value]]]] = {
    "**": (12, _power),
    "*": (11, lambda a, b: _arithmetic(a, b, lambda x, y: x * y)),
    "/": (11, _divide),
    "%": (11, _remainder),
    "+": (10, _add),
    "-": (10, _subtract),
    "<<": (9, lambda a, b: _shift(a, b, True)),
    ">>": (9, lambda a, b: _shift(a, b, False)),
    "<<<": (9, lambda a, b: _logical(a, b, True)),
    ">>>": (9, lambda a, b: _logical(a, b, False)),
    "><<": (9, lambda a, b: _turned(a, b, 32, True)),
    ">><": (9, lambda a, b: _turned(a, b, 32, False)),
    "><<<": (9, lambda a, b: _turned(a, b, 64, True)),
    ">>><": (9, lambda a, b: _turned(a, b, 64, False)),
    ">": (8, lambda a, b: int(compare(a, b) == 1)),
    ">=": (8, lambda a, b: int(compare(a, b) in (0, 1))),
    "<": (8, lambda a, b: int(compare(a, b) == -1)),
    "<=": (8, lambda a, b: int(compare(a, b) in (-1, 0))),
    "<=>": (8, lambda a, b: -(1 << 31) if (c := compare(a, b)) is None else c),
    "==": (7, lambda a, b: int(compare(a, b) == 0)),
    "!=": (7, lambda a, b: int(compare(a, b) != 0)),
    "===": (7, lambda a, b: int(_identical(a, b))),
    "!==": (7, lambda a, b: int(not _identical(a, b))),
    "&": (6, _both),
    "^": (5, lambda a, b: _integer(a) ^ _integer(b)),
    "!^": (5, lambda a, b: ~(_integer(a) ^ _integer(b))),
    "|": (4, lambda a, b: _integer(a) | _integer(b)),
    "&&": (3, lambda a, b: int(bool(_integer(a)) and bool(_integer(b)))),
    "^^": (2, lambda a, b: int(bool(_integer(a)) != bool(_integer(b)))),
    "!^^": (2, lambda a, b: int(bool(_integer(a)) == bool(_integer(b)))),
    "||": (1, lambda a, b: int(bool(_integer(a)) or bool(_integer(b)))),
}
"""Operator -> (precedence, what it computes)."""
