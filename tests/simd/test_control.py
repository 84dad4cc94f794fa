"""Python's control flow in kernels: native where staged, plain Python where not."""

import ctypes

import pytest

from vc4lab.simd import (
    Function,
    any_,
    build,
    call,
    const,
    eager,
    enter,
    f32,
    i1,
    i32,
    i32x16,
    i64,
    jump,
    jump_if,
    kernel,
    load,
    new_block,
    ptr,
    select,
    staged,
    store,
    terminated,
    unroll,
    var,
)
from vc4lab.simd.native import trace_module
from vc4lab.simd.target import host_target


@pytest.fixture(autouse=True, params=["native", "eager"])
def engine(request):
    """Each test twice: compiled, and as plain Python."""
    engines[:] = [host_target() if request.param == "native" else eager.TARGET]


engines: list = []


def compiled(function):
    return build("test", {"f": function}, target=engines[0])["f"]


def run(function, *args):
    return compiled(function)(*args)


compiled_only = pytest.mark.parametrize("engine", ["native"], indirect=True)


def numbers(*values):
    return ctypes.addressof(keep.setdefault(values, (ctypes.c_int32 * len(values))(*values)))


keep: dict = {}


def test_branches():
    @kernel(args=(i32, i32), returns=i32)
    def classify(a, b):
        if a < b:
            result = 1
        elif a == b:
            result = 2
        else:
            result = a - b
            if result > 10:
                result = 10
        return result

    native = compiled(classify)
    assert [native(1, 2), native(2, 2), native(5, 2), native(50, 2)] == [1, 2, 3, 10]


def test_early_returns_and_nesting():
    @kernel(args=(ptr, i32, i32), returns=i32)
    def find(p, rows, wanted):
        for y in range(rows):
            x = 0
            while x < 4:
                value = load(i32, p + (y * 4 + x) * 4)
                if value == wanted:
                    return y * 100 + x
                if value < 0:
                    break
                x += 1
            else_count = x
            if else_count == 3:
                continue
            if y == 3:
                return -3
        return -1

    native = compiled(find)
    data = numbers(1, 2, 3, 4, 5, -1, 6, 7, 8, 9, 10, -1, 12, 13, 14, 15, 16, 17, 18, 19)
    assert native(data, 5, 9) == 201
    assert native(data, 5, 6) == -3
    assert native(data, 3, 99) == -1
    assert native(data, 0, 1) == -1


def test_ranges():
    @kernel(args=(i32, i32), returns=i32)
    def count(a, b):
        total = 0
        for i in range(a, b):
            total = total * 3 + i
        for i in range(b, a, -2):
            total += i * 1000
        for i in range(4):
            total += i
        return total

    def expected(a, b):
        total = 0
        for i in range(a, b):
            total = total * 3 + i
        for i in range(b, a, -2):
            total += i * 1000
        return total + 6

    native = compiled(count)
    for a, b in ((0, 5), (3, 3), (5, 1), (-4, 4)):
        assert native(a, b) == expected(a, b)


def test_range_of_64_bits():
    @kernel(args=(i64,), returns=i64)
    def total(n):
        s = const(i64, 0)
        for i in range(n):
            s += i
        return s

    assert run(total, 1000) == 499500


def test_unrolled_loops_stay_python():
    seen = []

    @kernel(args=(i32,), returns=i32)
    def f(x):
        total = 0
        for i in unroll(5):
            seen.append(i)
            if i == 3:
                continue
            if i == 4:
                break
            total = total + x * i
        names = ["a", "b"]
        for n, name in enumerate(names):
            total += n * len(name)
        return total

    assert run(f, 7) == 7 * 3 + 1
    assert seen == [0, 1, 2, 3, 4]


def test_staged_break_in_an_unrolled_loop():
    @kernel(args=(i32,), returns=i32)
    def f(x):
        total = 0
        for i in unroll(5):
            if x == i:
                break
            if x == i + 10:
                continue
            total += 1 << i
        return total

    native = compiled(f)
    assert [native(x) for x in (0, 3, 9, 12)] == [0, 7, 31, 31 - 4]


def test_static_branches_take_one_side():
    @staged
    def pick(kind, x):
        if kind == "double":
            return x * 2
        if kind is None:
            return None
        return {"half": x // 2}[kind]

    @kernel(args=(i32,), returns=i32)
    def f(x):
        assert pick(None, x) is None
        return pick("double", x) + pick("half", x)

    assert run(f, 10) == 25


def test_while_conditions():
    def f(n):
        i = 0
        while i < 3:  # plain Python: unrolled
            i += 1
        steps = 0
        while n != 1 and steps < 100:
            n = n // 2 if n % 2 == 0 else 3 * n + 1
            steps += 1
        while True:
            steps += 1
            if steps > 50:
                break
        while (left := n + i) < 20:
            n += left
        return steps * 1000 + left

    native = compiled(kernel(args=(i32,), returns=i32)(f))
    for n in (1, 6, 27):
        assert native(n) == f(n)


def test_logic():
    @kernel(args=(i32, i32), returns=i32)
    def f(a, b):
        bits = 0
        if a > 0 and b > 0:
            bits |= 1
        if a > 0 or b > 0:
            bits |= 2
        if not a:
            bits |= 4
        if 0 < a < b <= 10:
            bits |= 8
        if True and a == 5 and not (b == 2 or b == 3):
            bits |= 16
        return bits

    native = compiled(f)
    for a in (-1, 0, 1, 5):
        for b in (-1, 0, 2, 3, 9, 11):
            want = (
                (a > 0 and b > 0) * 1 + (a > 0 or b > 0) * 2 + (not a) * 4 + (0 < a < b <= 10) * 8
                + (a == 5 and b not in (2, 3)) * 16
            )  # fmt: skip
            assert native(a, b) == want, (a, b)


def test_ternaries_select_and_static_ones_do_not_evaluate():
    @kernel(args=(i32,), returns=i32)
    def f(a):
        x = a if a > 3 else 3
        y = 1 if True else undefined_name  # noqa: F821
        p, q = (x, y) if a < 0 else (y, x)
        return p * 100 + q

    native = compiled(f)
    assert (native(-1), native(9)) == (301, 109)


def test_closures_methods_defaults_and_nested_functions():
    factor = 3

    class Scaler:
        def __init__(self, by):
            self.by = by

        @staged
        def scale(self, x, extra=1):
            if x > 10:
                return x
            return x * self.by + extra

    @kernel(args=(i32,), returns=i32)
    def f(x):
        def bump(v):
            if v > 100:
                return v - 100
            return v + factor

        return bump(Scaler(5).scale(x)) + Scaler(2).scale(x, extra=1000)

    native = compiled(f)
    assert native(4) == (21 + 3) + 1008
    assert native(11) == 14 + 11
    factor = 4
    assert compiled(f)(4) == (21 + 4) + 1008


def test_staged_functions_run_as_python_outside_kernels():
    @staged
    def add(a, b):
        return a + b if a > 0 else b

    assert add(2, 3) == 5


def test_vectors_and_cells_in_loops():
    @kernel(args=(ptr, i32))
    def mandel(p, limit):
        x = load(i32x16, p)
        steps = const(i32x16, 0)
        cell = var(i32, 5)
        for _ in range(limit):
            active = x < 1000
            if not any_(active):
                break
            x = select(active, x * 2, x)
            steps = steps + active.zext(i32)
            cell.set(cell.get() + 1)
        store(p, steps)
        store(p + 64, cell.get())

    data = (ctypes.c_int32 * 17)(*range(1, 17))
    run(mandel, ctypes.addressof(data), 100)
    want = []
    for x in range(1, 17):
        n = 0
        while x < 1000:
            x, n = x * 2, n + 1
        want.append(n)
    assert list(data) == [*want, 5 + max(want)]


@compiled_only
def test_explicit_blocks():
    def body(n):
        i, total = var(i32, 0), var(i32, 0)
        head, inside, out = new_block(), new_block(), new_block()
        jump(head)
        assert terminated()
        enter(head)
        jump_if(i.get() < n, inside, out)
        enter(inside)
        total.set(total.get() + i.get())
        i.set(i.get() + 1)
        jump(head)
        enter(out)
        assert not terminated()
        return total.get()

    assert run(Function((i32,), i32, body), 10) == 45


def test_calls_are_shared_and_may_recurse():
    @kernel(args=(i32,), returns=i32)
    def fibonacci(n):
        if n < 2:
            return n
        return call(fibonacci, n - 1) + call(fibonacci, n - 2)

    module = build("test", {"f": fibonacci})
    assert module["f"](15) == 610
    text = trace_module({"f": fibonacci}, host_target(), "qpu")
    assert text.count("define internal i32 @fibonacci") == 1


def test_bool_and_float_interface():
    @kernel(args=(i1, f32), returns=i1)
    def f(flag, x):
        if flag:
            return x > 0.5
        return False

    native = compiled(f)
    assert [native(True, 1.0), native(True, 0.0), native(False, 1.0)] == [True, False, False]


def test_constant_and_dead_code_after_infinite_loops():
    @kernel(args=(i32,), returns=i32)
    def f(n):
        while True:
            n += 1
            if n > 5:
                return n

    assert run(f, 0) == 6


def test_temporaries_of_another_type_may_reuse_a_name():
    @kernel(args=(i32,), returns=i32)
    def f(n):
        t = 1.5
        total = 0
        for i in range(n):
            t = i * 2
            total += t
        return total

    assert run(f, 4) == 12
