"""Frames that have only clears wait while others are drawn: jobs, and what is seen of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.driver import shaders
from tests.driver.drawing import DEPTH, RGBA, Drawing
from tests.driver.small_scene import server_and_drawing

from vc4lab.driver.frames import aside
from vc4lab.driver.screen import VideoCoreScreen
from vc4lab.mesa.protocol.codes import Primitive, Stage

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
    monkeypatch.setattr(aside, "MOST", 2)
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
