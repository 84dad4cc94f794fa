"""Vertex and coordinate shaders that never end, or only take long: one overrun, one message."""

import struct

import numpy as np
import pytest
from tests.support.frames import ARRAY, BACKGROUND, CORNERS, RED, Frame, solid, triangle
from tests.support.jobs import viewport
from tests.support.long_shaders import (
    BLUE,
    ENGINES,
    FRAGMENT_WORDS,
    OTHERS,
    ROUND,
    codes,
    counted_steps,
    loop,
)

from vc4lab.qpu.run.environment import UNPROVEN_BUDGET, Unsupported
from vc4lab.records.control import build
from vc4lab.v3d.fragment.pipeline import PIPELINES
from vc4lab.v3d.vertex import pipeline
from vc4lab.v3d.vertex import reference as reference_vertex

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
def steps(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    return counted_steps(monkeypatch)


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
        picture = frame.bin(body)
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
        picture = frame.bin(viewport(frame.job) + body)
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
        picture = frame.bin(viewport(frame.job) + shader + ARRAY)
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
    monkeypatch.setattr(reference_vertex, "uncompiled_budget", lambda length: whole)
    monkeypatch.setattr(reference_vertex, "PROVEN_BUDGET", 4 * whole)
    frame = Frame(engine="interpreter")
    pipeline.vertex_pipeline.cache_clear()  # of other tests with this program
    init = reference_vertex.VertexInterpreter.__init__
    monkeypatch.setattr(
        reference_vertex.VertexInterpreter, "__init__",
        lambda self, key, program, _pipeline: init(self, key, program, refuses),
    )  # fmt: skip
    bad = gl_shader(frame, 0, 1) if stage == "coordinate" else gl_shader(frame, 1, 0)
    for doubt in (UNPROVEN_BUDGET, 0):
        steps[0] = 0
        frame.bin(viewport(frame.job) + bad + ARRAY)
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
    picture = frame.bin(viewport(job) + state + ARRAY)
    assert (picture == BACKGROUND).all()
    assert "QPU-042" in codes(frame)
    assert "VTX-005" not in codes(frame)


@pytest.mark.parametrize("stage", ["coordinate", "vertex"])
def test_an_endless_interpreted_vertex_shader_costs_few_instructions(stage: str, steps: list[int]) -> None:
    frame = Frame(engine="interpreter")
    bad = gl_shader(frame, 0, 1) if stage == "coordinate" else gl_shader(frame, 1, 0)
    picture = frame.bin(viewport(frame.job) + bad + ARRAY)
    assert codes(frame) == ["VTX-005"]
    assert (picture == BACKGROUND).all()
    assert UNPROVEN_BUDGET <= steps[0] <= UNPROVEN_BUDGET + 64
