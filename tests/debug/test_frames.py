"""Captured frames looked into: the picture after each draw, the history of pixels."""

from __future__ import annotations

import itertools
import json
import random
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from tests.debug.frame_scene import CLEAR, DRAWS, OWN, copied, own_lists, scene
from tests.jobs.test_boot_captures import captured
from typer.testing import CliRunner

from vc4lab.cli.inside import looked_into
from vc4lab.cli.main import app
from vc4lab.debug.frame.capture import Capture, CapturedFrame
from vc4lab.debug.frame.overlays import NOTHING, OVERLAYS, depth_map, overdraw, primitive_map
from vc4lab.debug.frame.places import NoSuchPlace, Position
from vc4lab.debug.frame.texts import followed_lines, history_dict, history_lines, rgba
from vc4lab.debug.frame.touch import DISCARDED, DRAWN, HIDDEN, STENCILLED, UNCOVERED
from vc4lab.jobs.pictures import ordered
from vc4lab.jobs.player import JobsPlayer
from vc4lab.records.states import ConfigurationBits, GlShaderState, ViewportOffset

DATA = Path(__file__).parents[1] / "data"
RUNS = DATA / "vc4-jobs"
SMALL = DATA / "captures" / "small.vc4cap"
RECORDED = (
    "kmscube_smooth",
    "glmark2_ideas",
    "glmark2_build_use-vbo_true",
    "glmark2_texture_texture-filter_mipmap",
    "sdl_testdraw2",
    "tri_arm64",
)
PIXELS = 6


@cache
def looked(name: str) -> Capture:
    """A recorded run, the small capture of the command queue, or an example on a board."""
    if name == "triangle":
        return Capture(captured("triangle", 1).capture)
    with looked_into(SMALL if name == "small" else RUNS / name) as found:
        return found


@cache
def played(name: str) -> dict[int, np.ndarray]:
    """What each frame draws when it is just replayed."""
    capture = looked(name).jobs
    return {
        frame.number: np.asarray(ordered(result.image, frame)) for frame, result in JobsPlayer(capture).play()
    }


def array(frame: CapturedFrame, draw: int) -> np.ndarray:
    """The picture after a draw."""
    return np.asarray(frame.picture_after(draw))


@pytest.mark.parametrize("name", [*RECORDED, "small", "triangle"])
def test_the_picture_after_the_last_draw_is_that_of_the_frame(name: str) -> None:
    for frame in looked(name).frames:
        for _ in range(2):  # again, and again after another draw
            assert np.array_equal(array(frame, len(frame.draws)), played(name)[frame.number])
            frame.picture_after(len(frame.draws) // 2)


def test_pictures_grow_draw_by_draw() -> None:
    frame = looked("kmscube_smooth").frame(2)
    pictures = [array(frame, number) for number in range(len(frame.draws) + 1)]
    changed = [int((a != b).any(axis=2).sum()) for a, b in itertools.pairwise(pictures)]
    assert len(pictures) == 7
    assert sum(map(bool, changed)) == 3, "of a cube, three faces are seen"
    assert len(np.unique(pictures[0].reshape(-1, 3), axis=0)) == 1, "before any draw: the clear colour"
    backwards = [array(frame, number) for number in reversed(range(len(frame.draws) + 1))]
    for after, again in zip(pictures, reversed(backwards), strict=True):
        assert np.array_equal(after, again)


@pytest.mark.parametrize("name", [*RECORDED, "small", "triangle"])
def test_histories_end_in_the_bytes_of_the_frame(name: str) -> None:
    """Each draw's entry says what the picture after that draw has; the last one what memory has."""
    choice = random.Random(name)
    frame = looked(name).frame()
    assert frame.picture is not None
    seen = 0
    for _ in range(PIXELS):
        x, y = choice.randrange(frame.picture.width), choice.randrange(frame.picture.height)
        history = frame.pixel(x, y)
        touches = [one for one in history.touches if one.outcome != UNCOVERED]
        for before, after in itertools.pairwise(touches):
            assert after.before == before.after
        last = {one.draw.number: one for one in touches if one.draw is not None}
        assert len(last) <= len(touches)
        assert all(one.draw is not None for one in touches)
        for number, touch in list(last.items())[:3]:
            made = rgba(touch.after.colours[0][0], is_blue_first=history.is_blue_first)
            assert made[1:7] == bytes(array(frame, number)[y, x]).hex()
        if touches:
            assert touches[-1].after.colours == ((history.final,),)
            seen += 1
    assert seen


def test_a_pixel_where_primitives_are_hidden() -> None:
    """Pixels of a model: what lies in the back fails the depth test, and changes nothing."""
    frame = looked("glmark2_build_use-vbo_true").frame(2)
    touches = [one for one in frame.pixel(255, 332).touches if one.outcome != UNCOVERED]
    assert [one.outcome for one in touches] == [DRAWN, HIDDEN]
    seen, hidden = touches
    assert seen.after.depths == (seen.block.depth,)
    assert hidden.before == hidden.after == seen.after
    assert hidden.why == f"depth {hidden.block.depth:06x} is greater than {seen.block.depth:06x}"


def test_programs_are_seen_instruction_by_instruction() -> None:
    frame = looked("kmscube_smooth").frame(3)
    (touch,) = frame.pixel(400, 300, program=True).touches
    assert touch.draw is not None
    assert (touch.draw.number, touch.outcome) == (6, DRAWN)
    steps = touch.block.program
    assert len(steps) == len(touch.block.draw.program)
    colour = [one.writes[-1] for one in steps if "tlbc" in one.text]
    assert [value[touch.block.lane] for _name, value, _mask in colour] == [touch.after.colours[0][0]]


def test_texels_and_uniforms_are_seen() -> None:
    history = looked("small").frame().pixel(20, 20)
    texels = [texel for one in history.touches for texel in one.block.texels]
    assert texels
    assert texels[0].words == (0xFFFFFFFF,)
    assert any(one.block.uniforms for one in history.touches)


def test_frames_are_looked_into_in_any_order() -> None:
    capture = looked("kmscube_smooth")
    first = array(capture.frame(3), 6)
    array(capture.frame(2), 3)
    capture.frame(3).pixel(10, 10)
    assert np.array_equal(array(capture.frame(3), 6), first)


def test_questions_without_an_answer() -> None:
    capture = looked("kmscube_smooth")
    with pytest.raises(NoSuchPlace, match="no frame 9, but 1, 2, 3"):
        capture.frame(9)
    with pytest.raises(NoSuchPlace, match="no draw 7: it has 6"):
        capture.frame(2).picture_after(7)
    with pytest.raises(NoSuchPlace, match=r"640x480 pixels: no \(640, 0\)"):
        capture.frame(2).pixel(640, 0)


def run(*arguments: object) -> str:
    """What a command prints."""
    result = CliRunner().invoke(app, list(map(str, arguments)))
    assert not result.exit_code, result.output
    return result.output


def test_the_command_line(tmp_path: Path) -> None:
    folder = RUNS / "kmscube_smooth"
    text = run("pixel", folder, "400,300", "--frame", 3, "--program")
    assert "draw 6, triangle 1" in text
    assert "mov tlbc, r1" in text
    found = json.loads(run("pixel", folder, "400,300", "--frame", 3, "--json", "--all"))
    assert [one["draw"] for one in found["touches"]] == [6]
    assert found["final"] == found["touches"][0]["after"]["colours"][0][0]
    assert run("show", folder, "--draws").count("draw 6:") == 2
    target = tmp_path / "three.png"
    run("show", folder, "--frame", 3, "--draw", 3, "--picture", target)
    assert target.stat().st_size


def test_text_and_json_say_the_same() -> None:
    history = looked("glmark2_ideas").frame(3).pixel(400, 330)
    table = history_dict(history)
    text = "\n".join(history_lines(history))
    for one in table["touches"]:
        assert f"draw {one['draw']}, triangle {one['primitive']}" in text
    assert [one["draw"] for one in table["touches"]] == [7, 13, 177]


@pytest.mark.parametrize("multisample", [False, True])
def test_every_fate_of_a_pixel(multisample: bool) -> None:
    """Draws over the same pixels: drawn, hidden, stencilled, discarded in odd columns, blended."""
    frame = Capture(scene(multisample)).frame()
    last = array(frame, len(DRAWS))
    fates = (DRAWN, HIDDEN, STENCILLED, DRAWN, DRAWN), (DRAWN, HIDDEN, STENCILLED, DISCARDED, DRAWN)
    for x, y in ((30, 30), (31, 30), (34, 41), (35, 40)):
        touches = [one for one in frame.pixel(x, y).touches if one.outcome != UNCOVERED]
        assert tuple(one.outcome for one in touches) == fates[x % 2]
        first, hidden, stencilled, maybe, blended = touches
        samples = 4 if multisample else 1
        assert first.before.stencils == (0,) * samples
        assert first.after.stencils == stencilled.after.stencils == (0x11,) * samples
        assert hidden.after == hidden.before
        assert stencilled.after == stencilled.before
        drawn = 0xFF0000AA if x % 2 else 0xFF123456
        assert maybe.after.colours == ((drawn,),) * samples
        assert blended.after.colours == ((drawn + 0x101010,),) * samples
        assert [one.draw.number for one in touches if one.draw is not None] == [1, 2, 3, 4, 5]
        for number, touch in enumerate(touches, 1):
            made = touch.after.colours[0][0].to_bytes(4, "little")
            assert array(frame, number)[y, x].tobytes() == made[:3]
        assert last[y, x].tobytes() == (drawn + 0x101010).to_bytes(4, "little")[:3]


def test_samples_of_an_edge_are_told_apart() -> None:
    """Where an edge goes through a pixel, samples differ; what is stored is their mean."""
    frame = Capture(scene(multisample=True)).frame()
    last = array(frame, len(DRAWS))
    mixed = 0
    for x in range(4, 20):
        history = frame.pixel(x, 30)
        words = [colours[0] for colours in history.end.colours]
        mixed += len(set(words)) > 1
        covered = {one.block.samples for one in history.touches if one.outcome != UNCOVERED}
        assert len(covered) <= 1
        for sample in range(4):
            is_covered = bool(covered and min(covered) >> sample & 1)
            assert (words[sample] != CLEAR) == is_covered
        means = [(sum(word >> 8 * k & 255 for word in words) + 2) // 4 for k in range(3)]
        assert last[30, x].tolist() == means
    assert mixed


def test_tiles_that_were_stored_with_all_samples() -> None:
    """A job that stores samples, and one that loads them and stores a picture."""
    path = DATA / "vc4-conformance" / "alpha_to_coverage_4x"
    with looked_into(path) as found:
        samples, resolved = found.frame(1), found.frame(2)
    history = resolved.pixel(20, 20)
    assert not history.touches
    made = resolved.loaded_by(history)
    assert made is not None
    assert (made.frame, made.final) == (1, None)
    assert made.end == history.end == samples.pixel(20, 20).touches[-1].after
    count, end = len(samples.draws), np.asarray(resolved.picture)
    assert count > 1
    assert np.array_equal(array(samples, count), end), "resolved, as the next job does it"
    assert np.array_equal(np.asarray(samples.picture), end)
    pictures = [array(samples, number) for number in range(count + 1)]
    assert len(np.unique(pictures[0].reshape(-1, 3), axis=0)) == 1
    assert sum((a != b).any() for a, b in itertools.pairwise(pictures)) > 1
    assert overdraw(samples, count)[20, 20] == len(samples.pixel(20, 20).touches)


@pytest.mark.parametrize("records", [False, True])
def test_draws_of_lists_that_a_program_wrote(records: bool) -> None:
    """They have numbers, pictures after each, and are what touched a pixel."""
    frame = Capture(own_lists(records=records)).frame()
    assert [one.number for one in frame.draws] == [1, 2, 3]
    assert all(one.shader is not None and one.job == 1 for one in frame.draws)
    assert "lists  [job 1, first at" in frame.draws[0].text()
    pictures = [array(frame, number) for number in range(4)]
    for _ in range(2):
        for number, colour in enumerate(OWN, 1):
            made = array(frame, number)
            assert made[10, 10].tobytes() == colour.to_bytes(4, "little")[:3]
            assert (made != pictures[number - 1]).any()
            assert np.array_equal(made, pictures[number])
    assert np.array_equal(pictures[3], np.asarray(frame.picture))
    touches = [one for one in frame.pixel(10, 10).touches if one.outcome != UNCOVERED]
    if not records:
        assert [one.draw.number if one.draw else 0 for one in touches] == [1, 2, 3]
    assert [one.after.colours[0][0] for one in touches] == list(OWN)
    assert overdraw(frame, 2)[10, 10] == 2


def natively(frame: CapturedFrame, draw: int, index: int, rows: tuple[int, int]) -> list[list[int]]:
    """The rows that compiled coordinate and vertex programs write for a vertex."""
    shader = frame.draws[draw - 1].shader
    assert shader is not None
    assert shader.gl is not None
    found = []
    stages = frame.stage.v3d.binning.coordinates, frame.stage.v3d.frames.preparer.vertices
    for stage, count in zip(stages, rows, strict=True):
        memory = np.zeros(64 * count + 64, np.uint8)
        start = -memory.ctypes.data % 64
        batch = memory[start : start + 64 * count].view(np.uint32).reshape(count, 16)
        place = batch.ctypes.data - (index >> 4) * batch.nbytes
        stage.shade(shader.gl, count, index, index, 0, place)
        found.append(batch[:, index & 15].tolist())
    return found


@pytest.mark.parametrize(
    ("name", "draw"), [("kmscube_smooth", 6), ("glmark2_ideas", 353), ("sdl_testdraw2", 2), ("small", 3)]
)
def test_vertices_are_shaded_as_compiled_programs_shade_them(name: str, draw: int) -> None:
    frame = looked(name).frame()
    for index in range(frame.draws[draw - 1].first, frame.draws[draw - 1].last + 1):
        try:
            history = frame.vertex(draw, index)
        except NoSuchPlace as verdict:
            assert "has no vertex" in str(verdict)  # noqa: PT017 - indices may leave some out
            continue
        coordinate, vertex = history.coordinate, history.vertex
        assert coordinate is not None
        assert vertex is not None
        rows = len(coordinate.rows_out), len(vertex.rows_out)
        assert [list(coordinate.rows_out), list(vertex.rows_out)] == natively(frame, draw, index, rows)
        assert coordinate.rows_out[4:7] == vertex.rows_out[:3]
        assert not coordinate.failure
        assert len(coordinate.steps) > 7
        assert b"".join(one.data for one in coordinate.attributes)


def test_draws_know_what_became_of_their_primitives() -> None:
    frame = looked("glmark2_build_use-vbo_true").frame(2)
    (draw,) = frame.draws
    assert draw.counts["entries"] > 1000
    assert "entries" in draw.text()
    assert draw.as_dict()["counts"] == draw.counts
    history = frame.vertex(1, 5)
    assert history.outside == ()
    assert history.clip is not None
    assert history.places == (5,)


def test_the_vertex_command() -> None:
    text = run("vertex", RUNS / "kmscube_smooth", 6, 21, "--program")
    assert "clip coordinates" in text
    assert "inside of all planes" in text
    found = json.loads(run("vertex", RUNS / "kmscube_smooth", 6, 21, "--json"))
    assert found["coordinate"]["rows_out"][:4] == ["402f2c52", "c0287925", "bf622794", "40e8eec3"]
    result = CliRunner().invoke(app, ["vertex", str(RUNS / "kmscube_smooth"), "6", "3"])
    assert result.exit_code == 2
    assert "draw 6 has no vertex 3: it uses 20 to 23" in result.output


@pytest.mark.parametrize("name", ["glmark2_ideas", "kmscube_smooth", "fates"])
def test_overlays_say_what_the_histories_of_pixels_say(name: str) -> None:
    frame = (Capture(scene(multisample=False)) if name == "fates" else looked(name)).frame()
    number = len(frame.draws)
    counts, depths = overdraw(frame, number), depth_map(frame, number)
    names = primitive_map(frame, number)
    assert counts.shape == depths.shape == names.shape == frame.job.size[::-1]
    choice, found = random.Random(name), {}
    for _ in range(12):
        y, x = (choice.randrange(size) for size in counts.shape)
        history = frame.pixel(x, y)
        covering = [one for one in history.touches if one.outcome != UNCOVERED]
        assert counts[y, x] == len(covering)
        assert depths[y, x] == history.end.depths[0]
        seen = [one for one in covering if one.outcome not in (HIDDEN, STENCILLED)]
        assert (names[y, x] == NOTHING) == (not seen)
        if seen and name != "fates":
            assert seen[-1].listed is not None
            vertices = seen[-1].listed.state, seen[-1].listed.vertices
            assert found.setdefault(vertices, names[y, x]) == names[y, x]
    assert len(set(found.values())) == len(found)


def test_overlays_as_pictures(tmp_path: Path) -> None:
    for run_name, plain in (
        ("glmark2_ideas", ("levels", "misses")),  # it samples no textures
        ("glmark2_texture_texture-filter_linear", ()),
    ):
        for name in OVERLAYS:
            target = tmp_path / f"{name}.png"
            run("show", RUNS / run_name, "--overlay", name, "--picture", target)
            with Image.open(target) as made:
                assert (len(made.getcolors(1 << 20)) == 1) == (name in plain), (run_name, name)
    frame = looked("kmscube_smooth").frame(3)
    assert len(frame.overlay("overdraw", 0).getcolors()) == 1
    with pytest.raises(NoSuchPlace, match="no overlay 'x', but overdraw"):
        frame.overlay("x")


def test_the_state_of_a_draw() -> None:
    frame = looked("glmark2_ideas").frame()
    records = frame.state(353)
    assert {ConfigurationBits.id, GlShaderState.id, ViewportOffset.id} <= {one.id for one in records}
    draw = frame.draws[352]
    config = next(one for one in records if one.id == ConfigurationBits.id)
    assert config.address == draw.where(ConfigurationBits.id)
    assert config.payload is not None
    assert config.payload.value == draw.config & 0xFFFFFF
    assert len({one.records for one in frame.draws}) > 50
    text = run("show", RUNS / "glmark2_ideas", "--frame", 3, "--draw", 353)
    assert "Configuration bits" in text
    assert text.count("draw ") == 1


def test_a_copy_is_followed_to_the_draw_that_made_the_texel() -> None:
    frame = Capture(copied()).frame()
    assert [len(job.draws) for job in frame.jobs] == [1, 1]
    for x, y in ((25, 40), (2, 61), (30, 33)):
        history = frame.pixel(x, y)
        (touch,) = (one for one in history.touches if one.outcome != UNCOVERED)
        assert touch.draw is not None
        assert touch.draw.number == 2
        (source,) = touch.sources
        assert source is not None
        assert (source.column, source.row, source.is_filtered) == (x, 63 - y, False)
        made = frame.follow(history, source)
        assert made is not None
        assert (made.job.number, made.x, made.y) == (1, x, 63 - y)
        assert made.final == history.final == touch.block.texels[0].words[0]
        covering = [one.draw.number for one in made.touches if one.outcome == DRAWN and one.draw is not None]
        assert covering == ([1] if made.final != CLEAR else [])
        lines = list(followed_lines(frame, history))
        assert any("job 1, pixel" in line for line in lines)
        assert history_dict(history)["touches"][0]["texels"][0]["source"]["row"] == 63 - y
    assert frame.pixel(25, 40).final == 0xFF00AA33
    assert np.array_equal(array(frame, 1), array(frame, 1))
    assert frame.job_of(1).number == 1


def test_positions_are_links() -> None:
    capture = looked("glmark2_ideas")
    frame, position = capture.at("#f3/j1/d177/p12")
    assert (frame.number, position) == (3, Position(3, 1, 177, 12))
    assert str(position) == "#f3/j1/d177/p12"
    assert str(Position.parse("f3")) == "#f3"
    touches = history_dict(frame.pixel(400, 330))["touches"]
    assert [one["position"] for one in touches] == ["#f3/j1/d7/p12", "#f3/j1/d13/p0", "#f3/j1/d177/p12"]
    for wrong in ("#f9", "#f3/d999", "#f3/j7", "f3/x2", "#f" + "9" * 5000, ""):
        with pytest.raises(NoSuchPlace):
            capture.at(wrong)
    text = run("show", RUNS / "glmark2_ideas", "--at", "#f3/d177")
    assert "draw 177:" in text
