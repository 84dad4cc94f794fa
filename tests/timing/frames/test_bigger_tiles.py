"""Frames in bigger tiles: all is there, nothing is there twice, and the order is that of draws."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from tests.support.frame_timings import recorded

from vc4lab.timing.boards import speeds_of
from vc4lab.timing.changes import changed, read_setting
from vc4lab.timing.chip import load_chip
from vc4lab.timing.compute.model import NotTimed
from vc4lab.timing.frame_times import clocks_of
from vc4lab.timing.frames.bigger_tiles import bigger_tiles
from vc4lab.timing.frames.columns import starts
from vc4lab.timing.frames.frame import Frame
from vc4lab.timing.graphics.vertices.binning_work import primitives_of

RUNS = (
    "glmark2_build_use-vbo_true",
    "glmark2_bump_bump-render_normals",
    "glmark2_ideas",  # with clip records
    "kmscube_smooth",
    "sdl_testdraw2",  # points, lines and triangles
)
EVERYTHING = 64
"""Times the side of a tile: one tile for all."""


def drawn(name: str) -> list[Frame]:
    """The frames of a run that draw."""
    return [frame for frame in recorded(name) if len(frame.lists)]


def primitives(frame: Frame) -> list[tuple[int, ...]]:
    """Of each primitive: its tile's corner, draw, clip record and sorted vertices."""
    found = []
    for row in frame.lists:
        tile = frame.tiles[row["tile"]]
        each = row["vertices"] // max(row["primitives"], 1)
        mine = frame.vertices[row["first_vertex"] :][: row["vertices"]].reshape(-1, each)
        for number, corners in enumerate(np.sort(mine, axis=1).tolist()):
            clip = int(row["clip"]) if number == 0 else 0
            found.append((int(tile["x"]), int(tile["y"]), int(row["draw"]), clip, *corners))
    return found


def blocks(frame: Frame) -> Counter[tuple[int, ...]]:
    """Blocks by their pixels on the screen, with their primitive's vertices and work."""
    every = primitives(frame)
    firsts = starts(frame.lists["primitives"])
    first_request, first_line = frame.first_request, frame.first_line
    found: Counter[tuple[int, ...]] = Counter()
    for number, (owner, row) in enumerate(zip(frame.list_of_block, frame.blocks, strict=True)):
        tile = frame.tiles[frame.lists["tile"][owner]]
        x, y = tile["x"] + (row["place"] & 0xFF), tile["y"] + (row["place"] >> 8 & 0xFF)
        asked = range(first_request[number], first_request[number + 1])
        lines = [int(frame.lines[first_line[one] : first_line[one + 1]].sum(dtype=np.int64)) for one in asked]
        work = (int(row["covered"]), int(row["flags"]), int(row["instructions"]), *lines)
        found[(int(x), int(y), *every[firsts[owner] + row["position"]][2:], *work)] += 1
    return found


@pytest.mark.parametrize("name", RUNS)
def test_a_bigger_tile_has_what_its_tiles_have(name: str) -> None:
    frame = drawn(name)[0]
    its_blocks, its_primitives = blocks(frame), primitives(frame)
    for across, down in ((2, 1), (1, 2), (2, 2)):
        bigger = bigger_tiles(frame, across, down)
        width, height = frame.tile_width * across, frame.tile_height * down
        assert (bigger.tile_width, bigger.tile_height) == (width, height)
        assert blocks(bigger) == its_blocks
        wanted = {(x // width * width, y // height * height, *rest) for x, y, *rest in its_primitives}
        assert set(primitives(bigger)) == wanted
        same = ("quads_valid", "quads_depth_passed", "texture_quads", "covered_quads", "bytes_moved")
        before, after = frame.totals(), bigger.totals()
        assert {key: after[key] for key in same} == {key: before[key] for key in same}
        assert (bigger.tiles["lists"] > 0).sum() <= (frame.tiles["lists"] > 0).sum()


@pytest.mark.parametrize("name", [name for name in RUNS if name != "glmark2_ideas"])
def test_one_tile_has_each_primitive_that_was_binned_once(name: str) -> None:
    for frame in drawn(name):
        whole = bigger_tiles(frame, EVERYTHING, EVERYTHING)
        (binning,) = [one for one in frame.binnings if len(one.draws)]
        draws = binning.draws
        assert not draws["clipped"].any()
        made = primitives_of(draws["mode"], draws["op"], draws["vertices"])
        left = made - draws["rejected"] - draws["degenerate"] - draws["outside"]
        assert whole.lists["primitives"].sum() == left.sum()
        assert sum(one.draws["entries"].sum() for one in whole.binnings) == left.sum()
        assert [one.tiles for one in whole.binnings] == [(1, 1)] * len(whole.binnings)


def test_primitives_of_an_array_are_in_its_order() -> None:
    for frame in drawn("glmark2_build_use-vbo_true"):
        whole = bigger_tiles(frame, EVERYTHING, EVERYTHING)
        assert (np.diff(whole.vertices[::3].astype(np.int64)) > 0).all()


def test_lists_that_contradict_each_other_have_each_primitive_once() -> None:
    """As a program may write them: every other tile has its primitives the other way round."""
    frame = drawn("glmark2_build_use-vbo_true")[0]
    vertices = frame.vertices.copy()
    for row in frame.lists[(frame.lists["tile"] & 1 == 1) & (frame.lists["primitives"] > 0)]:
        size = row["vertices"] // row["primitives"]
        mine = vertices[row["first_vertex"] :][: row["vertices"]].reshape(-1, size)
        mine[:] = mine[::-1].copy()
    other = replace(frame, vertices=vertices)
    found = primitives(bigger_tiles(other, EVERYTHING, EVERYTHING))
    assert sorted(found) == sorted({(0, 0, *rest) for _, _, *rest in primitives(other)})


def test_what_cannot_be_told_apart_is_refused() -> None:
    frame = drawn("kmscube_smooth")[0]
    lists = frame.lists.copy()
    lists["vertices"][1] = 0
    with pytest.raises(NotTimed, match="coordinates"):
        bigger_tiles(replace(frame, lists=lists), 2, 2)
    with pytest.raises(NotTimed, match="as a whole"):
        bigger_tiles(replace(frame, lost=1), 2, 2)
    assert bigger_tiles(frame, 1, 1) is frame
    with pytest.raises(ValueError, match="from 64 to 128"):
        read_setting("tile_buffer.width=32", load_chip("videocore4"))


def test_the_chip_s_file_says_how_big_tiles_are() -> None:
    frames = drawn("glmark2_build_use-vbo_true")
    chip = load_chip("videocore4")
    bigger = changed(chip, {("tile_buffer", "width"): 128, ("tile_buffer", "height"): 128})
    speed = speeds_of(chip).of_board["pi3"]
    plain, big = (clocks_of(one, speed, frames) for one in (chip, bigger))
    assert big == clocks_of(bigger, speed, frames)
    assert 0.8 * sum(plain) < sum(big) < sum(plain)
