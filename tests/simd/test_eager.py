"""Eager runs: the bytes of native code, line by line, without a compiler."""

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import numpy as np
import pytest

from vc4lab.simd import (
    FP_INVALID,
    FP_OVERFLOW,
    Function,
    Struct,
    Value,
    abs_,
    address_of,
    bswap_,
    build,
    call_pointer,
    call_with_flags,
    ceil_,
    clz_,
    eager,
    f32,
    f32x16,
    f64,
    floor_,
    fmax_,
    fmin_,
    i16,
    i32,
    i32x16,
    i64,
    is_nan,
    kernel,
    load,
    max_,
    min_,
    nearest_,
    permute,
    popcount_,
    ptr,
    select,
    sqrt_,
    staged,
    store,
    uadd_sat,
    umin,
    usub_sat,
    vec,
)

WORDS: dict[str, Callable[[Value, Value], Value]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
    "shl": lambda a, b: a << (b & 31),
    "sar": lambda a, b: a >> (b & 31),
    "shr": lambda a, b: a.shr(b & 31),
    "sdiv": lambda a, b: a // b,
    "srem": lambda a, b: a % b,
    "udiv": lambda a, b: a.udiv(b),
    "urem": lambda a, b: a.urem(b),
    "less": lambda a, b: (a < b).zext(i32),
    "below": lambda a, b: a.ult(b).sext(i32),
    "select": lambda a, b: select(a > b, a, b ^ 1),
    "bounds": lambda a, b: min_(a, b) ^ max_(b, 3) ^ umin(a, b),
    "saturated": lambda a, b: uadd_sat(a, b) ^ usub_sat(a, b),
    "bits": lambda a, b: clz_(a) + (popcount_(b) << 8) + abs_(a ^ b) + bswap_(a),
    "permute": lambda a, b: permute(a, b),
    "narrow": lambda a, b: (a.trunc(i16) * b.trunc(i16)).sext(i32),
    "wide": lambda a, b: (a.sext(i64) * b.zext(i64) >> 7).trunc(i32),
    "to_float": lambda a, b: a.to_float(f32).bitcast(i32) ^ b.to_float_unsigned(f32).bitcast(i32),
}
FLOATS: dict[str, Callable[[Value, Value], Value]] = {
    "fadd": lambda a, b: a + b,
    "fsub": lambda a, b: a - b,
    "fmul": lambda a, b: a * b,
    "fdiv": lambda a, b: a / b,
    "fneg": lambda a, b: -a + b,
    "sqrt": lambda a, b: sqrt_(a),
    "floor": lambda a, b: floor_(a),
    "ceil": lambda a, b: ceil_(a),
    "nearest": lambda a, b: nearest_(a),
    "fmin": lambda a, b: fmin_(a, b),
    "fmax": lambda a, b: fmax_(a, b),
    "double": lambda a, b: (a.fpext(f64) * b.fpext(f64) + a.fpext(f64)).fptrunc(f32),
    "quotient": lambda a, b: (a.fpext(f64) / b.fpext(f64)).fptrunc(f32),
    "order": lambda a, b: select(a < b, a, select(a == b, b, -a)),
    "nan": lambda a, b: select(is_nan(a), b, a),
    "whole": lambda a, b: a.to_int(i32).bitcast(f32),
}
SPECIAL = np.array(
    [0, 0x80000000, 1, 0x807FFFFF, 0x00800000, 0x7F7FFFFF, 0xFF7FFFFF, 0x7F800000, 0xFF800000,
     0x3F800000, 0x7FFFFFFF, 0xFFFFFFFF], np.uint32)  # fmt: skip


def operands(count: int) -> np.ndarray:
    """Random words, a third of them special, a third of middling exponents."""
    rng = np.random.default_rng(5)
    words = rng.integers(0, 1 << 32, (count, 2, 16), np.uint32)
    kind = rng.integers(0, 3, words.shape)
    middling = words & 0x807FFFFF | (rng.integers(100, 156, words.shape, np.uint32) << 23)
    return np.where(kind == 0, rng.choice(SPECIAL, words.shape), np.where(kind == 1, middling, words))


def _bodies(type_: Any, operations: dict[str, Callable[[Value, Value], Value]]) -> Function[None]:
    def body(source: Value, target: Value) -> None:
        a, b = load(type_, source), load(type_, source + 64)
        for n, operation in enumerate(operations.values()):
            store(target + 64 * n, operation(a, b))

    return Function((ptr, ptr), None, body)


@pytest.mark.parametrize("mode", ["qpu", "default"])
@pytest.mark.parametrize(("type_", "operations"), [(i32x16, WORDS), (f32x16, FLOATS)], ids=["i", "f"])
def test_every_operation_gives_the_bytes_of_native_code(type_, operations, mode) -> None:
    function = {"f": _bodies(type_, operations)}
    native = build("operations", function, float_mode=mode)["f"]
    run = build("operations", function, float_mode=mode, target=eager.TARGET)["f"]
    wrong = []
    for pair in operands(150):
        pair = np.ascontiguousarray(pair)
        results = [np.zeros((len(operations), 16), np.uint32) for _ in range(2)]
        for engine, result in zip((native, run), results, strict=True):
            engine(pair.ctypes.data, result.ctypes.data)
        for name, a, b in zip(operations, *results, strict=True):
            same = a == b
            if type_ is f32x16:  # which NaN is not promised
                same |= np.isnan(a.view("f4")) & np.isnan(b.view("f4"))
            if name in ("fmin", "fmax", "order", "nan"):  # nor whether a denormal is kept
                same |= (a & 0x7FFFFFFF < 0x800000) & (b & 0x7FFFFFFF < 0x800000)
            if not same.all():
                lane = int(np.flatnonzero(~same)[0])
                wrong.append((name, *(hex(w) for w in (*pair[:, lane], a[lane], b[lane]))))
    assert wrong == []


def test_a_debugger_sees_the_lines_of_a_kernel_as_they_are_executed() -> None:
    @staged
    def countdown(n):
        total = 0
        while n > 0:
            if n == 2:
                total += 100
            total += n
            n = n - 1
        return total

    steps: list[int] = []

    def tracer(frame: FrameType, event: str, argument: Any) -> Any:
        if frame.f_code.co_filename == __file__ and frame.f_code.co_name == "countdown":
            if event == "line":
                steps.append(frame.f_lineno - countdown.function.__code__.co_firstlineno)
            return tracer
        return tracer if "simd" in frame.f_code.co_filename else None

    run = build("c", {"c": kernel((i32,), i32)(countdown.function)}, target=eager.TARGET)["c"]
    before = sys.gettrace()
    sys.settrace(tracer)
    try:
        assert run(3) == 106
    finally:
        sys.settrace(before)
    assert steps.count(5) == 1  # only for n == 2
    assert steps.count(6) == 3


class Both(Struct):
    """A block for one test."""

    flags = i32
    result = f32


def test_flags_functions_and_structures() -> None:
    @kernel(args=(ptr, f32), returns=None)
    def square(block, x):
        made = Both.at(block)
        made.result = x * x

    @kernel(args=(ptr, f32), returns=None)
    def outer(block, x):
        made = Both.at(block)
        place = address_of(square)
        _, flags = call_with_flags(lambda: call_pointer(place, None, (ptr, f32), block, x, float_mode="keep"))
        made.flags = flags & (FP_INVALID | FP_OVERFLOW)

    for target in (None, eager.TARGET):
        run = build("outer", {"outer": outer}, target=target)["outer"]
        block = Both()
        for x, flags, result in (
            (3.0, 0, 9.0),
            (1e30, FP_OVERFLOW, float(np.finfo("f4").max)),
            (1e-30, 0, 0.0),
        ):
            run(block.address, x)
            assert (block.flags, block.result) == (flags, result), target


def test_a_range_that_counts_down_and_nested_loops_with_break() -> None:
    @kernel(args=(i32,), returns=i32)
    def triangle(n):
        total = 0
        for i in range(n, 0, -1):
            for j in range(i):
                if j == 3:
                    break
                total += 1
            if total > 20:
                return -total
        return total

    functions = {"t": triangle}
    native = build("t", functions)["t"]
    run = build("t", functions, target=eager.TARGET)["t"]
    assert [native(n) for n in range(12)] == [run(n) for n in range(12)]
    assert run(11) == -21


def test_what_is_for_compiled_code_only_says_so() -> None:
    from vc4lab.simd import new_block

    function = Function((), None, lambda: new_block())
    with pytest.raises(TypeError, match="basic blocks are for compiled code only"):
        build("b", {"b": function}, target=eager.TARGET)["b"]()


def test_lanes_of_other_widths() -> None:
    def body(source: Value, target: Value) -> None:
        words = load(vec(i64, 8), source)
        store(target, (words * 3).bitcast(vec(i32, 16)) + 1)

    data = np.arange(8, dtype=np.uint64) << np.uint64(33)
    results = []
    for target in (None, eager.TARGET):
        out = np.zeros(16, np.uint32)
        function = {"w": Function((ptr, ptr), None, body)}
        build("w", function, target=target)["w"](data.ctypes.data, out.ctypes.data)
        results.append(out.tolist())
    assert results[0] == results[1]
