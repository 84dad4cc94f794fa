"""Kernels call these: who they are, lanes, special functions, tests, uniforms of their own."""

from __future__ import annotations

from typing import Any, TypeVar

from vc4lab.kernels.python.choices import select as select
from vc4lab.kernels.python.memory import Pointer
from vc4lab.kernels.python.memory import gather as gather
from vc4lab.kernels.python.memory import receive as receive
from vc4lab.kernels.python.memory import store as store
from vc4lab.kernels.python.memory import store_rows as store_rows
from vc4lab.kernels.python.trace import ELEMENT, UNIFORM, NeedsPointer, current
from vc4lab.kernels.python.values import Bool, Float, Int, Test, Uint, Vector, special
from vc4lab.qpu.isa.registers import Write
from vc4lab.qpu.machine.code import Reg, Wants

V = TypeVar("V", bound=Vector)

__all__ = [
    "all_",
    "any_",
    "bits_of",
    "broadcast",
    "clz",
    "exp2",
    "float_of_bits",
    "gather",
    "index",
    "log2",
    "maximum",
    "me",
    "minimum",
    "mul24",
    "next_uniform",
    "qpus",
    "receive",
    "recip",
    "recipsqrt",
    "ror",
    "rotate",
    "select",
    "store",
    "store_rows",
    "uniform",
    "uniforms_at",
]  # fmt: skip


def index() -> Int:
    """The number of each lane: 0 to 15."""
    return Int.of(current().special(ELEMENT))


def me() -> Int:
    """The number of this QPU among those that the kernel was started on, in all lanes."""
    return Int.of(current().uniform("qpu"))


def qpus() -> Int:
    """On how many QPUs the kernel was started, in all lanes."""
    return Int.of(current().uniform("qpus"))


def uniform(text: str, type: type[V] = Int) -> V:  # type: ignore[assignment]
    """Return what the caller computes from arguments, `len(array)`, `qpu`, `qpus`, numbers, in all lanes."""
    from vc4lab.kernels.interface import InterfaceError, names_in

    try:
        names_in(text)
    except InterfaceError as error:
        current().fail(str(error))
    return type.of(current().uniform(text))


def uniforms_at(pointer: Pointer[Any]) -> None:
    """`next_uniform` goes on at the address of lane 0. The first three instructions after it read none."""
    trace = current()
    if not trace.has_pointer:
        raise NeedsPointer
    if not isinstance(pointer, Pointer):
        trace.fail(f"uniforms_at() takes a pointer, not {type(pointer).__name__}")
    trace.own_stream()
    trace.write(Write.UNIFORMS_ADDRESS, pointer.operand, "uniform", file="a")


def next_uniform(type: type[V]) -> V:
    """The next word of the stream that `uniforms_at` chose, in all lanes."""
    trace = current()
    if not trace.has_pointer:
        trace.fail("next_uniform() without uniforms_at() before")
    trace.own_stream()
    found = trace.read(UNIFORM, "uniform")
    assert found is not None
    return type.of(found)


def any_(condition: Bool) -> Test:
    """Whether a condition holds in some lane: for `if` and `while`."""
    return _test(condition, False)


def all_(condition: Bool) -> Test:
    """Whether a condition holds in all lanes: for `if` and `while`."""
    return _test(condition, True)


def _test(condition: Bool, every: bool) -> Test:
    if not isinstance(condition, Bool):
        current().fail(f"any_() and all_() take a condition on lanes, not {type(condition).__name__}")
    return Test(condition, every)


def rotate(value: V, places: int) -> V:
    """Lane i goes to lane i + places, round the end. places: a number that is known."""
    trace = current()
    if not isinstance(places, int):
        trace.fail("the number of places of rotate() must be known")
    if not places % 16:
        return value
    op = trace.code.op("mov", _vector(value, "rotate"))
    trace.code.line = op.line = trace.line()
    op.add, op.rotate = None, places % 16
    found = trace.code.add(op)
    assert found is not None
    return value.like(found)


def broadcast(value: V, lane: int) -> V:
    """Return the value of one lane, in all lanes."""
    trace = current()
    if not isinstance(lane, int) or not 0 <= lane < 16:
        trace.fail("the lane of broadcast() is a number from 0 to 15")
    op = trace.op("mov", _vector(value, "broadcast"))
    op.target, op.target_file = int(Write.ACC5), "b"
    if lane:
        op.add, op.rotate = None, 16 - lane
    op.second = Reg(op, Wants.R5)
    trace.code.add(op, None)
    return value.like(op.second)


def _vector(value: Any, name: str) -> Reg:
    if not isinstance(value, Vector):
        current().fail(f"{name}() takes a vector, not {type(value).__name__}")
    return current().code.as_reg(current().operand(value.operand))


def minimum(a: Any, b: Any) -> Any:
    """The smaller one, lane by lane."""
    return _both("min", a, b)


def maximum(a: Any, b: Any) -> Any:
    """The larger one, lane by lane."""
    return _both("max", a, b)


def _both(name: str, a: Any, b: Any) -> Any:
    first, second = (a, b) if isinstance(a, Vector) else (b, a)
    if isinstance(first, Uint):
        return select(a < b if name == "min" else a >= b, a, b)
    if isinstance(first, Float):
        return first._do(f"f{name}", second, f"{name} of")
    if isinstance(first, Int):
        return first._do(name, second, f"{name} of")
    current().fail(f"{name}imum() takes vectors, not {type(a).__name__}")


def mul24(a: Any, b: Any) -> Int:
    """The low 32 bits of the product of the low 24 bits of both: one instruction."""
    first = a if isinstance(a, Int) else Int(a)
    return first._do("mul24", b, "times")


def clz(value: Int) -> Int:
    """How many zeros are before the first one: 32 for 0."""
    return Int.of(current().make("clz", Int._from(value)))


def ror(value: Int, places: Any) -> Int:
    """The bits rotated to the right."""
    return value._do("ror", places, "ror")


def bits_of(value: Float) -> Int:
    """The bits of floats as integers."""
    return Int.of(Float._from(value))


def float_of_bits(value: Int) -> Float:
    """Integers as the bits of floats."""
    return Float.of(Int._from(value))


def recip(value: Float) -> Float:
    """1 / value by the special function unit, to about 12 bits (`/` is exact to about 22)."""
    return special("recip", Float.of(Float._from(value)))


def recipsqrt(value: Float) -> Float:
    """1 / the root of the absolute value, by the special function unit."""
    return special("recipsqrt", Float.of(Float._from(value)))


def exp2(value: Float) -> Float:
    """2 to the power of a value, by the special function unit."""
    return special("exp", Float.of(Float._from(value)))


def log2(value: Float) -> Float:
    """The logarithm of the absolute value to base 2, by the special function unit."""
    return special("log", Float.of(Float._from(value)))
