"""Mistakes in kernels, and what is said about them: types, lines, unbound names."""

import pytest

from vc4lab.simd import build, f32, i32, i32x16, kernel, load, ptr, store


def fails(error=TypeError, args=(i32,), returns=i32):
    def check(function):
        with pytest.raises(error) as caught:
            build("test", {"f": kernel(args=args, returns=returns)(function)})
        return str(caught.value)

    return check


def test_a_type_mismatch_names_both_types_and_the_line():
    @fails(args=(i32, f32))
    def message(a, b):
        x = a + 1
        return x + b

    assert "i32 and f32" in message
    assert f"test_mistakes.py:{_line('return x + b')}" in message


def test_merging_different_types():
    @fails(args=(i32, f32))
    def message(a, b):
        if a > 0:
            x = a
        else:
            x = b
        return x + 1

    assert "'x' is i32 and f32 on different paths" in message


def test_a_carried_variable_keeps_its_type():
    @fails(args=(i32, f32))
    def message(n, b):
        total = 0
        for _ in range(n):
            total = total + n
            total = total.to_float(f32)
        return 1

    assert "'total' enters the loop as i32 and leaves its body as f32" in message


def test_unbound_on_one_path():
    @fails()
    def message(n):
        if n > 0:
            x = 1
        return x

    assert "'x' is not assigned on every path" in message


def test_truth_of_a_mask():
    @fails(args=(ptr,), returns=None)
    def message(p):
        if load(i32x16, p) > 0:
            store(p, 1)

    assert "any_()" in message

    @fails(args=(i32,))
    def other(a):
        return [x for x in (1, 2) if a > x][0]  # noqa: RUF015

    assert "no truth value" in other


def test_python_objects_cannot_change_per_turn():
    @fails()
    def message(n):
        name = "a"
        for _ in range(n):
            if name == "a":
                n = n + 1
            name = "b"
        return n

    assert "'name'" in message


def test_wrong_returns():
    @fails(returns=None)
    def message(n):
        return n

    assert "declares returns=None" in message

    @fails(returns=f32)
    def other(n):
        return n

    assert "expected f32, found i32" in other


def test_errors_point_at_the_kernel_line():
    import traceback

    @kernel(args=(i32,), returns=i32)
    def f(n):
        for _ in range(n):
            if n > 3:
                n = n + undefined_thing  # noqa: F821
        return n

    with pytest.raises(NameError) as caught:
        build("test", {"f": f})
    lines = [frame.lineno for frame in traceback.extract_tb(caught.tb) if frame.filename == __file__]
    assert lines[-1] == _line("n = n + undefined_thing")


def test_staged_values_outside_a_trace():
    with pytest.raises(RuntimeError, match="traced"):
        load(i32, 0)

    @kernel(args=(i32,), returns=i32)
    def f(n):
        return n

    with pytest.raises(RuntimeError, match="build"):
        f(3)


def _line(text):
    with open(__file__) as file:
        for number, line in enumerate(file, 1):
            if text in line and "_line(" not in line:
                return number
    raise AssertionError(text)
