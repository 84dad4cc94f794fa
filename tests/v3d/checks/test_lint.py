"""Hints: each mistake is named once, nothing else is."""

import struct

import pytest
from tests.support.frames import BACKGROUND, RED, Frame, solid
from tests.support.guest_time import HandTime
from tests.support.jobs import CT0CA, CT0EA, nv_vertex, viewport

from vc4lab.diagnostics import Severity
from vc4lab.options import GpuOptions
from vc4lab.records.control import build
from vc4lab.v3d.registers import BY_NAME, ThreadControl

TRIANGLE = b"".join(nv_vertex(x, y, 0.5, 1.0) for x, y in ((5, 5), (5, 60), (60, 5)))
ARRAY = build(33, mode=4, length=3, first=0)


def binning(frame: Frame, data: bytes) -> None:
    start = frame.job.put(data)
    frame.v3d.write(CT0CA, start)
    frame.v3d.write(CT0EA, start + len(data))


def grid(frame: Frame, columns: int = 2, rows: int = 2, offset: int = 0) -> tuple[bytes, int]:
    """Record 112 and the address of its tile lists."""
    lists = frame.job.room(1 << 16) + offset
    data = build(112, address=lists, memory_size=1 << 15, tiles_x=columns, tiles_y=rows)
    return data, lists


def codes(frame: Frame) -> set[str]:
    return {item.code for item in frame.reporter.items}


def test_a_proper_frame_has_no_hints() -> None:
    frame = Frame()
    frame.bin(viewport(frame.job) + frame.nv_shader(solid(RED), TRIANGLE) + ARRAY)
    assert not frame.reporter.items, frame.reporter.summary()


def test_misaligned_addresses() -> None:
    frame = Frame()
    mode, _ = grid(frame, offset=8)
    binning(frame, mode + build(6) + build(4))
    assert codes(frame) == {"CLE-009"}
    frame = Frame()
    frame.surface += 4
    frame.render(b"")
    assert codes(frame) == {"CLE-009"}
    frame = Frame()
    record = frame.nv_shader(solid(RED), TRIANGLE)
    where = struct.unpack("<I", record[1:5])[0]
    frame.job.memory.write(where + 4, frame.job.memory.read(where, 16))
    frame.bin(viewport(frame.job) + build(65, address=where + 4) + ARRAY)
    assert codes(frame) == {"CLE-009"}
    assert all(item.severity == Severity.HINT for item in frame.reporter.items)


def test_binning_without_a_flush_and_behind_it() -> None:
    frame = Frame()
    mode, _ = grid(frame)
    shader = viewport(frame.job) + frame.nv_shader(solid(RED), TRIANGLE)
    binning(frame, mode + build(6) + shader + ARRAY)
    assert codes(frame) == {"CLE-012"}
    frame = Frame()
    shader = viewport(frame.job) + frame.nv_shader(solid(RED), TRIANGLE)
    binning(frame, grid(frame)[0] + build(6) + shader + ARRAY + build(4) + ARRAY)
    assert codes(frame) == {"CLE-021"}
    frame = Frame()  # a list that goes on after a while is not finished
    shader = viewport(frame.job) + frame.nv_shader(solid(RED), TRIANGLE)
    binning(frame, grid(frame)[0] + build(6) + shader)
    binning(frame, ARRAY + build(4) + build(1) + build(0))
    assert not codes(frame)


def test_a_halt_is_no_end() -> None:
    """A list that halts after its primitives goes on in tile list mode and is flushed then."""
    frame = Frame()
    shader = viewport(frame.job) + frame.nv_shader(solid(RED), TRIANGLE)
    mode, _ = grid(frame)
    binning(frame, mode + build(6) + shader + ARRAY + build(0) + build(5))
    control = BY_NAME["CT0CS"].offset
    assert frame.v3d.read(control) == ThreadControl.make(CTSUBS=1).value
    frame.v3d.write(control, ThreadControl.make(CTSUBS=1).value)
    assert frame.v3d.read(control) == 0
    assert frame.v3d.read(BY_NAME["BFC"].offset) == 1
    assert not codes(frame)


def test_tile_counts_of_both_lists() -> None:
    for columns, rows, expected in ((2, 2, set()), (2, 3, set()), (3, 2, {"CLE-024"})):
        frame = Frame()
        mode, lists = grid(frame, columns, rows)
        shader = viewport(frame.job) + frame.nv_shader(solid(RED), TRIANGLE)
        binning(frame, mode + build(6) + shader + ARRAY + build(4))
        start, end = frame.job.rendering(lists, frame.surface, clear=BACKGROUND)
        frame.run(frame.job.memory.read(start, end - start))
        assert codes(frame) == expected


def test_empty_clip_window_and_frame() -> None:
    frame = Frame()
    state = viewport(frame.job) + build(102, left=3, bottom=3, width=0, height=9)
    frame.render(state + bytes([56, 0x32]) + frame.vg_shader(solid(RED)) + bytes([48, 0x80]))
    assert codes(frame) == {"CLE-026"}
    frame = Frame()
    frame.run(build(115) + build(25))
    assert "CLE-030" in codes(frame)


@pytest.mark.parametrize("field", ["format", "decimate", "tiling"])
def test_codes_that_do_not_exist(field: str) -> None:
    frame = Frame(64, 64)
    frame.render(b"", **{field: 3})
    assert codes(frame) == {"CLE-007"}


def test_a_format_without_a_shader_state_behind_it() -> None:
    frame = Frame()
    shader = viewport(frame.job) + frame.nv_shader(solid(RED), TRIANGLE)
    frame.bin(shader + bytes([56, 0x12]) + ARRAY)
    assert codes(frame) == {"CLE-025"}
    frame = Frame()
    frame.bin(bytes([56, 0x12]) + viewport(frame.job) + frame.nv_shader(solid(RED), TRIANGLE) + ARRAY)
    assert not codes(frame)


def test_a_sub_list_in_a_sub_list() -> None:
    frame = Frame()
    inner = frame.job.put(build(1) + build(18))
    outer = frame.job.put(build(17, address=inner) + build(18))
    binning(frame, grid(frame)[0] + build(6) + build(17, address=outer) + build(4))
    assert codes(frame) == {"CLE-036"}
    frame = Frame()
    once = frame.job.put(build(1) + build(18))
    binning(frame, grid(frame)[0] + build(6) + build(17, address=once) + build(4))
    assert not codes(frame)


@pytest.mark.parametrize("rendering_first", [False, True])
@pytest.mark.parametrize("increments", [False, True])
def test_a_semaphore_nobody_increments(rendering_first: bool, increments: bool) -> None:
    frame = Frame()
    flush = (build(7) if increments else b"") + build(4)
    start, end, lists = frame.job.binning(b"", flush=flush)
    first, last = frame.job.rendering(lists, frame.surface)
    waiting = build(8) + frame.job.memory.read(first, last - first)

    def bin_it() -> None:
        frame.v3d.write(CT0CA, start)
        frame.v3d.write(CT0EA, end)

    if rendering_first:
        frame.run(waiting)
        assert not codes(frame), "the binning list may still come"
        bin_it()
    else:
        bin_it()
        frame.run(waiting)
    assert codes(frame) == (set() if increments else {"CLE-022"})
    assert bool(frame.v3d.waiting) is not increments


# -- tile state, draws without primitives, faces -----------------------------------------------


def test_tile_state_is_neither_initialised_nor_cleared() -> None:
    frame = Frame()
    frame.v3d.check_programs()
    start, end, _ = frame.job.binning(viewport(frame.job))
    memory = frame.job.memory
    mode = bytearray(memory.read(start, 16))
    mode[15] &= ~4  # auto-initialise
    memory.write(start, bytes(mode))
    state = int.from_bytes(mode[9:13], "little")

    def bin_it() -> int:
        frame.v3d.write(CT0CA, start)
        frame.v3d.write(CT0EA, end)
        return frame.reporter.counts["CLE-045"]

    assert bin_it() == 0, "memory is zero"
    assert any(memory.read(state, 4 * 48)), "the binner has left its own"
    assert memory.read(start, 16) == mode, "what lies after it stays"
    assert bin_it() == 1
    memory.write(state, bytes(4 * 48))
    assert bin_it() == 1, "the program has cleared it"
    mode[15] |= 4
    memory.write(start, bytes(mode))
    assert bin_it() == 1, "the binner initialises it"


def test_forgiving_leaves_the_tile_state_alone() -> None:
    frame = Frame(options=GpuOptions(forgiving=True))
    HandTime.of(frame.v3d)
    data, lists = grid(frame)
    state = frame.job.room(4 * 48, 16)
    data = build(112, address=lists, memory_size=1 << 15, tiles_x=2, tiles_y=2, state_address=state)
    frame.job.memory.write(state, b"x" * 4 * 48)
    binning(frame, data + build(6) + build(4))
    assert frame.job.memory.read(state, 4 * 48) == b"x" * 4 * 48
    assert not codes(frame)


@pytest.mark.parametrize(
    ("mode", "length", "enough"),
    [(0, 1, True), (1, 1, False), (3, 2, True), (4, 2, False), (4, 3, True), (6, 1, False)],
)
def test_too_few_vertices_for_a_primitive(mode: int, length: int, enough: bool) -> None:
    frame = Frame()
    vertices = frame.nv_shader(solid(RED), TRIANGLE)
    draw = build(33, mode=mode, length=length, first=0)
    start, end, _ = frame.job.binning(viewport(frame.job) + vertices + draw)
    frame.v3d.write(CT0CA, start)
    frame.v3d.write(CT0EA, end)
    assert codes(frame) == (set() if enough else {"CLE-046"})
    if not enough:
        assert frame.job.memory.read(frame.reporter.items[0].address or 0, 1) == b"\x21"


@pytest.mark.parametrize("faces", [0, 1, 2, 3])
def test_no_face_is_enabled(faces: int) -> None:
    frame = Frame()
    picture = frame.bin(viewport(frame.job, faces) + frame.nv_shader(solid(RED), TRIANGLE) + ARRAY)
    assert codes(frame) == (set() if faces else {"CLE-047"})
    if not faces:
        assert (picture == BACKGROUND).all()


@pytest.mark.parametrize(
    ("varyings", "stride", "overlap"), [(0, 12, False), (0, 16, False), (1, 12, True), (0, 4, True)]
)
def test_nv_vertices_that_overlap(varyings: int, stride: int, overlap: bool) -> None:
    frame = Frame()
    program = solid(RED).replace("ldi r0", "mov r1, vary ; nop\n" * varyings + "ldi r0")
    shader = frame.nv_shader(program, TRIANGLE * 2, varyings)
    place = int.from_bytes(shader[1:5], "little")
    frame.job.memory.write(place + 1, bytes((stride,)))
    frame.bin(viewport(frame.job) + shader + ARRAY)
    assert codes(frame) == ({"CLE-048"} if overlap else set())
