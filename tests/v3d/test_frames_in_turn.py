"""Frames one after the other, and tiles that are drawn more than once."""

from typing import Any

import numpy as np
import pytest
from tests.support.frames import ARRAY, BACKGROUND, CORNERS, RED, Frame, inside, solid, triangle
from tests.support.jobs import CT0CA, CT0EA, CT1CA, CT1EA, RFC, viewport

from vc4lab.records.control import build
from vc4lab.v3d.draws import frame as frames
from vc4lab.v3d.tiles.collector import LAST_FRAME
from vc4lab.v3d.tiles.job import NativeFrame


def test_a_tile_drawn_twice_keeps_the_order() -> None:
    frame = Frame(64, 64)
    job = frame.job
    red = frame.nv_shader(solid(RED), triangle((0, 0), (0, 128), (128, 0)), 0)
    start, end, first = job.binning(viewport(job) + red + ARRAY)
    job.run(frame.v3d, (start, end), job.rendering(first, frame.surface))
    green = frame.nv_shader(solid(0xFF00FF00), triangle((0, 0), (0, 64), (64, 0)), 0)
    start, end, second = job.binning(viewport(job) + green + ARRAY)
    frame.v3d.write(CT0CA, start)
    frame.v3d.write(CT0EA, end)
    data = build(113, address=frame.surface, width=64, height=64, format=1)
    for lists, last in ((first, 24), (second, 25)):
        data += build(115) + build(17, address=lists) + build(last)
    place = job.put(data)
    frame.v3d.write(CT1CA, place)
    frame.v3d.write(CT1EA, place + len(data))
    picture = frame.pixels()
    assert picture[0, 0] == 0xFF00FF00
    assert picture[63, 63] != RED  # the second store covers the first


@pytest.mark.parametrize("other", [0, 3])
def test_a_load_that_waits_for_a_tile_drawn_before_keeps_its_surface(other: int) -> None:
    """The frame is drawn between the load and its tile; `other` surfaces were loaded before."""
    frame = Frame(64, 64)
    job, size = frame.job, 64 * 64 * 4
    surfaces = [job.put(bytes([0x10 + number]) * size, 4096) for number in range(other + 1)]
    data = build(113, address=frame.surface, width=64, height=64, format=1)
    for number, source in enumerate(surfaces):
        data += build(115, column=number) + build(29, buffer=1, address=source, format=0)
        data += build(24)
    data += build(115) + build(24)
    data += build(115) + build(29, buffer=1, address=surfaces[-1], format=0) + build(25)
    place = job.put(data)
    frame.v3d.write(CT1CA, place)
    frame.v3d.write(CT1EA, place + len(data))
    assert (frame.pixels() == 0x10101010 + other * 0x01010101).all()
    assert not frame.reporter.items, frame.reporter.summary()


def test_what_a_frame_left_in_the_tile_buffer_is_stored_in_the_next() -> None:
    frame = Frame(64, 64)
    first = frame.job.room(64 * 64 * 4, 4096)
    kept = {"disable_colour_clear": 1, "disable_zs_clear": 1, "last_tile": 1}
    data = build(114, colour=RED, colour_high=RED)
    data += build(113, address=frame.surface, width=64, height=64, format=1)
    data += build(115) + build(28) + build(115) + build(28, buffer=1, address=first, **kept)
    data += build(114) + build(115) + build(25)
    place = frame.job.put(data)
    frame.v3d.write(CT1CA, place)
    frame.v3d.write(CT1EA, place + len(data))
    assert (frame.pixels() == RED).all()
    assert frame.v3d.read(RFC) == 2


def test_a_store_that_is_not_simulated_ends_a_frame() -> None:
    frame = Frame(64, 64)
    data = build(113, address=frame.surface, width=64, height=64, format=1)
    data += build(115) + build(28, buffer=6, last_tile=1)
    place = frame.job.put(data)
    frame.v3d.write(CT1CA, place)
    frame.v3d.write(CT1EA, place + len(data))
    assert frame.v3d.read(RFC) == 1
    assert frame.reporter.has("CLE-004")


def test_what_comes_after_the_end_of_a_frame_is_drawn() -> None:
    frame = Frame(128, 64)
    data = build(114, colour=RED, colour_high=RED)
    data += build(113, address=frame.surface, width=128, height=64, format=1)
    data += build(115) + build(25) + build(115, column=1) + build(24)
    place = frame.job.put(data)
    frame.v3d.write(CT1CA, place)
    frame.v3d.write(CT1EA, place + len(data))
    assert ((frame.pixels() == RED) == (np.arange(128) >= 64)).all()
    assert frame.reporter.has("CLE-020")


def test_a_tile_of_an_earlier_frame_is_not_drawn_twice() -> None:
    """Frames are numbered in a circle; a tile is known by the frame that stored it last."""
    frame = Frame(128, 64)
    drawn: list[int] = []
    frame.v3d.listeners.frame_drawn.subscribe(lambda event: drawn.append(len(event.tiles)))
    first = build(113, address=frame.surface, width=128, height=64, format=1)
    first += build(115, column=2) + build(24)
    once, twice = build(115, column=1) + build(24), 2 * (build(115) + build(24))
    lists = {}
    for tiles in (b"", once, twice):
        data = first + tiles + build(115, column=3) + build(25)
        start = frame.job.put(data)
        lists[tiles] = start, start + len(data)
    for number in range(3 * LAST_FRAME):
        tiles = b"" if number % LAST_FRAME else once
        if number > 2 * LAST_FRAME:
            tiles = twice
        drawn.clear()
        for register, place in zip((CT1CA, CT1EA), lists[tiles], strict=True):
            frame.v3d.write(register, place)
        assert drawn == {b"": [2], once: [3], twice: [2, 2]}[tiles], number


@pytest.mark.parametrize("engine", ["jit", "interpreter"])
def test_a_mode_begins_another_frame_though_the_last_has_no_end(engine: str) -> None:
    frame = Frame(128, 64, engine=engine)
    job, first = frame.job, frame.surface
    second = job.room(128 * 64 * 4 + 4096)
    data = build(114, colour=RED, colour_high=RED)
    data += build(113, address=first, width=128, height=64, format=1)
    data += build(115) + build(28) + build(115) + build(24)
    data += build(113, address=second, width=128, height=64, format=1)
    data += build(115, column=1) + build(25)
    place = job.put(data)
    frame.v3d.write(CT1CA, place)
    frame.v3d.write(CT1EA, place + len(data))
    left = np.arange(128) < 64
    for surface, drawn in ((first, left), (second, ~left)):
        picture = job.memory.array(surface, 128 * 64, "<u4").reshape(64, 128)
        assert ((picture == RED) == drawn).all()


@pytest.mark.parametrize("kept", [64, 1])
def test_frames_of_several_surfaces_in_turn(kept: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their arrays are made once, if there is room for them, and are each frame's own."""
    monkeypatch.setattr(frames, "MOST_FRAMES", kept)
    made: list[int] = []
    begin = NativeFrame.__init__

    def counted(self: NativeFrame, *arguments: Any, **options: Any) -> None:
        made.append(options["count"])
        begin(self, *arguments, **options)

    monkeypatch.setattr(NativeFrame, "__init__", counted)
    frame = Frame()
    surfaces = [frame.surface, frame.job.room(frame.job.width * frame.job.height * 4 + 4096)]
    other = ((20, 100), (100, 100), (60, 20))
    for turn in range(3):
        for place, corners in zip(surfaces, (CORNERS, other), strict=True):
            frame.surface = place
            colour = RED + 0x1000 * turn
            shader = frame.nv_shader(solid(colour), triangle(*corners), 0)
            picture = frame.bin(viewport(frame.job) + shader + ARRAY)
            assert set(np.unique(picture)) == {colour, BACKGROUND}
            assert ((picture == colour) == inside(frame, corners)).all()
    assert len(made) == (2 if kept > 1 else 6)
    assert not frame.reporter.items
