"""Lists that cannot be drawn are left out and reported; what stands beside them is drawn."""

import numpy as np
import pytest
from tests.support.compressed_lists import encode_compressed
from tests.support.frames import BACKGROUND, GREEN, RED, Frame, solid
from tests.support.jobs import CT1CA, CT1EA, RFC, nv_vertex, viewport

from vc4lab.memory import MEMORY_SIZE
from vc4lab.records.control import build
from vc4lab.records.primitives import ESCAPE_BRANCH, ESCAPE_END
from vc4lab.v3d.events import DrawPrepared
from vc4lab.v3d.registers import BY_NAME, ThreadControl

ENGINES = ("jit", "interpreter")
TRIANGLES = 0x12
CORNERS = ((2, 2), (60, 2), (2, 60))
VERTICES = b"".join(nv_vertex(x, y, 0.5, 1.0) for x, y in CORNERS)
WHOLE = b"".join(nv_vertex(x, y, 0.5, 1.0) for x, y in ((-64, -64), (400, -64), (-64, 400)))
RETURN = bytes([18])


LIST = build(48) + encode_compressed([(0, 1, 2)], TRIANGLES)


def listed(shader: bytes, form: int = TRIANGLES) -> bytes:
    """A list of one triangle, after its format and shader."""
    return bytes([56, form]) + shader + LIST


def counted(frame: Frame) -> dict[str, int]:
    return dict(frame.reporter.counts)


def rendering_failed(frame: Frame) -> bool:
    return bool(frame.v3d.read(BY_NAME["CT1CS"].offset) & ThreadControl.CTERR.mask)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("form", "code"), [(0x30, "FRG-006"), (0x02, "CLE-018"), (0x42, "CLE-018"), (0x15, "CLE-018")]
)
def test_formats_that_do_not_exist(form: int, code: str, engine: str) -> None:
    """Points with coordinates, vertices of unknown size, an unknown primitive."""
    frame = Frame(64, 64, engine=engine)
    red, green = (frame.nv_shader(solid(colour), VERTICES) for colour in (RED, GREEN))
    tile = viewport(frame.job) + listed(red) + listed(green, form) + RETURN
    picture = frame.render(build(17, address=frame.job.put(tile)))
    assert set(np.unique(picture)) == {RED, BACKGROUND}
    assert counted(frame) == {"CLE-034": 1, code: 1}
    assert f"0x{form:02x}" in frame.reporter.summary() or code == "FRG-006"


@pytest.mark.parametrize("engine", ENGINES)
def test_a_list_of_no_format_in_the_rendering_list(engine: str) -> None:
    """Where it ends is unknown, and so is the next record: the thread stops."""
    frame = Frame(64, 64, engine=engine)
    red = frame.nv_shader(solid(RED), VERTICES)
    frame.render(viewport(frame.job) + listed(red))
    assert not rendering_failed(frame)
    assert not counted(frame)
    frame.render(viewport(frame.job) + bytes([56, 0x02]) + red + build(48) + build(1))
    assert rendering_failed(frame)
    assert frame.reporter.counts["CLE-017"] == 1
    assert frame.v3d.read(RFC) == 1, "the second frame has no end"


@pytest.mark.parametrize("engine", ENGINES)
def test_a_primitive_mode_that_does_not_exist_leaves_the_format(engine: str) -> None:
    frame = Frame(64, 64, engine=engine)
    last = ESCAPE_END  # as an index: a list of anything but triangles would end there
    corners = VERTICES[:24] + bytes(12 * (last - 2)) + VERTICES[24:]
    state = viewport(frame.job) + bytes([56, TRIANGLES]) + frame.nv_shader(solid(RED), corners)
    triangle = build(48) + encode_compressed([(0, 1, last)], TRIANGLES)
    expected = frame.render(state + triangle)
    picture = frame.render(state + build(33, mode=9, length=3, first=0) + triangle)
    assert (picture == expected).all()
    assert (picture == RED).any()
    assert counted(frame) == {"CLE-016": 1}


@pytest.mark.parametrize("engine", ENGINES)
def test_primitives_without_a_shader_in_the_rendering_list(engine: str) -> None:
    frame = Frame(64, 64, engine=engine)
    heard: list[DrawPrepared] = []
    frame.v3d.listeners.draw_prepared.subscribe(heard.append)
    picture = frame.render(viewport(frame.job) + LIST)
    assert (picture == BACKGROUND).all()
    assert counted(frame) == {"CLE-013": 1}
    assert [(event.shader, event.pipeline) for event in heard] == [(None, None)]
    assert frame.v3d.read(RFC) == 1


@pytest.mark.parametrize("engine", ENGINES)
def test_a_tile_stored_over_the_list_of_the_next(engine: str) -> None:
    """The list ended when the frame began; when its tile is drawn, it goes round in a circle."""
    frame = Frame(128, 64, engine=engine, threads=1)
    circle = 0xFF000000 | ESCAPE_BRANCH  # to the beginning of its 32 bytes
    place = frame.surface + 3  # the codes begin with a pixel
    state = viewport(frame.job) + frame.nv_shader(solid(RED), WHOLE)
    data = build(114, colour=circle, colour_high=circle, z=0xFFFFFF)
    data += build(113, address=frame.surface, width=128, height=64, format=1)
    first, second = build(115), build(115, column=1) + state + build(17, address=place)
    head = data + first + build(28)
    lists = (head + second + build(24) + first + build(25), head + first + build(24) + second + build(25))
    frame.job.memory.write(place, LIST + RETURN)
    frame.run(lists[0])  # compiles what tiles need, which are drawn again then
    frame.reporter.clear()
    for data, colour, found in ((lists[0], RED, {}), (lists[1], circle, {"CLE-017": 1})):
        frame.job.memory.write(place, LIST + RETURN)
        frame.run(data)
        pixels = frame.pixels()
        assert (pixels[:, :64] == circle).all()
        assert (pixels[:, 64:] == colour).all()
        assert counted(frame) == found
    assert frame.v3d.read(RFC) == 3


def test_a_tile_of_many_pieces() -> None:
    """The rendering list jumps after each of its draws."""
    count = 900
    frame = Frame(64, 64)
    job = frame.job
    where = [(1 + 2 * (k % 31), 1 + 2 * (k // 31)) for k in range(count)]
    points = b"".join(nv_vertex(x + 0.5, y + 0.5, 0.5, 1.0) for x, y in where)
    pieces = [job.room(16, 64) for _ in where]
    draws = [build(33, mode=0, length=1, first=k) for k in range(count)]
    for draw, place, after in zip(draws, pieces, pieces[1:], strict=False):
        job.memory.write(place, draw + build(16, address=after))
    job.memory.write(pieces[-1], draws[-1] + build(25))
    data = build(114, colour=BACKGROUND, colour_high=BACKGROUND, z=0xFFFFFF)
    data += build(113, address=frame.surface, width=64, height=64, format=1)
    data += build(115) + build(28) + build(115) + viewport(job)
    data += frame.nv_shader(solid(RED), points)
    frame.run(data + build(33, mode=0, length=count, first=0) + build(25))
    expected = frame.pixels()
    assert (expected == RED).sum() == count
    job.memory.fill(frame.surface, 4 * expected.size)
    start = job.put(data + build(16, address=pieces[0]))
    frame.v3d.write(CT1CA, start)
    frame.v3d.write(CT1EA, pieces[-1] + len(draws[-1]) + 1)
    assert (frame.pixels() == expected).all()
    assert frame.v3d.read(RFC) == 2
    assert not counted(frame)


@pytest.mark.parametrize("thread", [0, 1])
def test_a_jump_that_the_end_of_memory_cuts(thread: int) -> None:
    """Its target is below 64 KiB: the bytes that lie outside are zero."""
    frame = Frame()
    place, target = MEMORY_SIZE - 3, 0x8000
    frame.job.memory.write(place, build(16, address=target)[:3])
    frame.job.memory.write(target, build(1))
    current, end = (BY_NAME[f"CT{thread}{name}"].offset for name in ("CA", "EA"))
    frame.v3d.write(current, place)
    frame.v3d.write(end, target + 1)
    assert frame.v3d.read(current) == target + 1
    assert not counted(frame)
