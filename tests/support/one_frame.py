"""One V3D with one job, and what simple frames are made of."""

from __future__ import annotations

import struct

import numpy as np
from tests.support.jobs import Job, nv_vertex

from vc4lab.diagnostics import Reporter
from vc4lab.records.control import build
from vc4lab.v3d.core import V3D

RED, BACKGROUND = 0xFF0000FF, 0xFF402010


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

    def __init__(self, width: int = 128, height: int = 128, **options: object) -> None:
        self.reporter = Reporter()
        self.job = Job(width=width, height=height)
        self.v3d = V3D(self.job.memory, self.reporter, **options)  # type: ignore[arg-type]
        self.surface = self.job.room(width * height * 4 + 4096)

    def nv_shader(self, program: str, vertices: bytes, varyings: int) -> bytes:
        """A record 65 and its shader record."""
        stride = 12 + 4 * varyings
        code = self.job.program(program)
        data = struct.pack("<BBBBIII", 1, stride, 0, varyings, code, 0, self.job.put(vertices))
        return build(65, address=self.job.put(data))

    def draw(self, body: bytes, **mode: int) -> np.ndarray:
        """Bins and renders ``body``; the frame's pixels, shape (height, width) of u32."""
        start, end, lists = self.job.binning(body)
        rendering = self.job.rendering(lists, self.surface, clear=BACKGROUND, **mode)
        self.job.run(self.v3d, (start, end), rendering)
        return self.pixels()

    def pixels(self) -> np.ndarray:
        job = self.job
        data = job.memory.array(self.surface, job.width * job.height, "<u4")
        return np.array(data).reshape(job.height, job.width)


def triangle(*corners: tuple[float, float]) -> bytes:
    return b"".join(nv_vertex(x, y, 0.5, 1.0) for x, y in corners)


CORNERS = ((64, 8), (8, 120), (120, 120))
ARRAY = build(33, mode=4, length=3, first=0)


def inside(frame: Frame, corners: tuple[tuple[float, float], ...] = CORNERS) -> np.ndarray:
    """Which pixel centres lie in the triangle, by brute force."""
    y, x = np.mgrid[0 : frame.job.height, 0 : frame.job.width] + 0.5
    signs = []
    for (x0, y0), (x1, y1) in zip(corners, corners[1:] + corners[:1], strict=True):
        signs.append((x1 - x0) * (y - y0) - (y1 - y0) * (x - x0))
    return (np.stack(signs) > 0).all(0) | (np.stack(signs) < 0).all(0)
