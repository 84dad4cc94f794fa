"""What tracing leaves out because it knows the value already, and calls from module to module."""

import ctypes
from typing import Any

import numpy as np
import pytest

from vc4lab.simd import (
    address_of,
    build,
    call,
    call_pointer,
    const,
    f32,
    f32x16,
    i32,
    i32x16,
    imported,
    is_nan,
    kernel,
    load,
    mask_bits,
    ptr,
    store,
    table,
    var,
)
from vc4lab.simd.native import trace_module
from vc4lab.simd.target import host_target

ODD = np.array([np.nan, 1, -1, 0, -0.0, np.inf, -np.inf, 2] * 2, np.float32)
OTHER = np.array([1, np.nan, -1, -0.0, 0, np.inf, np.inf, np.nan] * 2, np.float32)


def text_of(function: Any) -> str:
    """The LLVM text of a kernel."""
    return trace_module({"f": function}, host_target(), "qpu")


def test_a_result_is_written_once():
    @kernel(args=(ptr,), returns=i32)
    def twice(p):
        x = load(i32, p)
        return (x * x + load(i32, p)) + (x * x)

    module = build("twice", {"twice": twice})
    text = text_of(twice)
    assert text.count("mul i32") == 1
    assert text.count("load i32, ptr %p0") == 1
    assert module["twice"](np.array([7], np.int32).ctypes.data) == 7 * 7 * 2 + 7


def test_a_load_after_a_store_is_another_one(target):
    @kernel(args=(ptr, ptr), returns=i32)
    def both(p, q):
        before = load(i32, p)
        store(q, before + 1)
        return before * 1000 + load(i32, p)

    memory = np.array([5], np.int32)
    both_ = build("alias", {"both": both}, target=target)["both"]
    assert both_(memory.ctypes.data, memory.ctypes.data) == 5006


def test_a_load_after_a_call_is_another_one(target):
    @kernel(args=(ptr,), returns=i32)
    def bump(p):
        store(p, load(i32, p) + 1)
        return load(i32, p)

    @kernel(args=(ptr,), returns=i32)
    def around(p):
        before = load(i32, p)
        call(bump, p)
        return before * 100 + load(i32, p)

    memory = np.array([3], np.int32)
    assert build("bump", {"around": around}, target=target)["around"](memory.ctypes.data) == 304


@pytest.mark.parametrize("combine", [True, False])
def test_cells_through_branches_and_loops(target, combine):
    @kernel(args=(i32,), returns=i32)
    def count(n):
        total, last = var(i32, 0), var(i32, -1)
        for k in range(n):
            total.set(total.get() + k)
            if k & 1 != 0:
                total.set(total.get() + 100)
                last.set(total.get())
            elif k > 6:
                last.set(k)
                last.set(last.get() * 2)
            total.set(total.get() + 1)
        return total.get() * 10000 + last.get()

    native = build("cells", {"count": count}, target=target, combine=combine)["count"]
    for n in range(12):
        total, last = 0, -1
        for k in range(n):
            total += k
            if k & 1:
                total += 100
                last = total
            elif k > 6:
                last = 2 * k
            total += 1
        assert native(n) == total * 10000 + last


def test_constant_operands(target):
    """Shifts for multiplications, nothing for operands that change nothing or decide alone."""

    @kernel(args=(i32,), returns=i32)
    def some(x):
        odd = (x * 8) + (8 * x) * 2 + (x * -(2**31)) + (x * 1) + (0 * x)
        return odd ^ (x & 0) ^ (x | -1) ^ (0 | x)

    native = build("some", {"some": some}, target=target)["some"]
    text = text_of(some)
    assert " mul " not in text
    assert text.count(" shl ") == 3
    for x in (0, 1, -1, 7, 2**31 - 1, -(2**31)):
        total = 8 * x + 16 * x + x * -(2**31) + x
        wanted = (total ^ -1 ^ x) & 0xFFFFFFFF
        assert native(x) & 0xFFFFFFFF == wanted


@pytest.mark.parametrize("operand", [0, 1, 2, 3, -1, -2, -(2**31)])
def test_operands_that_decide_alone_and_others(target, operand):
    """On either side, each operation by itself."""

    @kernel(args=(i32, ptr), returns=None)
    def each(x, results):
        for number, value in enumerate(
            (x & operand, operand & x, x | operand, operand | x, x * operand, operand * x)
        ):
            store(results + 4 * number, value)

    native = build("each", {"each": each}, target=target)["each"]
    found = (ctypes.c_int32 * 6)()
    for x in (0, 1, -1, 6, 2**31 - 1, -(2**31)):
        native(x, ctypes.addressof(found))
        product = ctypes.c_int32(x * operand).value
        assert list(found) == [x & operand] * 2 + [x | operand] * 2 + [product] * 2


@pytest.mark.parametrize("quick", [True, False])
def test_branches_to_and_fro(target, quick):
    """Whatever side is written first, whichever of them ends at once."""

    @kernel(args=(i32, f32), returns=i32)
    def count(n, f):
        total = const(i32, 0)
        for k in range(n):
            if k == 3:
                continue
            if f != f:
                total = total + 1000
            else:
                total = total + 1
            if k >= 6:
                break
            if f > 0.0:
                total = total + 10
        while total > 50:
            total = total - 50
            if total == 21:
                return const(i32, -1)
        return total

    native = build("count", {"count": count}, target=target, quick=quick)["count"]

    def model(n, f):
        total = 0
        for k in range(n):
            if k == 3:
                continue
            total += 1000 if f != f else 1
            if k >= 6:
                break
            if f > 0:
                total += 10
        while total > 50:
            total -= 50
            if total == 21:
                return -1
        return total

    for n in range(10):
        for f in (1.0, -1.0, 0.0, float("nan")):
            assert native(n, f) == model(n, f)


def test_results_of_one_branch_stay_there(target):
    @kernel(args=(i32, i32), returns=i32)
    def sides(x, y):
        if x > 0:
            result = (x * y) + 1
        else:
            result = (x * y) + 2
        return result + x * y

    native = build("sides", {"sides": sides}, target=target)["sides"]
    assert (native(3, 5), native(-3, 5)) == (31, -28)


@pytest.mark.parametrize("test", ["<", "<=", ">", ">=", "==", "!="])
def test_the_inverse_of_a_comparison_holds_for_nan(target, test):
    compare = {
        "<": lambda a, b: a < b,
        "<=": lambda a, b: a <= b,
        ">": lambda a, b: a > b,
        ">=": lambda a, b: a >= b,
        "==": lambda a, b: a == b,
        "!=": lambda a, b: a != b,
    }[test]

    @kernel(args=(ptr, ptr), returns=i32)
    def inverse(p, q):
        return mask_bits(~compare(load(f32x16, p), load(f32x16, q)))

    found = build("inverse", {"inverse": inverse}, target=target)["inverse"]
    expected = ~compare(ODD, OTHER)
    bits = sum(int(lane) << k for k, lane in enumerate(expected))
    assert found(ODD.ctypes.data, OTHER.ctypes.data) == bits


def test_two_searches_for_nan_are_one(target):
    @kernel(args=(ptr, ptr), returns=i32)
    def either(p, q):
        return mask_bits(is_nan(load(f32x16, p)) | is_nan(load(f32x16, q)))

    module = build("either", {"either": either}, target=target)
    expected = np.isnan(ODD) | np.isnan(OTHER)
    bits = sum(int(lane) << k for k, lane in enumerate(expected))
    assert module["either"](ODD.ctypes.data, OTHER.ctypes.data) == bits


def test_pointers_move_in_one_step():
    @kernel(args=(ptr,), returns=i32)
    def walk(p):
        return load(i32, p + 4 + 4 - 8) + load(i32, (p + 16) - 4)

    module = build("walk", {"walk": walk})
    assert module["walk"](np.arange(10, 20, dtype=np.int32).ctypes.data) == 10 + 13
    text = text_of(walk)
    assert "load i32, ptr %p0" in text
    assert "getelementptr i8, ptr %p0, i64 12" in text


def test_lanes_of_equal_vectors_and_neutral_operands(target):
    @kernel(args=(i32, ptr), returns=i32)
    def plain(x, out):
        v = load(i32x16, out)
        store(out, ((v | 0) ^ 0) * 1 + (v & -1) + (v << 0))
        return ((x + 0) & -1) * 1

    memory = np.arange(16, dtype=np.int32)
    assert build("plain", {"plain": plain}, target=target)["plain"](9, memory.ctypes.data) == 9
    assert memory.tolist() == [3 * k for k in range(16)]


def test_bits_come_back_from_a_cast(target):
    @kernel(args=(ptr, ptr), returns=None)
    def cast(p, out):
        x = load(f32x16, p)
        store(out, x.bitcast(i32).bitcast(f32).bitcast(i32))

    out = np.zeros(16, np.uint32)
    build("cast", {"cast": cast}, target=target)["cast"](ODD.ctypes.data, out.ctypes.data)
    assert out.tolist() == ODD.view(np.uint32).tolist()


def test_modules_call_each_other(target):
    @kernel(args=(ptr, ptr), returns=i32)
    def each(numbers, function):
        total = load(i32, numbers) * 0
        for k in range(4):
            found = call_pointer(function, i32, (i32,), load(i32, numbers + k * 4), float_mode="keep")
            total = total + found
        return total

    shared = build("shared", {"each": each}, target=target)["each"]

    @kernel(args=(i32,), returns=i32)
    def square(x):
        return x * x

    @kernel(args=(), returns=i32)
    def squares():
        function = imported("vc4_each", i32, (ptr, ptr))
        numbers = table(i32, [1, 2, 3, 4])
        return call_pointer(function, i32, (ptr, ptr), numbers, address_of(square), float_mode="keep")

    module = build(
        "squares", {"squares": squares}, target=target, float_mode="caller", imports={"vc4_each": shared}
    )
    del shared
    assert module["squares"]() == 30


def test_a_module_in_the_callers_mode(target):
    third = np.float32(1) / np.float32(3)

    @kernel(args=(ptr,), returns=None)
    def divide(p):
        store(p, load(f32, p) / load(f32, p + 4))

    inner = build("inner", {"divide": divide}, target=target, float_mode="caller")["divide"]
    numbers = np.array([2, 3], np.float32)
    inner(numbers.ctypes.data)
    nearest = numbers[0]

    @kernel(args=(ptr, ptr), returns=None)
    def outer(function, p):
        call_pointer(function, None, (ptr,), p, float_mode="keep")

    numbers[:] = 2, 3
    run = build("outer", {"outer": outer}, target=target, float_mode="qpu")["outer"]
    run(ctypes.c_void_p(inner.address).value, numbers.ctypes.data)
    assert nearest == np.float32(2) * third
    assert numbers[0] == np.nextafter(nearest, np.float32(0))


def test_integers_promised_to_be_inside(target):
    @kernel(args=(ptr, ptr), returns=None)
    def whole(p, out):
        store(out, load(f32x16, p).to_int(i32, inside=True))

    numbers = np.linspace(-900.75, 900.75, 16).astype(np.float32)
    out = np.zeros(16, np.int32)
    build("whole", {"whole": whole}, target=target)["whole"](numbers.ctypes.data, out.ctypes.data)
    assert out.tolist() == np.trunc(numbers).astype(int).tolist()
