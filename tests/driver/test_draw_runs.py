"""Draws that native code puts into the queue: the same commands, blocks and pictures."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from tests.driver.small_scene import SmallScene, server_and_drawing

from vc4lab.driver.capture.model import Capture
from vc4lab.driver.capture.recorder import Recorder
from vc4lab.driver.queue.draw_runs import BLOCKS_OF_DRAW, WORDS_OF_DRAW
from vc4lab.driver.screen import VideoCoreScreen
from vc4lab.mesa.state.draw_run import KEPT_WORDS

FRAMES = 4


def captured(folder: Path, *, in_objects: bool) -> tuple[Capture, list[np.ndarray]]:
    """Equal frames and one that differs, with all commands as objects or as runs."""
    folder.mkdir()
    server, drawing = server_and_drawing(folder)
    try:
        assert isinstance(server.screen, VideoCoreScreen)
        if in_objects:
            server.server.listeners.command.subscribe(lambda _event: None)
        recorder = Recorder(server.screen, 1, FRAMES + 1, "small")
        scene = SmallScene(drawing)
        pixels = [scene.frame() for _ in range(FRAMES)]
        pixels.append(scene.frame(right=0.2))
    finally:
        server.close()
    return recorder.capture, pixels


def test_the_same_queue(tmp_path: Path) -> None:
    run, pixels = captured(tmp_path / "run", in_objects=False)
    other, wanted = captured(tmp_path / "objects", in_objects=True)
    assert [one.commands for one in run.frames] == [one.commands for one in other.frames]
    assert len(run.frames) == FRAMES + 1
    assert all(len(one.draws) == 3 for one in run.frames)
    states = [
        [one.state_of(draw).lines() for frame in one.frames for draw in frame.draws]
        for one in (run, other)
    ]
    assert states[0] == states[1]
    assert run.data == other.data
    for mine, one in zip(pixels, wanted, strict=True):
        assert (mine == one).all()
    assert (pixels[0] != pixels[-1]).any()


def test_every_word_of_a_draw_has_a_source() -> None:
    """But for the addresses, which are the last ones; its blocks have room."""
    assert [bool(one) for one in WORDS_OF_DRAW] == [True] * 10 + [False] * 2
    assert BLOCKS_OF_DRAW >= 4 * (1 + 2 * (3 + 2)) + 3 * 15 + 2 * 4
    assert KEPT_WORDS >= 9
