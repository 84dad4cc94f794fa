"""Frames without a picture: run again without a trace, counted, explained once; others are left alone."""

from __future__ import annotations

import struct

import numpy as np
import pytest
from tests.mistakes.programs import WRITE_DEPTH
from tests.support.frames import ARRAY, BACKGROUND, CORNERS, GREEN, RED, Frame, solid, triangle
from tests.support.jobs import viewport

from vc4lab.debug.why import explain, rerun
from vc4lab.debug.why.evidence import Evidence
from vc4lab.debug.why.explain import cause_of, why_empty
from vc4lab.debug.why.rerun import Lists, run_again
from vc4lab.debug.why.stages import Stage, groups_of, kind_of, primitives_of
from vc4lab.debug.why.watch import EmptyFrames, report_pixelless_run
from vc4lab.records.codes import PrimitiveMode
from vc4lab.records.control import build

FORWARD, BOTH = 0x7001, 0x7003
FAR = tuple((x + 500, y) for x, y in CORNERS)
SMALL = tuple((x / 16, y / 16) for x, y in CORNERS)


def config(bits: int) -> bytes:
    """A record 96."""
    return bytes([96]) + bits.to_bytes(3, "little")


def draw(
    frame: Frame, corners: tuple[tuple[float, float], ...], colour: int = RED, bits: int = BOTH
) -> bytes:
    """State and a draw of one triangle."""
    return config(bits) + frame.nv_shader(solid(colour), triangle(*corners)) + ARRAY


def lists_of(frame: Frame) -> Lists:
    """The lists of the frame at hand."""
    first, second = frame.v3d.threads
    return Lists((first.first, first.end), (second.first, second.end))


def test_running_again_changes_nothing() -> None:
    frame = Frame()
    before = frame.bin(viewport(frame.job, BOTH) + draw(frame, CORNERS))
    memory = frame.job.memory.read(0, 4 << 20)
    values = dict(frame.v3d.values)
    found = run_again(frame.v3d, lists_of(frame))
    assert found is not None
    assert frame.job.memory.read(0, 4 << 20) == memory
    assert frame.v3d.values == values
    assert (frame.pixels() == before).all()
    (group,) = groups_of(found)
    assert group.last is None
    assert group.written > 0


def test_what_a_frame_loads_is_there_again() -> None:
    frame = Frame()
    surface = build(29, buffer=1, tiling=0, format=0, address=frame.surface)
    assert surface[0] == 29
    frame.job.memory.write(frame.surface, struct.pack("<I", GREEN) * 128 * 128)
    body = surface + build(115, column=0, row=0) + build(25)
    frame.run(build(113, address=frame.surface, width=128, height=128, format=1) + body)
    kept = frame.pixels()
    second = frame.v3d.threads[1]
    assert run_again(frame.v3d, Lists(None, (second.first, second.end))) is not None
    assert (frame.pixels() == kept).all()


def test_frames_that_write_too_much_are_not_run_again(monkeypatch: pytest.MonkeyPatch) -> None:
    frame = Frame()
    before = frame.bin(viewport(frame.job, BOTH) + draw(frame, CORNERS))
    monkeypatch.setattr(rerun, "MOST_SAVED", 1 << 12)
    assert run_again(frame.v3d, lists_of(frame)) is None
    assert why_empty(frame.v3d, lists_of(frame), []) is None
    assert (frame.pixels() == before).all()


def test_draws_are_counted_by_their_state() -> None:
    frame = Frame()
    turned = (CORNERS[0], CORNERS[2], CORNERS[1])
    frame.bin(viewport(frame.job, BOTH) + draw(frame, CORNERS) + draw(frame, turned, bits=FORWARD)
              + draw(frame, CORNERS, bits=FORWARD) + draw(frame, FAR))  # fmt: skip
    found = run_again(frame.v3d, lists_of(frame))
    assert found is not None
    groups = groups_of(found)
    assert len(groups) == 4
    assert [group.last for group in groups].count(None) == 2
    assert {group.last for group in groups} == {None, Stage.FACING, Stage.WINDOW}
    assert all(group.primitives == 1 for group in groups)


def test_the_vertices_are_those_of_the_draw_that_is_explained() -> None:
    """Not those of the last draw, which has fewer primitives."""
    frame = Frame()
    two = frame.nv_shader(solid(RED), triangle(*FAR, *FAR)) + build(33, mode=4, length=6, first=0)
    flat = draw(frame, (CORNERS[0], CORNERS[0], CORNERS[0]), GREEN)
    frame.bin(viewport(frame.job, BOTH) + config(BOTH) + two + flat)
    cause = why_empty(frame.v3d, lists_of(frame), [])
    assert cause is not None
    assert cause.code == "DRAW-004"
    assert "2 of 2 triangles are outside" in cause.text
    assert "between pixels (508, 8) and (620, 120)" in cause.text


def test_draws_in_a_sub_list_are_explained() -> None:
    frame = Frame()
    inner = frame.job.put(draw(frame, FAR) + build(18))
    frame.bin(viewport(frame.job, BOTH) + build(17, address=inner))
    cause = why_empty(frame.v3d, lists_of(frame), [])
    assert cause is not None
    assert cause.code == "DRAW-004"
    assert "between pixels (508, 8) and (620, 120)" in cause.text


def test_draws_of_the_rendering_list_alone() -> None:
    frame = Frame()
    shader = frame.nv_shader(solid(RED), triangle(*CORNERS))
    frame.render(viewport(frame.job, FORWARD) + shader + ARRAY)
    second = frame.v3d.threads[1]
    lists = Lists(None, (second.first, second.end))
    found = run_again(frame.v3d, lists)
    assert found is not None
    evidence = Evidence(frame.v3d, lists, found)
    (group,) = evidence.groups
    assert not group.binned
    assert group.last is Stage.FACING
    cause = cause_of(evidence)
    assert cause is not None
    assert cause.code == "DRAW-006"
    assert cause.address is not None
    assert frame.job.memory.u8(cause.address) == 96


def watched(**options: object) -> Frame:
    frame = Frame(**options)  # type: ignore[arg-type]
    EmptyFrames(frame.v3d, frame.reporter)
    return frame


def drawn(frame: Frame) -> list[str]:
    """The codes about pictures."""
    return [item.code for item in frame.reporter.items if item.code.startswith("DRAW")]


def test_an_empty_frame_is_explained_once() -> None:
    frame = watched()
    frame.bin(viewport(frame.job, BOTH) + draw(frame, FAR))
    assert drawn(frame) == ["DRAW-004"]
    first, second = frame.v3d.threads
    for _ in range(3):
        frame.job.run(frame.v3d, (first.first, first.end), (second.first, second.end))
    assert frame.reporter.counts["DRAW-004"] == 1


def test_frames_with_a_picture_are_not_run_again(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("a frame with a picture was run again")

    monkeypatch.setattr(explain, "run_again", refuse)
    frame = watched()
    for _ in range(3):
        pixels = frame.bin(viewport(frame.job, BOTH) + draw(frame, CORNERS))
        assert len(np.unique(pixels)) == 2
    assert not drawn(frame)


def test_a_frame_that_is_only_cleared_is_no_mistake() -> None:
    frame = watched()
    pixels = frame.bin(b"")
    assert (pixels == BACKGROUND).all()
    assert not frame.reporter.items


def test_a_picture_of_one_colour_is_one() -> None:
    """Of another one than it is cleared to."""
    frame = watched()
    everything = ((-200, -200), (-200, 600), (600, -200))
    pixels = frame.bin(viewport(frame.job, BOTH) + draw(frame, everything))
    assert (pixels == RED).all()
    assert not drawn(frame)
    frame.bin(viewport(frame.job, BOTH) + draw(frame, everything, BACKGROUND))
    assert drawn(frame) == ["DRAW-011"]


def test_16_bit_pictures_are_compared_with_the_colour_they_are_cleared_to() -> None:
    frame = watched()
    frame.bin(viewport(frame.job, BOTH) + draw(frame, CORNERS, BACKGROUND), format=2)
    assert drawn(frame) == ["DRAW-011"]


def test_a_small_picture_may_be_meant_so() -> None:
    frame = watched(width=512, height=512)
    big = tuple((4 * x, 4 * y) for x, y in SMALL)
    frame.bin(viewport(frame.job, BOTH) + draw(frame, big))
    assert drawn(frame) == ["DRAW-013"]
    frame = watched(width=512, height=512)
    frame.bin(viewport(frame.job, BOTH) + draw(frame, ((5, 5), (5, 9), (9, 9))))
    assert not drawn(frame)


@pytest.mark.parametrize("keeps", [False, True])
def test_a_frame_may_be_there_for_its_depth(keeps: bool) -> None:
    frame = watched(width=64, height=64)
    body = config(BOTH) + frame.nv_shader(WRITE_DEPTH, triangle((20, 4), (4, 60), (60, 60))) + ARRAY
    start, end, lists = frame.job.binning(viewport(frame.job, BOTH) + body)
    data = build(114, colour=BACKGROUND, colour_high=BACKGROUND, z=0xFFFFFF)
    data += build(113, address=frame.surface, width=64, height=64, format=1) + build(115) + build(28)
    data += build(115) + build(17, address=lists)
    if keeps:
        data += build(
            28, buffer=2, address=frame.job.room(1 << 16), disable_colour_clear=1, disable_zs_clear=1
        )
        data += build(115)
    rendering = frame.job.put(data + build(25))
    frame.job.run(frame.v3d, (start, end), (rendering, rendering + len(data) + 1))
    assert drawn(frame) == ([] if keeps else ["DRAW-010"]), frame.reporter.summary()


def test_one_cause_is_named_once() -> None:
    """A draw was refused: what follows from that is not said."""
    frame = watched()
    frame.bin(
        viewport(frame.job, BOTH)
        + frame.nv_shader(solid(RED), triangle(*CORNERS))
        + build(33, mode=9, length=3)
    )
    assert {item.code for item in frame.reporter.items} == {"CLE-016"}


@pytest.mark.parametrize(
    ("mode", "vertices", "primitives"),
    [
        (PrimitiveMode.POINTS, 3, 3),
        (PrimitiveMode.LINES, 5, 2),
        (PrimitiveMode.LINE_LOOP, 3, 3),
        (PrimitiveMode.LINE_LOOP, 1, 0),
        (PrimitiveMode.LINE_STRIP, 3, 2),
        (PrimitiveMode.TRIANGLES, 8, 2),
        (PrimitiveMode.TRIANGLE_STRIP, 5, 3),
        (PrimitiveMode.TRIANGLE_FAN, 1, 0),
    ],
)
def test_how_many_primitives_vertices_make(mode: PrimitiveMode, vertices: int, primitives: int) -> None:
    assert primitives_of(mode, vertices) == primitives
    assert kind_of(mode) in ("point", "line", "triangle")


def test_a_run_of_a_driver_without_a_pixel() -> None:
    """Said at its end, if it has drawn something."""
    for corners, told in ((FAR, 1), (CORNERS, 0)):
        frame = Frame()
        frame.bin(viewport(frame.job, BOTH) + draw(frame, corners))
        report_pixelless_run(frame.v3d, frame.reporter)
        assert frame.reporter.counts["DRAW-015"] == told
    cleared = Frame()
    cleared.bin(b"")
    report_pixelless_run(cleared.v3d, cleared.reporter)
    assert not cleared.reporter.items
