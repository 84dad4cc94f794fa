"""Performance counters that only the model of frames knows."""

from functools import cache

import pytest
from tests.support.frame_jobs import tiny
from tests.timing.frames.recorded import Drawn

from vc4lab.timing.boards import speeds_of
from vc4lab.timing.chip import load_chip
from vc4lab.timing.frames.frame import Frame, count_bits, quads_of
from vc4lab.timing.graphics.counters import TEXTS, counters
from vc4lab.timing.graphics.model import FrameModel
from vc4lab.timing.graphics.result import FrameTiming
from vc4lab.v3d.counters import SOURCES

RUNS = ("glmark2_texture_texture-filter_mipmap", "glmark2_ideas", "kmscube_smooth", "sdl_testdraw2")
CLOCKS = (13, 14, 15)
CHIP = load_chip("videocore4")
SPEED = speeds_of(CHIP).of_board["pi3"]


@cache
def frames(name: str) -> tuple[Frame, ...]:
    return tuple(Drawn(name, True).frames[0])


@cache
def timed(name: str) -> tuple[FrameTiming, ...]:
    return tuple(FrameModel(CHIP, SPEED).run(frames(name)))


def span(timing: FrameTiming) -> int:
    """The clocks that modules were looked at."""
    first = timing.modules[0]
    return first.busy + first.blocked + first.starved


def test_they_are_those_that_the_core_does_not_have() -> None:
    found = timed(RUNS[0])[-1].counters
    assert set(found) == {source.id for source in SOURCES if not source.modelled}
    named = counters(timed(RUNS[0])[-1])
    assert named["clocks stalled on TMUs"] == found[17]
    assert set(named) == {TEXTS[number] for number in found}


@pytest.mark.parametrize("name", RUNS)
def test_qpus_are_idle_or_shade(name: str) -> None:
    for timing in timed(name):
        found = timing.counters
        assert all(value >= 0 for value in found.values())
        assert sum(found[number] for number in CLOCKS) == 12 * span(timing)
        shading = found[14] + found[15]
        assert sum(found[number] for number in (16, 17, 18, 19)) <= shading
        assert found[16] == sum(use.busy for use in timing.modules if use.module == "qpu")


@pytest.mark.parametrize("name", RUNS)
def test_caches(name: str) -> None:
    for timing in timed(name):
        found = timing.counters
        assert found[21] <= found[20]
        assert found[23] <= found[22] or found[22] == 0
        of_l2 = [use for use in timing.caches if use.cache == "l2"]
        assert (found[28], found[29]) == (of_l2[0].hits, of_l2[0].misses)
        assert found[26] == 0


@pytest.mark.parametrize("name", RUNS)
def test_quads_that_early_z_rejects(name: str) -> None:
    for frame, timing in zip(frames(name), timed(name), strict=True):
        blocks = frame.blocks
        covered = count_bits(quads_of(blocks["covered"])).sum()
        passed = count_bits(quads_of(blocks["flags"])).sum()
        assert covered - passed <= timing.counters[2] <= covered


def test_clocks_of_threads_are_those_of_qpus() -> None:
    """Of a program that does not share its QPU: from beginnings to ends, or by what they waited."""
    model = FrameModel(CHIP, SPEED)
    (timing,) = model.run([tiny(200)])
    spent = [sum(qpu.spent[kind] for qpu in model.machine.states["qpu"]) for kind in range(3)]
    assert timing.counters[14] == sum(spent[:2]) == 0
    assert timing.counters[15] == spent[2] > 0
