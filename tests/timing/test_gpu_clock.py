"""Jobs of running programs end when the chip would be done with them."""

from dataclasses import dataclass

import pytest

from vc4lab.timing.declare import StandsStill
from vc4lab.timing.frame_times import FrameTimer
from vc4lab.timing.gpu_clock import GpuClock

BINNING, RENDERING = 0.001, 0.004
"""Seconds of the frames below."""


@dataclass
class Timing:
    binning: int = 250_000
    rendering: int = 1_000_000


class Wall:
    """A clock on the wall that stands still until something waits."""

    def __init__(self) -> None:
        self.now = 100.0
        self.waits: list[float] = []
        self.gone = False

    def wait(self, seconds: float) -> bool:
        self.waits.append(seconds)
        if self.gone:
            return True
        self.now += seconds
        return False


@pytest.fixture
def wall(monkeypatch: pytest.MonkeyPatch) -> Wall:
    monkeypatch.setattr(
        "vc4lab.timing.graphics.model.FrameModel.run", lambda _self, frames: [Timing() for _ in frames]
    )
    return Wall()


def clock_of(wall: Wall, slower: float = 1.0) -> GpuClock:
    timer = FrameTimer("videocore4", "pi1", only=True)
    assert timer.hertz == 250e6
    return GpuClock(timer, slower, now=lambda: wall.now, wait=wall.wait)


def job(clock: GpuClock, ready: float, frames: int = 1) -> None:
    for _ in range(frames):
        clock.add(None)  # type: ignore[arg-type]
    clock.finish(ready)


def test_a_job_takes_what_the_chip_takes(wall: Wall) -> None:
    clock = clock_of(wall)
    wall.now += 0.002  # it took so long to draw it
    job(clock, 100.0)
    assert wall.now == pytest.approx(100.0 + BINNING + RENDERING)
    assert clock.lines() == ["timing: all jobs (1) ended when the chip was done with them"]


def test_a_job_begins_when_the_one_before_is_done(wall: Wall) -> None:
    """Those that were handed in together are binned while others are rendered."""
    clock = clock_of(wall)
    for number in range(3):
        job(clock, 100.0)
        assert wall.now == pytest.approx(100.0 + BINNING + (number + 1) * RENDERING)
    job(clock, 101.0)  # nothing is left of those before
    assert wall.now == pytest.approx(101.0 + BINNING + RENDERING)


def test_parts_of_a_job_follow_one_another(wall: Wall) -> None:
    clock = clock_of(wall, slower=10.0)
    job(clock, 100.0, frames=2)
    assert wall.now == pytest.approx(100.0 + 10 * (BINNING + 2 * RENDERING))
    assert clock.lines()[0].startswith("timing: the chip is made 10 times slower: ")
    job(clock, 100.0, frames=0)
    assert clock.jobs == 1


def test_what_the_simulator_holds_up_is_said(wall: Wall) -> None:
    clock = clock_of(wall)
    for took in (0.05, 0.05, 0.001):
        ready = wall.now
        wall.now += took
        job(clock, ready)
    assert (clock.jobs, clock.late) == (3, 2)
    assert clock.lines() == [
        "timing: 1 of 3 jobs ended when the chip was done with them; the simulator held the "
        "program up in 2: a job takes it 33.67 ms, the chip 5",
        "timing: with --timing-slower 10 nine of ten would end in time",
    ]
    assert wall.waits == [pytest.approx(0.004)]


def test_nothing_waits_for_a_program_that_is_gone(wall: Wall) -> None:
    clock = clock_of(wall, slower=1e6)
    wall.gone = True
    job(clock, 100.0)
    assert wall.waits == [60.0], "at once at most"
    assert clock.lines() == []
    own = GpuClock(FrameTimer("videocore4", "pi1", only=True), 1e6)
    own.add(None)  # type: ignore[arg-type]
    own.end()
    own.finish(0.0)


def test_a_model_that_stands_still_holds_nothing_up(monkeypatch: pytest.MonkeyPatch) -> None:
    def still(*_arguments: object) -> None:
        raise StandsStill("nothing moves")

    monkeypatch.setattr("vc4lab.timing.graphics.model.FrameModel.run", still)
    wall = Wall()
    clock = clock_of(wall)
    job(clock, 100.0)
    assert wall.now == 100.0
    assert clock.lines() == ["timing: jobs ended as soon as they were drawn: nothing moves"]
