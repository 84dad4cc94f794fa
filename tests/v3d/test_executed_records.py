"""Listeners for executed records hear of each record once, in order, whichever code executes it."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.frames import RED, Frame, solid
from tests.support.jobs import CT0CA, CT0EA, CT1CA, CT1EA, nv_vertex, viewport

from vc4lab.diagnostics import Reporter
from vc4lab.drm.kernel.hardware import run_job
from vc4lab.drm.recorded.jobs import RecordedRun
from vc4lab.memory import GuestMemory
from vc4lab.records.control import RECORDS, build, parse_list
from vc4lab.records.declarations import BranchToSublist, ClearColours, Flush, Nop, Return, StoreResolvedEnd
from vc4lab.records.states import LineWidth
from vc4lab.v3d.core import V3D
from vc4lab.v3d.events import BinningDone, DrawPrepared, FrameDone, FrameDrawn, JobStarted, RecordExecuted
from vc4lab.v3d.state.native_records import RecordNotes
from vc4lab.v3d.tile_lists import scanner

JOBS = Path(__file__).parents[1] / "data" / "vc4-jobs"
RUNS = ("glmark2_ideas", "glmark2_bump_bump-render_normals", "kmscube_smooth", "tri_arm64")
TRIANGLE = b"".join(nv_vertex(x, y, 0.5, 1.0) for x, y in ((5, 5), (5, 110), (110, 5)))


def in_memory(
    memory: GuestMemory, binning: tuple[int, int], rendering: tuple[int, int]
) -> list[RecordExecuted]:
    """What the lists of a job with one frame hold: both lists, then those of the tiles."""

    def walk(thread: int, start: int, end: int) -> Iterator[RecordExecuted]:
        if start != end:
            for record in parse_list(memory.read, start, end, follow=True):
                assert record.problem is None
                yield RecordExecuted(thread, record.address, RECORDS[record.id])

    tiles: list[RecordExecuted] = []
    lists: list[RecordExecuted] = []
    depth = 0
    for event in walk(1, *rendering):
        (tiles if depth else lists).append(event)
        depth += (event.record is BranchToSublist) - (event.record is Return)
    return [*walk(0, *binning), *lists, *tiles]


class Run:
    """A recorded run; `heard` has what its listeners were told of each job."""

    def __init__(self, name: str, **options: object) -> None:
        self.run = RecordedRun(JOBS / name, Reporter())
        self.reporter = Reporter()
        self.v3d = V3D(self.run.memory, self.reporter, **options)  # type: ignore[arg-type]
        self.bytes: list[bytes] = []

    def jobs(self, listen: bool = True) -> Iterator[tuple[list[RecordExecuted], ...]]:
        """What is heard of each job, and what is in memory."""
        memory = self.run.memory
        for job in self.run.jobs:
            built = job.build(memory)
            heard: list[RecordExecuted] = []
            one = self.v3d.listeners.record_executed.subscribe(heard.append)
            if not listen:
                one.close()
            assert run_job(self.v3d, built)
            one.close()
            for buffer in job.submit.buffers:
                self.bytes.append(bytes(memory.read(buffer.address, buffer.size)))
            binning = built.bin_start, built.bin_end
            yield heard, in_memory(memory, binning, (built.render_start, built.render_end))


@pytest.mark.parametrize("name", RUNS)
def test_each_record_of_a_job_is_heard_once(name: str) -> None:
    run = Run(name)
    for _ in range(2):  # all is new, all is known
        for heard, expected in run.jobs():
            assert heard == expected
            assert {event.thread for event in heard} == {0, 1}


def test_the_interpreter_gives_the_same_events() -> None:
    for heard, expected in Run("tri_arm64", engine="interpreter").jobs():
        assert heard == expected


@pytest.mark.parametrize("engine", ["jit", "interpreter"])
def test_a_listener_changes_no_byte(engine: str) -> None:
    plain, heard = Run("tri_amd64", engine=engine), Run("tri_amd64", engine=engine)
    for listen in (False, True, False):
        assert not any(told for told, _ in plain.jobs(listen=False))
        assert any(told for told, _ in heard.jobs(listen)) == listen
    assert plain.bytes == heard.bytes
    assert plain.reporter.counts == heard.reporter.counts


def lists(frame: Frame, body: bytes = b"") -> tuple[tuple[int, int], tuple[int, int]]:
    """A job's lists: a triangle, after `body`."""
    drawn = viewport(frame.job) + frame.nv_shader(solid(RED), TRIANGLE) + body
    start, end, tiles = frame.job.binning(drawn + build(33, mode=4, length=3))
    return (start, end), frame.job.rendering(tiles, frame.surface)


def heard_of(frame: Frame, *job: tuple[int, int]) -> list[RecordExecuted]:
    heard: list[RecordExecuted] = []
    with frame.v3d.listeners.record_executed.subscribe(heard.append):
        frame.job.run(frame.v3d, *job)
    return heard


def test_what_python_executes_is_heard_in_between() -> None:
    """A sub-list, a jump, a record of the other thread, semaphores."""
    frame = Frame()
    job = frame.job
    rest = viewport(job) + frame.nv_shader(solid(RED), TRIANGLE) + build(33, mode=4, length=3)
    rest += build(115) + build(7) + build(4)
    second, inner = job.put(rest), job.put(build(1) + build(99, line_width=2.0) + build(18))
    tiles, state = job.room(1 << 16), job.room(512)
    mode = {"memory_size": 1 << 16, "tiles_x": 2, "tiles_y": 2, "auto_initialise": 1}
    data = build(112, address=tiles, state_address=state, **mode) + build(6)
    first = job.put(data + build(17, address=inner) + build(16, address=second))
    start, end = job.rendering(tiles, frame.surface)
    drawn = build(8) + build(17, address=inner) + build(6) + job.memory.read(start, end - start)
    start = job.put(drawn)
    lists = (first, second + len(rest)), (start, start + len(drawn))
    heard = heard_of(frame, *lists)
    inside = [event for event in heard if inner <= event.address < inner + 7]
    assert [event.thread for event in inside] == [0, 0, 0, 1, 1, 1]
    expected = in_memory(job.memory, *lists)
    called = [event for event in inside if event.thread == 1]
    at = heard.index(called[0])
    assert heard[at : at + 3] == called
    assert sorted(map(str, heard)) == sorted(map(str, expected))
    assert [e for e in heard if e not in called] == [e for e in expected if e not in called]


def test_a_record_comes_before_what_comes_of_it() -> None:
    frame = Frame()
    job = lists(frame)
    told: list[object] = []
    listeners = frame.v3d.listeners
    for one in (listeners.job_started, listeners.record_executed, listeners.binning_done,
                listeners.draw_prepared, listeners.frame_drawn, listeners.frame_done):  # fmt: skip
        one.subscribe(told.append)  # type: ignore[attr-defined]
    frame.job.run(frame.v3d, *job)
    kinds = [event.record if isinstance(event, RecordExecuted) else type(event) for event in told]
    assert kinds[0] is JobStarted
    assert kinds[kinds.index(BinningDone) - 1] is Flush
    assert kinds[kinds.index(BinningDone) + 1] is JobStarted
    end, drawn = kinds.index(StoreResolvedEnd), kinds.index(DrawPrepared)
    assert kinds.count(Return) == kinds[end:drawn].count(Return) == 4
    assert kinds[drawn - 1] is Return
    assert kinds[drawn:] == [DrawPrepared, FrameDrawn, FrameDone]


def test_all_listeners_hear_it_and_only_as_long_as_they_listen() -> None:
    frame = Frame()
    job = lists(frame)
    whole = heard_of(frame, *job)
    listeners = frame.v3d.listeners.record_executed
    some: list[RecordExecuted] = []
    late: list[RecordExecuted] = []

    def hear(event: RecordExecuted) -> None:
        some.append(event)
        if len(some) == 3:
            listeners.subscribe(late.append)
        if len(some) == 5:
            one.close()

    one = listeners.subscribe(hear)
    other: list[RecordExecuted] = []
    listeners.subscribe(other.append)
    frame.job.run(frame.v3d, *job)
    assert other == whole
    assert some == whole[:5]
    assert late == whole[3:]


def test_a_listener_that_comes_while_a_job_runs() -> None:
    frame = Frame()
    job = lists(frame)
    whole = heard_of(frame, *job)
    heard: list[RecordExecuted] = []
    frame.v3d.listeners.binning_done.subscribe(
        lambda _event: frame.v3d.listeners.record_executed.subscribe(heard.append)
    )
    frame.job.run(frame.v3d, *job)
    assert heard == [event for event in whole if event.thread == 1]


def test_a_listener_that_fails_is_heard_of_once() -> None:
    frame, whole = Frame(), Frame()
    job = lists(frame)
    expected = heard_of(whole, *lists(whole))
    heard: list[RecordExecuted] = []

    def fails(_event: RecordExecuted) -> None:
        raise KeyError("odd")

    frame.v3d.listeners.record_executed.subscribe(fails)
    frame.v3d.listeners.record_executed.subscribe(heard.append)
    for register, value in zip((CT0CA, CT0EA, CT1CA, CT1EA), (*job[0], *job[1]), strict=True):
        if register in (CT0EA, CT1EA):
            with pytest.raises(KeyError, match="odd"):
                frame.v3d.write(register, value)
        else:
            frame.v3d.write(register, value)
    assert heard == expected
    assert (frame.pixels() == whole.pixels()).all()


def test_arrays_that_grow_while_records_are_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    """More operations, draws and notes than there is room for at first: tiles are scanned again."""
    frame = Frame(1024, 1024)
    body = b""
    for width in range(1, 60):
        body += build(99, line_width=float(width)) + build(33, mode=4, length=3)
    job = lists(frame, body)
    heard = heard_of(frame, *job)
    expected = in_memory(frame.job.memory, *job)
    assert heard == expected
    assert len(heard) > 1000
    monkeypatch.setattr(scanner, "MAX_BEFORE_TILE", 0)
    assert heard_of(frame, *job) == expected


def test_nothing_is_noted_without_a_listener(monkeypatch: pytest.MonkeyPatch) -> None:
    frame = Frame()
    job = lists(frame)
    heard_of(frame, *job)

    def notes(_notes: RecordNotes, _context: object) -> None:
        raise AssertionError("notes that no one wants")

    monkeypatch.setattr(RecordNotes, "attach", notes)
    frame.job.run(frame.v3d, *job)
    with pytest.raises(AssertionError, match="no one wants"):
        heard_of(frame, *job)


def test_more_records_than_one_call_executes() -> None:
    """Of the binning list and of the rendering list: lists of records that do nothing."""
    frame = Frame()
    count = (1 << 20) + 100
    at = frame.job.put(build(1) * count)
    heard = [0, 0]

    def hear(event: RecordExecuted) -> None:
        assert event.record is Nop
        assert event.address == at + heard[event.thread]
        heard[event.thread] += 1

    frame.v3d.listeners.record_executed.subscribe(hear)
    frame.job.run(frame.v3d, (at, at + count), (at, at + count))
    assert heard == [count, count]


def test_what_is_not_executed_is_not_heard_of() -> None:
    """An id without a record, in both lists."""
    frame = Frame()
    at = frame.job.put(build(1) + bytes([200]) + build(1))
    heard = heard_of(frame, (at, at + 3), (at, at + 3))
    assert heard == [RecordExecuted(thread, at, Nop) for thread in (0, 1)]


def test_the_list_of_a_tile_that_is_broken() -> None:
    frame = Frame()
    binning, rendering = lists(frame)
    heard = heard_of(frame, binning, rendering)
    kinds = [event.record for event in heard]
    first = kinds.index(StoreResolvedEnd) + 1
    frame.job.memory.write(heard[first + 1].address, bytes([200]))
    after = kinds.index(Return, first) + 1
    begin = next(k for k, event in enumerate(heard) if event.thread == 1)
    nothing = heard[0].address, heard[0].address
    again = heard_of(frame, nothing, rendering)
    assert again == heard[begin : first + 1] + heard[after:]


def test_a_record_that_is_cut_off_is_executed() -> None:
    frame = Frame()
    at = frame.job.put(build(99, line_width=1.0) + build(114))
    (event,) = heard_of(frame, (at, at + 2), (0, 0))
    assert event == RecordExecuted(0, at, LineWidth)
    (event,) = heard_of(frame, (0, 0), (at + 5, at + 7))
    assert event == RecordExecuted(1, at + 5, ClearColours)
