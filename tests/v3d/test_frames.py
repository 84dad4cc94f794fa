"""Whole frames through the registers: lists in guest memory in, pixels in guest memory out."""

import numpy as np
import pytest
from tests.support.frames import ARRAY, BACKGROUND, CORNERS, RED, Frame, inside, solid, triangle
from tests.support.jobs import BFC, CT0CA, CT0EA, CT1CA, CT1EA, RFC, nv_vertex, viewport

from vc4lab.records.control import build
from vc4lab.v3d.core import FLDONE, FRDONE, OUTOMEM, SPILLUSE
from vc4lab.v3d.registers import BY_NAME, PipelineStatus, ThreadControl

COLOURS = """
# the three varyings are red, green and blue
    nop ; fmul r0, vary, ra15
    fadd r0, r0, r5 ; nop
    nop ; fmul r1, vary, ra15
    fadd r1, r1, r5 ; mov r3.8a, r0
    nop ; fmul r2, vary, ra15
    fadd r2, r2, r5 ; mov r3.8b, r1
    nop ; mov r3.8c, r2
    nop ; mov r3.8d, 1.0
    sbwait
    mov tlbc, r3 ; nop ; thrend
    nop
    nop ; nop ; sbdone
"""


@pytest.mark.parametrize("engine", ["jit", "interpreter"])
def test_a_red_triangle_covers_exactly_its_pixels(engine: str) -> None:
    frame = Frame(engine=engine)
    shader = frame.nv_shader(solid(RED), triangle(*CORNERS), 0)
    picture = frame.bin(viewport(frame.job) + shader + ARRAY)
    assert set(np.unique(picture)) == {RED, BACKGROUND}
    assert ((picture == RED) == inside(frame, CORNERS)).all()
    assert not frame.reporter.items


@pytest.mark.parametrize("engine", ["jit", "interpreter"])
def test_a_shader_that_runs_into_zeroed_memory_is_one_message(engine: str) -> None:
    frame = Frame(engine=engine)
    text = "mov r0, 1\nnop\nnop\nmov tlbc, r0\n.quad 0, 0, 0"
    shader = frame.nv_shader(text, triangle(*CORNERS), 0)
    picture = frame.bin(viewport(frame.job) + shader + ARRAY)
    assert set(np.unique(picture)) == {BACKGROUND}
    assert {item.code for item in frame.reporter.items} == {"QPU-047"}


def test_colours_are_interpolated_and_engines_agree() -> None:
    pictures = []
    for options in ({}, {"threads": 1}, {"threads": 8}, {"engine": "interpreter"}):
        frame = Frame(64, 96, **options)
        vertices = b"".join(
            nv_vertex(x, y, 0.5, w, *c)
            for (x, y), w, c in zip(
                ((32, 0), (0, 96), (64, 96)), (1.0, 0.25, 0.5), ((1, 0, 0), (0, 1, 0), (0, 0, 1)), strict=True
            )
        )
        pictures.append(frame.bin(viewport(frame.job) + frame.nv_shader(COLOURS, vertices, 3) + ARRAY))
    assert all((picture == pictures[0]).all() for picture in pictures)
    first = pictures[0]
    assert first[2, 32] & 0xFF > 200  # red at the top corner
    assert first[95, 1] >> 8 & 0xFF > 200  # green left
    assert first[95, 62] >> 16 & 0xFF > 200  # blue right


def test_facing_clip_window_and_viewport() -> None:
    body = ARRAY
    frame = Frame()
    shader = frame.nv_shader(solid(RED), triangle(*CORNERS), 0)
    forward_only = frame.bin(viewport(frame.job, config=1) + shader + body)
    reverse_only = frame.bin(viewport(frame.job, config=2) + shader + body)
    assert (forward_only == RED).any() != (reverse_only == RED).any()
    window = bytes([96, 3, 0, 0]) + build(102, left=40, bottom=50, width=30, height=20) + build(103, x=0, y=0)
    clipped = frame.bin(window + shader + body) == RED
    expected = inside(frame, CORNERS)
    expected[:50] = expected[70:] = False
    expected[:, :40] = expected[:, 70:] = False
    assert (clipped == expected).all()
    moved = bytes([96, 3, 0, 0]) + build(102, left=0, bottom=0, width=128, height=128)
    moved += build(103, x=10 * 16, y=-4 * 16)
    picture = frame.bin(moved + shader + body) == RED
    assert (picture[:120, 10:] == inside(frame, CORNERS)[4:124, :118]).all()


def test_565_and_t_format_stores() -> None:
    frame = Frame(64, 64)
    shader = frame.nv_shader(solid(0xFFFFFFFF), triangle((0, 0), (0, 100), (100, 0)), 0)
    start, end, lists = frame.job.binning(viewport(frame.job) + shader + ARRAY)
    rendering = frame.job.rendering(lists, frame.surface, clear=0xFF0000FF, format=2)
    frame.job.run(frame.v3d, (start, end), rendering)
    words = np.array(frame.job.memory.array(frame.surface, 64 * 64, "<u2")).reshape(64, 64)
    assert words[0, 0] == 0xFFFF
    assert words[63, 63] == 0xF800
    assert frame.bin(viewport(frame.job) + shader + ARRAY, tiling=1)[0, 0] == 0xFFFFFFFF


def test_counters_interrupts_and_status() -> None:
    frame = Frame()
    v3d = frame.v3d
    levels: list[bool] = []
    v3d.on_interrupt = levels.append
    v3d.write(BY_NAME["INTENA"].offset, FRDONE)
    shader = frame.nv_shader(solid(RED), triangle(*CORNERS), 0)
    frame.bin(viewport(frame.job) + shader + ARRAY)
    assert (v3d.read(BFC), v3d.read(RFC)) == (1, 1)
    assert v3d.read(BY_NAME["INTCTL"].offset) == FRDONE | FLDONE
    assert levels == [True]
    v3d.write(BY_NAME["INTCTL"].offset, FRDONE)
    assert levels == [True, False]
    v3d.write(RFC, 1)
    assert v3d.read(RFC) == 0
    assert v3d.read(BY_NAME["CT1CS"].offset) == 0
    assert v3d.read(0x008) == BY_NAME["IDENT2"].reset
    assert v3d.read(0xFFC) == 0  # nothing there


def test_rendering_waits_for_binning_through_the_semaphore() -> None:
    frame = Frame()
    job, v3d = frame.job, frame.v3d
    shader = frame.nv_shader(solid(RED), triangle(*CORNERS), 0)
    start, end, lists = job.binning(viewport(job) + shader + ARRAY, flush=build(7) + build(4))
    render_start, render_end = job.rendering(lists, frame.surface, clear=BACKGROUND)
    waiting = job.put(build(8) + job.memory.read(render_start, render_end - render_start))
    v3d.write(CT1CA, waiting)
    v3d.write(CT1EA, waiting + 1 + render_end - render_start)
    status = ThreadControl(v3d.read(BY_NAME["CT1CS"].offset))
    assert (status.CTRUN, status.CTSUBS) == (1, 1)
    assert "semaphore" in str(v3d.waiting)
    assert v3d.read(CT1CA) == waiting + 1
    v3d.write(CT0CA, start)
    v3d.write(CT0EA, end)
    assert v3d.waiting is None
    assert v3d.read(RFC) == 1
    assert (frame.pixels() == RED).any()


def test_binner_memory_runs_out_and_is_supplied() -> None:
    frame = Frame(64, 64)
    job, v3d = frame.job, frame.v3d
    many = b"".join(triangle((1, 1), (1 + k % 60, 60), (60, 2)) for k in range(400))
    shader = frame.nv_shader(solid(RED), many, 0)
    lists = job.room(8192)
    body = build(112, address=lists, memory_size=96, tiles_x=1, tiles_y=1, auto_initialise=1)
    body += build(6) + viewport(job) + shader + build(33, mode=4, length=1200, first=0) + build(4)
    start = job.put(body)
    v3d.write(CT0CA, start)
    v3d.write(CT0EA, start + len(body))
    assert PipelineStatus(v3d.read(BY_NAME["PCS"].offset)).BMOOM
    assert v3d.read(BY_NAME["INTCTL"].offset) & OUTOMEM
    assert "BPOS" in str(v3d.waiting)
    assert frame.reporter.has("CLE-028")
    v3d.write(BY_NAME["BPOA"].offset, job.room(65536))
    v3d.write(BY_NAME["BPOS"].offset, 65536)
    assert v3d.waiting is None
    assert v3d.read(BFC) == 1
    assert v3d.read(BY_NAME["BPOS"].offset) == 0
    assert v3d.read(BY_NAME["INTCTL"].offset) & SPILLUSE
    render = job.rendering(lists, frame.surface, clear=BACKGROUND)
    v3d.write(CT1CA, render[0])
    v3d.write(CT1EA, render[1])
    assert (frame.pixels() == RED).sum() > 500


@pytest.mark.parametrize(
    ("thread", "data", "code"),
    [
        (0, b"\xf0", "CLE-001"),
        (1, b"\xf0", "CLE-001"),
        (0, build(33, mode=4, length=3), "CLE-011"),
        (0, build(6) + build(5), "CLE-010"),
        (0, build(112, tiles_x=0, tiles_y=0, address=0x200000), "CLE-032"),
        (1, build(25), "CLE-019"),
        (1, build(4), "CLE-008"),
        (0, build(25), "CLE-008"),
        (1, build(115) + build(24), "CLE-020"),
    ],
)
def test_wrong_lists_are_named(thread: int, data: bytes, code: str) -> None:
    frame = Frame(64, 64)
    start = frame.job.put(data)
    frame.v3d.write((CT0CA, CT1CA)[thread], start)
    frame.v3d.write((CT0EA, CT1EA)[thread], start + len(data))
    assert frame.reporter.has(code), frame.reporter.summary()


@pytest.mark.parametrize("thread", [0, 1])
def test_a_list_that_runs_in_a_circle_ends(thread: int) -> None:
    frame = Frame(64, 64)
    place = frame.job.room(64)
    frame.job.memory.write(place, build(16, address=place))
    frame.v3d.write((CT0CA, CT1CA)[thread], place)
    frame.v3d.write((CT0EA, CT1EA)[thread], place + 32)
    assert frame.reporter.has("CLE-006")
    assert "end" in str(frame.v3d.waiting)


def test_lists_that_feed_each_other_in_a_circle_end() -> None:
    """Two lists that start each other again and again would never give the write back."""
    frame = Frame(64, 64)
    job = frame.job
    start, end, lists = job.binning(b"")
    places = [job.room(256), job.room(256)]
    whole = job.memory.read(start, end - start)
    body = (
        b"\x07" + whole + b"\x08",
        b"\x08\x07" + build(113, address=frame.surface, width=64, height=64, format=1)
        + build(115) + build(17, address=lists) + build(25),
    )  # fmt: skip
    for place, data in zip(places, body, strict=True):
        job.memory.write(place, data + build(16, address=place))
    job.run(frame.v3d, (places[0], places[0] + 255), (places[1], places[1] + 255))
    assert frame.reporter.has("CLE-006")


def test_draws_without_measure_are_left_out() -> None:
    """A list of some kilobytes must not ask for hours of work."""
    frame = Frame(64, 64)
    job = frame.job
    shader = frame.nv_shader(solid(RED), triangle((0, 0), (0, 64), (64, 0)), 0)
    huge = build(32, mode=4, index_type=1, length=0xFFFF_FFFF, address=0, maximum_index=2)
    start, end, lists = job.binning(viewport(job) + shader + ARRAY + huge * 500)
    job.run(frame.v3d, (start, end), job.rendering(lists, frame.surface))
    assert frame.reporter.has("VTX-001")
    assert frame.pixels()[0, 0] == RED


def test_a_pipeline_that_keeps_giving_up_is_replaced_by_its_exact_twin() -> None:
    frame = Frame(64, 64)
    program = """
    ldi r1, 0x7f000000
    nop ; fmul r0, vary, ra15
    fadd r0, r0, r5 ; nop
    nop ; fmul r2, r1, r1        # overflows: infinity on the chip
    nop ; fmul r2, r2, r0
    ftoi r0, r2 ; nop
    sbwait
    mov tlbc, r0 ; nop ; thrend
    nop
    nop ; nop ; sbdone
"""
    vertices = b"".join(nv_vertex(x, y, 0.5, 1.0, 0.5) for x, y in ((0, 0), (0, 64), (64, 0)))
    body = viewport(frame.job) + frame.nv_shader(program, vertices, 1) + ARRAY
    preparer = frame.v3d.frames.preparer
    counts = []
    for _ in range(6):
        assert frame.bin(body)[0, 0] == 0  # ftoi of infinity
        counts.append(sum(preparer.fallbacks.values()))
    assert counts == [1, 2, 3, 3, 3, 3]


def test_a_pipeline_that_gives_up_in_a_few_tiles_stays() -> None:
    program = """
    ldi r1, 0x7f000000
    nop ; fmul r0, vary, ra15
    fadd r0, r0, r5 ; nop
    nop ; fmul r2, r1, r0        # overflows in a corner
    sbwait
    mov tlbc, r2 ; nop ; thrend
    nop
    nop ; nop ; sbdone
"""
    pictures = []
    for engine in ("jit", "interpreter"):
        frame = Frame(256, 256, engine=engine)
        corners = ((0, 0, 0.5), (0, 256, 0.5), (256, 0, 2.05))
        vertices = b"".join(nv_vertex(x, y, 0.5, 1.0, varying) for x, y, varying in corners)
        body = viewport(frame.job) + frame.nv_shader(program, vertices, 1) + ARRAY
        for _ in range(5 if engine == "jit" else 1):
            pictures.append(frame.bin(body))
        assert not frame.v3d.frames.preparer.fallbacks
    assert (pictures[0] == 0x7F800000).any()
    assert all((picture == pictures[-1]).all() for picture in pictures)


def test_the_viewport_moves_a_triangle_into_another_tile() -> None:
    frame = Frame()
    corners = ((4, 4), (4, 24), (24, 4))
    shader = frame.nv_shader(solid(RED), triangle(*corners), 0)
    state = bytes([96, 3, 0, 0]) + build(102, left=0, bottom=0, width=128, height=128)
    for x, y in ((0, 0), (80, 0), (0, 80), (80, 80)):
        moved = build(103, x=x * 16, y=y * 16)
        picture = frame.bin(state + moved + shader + ARRAY) == RED
        assert (picture == np.roll(inside(frame, corners), (y, x), (0, 1))).all()


def test_helpers_are_woken_for_draws_only() -> None:
    """Clearing and storing waits for memory; another thread would only have to be woken."""
    frame = Frame(threads=3)
    shader = frame.nv_shader(solid(RED), triangle(*CORNERS), 0)
    pictures = []
    for body, helpers in ((b"", 0), (viewport(frame.job) + shader + ARRAY, 2), (b"", 2)):
        pictures.append(frame.bin(body))
        assert frame.v3d.frames.tile_threads.team.helpers == helpers
    assert (pictures[0] == BACKGROUND).all()
    assert ((pictures[1] == RED) == inside(frame, CORNERS)).all()
    assert (pictures[2] == pictures[0]).all()
