"""Attribute fetch against a model: random layouts, strides and places, thousands of vertices."""

import ctypes

import numpy as np
import pytest

from vc4lab.memory import MEMORY_SIZE, GuestMemory
from vc4lab.simd import build, i32, kernel, ptr
from vc4lab.v3d.vertex.context import MAX_ARRAYS, VERTEX_BATCH, VertexContext, VertexKey
from vc4lab.v3d.vertex.fetch import GROUP_WORDS, describe, fetch, fetched_rows, find_wanted

AREA = 0x10_0000
SIZE = 0x4_0000
ROW = 4 * VERTEX_BATCH


@pytest.fixture(scope="module")
def memory():
    memory = GuestMemory(guard=True)
    rng = np.random.default_rng(1)
    memory.write(AREA, rng.integers(0, 256, SIZE, np.uint8).tobytes())
    memory.write(MEMORY_SIZE - SIZE, rng.integers(0, 256, SIZE, np.uint8).tobytes())
    return memory


@pytest.fixture(scope="module")
def run():
    """(context, description, groups, batch): fetches; returns the wanted lanes."""

    @kernel(args=(ptr, ptr, i32, i32), returns=i32)
    def one(context, description, count, batch):
        c = VertexContext.at(context)
        find_wanted(context, batch)
        if c.wanted != 0:
            fetch(context, description, count, batch)
        return c.wanted

    return build("test_fetch", {"one": one})["one"]


def layout(rng):
    """Arrays as a shader record may have them: any size, any place in the column, overlapping."""
    numbers = np.flatnonzero(rng.random(MAX_ARRAYS) < rng.choice([0.2, 0.6, 1.0]))
    return tuple(
        (int(k), int(rng.choice([rng.integers(1, 65), 4, 8, 16, 64])), int(rng.integers(0, 256)))
        for k in numbers
    )


def model(memory, key, context, vertex):
    """The column of one vertex, word by word: ascending arrays, the later one overwrites."""
    column = [0] * key.rows_in
    for array, size, offset in sorted(key.attributes):
        base = context.bases[array] + vertex * context.strides[array]
        for word in range((size + 3) // 4):
            if offset // 4 + word < len(column):
                column[offset // 4 + word] = memory.u32(base + 4 * word)
    return column


def compare(memory, run, key, bases, strides, first, last, used=None):
    numbers = (ctypes.c_int32 * (len(describe(key)) + 1))(*describe(key))
    count = len(describe(key)) // GROUP_WORDS
    context = VertexContext(memory=memory.base, first=first, last=last, output=0x1234, uniforms=7)
    marks = (ctypes.c_char * 65536)()
    if used is not None:
        for index in used:
            marks[index] = 1
        context.used = ctypes.addressof(marks)
    for k in range(MAX_ARRAYS):
        context.bases[k], context.strides[k] = bases[k], strides[k]
    after = (context.memory, context.output, context.used, context.uniforms)
    wished = set(range(first, last + 1)) & (set(used) if used is not None else set(range(65536)))
    rows = fetched_rows(key)
    for batch in range(first // VERTEX_BATCH, last // VERTEX_BATCH + 1):
        lanes = run(context.address, ctypes.addressof(numbers), count, batch)
        assert {batch * VERTEX_BATCH + k for k in range(VERTEX_BATCH) if lanes >> k & 1} == {
            vertex for vertex in wished if vertex // VERTEX_BATCH == batch
        }
        # what lies after the rows in the context is another's
        assert (context.memory, context.output, context.used, context.uniforms) == after
        assert [context.bases[k] & 0xFFFFFFFF for k in range(MAX_ARRAYS)] == bases
        assert [context.strides[k] for k in range(MAX_ARRAYS)] == strides
        found = np.array(context.fetched, np.int64).astype(np.uint32)
        for lane in range(VERTEX_BATCH):
            if lanes >> lane & 1:
                expected = model(memory, key, context, batch * VERTEX_BATCH + lane)
                got = [0 if p is None else int(found[p // 4 + lane]) for p in rows]
                assert got == expected, (key.attributes, batch, lane)


@pytest.mark.parametrize("seed", range(6))
def test_random_layouts(memory, run, seed):
    rng = np.random.default_rng(seed)
    for _ in range(60):
        key = VertexKey((), layout(rng), int(rng.integers(0, 256)), 7)
        bases = [AREA + int(rng.integers(0, 0x1000)) for _ in range(MAX_ARRAYS)]
        strides = [int(s) for s in rng.integers(0, 256, MAX_ARRAYS)]
        first = int(rng.integers(0, 40))
        last = first + int(rng.integers(0, 60))
        used = None
        if rng.random() < 0.5:
            used = rng.integers(first, last + 20, int(rng.integers(0, 30))).tolist()
        compare(memory, run, key, bases, strides, first, last, used)


@pytest.mark.parametrize("hole", range(1, 3))
def test_arrays_with_holes_of_other_arrays(memory, run, hole):
    """Groups of which only the outer words are wanted take no more rows than the column has."""
    wide = tuple((k, 64, 64 * k) for k in range(4))
    small = tuple((4 + k, 4 * hole, 64 * k + 4) for k in range(4))
    key = VertexKey((), wide + small, 255, 7)
    bases = [AREA + 0x333 * k for k in range(MAX_ARRAYS)]
    compare(memory, run, key, bases, [64, 3, 255, 0, 17, 8, 1, 100], 0, 37)


def test_arrays_that_end_where_memory_ends(memory, run):
    """The last vertex ends with the last byte; nothing after it is touched."""
    rng = np.random.default_rng(3)
    for _ in range(40):
        size, stride = int(rng.integers(1, 17)) * 4, int(rng.integers(0, 256))
        last = int(rng.integers(0, 40))
        base = MEMORY_SIZE - size - last * stride
        key = VertexKey((), ((2, size, 4),), 255, 7)
        for alias in (0, 0x4000_0000, 0xC000_0000):
            bases = [(base + alias) & 0xFFFFFFFF] * MAX_ARRAYS
            compare(memory, run, key, bases, [stride] * MAX_ARRAYS, 0, last)


@pytest.mark.parametrize("stride", [-24, -1, 0xFFFF, 0x1_0000, 0x1234_5678, -(1 << 31)])
def test_strides_of_extended_records(memory, run, stride):
    """Vertices that stand backwards, far apart, or all over the memory, round its end and back."""
    key = VertexKey((), ((0, 12, 0), (3, 4, 12), (5, 20, 16)), 36, 7)
    bases = [AREA + 0x1_0000] * 3 + [MEMORY_SIZE - 0x100] * 2 + [0x4000_0040] * 3
    compare(memory, run, key, bases, [stride] * MAX_ARRAYS, 0, 50)


@pytest.mark.parametrize("words", [1, 2, 3, 4, 5])
def test_arrays_without_gaps(memory, run, words):
    """Vertices one after the other, up to the last byte of memory; whole and partial batches."""
    last = 60
    size = 4 * words
    bases = [AREA + 0x40, AREA + 0x1003] + [MEMORY_SIZE - size * (last + 1)] * (MAX_ARRAYS - 2)
    key = VertexKey((), ((0, size, 0), (1, size, size), (2, size, 2 * size)), 255, 7)
    compare(memory, run, key, bases, [size] * MAX_ARRAYS, 0, last)
    compare(memory, run, key, bases, [size] * MAX_ARRAYS, 5, last, range(0, 50))
