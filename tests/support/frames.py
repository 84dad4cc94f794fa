"""Small frames through the registers: shader states, lists by hand, the picture as an array."""

import struct

import numpy as np
from tests.support.jobs import CT1CA, CT1EA, Job, nv_vertex
from tests.v3d.fragment.scene import coverage

from vc4lab.diagnostics import Reporter
from vc4lab.memory import GuestMemory
from vc4lab.records.control import build
from vc4lab.v3d.core import V3D

RED, GREEN, BLUE, BACKGROUND = 0xFF0000FF, 0xFF00FF00, 0xFFFF0000, 0xFF402010


def solid(word: int) -> str:
    """A program that writes one colour."""
    return f"""
    ldi r0, 0x{word:08x}
    sbwait
    mov tlbc, r0 ; nop ; thrend
    nop
    nop ; nop ; sbdone
"""


class Frame:
    """One V3D with one job; the picture as rows of RGBA words."""

    def __init__(
        self,
        width: int = 128,
        height: int = 128,
        tile: tuple[int, int] = (64, 64),
        memory: GuestMemory | None = None,
        **options: object,
    ) -> None:
        self.reporter = Reporter()
        self.job = Job(memory or GuestMemory(), width=width, height=height, tile=tile)
        self.v3d = V3D(self.job.memory, self.reporter, **options)  # type: ignore[arg-type]
        self.surface = self.job.room(width * height * 4 + 4096)
        self.first = 0
        """Where the list begins that was run last."""

    def vg_shader(self, program: str, inline: bool = False, uniforms: int = 0) -> bytes:
        """A record 66 and its shader record, or a record 67."""
        code = self.job.program(program)
        if inline:
            return build(67, threading=1, code=code, uniforms=uniforms)
        data = struct.pack("<BBBBII", 1, 0, 0, 0, code, uniforms)
        return build(66, address=self.job.put(data))

    def nv_shader(self, program: str, vertices: bytes, varyings: int = 0, uniforms: int = 0) -> bytes:
        """A record 65 and its shader record."""
        stride = 12 + 4 * varyings
        code = self.job.program(program)
        place = self.job.put(vertices)
        data = struct.pack("<BBBBIII", 1, stride, 0, varyings, code, uniforms, place)
        return build(65, address=self.job.put(data))

    def bin(self, body: bytes, **mode: int) -> np.ndarray:
        """Bins and renders ``body``."""
        start, end, lists = self.job.binning(body)
        rendering = self.job.rendering(lists, self.surface, clear=BACKGROUND, **mode)
        self.job.run(self.v3d, (start, end), rendering)
        return self.pixels()

    def render(self, body: bytes, **mode: int) -> np.ndarray:
        """Renders ``body``, which stands as it is in front of every tile's store."""
        job = self.job
        columns, rows = job.tiles
        data = build(114, colour=BACKGROUND, colour_high=BACKGROUND, z=0xFFFFFF)
        options = {"format": 1} | mode
        data += build(113, address=self.surface, width=job.width, height=job.height, **options)
        data += build(115) + build(28)
        for row in range(rows):
            for column in range(columns):
                last = (column, row) == (columns - 1, rows - 1)
                data += build(115, column=column, row=row) + body + build(25 if last else 24)
        self.run(data)
        return self.pixels()

    def run(self, data: bytes) -> None:
        """Runs a rendering list."""
        self.first = start = self.job.put(data)
        self.v3d.write(CT1CA, start)
        self.v3d.write(CT1EA, start + len(data))

    def pixels(self) -> np.ndarray:
        """The frame's pixels, shape (height, width) of u32."""
        job = self.job
        data = job.memory.array(self.surface, job.width * job.height, "<u4")
        return np.array(data).reshape(job.height, job.width)


def inside(frame: Frame, *triangles: tuple[tuple[float, float], ...]) -> np.ndarray:
    """Which pixels belong to one of the triangles (corners in pixels), by the definition."""
    result = np.zeros((frame.job.height, frame.job.width), bool)
    for corners in triangles:
        points = [(round(x * 16), round(y * 16)) for x, y in corners]
        result |= coverage(points, frame.job.width, frame.job.height)
    return result


def triangle(*corners: tuple[float, float]) -> bytes:
    """Vertices of an NV shader without varyings."""
    return b"".join(nv_vertex(x, y, 0.5, 1.0) for x, y in corners)


CORNERS = ((64, 8), (8, 120), (120, 120))
ARRAY = build(33, mode=4, length=3, first=0)
"""A record that draws one triangle."""
