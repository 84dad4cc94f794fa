"""A small scene with everything that people edit, captured: two frames of 64 x 48 pixels.

    python -m tests.driver.small_scene tests/data/captures/small.vc4cap

Frame 1: a textured square (a strip), over it a blended square whose colour is a constant, a
triangle with indices. Frame 2 the same after the program has changed the texture and a vertex.
"""

import sys
import tempfile
from pathlib import Path

import numpy as np
from tests.driver import shaders
from tests.driver.drawing import BGRA, RGBA, Drawing
from tests.mesa.conftest import RunningServer

from vc4lab.driver.capture.model import Capture
from vc4lab.driver.capture.recorder import Recorder
from vc4lab.driver.capture.store import save_capture
from vc4lab.driver.program_cache import mesa_compiler
from vc4lab.driver.screen import VideoCoreScreen
from vc4lab.mesa.protocol import messages
from vc4lab.mesa.protocol.codes import BlendFactor, Primitive, Stage

WIDTH, HEIGHT = 64, 48
WINDOW = 0x8A
COLOUR = (1.0, 0.25, 0.0, 0.5)


def square(left: float, bottom: float, right: float, top: float) -> np.ndarray:
    """A strip of positions and texture coordinates."""
    corners = [(left, bottom, 0, 0), (right, bottom, 1, 0), (left, top, 0, 1), (right, top, 1, 1)]
    return np.array([(x, y, 0, 1, s, t, 0, 1) for x, y, s, t in corners], np.float32)


def chequered() -> np.ndarray:
    """A texture of 8 x 8 texels."""
    rows, columns = np.mgrid[:8, :8]
    texels = np.zeros((8, 8, 4), np.uint8)
    texels[..., 0] = 40 + 25 * columns
    texels[..., 1] = 40 + 25 * rows
    texels[..., 2] = 255 * ((rows + columns) % 2)
    texels[..., 3] = 255
    return texels


class SmallScene:
    """The program."""

    def __init__(self, drawing: Drawing) -> None:
        self.drawing = drawing
        self.window = drawing.texture(WIDTH, HEIGHT, BGRA, bind=WINDOW)
        self.texture = drawing.texture(8, 8, RGBA, bind=8)
        drawing.put(self.texture, chequered())
        drawing.target(self.window)
        drawing.viewport(WIDTH, HEIGHT, flipped=True)
        drawing.defaults()

    def frame(self, right: float = 0.9) -> np.ndarray:
        """Draw a frame; its pixels."""
        drawing = self.drawing
        drawing.clear(4, (0.1, 0.1, 0.3, 1.0))
        drawing.blend()
        drawing.shaders(shaders.VARYING, shaders.TEXTURED.format(target="2D"))
        drawing.sampled(self.texture)
        drawing.vertices(square(-0.9, -0.9, right, 0.5), 4, 4)
        drawing.draw(Primitive.TRIANGLE_STRIP, 4)
        drawing.blend(
            blend_enable=True, rgb_src_factor=BlendFactor.SRC_ALPHA, rgb_dst_factor=BlendFactor.INV_SRC_ALPHA
        )
        drawing.shaders(shaders.POSITION_ONLY, shaders.UNIFORM_COLOUR)
        drawing.constants(Stage.FRAGMENT, COLOUR)
        drawing.vertices(square(-0.5, -0.5, 0.6, 0.9)[:, :4], 4)
        drawing.draw(Primitive.TRIANGLE_STRIP, 4)
        drawing.constants(Stage.FRAGMENT, (0.0, 1.0, 0.5, 1.0))
        drawing.draw_indexed(Primitive.TRIANGLES, np.array([0, 1, 3], np.uint16))
        return drawing.get(self.window)


def server_and_drawing(folder: Path) -> tuple[RunningServer, Drawing]:
    """A server on a V3D with a client."""
    server = RunningServer(folder / "socket", lambda reporter: VideoCoreScreen(reporter, mesa_compiler()))
    client = server.client()
    client.send(messages.CreateRenderer(b"small\0"))
    client.send(messages.ProtocolVersion(2))
    assert client.words(3) == (1, 11, 2)
    return server, Drawing(client)


def captured(folder: Path) -> tuple[Capture, list[np.ndarray]]:
    """Both frames, and their pixels as the client got them: B, G, R, A."""
    server, drawing = server_and_drawing(folder)
    try:
        recorder = Recorder(server.screen, 1, 2, "small")
        scene = SmallScene(drawing)
        pixels = [scene.frame()]
        changed = chequered()
        changed[2:6, 2:6] = (255, 255, 255, 255)
        drawing.put(scene.texture, changed)
        pixels.append(scene.frame(right=0.2))
        assert recorder.is_done
    finally:
        server.close()
    return recorder.capture, pixels


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        made, _ = captured(Path(scratch))
        save_capture(made, sys.argv[1])
