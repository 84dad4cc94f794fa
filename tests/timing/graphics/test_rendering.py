"""The rendering side of frames, with simple modules in the place of QPUs and vertex shading."""

from __future__ import annotations

from functools import cache

import pytest
from tests.support.frame_standins import PlainFeed
from tests.timing.frames.recorded import Drawn

from vc4lab.timing.chip import load_chip
from vc4lab.timing.frames.frame import Frame
from vc4lab.timing.graphics.model import FrameModel
from vc4lab.timing.graphics.result import FrameTiming

RUNS = ("glmark2_ideas", "glmark2_loop_fragment-uniform_true", "kmscube_smooth", "tri_arm64")


@cache
def frames(name: str) -> tuple[Frame, ...]:
    return tuple(Drawn(name, True).frames[0])


def timed(name: str) -> list[FrameTiming]:
    chip = load_chip("videocore4")
    return list(FrameModel(chip, 12.0, PlainFeed(chip)).run(frames(name)))


@pytest.mark.parametrize("name", RUNS)
def test_every_piece_is_processed_once(name: str) -> None:
    for frame, timing in zip(frames(name), timed(name), strict=True):
        totals = frame.totals()
        assert timing.tiles == len(frame.tiles)
        assert timing.primitives == totals["covered_primitives"]
        assert timing.quads == totals["covered_quads"]


@pytest.mark.parametrize("name", RUNS)
def test_two_runs_have_the_same_clocks(name: str) -> None:
    assert timed(name) == timed(name)
