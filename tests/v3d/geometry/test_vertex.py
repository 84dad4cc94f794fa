"""Vertex pipelines: attribute fetch, every engine alike, refusals, odd input."""

from __future__ import annotations

import ctypes
import struct

import numpy as np
import pytest

from vc4lab.diagnostics import Reporter
from vc4lab.memory import GuestMemory
from vc4lab.qpu.assembler import assemble
from vc4lab.qpu.environment import Unsupported
from vc4lab.qpu.program import Program
from vc4lab.qpu.uniform_stream import stream_layout
from vc4lab.records.texture import TextureConfig
from vc4lab.v3d.fragment.late_textures import LateTextures
from vc4lab.v3d.fragment.texture_state import describe_texture
from vc4lab.v3d.fragment.tmu_kernels import sample_words
from vc4lab.v3d.geometry.vertex import VertexKey, vertex_pipeline
from vc4lab.v3d.geometry.vertex_context import DONE, ENDLESS, VertexContext, buffer_bytes
from vc4lab.v3d.unknowns import DEFAULT_UNKNOWNS

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


def shade(memory, key, first, last, arrays, used=None, status=DONE, textures=(), late=None):
    """Output rows (rows x vertices) of a job; arrays: number → (address, stride)."""
    buffer = (ctypes.c_char * (buffer_bytes(key.rows, last) + 64))()
    start = (ctypes.addressof(buffer) + 63) & ~63
    context = VertexContext(
        memory=memory.base, output=start, uniforms=UNIFORMS, first=first, last=last
    )
    for number, (address, stride) in arrays.items():
        context.bases[number], context.strides[number] = address, stride
    for number, texture in enumerate(textures):
        context.textures[number] = texture.address
    if late is not None:
        context.late = late.table.address
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
def test_a_dma_setup_is_refused(memory, engine):
    key = VertexKey(words(COPY.format(read=0x80000000)), ((0, 16, 0),), 16, 4, engine)
    with pytest.raises(Unsupported, match="VTX-002"):
        shade(memory, key, 0, 15, {0: (ARRAYS, 16)})
    computed = COPY.replace("ldi vr_setup, {read:#x}", "mov vr_setup, unif ; nop")
    memory.write(UNIFORMS, struct.pack("<I", 0x80000000))
    key = VertexKey(words(computed), ((0, 16, 0),), 16, 4, engine)
    with pytest.raises(Unsupported, match="VTX-002"):
        shade(memory, key, 0, 15, {0: (ARRAYS, 16)})


MODES = """
    ldi vr_setup, {read:#x}
    ldi vw_setup, {write:#x}
    mov r0, vpm ; nop
    mov r1, vpm ; nop
    mov vpm, r0 ; nop
    mov vpm, r1 ; nop
    nop ; nop ; thrend
    nop
    nop
"""


def element(rows, setup, address, lane):
    """Element of a generic access from the manual's table: (row, column, first bit, bits)."""
    size, laned, horizontal = setup >> 8 & 3, setup >> 10 & 1, setup >> 11 & 1
    per, bits = {0: (4, 8), 1: (2, 16)}.get(size, (1, 32))
    block, part = divmod(address, per)
    word, sub = (lane, part) if laned else divmod(part * 16 + lane, per)
    if per == 1:
        word, sub = lane, 0
    row, column = (block, word) if horizontal else ((block & 0x30) + word, block & 15)
    return row % 64, column, sub * bits, bits


def model(rows, setup, number):
    """The vectors that `number` reads give."""
    size = setup >> 8 & 3
    per = {0: 4, 1: 2}.get(size, 1)
    address, stride = (setup & 255) % (64 * per), (setup >> 12 & 63) or 64
    result = []
    for _ in range(number):
        vector = []
        for lane in range(16):
            row, column, shift, bits = element(rows, setup, address, lane)
            vector.append(int(rows[row, column]) >> shift & ((1 << bits) - 1))
        result.append(vector)
        address = (address + stride) % (64 * per)
    return result


def setups():
    rng = np.random.default_rng(3)
    for size in range(4):
        for laned in (0, 1):
            for horizontal in (0, 1):
                address, stride = int(rng.integers(256)), int(rng.integers(64))
                if horizontal:
                    address %= 4 * {0: 4, 1: 2}.get(size, 1)
                yield address | size << 8 | laned << 10 | horizontal << 11 | stride << 12


@pytest.mark.parametrize("setup", list(setups()), ids=hex)
def test_every_way_to_read(memory, setup):
    """Reads of 8, 16 and 32 bits, packed and laned, along rows and columns, any stride."""
    rng = np.random.default_rng(setup)
    memory.write(ARRAYS, rng.integers(0, 1 << 32, 64, np.uint32).tobytes())
    rows = np.zeros((64, 16), np.uint32)
    rows[:4] = np.frombuffer(memory.read(ARRAYS, 256), np.uint32).reshape(16, 4).T
    expected = np.array(model(rows, setup, 2), np.uint32)
    program = words(MODES.format(read=setup | 2 << 20, write=0x1A00))
    for engine in ENGINES:
        key = VertexKey(program, ((0, 16, 0),), 16, 2, engine)
        found, *_ = shade(memory, key, 0, 15, {0: (ARRAYS, 16)})
        assert np.array_equal(found, expected), engine


@pytest.mark.parametrize("setup", [0x1800, 0x1902, 0x1004], ids=hex)
def test_narrow_reads_with_a_sign(memory, setup):
    data = np.random.default_rng(setup).integers(0, 1 << 32, 64, np.uint32) | 0x80800080
    memory.write(ARRAYS, data.astype(np.uint32).tobytes())
    program = words(MODES.format(read=setup | 2 << 20, write=0x1A00))
    kind = (np.int8, np.int16)[setup >> 8 & 3]
    unknowns = DEFAULT_UNKNOWNS.with_(vpm_read_extension="sign")
    for engine in ENGINES:
        key = VertexKey(program, ((0, 16, 0),), 16, 2, engine)
        zero, *_ = shade(memory, key, 0, 15, {0: (ARRAYS, 16)})
        key = VertexKey(program, ((0, 16, 0),), 16, 2, engine, unknowns=unknowns)
        sign, *_ = shade(memory, key, 0, 15, {0: (ARRAYS, 16)})
        assert np.array_equal(sign.view(np.int32), zero.astype(kind)), engine
        assert not np.array_equal(sign, zero)


@pytest.mark.parametrize("setup", list(setups()), ids=hex)
def test_every_way_to_write(memory, setup):
    data = np.random.default_rng(setup).integers(0, 1 << 32, (16, 2), np.uint32)
    memory.write(ARRAYS, data.tobytes())
    size = setup >> 8 & 3
    per = {0: 4, 1: 2}.get(size, 1)
    address, stride = (setup & 255) % (64 * per), (setup >> 12 & 63) or 64
    expected = np.zeros((64, 16), np.uint32)
    for vector in range(2):
        for lane in range(16):
            row, column, shift, bits = element(expected, setup, address, lane)
            kept = int(expected[row, column]) & ~(((1 << bits) - 1) << shift)
            word = int(data[lane, vector]) & ((1 << bits) - 1)
            expected[row, column] = kept | word << shift
        address = (address + stride) % (64 * per)
    program = words(MODES.format(read=0x201A00, write=setup))
    for engine in ENGINES:
        key = VertexKey(program, ((0, 8, 0),), 8, 64, engine)
        found, *_ = shade(memory, key, 0, 15, {0: (ARRAYS, 8)})
        assert np.array_equal(found, expected), engine


@pytest.mark.parametrize("engine", ENGINES)
def test_read_setups_queue(memory, engine):
    """A setup behind two unread vectors is ignored, behind one it is taken."""
    memory.write(ARRAYS, np.arange(16 * 4, dtype=np.uint32).tobytes())
    text = """
    ldi vr_setup, 0x201a00
    ldi vr_setup, 0x101a03
    ldi vw_setup, 0x1a00
    mov r0, {source} ; nop
    mov vpm, vpm ; nop
    mov vr_setup, r0 ; nop
    mov vpm, vpm ; nop
    mov vpm, vpm ; nop
    mov vpm, vpm ; nop
    nop ; nop ; thrend
    nop
    nop
    """
    memory.write(UNIFORMS, struct.pack("<I", 0x101A02))
    for source in ("unif", "8"):  # 8: a vertical 8-bit access of 16 vectors
        key = VertexKey(words(text.format(source=source)), ((0, 16, 0),), 16, 4, engine)
        rows, *_ = shade(memory, key, 0, 15, {0: (ARRAYS, 16)})
        assert rows[0].tolist() == list(range(0, 64, 4))
        assert rows[1].tolist() == list(range(1, 64, 4))
        if source == "unif":
            assert rows[2].tolist() == list(range(2, 64, 4))
            assert not rows[3].any()


def test_texture_and_memory_lookups(memory):
    """A vertex shader samples a texture (level given by B) and looks a word up."""
    rng = np.random.default_rng(9)
    texels = rng.integers(0, 1 << 32, (2, 64), np.uint32)  # two levels of 8x8 and 4x4, 16 as LT
    base = 0x40000
    memory.write(base, texels[0].tobytes())
    memory.write(base - 64, texels[1].tobytes())
    table = 0x50000
    memory.write(table, np.arange(100, 164, dtype=np.uint32).tobytes())
    config = TextureConfig(
        base=base, width=8, height=8, levels=2, explicit_lod=True, min_filter=2, mag_filter=1
    )
    p0, p1, p2, _ = config.parameters()
    text = """
    ldi vr_setup, 0x401a00
    ldi vw_setup, 0x1a00
    mov r0, vpm ; nop
    mov r1, vpm ; nop
    mov r2, vpm ; nop
    mov t0b, r2 ; nop
    mov t0t, r1 ; nop
    mov t0s, r0 ; nop
    mov r3, vpm ; nop
    add t1s, r3, unif ; nop
    nop ; nop ; ldtmu0
    mov vpm, r4 ; nop
    nop ; nop ; ldtmu1
    mov vpm, r4 ; nop
    mov vpm, unif ; nop
    nop ; nop ; thrend
    nop
    nop
    """
    program = Program(words(text))
    # the stream in textual order: words of B, T and S, the table's address, a marker
    memory.write(UNIFORMS, struct.pack("<5I", p0, p1, p2, table, 0x1234))
    kind, descriptor = describe_texture(p0, p1, p2, 0, used_params=3)
    vertices = np.zeros((16, 4), np.uint32)
    place = rng.random((16, 2), np.float32)
    level = rng.integers(0, 2, 4).repeat(4).astype(np.float32)
    vertices[:, :2] = place.view(np.uint32)
    vertices[:, 2] = level.view(np.uint32)
    vertices[:, 3] = 4 * rng.integers(0, 64, 16)
    memory.write(ARRAYS, vertices.tobytes())
    expected = sample_words(
        kind,
        descriptor,
        memory,
        np.ascontiguousarray(vertices[:, 0]),
        np.ascontiguousarray(vertices[:, 1]),
        np.zeros(16, np.uint32),
        np.ascontiguousarray(vertices[:, 2]),
    )
    assert len(set(expected.tolist())) > 4
    for engine in ENGINES:
        key = VertexKey(program.words, ((0, 16, 0),), 16, 3, engine, textures=(kind,))
        rows, *_ = shade(memory, key, 0, 15, {0: (ARRAYS, 16)}, textures=(descriptor,))
        assert rows[0].tolist() == expected.tolist(), engine
        assert rows[1].tolist() == (100 + vertices[:, 3] // 4).tolist(), engine
        assert set(rows[2].tolist()) == {0x1234}, engine


MOVED = """
    ldi vr_setup, 0x201a00
    ldi vw_setup, 0x1a00
    mov r0, vpm ; nop
    mov r1, vpm ; nop
    {move}
    mov t0t, r1 ; nop
    mov t0s, r0 ; nop
    nop ; nop ; ldtmu0
    mov vpm, r4 ; nop
    mov vpm, unif ; nop
    mov vpm, unif ; nop
    nop ; nop ; thrend
    nop
    nop
"""


@pytest.mark.parametrize("branches", [False, True])
@pytest.mark.parametrize(
    ("move", "late"),
    [
        ("mov r2, unif\nnop\nmov unif_addr, r2", False),
        ("mov r2, unif\nadd r2, r2, elem_num\nnop\nmov unif_addr, r2", True),
        ("ldi r2, 92\nnop ; mov unif_addr_rel, r2\nnop", True),
    ],
)
def test_texture_parameters_follow_the_uniform_pointer(memory, move, late, branches):
    """Moved by 96 bytes; after the parameters uniforms are read there, too."""
    texels = np.random.default_rng(9).integers(0, 1 << 32, 64, np.uint32)
    memory.write(0x40000, texels.tobytes())
    p0, p1, *_ = TextureConfig(
        base=0x40000, width=8, height=8, mag_filter=1, min_filter=1
    ).parameters()
    relative = "rel" in move
    here = UNIFORMS + (92 if relative else 96)
    memory.write(UNIFORMS, struct.pack("<4I", UNIFORMS + 96, 1, 2, 3) + bytes(200))
    memory.write(here, struct.pack("<4I", p0, p1, 0x1234, 0x5678))
    unknowns = DEFAULT_UNKNOWNS.with_(uniforms_address_b="relative" if relative else "absolute")
    text = MOVED.format(move=move)
    if branches:
        text = text.replace("    mov vpm, r4", "brr.allz -, on\nnop\nnop\nnop\non: mov vpm, r4")
    program = Program(words(text)).under(unknowns)
    places = stream_layout(program, memory.u32, UNIFORMS).places
    assert (None in places) == late
    kind, descriptor = describe_texture(p0, p1)
    place = np.random.default_rng(3).random((16, 2), np.float32)
    memory.write(ARRAYS, place.tobytes())
    expected = (
        texels.reshape(2, 2, 4, 4)
        .swapaxes(1, 2)
        .reshape(8, 8)[(place[:, 1] * 8).astype(int), (place[:, 0] * 8).astype(int)]
    )
    table = LateTextures(memory.base, Reporter(), unknowns)
    for engine in ENGINES:
        for known in (True, False):
            textures = (kind if known else None,)
            key = VertexKey(program.words, ((0, 8, 0),), 8, 3, engine, unknowns, textures=textures)
            given = (descriptor,) if known else ()
            arrays = {0: (ARRAYS, 8)}
            rows, *_ = shade(memory, key, 0, 15, arrays, textures=given, late=table)
            assert rows[0].tolist() == expected.tolist(), engine
            assert set(rows[1].tolist()) == {0x1234}, engine
            assert set(rows[2].tolist()) == {0x5678}, engine


IN_BRANCHES = """
    ldi vr_setup, 0x101a00
    ldi vw_setup, 0x1a00
    mov r0, vpm ; nop
    mov r1, unif ; nop
    sub.setf r3, r0, 8 ; nop
    brr.anyn -, low
    nop
    nop
    nop
    add t0s, r1, 4 ; nop
    nop ; nop ; ldtmu0
    brr -, done
    mov r2, r4 ; nop
    nop
    nop
:low
    add t0s, r1, 8 ; nop
    nop ; nop ; ldtmu0
    add r2, r4, 7 ; nop
:done
    mov vpm, r2 ; nop
    nop ; nop ; thrend
    nop
    nop
"""


@pytest.mark.parametrize("engine", ENGINES)
def test_lookups_on_both_sides_of_a_branch(memory, engine):
    """The first one is made inside a branch: nothing of it may be needed elsewhere."""
    table = 0x50000
    memory.write(table, np.arange(100, 116, dtype=np.uint32).tobytes())
    memory.write(UNIFORMS, struct.pack("<I", table))
    for value, expected in ((3, 102 + 7), (9, 101)):
        memory.write(ARRAYS, np.full(16, value, np.uint32).tobytes())
        key = VertexKey(words(IN_BRANCHES), ((0, 4, 0),), 4, 1, engine)
        rows, *_ = shade(memory, key, 0, 15, {0: (ARRAYS, 4)})
        assert set(rows[0].tolist()) == {expected}


@pytest.mark.parametrize("engine", ENGINES)
def test_hostile_addresses_stay_inside(memory, engine):
    key = VertexKey(words(COPY.format(read=0x401A00)), ((0, 16, 0),), 16, 4, engine)
    shade(memory, key, 65000, 65535, {0: (-1, -3)})
    shade(memory, key, 0, 31, {0: (0x3FFFFFFF, 0x7FFFFFFF)})
