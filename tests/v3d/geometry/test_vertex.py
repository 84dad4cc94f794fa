"""Vertex pipelines: attribute fetch, every engine alike, refusals, odd input."""

from __future__ import annotations

import ctypes
import struct

import numpy as np
import pytest

from vc4lab.memory import GuestMemory
from vc4lab.qpu.assembler import assemble
from vc4lab.qpu.environment import Unsupported
from vc4lab.v3d.geometry.nv_vertices import copy_nv_vertices
from vc4lab.v3d.geometry.vertex import VertexKey, vertex_pipeline
from vc4lab.v3d.geometry.vertex_context import DONE, ENDLESS, VertexContext, buffer_bytes
from vc4lab.v3d.geometry.vertex_indices import index_range

ENGINES = ("jit", "exact", "interpreter")
UNIFORMS, ARRAYS = 0x2000, 0x10000

SCALE = """
    ldi vr_setup, 0x301a00
    ldi vw_setup, 0x1a00
    mov r0, vpm ; nop
    mov r1, vpm ; nop
    fmul r0, r0, unif
    fadd r1, r1, unif
    mov vpm, r0 ; nop
    mov vpm, r1 ; nop
    mov vpm, vpm ; nop
    nop ; nop ; thrend
    nop
    nop
"""

COPY = (
    """
    ldi vr_setup, {read:#x}
    ldi vw_setup, 0x1a00
"""
    + "    mov vpm, vpm ; nop\n" * 4
    + """
    nop ; nop ; thrend
    nop
    nop
"""
)

LOOP = """
    ldi vr_setup, 0x401a00
    ldi vw_setup, 0x1a00
    ldi r2, 4
:again
    mov r0, vpm ; nop
    mov vpm, r0 ; nop
    sub.setf r2, r2, 1 ; nop
    brr.anynz -, again
    nop
    nop
    nop
    nop ; nop ; thrend
    nop
    nop
"""


@pytest.fixture(scope="module")
def memory():
    return GuestMemory()


def words(text):
    return tuple(assemble(text).words)


def shade(memory, key, first, last, arrays, used=None, status=DONE):
    """Output rows (rows x vertices) of a job; arrays: number → (address, stride)."""
    buffer = (ctypes.c_char * (buffer_bytes(key.rows, last) + 64))()
    start = (ctypes.addressof(buffer) + 63) & ~63
    context = VertexContext(
        memory=memory.base, output=start, uniforms=UNIFORMS, first=first, last=last
    )
    for number, (address, stride) in arrays.items():
        context.bases[number], context.strides[number] = address, stride
    if used is not None:
        marks = (ctypes.c_char * 65536)()
        for index in used:
            marks[index] = 1
        context.used = ctypes.addressof(marks)
    pipeline = vertex_pipeline(key)
    assert pipeline.shade(context) == status
    count = (last >> 4) + 1
    raw = np.frombuffer(ctypes.string_at(start, buffer_bytes(key.rows, last)), np.uint32)
    rows = raw.reshape(count, key.rows, 16).transpose(1, 0, 2).reshape(key.rows, count * 16)
    return rows, context, pipeline


@pytest.mark.parametrize("engine", ENGINES)
def test_attributes_of_two_arrays_through_a_shader(memory, engine):
    values = np.arange(600, dtype=np.float32).reshape(200, 3) / 7
    memory.write(ARRAYS, values.tobytes())
    memory.write(UNIFORMS, struct.pack("<2f", 2.5, -1.0))
    key = VertexKey(words(SCALE), ((0, 8, 0), (3, 4, 8)), 12, 3, engine)
    rows, context, pipeline = shade(memory, key, 5, 180, {0: (ARRAYS, 12), 3: (ARRAYS + 8, 12)})
    found = rows.view(np.float32)[:, 5:181]
    chosen = values[5:181]
    assert np.allclose(found[0], chosen[:, 0] * 2.5, rtol=1e-6)
    assert np.allclose(found[1], chosen[:, 1] - 1, rtol=1e-6, atol=1e-6)
    assert np.array_equal(found[2], chosen[:, 2])
    assert context.batches == 12
    assert not pipeline.warnings


def test_engines_agree_on_special_floats(memory):
    rng = np.random.default_rng(1)
    values = rng.standard_normal(3 * 2000).astype(np.float32)
    values[::7] = np.inf
    values[::11] = np.nan
    values[::13] = 3e38
    values[::17] = 1e-42
    memory.write(ARRAYS, values.tobytes())
    memory.write(UNIFORMS, struct.pack("<2f", 2.5, -3e38))
    results = []
    for engine in ENGINES:
        key = VertexKey(words(SCALE), ((0, 12, 0),), 12, 3, engine)
        results.append(shade(memory, key, 0, 500, {0: (ARRAYS, 12)})[0][:, :501])
    assert np.array_equal(results[0], results[1])
    assert np.array_equal(results[0], results[2])


@pytest.mark.parametrize("engine", ENGINES)
def test_sizes_strides_overlap_and_total_size(memory, engine):
    memory.write(ARRAYS, bytes(range(256)) * 16)
    layout = ((0, 3, 0), (1, 16, 4), (2, 6, 8))
    key = VertexKey(words(COPY.format(read=0x401A00)), layout, 12, 4, engine)
    arrays = {0: (ARRAYS, 3), 1: (ARRAYS + 100, 0), 2: (ARRAYS + 1, 5)}
    rows, *_ = shade(memory, key, 0, 15, arrays)
    data = memory.read(ARRAYS, 4096)
    for vertex in range(16):
        assert rows[0, vertex] & 0xFFFFFF == int.from_bytes(
            data[3 * vertex : 3 * vertex + 3], "little"
        )
        assert rows[1, vertex] == int.from_bytes(data[100:104], "little")
        place = 1 + 5 * vertex
        assert rows[2, vertex] == int.from_bytes(data[place : place + 4], "little")
        assert rows[3, vertex] == 0  # beyond the total size
    assert vertex_pipeline(key).warnings[0][0] == "VTX-003"


@pytest.mark.parametrize("engine", ENGINES)
def test_unused_batches_are_skipped_and_unused_lanes_repeat(memory, engine):
    memory.write(ARRAYS, np.arange(4 * 400, dtype=np.uint32).tobytes())
    key = VertexKey(words(COPY.format(read=0x401A00)), ((0, 16, 0),), 16, 4, engine)
    rows, context, _ = shade(memory, key, 0, 399, {0: (ARRAYS, 16)}, used=[3, 5, 200])
    assert context.batches == 2
    assert rows[0, [3, 5, 200]].tolist() == [12, 20, 800]
    assert set(rows[0, :16].tolist()) == {12, 20}
    assert not rows[:, 16:192].any()


@pytest.mark.parametrize("engine", ENGINES)
def test_a_loop_with_running_vpm_addresses(memory, engine):
    memory.write(ARRAYS, np.arange(64, dtype=np.uint32).tobytes())
    key = VertexKey(words(LOOP), ((0, 16, 0),), 16, 4, engine)
    rows, *_ = shade(memory, key, 0, 15, {0: (ARRAYS, 16)})
    assert rows.T.reshape(-1).tolist() == list(range(64))


@pytest.mark.parametrize("engine", ENGINES)
def test_an_endless_shader_ends(memory, engine):
    endless = LOOP.replace("r2, r2, 1", "r2, r2, 0")
    key = VertexKey(words(endless), ((0, 16, 0),), 16, 4, engine)
    shade(memory, key, 0, 15, {0: (ARRAYS, 16)}, status=ENDLESS)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("setup", [0x00401200, 0x80000000, 0x00401900])
def test_other_vpm_layouts_are_refused(memory, engine, setup):
    key = VertexKey(words(COPY.format(read=setup)), ((0, 16, 0),), 16, 4, engine)
    with pytest.raises(Unsupported, match="VTX-002"):
        shade(memory, key, 0, 15, {0: (ARRAYS, 16)})


@pytest.mark.parametrize("engine", ENGINES)
def test_hostile_addresses_stay_inside(memory, engine):
    key = VertexKey(words(COPY.format(read=0x401A00)), ((0, 16, 0),), 16, 4, engine)
    shade(memory, key, 65000, 65535, {0: (-1, -3)})
    shade(memory, key, 0, 31, {0: (0x3FFFFFFF, 0x7FFFFFFF)})


@pytest.mark.parametrize("skip", [0, 4])
def test_nv_vertices_are_copied_into_rows(memory, skip):
    data = np.arange(9 * 300, dtype=np.uint32)
    memory.write(ARRAYS, data.tobytes())
    buffer = (ctypes.c_char * (buffer_bytes(5, 299) + 64))()
    start = (ctypes.addressof(buffer) + 63) & ~63
    copy_nv_vertices(
        memory, start, base=ARRAYS, stride=36, rows=5, first=7, last=299, skip_words=skip
    )
    raw = np.frombuffer(ctypes.string_at(start, buffer_bytes(5, 299)), np.uint32)
    rows = raw.reshape(-1, 5, 16).transpose(1, 0, 2).reshape(5, -1)[:, 7:300]
    assert np.array_equal(rows.T, data.reshape(300, 9)[7:, skip : skip + 5])


@pytest.mark.parametrize("bits", [8, 16])
def test_index_range(memory, bits):
    rng = np.random.default_rng(bits)
    indices = rng.integers(3, 200 if bits == 8 else 60000, 500).astype(f"u{bits // 8}")
    memory.write(ARRAYS, indices.tobytes())
    found = index_range(memory, bits, 0xC0000000 + ARRAYS, 500)
    assert (found.first, found.last) == (indices.min(), indices.max())
    used = np.frombuffer(ctypes.string_at(found.used, 65536), np.uint8)
    assert np.array_equal(np.flatnonzero(used), np.unique(indices))
    empty = index_range(memory, bits, ARRAYS, 0)
    assert empty.first > empty.last
