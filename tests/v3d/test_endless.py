"""Shaders that never end, and those that only take long: one overrun, one message, no waiting."""

from __future__ import annotations

import struct
from collections import Counter

import numpy as np
import pytest
from tests.support.jobs import viewport
from tests.v3d.test_frames import ARRAY, BACKGROUND, CORNERS, RED, Frame, solid, triangle

from vc4lab.qpu import environment
from vc4lab.qpu.environment import GOLDEN_BUDGET, INSTRUCTION_BUDGET
from vc4lab.qpu.wide import WideInterpreter
from vc4lab.records.control import build
from vc4lab.v3d.fragment import interpreted, tile_job
from vc4lab.v3d.fragment.tiles import TileScheduler
from vc4lab.v3d.lists import draws

ENGINES = ("jit", "interpreter")
BLUE = 0xFFFF0000
OTHERS = ((20, 100), (100, 100), (64, 20))

FRAGMENT_LOOP = """
    mov r1, unif
    mov r0, 0
loop:
    sub r1, r1, 1
    sub.setf -, r1, 0
    brr.any_zc -, loop
    add r0, r0, 1
    nop
    nop
    nop ; nop ; sbwait
    mov tlbc, unif ; nop ; thrend
    nop
    nop ; nop ; sbdone
"""
ROUND = 6
"""Instructions of a round."""

VERTEX_LOOP = """
    ldi vr_setup, 0x{words}01a00
    ldi vw_setup, 0x1a00
    mov r1, unif
loop:
    sub r1, r1, 1
    sub.setf -, r1, 0
    brr.any_zc -, loop
    nop
    nop
    nop
"""


@pytest.fixture
def small_budgets(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same rules with less patience, so that the interpreter is not asked for millions."""
    from vc4lab.v3d.fragment import tiles

    for module, name, value in (
        (tile_job, "FIRST_BUDGET", 1 << 9),
        (tiles, "FIRST_BUDGET", 1 << 9),
        (draws, "GOLDEN_BUDGET", 1 << 13),
    ):
        monkeypatch.setattr(module, name, value)


def loop(frame: Frame, rounds: int, colour: int, corners: tuple[tuple[float, float], ...]) -> bytes:
    """A triangle whose fragment shader makes so many rounds (0: 2^32 of them) before its colour."""
    job = frame.job
    if "loop" not in frame.__dict__:
        frame.__dict__["loop"] = job.program(FRAGMENT_LOOP)
    uniforms = job.put(struct.pack("<II", rounds, colour))
    vertices = job.put(triangle(*corners))
    data = struct.pack("<BBBBIII", 1, 12, 0, 0, frame.__dict__["loop"], uniforms, vertices)
    return build(65, address=job.put(data)) + ARRAY


def run(body, **options: object) -> tuple[np.ndarray, Counter[str], Frame]:
    frame = Frame(**options)
    picture = frame.draw(viewport(frame.job) + body(frame))
    return picture, frame.reporter.counts, frame


def codes(frame: Frame) -> list[str]:
    """Of the messages that a user would see."""
    return [item.code for item in frame.reporter.items]


def test_budgets_hold_what_drivers_tests_need() -> None:
    """piglit has a loop of 4,095 rounds of about 90 instructions, in either kind of shader."""
    assert GOLDEN_BUDGET > 4095 * 90
    assert INSTRUCTION_BUDGET == environment.INSTRUCTION_BUDGET == 1 << 22


@pytest.mark.parametrize("engine", ENGINES)
def test_a_loop_beyond_the_first_budget_is_drawn(engine: str) -> None:
    """Its tiles are set aside and drawn with the whole budget; what others draw there stays."""
    rounds = (
        2 + (tile_job.FIRST_BUDGET if engine == "jit" else interpreted.FIRST_GOLDEN_BUDGET) // ROUND
    )

    def body(frame: Frame) -> bytes:
        return (
            loop(frame, rounds, RED, CORNERS)
            + frame.nv_shader(solid(BLUE), triangle(*OTHERS), 0)
            + ARRAY
        )

    picture, _, frame = run(body, engine=engine)
    assert codes(frame) == []
    assert set(np.unique(picture)) == {RED, BLUE, BACKGROUND}
    short, _, _ = run(lambda f: loop(f, 1, RED, CORNERS), engine=engine)
    assert ((picture == RED) <= (short == RED)).all()


@pytest.mark.parametrize("refused", [False, True], ids=["interpreter", "uncompiled"])
def test_an_endless_shader_of_1080_lines_takes_a_second(
    refused: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All 510 tiles begin it and one sees it through; an instruction takes 5 us or more."""
    whole = 1 << 13
    monkeypatch.setattr(draws, "GOLDEN_BUDGET", whole)  # what is granted to the one tile
    if not refused:
        monkeypatch.setattr(interpreted, "GOLDEN_BUDGET", whole)
    real, done = WideInterpreter.step, [0]

    def step(self: WideInterpreter) -> bool:
        done[0] += 1
        return real(self)

    monkeypatch.setattr(WideInterpreter, "step", step)
    width, height = 1920, 1080
    halves = [((0, 0), (width, 0), (0, height)), ((width, height), (0, height), (width, 0))]

    def body(frame: Frame) -> bytes:
        return b"".join(loop(frame, 0, RED, half) for half in halves)

    picture, _, frame = run(body, width=width, height=height, engine="interpreter")
    assert codes(frame) == ["QPU-041"]
    assert (picture == BACKGROUND).all()
    most = 1 << 16 if refused else 1 << 17
    assert 510 * ROUND < done[0] - whole <= most


def test_compiled_code_ends_at_four_million_instructions() -> None:
    just, over = INSTRUCTION_BUDGET // ROUND - 8, INSTRUCTION_BUDGET // ROUND + 8
    corners = ((8, 8), (12, 8), (8, 12))
    picture, _, frame = run(lambda f: loop(f, just, RED, corners))
    assert codes(frame) == []
    assert (picture == RED).any()
    picture, _, frame = run(lambda f: loop(f, over, RED, corners))
    assert codes(frame) == ["QPU-041"]
    assert (picture == BACKGROUND).all()


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("engine", ENGINES)
def test_an_endless_fragment_shader(
    engine: str, threads: int, small_budgets: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Many draws in all tiles: the whole budget is spent once, and there is one message."""
    whole = []
    before = TileScheduler._pass

    def counted(self: TileScheduler, frame: object, chains: int) -> None:
        if frame.job.budget == INSTRUCTION_BUDGET:  # type: ignore[attr-defined]
            whole.append(chains)
        before(self, frame, chains)  # type: ignore[arg-type]

    monkeypatch.setattr(TileScheduler, "_pass", counted)

    def body(frame: Frame) -> bytes:
        endless = b"".join(loop(frame, 0, colour, CORNERS) for colour in range(12))
        other = frame.nv_shader(solid(RED), triangle(*CORNERS), 0) + ARRAY
        return endless + other

    picture, _, frame = run(body, engine=engine, threads=threads)
    assert codes(frame) == ["QPU-041"]
    assert set(np.unique(picture)) == {RED, BACKGROUND}
    assert sum(whole) <= 2 * 4 + 1, "tiles are rendered again, but not each with an overrun"
    assert whole[0] == 1


@pytest.mark.parametrize("engine", ENGINES)
def test_tiles_where_a_loop_ends_keep_what_it_drew(engine: str, small_budgets: None) -> None:
    """The rule for programs that end in some tiles only, whatever the order and the threads."""
    program = FRAGMENT_LOOP.replace("mov r1, unif", "nop\n shr r1, x_coord, 6")

    def body(frame: Frame) -> bytes:
        job = frame.job
        vertices = job.put(triangle((-64, 0), (256, 0), (-64, 512)))
        uniforms = job.put(struct.pack("<I", RED))
        data = struct.pack("<BBBBIII", 1, 12, 0, 0, job.program(program), uniforms, vertices)
        return build(65, address=job.put(data)) + ARRAY

    for threads in (1, 2):
        picture, _, frame = run(body, engine=engine, threads=threads)
        assert codes(frame) == ["QPU-041"]
        assert (picture[:, :64] == BACKGROUND).all()
        assert (picture[:64, 64:] == RED).all()


# -- vertex and coordinate shaders ---------------------------------------------------------------


def gl_shader(frame: Frame, coordinate: int, vertex: int) -> bytes:
    """A record 64 whose coordinate and vertex shaders make so many rounds, and three vertices."""
    job = frame.job
    clip = b"".join(struct.pack("<4f", 0, 0, 0, 1) for _ in CORNERS)
    screen = b"".join(struct.pack("<hhff", 16 * x, 16 * y, 0.5, 1.0) for x, y in CORNERS)
    record = struct.pack("<HBBII", 1, 0, 0, job.program(solid(RED)), 0)
    for words, arrays, size, rounds in ((3, 2, 12, vertex), (7, 3, 28, coordinate)):
        text = VERTEX_LOOP.format(words=words) + "    mov vpm, vpm ; nop\n" * words
        code = job.program(text + "    nop ; nop ; thrend\n    nop\n    nop\n")
        record += struct.pack("<HBBII", 1, arrays, size, code, job.put(struct.pack("<I", rounds)))
    record += struct.pack("<IBBBB", job.put(clip), 15, 16, 0, 0)
    record += struct.pack("<IBBBB", job.put(screen), 11, 12, 0, 16)
    return build(64, address=job.put(record), attributes=2)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("stage", ["coordinate", "vertex"])
def test_an_endless_vertex_shader(stage: str, engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Many draws with it, in a list that is walked natively: one overrun, one message."""
    from vc4lab.v3d.geometry import vertex, vertex_interpreter

    if engine == "interpreter":
        golden = vertex_interpreter.run_wide
        monkeypatch.setattr(
            vertex_interpreter, "run_wide", lambda *a, **k: golden(*a, **{**k, "budget": 1 << 10})
        )
    frame = Frame(engine=engine)
    statuses = []
    shade = vertex.VertexPipeline.shade

    def counted(self: vertex.VertexPipeline, context: object) -> int:
        statuses.append(shade(self, context))  # type: ignore[arg-type]
        return statuses[-1]

    monkeypatch.setattr(vertex.VertexPipeline, "shade", counted)
    good = gl_shader(frame, 1, 1)
    bad = gl_shader(frame, 0, 1) if stage == "coordinate" else gl_shader(frame, 1, 0)
    states = [build(97, flags=number) for number in range(20)]
    draws = b"".join(state + bad + ARRAY for state in states)
    other = frame.nv_shader(solid(BLUE), triangle(*OTHERS), 0) + ARRAY
    body = viewport(frame.job) + good + ARRAY + draws + other
    for _ in range(4):  # native code comes in
        statuses.clear()
        picture = frame.draw(body)
        assert set(np.unique(picture)) == {RED, BLUE, BACKGROUND}
        assert sum(status != 0 for status in statuses) == 1
    assert codes(frame) == ["VTX-005"]


@pytest.mark.parametrize("engine", ENGINES)
def test_a_vertex_shader_that_leaves_its_program(engine: str) -> None:
    frame = Frame(64, 64, engine=engine)
    job = frame.job
    code = job.program("bra -, 0x30000007\nnop\nnop\nnop\nnop ; nop ; thrend\nnop\nnop\n")
    record = struct.pack("<HBBII", 1, 0, 0, job.program(solid(RED)), 0)
    record += 2 * struct.pack("<HBBII", 0, 1, 8, code, 0)
    record += struct.pack("<IBBBB", job.put(bytes(64)), 7, 8, 0, 0)
    state = build(64, address=job.put(record), attributes=1)
    picture = frame.draw(viewport(job) + state + ARRAY)
    assert (picture == BACKGROUND).all()
    assert "QPU-042" in codes(frame)
    assert "VTX-005" not in codes(frame)
