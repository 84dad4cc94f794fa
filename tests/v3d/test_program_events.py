"""What listeners hear of programs: that they were compiled, for what, and what they did."""

from pathlib import Path

import pytest
from tests.support.frames import RED, Frame, solid
from tests.support.jobs import nv_vertex, viewport

from vc4lab.diagnostics import Reporter
from vc4lab.drm.kernel.hardware import run_job
from vc4lab.drm.recorded.jobs import RecordedRun
from vc4lab.qpu.text.assembler import assemble
from vc4lab.records.control import build
from vc4lab.v3d.core import V3D
from vc4lab.v3d.events import ProgramCompiled, ProgramEnded, ProgramKind, ProgramStarted
from vc4lab.v3d.registers import BY_NAME

JOBS = Path(__file__).parents[1] / "data" / "vc4-jobs"
SRQPC, SRQUA, SRQUL, SRQCS = (BY_NAME[name].offset for name in ("SRQPC", "SRQUA", "SRQUL", "SRQCS"))
TRIANGLE = b"".join(nv_vertex(x, y, 0.5, 1.0) for x, y in ((5, 5), (5, 60), (60, 5)))


def words_at(v3d: V3D, address: int, count: int) -> tuple[int, ...]:
    return tuple(v3d.memory.u64(address + 8 * k) for k in range(count))


def test_the_shaders_of_a_job_are_compiled_once() -> None:
    run = RecordedRun(JOBS / "tri_arm64", Reporter())
    v3d = V3D(run.memory, Reporter())
    heard: list[ProgramCompiled] = []
    v3d.listeners.program_compiled.subscribe(heard.append)
    (job,) = run.jobs
    built = job.build(run.memory)
    for _ in range(2):
        assert run_job(v3d, built)
        kinds = [event.kind for event in heard]
        assert kinds[0] is ProgramKind.COORDINATE
        assert set(kinds) == {ProgramKind.COORDINATE, ProgramKind.VERTEX, ProgramKind.FRAGMENT}
        assert len(heard) == 3
    for event in heard:
        assert event.words == words_at(v3d, event.address, len(event.words))
        assert event.milliseconds > 0
    (fragment,) = (event for event in heard if event.kind is ProgramKind.FRAGMENT)
    assert [p.address for p in built.fragment_programs] == [fragment.address]


def test_nothing_is_compiled_of_what_the_interpreter_runs() -> None:
    frame = Frame(engine="interpreter")
    heard: list[ProgramCompiled] = []
    frame.v3d.listeners.program_compiled.subscribe(heard.append)
    shader = frame.nv_shader(solid(RED), TRIANGLE)
    frame.bin(viewport(frame.job) + shader + build(33, mode=4, length=3))
    frame.v3d.write(SRQPC, frame.job.program("nop ; nop ; thrend\nnop\nnop\n"))
    frame.v3d.read(SRQCS)
    assert not heard


def test_each_draw_state_has_code_of_its_own() -> None:
    frame = Frame()
    heard: list[ProgramCompiled] = []
    frame.v3d.listeners.program_compiled.subscribe(heard.append)
    shader = frame.nv_shader(solid(RED), TRIANGLE)
    draw = build(33, mode=4, length=3)
    body = viewport(frame.job) + shader + draw + bytes((96, 3, 0x70, 0)) + draw + draw
    for _ in range(2):
        frame.bin(body)
    assert [event.kind for event in heard] == [ProgramKind.FRAGMENT] * 2
    assert len({(event.address, event.words) for event in heard}) == 1


@pytest.mark.parametrize("engine", ["jit", "interpreter"])
def test_user_programs(engine: str) -> None:
    frame = Frame(engine=engine)
    v3d, heard = frame.v3d, []
    listeners = v3d.listeners
    for one in (listeners.program_compiled, listeners.program_started, listeners.program_ended):
        one.subscribe(heard.append)  # type: ignore[attr-defined]
    text = "mov -, unif\n" * 3 + "nop ; nop ; thrend\nnop\nnop\n"
    code = assemble(text).bytes
    first, second = frame.job.put(code), frame.job.put(code)
    for place, uniforms, length in ((first, 0x2000, 3), (second, 0x3000, 3), (first, 0x4000, 3)):
        v3d.write(SRQUA, uniforms)
        v3d.write(SRQUL, length)
        v3d.write(SRQPC, place)
    v3d.read(SRQCS)
    compiled = [event for event in heard if isinstance(event, ProgramCompiled)]
    started = [event for event in heard if isinstance(event, ProgramStarted)]
    ended = [event for event in heard if isinstance(event, ProgramEnded)]
    assert started == [
        ProgramStarted(first, 0x2000, 3, len(code)),
        ProgramStarted(second, 0x3000, 3, len(code)),
        ProgramStarted(first, 0x4000, 3, len(code)),
    ]
    assert [(e.qpu, e.address, e.uniforms) for e in ended] == [
        (0, first, 0x2000),
        (1, second, 0x3000),
        (2, first, 0x4000),
    ]
    assert {event.counts.instructions for event in ended} == {len(code) // 8}
    if engine == "jit":
        assert [(e.kind, e.address) for e in compiled] == [
            (ProgramKind.USER, first),
            (ProgramKind.USER, second),
        ]
        assert {event.words for event in compiled} == {words_at(v3d, first, len(code) // 8)}
        assert heard.index(compiled[0]) < heard.index(started[0])
    else:
        assert not compiled


def test_a_program_that_waits_has_not_ended() -> None:
    frame = Frame()
    heard: list[ProgramEnded] = []
    frame.v3d.listeners.program_ended.subscribe(heard.append)
    waits = "sacq -, 3\nnop ; nop ; thrend\nnop\nnop\n"
    frees = "srel -, 3\nnop ; nop ; thrend\nnop\nnop\n"
    frame.v3d.write(SRQPC, frame.job.program(waits))
    frame.v3d.read(SRQCS)
    assert not heard
    frame.v3d.write(SRQPC, frame.job.program(frees))
    frame.v3d.read(SRQCS)
    assert [event.qpu for event in heard] == [0, 1]
