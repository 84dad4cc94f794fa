"""Loads, stores, gathers, scatters, tables, atomics and Structs."""

import ctypes
import threading

import numpy as np
import pytest

from vc4lab.simd import (
    Array,
    Function,
    Struct,
    alloca,
    atomic_add,
    build,
    const,
    f32,
    f32x16,
    gather,
    i1,
    i8,
    i16,
    i32,
    i32x16,
    i64,
    kernel,
    load,
    mask_from_bits,
    masked_load,
    masked_store,
    prefetch,
    ptr,
    scatter,
    select,
    store,
    table,
    vec,
)
from vc4lab.simd.native import trace_module


def address(array: np.ndarray) -> int:
    return int(array.ctypes.data)


@pytest.mark.parametrize("place", [0, 1, 1 << 62, (1 << 64) - 1])
def test_prefetch_of_any_address(processor, place):
    def body(p):
        prefetch(p)
        return const(i32, 7)

    functions = {"p": Function((ptr,), i32, body)}
    module = build("p", functions, target=processor)
    assert "call void @llvm.prefetch" in trace_module(functions, processor, "qpu")
    assert module["p"](place) == 7


OFFSETS = np.array([0, 4, 8, 60, -4, 400, 4, 12, 16, 200, 204, 208, 36, 40, 44, 399], "i4")


@pytest.mark.parametrize("elem", [i8, i16, i32, i64, f32])
def test_gather(target, elem):
    lanes = vec(elem, 16)

    def body(base, offsets, out, bits):
        o = load(i32x16, offsets)
        store(out, gather(elem, base, o))
        store(out + 256, gather(elem, base, o, mask_from_bits(bits), 5))
        store(out + 512, gather(elem, base, o.sext(i64) + 0, True))
        store(out + 768, gather(elem, base, o, False, 3))

    native = build("g", {"g": Function((ptr, ptr, ptr, i32), None, body)}, target=target)["g"]
    memory = np.random.default_rng(1).integers(0, 255, 1024, "u1")
    memory[: 1024 // 4 * 4].view("f4")[:] = np.arange(256) * 0.37
    out = np.zeros(1024, "u1")
    bits = 0b1010_0110_0011_0101
    native(address(memory) + 100, address(OFFSETS), address(out), bits)
    size = elem.size
    kind = {"i8": "i1", "i16": "i2", "i32": "i4", "i64": "i8", "f32": "f4"}[elem.name]
    want = np.array([memory[100 + o : 100 + o + size].view(kind)[0] for o in OFFSETS])
    mask = np.array([bits >> i & 1 for i in range(16)], bool)
    got = [out[256 * i :][: lanes.size].view(kind) for i in range(4)]
    np.testing.assert_array_equal(got[0], want)
    np.testing.assert_array_equal(got[1], np.where(mask, want, 5))
    np.testing.assert_array_equal(got[2], want)
    np.testing.assert_array_equal(got[3], np.full(16, 3))


def test_masked_lanes_touch_no_memory(target):
    """Lanes without mask point to address 0 … and nothing happens."""

    def body(base, out, bits):
        m = mask_from_bits(bits)
        far = select(m, const(i32x16, [4 * i for i in range(16)]).sext(i64), -(1 << 40))
        store(out, gather(i32, base, far, m, -1))
        store(out + 64, gather(i8, base, far, m, -1).sext(i32))
        scatter(base, far, load(i32x16, base) + 100, m)

    native = build("g", {"g": Function((ptr, ptr, i32), None, body)}, target=target)["g"]
    data, out = np.arange(16, dtype="i4"), np.zeros(32, "i4")
    bits = 0b0101_1100_0000_0011
    mask = np.array([bits >> i & 1 for i in range(16)], bool)
    native(address(data), address(out), bits)
    np.testing.assert_array_equal(out[:16], np.where(mask, np.arange(16), -1))
    np.testing.assert_array_equal(out[16:], np.where(mask, np.arange(16), -1))
    np.testing.assert_array_equal(data, np.arange(16) + 100 * mask)


def test_scatter_writes_the_last_lane_last(target):
    def body(base, offsets, bits):
        scatter(base, load(i32x16, offsets), const(i32x16, list(range(100, 116))))
        scatter(base + 256, load(i32x16, offsets), 7, mask_from_bits(bits))

    native = build("s", {"s": Function((ptr, ptr, i32), None, body)}, target=target)["s"]
    memory = np.zeros(256, "i4")
    offsets = np.array([0, 4, 0, 8, 8, 0, 12, 60, 56, 52, 4, 20, 24, 28, 24, 16], "i4")
    native(address(memory), address(offsets), 0x00F1)
    want = np.zeros(256, "i4")
    for lane, offset in enumerate(offsets):
        want[offset // 4] = 100 + lane
        if 0x00F1 >> lane & 1:
            want[64 + offset // 4] = 7
    np.testing.assert_array_equal(memory, want)


def test_masked_loads_and_stores(target):
    def body(p, out, bits):
        m = mask_from_bits(bits)
        store(out, masked_load(i32x16, p, m, -5))
        masked_store(out + 64, load(f32x16, p), m)

    native = build("m", {"m": Function((ptr, ptr, i32), None, body)}, target=target)["m"]
    data, out = np.arange(16, dtype="i4"), np.full(32, 9, "i4")
    native(address(data), address(out), 0x8421)
    mask = np.array([0x8421 >> i & 1 for i in range(16)], bool)
    np.testing.assert_array_equal(out[:16], np.where(mask, data, -5))
    np.testing.assert_array_equal(out[16:], np.where(mask, data, 9))


def test_pointers_tables_and_stack():
    @kernel(args=(ptr, i32), returns=i64)
    def f(p, i):
        squares = table(i32, [k * k for k in range(10)])
        scratch = alloca(i32x16)
        store(scratch, load(i32x16, squares))
        store(scratch + 8, i)
        room = alloca(256)
        store(room + 252, 1)
        q = p + i * 4
        store(q, load(i32, scratch + i * 4) + load(i32, scratch + 8) * 1000)
        return (q - p) + (q - 4).bitcast(i64) - p.bitcast(i64)

    data = np.zeros(16, "i4")
    assert build("t", {"f": f})["f"](address(data), 5) == 20 + 16
    assert data[5] == 25 + 5000


def test_atomic_add_from_threads():
    @kernel(args=(ptr, i32), returns=i32)
    def f(p, n):
        old = 0
        for _ in range(n):
            old = atomic_add(p, 1)
        return old

    counter = np.zeros(1, "i4")
    native = build("a", {"f": f})["f"]
    threads = [threading.Thread(target=native, args=(address(counter), 100000)) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert counter[0] == 400000


class Inner(Struct):
    tag = i8
    weight = f32


class Context(Struct):
    small = i8
    width = i32
    flag = i1
    base = ptr
    colour = Array(i32, 8)
    lanes = f32x16
    inner = Inner
    inners = Array(Inner, 3)
    counter = i64


class Derived(Context):
    extra = i16


def test_struct_layout():
    assert (Inner.size, Inner.offset("weight")) == (8, 4)
    offsets = [Context.offset(n) for n in Context.fields]
    assert offsets == [0, 4, 8, 16, 24, 64, 128, 136, 160]
    assert (Context.size, Context.align) == (192, 64)
    assert Derived.offset("extra") == 168
    assert Context().address % 64 == 0


def test_struct_in_python():
    c = Context(width=-3, flag=True, base=2**63)
    c.colour[2] = 77
    c.colour = range(8)
    c.lanes = [0.5 * i for i in range(16)]
    c.inner.weight = 1.5
    c.inners[2].tag = 4
    assert (c.width, c.flag, c.base, list(c.colour), c.lanes[3]) == (-3, True, 2**63, [*range(8)], 1.5)
    assert ctypes.c_float.from_address(c.address + 132).value == 1.5
    assert ctypes.c_int8.from_address(c.address + 136 + 16).value == 4
    c.colour = bytes(32)
    assert memoryview(c.colour).nbytes == 32
    assert not any(c.colour)
    assert "width=-3" in repr(c)
    inner = c.inner
    del c
    assert inner.weight == 1.5  # the view keeps the memory
    for wrong in (lambda: setattr(inner, "wait", 1), lambda: Context(wide=1)):
        with pytest.raises(AttributeError, match=r"no (member|attribute)"):
            wrong()
    with pytest.raises(ValueError, match="8 elements"):
        Context().colour = [1]
    with pytest.raises(TypeError, match="cannot be called"):
        type("Bad", (Struct,), {"size": i32})
    with pytest.raises(TypeError, match="second member called 'width'"):
        type("Worse", (Context,), {"width": i64})


def test_struct_in_kernels(target):
    @kernel(args=(ptr, ptr), returns=i32)
    def f(p, q):
        s = Context.at(p)
        s.width = s.width + 1
        s.lanes = s.lanes * 2.0
        s.inner.weight = 2.5
        Inner.at(s.inners + s.width * Inner.size).tag = const(i8, 9)
        for i in range(8):
            store(s.colour + i * 4, i * i)
        store(s.field_ptr("counter"), const(i64, 1 << 40))
        if s.flag:
            s = Context.at(q)
        s.small = const(i8, 5)
        return s.width

    a, b = Context(width=1, flag=True), Context(width=50)
    a.lanes = [float(i) for i in range(16)]
    native = build("s", {"f": f}, target=target)["f"]
    assert native(a.address, b.address) == 50
    assert (a.width, a.inner.weight, a.inners[2].tag, a.small, b.small) == (2, 2.5, 9, 0, 5)
    assert list(a.colour) == [i * i for i in range(8)]
    assert list(a.lanes) == [2.0 * i for i in range(16)]
    assert a.counter == 1 << 40


def test_struct_mistakes_in_kernels():
    def build_it(body):
        build("s", {"f": Function((ptr,), None, body)})

    with pytest.raises(AttributeError, match="no member 'wide'"):
        build_it(lambda p: Context.at(p).wide and None)
    with pytest.raises(TypeError, match="expected i32, found f32"):
        build_it(lambda p: setattr(Context.at(p), "width", const(f32, 1.0)))
    with pytest.raises(TypeError, match="field_ptr"):
        build_it(lambda p: setattr(Context.at(p), "colour", 1))
