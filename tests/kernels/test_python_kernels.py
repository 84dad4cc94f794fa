"""Kernels in Python: what each construct computes."""

import html
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import vc4lab
from vc4lab.kernels import InterfaceError, KernelError
from vc4lab.kernels.python import *  # noqa: F403
from vc4lab.kernels.python import (
    Array,
    Float,
    InOut,
    Int,
    Out,
    PythonKernel,
    Uint,
    all_,
    any_,
    index,
    maximum,
    me,
    minimum,
    qpu_function,
    qpus,
    rotate,
    select,
    store,
    unroll,
)

ENGINES = ["jit", "interpreter"]
LANES = np.arange(16)


def run(function: Callable[..., Any], *args: Any, qpus: int = 1) -> Any:
    """What a kernel gives, the same on both engines."""
    sizes = {"z": "16"} if "z" in function.__annotations__ else {}
    first, second = (PythonKernel(function, sizes, engine=engine)(*args, qpus=qpus) for engine in ENGINES)
    np.testing.assert_array_equal(first, second)
    return first


def of_ints(compute: Callable[[Any, Any], Any], a: Any, b: Any) -> np.ndarray:
    def kernel(a: Array[Int], b: Array[Int], z: Out[Int]) -> None:
        z[0] = compute(a[index()], b[index()])

    return run(kernel, np.asarray(a, np.int32), np.asarray(b, np.int32))


def of_uints(compute: Callable[[Any, Any], Any], a: Any, b: Any) -> np.ndarray:
    def kernel(a: Array[Uint], b: Array[Uint], z: Out[Uint]) -> None:
        z[0] = compute(a[index()], b[index()])

    return run(kernel, np.asarray(a, np.uint32), np.asarray(b, np.uint32))


def of_floats(compute: Callable[[Any, Any], Any], a: Any, b: Any) -> np.ndarray:
    def kernel(a: Array[Float], b: Array[Float], z: Out[Float]) -> None:
        z[0] = compute(a[index()], b[index()])

    return run(kernel, np.asarray(a, np.float32), np.asarray(b, np.float32))


RANDOM = np.random.default_rng(1)
A, B = RANDOM.integers(-(1 << 31), 1 << 31, (2, 16))
SMALL = RANDOM.integers(-50, 50, 16)


@pytest.mark.parametrize(
    "compute",
    [
        lambda a, b: a + b,
        lambda a, b: a - b,
        lambda a, b: 7 - a,
        lambda a, b: a * b,
        lambda a, b: a * 1000003,
        lambda a, b: a * 8,
        lambda a, b: -a ^ b,
        lambda a, b: ~a & b | 3,
        lambda a, b: a << 5,
        lambda a, b: a >> 5,
        lambda a, b: a + 0 - (b - 0),
        lambda a, b: a * 123456789 + 0x1234567,
    ],
)
def test_integers(compute: Callable[[Any, Any], Any]) -> None:
    wanted = compute(A.astype(np.int64), B.astype(np.int64)).astype(np.uint64).astype(np.uint32)
    np.testing.assert_array_equal(of_ints(compute, A, B).view(np.uint32), wanted)


def test_integers_without_a_sign() -> None:
    a, b = A.astype(np.uint32), B.astype(np.uint32)
    np.testing.assert_array_equal(of_uints(lambda a, b: a >> 7, a, b), a >> 7)
    np.testing.assert_array_equal(of_uints(lambda a, b: minimum(a, b), a, b), np.minimum(a, b))
    np.testing.assert_array_equal(of_uints(lambda a, b: maximum(a, b), a, b), np.maximum(a, b))
    np.testing.assert_array_equal(of_uints(lambda a, b: select(a < b, 1, 0), a, b), a < b)


@pytest.mark.parametrize(
    "compute",
    [
        lambda a, b: a < b,
        lambda a, b: a <= b,
        lambda a, b: a > b,
        lambda a, b: a >= b,
        lambda a, b: a == b,
        lambda a, b: a != b,
        lambda a, b: a == 0,
        lambda a, b: (a < b) & (b > 0) | (a == b),
        lambda a, b: ~(a < b) ^ (a < 3),
    ],
)
@pytest.mark.parametrize("of", [of_ints, of_floats])
def test_comparisons(of: Callable[..., np.ndarray], compute: Callable[[Any, Any], Any]) -> None:
    a, b = SMALL, np.where(LANES % 3, SMALL[::-1], SMALL)
    a[4], a[5] = 0, b[5]
    found = of(lambda a, b: select(compute(a, b), a * 0 + 1, a * 0), a, b)
    np.testing.assert_array_equal(found, compute(a, b))


def test_floats() -> None:
    a, b = SMALL.astype(np.float32), np.abs(SMALL[::-1]).astype(np.float32) + 1
    np.testing.assert_array_equal(of_floats(lambda a, b: -abs(a) * b + 0.5, a, b), -abs(a) * b + 0.5)
    np.testing.assert_allclose(of_floats(lambda a, b: a / b, a, b), a / b, rtol=1e-6)
    np.testing.assert_allclose(of_floats(lambda a, b: 3.0 / b, a, b), 3 / b, rtol=1e-6)
    np.testing.assert_array_equal(of_floats(lambda a, b: a / 8, a, b), a / 8)
    np.testing.assert_array_equal(of_floats(lambda a, b: Float(Int(a / 4)), a, b), np.trunc(a / 4))
    found = of_floats(lambda a, b: maximum(a, b) - minimum(2, b), a, b)
    np.testing.assert_array_equal(found, np.maximum(a, b) - np.minimum(2, b))


def test_loops_carry_variables_and_lists() -> None:
    def kernel(n: Int, z: Out[Int]) -> None:
        a, b, both = Int(0), 1, [index(), Int(0)]
        for i in range(n):
            a, b = b, a + b
            both[0] = both[0] + i
            both[1] = both[0] * 2
        z[0] = a + 1000 * both[0] + 100000 * both[1]

    for n in (0, 1, 7):
        fibonacci = [0, 1, 1, 2, 3, 5, 8, 13][n]
        total = LANES + n * (n - 1) // 2
        np.testing.assert_array_equal(run(kernel, n), fibonacci + 1000 * total + 200000 * total * (n > 0))


def test_loops_count_down_and_nest() -> None:
    def kernel(z: Out[Int]) -> None:
        total = Int(0)
        for i in range(5, -1, -2):
            for j in range(0, i):
                total = total + i * 10 + j
        z[0] = total

    assert run(kernel)[3] == sum(i * 10 + j for i in range(5, -1, -2) for j in range(i))


def test_while_any_and_all() -> None:
    def kernel(z: Out[Int]) -> None:
        n, turns = index() + 1, Int(0)
        while any_(n != 1):
            n = select(n == 1, n, select((n & 1) == 0, n >> 1, 3 * n + 1))
            turns = turns + 1
        while all_(turns > 10):
            turns = turns - 10
        z[0] = turns

    def collatz(n: int) -> int:
        turns = 0
        while n != 1:
            n, turns = (n // 2 if n % 2 == 0 else 3 * n + 1), turns + 1
        return turns

    assert run(kernel)[0] == (max(collatz(n) for n in range(1, 17)) - 1) % 10 + 1


def test_branches_and_conditions_on_lanes() -> None:
    def kernel(n: Int, z: Out[Int]) -> None:
        a = index()
        if any_(n > 3):
            a = a + n
            if all_(n > 5):
                a = a * 2
            b = a
        else:
            b = -a
        if (index() & 1) == 0 and n != 4:
            b = b + 100
            if index() > 7:
                b = b + 1000
        elif index() == 5:
            b = Int(-1)
        z[0] = b if not index() == 9 else 77  # noqa: SIM201

    for n in (2, 4, 6):
        a = LANES + n if n > 3 else -LANES
        a = a * 2 if n > 5 else a
        even = (LANES % 2 == 0) & (n != 4)
        a = np.where(even, a + 100 + 1000 * (LANES > 7), np.where(LANES == 5, -1, a))
        np.testing.assert_array_equal(run(kernel, n), np.where(LANES == 9, 77, a))


def test_unrolled_loops_break() -> None:
    def kernel(z: Out[Int]) -> None:
        total = Int(0)
        for i in unroll(10):
            if i == 2:
                continue
            if i == 5:
                break
            total = total + i
        z[0] = total

    assert run(kernel)[0] == 0 + 1 + 3 + 4


@qpu_function
def clamp(x: Int, low: int) -> Int:
    if low > 100:
        return x
    if x < low:
        x = Int(low)
    return x


def test_functions_are_traced_with_the_kernel() -> None:
    def kernel(z: Out[Int]) -> None:
        z[0] = clamp(index(), 5) + clamp(index(), 200)

    np.testing.assert_array_equal(run(kernel), np.maximum(LANES, 5) + LANES)


@pytest.mark.parametrize("places", range(-1, 18))
def test_rotate(places: int) -> None:
    def kernel(z: Out[Int]) -> None:
        z[0] = rotate(index(), places)

    np.testing.assert_array_equal(run(kernel), np.roll(LANES, places))


@pytest.mark.parametrize("lane", [0, 1, 15])
def test_broadcast(lane: int) -> None:
    from vc4lab.kernels.python import broadcast

    def kernel(z: Out[Int]) -> None:
        z[0] = broadcast(index() * 3 + 1, lane) + broadcast(index(), 2)

    assert list(run(kernel)) == [3 * lane + 3] * 16


def test_special_functions() -> None:
    from vc4lab.kernels.python import bits_of, clz, exp2, float_of_bits, log2, mul24, recip, recipsqrt, ror

    x = np.linspace(1, 9, 16, dtype=np.float32)
    np.testing.assert_allclose(of_floats(lambda a, b: exp2(a) + log2(a), x, x), 2**x + np.log2(x), rtol=1e-3)
    found = of_floats(lambda a, b: recip(a) + recipsqrt(a), x, x)
    np.testing.assert_allclose(found, 1 / x + x**-0.5, rtol=1e-3)
    np.testing.assert_array_equal(
        of_floats(lambda a, b: float_of_bits(bits_of(a) + 1), x, x), np.nextafter(x, 99)
    )
    n = np.arange(16) + 3
    np.testing.assert_array_equal(
        of_ints(lambda a, b: mul24(a, b) + clz(a) + ror(b, 32), n, n),
        n * n + 32 - np.floor(np.log2(n)).astype(int) - 1 + n,
    )


def test_semaphores_and_who_is_who() -> None:
    from vc4lab.kernels.python import semaphore_signal, semaphore_wait

    def kernel(z: Out[Int]) -> None:
        if any_(me() > 0):
            semaphore_wait(0)
        store(me() * 100 + qpus(), z + 16 * me())
        if any_(me() < qpus() - 1):
            semaphore_signal(0)

    found = PythonKernel(kernel, {"z": "48"})(qpus=3)
    np.testing.assert_array_equal(found, np.repeat([3, 103, 203], 16))


def test_the_vpm() -> None:
    from vc4lab.kernels.python import (
        dma_load,
        dma_store,
        read_vpm,
        setup_vpm_read,
        setup_vpm_write,
        write_vpm,
    )

    def kernel(x: InOut[Float]) -> None:
        dma_load(x, 0, rows=16)
        setup_vpm_read(0, 16, vertical=True)
        columns = [read_vpm(Float) for _ in unroll(16)]
        setup_vpm_write(16)
        for value in columns:
            write_vpm(value + 1.0)
        dma_store(x, 16, rows=16)

    x = np.arange(256, dtype=np.float32).reshape(16, 16)
    np.testing.assert_array_equal(run(kernel, x), x.T + 1)


def test_loads_and_stores_of_an_array_keep_their_order() -> None:
    def kernel(x: InOut[Int], y: InOut[Int]) -> None:
        a, b = x[index()], y[index()]
        x[0] = b
        c = x[index()]
        y[0] = a + c

    x, y = np.arange(16), np.arange(16) * 100
    np.testing.assert_array_equal(run(kernel, x, y), [y, x + y])


def test_idioms_of_qpulib() -> None:
    """Greatest common divisors, as that library's first example has them: pointers, While, Where, store."""
    from vc4lab.kernels.python import gather, receive

    def kernel(p: Array[Int], q: Array[Int], z: Out[Int]) -> None:
        left, right = p + index(), q + index()
        gather(left)
        gather(right)
        a, b = receive(Int), receive(Int)
        while any_(a != b):
            if a > b:
                a = a - b
            if a < b:
                b = b - a
        store(a, z + index())

    p, q = np.random.default_rng(9).integers(1, 200, (2, 16))
    np.testing.assert_array_equal(run(kernel, p, q), np.gcd(p, q))


def test_types_of_arguments_and_defaults() -> None:
    @vc4lab.qpu_kernel(z="2, 16")
    def kernel(a: Float, n: Int = 3, *, u: Uint = 7, z: Out[Float]) -> None:  # type: ignore[assignment]
        z[0] = a + Float(n)
        z[16] = a + Float(u)

    found = kernel(0.5)
    np.testing.assert_array_equal(found, [[3.5] * 16, [7.5] * 16])
    assert str(kernel.interface) == "kernel(a: float, n: int = 3, u: uint = 7, out z: float[2, 16])"
    with pytest.raises(InterfaceError, match="a is missing"):
        kernel()


def test_a_notebook_shows_lines_and_the_last_timing() -> None:
    @vc4lab.qpu_kernel
    def double(x: InOut[Float]) -> None:
        x[0] = x[index()] * 2

    x = np.ones(16, np.float32)
    shown = html.unescape(double._repr_html_())
    assert "x[0] = x[index()] * 2" in shown
    assert "clocks" not in shown
    timing = double.timing(x)
    assert f"{timing.clocks} clocks" in html.unescape(double._repr_html_())


def test_a_debugger_stands_at_lines_of_python() -> None:
    @vc4lab.qpu_kernel
    def double(x: InOut[Float]) -> None:
        x[0] = x[index()] * 2

    session = double.debug(np.ones(16, np.float32))
    assert session.source.path.name == "test_python_kernels.py"
    lines = {line for line, _ in session.source.lines}
    assert double.function.__code__.co_firstlineno + 2 in lines


def test_a_kernel_that_never_ends_is_stopped() -> None:
    @vc4lab.qpu_kernel
    def endless(x: InOut[Int]) -> None:
        n = index() | 1
        while all_(n > 0):
            n = n | 1
        x[0] = n

    endless.budget = 10000
    line = endless.function.__code__.co_firstlineno
    with pytest.raises(KernelError, match=f"(?s)does not end.*{__file__}:{line + 3}: QPU-041"):
        endless(np.zeros(16, np.int32))


def test_mistakes_of_a_run_name_the_line() -> None:
    @vc4lab.qpu_kernel
    def beyond(x: InOut[Int]) -> None:
        x[0] = x[index() + 99]

    line = beyond.function.__code__.co_firstlineno
    with pytest.raises(KernelError, match=f"{__file__}:{line + 2}: QPU-064"):
        beyond(np.zeros(16, np.int32))
