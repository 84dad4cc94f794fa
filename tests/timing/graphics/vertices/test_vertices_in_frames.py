"""Recorded frames with their vertices: all of it once, the same each time."""

from functools import cache

import pytest
from tests.support.frame_jobs import tiny, triangle
from tests.support.frame_vertices import TaskFeed
from tests.timing.frames.recorded import Drawn

from vc4lab.timing.boards import speeds_of
from vc4lab.timing.chip import load_chip
from vc4lab.timing.frames.frame import Frame
from vc4lab.timing.graphics.model import FrameModel
from vc4lab.timing.graphics.result import FrameTiming

RUNS = (
    "glmark2_ideas",
    "glmark2_loop_fragment-uniform_true",
    "glmark2_bump_bump-render_high-poly",  # more batches in a row without pixels than fit the VPM
    "kmscube_smooth",
    "sdl_testdraw2",
    "tri_arm64",
)


@cache
def drawn(name: str) -> Drawn:
    return Drawn(name, True)


def frames(name: str) -> tuple[Frame, ...]:
    return tuple(drawn(name).frames[0])


def model_of(shading: int = 100) -> FrameModel:
    chip = load_chip("videocore4")
    return FrameModel(chip, speeds_of(chip).of_board["pi3"], TaskFeed(chip, shading))


def timed(*found: Frame, shading: int = 100) -> list[FrameTiming]:
    return list(model_of(shading).run(found))


@pytest.mark.parametrize("name", RUNS)
def test_every_batch_is_fetched_and_shaded_once(name: str) -> None:
    model = model_of()
    timings = list(model.run(frames(name)))
    assert len(timings) == len(frames(name))
    feed = model.feed
    assert isinstance(feed, TaskFeed)
    shaded = fetched = 0
    for tables in feed.seen:
        assert tables.vertices is not None
        for thread in (0, 1):
            mine = tables.vertices.of(thread)
            assert (mine.batches["done"] == 1).all()
            assert (mine.batches["made"] == 1).all()
            shaded += int((mine.batches["shader"] >= 0).sum())
            fetched += int(mine.fetches["bytes"].sum())
    assert shaded == sum(int(qpu.batches) for qpu in model.machine.states["qpu"])
    states = model.machine.states
    assert states["attributes"][0].bytes == fetched
    assert states["vertex_cache"][0].rows == 0
    counts = drawn(name).counts[0]
    assert states["binner"][0].entries == counts["entries"]
    assert (
        sum(timing.primitives for timing in timings)
        == counts["primitives_valid"] - counts["primitives_empty"]
    )
    assert states["setup"][0].reversed == counts["primitives_reversed"]


@pytest.mark.parametrize("name", RUNS)
def test_two_runs_have_the_same_clocks(name: str) -> None:
    assert timed(*frames(name)) == timed(*frames(name))


def test_tiny_triangles_are_binned_in_34_clocks_each() -> None:
    (timing,) = timed(tiny())
    assert timing.binning / 20_000 == pytest.approx(34, rel=0.02)


def test_one_triangle_is_binned_in_3_us() -> None:
    (timing,) = timed(triangle())
    assert timing.binning / 250 == pytest.approx(3, rel=0.05)
