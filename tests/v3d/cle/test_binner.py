"""What a program sees of the binner: block sizes, registers, state in tile lists, flushes."""

import struct

import numpy as np
import pytest
from tests.support.frames import BACKGROUND, GREEN, RED, Frame, inside, solid
from tests.support.jobs import BFC, CT0CA, CT0EA, CT1CA, CT1EA, nv_vertex, viewport

from vc4lab.records.control import build
from vc4lab.v3d.registers import BY_NAME, Errors, PipelineStatus, ThreadControl
from vc4lab.v3d.unknowns import DEFAULT_UNKNOWNS, Unknowns


def fan_vertices(count: int) -> bytes:
    """Triangles that cross all tiles."""
    vertices = b""
    for k in range(count):
        x = 3.25 + k % 120
        for corner in ((x, 1.5), (x + 4, 126.0), (127.0 - x, 64.0)):
            vertices += nv_vertex(*corner, 0.5, 1.0)
    return vertices


def bin_with(frame: Frame, body: bytes, **mode: int) -> tuple[np.ndarray, int]:
    """The picture of ``body`` binned in another tile memory, and BPCA at the end."""
    job, v3d = frame.job, frame.v3d
    columns, rows = job.tiles
    initial = 32 << mode.get("initial_block", 0)
    lists = job.room(1 << 18)
    data = build(112, address=lists, memory_size=1 << 18, tiles_x=columns, tiles_y=rows, **mode)
    data += build(6) + body + build(4)
    start = job.put(data)
    v3d.write(CT0CA, start)
    v3d.write(CT0EA, start + len(data))
    rendering = build(114, colour=BACKGROUND, colour_high=BACKGROUND, z=0xFFFFFF)
    rendering += build(113, address=frame.surface, width=job.width, height=job.height, format=1)
    rendering += build(115) + build(28)
    for k in range(columns * rows):
        rendering += build(115, column=k % columns, row=k // columns)
        rendering += build(17, address=lists + k * initial) + build(24 + (k == columns * rows - 1))
    frame.run(rendering)
    return frame.pixels(), v3d.read(BY_NAME["BPCA"].offset) - lists


@pytest.mark.parametrize("initial_block", range(4))
@pytest.mark.parametrize("block", range(4))
def test_block_sizes_do_not_show(initial_block: int, block: int) -> None:
    frame = Frame()
    body = viewport(frame.job) + frame.nv_shader(solid(RED), fan_vertices(200))
    body += build(33, mode=4, length=600, first=0)
    expected, _ = bin_with(frame, body)
    picture, used = bin_with(frame, body, initial_block=initial_block, block=block)
    assert (picture == expected).all()
    assert (picture == RED).any()
    assert used % (32 << block) == 0
    assert not frame.reporter.items, frame.reporter.summary()


def test_prefix_state_reaches_tile_lists_only_by_flush_all_state() -> None:
    """The rendering list below has no state of its own."""
    for flush, drawn in ((4, False), (5, True)):
        frame = Frame()
        job = frame.job
        lists = job.room(1 << 16)
        triangle = fan_vertices(1)
        prefix = viewport(job) + frame.nv_shader(solid(RED), triangle)
        data = build(112, address=lists, memory_size=1 << 16, tiles_x=2, tiles_y=2)
        data += prefix + build(6) + build(33, mode=4, length=3, first=0) + build(flush)
        start = job.put(data)
        rendering = job.rendering(lists, frame.surface, clear=BACKGROUND)
        job.run(frame.v3d, (start, start + len(data)), rendering)
        picture = frame.pixels()
        if drawn:
            # the complete state stands after the primitives: the tiles that follow have it
            assert (picture[64:, 64:] == RED).any()
        else:
            assert (picture == BACKGROUND).all()  # no face is enabled


def test_state_is_inherited_from_tile_list_to_tile_list() -> None:
    """Configuration bits first come after the first primitive: the left tile's list has none.

    It then sees what the tile list before it in the rendering list left.
    """
    frame = Frame(128, 64)
    job = frame.job
    corner = [(2.0, 2.0), (2.0, 30.0), (30.0, 2.0)]
    triangles = b"".join(nv_vertex(x + dx, y, 0.5, 1.0) for dx in (0.0, 64.0) for x, y in corner)
    state = viewport(job)[4:] + frame.nv_shader(solid(RED), triangles)
    lists = job.room(1 << 16)
    data = build(112, address=lists, memory_size=1 << 16, tiles_x=2, tiles_y=1)
    data += state + build(6) + build(33, mode=4, length=3, first=0)
    data += bytes([96, 0, 0, 0]) + build(33, mode=4, length=3, first=3) + build(4)
    start = job.put(data)
    frame.v3d.write(CT0CA, start)
    frame.v3d.write(CT0EA, start + len(data))
    head = build(114, colour=BACKGROUND, colour_high=BACKGROUND)
    head += build(113, address=frame.surface, width=128, height=64, format=1)
    head += build(115) + build(28)
    for order, left in (((0, 1), RED), ((1, 0), BACKGROUND)):
        body = head + viewport(job)
        for number, column in enumerate(order):
            body += build(115, column=column, row=0) + build(17, address=lists + 32 * column)
            body += build(24 + number)
        frame.run(body)
        picture = frame.pixels()
        assert picture[5, 5] == left
        assert picture[5, 69] == BACKGROUND


@pytest.mark.parametrize("choice", ["stop", "skip"])
def test_an_index_above_the_maximum(choice: str) -> None:
    frame = Frame(unknowns=Unknowns({"index_error": choice}))
    job, v3d = frame.job, frame.v3d
    shader = frame.nv_shader(solid(RED), fan_vertices(2))
    indices = job.put(struct.pack("<6H", 0, 1, 2, 3, 4, 5))
    record = build(32, mode=4, index_type=1, length=6, address=indices, maximum_index=3)
    start, end, lists = job.binning(viewport(job) + shader + record)
    v3d.write(CT0CA, start)
    v3d.write(CT0EA, end)
    assert Errors(v3d.read(BY_NAME["ERRSTAT"].offset)).VCMBE
    assert frame.reporter.has("CLE-014")
    status = ThreadControl(v3d.read(BY_NAME["CT0CS"].offset))
    assert bool(status.CTERR) is (choice == "stop")
    assert v3d.read(BFC) == (choice == "skip")
    if choice == "skip":
        rendering = job.rendering(lists, frame.surface, clear=BACKGROUND)
        v3d.write(CT1CA, rendering[0])
        v3d.write(CT1EA, rendering[1])
        first = [(3.25, 1.5), (7.25, 126.0), (123.75, 64.0)]
        assert ((frame.pixels() == RED) == inside(frame, tuple(first))).all()


def test_primitives_left_when_memory_ran_out() -> None:
    frame = Frame(64, 64, unknowns=DEFAULT_UNKNOWNS.with_(bpos_small="taken"))
    job, v3d = frame.job, frame.v3d
    lists = job.room(4096)
    shader = frame.nv_shader(solid(RED), fan_vertices(300))
    data = build(112, address=lists, memory_size=64, tiles_x=1, tiles_y=1) + build(6)
    data += viewport(job) + shader + build(33, mode=4, length=900, first=0) + build(4)
    start = job.put(data)
    v3d.write(CT0CA, start)
    v3d.write(CT0EA, start + len(data))
    left = v3d.read(BY_NAME["CT0PC"].offset)
    assert 200 < left < 300
    for _ in range(200):
        if v3d.read(BFC):
            break
        v3d.write(BY_NAME["BPOA"].offset, job.room(256, 256))
        v3d.write(BY_NAME["BPOS"].offset, 256)
        now = v3d.read(BY_NAME["CT0PC"].offset)
        assert now <= left
        left = now
    assert v3d.read(BFC) == 1
    assert left == 0


@pytest.mark.parametrize(
    ("choice", "size", "taken"),
    [("refused", 4095, False), ("refused", 4096, True), ("taken", 2048, True), ("taken", 0, False)],
)
def test_small_overspill_blocks(choice: str, size: int, taken: bool) -> None:
    frame = Frame(64, 64, unknowns=DEFAULT_UNKNOWNS.with_(bpos_small=choice))
    job, v3d = frame.job, frame.v3d
    shader = frame.nv_shader(solid(RED), fan_vertices(300))
    body = build(112, address=job.room(4096), memory_size=64, tiles_x=1, tiles_y=1) + build(6)
    body += viewport(job) + shader + build(33, mode=4, length=150, first=0) + build(4)
    start = job.put(body)
    v3d.write(CT0CA, start)
    v3d.write(CT0EA, start + len(body))
    v3d.write(BY_NAME["BPOA"].offset, job.room(8192))
    v3d.write(BY_NAME["BPOS"].offset, size)
    assert v3d.read(BFC) == taken
    assert v3d.read(BY_NAME["BPOS"].offset) == (0 if taken else size)
    assert taken != PipelineStatus(v3d.read(BY_NAME["PCS"].offset)).BMOOM
    assert frame.reporter.has("CLE-040") == (0 < size < 4096 and choice == "refused")
    if not taken:
        assert "BPOS" in str(v3d.waiting)
        v3d.write(BY_NAME["BPOS"].offset, 8192)
    assert v3d.read(BFC) == 1


def test_a_small_block_given_before_it_is_needed_is_not_taken() -> None:
    frame = Frame(64, 64)
    job, v3d = frame.job, frame.v3d
    v3d.write(BY_NAME["BPOA"].offset, job.room(8192))
    v3d.write(BY_NAME["BPOS"].offset, 1024)
    shader = frame.nv_shader(solid(RED), fan_vertices(300))
    body = build(112, address=job.room(4096), memory_size=64, tiles_x=1, tiles_y=1) + build(6)
    body += viewport(job) + shader + build(33, mode=4, length=150, first=0) + build(4)
    start = job.put(body)
    v3d.write(CT0CA, start)
    v3d.write(CT0EA, start + len(body))
    assert v3d.read(BFC) == 0
    assert frame.reporter.has("CLE-040")
    assert frame.reporter.has("CLE-028")


def clip_vertex(x: float, y: float, z: float) -> bytes:
    """An NV vertex with a clip header; the viewport is 64 pixels around the centre."""
    return struct.pack("<4fhhff", x, y, z, 1.0, int(x * 32 * 16), int(y * 32 * 16), 0.5, 1.0)


def test_clipping_can_be_switched_off() -> None:
    """A triangle half in front of the near plane, with BXCF.CLIPDISA as with flag bit 2 = 0."""
    drawn = {}
    for clipping, register in ((1, 0), (1, 2), (0, 0)):
        frame = Frame(64, 64)
        job = frame.job
        vertices = clip_vertex(-0.9, -0.9, 0) + clip_vertex(0.9, -0.9, 0)
        vertices += clip_vertex(0, 0.9, -3.0)
        code = job.program(solid(GREEN))
        flags = 1 | clipping << 2 | 8
        data = struct.pack("<BBBBIII", flags, 28, 0, 0, code, 0, job.put(vertices))
        state = viewport(job) + build(103, x=32 * 16, y=32 * 16)
        state += build(105, x=512.0, y=512.0)
        state += build(106, scale=0.5, offset=0.5) + build(65, address=job.put(data))
        frame.v3d.write(BY_NAME["BXCF"].offset, register)
        picture = frame.bin(state + build(33, mode=4, length=3, first=0))
        drawn[clipping, register] = int((picture == GREEN).sum())
    assert drawn[1, 2] == drawn[0, 0] > drawn[1, 0] > 0
