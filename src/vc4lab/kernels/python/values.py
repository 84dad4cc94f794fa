"""The values of a kernel: 16 lanes of floats or integers, conditions on lanes, tests of all lanes."""

from __future__ import annotations

import builtins
import struct
from collections.abc import Iterator
from typing import Any, ClassVar, NamedTuple, NoReturn, Self

from vc4lab.kernels.python.trace import current
from vc4lab.qpu.isa.operations import Condition
from vc4lab.qpu.machine.builder import ALL, COMPARISONS, MUL_PIECE, OPPOSITE, ZERO
from vc4lab.qpu.machine.code import Const, Flags, Op, Operand, Wants

LIMIT = 1 << 32


class Vector:
    """A value of 16 lanes. `operand` is what the compiler knows it by."""

    kind: ClassVar[str] = ""
    operand: Operand

    def __init__(self, value: Any) -> None:
        self.operand = type(self)._from(value)

    @classmethod
    def _from(cls, value: Any) -> Operand:
        """An operand of a number or of another vector. Fails where a type has no such way."""
        current().fail(f"{type(value).__name__} is no {cls.__name__}, and cannot become one")

    @classmethod
    def of(cls, operand: Operand) -> Self:
        """The vector that an operand is."""
        made = cls.__new__(cls)
        made.operand = operand
        return made

    def like(self, operand: Operand) -> Self:
        """Another vector of this type."""
        return type(self).of(operand)

    def is_like(self, other: Any) -> bool:
        """Whether a variable may be the one and then the other."""
        return type(self) is type(other)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of 16 lanes>"

    def _refuse(self, *_: Any) -> NoReturn:
        current().fail(
            f"a {type(self).__name__} is known when the kernel runs, not while it is traced: "
            "compare it, or use any_(), all_() or select()"
        )

    __bool__ = __index__ = __int__ = __float__ = __iter__ = __len__ = __contains__ = _refuse
    __hash__ = object.__hash__


class Float(Vector):
    """16 floats. `Float(1.5)` is a constant, `Float(i)` the value of integers."""

    kind = "float"

    @classmethod
    def _from(cls, value: Any) -> Operand:
        if isinstance(value, Int):
            return current().make("itof", value.operand)
        if isinstance(value, Float):
            return value.operand
        return float_constant(value)

    def _other(self, value: Any, operation: str) -> Operand:
        if isinstance(value, Float):
            return value.operand
        if isinstance(value, Vector | Bool):
            current().fail(f"Float {operation} {type(value).__name__}: convert it with Float()")
        return float_constant(value)

    def _do(self, name: str, value: Any, sign: str, swap: bool = False) -> Float:
        other = self._other(value, sign)
        args = (other, self.operand) if swap else (self.operand, other)
        return Float.of(current().make(name, *args))

    def __add__(self, other: Any) -> Float:
        return self._do("fadd", other, "+")

    __radd__ = __add__

    def __sub__(self, other: Any) -> Float:
        return self._do("fsub", other, "-")

    def __rsub__(self, other: Any) -> Float:
        return self._do("fsub", other, "-", swap=True)

    def __mul__(self, other: Any) -> Float:
        return self._do("fmul", other, "*")

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Float:
        if isinstance(other, int | float):
            if other == 0:
                current().fail("division by zero")
            return self * (1.0 / other)
        return self * _reciprocal(Float.of(self._other(other, "/")))

    def __rtruediv__(self, other: Any) -> Float:
        return Float.of(self._other(other, "/")) * _reciprocal(self)

    def __neg__(self) -> Float:
        return Float.of(current().make("fsub", ZERO, self.operand))

    def __abs__(self) -> Float:
        return Float.of(current().make("fmaxabs", self.operand, self.operand))

    def __lt__(self, other: Any) -> Bool:
        return Bool.compare("flt", self.operand, self._other(other, "<"))

    def __ge__(self, other: Any) -> Bool:
        return Bool.compare("fge", self.operand, self._other(other, ">="))

    def __gt__(self, other: Any) -> Bool:
        return Bool.compare("flt", self._other(other, ">"), self.operand)

    def __le__(self, other: Any) -> Bool:
        return Bool.compare("fge", self._other(other, "<="), self.operand)

    def __eq__(self, other: Any) -> Bool:  # type: ignore[override]
        return Bool.compare("feq", self.operand, self._other(other, "=="))

    def __ne__(self, other: Any) -> Bool:  # type: ignore[override]
        return Bool.compare("fne", self.operand, self._other(other, "!="))

    __hash__ = object.__hash__


def special(name: str, value: Float) -> Float:
    """A special function: "recip", "recipsqrt", "exp" or "log"."""
    trace = current()
    op = trace.op("mov", value.operand)
    from vc4lab.qpu.machine.builder import SFU_ADDRESS
    from vc4lab.qpu.machine.code import Reg

    op.name, op.target, op.peripheral = name, SFU_ADDRESS[name], True
    op.second = Reg(op, Wants.R4)
    trace.code.add(op, None)
    return Float.of(op.second)


def _reciprocal(value: Float) -> Float:
    """1 / value: the special function's, made better by a step of Newton's method."""
    first = special("recip", value)
    return first * (2.0 - value * first)


class Int(Vector):
    """16 integers of 32 bits with a sign. `Int(f)` is a float without its fraction."""

    kind = "int"
    names: ClassVar[dict[str, str]] = {"<": "ilt", ">=": "ige", ">>": "asr"}

    @classmethod
    def _from(cls, value: Any) -> Operand:
        if isinstance(value, Float):
            return current().make("ftoi", value.operand)
        if isinstance(value, Int):
            return value.operand
        return int_constant(value)

    def _other(self, value: Any, operation: str) -> Operand:
        if isinstance(value, Int):
            return value.operand
        if isinstance(value, Vector | Bool):
            current().fail(f"{type(self).__name__} {operation} {type(value).__name__}: convert it with Int()")
        return int_constant(value)

    def _type(self, other: Any) -> type[Int]:
        return Uint if isinstance(self, Uint) or isinstance(other, Uint) else Int

    def _do(self, name: str, other: Any, sign: str, swap: bool = False) -> Int:
        operand = self._other(other, sign)
        if operand == ZERO and not swap and name in ("add", "sub", "or", "xor", "shl", "shr", "asr"):
            return self._type(other).of(self.operand)
        args = (operand, self.operand) if swap else (self.operand, operand)
        return self._type(other).of(current().make(name, *args))

    def __add__(self, other: Any) -> Int:
        return self._do("add", other, "+")

    __radd__ = __add__

    def __sub__(self, other: Any) -> Int:
        return self._do("sub", other, "-")

    def __rsub__(self, other: Any) -> Int:
        return self._do("sub", other, "-", swap=True)

    def __mul__(self, other: Any) -> Int:
        """The product's low 32 bits."""
        operand = self._other(other, "*")
        word = operand.word if isinstance(operand, Const) else 0
        if word and word & (word - 1) == 0:
            return self << (word.bit_length() - 1)
        make = current().make
        product = make("mul24", self.operand, operand)
        if not word or word >> 24:  # what both multipliers leave out
            high = make("mul24", make("shr", operand, MUL_PIECE), self.operand)
            product = make("add", product, make("shl", high, MUL_PIECE))
        high = make("mul24", make("shr", self.operand, MUL_PIECE), operand)
        product = make("add", product, make("shl", high, MUL_PIECE))
        return self._type(other).of(product)

    __rmul__ = __mul__

    def __lshift__(self, other: Any) -> Int:
        return self._do("shl", other, "<<")

    def __rshift__(self, other: Any) -> Int:
        operand = self._other(other, ">>")
        return type(self).of(current().make(self.names[">>"], self.operand, operand))

    def __and__(self, other: Any) -> Int:
        return self._do("and", other, "&")

    __rand__ = __and__

    def __or__(self, other: Any) -> Int:
        return self._do("or", other, "|")

    __ror__ = __or__

    def __xor__(self, other: Any) -> Int:
        return self._do("xor", other, "^")

    __rxor__ = __xor__

    def __invert__(self) -> Int:
        return type(self).of(current().make("not", self.operand))

    def __neg__(self) -> Int:
        return type(self).of(current().make("sub", ZERO, self.operand))

    def __abs__(self) -> Int:
        return Int.of(current().make("max", self.operand, (-self).operand))

    def _compare(self, sign: str, left: Operand, right: Operand, other: Any) -> Bool:
        return Bool.compare(self._type(other).names[sign], left, right)

    def __lt__(self, other: Any) -> Bool:
        return self._compare("<", self.operand, self._other(other, "<"), other)

    def __ge__(self, other: Any) -> Bool:
        return self._compare(">=", self.operand, self._other(other, ">="), other)

    def __gt__(self, other: Any) -> Bool:
        return self._compare("<", self._other(other, ">"), self.operand, other)

    def __le__(self, other: Any) -> Bool:
        return self._compare(">=", self._other(other, "<="), self.operand, other)

    def __eq__(self, other: Any) -> Bool:  # type: ignore[override]
        return Bool.compare("ieq", self.operand, self._other(other, "=="))

    def __ne__(self, other: Any) -> Bool:  # type: ignore[override]
        return Bool.compare("ine", self.operand, self._other(other, "!="))

    __hash__ = object.__hash__


class Uint(Int):
    """16 integers of 32 bits without a sign: `>>` brings zeros, comparisons are unsigned."""

    kind = "uint"
    names: ClassVar[dict[str, str]] = {"<": "ult", ">=": "uge", ">>": "shr"}


class Bool:
    """A condition that holds in some lanes and not in others.

    name, args: a comparison, or "word" for a vector that is 0 where it does not hold; holds: False
    for the opposite.
    """

    def __init__(self, name: str, args: tuple[Operand, ...], holds: bool = True) -> None:
        self.name, self.args, self.holds = name, args, holds
        self._flags: tuple[int, Flags, Condition] | None = None

    @classmethod
    def compare(cls, name: str, left: Operand, right: Operand) -> Bool:
        return cls(name, (left, right))

    def __bool__(self) -> bool:
        current().fail(
            "a Python `if`, `while`, `and` or `not` on lanes that may differ, in a function that is not "
            "traced: decorate it with @qpu_function, or use any_(), all_() or select()"
        )

    def __repr__(self) -> str:
        return "<condition on 16 lanes>"

    def setter(self) -> tuple[Op, Condition]:
        """The operation whose flags say where it holds."""
        trace = current()
        if self.name == "word":
            op, lanes = trace.op("mov", self.args[0]), Condition.ZC
        else:
            name, swapped, lanes = COMPARISONS[self.name]
            left, right = self.args
            if name == "sub" and right == ZERO and self.name in ("ieq", "ine"):
                op = trace.op("mov", left)
            else:
                op = trace.op(name, *((right, left) if swapped else (left, right)))
        return op, lanes if self.holds else OPPOSITE[lanes]

    def flags(self, *operands: Operand) -> tuple[Flags, Condition]:
        """Flags for an operation with these operands."""
        trace = current()
        block = trace.code.block.number
        if self._flags is not None and self._flags[0] == block:
            if trace.code.may_use(self._flags[1], *operands):
                return self._flags[1:]
        op, lanes = self.setter()
        self._flags = block, trace.code.flags(op), lanes
        return self._flags[1:]

    def word(self) -> Operand:
        """All bits where it holds, 0 elsewhere."""
        if self.name == "word" and self.holds:
            return self.args[0]
        return select_operand(self, ALL, ZERO)

    def __invert__(self) -> Bool:
        return Bool(self.name, self.args, not self.holds)

    def _with(self, name: str, other: Any) -> Bool:
        if not isinstance(other, Bool):
            current().fail(f"a condition {name} {type(other).__name__}: compare that with something first")
        return Bool("word", (current().make(name, self.word(), other.word()),))

    def __and__(self, other: Any) -> Bool:
        return self._with("and", other)

    def __or__(self, other: Any) -> Bool:
        return self._with("or", other)

    def __xor__(self, other: Any) -> Bool:
        return self._with("xor", other)


class Test(NamedTuple):
    """Asks for a branch whether a condition holds in some lane, or in `every` one."""

    lanes: Bool
    every: bool

    def __bool__(self) -> bool:
        current().fail("any_() and all_() decide `if` and `while` of kernels and of @qpu_function only")

    def __invert__(self) -> Test:
        return Test(~self.lanes, not self.every)


def select_operand(condition: Bool, first: Operand, second: Operand) -> Operand:
    """`first` in the lanes where the condition holds, else `second`."""
    trace = current()
    trace.code.line = trace.line()
    base = trace.code.move(trace.operand(second))
    given = trace.operand(first)
    flags, lanes = condition.flags(given, base)
    return trace.code.conditional(trace.code.op("mov", given), flags, lanes, base)


def float_constant(value: Any) -> Const:
    """A number's float. Fails for what is none."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        found = getattr(value, "item", None)
        value = found() if callable(found) else value
        if isinstance(value, bool) or not isinstance(value, int | float):
            current().fail(f"a Float and {_named(value)} do not go together")
    try:
        return Const(struct.unpack("<I", struct.pack("<f", value))[0])
    except OverflowError:
        current().fail(f"{value} is too large for a float")


def int_constant(value: Any) -> Const:
    """A whole number's word. Fails for what is none."""
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        hint = ": write Float() of the integers, or a whole number" if isinstance(value, float) else ""
        current().fail(f"an Int and {_named(value)} do not go together{hint}")
    number = int(value.__index__())
    if not -LIMIT // 2 <= number < LIMIT:
        current().fail(f"{number} has more than 32 bits")
    return Const(number & 0xFFFFFFFF)


def _named(value: Any) -> str:
    if isinstance(value, int | float):
        return f"the {type(value).__name__} {value}"
    return f"an object of type {type(value).__name__}"


def vector_of(value: Any) -> Vector | None:
    """A number as the vector that a variable becomes; None if it is neither."""
    if isinstance(value, Vector):
        return value
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return Int(value)
    return Float(value) if isinstance(value, float) else None


class Range:
    """`range(…)` in a kernel."""

    def __init__(self, start: Any, stop: Any, step: Any) -> None:
        for value in (start, stop, step):
            if (not isinstance(value, Int) and not hasattr(type(value), "__index__")) or value is True:
                current().fail(f"range() takes whole numbers, not {type(value).__name__}")
        if isinstance(step, int) and step == 0:
            current().fail("range() with step 0 never ends")
        self.start, self.stop, self.step = start, stop, step
        self.is_down = isinstance(step, int) and step < 0
        self.may_be_empty = not (isinstance(start, int) and isinstance(stop, int))
        if not self.may_be_empty and len(range(start, stop, step if isinstance(step, int) else 1)) == 0:
            self.may_be_empty = True

    def goes_on(self, counter: Int) -> Bool:
        """Whether there is a turn with this number."""
        found: Bool = counter > self.stop if self.is_down else counter < self.stop
        return found

    def __iter__(self) -> Iterator[Any]:
        current().fail("a range() of the QPU is for `for` statements only; use unroll()")


def range_(function: Any, *args: Any) -> Any:
    """`range` inside a for statement of a kernel (unless the name means something else)."""
    if function is not builtins.range:
        return function(*args)
    if len(args) == 1:
        return Range(0, args[0], 1)
    return Range(*args, 1) if len(args) == 2 else Range(*args)
