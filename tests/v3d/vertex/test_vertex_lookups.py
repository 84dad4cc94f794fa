"""Texture and memory lookups of vertex shaders, and the uniform pointer they follow."""

import struct

import numpy as np
import pytest
from tests.support.vertices import ARRAYS, ENGINES, UNIFORMS, shade, words

from vc4lab.diagnostics import Reporter
from vc4lab.memory import GuestMemory
from vc4lab.qpu.program.program import Program
from vc4lab.qpu.program.uniform_stream import stream_layout
from vc4lab.records.texture import TextureConfig
from vc4lab.v3d.tmu.kernels import sample_words
from vc4lab.v3d.tmu.late_textures import LateTextures
from vc4lab.v3d.tmu.texture_state import describe_texture
from vc4lab.v3d.unknowns import DEFAULT_UNKNOWNS
from vc4lab.v3d.vertex.pipeline import VertexKey


@pytest.fixture(scope="module")
def memory():
    return GuestMemory()


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
    p0, p1, *_ = TextureConfig(base=0x40000, width=8, height=8, mag_filter=1, min_filter=1).parameters()
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


@pytest.mark.parametrize("branches", [False, True])
@pytest.mark.parametrize(("condition", "moved"), [("ns", True), ("nc", False)])
@pytest.mark.parametrize("choice", ["lane-0", "ignored"])
def test_the_pointer_moves_where_lane_0_says_so(memory, choice, condition, moved, branches):
    text = f"""
        ldi vw_setup, 0x1a00
        mov r2, unif ; nop
        sub.setf -, elem_num, 1 ; nop       # negative in lane 0 only
        mov.{condition} unif_addr, r2 ; nop
        nop
        {"brr.allz -, on" if branches else "nop"}
        nop
        nop
        nop
    on: mov vpm, unif ; nop
        nop ; nop ; thrend
        nop
        nop
    """
    memory.write(UNIFORMS, struct.pack("<4I", UNIFORMS + 96, 1, 2, 3))
    memory.write(UNIFORMS + 96, struct.pack("<I", 77))
    unknowns = DEFAULT_UNKNOWNS.with_(uniforms_address_condition=choice)
    for engine in ENGINES:
        key = VertexKey(words(text), ((0, 4, 0),), 4, 1, engine, unknowns)
        rows, *_ = shade(memory, key, 0, 15, {0: (ARRAYS, 4)})
        expected = 77 if moved or choice == "ignored" else 1
        assert set(rows[0].tolist()) == {expected}, engine
