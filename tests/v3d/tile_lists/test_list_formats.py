"""How tile lists know their format (record 56), and lists that are broken."""

import ctypes

import numpy as np
import pytest
from tests.support.frames import BACKGROUND, GREEN, RED, Frame, inside, solid
from tests.support.jobs import BFC, RFC, nv_vertex, viewport
from tests.support.tile_lists import final_state, scan_tile_lists, segment_list
from tests.v3d.cle.test_vg import TRIANGLES, array
from tests.v3d.tile_lists.test_tile_lists import used_set

from vc4lab.memory import GuestMemory
from vc4lab.records.control import build
from vc4lab.v3d.state.render_state import default_state, state_bytes
from vc4lab.v3d.tile_lists import scan_context as sc
from vc4lab.v3d.tile_lists.scanner import ListScanner
from vc4lab.v3d.unknowns import DEFAULT_UNKNOWNS

ENGINES = ("jit", "interpreter")
A, B, C = (10.0, 10.0), (30.0, 110.0), (60.0, 12.0)
INDEXED, POSITIONS = bytes([56, 0x12]), bytes([56, 0x32])


def draw(frame: Frame, binning: tuple[int, int], lists: int, rendering: bytes) -> np.ndarray:
    """A frame whose rendering list begins with `rendering`."""
    job = frame.job
    start, end = job.rendering(lists, frame.surface, clear=BACKGROUND)
    data = rendering + job.memory.read(start, end - start)
    start = job.put(data)
    job.run(frame.v3d, binning, (start, start + len(data)))
    return frame.pixels()


def triangles(frame: Frame, colour: int = RED) -> bytes:
    vertices = b"".join(nv_vertex(x, y, 0.5, 1.0) for x, y in (A, B, C))
    shader = frame.nv_shader(solid(colour), vertices)
    return viewport(frame.job) + shader + build(33, mode=4, length=3)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("choice", ["first_list", "separate"])
def test_the_rendering_list_says_another_format(choice: str, engine: str) -> None:
    """Frame after frame, with no record 56 in the binning list."""
    unknowns = DEFAULT_UNKNOWNS.with_(tile_list_format=choice)
    frame = Frame(unknowns=unknowns, engine=engine)
    told = []
    for number in range(3):
        frame.job.memory.fill(frame.surface, 128 * 128 * 4)
        start, end, lists = frame.job.binning(triangles(frame))
        picture = draw(frame, (start, end), lists, POSITIONS)
        assert ((picture == RED) == inside(frame, (A, B, C))).all(), number
        told.append(INDEXED in frame.job.memory.read(lists, 27))
    assert not frame.reporter.items
    assert told == [True, choice == "first_list", choice == "first_list"]


@pytest.mark.parametrize("engine", ENGINES)
def test_a_format_that_both_lists_say_is_not_binned(engine: str) -> None:
    """As Broadcom's VG driver counts on: 0x32 before record 6, and in the rendering list."""
    frame = Frame(engine=engine)
    for _ in range(3):
        frame.job.memory.fill(frame.surface, 128 * 128 * 4)
        body = viewport(frame.job) + frame.vg_shader(solid(RED)) + array(frame, TRIANGLES, A, B, C)
        start, end, lists = frame.job.binning(body)
        data = frame.job.memory.read(start, end - start)
        data = data[:16] + POSITIONS + data[16:]  # between records 112 and 6
        start = frame.job.put(data)
        picture = draw(frame, (start, start + len(data)), lists, POSITIONS)
        assert ((picture == RED) == inside(frame, (A, B, C))).all()
        for tile in range(4):  # they have 48, and no record 56 before it
            records = frame.job.memory.read(lists + 32 * tile, 26)
            assert 56 not in records[:1], records.hex()
            assert POSITIONS not in records
    assert not frame.reporter.items


@pytest.mark.parametrize("level", ["list", "piece"])
def test_formats_of_tile_lists_are_their_own(level: str) -> None:
    """What they say stays with them, from list to list; the rendering list keeps its own."""
    memory = GuestMemory()
    one = bytes([48, 0x81, 0, 0, 1, 0, 2, 0, 0x80])
    memory.write(0x1000, one + bytes([56, 0x10, 48, 0x81, 7, 0, 0x80, 18]))
    memory.write(0x1100, bytes([48, 0x81, 9, 0, 0x80, 18]))
    pieces = [(0x1000, sc.NO_END), (0x1100, sc.NO_END)]
    if level == "piece":  # of a rendering list, which enters both and has a list of positions
        xy = bytes([48, 0x81]) + bytes(12) + bytes([0x80])
        data = b"".join(build(17, address=start) + xy for start, _ in pieces)
        memory.write(0x2000, data)
        pieces = [(0x2000, 0x2000 + len(data))]
    scanner = ListScanner(memory, depth=int(level == "list"), separate_format=True)
    state = default_state()
    state.list_format = 0x32
    scanner.set_state(state_bytes(state))
    columns = [[pair[side] for pair in pieces] for side in (0, 1)]
    starts, ends = ((ctypes.c_int32 * len(pieces))(*column) for column in columns)
    where = ctypes.addressof(starts), ctypes.addressof(ends), len(pieces)
    result = scanner.scan(*where)
    assert not result.errors
    kinds = [draw.state.list_format for draw in result.draws]
    assert kinds == ([0x12, 0x10] if level == "list" else [0x12, 0x10, 0x32])
    assert final_state(result).list_format == 0x32
    assert scanner.context.tile_format == 0x10


ENDLESS = bytes([48, 0x82, 0, 0])


def test_an_endless_list_leaves_no_trace() -> None:
    """Neither a segment nor vertices; what stands before it does."""
    memory = GuestMemory()
    good = bytes([48, 0x81, 40, 0, 41, 0, 42, 0, 0x80])
    bad = bytes([48, 0x81, 9, 0, 41, 0, 90, 1]) + ENDLESS[1:]
    for start, first in ((0x1000, good), (0x2000, bytes([56, 0x12]))):
        memory.write(start, first + bytes([1]) * (24 - len(first)) + bad + good)
    memory.write(0x3000, good + bytes([18]))
    result = scan_tile_lists(memory, [0x1000, 0x2000, 0x3000], default_state())
    assert [(e.tile, e.reason) for e in result.errors] == [(0, sc.ENDLESS), (1, sc.ENDLESS)]
    assert [(tile, draw, where) for tile, draw, where, *_ in segment_list(result)] == [
        (0, 0, 0x1000),
        (2, 0, 0x3000),
    ]
    (draw,) = result.draws
    assert (draw.first, draw.last, draw.primitives) == (40, 42, 2)
    assert used_set(draw) == {40, 41, 42}


@pytest.mark.parametrize("engine", ENGINES)
def test_broken_lists_are_named_once_and_passed_over(engine: str) -> None:
    """In every tile, after a list that is whole; two kinds of fault, frame after frame."""
    frame = Frame(engine=engine)
    for number in range(3):
        frame.job.memory.fill(frame.surface, 128 * 128 * 4)
        start, end, lists = frame.job.binning(triangles(frame, GREEN))
        frame.job.run(frame.v3d, (start, end), (0, 0))
        endless, halted = frame.job.put(ENDLESS), frame.job.put(b"\x00")
        data = build(114, colour=BACKGROUND, colour_high=BACKGROUND, z=0xFFFFFF)
        data += build(113, address=frame.surface, width=128, height=128, format=1)
        data += build(115) + build(28)
        for tile in range(4):
            data += build(115, column=tile & 1, row=tile >> 1)
            data += build(17, address=lists + 32 * tile)
            data += build(17, address=endless if tile else halted)
            data += build(25 if tile == 3 else 24)
        frame.run(data)
        picture = frame.pixels()
        assert ((picture == GREEN) == inside(frame, (A, B, C))).all(), number
    assert frame.v3d.read(RFC) == 3
    assert frame.v3d.read(BFC) == 3
    assert [item.code for item in frame.reporter.items] == ["CLE-034"] * 2
    assert "2 more" in frame.reporter.items[1].message
    assert frame.reporter.counts["CLE-034"] == 12


def test_long_lists_beside_an_endless_one() -> None:
    """A frame with an endless list has less patience with the others, the next frame not."""
    memory = GuestMemory()
    long = bytes([48, 0x81, 0, 0, 1, 0, 2, 0]) + bytes(sc.BUDGET_AFTER_ENDLESS) + b"\x80\x12"
    memory.write(0x10000, long)
    memory.write(0x1000, ENDLESS)
    assert not scan_tile_lists(memory, [0x10000] * 3, default_state()).errors
    found = scan_tile_lists(memory, [0x10000, 0x1000, 0x10000, 0x1000], default_state()).errors
    assert [(error.tile, error.reason) for error in found] == [(tile, sc.ENDLESS) for tile in (1, 2, 3)]
