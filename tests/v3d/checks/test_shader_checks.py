"""Shaders that do not fit their record, and the lint's rules, when a draw is met first."""

import pytest
from tests.support.frames import BACKGROUND, CORNERS, RED, Frame, solid
from tests.support.guest_time import HandTime
from tests.support.jobs import nv_vertex, viewport

from vc4lab.diagnostics import Reporter, StrictStop
from vc4lab.options import GpuOptions
from vc4lab.qpu.program.program import Program
from vc4lab.qpu.text.assembler import assemble
from vc4lab.records.control import build
from vc4lab.v3d.checks.shaders import varyings_read
from vc4lab.v3d.core import V3D
from vc4lab.v3d.unknowns import DEFAULT_UNKNOWNS

END = """
    nop
    ldi r0, 0xff0000ff
    nop ; nop ; sbwait
    mov tlbc, r0 ; nop ; thrend
    nop
    nop ; nop ; sbdone
"""
READ = "    mov r1, vary ; nop\n"


def reading(count: int) -> str:
    return READ * count + END


def frame_of(
    program: str, declared: int, primitive: int = 4, engine: str = "jit", **options: object
) -> Frame:
    """A frame drawn with a program and vertices of so many varyings."""
    frame = Frame(options=GpuOptions(engine, **options))  # type: ignore[arg-type]
    if not frame.v3d.frames.services.options.forgiving:
        frame.v3d.check_programs()
    draw(frame, program, declared, primitive)
    return frame


def draw(frame: Frame, program: str, declared: int, primitive: int = 4) -> None:
    vertices = b"".join(nv_vertex(x, y, 0.5, 1.0, *[1.0] * declared) for x, y in CORNERS)
    shader = frame.nv_shader(program, vertices, declared)
    frame.bin(viewport(frame.job) + shader + build(33, mode=primitive, length=3, first=0))


def codes(frame: Frame) -> list[str]:
    return [item.code for item in frame.reporter.items]


@pytest.mark.parametrize("engine", ["jit", "interpreter"])
@pytest.mark.parametrize(
    ("primitive", "declared", "read", "code"),
    [
        (4, 3, 3, None),
        (4, 2, 3, "FRG-008"),
        (4, 0, 1, "FRG-008"),
        (4, 3, 2, "FRG-009"),
        (4, 3, 0, "FRG-009"),
        (4, 0, 0, None),
        (0, 1, 3, None),
        (0, 1, 4, "FRG-008"),
        (0, 3, 3, "FRG-009"),
        (0, 0, 0, None),
        (1, 2, 3, None),
        (1, 3, 3, "FRG-009"),
    ],
)
def test_varyings(primitive: int, declared: int, read: int, code: str | None, engine: str) -> None:
    frame = frame_of(reading(read), declared, primitive, engine)
    assert codes(frame) == ([code] if code else [])
    assert (frame.pixels() == RED).any(), "what is missing is 0"


def test_strict_stops_where_varyings_are_missing_only() -> None:
    frame = Frame()
    frame.v3d = V3D(frame.job.memory, Reporter(strict=True))
    draw(frame, reading(2), 3)
    with pytest.raises(StrictStop, match="FRG-008"):
        draw(frame, reading(3), 2)


def test_forgiving_and_the_other_choice() -> None:
    assert not codes(frame_of(reading(3), 2, forgiving=True))
    waits = frame_of(reading(3), 2, unknowns=DEFAULT_UNKNOWNS.with_(varying_missing="waits"))
    assert set(codes(waits)) == {"FRG-008"}
    assert (waits.pixels() == BACKGROUND).all()
    assert waits.v3d.undrawn == 1


@pytest.mark.parametrize(
    ("text", "count"),
    [
        (f"brr f\nnop\nnop\nnop\n{READ}f: {READ}{END}", 1),
        (f"brr.allz f\nnop\nnop\nnop\n{READ}{END}f: {READ * 2}{END}", 2),
        (f"{READ}l: brr.allz l\nnop\nnop\n{READ}{END}", 2),
        (f"add r0, ra35, rb35\n{END}", 1),
    ],
)
def test_the_longest_way_counts(text: str, count: int) -> None:
    assert varyings_read(Program(tuple(assemble(text).words))) == count


# -- the lint ------------------------------------------------------------------------------------

WITHOUT_WAIT = solid(RED).replace("    sbwait\n", "    nop\n")
EARLY = "mov tlbc, ra15\n" + END
SWITCHES = "nop\nnop\nmov tlbz, rb15\nnop ; nop ; lthrsw\nnop\nnop\n" + END
RELEASED = "nop\nnop\nmov tlbc, ra15 ; nop ; sbdone\n" + END


@pytest.mark.parametrize(
    ("program", "found"),
    [
        (WITHOUT_WAIT, {"QPU-130"}),
        (EARLY, {"QPU-107"}),
        (SWITCHES, {"QPU-129"}),
        (RELEASED, {"QPU-128"}),
        (END.replace("nop ; nop ; sbdone", "nop"), set()),
        ("mov ra1, 1\nmov r1, ra1\nnop\n" + END, {"QPU-101"}),
        (reading(0), set()),
    ],
)
def test_the_lint_looks_at_programs_of_a_board(program: str, found: set[str]) -> None:
    frame = Frame()
    frame.v3d.check_programs()
    draw(frame, program, 0)
    assert {code for code in codes(frame) if code.startswith("QPU")} == found
    assert all(frame.reporter.counts[code] == 1 for code in found)
    for item in frame.reporter.items:
        if item.code.startswith("QPU"):
            assert item.message.startswith("in a fragment shader: ")


@pytest.mark.parametrize(
    ("program", "stops"),
    [(WITHOUT_WAIT, True), (RELEASED, True), ("mov recip, ra15\nmov r1, r4\n" + END, True), (EARLY, False)],
)
def test_strict_stops_at_what_a_board_does_otherwise(program: str, stops: bool) -> None:
    frame = Frame()
    frame.v3d = V3D(frame.job.memory, Reporter(strict=True))
    frame.v3d.check_programs()
    if stops:
        with pytest.raises(StrictStop, match="QPU-1"):
            draw(frame, program, 0)
    else:
        draw(frame, program, 0)


def test_programs_of_drivers_get_no_hints() -> None:
    frame = Frame()
    draw(frame, EARLY, 3)
    assert not codes(frame)


@pytest.mark.parametrize("forgiving", [False, True])
def test_boards_lint_if_they_are_not_forgiving(forgiving: bool) -> None:
    """A board has guest time: a thread is through before the other one begins."""
    frame = Frame(options=GpuOptions(forgiving=forgiving))
    time = HandTime.of(frame.v3d, hertz=1 << 60)
    draw(frame, EARLY, 0)
    assert codes(frame) == ([] if forgiving else ["QPU-107"])
    assert time.moment == 0
