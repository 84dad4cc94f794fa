"""Branches to registers in shaders: subroutines, tables, code that no other branch reaches."""

import struct
from collections.abc import Callable

import numpy as np
import pytest
from tests.support.frames import ARRAY, BACKGROUND, CORNERS, RED, Frame, solid, triangle
from tests.support.jobs import viewport

from vc4lab.qpu.jit import flow
from vc4lab.qpu.run import wide
from vc4lab.qpu.run.environment import UNCOMPILED_BUDGET
from vc4lab.qpu.text.assembler import assemble
from vc4lab.records.control import build
from vc4lab.v3d.draws import pipelines
from vc4lab.v3d.draws.preparation import DrawPreparer
from vc4lab.v3d.reference import queue as interpreted_queue
from vc4lab.v3d.vertex import shading as vertices

ENGINES = ("jit", "interpreter")
SLOTS = "    nop\n    nop\n    nop\n"
STOP = """
    nop ; nop ; sbwait
    mov tlbc, r3 ; nop ; thrend
    nop
    nop ; nop ; sbdone
"""


def codes(frame: Frame) -> list[str]:
    return [item.code for item in frame.reporter.items]


def draw(
    program: str,
    uniforms: list[int],
    engine: str,
    draws: int = 1,
    before_last: Callable[[], object] = lambda: None,
) -> tuple[Frame, np.ndarray]:
    """A big triangle with a fragment program; frames follow each other, and the last one counts."""
    frame = Frame(engine=engine)
    job = frame.job
    code = job.program(program)
    values = job.put(struct.pack(f"<{len(uniforms)}I", *uniforms))
    corners = job.put(triangle((-64, 0), (256, 0), (-64, 512)))
    data = struct.pack("<BBBBIII", 1, 12, 0, 0, code, values, corners)
    shader = build(65, address=job.put(data))
    body = viewport(job) + b"".join(shader + build(97, flags=k) + ARRAY for k in range(draws))
    for _ in range(3):
        frame.bin(body)
    before_last()
    return frame, frame.bin(body)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_subroutine_is_no_reason_for_a_message(engine: str) -> None:
    """A return is a branch to a register."""
    text = f"""
        mov r3, 0
        brr ra30, paint
    {SLOTS}
        brr ra30, paint
    {SLOTS}
    {STOP}
    paint:
        ldi r0, 0x00402010
        bra -, ra30
        add r3, r3, r0
        nop
        nop
    """
    frame, picture = draw(text, [], engine)
    assert codes(frame) == []
    assert (picture[:64, :64] == 0x00804020).all()


TABLE = f"""
        shr r1, x_coord, 4
        shl r1, r1, 5
        add ra2, r1, unif
        nop
        bra -, ra2
    {SLOTS}
    {STOP}
"""


def entry(colour: int) -> str:
    return f"    brr -, out\n    ldi r3, 0x{colour:08x}\n    nop\n    nop\n"


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("count", [1, 4])
def test_a_table_after_the_end(engine: str, count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each block of pixels takes another way; lane 15 decides."""
    colours = [0xFF000000 | 0x1F3D << k for k in range(8)]
    head = len(assemble(TABLE).bytes)
    table = "".join(entry(colour) for colour in colours) + "out:\n" + STOP
    at = Frame().job.program("nop")  # the first thing in memory, there and here
    met: list[int] = []
    reached = DrawPreparer.reached
    monkeypatch.setattr(DrawPreparer, "reached", lambda *a: (met.append(a[2]), reached(*a))[1])
    frame, picture = draw(TABLE + table, [at + head], engine, count, before_last=met.clear)
    assert codes(frame) == []
    assert not met, "the tiles of a frame whose programs are known are drawn once"
    expected = np.array(colours, np.uint32)[np.arange(128) // 16]
    inside = picture[0]
    assert (inside[:120] == expected[:120]).all()


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("uniform", [0x30000007, 0x30000001])
def test_a_way_to_where_no_code_can_lie(engine: str, uniform: int) -> None:
    """Between two instructions: the draw is left out in every tile, the one before it is drawn."""
    frame = Frame(engine=engine)
    job = frame.job
    corners, good = job.put(triangle((-64, 0), (256, 0), (-64, 512))), job.program(solid(RED))
    code = job.program(f"    mov ra0, unif\n    nop\n    bra -, ra0\n{SLOTS}{STOP}")
    uniforms = job.put(struct.pack("<I", uniform))
    body = viewport(job)
    for program in (good, code):
        data = struct.pack("<BBBBIII", 1, 12, 0, 0, program, uniforms, corners)
        body += build(65, address=job.put(data)) + ARRAY
    for number in range(1, 3):
        assert set(np.unique(frame.bin(body)).tolist()) == {RED}
        assert frame.reporter.counts == {"QPU-042": number}
    (item,) = frame.reporter.items
    assert item.address == code
    assert f"0x{uniform:08x}" in item.message


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("stage", ["coordinate", "vertex"])
def test_vertex_shaders(stage: str, engine: str) -> None:
    """The rest of the program lies in another place, which only a uniform names."""
    frame = Frame(engine=engine)
    job = frame.job
    clip = b"".join(struct.pack("<4f", 0, 0, 0, 1) for _ in CORNERS)
    screen = b"".join(struct.pack("<hhff", 16 * x, 16 * y, 0.5, 1.0) for x, y in CORNERS)
    record = struct.pack("<HBBII", 1, 0, 0, job.program(solid(RED)), 0)
    for name, words, arrays, size in (("vertex", 3, 2, 12), ("coordinate", 7, 3, 28)):
        head = f"ldi vr_setup, 0x{words}01a00\nldi vw_setup, 0x1a00\n"
        rest = "    mov vpm, vpm ; nop\n" * words + "    nop ; nop ; thrend\n    nop\n    nop\n"
        uniforms = 0
        if name == stage:
            uniforms = job.put(struct.pack("<I", job.program(rest)))
            rest = f"    mov ra0, unif\n    nop\n    bra -, ra0\n{SLOTS}    nop ; nop ; thrend\n"
            rest += "    nop\n    nop\n"
        code = job.program(head + SLOTS + rest)
        record += struct.pack("<HBBII", 0, arrays, size, code, uniforms)
    record += struct.pack("<IBBBB", job.put(clip), 15, 16, 0, 0)
    record += struct.pack("<IBBBB", job.put(screen), 11, 12, 0, 16)
    body = viewport(job) + build(64, address=job.put(record), attributes=2) + ARRAY
    for _ in range(4):  # native code looks shaders up; it must not take what has grown
        picture = frame.bin(body)
        assert set(np.unique(picture)) == {RED, BACKGROUND}
    assert not {"QPU-002", "QPU-042", "QPU-044"} & set(codes(frame))


# -- what cannot be compiled -----------------------------------------------------------------------


def test_a_long_fragment_shader_is_interpreted() -> None:
    text = "    mov r3, 0\n" + "    add r3, r3, 1\n" * (flow.MAX_PLACES + 10) + STOP
    frame, picture = draw(text, [], "jit")
    assert codes(frame) == ["QPU-057"]
    assert (picture[:64, :64] == flow.MAX_PLACES + 10).all()


def test_more_ways_than_are_worth_compiling(monkeypatch: pytest.MonkeyPatch) -> None:
    """The interpreter needs to learn nothing but code."""
    for room in (pipelines, vertices):
        monkeypatch.setattr(room, "MAX_WAYS", 2)
    test_a_table_after_the_end("jit", 2, monkeypatch)
    monkeypatch.setattr(vertices, "MAX_WAYS", 0)
    for stage in ("coordinate", "vertex"):
        test_vertex_shaders(stage, "jit")


def test_a_result_that_depends_on_the_way_is_interpreted() -> None:
    """Compiled code cannot (QPU-046), the chip just goes on with its queues."""
    text = f"""
        mov r3, unif
        sub.setf -, elem_num, 0
        brr.all_zs -, other
        nop
        nop
        nop
        mov t0s, r3
    other:
        mov r0, 0
        nop ; nop ; ldtmu0
        mov r3, r4
    {STOP}
    """
    frame = Frame()
    at = frame.job.put(struct.pack("<I", 0xFF123456))
    frame, picture = draw(text, [at], "jit")
    assert set(codes(frame)) <= {"QPU-057", "TMU-001"}
    _, expected = draw(text, [at], "interpreter")
    assert (picture == expected).all()


def test_what_is_interpreted_unasked_has_a_small_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    """A frame in the compiled engine does not wait for the interpreter."""
    granted: list[int] = []
    run = wide.run_wide

    def counted(*arguments: object, budget: int, **options: object) -> None:
        granted.append(budget)
        run(*arguments, budget=budget, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(interpreted_queue, "run_wide", counted)
    text = "    mov r3, 0\n" + "    add r3, r3, 1\n" * (flow.MAX_PLACES + 10)
    frame, picture = draw(f"{text}loop:\n    brr -, loop\n{SLOTS}{STOP}", [], "jit")
    assert (picture == BACKGROUND).all()
    assert codes(frame) == ["QPU-057", "QPU-041"]
    assert max(granted) == UNCOMPILED_BUDGET
