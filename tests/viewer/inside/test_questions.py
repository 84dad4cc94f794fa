"""What pages ask about captures, and what they are answered."""

from __future__ import annotations

import base64
import json
from io import BytesIO

import numpy as np
import pytest
from PIL import Image
from tests.viewer.inside.conftest import CUBE, DATA, SMALL, TRI

from vc4lab.debug.frame.places import NoSuchPlace
from vc4lab.viewer.inside.questions import PNG, QUESTIONS, Bad, Desk, ask, document, edit
from vc4lab.viewer.inside.server import JSON
from vc4lab.viewer.inside.session import Refused

MIPMAPS = DATA / "vc4-jobs" / "glmark2_texture_texture-filter_mipmap"


def said(session, question, **values):
    found = ask(session, question, {name: str(one) for name, one in values.items()})
    return json.loads(found.data) if found.kind == JSON else Image.open(BytesIO(found.data))


FITTING = {"job": 1, "draw": 1, "touch": 0, "vertex": 0, "view": 0, "first": 0, "texture": 0, "level": 0}


@pytest.mark.parametrize("path", [SMALL, TRI, CUBE, MIPMAPS], ids=lambda path: path.name)
def test_every_question_has_an_answer(session_of, path):
    session = session_of(path)
    frame = said(session, "capture")["chosen"]
    job = said(session, "frame", frame=frame)["jobs"][0]
    fitting = {**FITTING, "x": job["width"] // 2, "y": job["height"] // 2}
    for name, question in QUESTIONS.items():
        values = {key: fitting[key] for key in question.numbers if key not in ("frame", "edition")}
        values |= {"frame": frame} if "frame" in question.numbers else {}
        values |= {key: choices[0] for key, choices in question.words.items()}
        if name in ("textures", "texture") and path in (TRI, CUBE):
            assert said(session, "textures", frame=frame, draw=1) == []
            continue
        assert said(session, name, **values), name


def test_the_last_colour_of_a_history_is_that_of_the_picture(session_of):
    session = session_of(CUBE)
    frame = said(session, "capture")["chosen"]
    whole = said(session, "frame", frame=frame)
    picture = said(session, "picture", frame=frame, draw=len(whole["draws"])).convert("RGB")
    x, y = picture.width // 2, picture.height // 2
    history = said(session, "pixel", frame=frame, job=whole["job"], x=x, y=y)
    word = int(history["final"], 16)
    colour = [word & 255, word >> 8 & 255, word >> 16 & 255]
    assert (colour[::-1] if history["blue_first"] else colour) == list(picture.getpixel((x, y)))
    assert history["touches"][-1]["outcome"] == "drawn"


def test_a_run_has_what_each_instruction_wrote_in_all_lanes(session_of):
    session = session_of(TRI)
    history = said(session, "pixel", frame=1, job=1, x=32, y=32)
    run = said(session, "run", frame=1, job=1, x=32, y=32, touch=0)
    program = said(session, "program", frame=1, draw=1, stage="fragment")
    assert [one["text"] for one in run["steps"]] == [one["text"] for one in program["lines"]]
    assert all(len(lanes) == 16 for one in run["steps"] for _name, lanes, _mask in one["writes"])
    (colour,) = [one["value"] for one in history["touches"][0]["writes"] if one["kind"] == "colour"]
    written = [lanes[run["lane"]] for one in run["steps"] for _name, lanes, _mask in one["writes"]]
    assert int(colour, 16) in written


def test_a_program_stands_beside_the_shader_that_it_was_compiled_from(session_of):
    program = said(session_of(SMALL), "program", frame=2, draw=3, stage="fragment")
    assert program["source"]["name"].endswith(".tgsi")
    assert program["source"]["lines"][0].startswith("FRAG")
    lines = {line for one in program["lines"] for line in one["source"]}
    assert lines <= set(range(1, len(program["source"]["lines"]) + 1))
    vertex = said(session_of(SMALL), "program", frame=2, draw=3, stage="vertex")
    assert all(one["meaning"] for one in vertex["uniforms"])
    assert said(session_of(TRI), "program", frame=1, draw=1, stage="fragment")["source"] is None


def test_a_mesh_lies_where_the_history_of_its_vertices_says(session_of):
    session = session_of(CUBE)
    mesh = said(session, "mesh", frame=3, draw=2)
    names = np.frombuffer(base64.b64decode(mesh["vertices"]), "<u4")
    screen = np.frombuffer(base64.b64decode(mesh["screen"]), "<f4").reshape(-1, 3)
    offset = said(session, "state", frame=3, draw=2)
    (viewport,) = [one for one in offset["records"] if one["id"] == 103]
    centre = [float(text.removesuffix("px")) for _name, text, *_ in viewport["fields"]]
    for place in (0, len(names) - 1):
        vertex = said(session, "vertex", frame=3, draw=2, vertex=int(names[place]))
        expected = [one + middle for one, middle in zip(vertex["screen"], centre, strict=True)]
        assert screen[place, :2].tolist() == expected


def test_a_level_of_a_texture_is_the_one_above_it_made_smaller(session_of):
    session = session_of(MIPMAPS)
    ((texture),) = said(session, "textures", frame=3, draw=1)
    sizes = [(one["width"], one["height"]) for one in texture["levels"]]
    pictures = [
        said(session, "texture", frame=3, draw=1, texture=0, level=level, channels="rgb") for level in (0, 1)
    ]
    assert [one.size for one in pictures] == sizes[:2]
    smaller = np.asarray(pictures[0].resize(sizes[1], Image.Resampling.BOX), int)
    assert np.abs(smaller - np.asarray(pictures[1], int)).mean() < 2


def record(session, identity, **values):
    (found,) = [one for one in said(session, "state", **values)["records"] if one["id"] == identity]
    return found


def test_an_edited_record_draws_another_picture_and_the_capture_stays(session_of):
    session = session_of(TRI)
    before = said(session, "picture", frame=1, draw=1)
    view, line, text = record(session, 96, frame=1, draw=1)["line"]
    wanted = {"frame": 1, "edition": 0, "job": 1, "view": view, "line": line}
    text += " enable_forward=0 enable_reverse=0"
    edition = edit(session, {**wanted, "text": text})["edition"]
    after = said(session, "picture", frame=1, draw=1, edition=edition)
    assert len(after.getcolors(1 << 16)) == 1 < len(before.getcolors(1 << 16))
    assert said(session, "picture", frame=1, draw=1) == before
    rows = said(session, "frame", frame=1, edition=edition)["rows"]
    assert [kind for kind, *_ in rows].count("edit") == 1
    history = said(session, "pixel", frame=1, job=1, x=32, y=32, edition=edition)
    assert history["touches"] == []


def test_an_instruction_and_a_uniform_are_edited_in_place(session_of):
    session = session_of(CUBE)
    program = said(session, "program", frame=3, draw=1, stage="vertex")
    uniform = next(one for one in program["uniforms"] if one["value"] not in ("0.0", "1.0"))
    view, line = uniform["line"]
    common = {"frame": 3, "edition": 0, "job": 1, "view": view, "line": line}
    first = edit(session, {**common, "text": f"{uniform['index']},0.25,"})["edition"]
    again = said(session, "program", frame=3, draw=1, stage="vertex", edition=first)
    assert again["uniforms"][uniform["index"]]["value"] == "0.25"
    fragment = said(session, "program", frame=3, draw=1, stage="fragment", edition=first)
    place = next(number for number, one in enumerate(fragment["lines"]) if "tlbc" in one["text"])
    view, line = fragment["lines"][place]["line"]
    common = {"frame": 3, "edition": first, "job": 1, "view": view, "line": line}
    second = edit(session, {**common, "text": "mov tlbc, -1"})["edition"]
    last = said(session, "picture", frame=3, draw=6, edition=second)
    assert last.getpixel((last.width // 2, last.height // 2)) == (255, 255, 255)


def test_a_texture_is_edited_as_a_picture(session_of):
    session = session_of(MIPMAPS)
    ((texture),) = said(session, "textures", frame=3, draw=1)
    data = BytesIO()
    Image.new("RGBA", (texture["width"], texture["height"]), (255, 0, 0, 255)).save(data, "PNG")
    wanted = {"frame": 3, "edition": 0, "job": 1, "file": texture["file"]}
    edition = edit(session, {**wanted, "png": base64.b64encode(data.getvalue()).decode()})["edition"]
    shown = said(session, "texture", frame=3, draw=1, texture=0, level=0, channels="rgb", edition=edition)
    assert shown.getcolors() == [(texture["width"] * texture["height"], (255, 0, 0))]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "a record is its address"),
        ("0 96 Configuration bits  z=1", "there is no field 'z'"),
        ("0 96 Configuration bits  depth_test=maybe", "'maybe'"),
        ("0 32 Indexed primitive list", "there is room for 4"),
    ],
)
def test_a_wrong_line_is_refused_with_a_sentence(session_of, text, sentence):
    session = session_of(TRI)
    view, line, _text = record(session, 96, frame=1, draw=1)["line"]
    editions = session.editions
    with pytest.raises(Refused, match=sentence):
        edit(session, {"frame": 1, "edition": 0, "job": 1, "view": view, "line": line, "text": text})
    assert session.editions == editions


@pytest.mark.parametrize(
    ("wanted", "sentence"),
    [
        (None, "an edit is an object"),
        ([], "an edit is an object"),
        ({"frame": True}, "frame is a number"),
        ({"frame": 1, "edition": 0, "job": 1, "text": 5}, "text is a line"),
        ({"frame": 1, "edition": 0, "job": 1, "text": "x", "view": -1, "line": 0}, "view is a number"),
        ({"frame": 1, "edition": 0, "job": 1, "png": "x", "file": "../a"}, "no texture '../a'"),
        ({"frame": 1, "edition": 99, "job": 1, "text": "x", "view": 0, "line": 0}, "no edition 99"),
    ],
)
def test_an_edit_of_any_shape_gets_a_sentence(session_of, wanted, sentence):
    status, kind, data = Desk(session_of(TRI)).edit(wanted)
    assert (status, kind) == (422, JSON)
    assert sentence in json.loads(data)["error"]


@pytest.mark.parametrize(
    ("name", "values", "error"),
    [
        ("nothing", {}, Bad),
        ("frame", {}, Bad),
        ("frame", {"frame": "-1"}, Bad),
        ("frame", {"frame": "١"}, Bad),
        ("frame", {"frame": "9" * 5000}, Bad),
        ("frame", {"frame": "1", "strange": "1"}, Bad),
        ("frame", {"frame": "77"}, NoSuchPlace),
        ("overlay", {"frame": "1", "draw": "1", "name": "x"}, Bad),
        ("pixel", {"frame": "1", "job": "1", "x": "64", "y": "0"}, NoSuchPlace),
        ("run", {"frame": "1", "job": "1", "x": "32", "y": "32", "touch": "9"}, NoSuchPlace),
        ("picture", {"frame": "1", "draw": "2"}, NoSuchPlace),
        ("view", {"frame": "1", "job": "1", "view": "99", "first": "0"}, NoSuchPlace),
        ("vertex", {"frame": "1", "draw": "1", "vertex": "4294967295"}, NoSuchPlace),
    ],
)
def test_questions_without_an_answer_are_refused(session_of, name, values, error):
    with pytest.raises(error):
        ask(session_of(TRI), name, values)
    status, _kind, data = Desk(session_of(TRI)).answer(name, values)
    assert status == 422
    assert json.loads(data)["error"]


def test_numbers_that_json_lacks_are_null():
    assert document({"a": [float("inf"), float("nan"), 1.5]}) == b'{"a":[null,null,1.5]}'


def test_a_long_list_has_its_lines_when_it_is_asked_for(session_of):
    session = session_of(CUBE)
    values = {"frame": 3, "job": 1}
    views = said(session, "views", **values)
    names = [one["name"].split("-")[0].partition(".")[0] for one in views]
    assert names[:2] == ["binning", "rendering"]
    assert views[1]["lines"] is None
    assert said(session, "view", **values, view=1, first=0)["total"] > 10
    for number, one in enumerate(views):
        found = said(session, "view", **values, view=number, first=0)
        assert found["name"] == one["name"]
        assert found["total"] == len(found["rows"]) == (one["lines"] or found["total"])
        for text, address, data, edits in found["rows"]:
            assert not edits or (data and 0 <= address < 1 << 32 and not text.startswith("#"))


def test_pictures_are_png_files(session_of):
    found = ask(session_of(SMALL), "shown", {"frame": "1"})
    assert found.kind == PNG
    assert found.data.startswith(b"\x89PNG")
