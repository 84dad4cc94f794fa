"""Overlays of textures and times: levels as they were sampled, misses and clocks as the model counts them."""

from __future__ import annotations

import numpy as np
import pytest
from tests.debug.frame_scene import BAND, BANDS, minified
from tests.debug.test_frames import looked

from vc4lab.debug.frame.capture import Capture
from vc4lab.debug.frame.overlays import overdraw
from vc4lab.debug.frame.texture_overlays import NOTHING, level_map, timed_maps
from vc4lab.debug.frame.work import recorded_work
from vc4lab.timing.frame_times import FrameTimer
from vc4lab.timing.graphics.model import FrameModel


def test_levels_are_those_that_the_colours_show() -> None:
    frame = Capture(minified()).frame()
    picture, levels = np.asarray(frame.picture)[..., 0].astype(int), level_map(frame, BANDS)
    drawn = levels != NOTHING
    assert drawn.sum() == BANDS * BAND * picture.shape[1]
    assert (picture[drawn] - 0x10 == levels[drawn]).all()
    assert set(levels[drawn].tolist()) == {0, 1, 2}
    assert set(level_map(frame, 1)[drawn].tolist()) == {NOTHING, 0}
    colours = frame.overlay("levels").getcolors()
    assert colours is not None
    assert len(colours) == BANDS + 1


def test_a_level_that_a_program_names() -> None:
    frame = looked("glmark2_texture_texture-filter_mipmap").frame()
    assert set(level_map(frame, 1).flat) == {1}, "a copy of level 1"
    plain = looked("kmscube_smooth").frame()
    assert set(level_map(plain, 6).flat) == {NOTHING}


@pytest.mark.parametrize("name", ["glmark2_texture_texture-filter_linear", "kmscube_smooth", "glmark2_ideas"])
def test_the_sums_are_those_of_the_model(name: str) -> None:
    frame = looked(name).frame()
    draw = len(frame.draws)
    maps = timed_maps(frame, draw)
    ran = overdraw(frame, draw) > 0
    assert not maps.clocks[~ran].any()
    assert not maps.misses[~ran].any()
    work, _event = recorded_work(frame, frame.job_of(draw), draw)
    timer = FrameTimer()
    model = FrameModel(timer.chip, timer.speed)
    (timing,) = model.run([work])
    missed = sum(one.misses for one in timing.caches if one.cache.startswith("t"))
    assert maps.misses.sum() == pytest.approx(missed, abs=1e-3)
    assert (missed > 0) == ("texture" in name)
    assert maps.frame_clocks == timing.clocks
    qpus, threads = 12, 2
    assert 0 < maps.clocks.sum() <= qpus * threads * timing.clocks
    assert timed_maps(frame, draw).clocks.tolist() == maps.clocks.tolist()
