"""Vertex shaders out of the ordinary: uniforms by batch, programs that only one engine can run."""

import struct

import numpy as np
import pytest
from tests.support.frames import BACKGROUND, RED, Frame, solid
from tests.support.jobs import viewport
from tests.support.vertices import ARRAYS, ENGINES, shade, words

from vc4lab.memory import GuestMemory
from vc4lab.records.control import build
from vc4lab.v3d.tmu.requests import MAX_REQUESTS
from vc4lab.v3d.vertex import reference
from vc4lab.v3d.vertex.pipeline import VertexKey

CORNERS = ((4, 4), (50, 4), (4, 50))
FOUND = 0x300000
"""The address of a word that shaders look up."""
HEAD = "ldi vr_setup, 0x{words}01a00\nldi vw_setup, 0x1a00\nnop\nnop\nnop\n"
END = "nop ; nop ; thrend\nnop\nnop\n"

POINTER = f"""
    {HEAD.format(words=2)}
    mov r0, vpm ; nop
    mov r1, vpm ; nop
    mov unif_addr, r0 ; nop
    nop
    nop
    add vpm, r1, unif ; nop
    {END}
"""


@pytest.fixture(scope="module")
def memory() -> GuestMemory:
    return GuestMemory()


@pytest.mark.parametrize("engine", ENGINES)
def test_batches_read_uniforms_at_places_of_their_own(memory: GuestMemory, engine: str) -> None:
    """Where the first vertex of each batch says."""
    table, count = 0x60000, 80
    memory.write(table, struct.pack("<5I", 1000, 2000, 3000, 4000, 5000))
    vertices = [[table + 4 * (4 - k // 16 + k % 16), k] for k in range(count)]
    memory.write(ARRAYS, np.array(vertices, np.uint32).tobytes())
    key = VertexKey(words(POINTER), ((0, 8, 0),), 8, 1, engine)
    rows, *_ = shade(memory, key, 0, count - 1, {0: (ARRAYS, 8)})
    assert rows[0].tolist() == [1000 * (5 - k // 16) + k for k in range(count)]


@pytest.mark.parametrize("wide", [1, 2, 64])
def test_vertices_far_apart(memory: GuestMemory, wide: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The interpreter takes some batches at a time; here nearly all of them are unused."""
    monkeypatch.setattr(reference, "MAX_WIDE_BATCHES", wide)
    memory.write(ARRAYS, np.arange(800, dtype=np.uint32).tobytes())
    text = HEAD.format(words=2) + "mov vpm, vpm ; nop\n" * 2 + END
    used = [3, 5, 100, 399]
    for engine in ENGINES:
        key = VertexKey(words(text), ((0, 8, 0),), 8, 2, engine)
        rows, context, _ = shade(memory, key, 0, 399, {0: (ARRAYS, 8)}, used=used)
        assert rows[:, used].T.tolist() == [[2 * k, 2 * k + 1] for k in used]
        assert context.batches == 3


# -- in a frame ---------------------------------------------------------------------------------


def drawn(engine: str, text: str, uniforms: tuple[int, ...] = (), found: int = 0) -> tuple[Frame, np.ndarray]:
    """A red triangle whose vertex shader is `text`, which is to copy three words."""
    frame = Frame(64, 64, engine=engine)
    job = frame.job
    job.memory.set_u32(FOUND, found)
    clip = b"".join(struct.pack("<4f", 0, 0, 0, 1) for _ in CORNERS)
    screen = b"".join(struct.pack("<hhff", 16 * x, 16 * y, 0.5, 1.0) for x, y in CORNERS)
    coordinate = HEAD.format(words=7) + "mov vpm, vpm ; nop\n" * 7 + END
    given = job.put(struct.pack(f"<{len(uniforms)}I", *uniforms))
    record = struct.pack("<HBBII", 1, 0, 0, job.program(solid(RED)), 0)
    record += struct.pack("<HBBII", 0, 2, 12, job.program(text), given)
    record += struct.pack("<HBBII", 0, 3, 28, job.program(coordinate), 0)
    record += struct.pack("<IBBBB", job.put(clip), 15, 16, 0, 0)
    record += struct.pack("<IBBBB", job.put(screen), 11, 12, 0, 16)
    shader = build(64, address=job.put(record), attributes=2)
    return frame, frame.bin(viewport(job) + shader + build(33, mode=4, length=3, first=0))


def codes(frame: Frame) -> list[str]:
    return [item.code for item in frame.reporter.items]


COPY = "mov vpm, vpm ; nop\n" * 3
FRAME_ENGINES = ("jit", "interpreter")


@pytest.mark.parametrize("engine", FRAME_ENGINES)
def test_a_result_that_was_not_requested(engine: str) -> None:
    frame, picture = drawn(engine, HEAD.format(words=3) + COPY + END)
    assert set(np.unique(picture)) == {RED, BACKGROUND}
    assert not codes(frame)
    frame, picture = drawn(engine, HEAD.format(words=3) + "nop ; nop ; ldtmu0\n" + COPY + END)
    assert (picture == BACKGROUND).all()
    assert codes(frame) == ["FRG-003"]


@pytest.mark.parametrize("engine", FRAME_ENGINES)
@pytest.mark.parametrize("lookups", [MAX_REQUESTS, MAX_REQUESTS + 1])
def test_more_lookups_than_there_is_room_for(engine: str, lookups: int) -> None:
    lookup = "mov t0t, 0\nmov t0s, 0\nnop ; nop ; ldtmu0\n" * lookups
    texture = (0x200000, 4 << 20 | 4 << 8)
    frame, picture = drawn(engine, HEAD.format(words=3) + lookup + COPY + END, texture * lookups)
    fits = lookups <= MAX_REQUESTS
    assert codes(frame) == ([] if fits else ["VTX-002"])
    assert (picture == RED).any() == fits


def test_a_result_that_depends_on_the_way_is_interpreted() -> None:
    """Compiled code cannot do it (QPU-046). Vertices move by what the lookup finds."""
    text = f"""
        {HEAD.format(words=3)}
        mov r3, unif
        sub.setf -, elem_num, 0
        brr.all_zs -, other
        nop
        nop
        nop
        mov t0s, r3
    other:
        mov r0, vpm ; nop
        nop ; nop ; ldtmu0
        add vpm, r0, r4 ; nop
        mov vpm, vpm ; nop
        mov vpm, vpm ; nop
        {END}
    """
    pictures = []
    for engine in FRAME_ENGINES:
        for pixels in (0, 5):
            frame, picture = drawn(engine, text, (FOUND,), 16 * pixels)
            pictures.append(picture)
            assert ("QPU-057" in codes(frame)) == (engine == "jit")
            assert set(codes(frame)) <= {"QPU-057", "TMU-001"}
    assert (pictures[0] == RED).any()
    assert (pictures[0] == pictures[2]).all()
    assert (pictures[1] == pictures[3]).all()
    assert (pictures[0][:, :-5] == pictures[1][:, 5:]).all()
    assert (pictures[1][:, :5] == BACKGROUND).all()
