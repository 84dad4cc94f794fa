"""x/y lists and trapezoids: written by hand into the rendering list, drawn without vertices."""

import struct

import numpy as np
import pytest
from tests.support.compressed_lists import encode_compressed
from tests.support.frames import BACKGROUND, GREEN, RED, Frame, inside, solid
from tests.support.jobs import nv_vertex, viewport

from vc4lab.records.control import build

XY_TRIANGLES, XY_RHT = 0x32, 0x33
CORNERS = ((64.0, 8.0), (8.0, 120.0), (120.0, 100.0))


def sixteenths(*corners: tuple[float, float]) -> tuple[tuple[int, int], ...]:
    return tuple((round(x * 16), round(y * 16)) for x, y in corners)


def xy_list(*primitives: tuple[tuple[float, float], ...], form: int = XY_TRIANGLES) -> bytes:
    """Records 56 and 48."""
    data = encode_compressed([sixteenths(*p) for p in primitives], form)
    return bytes([56, form]) + build(48) + data


def trapezoid(frame: Frame, v0: tuple[float, float], v1: tuple[float, float], x: float) -> np.ndarray:
    """Pixels between the edge and column x, by the definition."""
    (x0, y0), (x1, y1) = v0, v1
    py, px = np.mgrid[0 : frame.job.height, 0 : frame.job.width] + 0.5
    rows = (py >= min(y0, y1)) & (py < max(y0, y1))
    edge = x0 + (x1 - x0) * (py - y0) / (y1 - y0)
    return rows & (px >= np.minimum(edge, x)) & (px < np.maximum(edge, x))


FORMAT_LAST = {"CLE-025"}
"""These lists have record 56 after the shader state."""
ENGINES = [{}, {"threads": 1}, {"threads": 8}, {"engine": "interpreter"}]


@pytest.mark.parametrize("options", ENGINES)
def test_triangles_from_the_rendering_list(options: dict[str, object]) -> None:
    frame = Frame(**options)
    state = viewport(frame.job) + frame.vg_shader(solid(RED))
    strip = [CORNERS, (CORNERS[2], CORNERS[1], (100.0, 126.0))]
    picture = frame.render(state + xy_list(*strip))
    assert ((picture == RED) == inside(frame, *strip)).all()
    assert set(np.unique(picture)) == {RED, BACKGROUND}
    assert set(frame.reporter.counts) <= FORMAT_LAST, frame.reporter.summary()


@pytest.mark.parametrize("options", ENGINES)
@pytest.mark.parametrize(
    ("v0", "v1", "boundary"),
    [
        ((100, 5), (60, 110), 10.0),
        ((60, 110), (100, 5), 120.5),
        ((20.25, 3.5), (110.75, 120.5), 64.0),
        ((0.0, 0.0), (0.0, 128.0), 1.0),
    ],
)
def test_trapezoids(
    options: dict[str, object], v0: tuple[float, float], v1: tuple[float, float], boundary: float
) -> None:
    frame = Frame(**options)
    state = viewport(frame.job) + frame.vg_shader(solid(RED), inline=True)
    state += build(100, x=round(boundary * 16))
    picture = frame.render(state + xy_list((v0, v1), form=XY_RHT))
    assert ((picture == RED) == trapezoid(frame, v0, v1, boundary)).all()
    assert set(frame.reporter.counts) <= FORMAT_LAST, frame.reporter.summary()


def test_trapezoids_side_by_side_share_no_pixel_and_leave_none() -> None:
    """Two paths with a common edge: every pixel belongs to exactly one."""
    rng = np.random.default_rng(5)
    for _ in range(6):
        x0, y0, x1, y1 = rng.integers(0, 128 * 16, 4) / 16
        if y0 == y1:
            continue
        pictures = []
        for boundary in (0, 128 * 16):
            frame = Frame()
            state = viewport(frame.job) + frame.vg_shader(solid(RED))
            state += build(100, x=boundary)
            picture = frame.render(state + xy_list(((x0, y0), (x1, y1)), form=XY_RHT))
            pictures.append(picture == RED)
        rows = np.arange(128) + 0.5
        between = (rows >= min(y0, y1)) & (rows < max(y0, y1))
        assert (pictures[0] ^ pictures[1])[between].all()
        assert not (pictures[0] | pictures[1])[~between].any()


def test_a_trapezoid_faces_as_its_edge_goes() -> None:
    up, down = ((50.0, 10.0), (80.0, 90.0)), ((80.0, 90.0), (50.0, 10.0))
    drawn = {}
    for config in (1, 2, 5, 6):
        for name, edge in (("up", up), ("down", down)):
            frame = Frame()
            state = viewport(frame.job, config) + frame.vg_shader(solid(RED))
            drawn[config, name] = bool((frame.render(state + xy_list(edge, form=XY_RHT)) == RED).any())
    assert [drawn[c, "up"] for c in (1, 2, 5, 6)] == [True, False, False, True]
    assert [drawn[c, "down"] for c in (1, 2, 5, 6)] == [False, True, True, False]


def test_the_viewport_offset_moves_everything() -> None:
    frame = Frame()
    state = viewport(frame.job) + build(103, x=-10 * 16, y=6 * 16)
    state += frame.vg_shader(solid(RED)) + build(100, x=20 * 16)
    picture = frame.render(state + xy_list(((100, 5), (60, 110)), form=XY_RHT))
    assert ((picture == RED) == trapezoid(frame, (90, 11), (50, 116), 10)).all()


def test_x_y_lines_and_other_shader_states() -> None:
    frame = Frame()
    shader = frame.nv_shader(solid(GREEN), b"", 3)
    lines = xy_list(((10.0, 20.5), (50.0, 20.5)), form=XY_RHT).replace(b"\x33", b"\x31", 1)
    triangle = xy_list(((60.0, 60.0), (60.0, 100.0), (100.0, 60.0)))
    picture = frame.render(viewport(frame.job) + shader + lines + triangle)
    assert (picture[20, 10:50] == GREEN).all()
    assert picture[70, 65] == GREEN


def test_index_lists_need_another_shader_state() -> None:
    frame = Frame()
    state = viewport(frame.job) + frame.vg_shader(solid(RED)) + bytes([56, 0x12])
    picture = frame.render(state + build(48) + encode_compressed([(0, 1, 2)], 0x12))
    assert (picture == BACKGROUND).all()
    assert frame.reporter.has("CLE-038")


OVERSAMPLE = 0x40
"""Record 96: four samples."""


@pytest.mark.parametrize("form", [XY_TRIANGLES, XY_RHT])
def test_four_samples(form: int) -> None:
    """Edges are averages of red and background, and engines agree on them."""
    pictures = []
    for options in ({}, {"threads": 1}, {"engine": "interpreter"}):
        frame = Frame(tile=(32, 32), **options)
        state = viewport(frame.job, 3 | OVERSAMPLE) + frame.vg_shader(solid(RED))
        items = (CORNERS,) if form == XY_TRIANGLES else (((100.5, 5.25), (60, 110)),)
        state += build(100, x=10 * 16)
        pictures.append(frame.render(state + xy_list(*items, form=form), multisample=1, decimate=1))
        assert set(frame.reporter.counts) <= FORMAT_LAST, frame.reporter.summary()
    assert all((picture == pictures[0]).all() for picture in pictures)
    colours = np.unique(pictures[0])
    assert {RED, BACKGROUND} < set(colours.tolist())
    assert len(colours) == 5  # none to four of four samples


def test_other_tile_sizes_bin_and_draw_the_same() -> None:
    """Coverage by pixel centres depends neither on tiles nor on blocks."""
    pictures = []
    for tile, mode in (
        ((64, 64), {}),
        ((32, 32), {"multisample": 1}),
        ((64, 64), {"block": 3, "initial_block": 2}),
    ):
        frame = Frame(tile=tile)
        shader = frame.vg_shader(solid(RED))
        job = frame.job
        blocks = {k: v for k, v in mode.items() if "block" in k}
        both = {k: v for k, v in mode.items() if "block" not in k}
        body = viewport(job) + shader + build(100, x=0)
        data = sixteenths(*CORNERS, (5, 5), (120, 90))
        for kind, part in ((4, data[:3]), (1, data[3:])):
            words = b"".join(struct.pack("<2h", *v) for v in part)
            body += build(41, type=kind, length=len(part), address=job.put(words, 4))
        start, end, lists = job.binning(body, **both, **blocks)
        size = 32 << blocks.get("initial_block", 0)
        if size != 32:
            columns, rows = job.tiles
            moved = job.room(columns * rows * 32, 32)  # stubs that jump to the real lists
            for k in range(columns * rows):
                job.memory.write(moved + 32 * k, build(16, address=lists + size * k))
            lists = moved
        job.run(frame.v3d, (start, end), job.rendering(lists, frame.surface, BACKGROUND, **both))
        pictures.append(frame.pixels())
        assert set(frame.reporter.counts) <= FORMAT_LAST, frame.reporter.summary()
    assert all((picture == pictures[0]).all() for picture in pictures)
    assert (pictures[0] == RED).any()


def test_lists_of_24_bit_indices() -> None:
    """What no binner writes and only a debugger names; indices beyond 16 bits end at the last."""
    frame = Frame()
    corners = b"".join(nv_vertex(x, y, 0.5, 1.0) for x, y in CORNERS)
    data = bytes([56, 0x22]) + build(48) + encode_compressed([(0, 1, 2), (1, 2, 3)], 0x22)[:-1]
    data += encode_compressed([(0, 1, 0xFFFFF0)], 0x22)
    picture = frame.render(viewport(frame.job) + frame.nv_shader(solid(RED), corners) + data)
    assert (picture[inside(frame, CORNERS)] == RED).all()
    assert set(frame.reporter.counts) <= FORMAT_LAST, frame.reporter.summary()
