"""Float modes, sticky flags, calls to C, modules, threads, identical bits everywhere."""

import ctypes
import gc
import itertools
import threading
import weakref

import numpy as np
import pytest

from vc4lab.simd import (
    FP_INVALID,
    FP_OVERFLOW,
    Function,
    Target,
    build,
    call_pointer,
    call_with_flags,
    const,
    f32,
    f32x16,
    floor_,
    gather,
    i32,
    i32x16,
    kernel,
    load,
    mask_bits,
    opaque,
    permute,
    ptr,
    scatter,
    select,
    sqrt_,
    store,
    targets,
    unroll,
)
from vc4lab.simd.native import trace_module
from vc4lab.simd.target import host_target


def floats(*values: float) -> np.ndarray:
    return np.resize(np.array(values, "f4"), 16)


@kernel(args=(ptr, ptr, ptr))
def arithmetic(a, b, out):
    x, y = load(f32x16, a), load(f32x16, b)
    store(out, x + y)
    store(out + 64, x * y)
    store(out + 128, x / y)
    store(out + 192, sqrt_(x))
    store(out + 256, load(i32x16, a).to_float(f32))
    store(out + 320, load(i32x16, a).to_float_unsigned(f32))


def toward_zero(exact: np.ndarray) -> np.ndarray:
    """Float64 results (exact enough for these inputs) truncated to float32."""
    near = exact.astype("f4")
    over = abs(near.astype("f8")) > abs(exact)
    return np.where(over, np.nextafter(near, np.float32(0)), near)


def test_qpu_mode_rounds_toward_zero_and_flushes(target):
    a = floats(1.0, 3.0, 0.1, -0.7, 1e-30, 5e-39, 16777219.0, -1e20)
    b = floats(3e-8, -7.0, 0.3, 1.1, 1e-12, 1.0, 2.0, 3e18)
    out = np.zeros(96, "f4")
    native = build("m", {"f": arithmetic}, target=target)["f"]
    native(a.ctypes.data, b.ctypes.data, out.ctypes.data)
    x, y = a.astype("f8"), b.astype("f8")
    x[abs(x) < 1.1754944e-38] = 0
    for index, exact in enumerate([x + y, x * y, x / y]):
        want = toward_zero(exact)
        want[abs(want) < 1.1754944e-38] = 0
        np.testing.assert_array_equal(out[16 * index :][:16], want, err_msg=str(index))
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(out[48:64], toward_zero(np.sqrt(x)))
    np.testing.assert_array_equal(out[64:80], toward_zero(a.view("i4").astype("f8")))
    np.testing.assert_array_equal(out[80:96], toward_zero(a.view("u4").astype("f8")))
    assert 1e-310 * 1 != 0  # the caller's mode is back: float64 denormals live
    assert np.float32(1) + np.float32(1.5 * 2**-24) == np.float32(1) + np.float32(2**-23)


def test_default_mode_is_ieee(target):
    a, b, out = floats(1.0, 1e-30), floats(1.5 * 2**-24, 1e-12), np.zeros(96, "f4")
    native = build("m", {"f": arithmetic}, target=target, float_mode="default")["f"]
    native(a.ctypes.data, b.ctypes.data, out.ctypes.data)
    np.testing.assert_array_equal(out[:16], a + b)
    np.testing.assert_array_equal(out[16:32], a * b)
    with pytest.raises(ValueError, match="float_mode"):
        build("m", {"f": arithmetic}, float_mode="fast")


def test_sticky_flags(target):
    @kernel(args=(f32x16, f32x16), returns=f32x16)
    def multiply(x, y):
        return x * y

    @kernel(args=(f32x16, ptr))
    def add_and_store(x, p):
        store(p, x + 1.0)

    @kernel(args=(ptr, ptr, ptr), returns=i32)
    def f(a, b, out):
        result, flags = call_with_flags(multiply, load(f32x16, a), load(f32x16, b))
        store(out, result)
        nothing, more = call_with_flags(add_and_store, load(f32x16, a), out + 64)
        assert nothing is None
        store(out + 128, more)
        return flags

    native = build("f", {"f": f}, target=target)["f"]
    out = np.zeros(48, "f4")

    def flags(x: float, y: float) -> int:
        a, b = floats(1, 2, 3, 4), floats(5)
        a[7], b[7] = x, y
        return native(a.ctypes.data, b.ctypes.data, out.ctypes.data) & (FP_INVALID | FP_OVERFLOW)

    assert flags(2.0, 3.0) == 0
    assert out[7] == 6
    assert out[16 + 7] == 3
    assert flags(1e30, 1e30) == FP_OVERFLOW
    assert flags(np.inf, 0.0) == FP_INVALID
    assert flags(np.inf, 2.0) == 0
    assert flags(1e-30, 1e-30) == 0
    assert flags(1e-40, 1.0) == 0
    assert flags(2.0, 3.0) == 0  # sticky only within one call
    assert not out[32:33].view("i4")[0] & (FP_INVALID | FP_OVERFLOW)


def test_c_calls_run_in_the_normal_float_mode(target):
    seen = []

    @ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_int32, ctypes.c_float, ctypes.c_void_p)
    def callback(number, x, pointer):
        seen.append((number, x, pointer, 0.1 + 0.2, 1e-310 * 1))
        return number * 2

    @kernel(args=(ptr, i32, ptr), returns=i32)
    def f(function, n, out):
        total = 0
        for i in range(n):
            total += call_pointer(function, i32, (i32, f32, ptr), i, 0.5, out)
        call_pointer(function, None, (i32, f32, ptr), 9, 1.5, None, float_mode="keep")
        tiny = opaque(f32, 1e-30) * opaque(f32, 1e-10)
        store(out, tiny)
        return total

    out = np.ones(1, "f4")
    pointer = ctypes.cast(callback, ctypes.c_void_p).value
    native = build("c", {"f": f}, target=target)["f"]
    assert native(pointer, 3, out.ctypes.data) == 6
    normal = (0.30000000000000004, 1e-310)
    assert seen[:3] == [(i, 0.5, out.ctypes.data, *normal) for i in range(3)]
    assert seen[3][:3] == (9, 1.5, None)
    assert out[0] == 0  # our mode is back after the call


# -- modules and threads


def test_threads_compile_and_run_at_once():
    failures = []

    def work(seed: int) -> None:
        try:
            for k in range(5):
                function = Function((i32,), i32, lambda x, n=seed * 10 + k: x * 3 + n)
                module = build(f"t{seed}", {"f": function}, quick=bool(k & 1))
                assert module["f"](2) == 6 + seed * 10 + k
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(6)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not failures


def test_a_function_keeps_its_module():
    function = build("k", {"f": Function((i32,), i32, lambda x: x + 40)})["f"]
    gc.collect()
    assert function(2) == 42
    assert function.address != 0
    for n in range(20):  # unloaded modules do not disturb
        build("gone", {"f": Function((i32,), i32, lambda x, n=n: x + n)})
    gc.collect()
    assert function(2) == 42


def test_code_is_unloaded_with_its_last_function():
    """At once, without Python's search for circles."""
    gc.disable()
    try:
        module = build("gone", {"f": Function((i32,), i32, lambda x: x + 41)})
        function, code = module["f"], weakref.ref(module["f"]._code)
        del module
        assert function(1) == 42
        assert code() is not None
        del function
        assert code() is None
    finally:
        gc.enable()


def test_vectors_cannot_be_entry_arguments():
    with pytest.raises(TypeError, match="i32x16 cannot cross"):
        build("v", {"f": Function((i32x16,), None, lambda v: None)})


def test_several_entries_share_kernels():
    @kernel(args=(i32,), returns=i32)
    def f(x):
        return x + 1

    module = build("two", {"first": f, "second.entry": f})
    assert (module["first"](1), module["second.entry"](2)) == (2, 3)
    text = trace_module({"first": f, "second.entry": f}, host_target(), "qpu")
    assert text.count("define internal") == 1


def test_code_for_aarch64_compiles():
    """It cannot run here; at least LLVM accepts it and the control registers are there."""
    import llvmlite.binding as llvm

    try:
        llvm.initialize_all_targets()
        llvm.initialize_all_asmprinters()
        machine = llvm.Target.from_triple("aarch64-linux-gnu").create_target_machine("cortex-a72")
    except RuntimeError:
        pytest.skip("this LLVM has no AArch64 back end")

    @kernel(args=(f32x16,), returns=f32x16)
    def square(v):
        return v * v

    @kernel(args=(ptr, ptr), returns=i32)
    def f(p, function):
        v = load(i32x16, p)
        w = permute(v, v & 15)
        g = gather(i32, p, w & 60, v > 3, 1)
        result, flags = call_with_flags(square, g.to_float())
        store(p, floor_(result))
        scatter(p, w & 60, v, v > 3)
        call_pointer(function, None, (i32,), 3)
        return flags + mask_bits(v > 5)

    target = Target("generic", "cortex-a72", "", "aarch64-linux-gnu")
    assembly = machine.emit_assembly(llvm.parse_assembly(trace_module({"f": f}, target, "qpu")))
    assert assembly.lower().count("fpcr") >= 4
    assert assembly.lower().count("fpsr") >= 2
    with pytest.raises(RuntimeError, match="riscv64"):
        trace_module({"f": f}, Target("generic", "", "", "riscv64-linux-gnu"), "qpu")


# -- the same bits everywhere


def _mix(seed: int, steps: int):
    """A deterministic pseudo-random program over a few registers."""
    rng = np.random.default_rng(seed)
    picks = rng.integers(0, 1 << 30, (steps, 4)).tolist()

    def body(p, n):
        r = [load(i32x16, p + 64 * i) for i in range(8)]
        for op, a, b, d in picks:
            x, y = r[a % 8], r[b % 8]
            fx, fy = x.bitcast(f32), y.bitcast(f32)
            k = opaque(f32x16, (op % 1000) / 100)
            r[d % 8] = [
                lambda x=x, y=y: x + y,
                lambda x=x, y=y: x * y,
                lambda fx=fx, fy=fy: (fx + fy).bitcast(i32),
                lambda fx=fx, fy=fy: (fx * fy).bitcast(i32),
                lambda x=x, y=y: x ^ (y >> 3),
                lambda x=x, y=y: x.shr(y & 31),
                lambda fx=fx, fy=fy, x=x, y=y: select(fx < fy, x, y),
                lambda fx=fx: fx.to_int(i32),
                lambda x=x: x.to_float(f32).bitcast(i32),
                lambda x=x: x.to_float_unsigned(f32).bitcast(i32),
                lambda fx=fx, k=k: (fx * k - k).bitcast(i32),
                lambda x=x, y=y: x // (y | 1),
            ][op % 12]()
        for i in range(8):
            store(p + 64 * i, r[i])
        return n

    return Function((ptr, i32), i32, body)


@pytest.mark.parametrize("seed", range(4))
def test_instruction_sets_agree(seed):
    rng = np.random.default_rng(seed)
    start = rng.integers(-(2**31), 2**31, 128).astype("i4")
    start[:64] = (rng.normal(size=64) * 10.0 ** rng.integers(-42, 38, 64)).astype("f4").view("i4")
    function = _mix(seed, 150)
    results = []
    for t, quick in itertools.product(targets(), (False, True)):
        data = start.copy()
        build("mix", {"f": function}, target=t, quick=quick)["f"](data.ctypes.data, 1)
        nan = np.isnan(data.view("f4"))
        data[nan] = 0x7FC00000  # which NaN it is, is no promise
        results.append(data.tolist())
    assert all(r == results[0] for r in results)


def test_loops_agree_on_all_targets(target):
    @kernel(args=(ptr, i32))
    def f(p, n):
        x, y = load(f32x16, p), const(f32x16, 0.0)
        scale = opaque(f32x16, 1.0001)
        for i in range(n):
            x = x * scale + i.to_float(f32)
            if i & 3 == 3:
                y = y + x
            for k in unroll(2):
                y = y - x * opaque(f32x16, k + 0.25)
        store(p, x)
        store(p + 64, y)

    data = np.zeros(32, "f4")
    data[:16] = np.arange(16)
    build("l", {"f": f}, target=target)["f"](data.ctypes.data, 50)
    reference.setdefault("loops", data.tobytes())
    assert data.tobytes() == reference["loops"]


reference: dict[str, bytes] = {}


def test_a_module_keeps_its_code_and_no_text():
    """Text and object file of a fragment shader are ten times as large as its code."""

    def body(x):
        for k in range(200):
            x = (x * 3 + k) ^ (x << 1)
        return x

    kept = vars(build("long", {"f": Function((i32,), i32, body)})).values()
    assert not any(isinstance(value, (str, bytes)) and len(value) > 100 for value in kept)
