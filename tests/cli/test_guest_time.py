"""Guest time that follows the model: BFC and RFC count when the chip would be done."""

from collections.abc import Iterator

import pytest
from tests.support.frames import BACKGROUND, Frame, solid
from tests.support.guest_time import HandTime
from tests.support.jobs import BFC, CT0CA, CT0EA, CT1CA, CT1EA, RFC, nv_vertex, viewport

from vc4lab.cli.boot import timed_board
from vc4lab.cli.live_timing import ListClocks, LiveTiming
from vc4lab.records.control import build
from vc4lab.soc.board import BOARDS
from vc4lab.timing.chip import load_chip
from vc4lab.timing.declare import StandsStill
from vc4lab.timing.frame_times import FrameTimer, model_of
from vc4lab.timing.frames.feed import FrameFeed

HERTZ = 250_000_000
CORNERS = ((320, 10), (10, 350), (630, 350))


def scene() -> tuple[Frame, tuple[int, int], tuple[int, int]]:
    """A triangle in 640x360; its lists."""
    frame = Frame(640, 360)
    vertices = b"".join(nv_vertex(x, y, 0.5, 1.0) for x, y in CORNERS)
    body = viewport(frame.job) + frame.nv_shader(solid(0xFF0000FF), vertices)
    start, end, lists = frame.job.binning(body + build(33, mode=4, length=3, first=0))
    rendering = frame.job.rendering(lists, frame.surface, clear=BACKGROUND)
    return frame, (start, end), rendering


def moments(frame: Frame, binning: tuple[int, int], rendering: tuple[int, int]) -> list[int]:
    """Clocks until BFC counts, and from then until RFC does."""
    time = HandTime.of(frame.v3d, HERTZ)
    found = []
    for first, last, (start, end) in ((CT0CA, CT0EA, binning), (CT1CA, CT1EA, rendering)):
        begin = time.moment
        frame.v3d.write(first, start)
        frame.v3d.write(last, end)
        found.append((time.go_on() - begin) * HERTZ // 1_000_000_000)
    assert (frame.v3d.read(BFC), frame.v3d.read(RFC)) == (1, 1)
    return found


@pytest.fixture
def live() -> Iterator[LiveTiming]:
    timing = LiveTiming("videocore4", "pi1", guest_time=True)
    yield timing
    timing.end()


def model_says() -> list[int]:
    """Clocks of the two lists, each on its own."""
    frame, binning, rendering = scene()
    with FrameFeed(frame.v3d) as feed:
        for first, last, (start, end) in ((CT0CA, CT0EA, binning), (CT1CA, CT1EA, rendering)):
            frame.v3d.write(first, start)
            frame.v3d.write(last, end)
    timer = FrameTimer("videocore4", "pi1", only=True)
    one = next(iter(model_of(timer.chip, timer.speed).run(feed.take())))
    return [one.binning, one.rendering]


def test_lists_take_what_the_model_says(live: LiveTiming) -> None:
    frame, binning, rendering = scene()
    estimate = moments(frame, binning, rendering)
    frame, binning, rendering = scene()
    live.attach(frame.v3d)
    found = moments(frame, binning, rendering)
    assert found != estimate
    assert found == pytest.approx(model_says(), rel=0.01, abs=8)
    live.end()
    assert len(live.milliseconds) == 1


def test_a_model_that_stands_still_leaves_the_estimate(
    live: LiveTiming, monkeypatch: pytest.MonkeyPatch
) -> None:
    def still(*_arguments: object) -> None:
        raise StandsStill("nothing moves")

    frame, binning, rendering = scene()
    estimate = moments(frame, binning, rendering)
    monkeypatch.setattr("vc4lab.timing.graphics.model.FrameModel.run", still)
    frame, binning, rendering = scene()
    live.attach(frame.v3d)
    assert moments(frame, binning, rendering) == estimate
    live.end()
    assert "timing: guest time went on with the estimate: nothing moves" in live.lines()


def test_what_is_drawn_after_the_last_picture_is_not_counted(live: LiveTiming) -> None:
    for number in range(2):
        frame, binning, rendering = scene()
        live.attach(frame.v3d)
        moments(frame, binning, rendering)
        if number == 0:
            live.picture_shown(1)
    live.end()
    assert len(live.milliseconds) == 2
    assert "timing: 1 pictures in 1 jobs take" in live.lines(1)[0]
    assert "timing: 2 frames take" in live.lines()[0]


def test_parts_of_a_frame_add_up() -> None:
    timer = FrameTimer("videocore4", "pi1", only=True)
    clocks = ListClocks(timer)
    frame, binning, rendering = scene()
    with FrameFeed(frame.v3d) as feed:
        moments(frame, binning, rendering)
    (whole,) = feed.take()
    clocks.rendered(whole)
    once = clocks.take(1)
    clocks.rendered(whole)
    clocks.rendered(whole)
    assert once is not None
    assert clocks.take(1) == pytest.approx(2 * once, rel=0.02)
    assert clocks.take(1) is None
    assert clocks.take(0) is None


def test_the_board_that_is_booted_is_timed() -> None:
    names = {name: timed_board(name) for name in (*BOARDS, "raspi0", "nothing")}
    assert names.pop("nothing") == ""
    assert names["zero"] == names["raspi0"] == "pi0"
    assert names["pi2-1.2"] == "pi2"
    assert set(names.values()) == set(load_chip("videocore4").boards)
