"""What listeners of a V3D hear, that they cost nothing while there are none, and change nothing."""

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
from tests.support.frames import RED, Frame, solid
from tests.support.jobs import BFC, CT1EA, RFC, nv_vertex, viewport

from vc4lab.listeners import Listeners
from vc4lab.qpu.text.assembler import assemble
from vc4lab.records.control import build
from vc4lab.v3d import core, events, registers
from vc4lab.v3d.checks import addresses
from vc4lab.v3d.cle import native_binning
from vc4lab.v3d.draws import frame as frame_module
from vc4lab.v3d.draws import preparation, work
from vc4lab.v3d.event_listeners import V3DListeners
from vc4lab.v3d.events import (
    BinningDone,
    CachesCleared,
    DrawPrepared,
    FrameDone,
    FrameDrawn,
    FrameTiles,
    FrameWork,
    InterruptLine,
    JobEnded,
    JobStarted,
    ListBinned,
    MemoryUse,
    PoweredOn,
    ProgramCompiled,
    ProgramEnded,
    ProgramKind,
    ProgramRecorded,
    ProgramsRun,
    ProgramStarted,
    RecordExecuted,
    RecordsNoted,
    RegisterWritten,
    Use,
)
from vc4lab.v3d.job_time import JobCounts
from vc4lab.v3d.registers import BY_NAME, BY_OFFSET
from vc4lab.v3d.state import native_records
from vc4lab.v3d.state.power_on import PowerOn
from vc4lab.v3d.tiles import job as tile_records
from vc4lab.v3d.user_programs import scheduler

TRIANGLE = b"".join(nv_vertex(x, y, 0.5, 1.0) for x, y in ((5, 5), (5, 60), (60, 5)))
INTENA, INTCTL = BY_NAME["INTENA"].offset, BY_NAME["INTCTL"].offset
SLCACTL, L2CACTL = BY_NAME["SLCACTL"].offset, BY_NAME["L2CACTL"].offset


def kinds(listeners: V3DListeners) -> dict[str, Listeners[Any]]:
    return {k: value for k, value in vars(listeners).items() if isinstance(value, Listeners)}


def listen(frame: Frame) -> list[NamedTuple]:
    """All that is told of a frame's V3D, in order."""
    heard: list[NamedTuple] = []
    for one in kinds(frame.v3d.listeners).values():
        one.subscribe(heard.append)
    return heard


def draw(frame: Frame) -> bytes:
    frame.v3d.write(INTENA, 3)
    shader = frame.nv_shader(solid(RED), TRIANGLE)
    pixels = frame.bin(viewport(frame.job) + shader + build(33, mode=4, length=3))
    frame.v3d.write(INTCTL, 3)
    return pixels.tobytes()


def run_program(frame: Frame) -> tuple[int, int]:
    code = assemble("mov -, unif\nnop ; nop ; thrend\nnop\nnop\n").bytes
    place = frame.job.put(code)
    frame.v3d.write(BY_NAME["SRQUA"].offset, 0x2000)
    frame.v3d.write(BY_NAME["SRQPC"].offset, place)
    frame.v3d.read(BY_NAME["SRQCS"].offset)
    return place, len(code)


def test_a_job_is_told_in_order() -> None:
    frame = Frame()
    heard = listen(frame)
    draw(frame)
    many = MemoryUse | RecordExecuted | RecordsNoted | RegisterWritten
    told = [event for event in heard if not isinstance(event, many)]
    assert [type(event) for event in told] == [
        JobStarted, ListBinned, BinningDone, JobEnded, InterruptLine,
        JobStarted, ProgramCompiled, DrawPrepared, FrameTiles, FrameTiles, FrameDrawn, FrameWork,
        FrameDone, JobEnded, InterruptLine,
    ]  # fmt: skip
    before, after = [event for event in told if isinstance(event, FrameTiles)]
    assert (before.over, after) == (False, before._replace(over=True))
    assert before.stores == 4, "tiles of 64 pixels in 128 x 128"
    assert before.surfaces[0].address
    written = [event.offset for event in heard if isinstance(event, RegisterWritten)]
    assert written[0] == INTENA
    assert CT1EA in written
    starts = [event for event in told if isinstance(event, JobStarted)]
    ends = [event for event in told if isinstance(event, JobEnded)]
    assert [event.thread for event in starts] == [event.thread for event in ends] == [0, 1]
    assert [event.end for event in starts] == [event.address for event in ends]
    assert not any(event.error for event in ends)
    # events of different kinds are equal if they say the same
    assert [e.flushes for e in told if isinstance(e, BinningDone)] == [frame.v3d.read(BFC)] == [1]
    assert [e.frames for e in told if isinstance(e, FrameDone)] == [frame.v3d.read(RFC)] == [1]
    assert [event.level for event in told if isinstance(event, InterruptLine)] == [True, False]


def test_caches_and_programs() -> None:
    frame = Frame()
    heard = listen(frame)
    frame.v3d.write(SLCACTL, 0x0F0F)
    frame.v3d.write(L2CACTL, 4)
    place, size = run_program(frame)
    written = [event for event in heard if isinstance(event, RegisterWritten)]
    assert [BY_OFFSET[event.offset].name for event in written] == ["SLCACTL", "L2CACTL", "SRQUA", "SRQPC"]
    heard = [event for event in heard if event not in written]
    compiled = heard.pop(2)
    assert isinstance(compiled, ProgramCompiled)
    assert compiled[:2] == (ProgramKind.USER, place)
    assert len(compiled.words) == size // 8
    recorded = [event for event in heard if isinstance(event, ProgramRecorded)]
    assert [event.ended for event in recorded] == [False, True]
    heard = [event for event in heard if event not in recorded]
    assert [type(event) for event in heard] == [
        CachesCleared, CachesCleared, ProgramStarted, MemoryUse, MemoryUse, ProgramsRun, ProgramEnded,
        ProgramsRun,
    ]  # fmt: skip
    assert heard == [
        CachesCleared("SLCACTL", 0x0F0F),
        CachesCleared("L2CACTL", 4),
        ProgramStarted(place, 0x2000, 0, size),
        MemoryUse(Use.CODE, place, size, None),
        MemoryUse(Use.UNIFORMS, 0x2000, 4, None),
        ProgramsRun(requested=False, over=False),
        ProgramEnded(0, place, 0x2000, JobCounts(instructions=size // 8)),
        ProgramsRun(requested=False, over=True),
    ]


def test_power_that_comes_back_is_told() -> None:
    frame = Frame()
    first = PowerOn(frame.v3d)
    draw(frame)
    heard = listen(frame)
    first.reset(frame.v3d)
    assert PoweredOn() in heard


def test_no_event_is_made_without_a_listener(monkeypatch: pytest.MonkeyPatch) -> None:
    names = [name for name, value in vars(events).items() if hasattr(value, "_fields")]
    assert len(names) >= 10

    def made(*_arguments: object) -> None:
        raise AssertionError("an event that no one hears")

    modules = (events, core, scheduler, registers, addresses, native_records)
    modules = (*modules, native_binning, frame_module, preparation, tile_records, work)
    for module in modules:
        for name in names:
            if hasattr(module, name):
                monkeypatch.setattr(module, name, made)
    frame = Frame()
    draw(frame)
    run_program(frame)
    frame.v3d.write(SLCACTL, 0x0F0F0F0F)
    frame.v3d.write(L2CACTL, 4)
    listening = frame.v3d.listeners.frame_done.subscribe(lambda _event: None)
    with listening, pytest.raises(AssertionError, match="no one hears"):
        draw(frame)
    draw(frame)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("engine", ["jit", "interpreter"])
def test_listeners_change_no_byte(engine: str, threads: int) -> None:
    def memory(look: Callable[[Frame], object]) -> bytes:
        frame = Frame(engine=engine, threads=threads)
        look(frame)
        for _ in range(3):
            draw(frame)
        assert not frame.reporter.items
        return bytes(frame.v3d.memory.read(0, frame.job.room(0)))

    assert memory(lambda frame: None) == memory(listen)


def test_two_listeners_hear_the_same() -> None:
    frame = Frame()
    first, second = listen(frame), listen(frame)
    draw(frame)
    assert first == second
    assert len(first) > 10


class OddError(Exception):
    """What a listener raises."""


ELSEWHERE = {"frame_stored", "program_stored", "powered_on"}
"""Kinds of events that come with guest time, or when power does."""


@pytest.mark.parametrize("name", sorted(set(kinds(V3DListeners())) - ELSEWHERE))
def test_what_a_listener_raises_comes_when_the_v3d_is_at_rest(name: str) -> None:
    """The state is that of a V3D without listeners, and the next job is drawn like any other."""
    whole, frame = Frame(), Frame()
    expected = draw(whole)
    listeners = kinds(frame.v3d.listeners)[name]
    heard: list[NamedTuple] = []

    def fails(event: NamedTuple) -> None:
        raise OddError(type(event).__name__)

    listeners.subscribe(fails)
    listeners.subscribe(heard.append)
    raised = 0
    read, write = frame.v3d.read, frame.v3d.write

    def careful(access: Callable[..., Any]) -> Any:
        def call(*arguments: int) -> Any:
            nonlocal raised
            try:
                return access(*arguments)
            except OddError:
                raised += 1

        return call

    frame.v3d.read = careful(read)  # type: ignore[method-assign]
    frame.v3d.write = careful(write)  # type: ignore[method-assign]
    assert draw(frame) == expected
    frame.v3d.write(SLCACTL, 0x0F)
    run_program(frame)
    assert raised
    assert heard
    registers = ("INTCTL", "BFC", "RFC", "CT0CA", "CT1CA", "CT0CS", "CT1CS")
    for register in registers:
        offset = BY_NAME[register].offset
        assert frame.v3d.read(offset) == whole.v3d.read(offset), register
    frame.v3d.read, frame.v3d.write = read, write  # type: ignore[method-assign]
    frame.v3d.read(RFC)
    assert not frame.v3d.listeners.failures
    for one in listeners.subscriptions:
        one.close()
    assert draw(frame) == expected


def test_a_write_is_done_though_a_listener_failed_before_it() -> None:
    """What is kept when a program ran comes after the access that is at hand."""
    frame = Frame()

    def fails(_event: ProgramStarted) -> None:
        raise OddError

    frame.v3d.listeners.program_started.subscribe(fails)
    frame.v3d.programs.used = True
    frame.v3d.listeners.failures.append(OddError())
    with pytest.raises(OddError):
        frame.v3d.write(CT1EA, 0)
    with pytest.raises(OddError):
        frame.v3d.write(BY_NAME["SRQPC"].offset, frame.job.put(bytes(64)))
    frame.v3d.write(INTENA, 1)
    assert frame.v3d.read(INTENA) == 1


@pytest.mark.parametrize("access", ["read", "write", "settle"])
def test_what_is_heard_while_a_program_runs_is_raised_by_the_access_that_ran_it(access: str) -> None:
    frame = Frame()

    def fails(_event: InterruptLine) -> None:
        raise OddError

    frame.v3d.write(BY_NAME["DBQITE"].offset, 0xFFFF)
    one = frame.v3d.listeners.interrupt_line.subscribe(fails)
    place = frame.job.put(assemble("mov irq, 1\nnop ; nop ; thrend\nnop\nnop\n").bytes)
    frame.v3d.write(BY_NAME["SRQPC"].offset, place)
    calls: dict[str, Callable[[], object]] = {
        "read": lambda: frame.v3d.read(BY_NAME["SRQCS"].offset),
        "write": lambda: frame.v3d.write(SLCACTL, 0),
        "settle": frame.v3d.settle,
    }
    with pytest.raises(OddError):
        calls[access]()
    assert frame.v3d.interrupt_pending
    one.close()
    assert frame.v3d.read(BY_NAME["DBQITC"].offset) == 1, "it is raised once"


def test_a_listener_that_fails_keeps_no_other_from_hearing_of_the_line() -> None:
    """The level of the line belongs to the access that changed it, whatever was raised in it."""
    frame = Frame()
    levels: list[bool] = []

    def fails(_event: FrameDone) -> None:
        raise OddError

    frame.v3d.write(INTENA, 1)
    frame.v3d.listeners.frame_done.subscribe(fails)
    frame.v3d.on_interrupt = levels.append
    with pytest.raises(OddError):
        frame.bin(viewport(frame.job))
    assert frame.v3d.interrupt_pending
    assert levels == [True]


def test_the_old_attributes_take_one_listener_each() -> None:
    frame = Frame()
    levels: list[bool] = []
    frames: list[str] = []
    frame.v3d.on_interrupt = levels.append
    frame.v3d.on_frame = lambda: frames.append("replaced")
    frame.v3d.on_frame = lambda: frames.append("frame")
    draw(frame)
    assert frames == ["frame"]
    assert levels[:2] == [True, False]
