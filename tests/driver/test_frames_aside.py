"""Frames wait while others are drawn, and go on: jobs, and what is seen of them."""

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.driver import shaders
from tests.driver.drawing import DEPTH, RGBA, Drawing
from tests.driver.small_scene import WINDOW, server_and_drawing

from vc4lab.driver.frames import job
from vc4lab.driver.screen import VideoCoreScreen
from vc4lab.mesa.protocol.codes import Primitive, Stage
from vc4lab.mesa.protocol.state_commands import SetSamplerViews

SIZE = 64
LEFT = [[-1, -1, 0, 1], [0, -1, 0, 1], [0, 1, 0, 1], [-1, 1, 0, 1]]
WHOLE = [[-1, -1, 0, 1], [1, -1, 0, 1], [1, 1, 0, 1], [-1, 1, 0, 1]]
RED, GREEN, BLUE = (1, 0, 0, 1), (0, 1, 0, 1), (0, 0, 1, 1)


class Program:
    """Two textures that are drawn to; how many jobs there were, and clears in them."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(exist_ok=True)
        self.server, self.drawing = server_and_drawing(folder)
        screen = self.server.screen
        assert isinstance(screen, VideoCoreScreen)
        self.jobs: list[int] = []
        screen.listeners.job.subscribe(lambda event: self.jobs.append(event.job.cleared))
        self.screen = screen
        drawing: Drawing = self.drawing
        self.first = drawing.texture(SIZE, SIZE, RGBA)
        self.second = drawing.texture(SIZE, SIZE, RGBA)
        drawing.target(self.first)
        drawing.viewport(SIZE, SIZE)
        drawing.defaults()
        rows = [[*one, 0.5 + one[0] / 2, 0.5 + one[1] / 2, 0, 1] for one in (*LEFT, *WHOLE)]
        drawing.vertices(np.array(rows), 4, 4)

    def plain(self, colour: tuple[float, ...], first: int = 0) -> None:
        self.drawing.shaders(shaders.POSITION_ONLY, shaders.UNIFORM_COLOUR)
        self.drawing.client.submit(SetSamplerViews(Stage.FRAGMENT, 0, (0,)))
        self.drawing.constants(Stage.FRAGMENT, colour)
        self.drawing.draw(Primitive.TRIANGLE_FAN, 4, first)

    def textured(self, handle: int) -> None:
        self.drawing.shaders(shaders.VARYING, shaders.TEXTURED.format(target="2D"))
        self.drawing.sampled(handle)
        self.drawing.draw(Primitive.TRIANGLE_FAN, 4, 4)

    def seen(self, handle: int) -> list[tuple[int, ...]]:
        """Left and right of a texture."""
        found: Any = self.drawing.get(handle)
        return [tuple(found[SIZE // 2, x, :3].tolist()) for x in (1, SIZE - 1)]


@pytest.fixture
def program(tmp_path: Path) -> Any:
    made = Program(tmp_path)
    yield made
    made.server.close()


def test_a_window_that_is_cleared_before_a_texture_is_drawn(program: Program) -> None:
    """It is one frame, which loads nothing; the pictures of each turn are those of its colours."""
    drawing = program.drawing
    for number in range(4):
        drawing.target(program.first)
        drawing.clear(4, GREEN if number % 2 else BLUE)
        drawing.target(program.second)
        drawing.clear(4, RED)
        program.plain(GREEN)
        drawing.target(program.first)
        program.plain(RED)
        background = (0, 255, 0) if number % 2 else (0, 0, 255)
        assert program.seen(program.first) == [(255, 0, 0), background]
        assert program.seen(program.second) == [(0, 255, 0), (255, 0, 0)]
    assert program.jobs == [4, 4] * 4


def test_a_window_that_is_drawn_to_before_and_after_a_texture(program: Program) -> None:
    """It is one frame, whose draws stand in their order and keep their numbers."""
    drawing, numbers = program.drawing, []
    program.screen.listeners.job.subscribe(lambda event: numbers.append(event.draws))
    for turn in range(4):
        other = (RED, BLUE)[turn % 2]
        drawing.target(program.first)
        drawing.clear(4, GREEN)
        program.plain(BLUE, 4)
        drawing.target(program.second)
        drawing.clear(4, GREEN)
        program.plain(other)
        drawing.target(program.first)
        program.plain(other)
        assert program.seen(program.first) == [tuple(255 * one for one in other[:3]), (0, 0, 255)]
        assert program.seen(program.second) == [tuple(255 * one for one in other[:3]), (0, 255, 0)]
    assert program.jobs == [4, 4] * 4
    assert [len(one) for one in numbers] == [1, 2] * 4
    assert [one for pair in numbers[:2] for one in sorted(pair)] == [2, 1, 3]


@pytest.mark.parametrize("seed", range(8))
def test_frames_that_depend_on_each_other(program: Program, seed: int) -> None:
    """Draws, clears, copies by sampling, uploads and reads of four textures, again and again."""
    drawing, chance = program.drawing, random.Random(seed)
    handles = [program.first, program.second]
    # The last one is a window: a copy of it is sampled.
    handles += [drawing.texture(SIZE, SIZE, RGBA, bind=one) for one in (8 | 2, WINDOW)]
    is_now: dict[int, list[tuple[int, ...]]] = {one: [(0, 0, 0)] * 2 for one in handles}
    kinds = ["plain"] * 6 + ["sample"] * 2 + ["over"] * 4 + ["clear", "put", "read"]
    frame = [(chance.choice(kinds), chance.choice(handles), chance.choice(handles)) for _ in range(32)]
    for handle in handles:
        drawing.target(handle)
        drawing.clear(4, (0, 0, 0, 1))
    for _ in range(4):
        for kind, handle, other in frame:
            colour = tuple(chance.randrange(2) for _ in range(3))
            seen = tuple(255 * one for one in colour)
            if kind in ("sample", "over") and handle == other:
                continue
            if kind not in ("put", "read"):
                drawing.target(handle)
            if kind == "plain":
                program.plain((*colour, 1))
                is_now[handle] = [seen, is_now[handle][1]]
            elif kind == "clear":
                drawing.clear(4, (*colour, 1))
                is_now[handle] = [seen, seen]
            elif kind in ("sample", "over"):
                if kind == "over":  # a clear begins the frame: native code adds the draw
                    drawing.clear(4)
                program.textured(other)
                is_now[handle] = list(is_now[other])
            elif kind == "put":
                texels = np.full((SIZE, SIZE, 4), (*seen, 255), np.uint8)
                drawing.put(handle, texels)
                is_now[handle] = [seen, seen]
            elif kind == "read":
                assert program.seen(handle) == is_now[handle]
    for handle in handles:
        assert program.seen(handle) == is_now[handle]
    assert not program.server.reporter.counts


def test_what_is_sampled_was_cleared(program: Program) -> None:
    """Also where native code adds draws that it knows, and clears are other ones each time."""
    drawing = program.drawing
    for number in range(6):
        colour = (RED, GREEN, BLUE)[number % 3]
        drawing.target(program.first)
        drawing.clear(4, colour)
        drawing.target(program.second)
        drawing.clear(4)
        program.textured(program.first)
        assert program.seen(program.second) == [tuple(255 * one for one in colour[:3])] * 2
    assert len(program.jobs) == 12


def test_reading_copying_and_drawing_over(program: Program) -> None:
    drawing = program.drawing
    drawing.target(program.first)
    drawing.clear(4, RED)
    drawing.target(program.second)
    drawing.clear(4, BLUE)
    assert program.seen(program.first) == [(255, 0, 0)] * 2
    assert program.seen(program.second) == [(0, 0, 255)] * 2
    # The same surface in another frame buffer: what was cleared comes first.
    depth = drawing.texture(SIZE, SIZE, DEPTH, bind=1)
    drawing.target(program.first, depth)
    drawing.clear(5, GREEN)
    drawing.target(program.first)
    program.plain(BLUE)
    drawing.target(program.first, depth)
    assert program.seen(program.first) == [(0, 0, 255), (0, 255, 0)]


def test_more_than_wait(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job, "MOST", 2)
    drawing = program.drawing
    others = [drawing.texture(SIZE, SIZE, RGBA) for _ in range(5)]
    for number, handle in enumerate(others):
        drawing.target(handle)
        drawing.clear(4, (number / 5, 0, 0, 1))
    for number, handle in enumerate(others):
        assert program.seen(handle) == [(51 * number, 0, 0)] * 2
    assert len(program.jobs) == 5
    picture = program.screen.processor.last_picture
    assert picture is not None
    assert np.asarray(picture.image())[0, 0, 0] == 204
