"""Fragment shaders that never end, and those that only take long: one message, no waiting."""

import struct
from collections import Counter

import numpy as np
import pytest
from tests.support.frames import ARRAY, BACKGROUND, CORNERS, RED, Frame, solid, triangle
from tests.support.jobs import viewport
from tests.support.long_shaders import BLUE, ENGINES, FRAGMENT_LOOP, OTHERS, ROUND, codes, counted_steps, loop

from vc4lab.qpu.run import environment
from vc4lab.qpu.run.environment import INSTRUCTION_BUDGET, PROVEN_BUDGET, UNPROVEN_BUDGET
from vc4lab.records.control import build
from vc4lab.v3d.draws import pipelines as draw_pipelines
from vc4lab.v3d.reference import draw as reference_draw
from vc4lab.v3d.tiles import job as tile_job
from vc4lab.v3d.tiles import threads as tiles
from vc4lab.v3d.tiles.threads import TileThreads


@pytest.fixture
def small_budgets(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same rules with less patience."""
    for module, name, value in (
        (tile_job, "FIRST_BUDGET", 1 << 9),
        (tiles, "FIRST_BUDGET", 1 << 9),
        (reference_draw, "UNPROVEN_BUDGET", 1 << 7),
    ):
        monkeypatch.setattr(module, name, value)


def run(body, **options: object) -> tuple[np.ndarray, Counter[str], Frame]:
    frame = Frame(**options)
    picture = frame.bin(viewport(frame.job) + body(frame))
    return picture, frame.reporter.counts, frame


def test_budgets_hold_what_drivers_tests_need() -> None:
    """piglit has a loop of 4,095 rounds of about 90 instructions, in either kind of shader."""
    assert INSTRUCTION_BUDGET == environment.INSTRUCTION_BUDGET == 1 << 22
    assert PROVEN_BUDGET > INSTRUCTION_BUDGET > 4095 * 90


@pytest.mark.parametrize("engine", ENGINES)
def test_a_loop_beyond_the_first_budget_is_drawn(engine: str) -> None:
    """Its tiles are set aside and drawn with the whole budget; what others draw there stays."""
    rounds = 2 + (tile_job.FIRST_BUDGET if engine == "jit" else UNPROVEN_BUDGET) // ROUND

    def body(frame: Frame) -> bytes:
        return loop(frame, rounds, RED, CORNERS) + frame.nv_shader(solid(BLUE), triangle(*OTHERS), 0) + ARRAY

    picture, _, frame = run(body, engine=engine)
    assert codes(frame) == []
    assert set(np.unique(picture)) == {RED, BLUE, BACKGROUND}
    short, _, _ = run(lambda f: loop(f, 1, RED, CORNERS), engine=engine)
    assert ((picture == RED) <= (short == RED)).all()


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    return counted_steps(monkeypatch)


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
    picture = frame.bin(viewport(frame.job) + halves(frame, width, height))
    assert codes(frame) == ["QPU-041"]
    assert (picture == BACKGROUND).all()
    assert 0 < steps[0] <= threads * UNPROVEN_BUDGET + ROUND


def test_an_endless_shader_that_the_compiler_refuses_costs_few_instructions(
    steps: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """All 510 tiles begin it, one sees its small budget through."""
    whole = 1 << 13
    monkeypatch.setattr(reference_draw, "uncompiled_budget", lambda length: whole)
    monkeypatch.setattr(draw_pipelines.DrawPipelines, "compiled", lambda *arguments: None)
    frame = Frame(1920, 1080, engine="interpreter")
    picture = frame.bin(viewport(frame.job) + halves(frame, 1920, 1080))
    assert codes(frame) == ["QPU-041"]
    assert (picture == BACKGROUND).all()
    assert 510 * ROUND < steps[0] - whole <= 1 << 16


def test_compiled_code_is_asked_in_each_frame(steps: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    """That a draw came to its end says nothing of the next frame: a uniform has changed."""
    monkeypatch.setattr(reference_draw, "PROVEN_BUDGET", 1 << 14)
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
    monkeypatch.setattr(reference_draw, "UNPROVEN_BUDGET", 1 << 6)
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
            lambda f, w=width: body(f, w), width=width, height=256, engine="interpreter", threads=threads
        )
        assert codes(frame) == messages
        assert (picture == expected).all()
        assert 4 * 32 * ROUND < steps[0] < 5 * 4 * 512 * ROUND
        assert frame.v3d.frames.events() == counted


ADDING_LOOP = FRAGMENT_LOOP.replace("mov tlbc, unif", "nop ; nop ; loadc\n add r0, r4, unif\n mov tlbc, r0")
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
def test_a_long_loop_survives_an_endless_one_in_another_tile(engine: str, small_budgets: None) -> None:
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
