"""Shaders of captured frames stepped: what they come to is what the frame has; forward, back, all faces."""

from __future__ import annotations

import random
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from tests.debug.frame_scene import scene
from tests.debug.test_frames import DATA, RUNS, SMALL, looked, run
from tests.support.dap_client import Client
from typer.testing import CliRunner

from vc4lab.capture.pages import Pages
from vc4lab.cli.inside import frames_and_programs
from vc4lab.cli.main import app
from vc4lab.debug.console import Console
from vc4lab.debug.frame.capture import Capture
from vc4lab.debug.frame.places import NoSuchPlace
from vc4lab.debug.frame.touch import UNCOVERED, Touch
from vc4lab.debug.frame.watch import PixelState
from vc4lab.debug.launch import Launch
from vc4lab.debug.session import Session
from vc4lab.debug.shaders.find import Question, shader_session
from vc4lab.debug.shaders.fragment import FragmentStage
from vc4lab.debug.shaders.listing import KnownProgram
from vc4lab.debug.shaders.vertex import VertexProgramStage
from vc4lab.debug.stops import Cause
from vc4lab.debug.texts import section_lines
from vc4lab.jobs.load import open_jobs

NAMES = (
    "kmscube_smooth",
    "glmark2_ideas",
    "glmark2_texture_texture-filter_mipmap",
    "glmark2_bump_bump-render_high-poly",
    "glmark2_loop_fragment-loop_false",
    "sdl_testdraw2",
    "tri_arm64",
    "small",
    "triangle",
)


def asked(capture: Capture, **question: Any) -> Session:
    return shader_session(capture, Question(**question))[0]


def pixel_of(stage: FragmentStage) -> PixelState:
    """The pixel that was asked for, in the copy of the tile buffer."""
    layout, lane = stage.layout, stage.lane
    samples = range(layout.samples)
    colours = tuple(
        tuple(int(stage.plane("colour", k, part)[lane]) for part in range(layout.words)) for k in samples
    )
    words = [int(stage.plane("zs", k)[lane]) for k in samples]
    return PixelState(colours, tuple(one >> 8 for one in words), tuple(one & 255 for one in words))


def last_of(name: str, x: int, y: int) -> Touch:
    """What drew a pixel last."""
    touches = looked(name).frame().pixel(x, y).touches
    return [one for one in touches if one.outcome != UNCOVERED][-1]


def fragment(session: Session) -> FragmentStage:
    assert isinstance(session.stage, FragmentStage)
    return session.stage


def compare(capture: Capture, x: int, y: int, touch: Touch, number: int | None = None) -> None:
    """A touch stepped to its end has what the history says; so it has once more, after going back."""
    assert touch.draw is not None
    session = asked(capture, frame=number, pixel=(x, y), draw=touch.draw.number)
    stage = fragment(session)
    assert pixel_of(stage) == touch.before
    assert session.proceed().cause is Cause.ENDED
    assert pixel_of(stage) == touch.after
    turns, registers = session.turn, session.view().register(("r", 0)).tolist()
    session.go_to(turns // 2)
    session.proceed()
    assert (session.turn, pixel_of(stage)) == (turns, touch.after)
    assert session.view().register(("r", 0)).tolist() == registers
    session.restart()
    assert pixel_of(stage) == touch.before


@pytest.mark.parametrize("name", NAMES)
def test_stepped_to_the_end_a_pixel_is_what_the_frame_has(name: str) -> None:
    choice, capture = random.Random(name), looked(name)
    frame = capture.frame()
    width, height = frame.job.size
    seen = 0
    for _ in range(40):
        x, y = choice.randrange(width), choice.randrange(height)
        history = frame.pixel(x, y)
        last = {one.draw.number: one for one in history.touches if one.draw and one.outcome != UNCOVERED}
        if not last:
            continue
        touch = list(last.values())[-1] if seen else choice.choice(list(last.values()))
        compare(capture, x, y, touch)
        assert list(last.values())[-1].after.colours[0][0] == history.final
        seen += 1
        if seen == 2:
            return
    assert seen


@pytest.mark.parametrize("multisample", [False, True])
def test_each_fate_of_a_pixel_is_stepped(multisample: bool) -> None:
    """Depth and stencil that refuse, discards, 4 samples: each touch comes to its own end."""
    capture = Capture(scene(multisample=multisample))
    frame, fates = capture.frame(), set()
    for place in range(4, 64, 8):
        for touch in frame.pixel(place, place).touches:
            if touch.outcome != UNCOVERED:
                compare(capture, place, place, touch)
                fates.add(touch.outcome)
    assert len(fates) >= 3


@pytest.mark.parametrize(("name", "draw"), [("kmscube_smooth", 6), ("glmark2_ideas", 3), ("small", 1)])
def test_vertices_are_what_their_histories_say(name: str, draw: int) -> None:
    capture = looked(name)
    frame = capture.frame()
    one = frame.draws[draw - 1]
    for index in {one.first, one.last}:
        history = frame.vertex(draw, index)
        for coordinate, made in ((True, history.coordinate), (False, history.vertex)):
            assert made is not None
            session = asked(capture, vertex=index, draw=draw, coordinate=coordinate)
            assert isinstance(session.stage, VertexProgramStage)
            assert session.proceed().cause is Cause.ENDED
            assert session.turn == len(made.steps)
            for _ in range(2):
                rows = session.stage.vpm_rows()[: len(made.rows_out), index % 16]
                assert tuple(rows.tolist()) == made.rows_out
                session.back(len(made.steps) // 2)
                session.proceed()


def console_of(session: Session) -> tuple[Console, list[str]]:
    lines: list[str] = []
    return Console(session, lines.append), lines


def said(console: Console, lines: list[str], command: str) -> str:
    lines.clear()
    console.execute(command)
    return "\n".join(lines)


def test_the_state_of_a_fragment_in_lines() -> None:
    name = "glmark2_texture_texture-filter_mipmap"
    touch = last_of(name, 64, 64)
    session = asked(looked(name), pixel=(64, 64))
    console, lines = console_of(session)
    block, final = touch.block, touch.after.colours[0][0]
    assert f"lane {block.lane}" in said(console, lines, "info pixels")
    before = said(console, lines, "info varyings")
    assert "read" not in before
    assert f"{block.varyings[0]:.6g}" in before
    assert "TMU0 request 0" in said(console, lines, "list") or "uniform 0" in said(console, lines, "list")
    assert "none yet" in said(console, lines, "info texels")
    assert "breakpoint 1" in said(console, lines, f"when colour[{block.lane}] == 0x{final:x}")
    assert "holds" in said(console, lines, "continue")
    assert f"{block.texels[0].words[0]:08x}" in said(console, lines, "info texels")
    assert "read" in said(console, lines, "info varyings")
    assert f"{final:08x}" in said(console, lines, "info writes")
    assert f"{final:08x}" in said(console, lines, "info tile")
    said(console, lines, "back")
    assert said(console, lines, f"p/x colour[{block.lane}]").endswith(f"{touch.before.colours[0][0]:08x}")
    assert "shaders have no mutex" in said(console, lines, "info synchronisation")
    assert "shaders have no semaphores" in said(console, lines, "p sem[0]")
    assert "there is no 'mutex'" in said(console, lines, "p mutex")


def test_uniforms_are_watched_and_changed() -> None:
    """A uniform's memory gets another value; the end is another one, and going back undoes it."""
    capture = looked("glmark2_ideas")
    touch = last_of("glmark2_ideas", 400, 330)
    session = asked(capture, pixel=(400, 330))
    address = session.view().number("unif")
    assert address is not None
    session.breakpoints.add_access(address, 4, reads=True, writes=False)
    assert session.proceed().cause is Cause.ACCESS
    session.restart()
    session.write_memory(address, bytes(4))
    session.breakpoints.items.clear()
    session.breakpoints.delete(session.breakpoints.add_message("").number)
    session.proceed()
    assert pixel_of(fragment(session)) != touch.after
    session.go_to(0)
    session.write_memory(address, touch.block.uniforms[0].to_bytes(4, "little"))
    session.proceed()
    assert pixel_of(fragment(session)) == touch.after


def test_a_primitive_is_found_by_its_position() -> None:
    capture = looked("glmark2_ideas")
    session, (what,) = shader_session(capture, Question(position="#f3/j1/d177/p12"))
    assert what.startswith("#f3/j1/d177/p12: draw 177, triangle 12")
    session.proceed()
    assert len(fragment(session).environment.accessed) > 0
    (other,) = shader_session(capture, Question(position="#f3/d13", pixel=(400, 330)))[1]
    assert other.startswith("#f3/j1/d13/p0")


class _OtherCode:
    """Pages of a capture with some bytes of a program changed."""

    def __init__(self, pages: Pages, code: bytes, choice: random.Random) -> None:
        self._pages, self._code, self._other = pages, code, bytearray(code)
        for _ in range(choice.choice((1, 3, 10))):
            self._other[choice.randrange(len(code) - 24)] ^= 1 << choice.randrange(8)

    def __len__(self) -> int:
        return len(self._pages)

    def page(self, number: int) -> bytes:
        return self._pages.page(number).replace(self._code, bytes(self._other))


def test_programs_of_any_bytes_end() -> None:
    """They come to an end, or to a fault with a code; the way back is there."""
    archive = DATA / "captures" / "tri.vc4cap"
    questions = Question(pixel=(32, 32)), Question(vertex=0, draw=1)
    codes = [shader_session(Capture(archive), one)[0].source.code for one in questions]
    causes, turns = set(), set()
    for seed in range(24):
        choice, number = random.Random(seed), seed % 2
        capture = open_jobs(archive)
        assert capture.pages is not None
        capture.pages = _OtherCode(capture.pages, codes[number], choice)
        try:
            session = shader_session(Capture(capture), questions[number])[0]
        except NoSuchPlace:
            continue  # what draws nothing has no run
        stop = session.proceed(3000)
        if stop.cause is Cause.FAULT:
            assert session.messages[-1][1].code
        for section in session.stage.sections:
            section_lines(section)
        turns.add(session.turn)
        session.go_to(session.turn // 2)
        session.proceed(10)
        causes.add(stop.cause)
    assert {Cause.ENDED, Cause.FAULT} <= causes <= {Cause.ENDED, Cause.FAULT, Cause.LIMIT, Cause.BKPT}
    assert len(turns) > 2


@pytest.mark.parametrize(
    ("question", "text"),
    [
        (Question(), "which pixel or vertex"),
        (Question(position="#f3/d177"), "which pixel or vertex"),
        (Question(position="#f3/d177/p99999"), "no primitive 99999"),
        (Question(pixel=(9999, 1)), "no \\(9999, 1\\)"),
        (Question(pixel=(1, 1), draw=177), "#f3/d177 has not touched|no program has run"),
        (Question(draw=9999), "no draw 9999"),
        (Question(vertex=1), "whose vertex 1"),
        (Question(vertex=999999, draw=1), "draw 1 has no vertex 999999"),
        (Question(frame=99, pixel=(1, 1)), "no frame 99"),
        (Question(position="#f3/j9", pixel=(1, 1)), "no job 9"),
        (Question(position="f3/zz", pixel=(1, 1)), "is no position"),
    ],
)
def test_questions_without_an_answer(question: Question, text: str) -> None:
    with pytest.raises(NoSuchPlace, match=text):
        shader_session(looked("glmark2_ideas"), question)


def test_the_text_that_a_capture_knows_is_the_source() -> None:
    capture = looked("small")
    program = asked(capture, pixel=(20, 20)).qpu.program
    text = "FRAG\nDCL OUT[0]\nMOV OUT[0], CONST[0]\nEND"
    lines = [(3,)] * (len(program.words) - 2) + [(), (99,)]
    known = KnownProgram("fragment", program.words, "colour.tgsi", text, lines, ("CONST[0].x", "CONST[0].y"))
    session = shader_session(capture, Question(pixel=(20, 20)), [known])[0]
    console, said_lines = console_of(session)
    assert "colour.tgsi:3" in said(console, said_lines, "where")
    assert "MOV OUT[0]" in said(console, said_lines, "list")
    assert "CONST[0].x = " in said(console, said_lines, "info uniforms")
    said(console, said_lines, "step")
    assert session.turn == len(program.words) - 2, "a step is the line"
    bare = KnownProgram("fragment", program.words, "colour.tgsi", text)
    session = shader_session(capture, Question(pixel=(20, 20)), [bare])[0]
    assert session.source.text_of(str(session.source.path))[2] == "# MOV OUT[0], CONST[0]"
    place = session.place()
    assert place is not None
    assert place.line == 5


def test_the_command(tmp_path: Path) -> None:
    text = run("debug", SMALL, "--pixel", "20,20", "--ex", "continue", "--ex", "info writes", "--batch")
    assert "#f2/j1/d2/p0: draw 2, triangle 0" in text
    assert "CONST[0]" in run("debug", SMALL, "--pixel", "20,20", "--ex", "info uniforms", "--batch")
    text = run("debug", RUNS / "kmscube_smooth", "--vertex", 21, "--draw", 6, "--coordinate", "--batch")
    assert "coordinate program, vertex 21 (lane 5)" in text
    for arguments, found in (
        ([SMALL], "which pixel or vertex?"),
        ([SMALL, "--pixel", "1,1", "--vertex", "1"], "not both"),
        (["--pixel", "1,1"], "name it"),
        ([tmp_path, "--pixel", "1,1"], "no folder of recorded jobs"),
        ([SMALL, "--pixel", "x"], "is not a column and a row"),
    ):
        result = CliRunner().invoke(app, ["debug", *map(str, arguments)])
        assert result.exit_code == 2
        assert found in result.output


# -- an editor -------------------------------------------------------------------------------------


@cache
def opened(path: Path) -> tuple[Capture, list[KnownProgram]]:
    return frames_and_programs(path)


def client() -> Client:
    return Client(Launch(frames=opened))


def begin(one: Client, **arguments: Any) -> None:
    one.get("initialize", adapterID="vc4lab", linesStartAt1=True)
    one.get("launch", **arguments)
    one.event("initialized")


def variables_of(one: Client, scope: str) -> dict[str, Any]:
    scopes = {each["name"]: each for each in one.get("scopes", frameId=1)["scopes"]}
    found = one.get("variables", variablesReference=scopes[scope]["variablesReference"])["variables"]
    return {each["name"]: each for each in found}


def test_an_editor_steps_a_fragment() -> None:
    one = client()
    name = RUNS / "glmark2_texture_texture-filter_mipmap"
    begin(one, capture=str(name), pixel="64,64", stopOnEntry=True)
    output = one.event("output")["output"]
    assert output.startswith("#f3/j1/d")
    one.get("configurationDone")
    assert one.event("stopped")["reason"] == "entry"
    frame = one.get("stackTrace", threadId=1)["stackFrames"][0]
    assert frame["line"] == 1
    reference = frame["source"]["sourceReference"]
    text = one.get("source", source=frame["source"], sourceReference=reference)["content"].splitlines()
    wanted = next(number for number, line in enumerate(text, 1) if "tlbc" in line)
    found = one.get("setBreakpoints", source=frame["source"], breakpoints=[{"line": wanted}])
    assert found["breakpoints"][0]["verified"]
    one.get("continue", threadId=1)
    assert one.event("stopped")["reason"] == "breakpoint"
    assert one.get("stackTrace", threadId=1)["stackFrames"][0]["line"] == wanted
    before = variables_of(one, "Tile buffer")["colour"]
    assert "result" in variables_of(one, "Texture requests")
    assert variables_of(one, "Accesses to the tile buffer") == {}
    assert "TMU" in str(variables_of(one, "Uniforms")) or variables_of(one, "Uniforms")
    scopes = [each["name"] for each in one.get("scopes", frameId=1)["scopes"]]
    assert "Synchronisation" not in scopes
    watched = one.get("dataBreakpointInfo", name="colour")
    one.get("setDataBreakpoints", breakpoints=[{"dataId": watched["dataId"]}])
    one.get("continue", threadId=1)
    assert one.event("stopped")["reason"] == "data breakpoint"
    assert variables_of(one, "Tile buffer")["colour"]["value"] != before["value"]
    assert len(variables_of(one, "Accesses to the tile buffer")) == 1
    one.get("stepBack", threadId=1, granularity="instruction")
    assert one.event("stopped")["reason"] == "step"
    assert variables_of(one, "Tile buffer")["colour"]["value"] == before["value"]
    one.get("disconnect")
    one.end()


def test_an_editor_steps_a_vertex() -> None:
    one = client()
    begin(one, capture=str(RUNS / "kmscube_smooth"), vertex=21, draw=6, coordinate=True, stopOnEntry=True)
    one.get("configurationDone")
    one.event("stopped")
    assert variables_of(one, "Rows that were fetched")["row 0"]["indexedVariables"] == 16
    one.get("continue", threadId=1)
    one.event("stopped")
    rows = variables_of(one, "Rows that are written")
    assert rows["0 Xc"]["value"].split()[5] == "2.73708"
    one.get("disconnect")
    one.end()


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"capture": 5}, '"capture" is'),
        ({"capture": ""}, '"capture" is'),
        ({"capture": "a\0b", "pixel": "1,1"}, '"capture" is'),
        ({"capture": str(SMALL), "pixel": "1"}, "column and a row"),
        ({"capture": str(SMALL), "pixel": [1, "x"]}, "column and a row"),
        ({"capture": str(SMALL), "pixel": {"x": 1}}, "column and a row"),
        ({"capture": str(SMALL), "pixel": [-1, 2]}, "column and a row"),
        ({"capture": str(SMALL), "vertex": -1, "draw": 1}, '"vertex" is a number'),
        ({"capture": str(SMALL), "frame": "3"}, "whole number"),
        ({"capture": str(SMALL)}, "which pixel or vertex"),
        ({"capture": "/nowhere.vc4cap", "pixel": "1,1"}, "nowhere"),
    ],
)
def test_what_an_editor_may_get_wrong(arguments: dict[str, Any], text: str) -> None:
    one = client()
    one.get("initialize", adapterID="vc4lab")
    answer = one.ask("launch", **arguments)
    assert not answer["success"]
    assert text in answer["message"]
    one.get("disconnect")
    one.end()
