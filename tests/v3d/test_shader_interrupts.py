"""HOST_INT written by vertex, coordinate and fragment shaders: it comes, and all is drawn."""

import ctypes
import struct

import numpy as np
import pytest
from tests.support.frames import ARRAY, BACKGROUND, CORNERS, RED, Frame, solid, triangle
from tests.support.jobs import viewport
from tests.v3d.test_registers import read, write

from vc4lab.records.control import build
from vc4lab.v3d.core import V3D
from vc4lab.v3d.services import COORDINATES, FRAGMENTS, VERTICES, ShaderInterrupts

COPY = """
    ldi vr_setup, 0x{words}01a00
    ldi vw_setup, 0x1a00
    nop
    nop
    nop
"""
END = "    nop ; nop ; thrend\n    nop\n    nop\n"
TELL = "    or host_int, 1, 1 ; nop\n"
NOTHING = "    or host_int, 0, 0 ; nop\n"
MASKED = "    nop\n    or.setf -, 1, 1 ; nop\n    mov.zs host_int, 1\n"
ONE_LANE = "    sub.setf -, elem_num, 5 ; nop\n    mov.zs host_int, 1\n"


def draw(extra: dict[str, str], **options: object) -> tuple[np.ndarray, V3D, Frame]:
    """A triangle whose shaders have these lines before their ends."""
    frame = Frame(**options)
    job = frame.job
    clip = b"".join(struct.pack("<4f", 0, 0, 0, 1) for _ in CORNERS)
    screen = b"".join(struct.pack("<hhff", 16 * x, 16 * y, 0.5, 1.0) for x, y in CORNERS)
    fragment = solid(RED).replace("    sbwait", extra.get("fragment", "") + "    sbwait")
    record = struct.pack("<HBBII", 1, 0, 0, job.program(fragment), 0)
    for stage, words, arrays, size in (("vertex", 3, 2, 12), ("coordinate", 7, 3, 28)):
        text = COPY.format(words=words) + "    mov vpm, vpm ; nop\n" * words
        code = job.program(text + extra.get(stage, "") + END)
        record += struct.pack("<HBBII", 0, arrays, size, code, 0)
    record += struct.pack("<IBBBB", job.put(clip), 15, 16, 0, 0)
    record += struct.pack("<IBBBB", job.put(screen), 11, 12, 0, 16)
    state = build(64, address=job.put(record), attributes=2)
    body = viewport(job) + state + ARRAY
    for _ in range(4):  # native code takes over
        write(frame.v3d, "DBQITC", 0xFFFF)
        picture = frame.bin(body)
    return picture, frame.v3d, frame


@pytest.mark.parametrize("engine", ["jit", "interpreter"])
@pytest.mark.parametrize("stage", ["coordinate", "vertex", "fragment"])
@pytest.mark.parametrize(("text", "told"), [(TELL, 1), (NOTHING, 0), (MASKED, 0), (ONE_LANE, 1), ("", 0)])
def test_a_shader_interrupts_the_host(stage: str, engine: str, text: str, told: int) -> None:
    picture, v3d, frame = draw({stage: text}, engine=engine)
    assert frame.reporter.items == []
    assert set(np.unique(picture)) == {RED, BACKGROUND}
    assert read(v3d, "DBQITC") == told
    assert not v3d.interrupt_pending
    write(v3d, "DBQITE", 0xFFFF)
    assert v3d.interrupt_pending == bool(told)
    write(v3d, "DBQITC", 1)
    assert read(v3d, "DBQITC") == 0
    assert not v3d.interrupt_pending


def test_the_line_rises_when_it_is_enabled() -> None:
    frame = Frame()
    levels: list[bool] = []
    frame.v3d.on_interrupt = levels.append
    write(frame.v3d, "DBQITE", 1)
    program = solid(RED).replace("    sbwait", TELL + "    sbwait")
    shader = frame.nv_shader(program, triangle(*CORNERS), 0)
    frame.bin(viewport(frame.job) + shader + ARRAY)
    assert levels == [True]


@pytest.mark.parametrize(
    ("stages", "threads"),
    [
        ((), []),
        ((COORDINATES,), [0]),
        ((VERTICES,), [1]),
        ((FRAGMENTS,), [1]),
        ((VERTICES, FRAGMENTS), [1]),
        ((COORDINATES, FRAGMENTS), [0, 1]),
    ],
)
def test_an_interrupt_belongs_to_its_list_once(stages: tuple[int, ...], threads: list[int]) -> None:
    found = ShaderInterrupts()
    for stage in stages:
        ctypes.c_uint8.from_address(found.place(stage)).value = 1
    assert found.take() == threads
    assert found.take() == []
    assert not found.word.value
