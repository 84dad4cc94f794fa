"""Captured frames as objects that show themselves: tables, pictures, lanes, meshes."""

from __future__ import annotations

import re
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from tests.debug.frame_scene import DRAWS, copied, scene
from tests.debug.test_frames import natively

import vc4lab
from vc4lab.capture.errors import CaptureError
from vc4lab.debug.frame.mesh import EDGE, _points
from vc4lab.debug.frame.overlays import overdraw
from vc4lab.debug.frame.places import NoSuchPlace
from vc4lab.debug.frame.tables import MOST_ROWS, Colour, Table
from vc4lab.jobs.model import Patched
from vc4lab.qpu.text.assembler import assemble
from vc4lab.records.texture import TextureType

DATA = Path(__file__).parents[1] / "data"
RUNS = DATA / "vc4-jobs"
HORSE = RUNS / "glmark2_build_use-vbo_true"


def test_all_kinds_of_recordings_are_captures() -> None:
    for path in (DATA / "captures" / "small.vc4cap", DATA / "captures" / "tri.vc4cap", RUNS / "tri_arm64"):
        capture = vc4lab.Capture(path)
        assert capture.frame().draws
        assert capture.compare(vc4lab.Capture(path)).is_equal
    with pytest.raises(CaptureError, match="CAP-001"):
        vc4lab.Capture(DATA / "captures" / "none.vc4cap")
    with pytest.raises(CaptureError, match="none of its jobs"):
        vc4lab.Capture(DATA / "tgsi")


def test_a_capture_shows_the_pictures_of_its_frames() -> None:
    capture = vc4lab.Capture(DATA / "captures" / "tri.vc4cap")
    html = capture._repr_html_()
    assert html.count("<img") == len(capture.frames)
    assert [row[0] for row in capture.table.rows()] == [one.number for one in capture.frames]
    assert "frames" in repr(capture)


def test_a_frame_is_a_picture_and_says_what_it_has_once_it_ran() -> None:
    frame = vc4lab.Capture(RUNS / "kmscube_smooth").frame(3)
    assert repr(frame) == "<frame 3>"
    png = frame._repr_png_()
    assert png is not None
    with Image.open(BytesIO(png)) as image:
        assert np.array_equal(np.asarray(image), np.asarray(frame.picture))
    assert repr(frame) == "<frame 3: 1 jobs, 6 draws>"
    assert "triangle strip" in repr(frame.draws)
    assert frame.draws._repr_html_().count("<tr>") == 7
    assert vc4lab.Capture(RUNS / "kmscube_smooth").frame(1)._repr_png_() is not None


def test_a_draw_with_what_it_changed() -> None:
    frame = vc4lab.Capture(scene(multisample=False)).frame()
    assert len(frame.draws) == len(DRAWS)
    for number, (_depth, program, _uniforms) in enumerate(DRAWS, 1):
        draw = frame.draw(number)
        before, after, changed = (np.asarray(one) for one in (draw.before, draw.picture, draw.changed))
        mask = (before != after).any(axis=2)
        assert mask.any() == (number not in (2, 3)), "hidden, and stencilled"
        assert np.array_equal((changed == (255, 40, 40)).all(axis=2), mask)
        assert [one.kind for one in draw.programs] == ["fragment"]
        assert draw.programs[0].words == tuple(assemble(program).words)
        assert f"draw {number}" in repr(draw)
    with pytest.raises(NoSuchPlace, match="no draw 6: it has 5"):
        frame.draw(6)


def test_state_uniforms_and_programs_of_a_draw() -> None:
    frame = vc4lab.Capture(RUNS / "kmscube_smooth").frame(3)
    draw = frame.draw(4)
    values = {(one.record, one.name): one.value for one in draw.state}
    assert values["record 103 Viewport offset", "x"] == "320px"
    assert values["record 33 Vertex array primitives", "first"] == "12"
    assert values["record 105 Clipper XY scaling", "x"] == "5120"
    assert values["attribute array 0", "stride"] == "12"
    assert "depth_test" in draw.state._repr_html_()
    fragment, vertex, coordinate = draw.programs
    assert (fragment.kind, vertex.kind, coordinate.kind) == ("fragment", "vertex", "coordinate")
    assert "mov tlbc, r1" in repr(fragment)
    assert "<pre>" in fragment._repr_html_()
    assert len(fragment.listing) == len(fragment.words)
    assert [row[2] for row in vertex.uniforms.rows()][:2] == ["-0.6108808", "0.61211216"]


def test_textures_are_pictures() -> None:
    """A texture that the first job draws, and a second one samples."""
    frame = vc4lab.Capture(copied()).frame()
    (texture,) = frame.draw(2).textures
    assert (texture.config.type, texture.config.width) == (TextureType.RGBA8888, 64)
    assert texture.picture is not None
    drawn = np.asarray(frame.picture_of(frame.jobs[0]))
    assert np.array_equal(np.asarray(texture.picture.convert("RGB")), drawn)
    assert "<img" in frame.draw(2).textures._repr_html_()
    assert "64x64" in repr(texture)
    assert not frame.draw(1).textures


def test_a_mesh_lies_where_the_programs_put_it() -> None:
    frame = vc4lab.Capture(HORSE).frame(2)
    mesh = frame.draw(1).mesh
    assert {name: array.shape for name, array in mesh.attributes.items()} == {
        "attribute 0": (21516, 3), "attribute 1": (21516, 3),
    }  # fmt: skip
    assert mesh.clip is not None
    for index in (0, 15, 16, 4321, 21515):
        history = frame.vertex(1, index)
        assert mesh.clip[index].tolist() == pytest.approx(history.clip, abs=0)
        assert history.screen is not None
        assert mesh.screen[index].tolist() == [history.screen[0] + 320, history.screen[1] + 240]
    coordinate, _vertex = natively(frame, 1, 77, (7, 4))
    assert mesh.clip[77].view("<u4").tolist() == coordinate[:4]
    assert len(mesh.edges) == 21516
    picture = np.asarray(mesh.picture())
    edges = (picture == EDGE).all(axis=2)
    drawn = overdraw(frame, 1) > 0
    grown = np.pad(drawn, 1)
    near = np.any([grown[y : y + 480, x : x + 640] for x in range(3) for y in range(3)], axis=0)
    assert edges.sum() > 10_000
    assert (edges & ~near).sum() < edges.sum() // 50, "they are where the model is"
    assert mesh.table.rows()[3][1:4] == tuple(mesh.attributes["attribute 0"][3].tolist())
    assert "21516 vertices, triangles" in repr(mesh)
    assert mesh._repr_png_() is not None


def test_meshes_with_indices_and_of_shaded_vertices() -> None:
    ideas = vc4lab.Capture(RUNS / "glmark2_ideas").frame(3)
    draw = next(one for one in ideas.draws if one.index_bits == 16 and one.first)
    mesh = ideas.draw(draw.number).mesh
    assert (mesh.indices.min(), mesh.indices.max()) == (draw.first, draw.last)
    assert len(mesh.edges) == 2 * draw.length - 3
    shaded = vc4lab.Capture(scene(multisample=False)).frame().draw(1).mesh
    assert shaded.clip is None
    assert shaded.screen.tolist() == [[3, 5], [77.25, 11.1875], [20.6875, 75]]


def test_a_mesh_without_whole_words() -> None:
    """A stride of two bytes: there is no place on the screen, and no exception of another kind."""
    capture = scene(multisample=False)
    shader = vc4lab.Capture(capture).frame().draws[0].shader
    assert shader is not None
    events = capture.frames[0].events
    place = next(n for n, one in enumerate(events) if getattr(one, "register", "") == "CT0EA")
    events.insert(place, Patched(shader.address + 1, b"\2"))
    mesh = vc4lab.Capture(capture).frame().draw(1).mesh
    with pytest.raises(NoSuchPlace, match="no whole words"):
        mesh.picture()


def test_lines_are_whole() -> None:
    x, y = _points(np.array([[0.5, 0.5], [3.0, 9.0]]), np.array([[7.5, 3.5], [3.0, 2.0]]))
    assert list(zip(x.tolist(), y.tolist(), strict=True)) == [
        *((0, 0), (1, 0), (2, 1), (3, 1), (4, 2), (5, 2), (6, 3), (7, 3)),
        *((3, 9), (3, 8), (3, 7), (3, 6), (3, 5), (3, 4), (3, 3), (3, 2)),
    ]
    far = _points(np.array([[0.0, 0.0]]), np.array([[1e9, -1e9]]))
    assert len(far[0]) <= 4097
    assert not len(_points(np.zeros((0, 2)), np.zeros((0, 2)))[0])


def test_histories_show_tables_and_lanes() -> None:
    frame = vc4lab.Capture(RUNS / "kmscube_smooth").frame(3)
    history = frame.pixel(400, 300, program=True)
    (touch,) = history.touches
    assert [row[:2] for row in history.table.rows()] == [
        ("draw 6, triangle 1 (vertices 22, 21, 23)", "drawn")
    ]
    colour = repr(history).splitlines()[4].split()[-1]
    assert f"background:{colour[:7]}" in history._repr_html_()
    lanes = history.lanes()
    assert [one.values for one in lanes] == [w[1] for step in touch.block.program for w in step.writes]
    assert f"lane {touch.block.lane}" in lanes.title
    assert len(lanes.rows()[0]) == 3 + 16
    at = int(lanes.rows()[0][0], 16)
    assert at == touch.code
    with pytest.raises(NoSuchPlace, match="ask with program=True"):
        frame.pixel(400, 300).lanes()
    with pytest.raises(NoSuchPlace, match="no touch 3"):
        history.lanes(3)
    vertex = frame.vertex(6, 21)
    assert "clip coordinates" in repr(vertex)
    assert vertex.lanes("vertex").rows()[0][1].startswith("ldi")
    with pytest.raises(NoSuchPlace, match="no run"):
        vertex.lanes("fragment")


def test_comparisons_show_themselves() -> None:
    capture = vc4lab.Capture(RUNS / "kmscube_smooth")
    found = capture.compare(capture)
    assert repr(found) == "equal: 3 frames"
    assert found._repr_png_() is None


def test_tables_are_text_and_html() -> None:
    table = Table(
        range(MOST_ROWS + 5), ("n", "<b>"), lambda n: (n, Colour("#ff0000ff") if n else 'x<"'), "A & B"
    )
    lines = repr(table).splitlines()
    assert lines[:3] == ["A & B", "n    <b>", '0    x<"']
    assert lines[-1] == "… 5 more rows"
    html = table._repr_html_()
    assert "A &amp; B" in html
    assert "&lt;b&gt;" in html
    assert html.count("<tr>") == MOST_ROWS + 1
    assert not re.search(r"<b>|x<", html)
    assert table[:2].rows() == table.rows()[:2]
    assert table[3] == 3
    assert table == list(range(MOST_ROWS + 5))
