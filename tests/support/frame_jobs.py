"""Jobs of published measurements, made by hand and recorded for the timing model."""

from __future__ import annotations

from functools import cache

from tests.support.frames import Frame as Board
from tests.support.frames import solid
from tests.support.jobs import nv_vertex, viewport

from vc4lab.memory import GuestMemory
from vc4lab.records.control import build
from vc4lab.timing.frames.feed import FrameFeed
from vc4lab.timing.frames.frame import Frame

WIDTH, HEIGHT = 640, 360
BGR565 = 2
TRIANGLES, FAN = 4, 6

Point = tuple[float, float]


class Jobs:
    """A frame of 640x360 RGB565, as the bm project measured them, drawn with a feed."""

    def __init__(self) -> None:
        self.board = Board(WIDTH, HEIGHT, memory=GuestMemory())
        self.frames: list[Frame] = []

    def draw(self, body: bytes) -> Frame:
        """Bins and renders a body of records."""
        with FrameFeed(self.board.v3d) as feed:
            self.board.bin(body, format=BGR565)
            (frame,) = feed.take()
        assert not frame.lost
        return frame

    def triangles(self, program: str, corners: list[Point], uniforms: int = 0) -> bytes:
        """A draw of triangles whose vertices are shaded already."""
        vertices = b"".join(nv_vertex(x, y, 0.5, 1.0) for x, y in corners)
        state = viewport(self.board.job) + self.board.nv_shader(program, vertices, 0, uniforms)
        return state + build(33, mode=TRIANGLES, length=len(corners), first=0)


def rectangle(left: float, top: float, right: float, bottom: float) -> list[Point]:
    """Two triangles."""
    a, b, c, d = (left, top), (right, top), (right, bottom), (left, bottom)
    return [a, b, c, a, c, d]


@cache
def clear() -> Frame:
    """Nothing is drawn: 60 tiles are cleared and stored."""
    return Jobs().draw(b"")


@cache
def triangle() -> Frame:
    """One triangle, over a third of the frame."""
    jobs = Jobs()
    return jobs.draw(jobs.triangles(solid(0xFF00FF00), [(320, 40), (600, 320), (40, 320)]))


@cache
def tiny(count: int = 20_000) -> Frame:
    """Many triangles of a few pixels, none of which shares a vertex with another one."""
    jobs = Jobs()
    columns = 200
    corners: list[Point] = []
    for number in range(count):
        x, y = number % columns * 3.0 + 10, number // columns * 3.0 + 10
        corners += [(x, y), (x + 2.0, y), (x, y + 2.0)]
    return jobs.draw(jobs.triangles(solid(0xFF00FF00), corners))


@cache
def fill(layers: int) -> Frame:
    """The whole frame is filled so many times."""
    jobs = Jobs()
    return jobs.draw(jobs.triangles(solid(0xFF00FF00), layers * rectangle(0, 0, WIDTH, HEIGHT)))
