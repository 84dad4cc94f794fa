"""Rows that a vertex shader reads and writes against its set-ups, its record and its arrays."""

import struct
import time

import numpy as np
import pytest
from tests.support.frames import ARRAY, BACKGROUND, CORNERS, RED, Frame, solid
from tests.support.jobs import BFC, viewport

from vc4lab.diagnostics import Reporter, StrictStop
from vc4lab.options import GpuOptions
from vc4lab.qpu.program.program import Program
from vc4lab.qpu.text.assembler import assemble
from vc4lab.records.control import build
from vc4lab.v3d.core import V3D
from vc4lab.v3d.vpm.row_checks import check_rows

END = "nop ; nop ; thrend\nnop\nnop\n"
COPY = "mov vpm, vpm ; nop\n"
ENGINES = ["jit", "interpreter"]


def read_setup(rows: int, first: int = 0) -> str:
    return f"ldi vr_setup, 0x{0x1A00 | rows << 20 | first:x}\n"


def write_setup(first: int = 0) -> str:
    return f"ldi vw_setup, 0x{0x1A00 | first:x}\n"


def found(text: str, rows_in: int, rows_out: int, *arrays: tuple[int, int]) -> set[str]:
    """Codes for a program; arrays: (bytes, offset) each, by default one that fills all rows."""
    attributes = [(number, *array) for number, array in enumerate(arrays or ((4 * rows_in, 0),))]
    program = Program(tuple(assemble(text + END).words))
    return {code for code, _ in check_rows(program, rows_in, rows_out, attributes)}


@pytest.mark.parametrize(
    ("text", "rows_in", "rows_out", "codes"),
    [
        (read_setup(3) + write_setup() + COPY * 3, 3, 3, set()),
        (read_setup(2) + read_setup(1) + write_setup() + COPY * 3, 3, 3, {"VTX-007", "VTX-008"}),
        (
            write_setup() + read_setup(2) + COPY + read_setup(2, 2) + COPY * 3,
            4, 4, set(),
        ),
        (read_setup(2) + write_setup() + COPY * 3, 3, 3, {"VTX-007"}),
        (write_setup() + COPY * 3, 3, 3, {"VTX-007"}),
        (read_setup(4) + write_setup() + COPY * 3, 4, 3, {"VTX-008"}),
        (read_setup(3) + write_setup() + COPY * 3, 2, 3, {"VTX-003"}),
        (read_setup(2, 2) + write_setup() + COPY * 2, 3, 2, {"VTX-003"}),
        (read_setup(3) + write_setup() + COPY * 3, 3, 4, {"VTX-004"}),
        (read_setup(3) + write_setup() + COPY * 3, 3, 2, {"VTX-006"}),
        (read_setup(3) + write_setup(1) + COPY * 3, 3, 3, {"VTX-004", "VTX-006"}),
        (read_setup(3) + COPY * 3, 3, 3, set()),
        (read_setup(0) + write_setup() + COPY * 16, 16, 16, set()),
    ],
)  # fmt: skip
def test_rows(text: str, rows_in: int, rows_out: int, codes: set[str]) -> None:
    assert found(text, rows_in, rows_out) == codes


@pytest.mark.parametrize(
    ("arrays", "codes"),
    [
        (((12, 0),), set()),
        (((8, 0), (4, 8)), set()),
        (((8, 0), (1, 8)), set()),
        (((16, 0),), set()),
        (((8, 0),), {"VTX-009"}),
        (((12, 4),), {"VTX-009"}),
        (((4, 0), (4, 8)), {"VTX-009"}),
    ],
)
def test_arrays_fill_the_rows(arrays: tuple[tuple[int, int], ...], codes: set[str]) -> None:
    assert found(read_setup(3) + write_setup() + COPY * 3, 3, 3, *arrays) == codes


def test_nothing_is_said_of_rows_that_are_not_read() -> None:
    assert not found(read_setup(1) + write_setup() + COPY, 3, 1, (4, 0))


EITHER = """
    nop ; nop ; ldtmu0
    brr.allz -, other
    nop
    nop
    nop
{first}
    brr -, after
    nop
    nop
    nop
other:
{second}
after:
"""
LOOP = """
    mov ra0, 3
    nop
l:  mov vpm, vpm ; nop
    sub.setf ra0, ra0, 1
    nop
    brr.allnz -, l
    nop
    nop
    nop
"""


def either(first: str, second: str) -> str:
    return EITHER.format(first=first, second=second)


@pytest.mark.parametrize(
    ("text", "rows_in", "rows_out", "codes"),
    [
        (read_setup(3) + write_setup() + either(COPY * 3, COPY * 3), 3, 3, set()),
        (read_setup(2) + write_setup() + either(COPY * 3, COPY * 3), 3, 3, {"VTX-007"}),
        (read_setup(2) + write_setup() + either(COPY * 2, COPY * 3), 3, 2, set()),
        (read_setup(3) + write_setup() + either(COPY * 2, COPY), 3, 3, {"VTX-008", "VTX-004"}),
        (read_setup(3) + write_setup() + either(COPY * 3, COPY), 3, 3, set()),
        (read_setup(3) + write_setup() + either(COPY * 3, COPY * 3), 3, 2, {"VTX-006"}),
        (read_setup(3) + write_setup() + LOOP, 3, 3, set()),
        (read_setup(3) + write_setup() + LOOP, 3, 20, set()),
        (write_setup() + LOOP, 3, 3, {"VTX-007"}),
        (read_setup(1) + write_setup() + "x: brr -, ra1\nnop\nnop\nnop\n", 1, 3, set()),
    ],
)
def test_what_is_wrong_on_all_ways_is_found(text: str, rows_in: int, rows_out: int, codes: set[str]) -> None:
    assert found(text, rows_in, rows_out) == codes


def test_too_many_ways_end_in_silence() -> None:
    body = read_setup(0) + write_setup() + "mov r0, vpm ; nop\n" * 2
    skips = "".join(
        f"brr.anyz -, s{number}\nnop\nnop\nnop\nldi vw_setup, 0x{0x1A00 | number:x}\n"
        f"mov vpm, r0 ; nop\ns{number}:\n"
        for number in range(30)
    )
    begin = time.process_time()
    assert not found(body + skips, 2, 1)
    assert time.process_time() - begin < 2


# -- in a frame ----------------------------------------------------------------------------------


def drawn(text: str, frame: Frame) -> np.ndarray:
    """A red triangle whose vertex shader is `text`, which is to copy three words."""
    job = frame.job
    clip = b"".join(struct.pack("<4f", 0, 0, 0, 1) for _ in CORNERS)
    screen = b"".join(struct.pack("<hhff", 16 * x, 16 * y, 0.5, 1.0) for x, y in CORNERS)
    coordinate = read_setup(7) + write_setup() + COPY * 7 + END
    record = struct.pack("<HBBII", 1, 0, 0, job.program(solid(RED)), 0)
    record += struct.pack("<HBBII", 0, 2, 12, job.program(text + END), 0)
    record += struct.pack("<HBBII", 0, 3, 28, job.program(coordinate), 0)
    record += struct.pack("<IBBBB", job.put(clip), 15, 16, 0, 0)
    record += struct.pack("<IBBBB", job.put(screen), 11, 12, 0, 16)
    shader = build(64, address=job.put(record), attributes=2)
    return frame.bin(viewport(job) + shader + ARRAY)


BRANCHY = """
    ldi vr_setup, 0x201a00
    ldi vw_setup, 0x1a00
    mov ra0, 3
    nop
l:  mov vpm, vpm ; nop
    sub.setf ra0, ra0, 1
    nop
    brr.allnz -, l
    nop
    nop
    nop
"""


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("text", [read_setup(2) + write_setup() + COPY * 3, BRANCHY])
def test_a_row_that_nothing_asks_for_ends_the_draw(text: str, engine: str) -> None:
    frame = Frame(engine=engine)
    assert (drawn(text, frame) == BACKGROUND).all()
    assert [item.code for item in frame.reporter.items] == ["VTX-007"]
    assert frame.v3d.read(BFC) == 1, "the coordinate shader is another program"
    assert frame.v3d.undrawn == 1
    kind = Frame(options=GpuOptions(engine, forgiving=True))
    assert drawn(text, kind).shape == (128, 128)
    assert not kind.reporter.items
    enough = Frame(engine=engine)
    assert (drawn(text.replace("0x201a00", "0x301a00"), enough) == RED).any()
    assert not enough.reporter.items


def test_strict_stops_at_what_boards_do_not_do() -> None:
    for text, code in (
        (read_setup(4) + write_setup() + COPY * 3, "VTX-003|VTX-008"),
        (read_setup(3) + write_setup() + COPY * 2, "VTX-008|VTX-004"),
    ):
        frame = Frame()
        drawn(text, frame)
        frame.v3d = V3D(frame.job.memory, Reporter(strict=True))
        with pytest.raises(StrictStop, match=code):
            drawn(text, frame)
