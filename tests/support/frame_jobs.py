"""Jobs of published measurements, made by hand and recorded for the timing model."""

import struct
from functools import cache
from typing import Any

from tests.support.frames import Frame as Board
from tests.support.jobs import nv_vertex, viewport

from vc4lab.memory import GuestMemory
from vc4lab.records.control import build
from vc4lab.records.texture import TextureConfig
from vc4lab.timing.frames.feed import FrameFeed
from vc4lab.timing.frames.frame import Frame

WIDTH, HEIGHT = 640, 360
BGR565 = 2
TRIANGLES = 4
RASTER = 16
"""Texture type of raster images."""
GREEN = 0xFF00FF00

Point = tuple[float, ...]

_LAST = """
    mov tlbc, {} ; nop ; thrend
    nop
    nop ; nop ; sbdone
"""
_SWITCH = "    nop ; nop ; lthrsw\n    nop\n    nop\n"
_TEXTURED = """
    mov r0, vary
    {}
    fmul r0, r0, ra15
    fadd r0, r0, r5 ; mov r1, vary
    nop
    fmul r1, r1, ra15
    fadd t0t, r1, r5
    nop
    mov t0s, r0
    {}
    nop ; nop ; ldtmu0
    mov r3, r4
    {}
"""


def flat(switches: bool = False) -> str:
    """A program that writes one colour; switches: it shares its QPU with another one."""
    return (_SWITCH if switches else "") + f"    ldi r0, 0x{GREEN:08x}\n    nop\n" + _LAST.format("r0")


def textured(switches: bool = False, early: bool = False) -> str:
    """A program that writes a texel; early: it takes the scoreboard before it asks for it."""
    wait = "nop ; nop ; sbwait"
    parts = (wait if early else "", _SWITCH if switches else "", "")
    return _TEXTURED.format(*parts) + _LAST.format("r3")


class Jobs:
    """A frame of 640x360 RGB565, as the bm project measured them, drawn with a feed."""

    def __init__(self) -> None:
        self.board = Board(WIDTH, HEIGHT, memory=GuestMemory())

    def draw(self, body: bytes, **mode: int) -> Frame:
        """Bins and renders a body of records."""
        with FrameFeed(self.board.v3d) as feed:
            self.board.bin(body, format=BGR565, **mode)
            (frame,) = feed.take()
        assert not frame.lost
        return frame

    def triangles(self, program: str, corners: list[Point], *, threads: int = 1, uniforms: int = 0) -> bytes:
        """A draw of triangles whose vertices (x, y, varyings) are shaded already."""
        job, varyings = self.board.job, len(corners[0]) - 2
        vertices = b"".join(nv_vertex(x, y, 0.5, 1.0, *more) for x, y, *more in corners)
        single = int(threads == 1)
        record = struct.pack(
            "<BBBBIII", single, 12 + 4 * varyings, 0, varyings, job.program(program), uniforms,
            job.put(vertices),
        )  # fmt: skip
        shader = build(65, address=job.put(record))
        return viewport(job) + shader + build(33, mode=TRIANGLES, length=len(corners), first=0)

    def texture(self, raster: bool) -> int:
        """The address of uniforms that name a texture of 1024x512 texels, RGBA8888."""
        job = self.board.job
        kind: dict[str, Any] = {"type": RASTER} if raster else {}
        config = TextureConfig(base=job.room(1024 * 512 * 4), width=1024, height=512, **kind)
        return job.put(struct.pack("<4I", *(*config.parameters()[:2], 0, 0)))


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
    return jobs.draw(jobs.triangles(flat(), [(320, 40), (600, 320), (40, 320)]))


def _grid(count: int, varyings: int = 0) -> list[Point]:
    corners: list[Point] = []
    more = (0.5,) * varyings
    for number in range(count):
        x, y = number % 200 * 3.0 + 10, number // 200 * 3.0 + 10
        corners += [(x, y, *more), (x + 2.0, y, *more), (x, y + 2.0, *more)]
    return corners


@cache
def tiny(count: int = 20_000, varyings: int = 0) -> Frame:
    """Many triangles of a few pixels, none of which shares a vertex with another one."""
    jobs = Jobs()
    return jobs.draw(jobs.triangles(flat(), _grid(count, varyings)))


def _copies(words: int) -> str:
    """A vertex program that hands on so many words."""
    setup = f"    ldi vr_setup, 0x{words & 15:x}01a00\n    ldi vw_setup, 0x1a00\n" + 3 * "    nop\n"
    rest = "    mov vpm, vpm ; nop\n" * words
    return setup + rest + "    nop ; nop ; thrend\n    nop\n    nop\n"


@cache
def tiny_gl(count: int = 20_000) -> Frame:
    """The same triangles through vertex shaders, which copy what two arrays have."""
    jobs = Jobs()
    job = jobs.board.job
    corners = _grid(count)
    clip = struct.pack("<4f", 0, 0, 0, 1) * len(corners)
    screen = b"".join(nv_vertex(x, y, 0.5, 1.0) for x, y in corners)
    record = struct.pack("<HBBII", 1, 0, 0, job.program(flat()), 0)
    record += struct.pack("<HBBII", 0, 2, 12, job.program(_copies(3)), 0)
    record += struct.pack("<HBBII", 0, 3, 28, job.program(_copies(7)), 0)
    record += struct.pack("<IBBBB", job.put(clip), 15, 16, 0, 0)
    record += struct.pack("<IBBBB", job.put(screen), 11, 12, 0, 16)
    shader = build(64, address=job.put(record), attributes=2)
    length = len(corners)
    return jobs.draw(viewport(job) + shader + build(33, mode=TRIANGLES, length=length, first=0))


@cache
def fill(layers: int, program: str = "", threads: int = 1) -> Frame:
    """The whole frame is filled so many times."""
    jobs = Jobs()
    corners = layers * rectangle(0, 0, WIDTH, HEIGHT)
    return jobs.draw(jobs.triangles(program or flat(), corners, threads=threads))


@cache
def texture_fill(layers: int, *, raster: bool = False, threads: int = 1, early: bool = False) -> Frame:
    """The same with a texture of which each pixel shows a texel."""
    jobs = Jobs()
    corners = [(x, y, x / 1024, y / 512) for x, y in layers * rectangle(0, 0, WIDTH, HEIGHT)]
    program = textured(threads > 1, early)
    uniforms = jobs.texture(raster)
    return jobs.draw(jobs.triangles(program, corners, threads=threads, uniforms=uniforms))


@cache
def depth_kept(kept: bool) -> Frame:
    """The frame is filled; kept: each tile's depths are loaded before and stored after it."""
    jobs = Jobs()
    board, job = jobs.board, jobs.board.job
    body = jobs.triangles(flat(), rectangle(0, 0, WIDTH, HEIGHT))
    start, end, lists = job.binning(body)
    depths = job.room(WIDTH * HEIGHT * 4 + 65536)
    columns, rows = job.tiles
    data = build(114, colour=0, colour_high=0, z=0xFFFFFF)
    data += build(113, address=board.surface, width=WIDTH, height=HEIGHT, format=BGR565)
    data += build(115) + build(28)
    for tile in range(columns * rows):
        row, column = divmod(tile, columns)
        here = build(115, column=column, row=row)
        data += build(29, buffer=2, tiling=1, address=depths) if kept else b""
        data += here + build(17, address=lists + 32 * tile)
        data += build(28, buffer=2, tiling=1, address=depths, disable_colour_clear=1) + here if kept else b""
        data += build(25 if tile == columns * rows - 1 else 24)
    place = job.put(data)
    with FrameFeed(board.v3d) as feed:
        job.run(board.v3d, (start, end), (place, place + len(data)))
        (frame,) = feed.take()
    assert not frame.lost
    return frame
