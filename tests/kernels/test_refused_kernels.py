"""Kernels in Python that are refused, with file and line."""

from collections.abc import Callable
from typing import Any

import pytest

import vc4lab
from vc4lab.kernels.python import *  # noqa: F403
from vc4lab.kernels.python import (
    Array,
    Bool,
    Float,
    InOut,
    Int,
    KernelSourceError,
    Out,
    PythonKernel,
    all_,
    any_,
    index,
    select,
    unroll,
)


def refused(function: Callable[..., Any], message: str, offset: int = 1) -> None:
    """The kernel is refused in the line that is so far after its first one."""
    with pytest.raises(KernelSourceError, match=message) as caught:
        _ = PythonKernel(function).code
    line = function.__code__.co_firstlineno + offset
    assert str(caught.value).startswith(f"{__file__}:{line}: "), str(caught.value)


def test_types_that_do_not_fit() -> None:
    def mixed(x: InOut[Float]) -> None:
        x[0] = x[index()] + index()

    refused(mixed, r"Float \+ Int: convert it with Float")

    def fraction(x: InOut[Int]) -> None:
        x[0] = x[index()] + 0.5

    refused(fraction, "an Int and the float 0.5 do not go together")

    def chosen(x: InOut[Float]) -> None:
        x[0] = select(index() < 3, 1, x)

    refused(chosen, "int is no InOut, and cannot become one")

    def stored(x: InOut[Float]) -> None:
        x[0] = index()

    refused(stored, "a Int is stored in an array of Float")

    def place(x: InOut[Float]) -> None:
        x[0] = x[x[index()]]

    refused(place, "the place in an array is an Int, not Float")

    def large(x: InOut[Int]) -> None:
        x[0] = index() + (1 << 40)

    refused(large, "more than 32 bits")

    def text(x: InOut[Int]) -> None:
        x[0] = index() + "1"  # type: ignore[operator]

    refused(text, "an object of type str")


def helper(x: Int) -> Int:
    return x if x > 3 else -x


def test_python_does_not_decide_what_is_not_known() -> None:
    def untraced(x: InOut[Int]) -> None:
        x[0] = helper(index())

    place = helper.__code__.co_firstlineno + 1 - untraced.__code__.co_firstlineno
    refused(untraced, "decorate it with @qpu_function", place)

    def loop(x: InOut[Int]) -> None:
        while index() < 3:
            x[0] = index()

    refused(loop, r"write any_\(\) or all_\(\)")

    def number(x: InOut[Int]) -> None:
        for i in unroll(index()):
            x[0] = i

    refused(number, "known when the kernel runs, not while it is traced")

    def vector(x: InOut[Int]) -> None:
        for i in index():
            x[0] = i

    refused(vector, "known when the kernel runs")

    def bare(x: InOut[Int]) -> None:
        if index():
            x[0] = index()

    refused(bare, "compare it")

    def lanes(x: InOut[Int]) -> None:
        if index() < 3:
            x[0] = index()

    refused(lanes, "a store inside an `if` on lanes", 2)

    def branch(x: InOut[Int]) -> None:
        if index() < 3:
            for _ in range(3):
                x[0] = index()

    refused(branch, "a loop inside an `if` on lanes", 2)


def test_variables_that_do_not_fit() -> None:
    def changes(x: InOut[Int]) -> None:
        a = Int(0)
        for _ in range(3):
            a = Float(a)
        x[0] = a

    refused(changes, "'a' is an Int on one way and a Float on the other", 2)

    def inside(x: InOut[Int]) -> None:
        for i in range(3):
            a = i
        x[0] = a

    refused(inside, "'a' is only assigned inside the loop", 3)

    def one_side(x: InOut[Int]) -> None:
        if any_(index() > 3):
            a = index()
        x[0] = a

    refused(one_side, "'a' is not assigned on every way", 3)

    def kind(x: InOut[Int]) -> None:
        name = "a"
        for _ in range(3):
            name = name + "b"
        x[0] = 1

    refused(kind, "'name' cannot be changed by a loop", 2)

    def pointer(x: InOut[Int]) -> None:
        p = x
        for _ in range(3):
            p = p + 1
        x[0] = p[0]

    refused(pointer, "'p' begins as an array", 2)


def test_gathers_are_received() -> None:
    from vc4lab.kernels.python import gather, receive

    def late(x: InOut[Int]) -> None:
        gather(x + index())
        x[0] = 1

    refused(late, "never received")

    def early(x: InOut[Int]) -> None:
        x[0] = receive(Int)

    refused(early, "without a gather")

    def many(x: InOut[Int]) -> None:
        for _ in unroll(5):
            gather(x + index())

    refused(many, "more than four requests", 2)

    def uneven(x: InOut[Int]) -> None:
        gather(x + index())
        for _ in range(3):
            x[0] = receive(Int)

    refused(uneven, "leaves -1 requests", 2)


def test_what_kernels_cannot_do() -> None:
    def result(x: InOut[Int]) -> Int:
        return x[0]

    with pytest.raises(KernelSourceError, match="a kernel returns nothing"):
        _ = PythonKernel(result).code

    def leaves(x: InOut[Int]) -> None:
        for i in range(10):
            if all_(i > 3):
                break

    refused(leaves, "put the condition into `while any_", 3)

    def returns(x: InOut[Int]) -> None:
        if any_(index() > 3):
            return
        x[0] = 1

    refused(returns, "a return inside a loop or condition", 2)

    def forever(x: InOut[Int]) -> None:
        while True:
            pass

    refused(forever, "turns of unrolled loops")

    def endless(x: InOut[Int]) -> None:
        a = index()
        while True:
            a = a + x[a]

    refused(endless, "more than .* operations|turns of unrolled loops", 3)

    def recursion(x: InOut[Int]) -> None:
        def again(n: int) -> Int:
            return again(n + 1)

        x[0] = again(0)

    with pytest.raises(KernelSourceError, match="calls itself without end"):
        _ = PythonKernel(recursion).code

    def registers(x: InOut[Int]) -> None:
        values = [x[16 * k + index()] for k in unroll(80)]
        for k in unroll(80):
            x[16 * k] = values[79 - k]

    with pytest.raises(KernelSourceError, match="64 registers do not suffice"):
        _ = PythonKernel(registers).code


def test_annotations() -> None:
    def bare(x) -> None:  # type: ignore[no-untyped-def]
        pass

    refused(bare, "argument x needs a type", 0)

    def text(x: str) -> None:
        pass

    refused(text, "no type of an argument", 0)

    def array(x: Array) -> None:  # type: ignore[type-arg]
        pass

    refused(array, r"Array\[Float\]", 0)

    def size(z: Out[Float]) -> None:
        pass

    refused(size, "say its size", 0)

    def condition(x: Bool) -> None:
        pass

    refused(condition, "no type of an argument", 0)
    with pytest.raises(KernelSourceError, match="no argument y that has a size"):
        _ = vc4lab.qpu_kernel(y="16")(lambda: None).code
    with pytest.raises(KernelSourceError, match="a plain function"):
        vc4lab.qpu_kernel(3)  # type: ignore[call-overload]
    with pytest.raises(KernelSourceError, match="decorate the function"):
        index()
