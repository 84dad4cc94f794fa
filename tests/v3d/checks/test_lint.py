"""Hints: each mistake is named once, nothing else is."""

from __future__ import annotations

import struct

import pytest
from tests.support.frames import BACKGROUND, RED, Frame, solid
from tests.support.jobs import CT0CA, CT0EA, nv_vertex, viewport

from vc4lab.diagnostics import Severity
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
    frame.bin(
        bytes([56, 0x12]) + viewport(frame.job) + frame.nv_shader(solid(RED), TRIANGLE) + ARRAY
    )
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
