"""Shaders that never end, and those that only take long: one overrun, one message, no waiting."""

from __future__ import annotations

import struct
from collections import Counter

import numpy as np
import pytest
from tests.support.jobs import viewport
from tests.support.one_frame import ARRAY, BACKGROUND, CORNERS, RED, Frame, solid, triangle

from vc4lab.qpu.isa.encoding import words_of
from vc4lab.qpu.run import environment
from vc4lab.qpu.run.environment import (
    INSTRUCTION_BUDGET,
    PROVEN_BUDGET,
    UNPROVEN_BUDGET,
    Unsupported,
)
from vc4lab.qpu.run.wide import WideInterpreter
from vc4lab.qpu.text.assembler import assemble
from vc4lab.records.control import build
from vc4lab.v3d.draws import pipelines as draw_pipelines
from vc4lab.v3d.fragment.pipeline import PIPELINES
from vc4lab.v3d.golden import draw as golden_draw
from vc4lab.v3d.tiles import job as tile_job
from vc4lab.v3d.tiles import threads as tiles
from vc4lab.v3d.tiles.threads import TileThreads
from vc4lab.v3d.vertex import golden as golden_vertex
from vc4lab.v3d.vertex import pipeline

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
FRAGMENT_WORDS = words_of(assemble(FRAGMENT_LOOP).bytes)
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
    """The same rules with less patience."""
    for module, name, value in (
        (tile_job, "FIRST_BUDGET", 1 << 9),
        (tiles, "FIRST_BUDGET", 1 << 9),
        (golden_draw, "UNPROVEN_BUDGET", 1 << 7),
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
    assert INSTRUCTION_BUDGET == environment.INSTRUCTION_BUDGET == 1 << 22
    assert PROVEN_BUDGET > INSTRUCTION_BUDGET > 4095 * 90


@pytest.mark.parametrize("engine", ENGINES)
def test_a_loop_beyond_the_first_budget_is_drawn(engine: str) -> None:
    """Its tiles are set aside and drawn with the whole budget; what others draw there stays."""
    rounds = 2 + (tile_job.FIRST_BUDGET if engine == "jit" else UNPROVEN_BUDGET) // ROUND

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


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many instructions were interpreted, as the only element."""
    golden_draw._terminations.clear()  # of frames that are not collected yet
    real, done = WideInterpreter.step, [0]

    def step(self: WideInterpreter) -> bool:
        done[0] += 1
        return real(self)

    monkeypatch.setattr(WideInterpreter, "step", step)
    return done


SIZES = ((64, 64), (128, 128), (1920, 1080))


def halves(frame: Frame, width: int, height: int) -> bytes:
    """Endless triangles that cover the whole screen."""
    corners = [((0, 0), (width, 0), (0, height)), ((width, height), (0, height), (width, 0))]
    return b"".join(loop(frame, 0, RED, half) for half in corners)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(("width", "height"), SIZES)
def test_an_endless_interpreted_fragment_shader_costs_few_instructions(
    width: int, height: int, threads: int, steps: list[int]
) -> None:
    """An instruction takes 4 to 30 us: each thread begins one tile, compiled code says the rest."""
    frame = Frame(width, height, engine="interpreter", threads=threads)
    picture = frame.draw(viewport(frame.job) + halves(frame, width, height))
    assert codes(frame) == ["QPU-041"]
    assert (picture == BACKGROUND).all()
    assert 0 < steps[0] <= threads * UNPROVEN_BUDGET + ROUND


@pytest.mark.parametrize("stage", ["coordinate", "vertex"])
def test_an_endless_interpreted_vertex_shader_costs_few_instructions(
    stage: str, steps: list[int]
) -> None:
    frame = Frame(engine="interpreter")
    bad = gl_shader(frame, 0, 1) if stage == "coordinate" else gl_shader(frame, 1, 0)
    picture = frame.draw(viewport(frame.job) + bad + ARRAY)
    assert codes(frame) == ["VTX-005"]
    assert (picture == BACKGROUND).all()
    assert UNPROVEN_BUDGET <= steps[0] <= UNPROVEN_BUDGET + 64


def test_an_endless_shader_that_the_compiler_refuses_costs_few_instructions(
    steps: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """All 510 tiles begin it, one sees its small budget through."""
    whole = 1 << 13
    monkeypatch.setattr(golden_draw, "uncompiled_budget", lambda length: whole)
    monkeypatch.setattr(draw_pipelines.DrawPipelines, "compiled", lambda *arguments: None)
    frame = Frame(1920, 1080, engine="interpreter")
    picture = frame.draw(viewport(frame.job) + halves(frame, 1920, 1080))
    assert codes(frame) == ["QPU-041"]
    assert (picture == BACKGROUND).all()
    assert 510 * ROUND < steps[0] - whole <= 1 << 16


def test_compiled_code_is_asked_in_each_frame(
    steps: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """That a draw came to its end says nothing of the next frame: a uniform has changed."""
    monkeypatch.setattr(golden_draw, "PROVEN_BUDGET", 1 << 14)
    frame = Frame(engine="interpreter", threads=1)
    job = frame.job
    vertices, uniforms = job.put(triangle(*CORNERS)), job.room(8, 16)
    shader = struct.pack("<BBBBIII", 1, 12, 0, 0, job.program(FRAGMENT_LOOP), uniforms, vertices)
    body = viewport(job) + build(65, address=job.put(shader)) + ARRAY
    *binning, lists = job.binning(body)
    rendering = job.rendering(lists, frame.surface, clear=BACKGROUND)
    for rounds, colour, most in (
        (UNPROVEN_BUDGET // ROUND + 8, RED, 1 << 16),
        (0, BACKGROUND, UNPROVEN_BUDGET),
    ):
        job.memory.write(uniforms, struct.pack("<II", rounds, RED))
        steps[0] = 0
        job.run(frame.v3d, (binning[0], binning[1]), rendering)
        assert frame.pixels()[64, 64] == colour
        assert steps[0] <= most
    assert codes(frame) == ["QPU-041"]


ROUNDS_BY_COLUMN = FRAGMENT_LOOP.replace(
    "mov r1, unif",
    """nop
    shr r0, x_coord, 6
    shl r0, r0, 2
    add r0, r0, 1
    mov r1, 1
    shl r1, r1, r0""",
)
"""2, 32, 512, 8192 rounds in the columns of tiles of a screen of 256 pixels."""


@pytest.mark.parametrize("threads", [1, 2])
def test_the_interpreter_takes_for_endless_what_compiled_code_does(
    threads: int, steps: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tiles where a loop is short, beyond doubt, beyond the first budget, beyond the whole one."""
    monkeypatch.setattr(golden_draw, "UNPROVEN_BUDGET", 1 << 6)
    for module, name, value in (
        (tile_job, "FIRST_BUDGET", 1 << 8),
        (tiles, "FIRST_BUDGET", 1 << 8),
        (tiles, "INSTRUCTION_BUDGET", 1 << 14),
    ):
        monkeypatch.setattr(module, name, value)

    def body(frame: Frame, width: int) -> bytes:
        job = frame.job
        vertices = job.put(triangle((0, 0), (2 * width, 0), (0, 512)))
        uniforms, code = job.put(struct.pack("<I", RED)), job.program(ROUNDS_BY_COLUMN)
        data = struct.pack("<BBBBIII", 1, 12, 0, 0, code, uniforms, vertices)
        return build(65, address=job.put(data)) + ARRAY

    for width, messages in ((256, ["QPU-041"]), (192, [])):
        expected, _, frame = run(lambda f, w=width: body(f, w), width=width, height=256)
        assert codes(frame) == messages
        assert (expected[:, :128] == RED).all()
        assert (expected[:64, 128:192] == RED).all()
        counted = frame.v3d.frames.events()
        steps[0] = 0
        picture, _, frame = run(
            lambda f, w=width: body(f, w),
            width=width,
            height=256,
            engine="interpreter",
            threads=threads,
        )
        assert codes(frame) == messages
        assert (picture == expected).all()
        assert 4 * 32 * ROUND < steps[0] < 5 * 4 * 512 * ROUND
        assert frame.v3d.frames.events() == counted


ADDING_LOOP = FRAGMENT_LOOP.replace(
    "mov tlbc, unif", "nop ; nop ; loadc\n add r0, r4, unif\n mov tlbc, r0"
)
"""It adds to the colour that is in the tile buffer."""


@pytest.mark.parametrize("rounds", [(1 << 7) // ROUND + 8, (1 << 9) // ROUND + 8])
@pytest.mark.parametrize("dumps", [False, True], ids=["surface", "dump"])
@pytest.mark.parametrize("engine", ENGINES)
def test_tiles_that_are_loaded_are_drawn_onto_once(
    engine: str, dumps: bool, rounds: int, small_budgets: None
) -> None:
    """Each tile is stored where it was loaded from: what is tried first must not be stored."""
    frame = Frame(engine=engine)
    job, (columns, rows) = frame.job, frame.job.tiles
    vertices, uniforms = job.put(triangle(*CORNERS)), job.put(struct.pack("<II", rounds, 1))
    code = job.program(ADDING_LOOP)
    shader = struct.pack("<BBBBIII", 1, 12, 0, 0, code, uniforms, vertices)
    body = viewport(job) + build(65, address=job.put(shader)) + ARRAY
    start, end, lists = job.binning(body)
    before = 0x10203040
    whole = struct.pack("<I", before) * (128 * 128)
    surface = frame.surface if not dumps else job.put(whole, 4096)
    job.memory.write(surface, whole)
    data = build(113, address=frame.surface, width=128, height=128, format=1)
    for number in range(columns * rows):
        place = build(115, column=number % columns, row=number // columns)
        part = surface + 16384 * number
        if dumps:
            data += build(27, address=part, disable_zs=1)
        else:
            data += build(29, buffer=1, address=surface)
        data += place + build(17, address=lists + 32 * number)
        if dumps:
            data += build(26, address=part, disable_zs=1, disable_clear=1) + place
        data += build(25 if number == columns * rows - 1 else 24)
    at = job.put(data)
    job.run(frame.v3d, (start, end), (at, at + len(data)))
    assert codes(frame) == []
    values, counts = np.unique(frame.pixels(), return_counts=True)
    assert values.tolist() == [before, before + 1]
    assert counts.min() > 1000


@pytest.mark.parametrize("engine", ENGINES)
def test_a_long_loop_survives_an_endless_one_in_another_tile(
    engine: str, small_budgets: None
) -> None:
    """Both tiles are set aside; the verdict on one says nothing of the other."""

    def body(frame: Frame) -> bytes:
        endless = loop(frame, 0, BLUE, ((2, 2), (60, 2), (2, 60)))
        del frame.__dict__["loop"]  # another program of the same text
        frame.job.room(64)
        return endless + loop(frame, 1 << 8, RED, ((70, 2), (120, 2), (70, 60)))

    picture, _, frame = run(body, engine=engine)
    assert codes(frame) == ["QPU-041"]
    assert set(np.unique(picture)) == {RED, BACKGROUND}


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
    before = TileThreads.render_pass

    def counted(self: TileThreads, frame: object, chains: int) -> None:
        if frame.job.budget == INSTRUCTION_BUDGET:  # type: ignore[attr-defined]
            whole.append(chains)
        before(self, frame, chains)  # type: ignore[arg-type]

    monkeypatch.setattr(TileThreads, "render_pass", counted)

    def body(frame: Frame) -> bytes:
        endless = b"".join(loop(frame, 0, colour, CORNERS) for colour in range(12))
        other = frame.nv_shader(solid(RED), triangle(*CORNERS), 0) + ARRAY
        return endless + other

    picture, _, frame = run(body, engine=engine, threads=threads)
    assert codes(frame) == ["QPU-041"]
    assert set(np.unique(picture)) == {RED, BACKGROUND}
    assert [item.address for item in frame.reporter.items] == [frame.__dict__["loop"]]
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
    frame = Frame(engine=engine)
    statuses = []
    shade = pipeline.VertexPipeline.shade

    def counted(self: pipeline.VertexPipeline, context: object) -> int:
        status = shade(self, context)  # type: ignore[arg-type]
        if self.key.engine == engine:  # not the interpreter's question to compiled code
            statuses.append(status)
        return status

    monkeypatch.setattr(pipeline.VertexPipeline, "shade", counted)
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


def test_a_loop_that_lies_elsewhere_is_not_compiled_again() -> None:
    """Drivers put a program at another address in each run."""
    frame = Frame(engine="jit")
    made = []
    for _ in range(3):
        frame.__dict__.pop("loop", None)
        body = gl_shader(frame, 2, 1) + ARRAY + loop(frame, 3, BLUE, OTHERS)
        picture = frame.draw(viewport(frame.job) + body)
        assert set(np.unique(picture)) == {RED, BLUE, BACKGROUND}
        loops = [key for key, _ in PIPELINES._known if key.program == FRAGMENT_WORDS]
        made.append((len(loops), pipeline.vertex_pipeline.cache_info().misses))
    assert made[0][0] > 0
    assert made[1:] == made[:1] * 2
    assert codes(frame) == []


@pytest.mark.parametrize("stage", ["coordinate", "vertex"])
def test_a_vertex_shader_beyond_doubt_takes_as_long_as_compiled(stage: str) -> None:
    """What compiled code shaded to find out is no work of the job's."""
    rounds = (UNPROVEN_BUDGET // ROUND, 1)
    counted = []
    for engine in ENGINES:
        frame = Frame(engine=engine)
        shader = gl_shader(frame, *(rounds if stage == "coordinate" else rounds[::-1]))
        picture = frame.draw(viewport(frame.job) + shader + ARRAY)
        assert codes(frame) == []
        assert (picture == RED).any()
        counted.append((frame.v3d.binning.take_counts(), frame.v3d.frames.take_counts()))
    assert counted[0] == counted[1]
    assert all(counts.shader_instructions for counts in counted[0])


@pytest.mark.parametrize("stage", ["coordinate", "vertex"])
def test_a_vertex_shader_that_the_compiler_refuses_has_a_small_budget(
    stage: str, steps: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuses(*_arguments: object) -> None:
        raise Unsupported("VTX-002", "a test")

    whole = 1 << 13
    monkeypatch.setattr(golden_vertex, "uncompiled_budget", lambda length: whole)
    monkeypatch.setattr(golden_vertex, "PROVEN_BUDGET", 4 * whole)
    frame = Frame(engine="interpreter")
    pipeline.vertex_pipeline.cache_clear()  # of other tests with this program
    init = golden_vertex.VertexInterpreter.__init__
    monkeypatch.setattr(
        golden_vertex.VertexInterpreter, "__init__",
        lambda self, key, program, _pipeline: init(self, key, program, refuses),
    )  # fmt: skip
    bad = gl_shader(frame, 0, 1) if stage == "coordinate" else gl_shader(frame, 1, 0)
    for doubt in (UNPROVEN_BUDGET, 0):
        steps[0] = 0
        frame.draw(viewport(frame.job) + bad + ARRAY)
        assert whole <= steps[0] - doubt <= whole + 64
    pipeline.vertex_pipeline.cache_clear()
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
