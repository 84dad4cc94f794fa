"""Vertex pipelines: attribute fetch, every engine alike, refusals, odd input."""

import struct
from dataclasses import replace

import numpy as np
import pytest
from tests.support.vertices import ARRAYS, ENGINES, UNIFORMS, shade, words

from vc4lab.memory import GuestMemory
from vc4lab.qpu.run.environment import Unsupported
from vc4lab.v3d.vertex.context import ENDLESS
from vc4lab.v3d.vertex.pipeline import VertexKey, vertex_pipeline

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


WHOLE = """
    ldi vr_setup, 0x101a00
    ldi vw_setup, 0x1a00
    nop
    ftoi r0, vpm ; nop
    mov vpm, r0 ; nop
    nop ; nop ; thrend
    nop
    nop
"""


@pytest.mark.parametrize("large", [2147483648.0, -2147483648.0, 4294967295.0 * 3, 1e19, np.inf])
def test_one_number_that_does_not_fit_in_an_integer(memory, large):
    """The fast build takes numbers for small and leaves a chunk with a large one to the exact."""
    values = np.linspace(-2147483520.0, 2147483520.0, 3000).astype(np.float32)
    values[1234] = large
    memory.write(ARRAYS, values.tobytes())
    whole = [int(value) if np.isfinite(value) else 0 for value in values.tolist()]
    due = np.array([number & 0xFFFFFFFF for number in whole], np.uint32)
    for engine in ENGINES:
        key = VertexKey(words(WHOLE), ((0, 4, 0),), 4, 1, engine)
        rows = shade(memory, key, 0, 2999, {0: (ARRAYS, 4)})[0]
        assert np.array_equal(rows[0, :3000].view(np.uint32), due)


NAN_IN_THE_STREAM = """
    ldi vr_setup, 0x101a00
    ldi vw_setup, 0x1a00
    mov r0, vpm ; nop
    mov r1, unif ; nop
    fmul r0, r0, unif
    mov vpm, r0 ; nop
    add r1, r1, 1 ; nop
    mov vpm, r1 ; nop
    nop ; nop ; thrend
    nop
    nop
"""


@pytest.mark.parametrize("place", [0, 1])
def test_a_uniform_that_is_no_number(memory, place):
    """It matters only where it meets float arithmetic; then the exact build shades."""
    memory.write(ARRAYS, np.arange(400, dtype=np.float32).tobytes())
    uniforms = [0x3F800000, 0x40000000]
    uniforms[place] = 0xFFFFFFFE
    memory.write(UNIFORMS, struct.pack("<2I", *uniforms))
    results = []
    for engine in ENGINES:
        key = VertexKey(words(NAN_IN_THE_STREAM), ((0, 4, 0),), 4, 2, engine)
        rows, context, _ = shade(memory, key, 3, 390, {0: (ARRAYS, 4)})
        results.append(rows[:, 3:391])
        if engine == "jit":
            assert (context.deopts > 0) == (place == 1)
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
        assert rows[0, vertex] & 0xFFFFFF == int.from_bytes(data[3 * vertex : 3 * vertex + 3], "little")
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
    key = VertexKey(words(endless), ((0, 16, 0),), 16, 4, engine, forgiving=True)
    shade(memory, key, 0, 15, {0: (ARRAYS, 16)}, status=ENDLESS)
    with pytest.raises(Unsupported, match="VTX-007"):  # it waits for its fifth row
        shade(memory, replace(key, forgiving=False), 0, 15, {0: (ARRAYS, 16)})


@pytest.mark.parametrize("engine", ENGINES)
def test_a_dma_setup_is_refused(memory, engine):
    key = VertexKey(words(COPY.format(read=0x80000000)), ((0, 16, 0),), 16, 4, engine)
    with pytest.raises(Unsupported, match="VTX-002"):
        shade(memory, key, 0, 15, {0: (ARRAYS, 16)})
    computed = COPY.replace("ldi vr_setup, {read:#x}", "mov vr_setup, unif ; nop")
    memory.write(UNIFORMS, struct.pack("<I", 0x80000000))
    key = VertexKey(words(computed), ((0, 16, 0),), 16, 4, engine)
    with pytest.raises(Unsupported, match="VTX-002"):
        shade(memory, key, 0, 15, {0: (ARRAYS, 16)})


@pytest.mark.parametrize("engine", ENGINES)
def test_hostile_addresses_stay_inside(memory, engine):
    key = VertexKey(words(COPY.format(read=0x401A00)), ((0, 16, 0),), 16, 4, engine)
    shade(memory, key, 65000, 65535, {0: (-1, -3)})
    shade(memory, key, 0, 31, {0: (0x3FFFFFFF, 0x7FFFFFFF)})
