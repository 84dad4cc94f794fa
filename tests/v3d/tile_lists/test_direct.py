"""Primitive records written into the rendering list: the same pixels as through the binner."""

import struct

import pytest
from tests.support.frames import BACKGROUND, RED, Frame, inside, solid
from tests.support.jobs import CT1CA, CT1EA, nv_vertex, viewport
from tests.v3d.cle.test_vg import DUMMY, END, FAN, RHT, RHT_STRIP, STRIP, TRIANGLES, array, inline

from vc4lab.records.control import build
from vc4lab.v3d.ptb.direct_lists import MAX_RECORDS
from vc4lab.v3d.tile_lists.scan_context import FNV_PRIME
from vc4lab.v3d.unknowns import Unknowns

COLOURS = """
    nop ; fmul r0, vary, ra15
    fadd r0, r0, r5 ; nop
    nop ; mov r3.8a, r0
    nop ; mov r3.8d, 1.0
    sbwait
    mov tlbc, r3 ; nop ; thrend
    nop
    nop ; nop ; sbdone
"""

POINTS = [(10.0, 12.0), (30.5, 110.0), (60.0, 14.25), (90.0, 115.0), (120.0, 20.0), (64.0, 70.0)]
A, B, C, D, E, F = POINTS

ENGINES = [{}, {"threads": 1}, {"threads": 8}, {"engine": "interpreter"}]


def vertices() -> bytes:
    return b"".join(nv_vertex(x, y, 0.5, 1.0, k / 6) for k, (x, y) in enumerate(POINTS))


@pytest.mark.parametrize(
    ("options", "mode"), [({}, mode) for mode in range(7)] + [(options, 6) for options in ENGINES[1:]]
)
def test_every_mode_as_through_the_binner(options: dict[str, object], mode: int) -> None:
    order = [0, 1, 2, 3, 5, 4]
    pictures = []
    for way in ("bin", "render"):
        frame = Frame(**options)
        shader = frame.nv_shader(COLOURS, vertices(), 1)
        state = viewport(frame.job) + build(98, point_size=9.0) + build(99, line_width=3.0) + shader
        short = frame.job.put(struct.pack("<6H", *order))
        byte = frame.job.put(bytes(order))
        lists = (
            build(33, mode=mode, length=6, first=0),
            build(32, mode=mode, index_type=1, length=6, address=short, maximum_index=5),
            build(32, mode=mode, index_type=0, length=4, address=byte, maximum_index=5),
        )
        for number, record in enumerate(lists):
            picture = getattr(frame, way)(state + record)
            assert (picture != BACKGROUND).any()
            pictures.append((number, picture))
        assert not frame.reporter.items, frame.reporter.summary()
    for (_, binned), (_, direct) in zip(pictures[:3], pictures[3:], strict=True):
        assert (binned == direct).all()


def test_a_list_whose_indices_have_changed_is_made_again() -> None:
    """The same rendering list twice, at the same address."""
    frame = Frame()
    places: list[tuple[int, int]] = []

    def run(data: bytes) -> None:
        places.append((frame.job.put(data), len(data)))
        again()

    def again() -> None:
        start, size = places[-1]
        frame.v3d.write(CT1CA, start)
        frame.v3d.write(CT1EA, start + size)

    frame.run = run  # type: ignore[method-assign]
    shader = frame.nv_shader(COLOURS, vertices(), 1)
    byte = frame.job.put(bytes([0, 1, 2]))
    record = build(32, mode=4, index_type=0, length=3, address=byte, maximum_index=5)
    first = frame.render(viewport(frame.job) + shader + record)
    frame.job.memory.write(byte, bytes([3, 4, 5]))
    again()
    second = frame.pixels()
    assert (first != BACKGROUND).any()
    assert (second != BACKGROUND).any()
    assert (first != second).any()
    fresh = frame.render(viewport(frame.job) + shader + record)
    assert (fresh == second).all()


@pytest.mark.parametrize("options", ENGINES)
def test_vector_graphics_as_through_the_binner(options: dict[str, object]) -> None:
    for kind, items in (
        (TRIANGLES, (A, B, C, C, D, E)),
        (TRIANGLES, (A, B, DUMMY, C, D, E, A, B, END)),
        (STRIP, (A, B, C, D, DUMMY, E, F)),
        (FAN, (F, A, B, D, E, END)),
        (FAN, (F, END, A)),
        (RHT, (A, B, C, DUMMY, D, E)),
        (RHT_STRIP, (A, B, C, DUMMY, D, END)),
    ):
        pictures = []
        for way in ("bin", "render"):
            frame = Frame(**options)
            state = viewport(frame.job) + build(100, x=200) + frame.vg_shader(solid(RED))
            pictures.append(getattr(frame, way)(state + array(frame, kind, *items)))
            assert not frame.reporter.items, frame.reporter.summary()
        assert (pictures[0] == pictures[1]).all(), (kind, items)


def test_inline_lists_and_continued_fans() -> None:
    for choices in ({}, {"vg_continuation": "one"}, {"vg_dummy": "restart"}):
        pictures = []
        for way in ("bin", "render"):
            frame = Frame(unknowns=Unknowns(choices))
            state = viewport(frame.job) + build(100, x=200) + frame.vg_shader(solid(RED))
            fans = array(frame, FAN, C, A, B) + array(frame, FAN, E, A, D, E, continues=1)
            body = state + fans + inline(STRIP, A, DUMMY, B, C, DUMMY, D, E, END)
            pictures.append(getattr(frame, way)(body + inline(RHT, A, B, A, END)))
            assert not frame.reporter.items, frame.reporter.summary()
        assert (pictures[0] == pictures[1]).all()


def test_a_fan_goes_on_after_one_that_drew_nothing() -> None:
    for way in ("bin", "render"):
        frame = Frame()
        state = viewport(frame.job) + frame.vg_shader(solid(RED))
        fans = array(frame, FAN, E, D, DUMMY) + array(frame, FAN, A, B, C, continues=1)
        assert ((getattr(frame, way)(state + fans) == RED) == inside(frame, (E, D, C))).all()


def test_mixed_with_lists_and_in_sub_lists() -> None:
    """Formats change between the records; a sub-list that no binner wrote is drawn, too."""
    frame = Frame()
    red = frame.vg_shader(solid(RED))
    green = frame.nv_shader(solid(0xFF00FF00), vertices(), 1)
    xy = build(48) + b"\x81" + struct.pack("<6h", 0, 0, 0, 320, 320, 0) + b"\x80"
    body = viewport(frame.job) + red + array(frame, TRIANGLES, A, B, C) + xy
    body += green + build(33, mode=4, length=3, first=3)
    body += red + inline(TRIANGLES, A, C, F, A, A, END) + xy
    sub_list = frame.job.put(body + build(18))
    picture = frame.render(build(17, address=sub_list))
    reds = inside(frame, (A, B, C), (A, C, F), ((0, 0), (0, 20), (20, 0)))
    assert (picture[reds] == RED).all()
    greens = inside(frame, (D, E, F)) & ~reds
    assert (picture[greens] == 0xFF00FF00).all()
    assert not frame.reporter.items, frame.reporter.summary()


@pytest.mark.parametrize("options", ENGINES)
def test_a_frame_that_begins_with_a_primitive_and_a_jump(options: dict[str, object]) -> None:
    """No record of it is read natively before the jump."""
    frame = Frame(**options)
    state = viewport(frame.job) + frame.nv_shader(solid(RED), vertices(), 1)
    drawn = build(33, mode=4, length=3)
    expected = frame.render(state + drawn)
    tiles = ((0, 0, 24), (1, 0, 24), (0, 1, 24), (1, 1, 25))
    rest = state + b"".join(build(115, column=x, row=y) + build(end) for x, y, end in tiles)
    for first in (build(1) + drawn, drawn):
        frame.job.memory.write(frame.surface, bytes(4 * expected.size))
        end = frame.job.put(rest) + len(rest)
        start = frame.job.put(first + build(16, address=end - len(rest)))
        frame.v3d.write(CT1CA, start)
        frame.v3d.write(CT1EA, end)
        picture = frame.pixels()
        assert (picture[:64, :64] == expected[:64, :64]).all()
        assert (picture != RED)[64:].all()


def test_gl_vertices_are_shaded_once_and_indices_checked() -> None:
    frame = Frame()
    shader = frame.nv_shader(solid(RED), vertices(), 1)
    indices = frame.job.put(struct.pack("<6H", 0, 1, 2, 3, 4, 5))
    record = build(32, mode=4, index_type=1, length=6, address=indices, maximum_index=3)
    picture = frame.render(viewport(frame.job) + shader + record)
    assert ((picture == RED) == inside(frame, (A, B, C))).all()
    assert frame.reporter.has("CLE-014")


@pytest.mark.parametrize("length", [0, 1, 2])
def test_records_too_short_for_a_primitive(length: int) -> None:
    frame = Frame(64, 64)
    body = viewport(frame.job) + frame.nv_shader(solid(RED), vertices(), 1)
    for mode in range(2, 7):
        body += build(33, mode=mode, length=length if mode > 3 else 0, first=0)
    body += frame.vg_shader(solid(RED)) + build(41, type=4, length=length, address=frame.job.top)
    assert (frame.render(body) == BACKGROUND).all()
    assert not frame.reporter.items, frame.reporter.summary()


def test_more_records_than_can_be_drawn_end() -> None:
    frame = Frame(64, 64)
    shader = frame.nv_shader(solid(RED), vertices(), 1)
    record = build(33, mode=4, length=3, first=0)
    frame.render(viewport(frame.job) + shader + record * 5000)
    assert frame.reporter.has("CLE-034")
    frame = Frame(64, 64)
    frame.render(viewport(frame.job) + shader + build(42, type=4))
    assert frame.reporter.has("CLE-039")


def test_records_that_share_a_place_in_the_table() -> None:
    """Lists made of records are found by the record's address; here many hash to the same place."""
    frame = Frame(64, 64)
    job, room = frame.job, frame.job.room(0x100000)
    places: dict[int, list[int]] = {}
    for address in range(room, room + 0x100000, 16):
        slot = (address * FNV_PRIME & 0xFFFFFFFF) >> 7 & (2 * MAX_RECORDS - 1)
        places.setdefault(slot, []).append(address)
    same = max(places.values(), key=len)[:12]
    assert len(same) >= 6
    where = [(4 * k + 1, 8) for k in range(len(same))]
    corners = [corner for x, y in where for corner in ((x, y), (x + 3, y), (x, y + 40))]
    data = b"".join(nv_vertex(x, y, 0.5, 1.0) for x, y in corners)
    state = viewport(job) + frame.nv_shader(solid(RED), data)
    draws = [build(33, mode=4, length=3, first=3 * k) for k in range(len(same))]
    expected = frame.render(state + b"".join(draws))
    lists = b""
    for place, draw in zip(same, draws, strict=True):
        job.memory.write(place, draw + bytes([18]))
        lists += build(17, address=place)
    assert (frame.render(state + lists) == expected).all()
    assert (frame.render(state + lists * 3) == expected).all()
    assert (expected == RED).sum() > 40 * len(same)
    assert not frame.reporter.items, frame.reporter.summary()


def test_a_vector_list_without_end_in_a_sub_list() -> None:
    """The scan gives the sub-list up at once, however often it is drawn."""
    frame = Frame()
    sub_list = frame.job.put(viewport(frame.job) + frame.vg_shader(solid(RED)) + build(42, type=4))
    picture = frame.render(build(17, address=sub_list) * 50)
    assert (picture == BACKGROUND).all()
    assert frame.reporter.has("CLE-039")
    assert frame.reporter.has("CLE-034")
