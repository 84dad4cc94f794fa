"""The time of jobs against measurements on boards, with kernels of our own of the same counts."""

import struct
from collections.abc import Callable

import pytest
from tests.support.frames import BACKGROUND, Frame, solid
from tests.support.guest_time import HandTime
from tests.support.jobs import BFC, CT0CA, CT0EA, CT1CA, CT1EA, RFC, nv_vertex, viewport
from tests.support.programs import LOOP

from vc4lab.diagnostics import Reporter
from vc4lab.memory import GuestMemory
from vc4lab.qpu.text.assembler import assemble
from vc4lab.records.control import build
from vc4lab.v3d.core import V3D
from vc4lab.v3d.job_time import JobCounts, job_clocks
from vc4lab.v3d.progress import ENDS, LONGEST_JOB
from vc4lab.v3d.registers import BY_NAME, ThreadControl

RGB565 = 2
END = "nop ; nop ; thrend\nnop\nnop\n"
PI_ZERO_W = 640, 360
"""Size of the frames that were measured: 60 tiles."""


def pi_zero_w_frame(triangles: list[tuple[tuple[float, float], ...]], **options: object) -> Frame:
    """A frame with these triangles, in memory and not started."""
    frame = Frame(*PI_ZERO_W, **options)  # type: ignore[arg-type]
    corners = [corner for triangle in triangles for corner in triangle]
    vertices = b"".join(nv_vertex(x, y, 0.5, 1.0) for x, y in corners)
    body = viewport(frame.job) + frame.nv_shader(solid(0xFF0000FF), vertices)
    body += build(33, mode=4, length=len(corners), first=0) if corners else b""
    start, end, lists = frame.job.binning(body)
    rendering = frame.job.rendering(lists, frame.surface, clear=BACKGROUND, format=RGB565)
    frame.lists = (start, end), rendering  # type: ignore[attr-defined]
    return frame


def measured(frame: Frame) -> float:
    """Microseconds until both lists are seen to be through; binning begins first."""
    time = HandTime.of(frame.v3d)
    binning, rendering = frame.lists  # type: ignore[attr-defined]
    frame.v3d.write(CT0CA, binning[0])
    frame.v3d.write(CT0EA, binning[1])
    time.go_on()
    frame.v3d.write(CT1CA, rendering[0])
    frame.v3d.write(CT1EA, rendering[1])
    assert frame.v3d.read(RFC) == 0, "not yet"
    time.go_on()
    assert (frame.v3d.read(BFC), frame.v3d.read(RFC)) == (1, 1)
    return time.moment / 1000


def tiny(count: int) -> list[tuple[tuple[float, float], ...]]:
    """Triangles of a pixel or two, all over the frame."""
    places = [(4.0 * (n % 159), 2.0 * (n // 159)) for n in range(count)]
    return [((x, y), (x + 2, y), (x, y + 1.5)) for x, y in places]


def clear() -> float:
    return measured(pi_zero_w_frame([]))


def one_triangle() -> float:
    return measured(pi_zero_w_frame([((320, 10), (10, 350), (630, 350))]))


def many_triangles() -> float:
    return measured(pi_zero_w_frame(tiny(20_000)))


class Programs:
    """A V3D that runs user programs."""

    def __init__(self, text: str, engine: str = "jit", threads: int | None = None) -> None:
        self.memory = GuestMemory()
        self.v3d = V3D(self.memory, Reporter(), engine=engine, threads=threads)
        self.time = HandTime.of(self.v3d)
        self.memory.write(0x1000, assemble(text).bytes)

    def run(self, uniforms: list[list[int]]) -> float:
        """Microseconds until all are seen to have completed."""
        for number, words in enumerate(uniforms):
            place = 0x8000 + 64 * number
            self.memory.write(place, struct.pack(f"<{len(words)}I", *words))
            self.v3d.write(BY_NAME["SRQUA"].offset, place)
            self.v3d.write(BY_NAME["SRQPC"].offset, 0x1000)
        assert self.completed() == 0
        self.time.go_on()
        assert self.completed() == len(uniforms)
        return self.time.moment / 1000

    def completed(self) -> int:
        """QPURQCC of SRQCS."""
        return self.v3d.read(BY_NAME["SRQCS"].offset) >> 16 & 0xFF


PADDING = 115 - 12
PASS = f"""
    mov ra0, unif
    mov ra1, unif
    mov rb0, unif
    mov rb1, unif
loop:
    mov vw_setup, rb0
    mov vw_addr, ra1
    mov -, vw_wait
    mov t0s, rb1
    mov t1s, rb1
    nop ; nop ; ldtmu0
    nop ; nop ; ldtmu1
    sub.setf ra0, ra0, 1
    {(chr(10) + "    ").join(["nop"] * PADDING)}
    brr.allnz -, loop
    nop
    nop
    nop
    {END}
"""
"""Stores what the third uniform sets up and looks up two vectors, so many times."""


def rows_of_words(rows: int, words: int) -> int:
    """The setup of a DMA store."""
    return 2 << 30 | rows << 23 | words << 16 | 1 << 14


def fft() -> float:
    """As GPU_FFT 2^12: 8 QPUs with about 11,056 instructions and 208 lookups each; one of them
    stores 96 blocks of 16 x 16 words for all (here the others store a word).
    """
    setups = [rows_of_words(16, 16), *[rows_of_words(1, 1)] * 7]
    uniforms = [[96, 0x100000 + 0x1000 * n, setups[n], 0x80000] for n in range(8)]
    return Programs(PASS).run(uniforms)


def mandelbrot_thousandth() -> float:
    """A thousandth of mandel-qpu's 2.1106e8 rounds of 10 instructions, on 12 QPUs."""
    return Programs(LOOP).run([[2_110_600 // 7]] * 12)


MEASURED: list[tuple[Callable[[], float], float]] = [
    (clear, 211),
    (one_triangle, 299),
    (many_triangles, 6_800),
    (fft, 250),
    (mandelbrot_thousandth, 33_781),
]
"""A job, and the microseconds that it takes on a board at 250 MHz (published)."""


@pytest.mark.parametrize(
    ("job", "microseconds"), MEASURED, ids=lambda item: getattr(item, "__name__", str(item))
)
def test_within_a_factor_of_two_of_boards(job: Callable[[], float], microseconds: float) -> None:
    assert microseconds / 2 <= job() <= 2 * microseconds


def test_the_stores_of_all_qpus_share_one_engine() -> None:
    """16 rows of a word: 167 clocks each, with 4 QPUs as with 8 (Rot3D on a Pi 3B)."""
    for qpus in (4, 8):
        programs = Programs(PASS.replace("nop\n    " * 100, ""))
        setup = rows_of_words(16, 1)
        took = programs.run([[480 // qpus, 0x100000, setup, 0x80000]] * qpus)
        assert 167 * 480 / 250 / 2 <= took <= 167 * 480 / 250 * 2


@pytest.mark.parametrize("options", [{"threads": 1}, {"threads": 4}, {"engine": "interpreter"}], ids=str)
def test_frames_take_the_same_time_with_any_engine_and_threads(options: dict[str, object]) -> None:
    triangles = [((320, 10), (10, 350), (630, 350)), ((3, 3), (3, 90), (99, 3))]
    assert measured(pi_zero_w_frame(triangles, **options)) == measured(pi_zero_w_frame(triangles))


@pytest.mark.parametrize("engine", ["jit", "interpreter"])
def test_programs_take_the_same_time_with_any_engine_and_threads(engine: str) -> None:
    uniforms = [[3, 0x100000 + 64 * n, rows_of_words(2 + n, 3), 0x80000] for n in range(5)]
    for threads in (1, 3):
        took = Programs(PASS, engine, threads).run(uniforms)
        assert took == Programs(PASS).run(uniforms)


def test_every_count_costs_something() -> None:
    nothing = job_clocks(JobCounts())
    for field in JobCounts._fields:
        assert job_clocks(JobCounts(**{field: 1200})) > nothing, field


def test_the_clock_that_the_program_sets_counts() -> None:
    frames = [pi_zero_w_frame([]) for _ in range(2)]
    slow = HandTime.of(frames[0].v3d, 125_000_000)
    fast = HandTime.of(frames[1].v3d, 500_000_000)
    for frame in frames:
        frame.job.run(frame.v3d, *frame.lists)  # type: ignore[attr-defined]
    assert abs(slow.go_on() - 4 * fast.go_on()) <= 16


class Visible:
    """Both lists of a frame, and what registers show."""

    def __init__(self) -> None:
        self.frame = pi_zero_w_frame([((320, 10), (10, 350), (630, 350))])
        self.v3d = self.frame.v3d
        self.time = HandTime.of(self.v3d)
        self.frames: list[int] = []
        self.lines: list[bool] = []
        self.v3d.on_frame = lambda: self.frames.append(self.time.moment)
        self.v3d.on_interrupt = self.lines.append

    def start(self) -> None:
        self.frame.job.run(self.v3d, *self.frame.lists)  # type: ignore[attr-defined]

    def read(self, name: str) -> int:
        return self.v3d.read(BY_NAME[name].offset)

    @property
    def running(self) -> list[int]:
        """The list threads that seem to run."""
        return [n for n in (0, 1) if ThreadControl(self.read(f"CT{n}CS")).CTRUN]


def test_what_is_done_shows_when_its_time_is_over() -> None:
    seen = Visible()
    seen.v3d.write(BY_NAME["INTENA"].offset, 1)
    seen.start()
    assert (seen.frame.pixels() != 0).any(), "memory has it at once"
    first, last = seen.frame.lists[1]  # type: ignore[attr-defined]
    assert seen.running == [0, 1]
    assert (seen.read("CT1CA"), seen.read("CT1EA")) == (first, last)
    assert (seen.read("BFC"), seen.read("RFC"), seen.read("INTCTL")) == (0, 0, 0)
    assert not seen.frames
    assert seen.time.wanted is not None
    seen.time.go_to(seen.time.wanted)
    assert (seen.read("BFC"), seen.read("RFC")) == (1, 0)
    assert seen.running == [1]
    assert seen.read("PCS") & 0xF == 4
    end = seen.time.go_on()
    assert (seen.read("RFC"), seen.read("INTCTL"), seen.frames) == (1, 3, [end])
    assert seen.lines == [True]
    assert seen.running == []
    assert seen.read("CT1CA") == last


def test_a_thread_that_is_started_again_without_waiting_lets_time_pass() -> None:
    seen = Visible()
    seen.start()
    seen.start()
    assert seen.read("RFC") == 1
    once = seen.frames[0]
    assert seen.time.go_on() >= 2 * once - 20_000, "binning of the second went on beside"
    assert seen.read("RFC") == 2
    for _ in range(100):
        seen.start()
    assert len(seen.time.progress.pending) <= 6


def test_a_reset_waits_too() -> None:
    seen = Visible()
    seen.start()
    seen.v3d.write(BY_NAME["CT1CS"].offset, 1 << 15)
    assert seen.read("RFC") == 1
    assert seen.running in ([], [0])


def test_rendering_that_waits_for_the_binner_begins_after_it() -> None:
    """Whether it stalled or found the increment there: in memory, binning takes no time."""
    times = []
    for first_of_all in ("rendering", "binning", "binning and its time"):
        seen = Visible()
        job = seen.frame.job
        corners = [corner for triangle in tiny(500) for corner in triangle]
        vertices = b"".join(nv_vertex(x, y, 0.5, 1.0) for x, y in corners)
        shader = seen.frame.nv_shader(solid(0xFF0000FF), vertices)
        body = viewport(job) + shader + build(33, mode=4, length=len(corners), first=0)
        start, end, lists = job.binning(body, flush=build(7) + build(4))
        first, last = job.rendering(lists, seen.frame.surface, format=RGB565)
        waiting = job.put(build(8) + job.memory.read(first, last - first))
        binning = (CT0CA, start), (CT0EA, end)
        rendering = (CT1CA, waiting), (CT1EA, waiting + 1 + last - first)
        rendering_first = first_of_all == "rendering"
        for register, value in rendering if rendering_first else binning:
            seen.v3d.write(register, value)
        if first_of_all == "binning and its time":
            seen.time.go_on()
        for register, value in binning if rendering_first else rendering:
            seen.v3d.write(register, value)
        flushed = seen.time.moment or seen.time.wanted
        assert flushed is not None
        seen.time.go_to(flushed)
        assert (seen.read("BFC"), seen.read("RFC")) == (1, 0)
        times.append((flushed, seen.time.go_on() - flushed))
    assert times[0] == times[1] == times[2]
    assert times[0][1] > 200_000


def test_a_list_without_an_end_of_frame_takes_as_long() -> None:
    ends = []
    for closed in (True, False):
        seen = Visible()
        first, last = seen.frame.lists[1]  # type: ignore[attr-defined]
        memory = seen.frame.job.memory
        data = memory.read(first, last - first)
        assert data[-1:] == build(25)
        memory.write(first, data if closed else data[:-1] + build(24))
        seen.start()
        assert seen.running == [0, 1]
        ends.append(seen.time.go_on())
        assert seen.running == []
        assert seen.read("RFC") == closed
    assert ends[0] == ends[1] > 0


def test_a_binner_that_waited_for_memory_goes_on_when_it_comes() -> None:
    corners = [corner for triangle in tiny(500) for corner in triangle]
    vertices = b"".join(nv_vertex(x, y, 0.5, 1.0) for x, y in corners)
    times = []
    for later in (0, 5_000_000):
        frame = Frame(*PI_ZERO_W)
        columns, rows = frame.job.tiles
        time, room = HandTime.of(frame.v3d), 32 * columns * rows
        data = build(112, address=frame.job.room(room), memory_size=room, tiles_x=columns, tiles_y=rows)
        data += build(6) + viewport(frame.job) + frame.nv_shader(solid(0xFF0000FF), vertices)
        start = frame.job.put(data + build(33, mode=4, length=len(corners), first=0) + build(4))
        frame.v3d.write(CT0CA, start)
        frame.v3d.write(CT0EA, frame.job.top)
        assert frame.v3d.binning.out_of_memory
        assert time.wanted is None
        time.go_to(later)
        frame.v3d.write(BY_NAME["BPOA"].offset, frame.job.room(1 << 16))
        frame.v3d.write(BY_NAME["BPOS"].offset, 1 << 16)
        assert frame.v3d.read(BFC) == 0
        times.append(time.go_on() - later)
        assert frame.v3d.read(BFC) == 1
    assert times[0] == times[1] > 0


def test_moments_of_a_saved_state_are_not_beyond_the_longest_job() -> None:
    time = HandTime()
    progress, shown = time.progress, []
    progress.show = lambda kind, _detail: shown.append(kind)
    progress.threads[:] = [1 << 50, -5]
    for thread in (0, 1):
        progress.ends(thread, ENDS[thread])
        progress.signal(thread)
    progress.threads[1] = 500
    progress.qpus[3] = progress.dma = 1 << 50
    time.moment = 1000
    latest = 1000 + LONGEST_JOB
    progress.restored()
    assert progress.threads == [latest, 500]
    assert sorted(progress.qpus) == [0] * 11 + [latest]
    assert progress.dma == latest
    assert time.wanted == 0
    progress.show_due()
    assert shown == [ENDS[1]]
    assert time.wanted == latest
    progress.wait(1)
    assert progress.threads == [latest, latest]


def test_without_guest_time_everything_shows_at_once() -> None:
    frame = pi_zero_w_frame([])
    frame.job.run(frame.v3d, *frame.lists)  # type: ignore[attr-defined]
    assert (frame.v3d.read(BFC), frame.v3d.read(RFC)) == (1, 1)


def test_programs_beyond_the_queue_let_time_pass() -> None:
    programs = Programs(LOOP)
    for _ in range(100):
        programs.memory.write(0x8000, struct.pack("<I", 1000))
        programs.v3d.write(BY_NAME["SRQUA"].offset, 0x8000)
        programs.v3d.write(BY_NAME["SRQPC"].offset, 0x1000)
    assert programs.time.moment > 0
    assert programs.time.progress.programs <= 28
    programs.v3d.settle()
    assert programs.v3d.read(BY_NAME["SRQCS"].offset) & 0x3F > 0, "some seem to wait for a QPU"
    programs.time.go_on()
    assert programs.completed() == 100


def test_host_interrupts_come_with_the_end_of_their_program() -> None:
    programs = Programs("mov irq, 1\n" + END)
    programs.v3d.write(BY_NAME["DBQITE"].offset, 0xFFFF)
    programs.v3d.write(BY_NAME["SRQPC"].offset, 0x1000)
    assert programs.v3d.read(BY_NAME["DBQITC"].offset) == 0
    programs.time.go_on()
    assert programs.v3d.read(BY_NAME["DBQITC"].offset) == 1
