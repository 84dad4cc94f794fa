"""List threads that do not wait for each other: what a frame sees, and what is reported."""

import numpy as np
import pytest
from tests.support.frames import ARRAY, BACKGROUND, CORNERS, RED, Frame, solid, triangle
from tests.support.guest_time import HandTime
from tests.support.jobs import BFC, CT0CA, CT0EA, CT1CA, CT1EA, RFC, viewport

from vc4lab.diagnostics import Reporter, StrictStop
from vc4lab.options import GpuOptions
from vc4lab.records.control import build
from vc4lab.v3d.core import V3D
from vc4lab.v3d.registers import BY_NAME

CT0CS = BY_NAME["CT0CS"].offset
RESET = 1 << 15
FLUSH, INCREMENT, WAIT = build(4), build(7), build(8)
UPPER = ((64, 8), (8, 60), (120, 60))


class TwoLists(Frame):
    """A frame with a triangle, whose lists are started one by one."""

    def __init__(self, signals: bool = False, waits: bool = False, **options: object) -> None:
        super().__init__(options=GpuOptions(**options))  # type: ignore[arg-type]
        self.time = HandTime.of(self.v3d)
        self.binning, self.rendering = self.lists(CORNERS, signals, waits)

    def lists(
        self, corners: tuple[tuple[float, float], ...], signals: bool = False, waits: bool = False
    ) -> tuple[tuple[int, int], tuple[int, int]]:
        """A binning and a rendering list with tile memory of their own."""
        job = self.job
        body = viewport(job) + self.nv_shader(solid(RED), triangle(*corners)) + ARRAY
        start, end, lists = job.binning(body, INCREMENT * signals + FLUSH)
        first, last = job.rendering(lists, self.surface, clear=BACKGROUND)
        if waits:
            data = WAIT + job.memory.read(first, last - first)
            first = job.put(data)
            last = first + len(data)
        return (start, end), (first, last)

    def bin_only(self, lists: tuple[int, int] | None = None) -> None:
        start, end = lists or self.binning
        self.v3d.write(CT0CA, start)
        self.v3d.write(CT0EA, end)

    def render_only(self, lists: tuple[int, int] | None = None) -> None:
        start, end = lists or self.rendering
        self.v3d.write(CT1CA, start)
        self.v3d.write(CT1EA, end)

    def whole_frame(self) -> np.ndarray:
        """A frame that waits as it should; its picture."""
        self.bin_only()
        self.time.go_on()
        self.render_only()
        self.time.go_on()
        return self.pixels()

    def move_triangle(self, corners: tuple[tuple[float, float], ...]) -> None:
        """The binning list draws another triangle into the same tile memory."""
        body = viewport(self.job) + self.nv_shader(solid(RED), triangle(*corners)) + ARRAY
        start, _ = self.binning
        mode = self.job.memory.read(start, 16 + 1)
        data = mode + body + FLUSH
        place = self.job.put(data)
        self.binning = place, place + len(data)

    @property
    def codes(self) -> set[str]:
        """Of lists: the program waits for the scoreboard too early (QPU-107)."""
        return {code for code in self.reporter.counts if code.startswith("CLE")}


def test_a_frame_that_begins_too_early_finds_no_lists() -> None:
    frame = TwoLists()
    frame.bin_only()
    frame.render_only()
    assert (frame.pixels() == BACKGROUND).all()
    assert frame.codes == {"CLE-042", "CLE-034"}, "zeros are no tile list"
    frame.time.go_on()
    frame.render_only()
    assert (frame.pixels() == RED).any(), "the lists are there when binning is over"


@pytest.mark.parametrize("engine", ["jit", "interpreter"])
def test_a_frame_that_begins_too_early_shows_the_lists_before(engine: str) -> None:
    frame = TwoLists(engine=engine)
    before = frame.whole_frame()
    frame.move_triangle(UPPER)
    frame.bin_only()
    frame.render_only()
    assert np.array_equal(frame.pixels(), before)
    assert frame.codes == {"CLE-042"}
    frame.time.go_on()
    after = frame.whole_frame()
    assert (after == RED).any()
    assert not np.array_equal(after, before)


def test_many_blocks_are_put_back() -> None:
    """Lists longer than their first blocks, clip records, and then the frame that waits."""
    corners = ((-900, 8), (8, 120), (900, 120))
    frame = TwoLists()
    job = frame.job
    vertices = b"".join(triangle(*CORNERS) + triangle(*corners) for _ in range(60))
    shader = frame.nv_shader(solid(RED), vertices)
    body = viewport(job) + b"".join(
        shader + build(33, mode=4, length=3, first=3 * number) for number in range(120)
    )
    start, end, lists = job.binning(body)
    size = 0x40000
    job.memory.write(lists, bytes(range(256)) * (size // 256))
    frame.binning, frame.rendering = (start, end), job.rendering(lists, frame.surface)
    frame.bin_only()
    assert frame.v3d.binning.binner.counters["blocks"] > 4
    written = job.memory.read(lists, size)
    with frame.v3d.binning.binner.before_writing():
        assert job.memory.read(lists, size) == bytes(range(256)) * (size // 256)
    assert job.memory.read(lists, size) == written


@pytest.mark.parametrize("look", ["BFC", "FLDONE"])
def test_a_frame_that_waited_for_the_flush(look: str) -> None:
    frame = TwoLists()
    frame.bin_only()
    frame.time.go_on()
    assert frame.v3d.read(BFC if look == "BFC" else BY_NAME["INTCTL"].offset) & 3
    frame.render_only()
    assert (frame.pixels() == RED).any()
    assert not frame.codes


@pytest.mark.parametrize("rendering_first", [False, True])
def test_the_semaphore_makes_the_frame_wait(rendering_first: bool) -> None:
    frame = TwoLists(signals=True, waits=True)
    if rendering_first:
        frame.render_only()
        frame.bin_only()
    else:
        frame.bin_only()
        frame.render_only()
    assert (frame.pixels() == RED).any()
    assert not frame.codes


def test_a_semaphore_that_only_binning_uses() -> None:
    frame = TwoLists(signals=True)
    frame.bin_only()
    frame.render_only()
    assert "CLE-042" in frame.codes
    assert (frame.pixels() == BACKGROUND).all()


def test_the_next_frame_may_be_binned_meanwhile_in_memory_of_its_own() -> None:
    frame = TwoLists()
    second = frame.lists(UPPER)
    frame.bin_only()
    frame.time.go_on()
    frame.bin_only(second[0])
    frame.render_only()  # the first frame, while the second is binned
    assert (frame.pixels() == RED).any()
    frame.time.go_on()
    frame.render_only(second[1])
    frame.bin_only()  # the third, while the second is rendered
    assert not frame.codes


def test_tile_lists_are_overwritten_while_a_frame_is_drawn() -> None:
    frame = TwoLists()
    frame.bin_only()
    frame.time.go_on()
    frame.render_only()
    frame.bin_only()
    assert frame.codes == {"CLE-043"}


def test_a_binning_list_that_waits_for_the_frame() -> None:
    frame = TwoLists()
    start, end = frame.binning
    frame.bin_only()
    frame.time.go_on()
    first, last = frame.rendering
    data = INCREMENT + frame.job.memory.read(first, last - first)
    place = frame.job.put(data)
    frame.render_only((place, place + len(data)))
    data = WAIT + frame.job.memory.read(start, end - start)
    place = frame.job.put(data)
    frame.bin_only((place, place + len(data)))
    frame.time.go_on()
    assert frame.v3d.read(BFC) == 2
    assert not frame.codes


@pytest.mark.parametrize("what", ["started", "reset"])
def test_a_thread_that_runs_still(what: str) -> None:
    frame = TwoLists()
    frame.bin_only()
    if what == "started":
        frame.bin_only()
    else:
        frame.v3d.write(CT0CS, RESET)
    assert frame.codes == {"CLE-044"}
    assert what in frame.reporter.items[0].message
    frame.time.go_on()
    frame.v3d.write(CT0CS, RESET)
    assert frame.reporter.counts["CLE-044"] == 1, "now it is through"


def test_forgiving() -> None:
    frame = TwoLists(forgiving=True)
    frame.bin_only()
    frame.render_only()
    assert (frame.pixels() == RED).any()
    frame.bin_only()
    frame.bin_only()
    assert not frame.codes


def test_strict_stops_and_memory_is_as_the_binner_left_it() -> None:
    frame = TwoLists()
    frame.v3d = V3D(frame.job.memory, Reporter(strict=True))
    HandTime.of(frame.v3d)
    frame.bin_only()
    lists = frame.v3d.binning.binner.context.lists
    written = frame.job.memory.read(lists, 128)
    assert written.strip(b"\0")
    with pytest.raises(StrictStop, match="CLE-042"):
        frame.render_only()
    assert frame.job.memory.read(lists, 128) == written


def test_without_guest_time_nothing_can_be_early() -> None:
    frame = TwoLists()
    frame.v3d = V3D(frame.job.memory, frame.reporter)
    frame.bin_only()
    frame.render_only()
    assert frame.v3d.read(RFC) == 1
    assert (frame.pixels() == RED).any()
    assert not frame.codes
