"""Undocumented behaviour of the binner and of clip records: every choice."""

import struct
from typing import Any

import numpy as np
import pytest
from tests.support.binning import IndexSource
from tests.support.frames import BACKGROUND, GREEN, RED, solid
from tests.support.frames import Frame as Picture
from tests.support.jobs import nv_vertex, viewport
from tests.v3d.fragment.scene import Scene, vertex
from tests.v3d.fragment.test_primitives import COLOUR, clip_record
from tests.v3d.ptb.binning import Frame, coordinates
from tests.v3d.ptb.test_clipper import parts_of, prepared, projected

from vc4lab.memory import GuestMemory
from vc4lab.records.control import build
from vc4lab.v3d.ptb import context as pc
from vc4lab.v3d.registers import BY_NAME
from vc4lab.v3d.state.tile_context import FragmentKey
from vc4lab.v3d.unknowns import DEFAULT_UNKNOWNS

WHOLE = struct.pack("<I", 0)
LEFT_TURN, RIGHT_TURN = [(10, 10), (500, 20), (30, 400)], [(10, 10), (30, 400), (500, 20)]


@pytest.mark.parametrize(
    ("choice", "order"),
    [("ascending", (96, 97, 99, 103, 56, 65)), ("shader_first", (56, 65, 96, 97, 99, 103))],
)
def test_order_of_state_records(choice: str, order: tuple[int, ...]) -> None:
    frame = Frame(GuestMemory(), switches={"tile_state_order": choice})
    frame.binner.start()
    frame.state(103, struct.pack("<2h", 0, 0))
    frame.state(97, WHOLE)
    frame.state(99, struct.pack("<f", 2.0))
    frame.shader()
    frame.state(96, b"\3\0\0")
    assert frame.binner.draw(4, IndexSource(3), coordinates(LEFT_TURN)) == pc.DONE
    assert frame.binner.flush() == pc.DONE
    assert tuple(record[0] for record in frame.tile(0, 0).records) == order


@pytest.mark.parametrize(("choice", "row"), [("half", 1), ("full", 0)])
def test_height_of_tiles_in_double_buffer_frames(choice: str, row: int) -> None:
    """A point in row 40 of pixels."""
    frame = Frame(GuestMemory(), switches={"double_buffer_tile": choice}, double_buffer=1)
    frame.start()
    point = coordinates([(10 * 16, 40 * 16)])
    assert frame.binner.draw(0, IndexSource(1), point) == pc.DONE
    assert frame.binner.flush() == pc.DONE
    assert [place for place, tile in frame.all_tiles().items() if tile.primitives] == [(0, row)]


def facing(config: int, screen: Any, choice: str, mode: int = 4, clip: Any = None) -> list[Any]:
    """Indices of the triangles in the lists of a frame with these bits in record 96."""
    memory = GuestMemory()
    frame = prepared(memory, binner_facing=choice)
    frame.state(103, struct.pack("<2h", 0, 0))
    frame.state(96, bytes([config, 0, 0]))
    buffer = coordinates(screen, clip)
    assert frame.binner.draw(mode, IndexSource(len(screen)), buffer) == pc.DONE
    assert frame.binner.flush() == pc.DONE
    return sorted({item[0] for item in frame.tile(0, 0).primitives})


@pytest.mark.parametrize("config", range(8))
@pytest.mark.parametrize("size", [1, 16])
def test_facing_in_the_binner(config: int, size: int) -> None:
    """Triangles in one tile, and in several."""
    both = [(x * size, y * size) for x, y in LEFT_TURN + RIGHT_TURN]
    every = [(0, 1, 2), (3, 4, 5)]
    forward = 1 if config & 4 else 0
    enabled = {forward: config & 1, 1 - forward: config & 2}
    assert facing(config, both, "no") == every
    assert facing(config, both, "yes") == [every[k] for k in (0, 1) if enabled[k]]


def test_facing_of_strips_and_clipped_triangles() -> None:
    strip = [(10, 10), (200, 20), (30, 400), (210, 410), (40, 800)]
    assert len(facing(1, strip, "yes", mode=5)) == 3
    assert len(facing(2, strip, "yes", mode=5)) == 0
    corners = [(-0.1, -0.1, 0.0, 1.0), (0.9, -0.1, 0.0, 1.0), (-0.1, 0.9, 3.0, 1.0)]
    screen = [projected(corner) for corner in corners]
    assert facing(1, screen, "yes", clip=corners) == [(0, 1, 2)]
    assert facing(2, screen, "yes", clip=corners) == []
    assert facing(2, screen, "no", clip=corners) == [(0, 1, 2)]


@pytest.mark.parametrize("choice", ["no", "yes"])
def test_pictures_do_not_depend_on_where_facing_is_judged(choice: str) -> None:
    frame = Picture(unknowns=DEFAULT_UNKNOWNS.with_(binner_facing=choice))
    places = [(5, 5), (100, 10), (20, 90), (110, 110), (110, 30), (40, 110)]
    vertices = b"".join(nv_vertex(x, y, 0.5, 1.0) for x, y in places)
    body = viewport(frame.job, 1) + frame.nv_shader(solid(RED), vertices)
    picture = frame.bin(body + build(33, mode=4, length=6, first=0))
    assert picture[20, 30] == RED
    assert picture[90, 100] == BACKGROUND


def cut(memory: GuestMemory, **switches: str) -> dict[Any, Any]:
    """Parts of a triangle that the near plane and the far plane cut."""
    corners = [(-0.5, -0.5, -1.5, 1.0), (1.0, -1.0, 0.0, 2.0), (-0.5, 1.5, 2.5, 1.5)]
    frame = prepared(memory, **switches)
    buffer = coordinates([projected(corner) for corner in corners], corners)
    assert frame.binner.draw(4, IndexSource(3), buffer) == pc.DONE
    assert frame.binner.flush() == pc.DONE
    return parts_of(memory, frame)


def test_weights_of_clip_records() -> None:
    """Projected weights are the plain ones times Wc of the vertex over Wc of the corner."""
    memory = GuestMemory()
    plain = cut(memory)
    other = cut(memory, clip_weights="projected")
    assert plain.keys() == other.keys()
    assert any(plain.values())
    for key, entries in plain.items():
        for slot, entry in entries.items():
            found = other[key][slot]
            assert found[:4] == entry[:4]
            expected = np.array(entry[4:]) * (1.0, 2.0, 1.5) * entry[3]
            assert np.allclose(found[4:], expected, rtol=1e-5)


@pytest.mark.parametrize("engine", ["fast", "interpreter"])
@pytest.mark.parametrize("primitive", ["triangles", "lines"])
def test_clip_records_are_read_as_their_weights_say(engine: str, primitive: str) -> None:
    """A corner half way between vertices with 1/Wc of 1 and 0.5, whose own is 0.75."""
    key = FragmentKey(program=COLOUR, n_varyings=3, primitive=primitive, flat_flags=0)
    near, far = (0.25, 0.0, 0.0), (1.0, 0.0, 0.0)
    points = [vertex(0, 0, 0.5, 1.0, *near), vertex(60, 0, 0.5, 0.5, *far)]
    if primitive == "triangles":
        points.append(vertex(0, 60, 0.5, 1.0, *near))
    indices = struct.pack(f"<{len(points)}H", *range(len(points)))
    data = b"\x31" + struct.pack("<I", 0x50000 | 0b10) + b"\x81" + indices + b"\x80"
    direct: list[np.ndarray] = []
    for choice, red in (("plain", 0.625), ("projected", (0.125 + 0.25) / 0.75)):
        scene = Scene()
        clip_record(scene.memory, 0x50000, [(30, 0, 0.5, 0.75, (0.5, 0.5, 0))])
        scene.add_list(key, points, data, line_width=9.0)
        unknowns = DEFAULT_UNKNOWNS.with_(clip_weights=choice)
        clipped = scene.render(engine, unknowns=unknowns)
        plain = Scene()
        corner = vertex(30, 0, 0.5, 0.75, red, 0.0, 0.0)
        plain.add(key, [points[0], corner, *points[2:]], line_width=9.0)
        direct.append(plain.render())
        assert (clipped == direct[-1]).all()
        assert clipped.any()
    assert (direct[0] != direct[1]).any()


def test_far_plane_of_the_clipper() -> None:
    memory = GuestMemory()
    depths = {}
    for choice in ("cut", "left"):
        parts = cut(memory, clipper_far=choice)
        depths[choice] = [e[2] for entries in parts.values() for e in entries.values()]
    assert max(depths["cut"]) == pytest.approx(1.0)
    assert len(depths["left"]) < len(depths["cut"])
    assert min(depths["left"]) == pytest.approx(0.0, abs=1e-6)
    corners = [(-0.5, -0.5, 0.0, 1.0), (1.0, -1.0, 0.0, 2.0), (-0.5, 1.5, 2.5, 1.5)]
    for choice, flags in (("cut", True), ("left", False)):
        frame = prepared(memory, clipper_far=choice)
        buffer = coordinates([projected(corner) for corner in corners], corners)
        frame.binner.draw(4, IndexSource(3), buffer)
        frame.binner.flush()
        assert any(key[1] for key in parts_of(memory, frame)) == flags


@pytest.mark.parametrize("engine", ["jit", "interpreter"])
@pytest.mark.parametrize("choice", ["kept", "reset"])
def test_state_behind_a_reset(engine: str, choice: str) -> None:
    """The width of lines set by one list: does a list after CTRSTA have it?"""
    unknowns = DEFAULT_UNKNOWNS.with_(state_after_reset=choice)
    frame = Picture(engine=engine, unknowns=unknowns)
    vertices = nv_vertex(10, 64, 0.5, 1.0) + nv_vertex(110, 64, 0.5, 1.0)
    shader = frame.nv_shader(solid(GREEN), vertices)
    enable = viewport(frame.job)
    line = build(33, mode=1, length=2, first=0)
    wide = frame.bin(enable + build(99, line_width=20.0) + shader + line)
    assert (wide[:, 60] == GREEN).sum() == 20
    for number in (0, 1):
        frame.v3d.write(BY_NAME[f"CT{number}CS"].offset, 1 << 15)
    again = frame.bin(enable + shader + line)
    assert (again[:, 60] == GREEN).sum() == (20 if choice == "kept" else 1)
    # what the rendering list alone has set
    state = shader + build(99, line_width=8.0)
    frame.render(enable + state)
    for number in (0, 1):
        frame.v3d.write(BY_NAME[f"CT{number}CS"].offset, 1 << 15)
    direct = frame.render(enable + shader + line)
    assert (direct[:, 60] == GREEN).sum() == (8 if choice == "kept" else 1)
