"""Terrain: 400 000 vertices a frame in 50 jobs, through the registers, and what Python costs in it.

Each job loads the frame, bins and draws one patch of a height field with a GL shader, and stores
it: the way a driver submits that runs out of space for commands. Python's share is the CPU time
outside of native calls.
"""

from __future__ import annotations

import math
import struct
import time
from typing import Any

from tests.support.jobs import CT0CA, CT0EA, CT1CA, CT1EA, Job, viewport

from benchmarks._python_time import PythonTime
from benchmarks.geometry import transform_shader
from vc4lab.diagnostics import Reporter
from vc4lab.records.control import build
from vc4lab.v3d.core import V3D

JOBS = 50
COLUMNS, ROWS = 100, 80
"""Vertices of a patch."""
WIDTH, HEIGHT = 640, 480
FRAMES = 25

COLOURS = """
    nop ; fmul r0, vary, ra15
    fadd r0, r0, r5 ; nop
    nop ; fmul r1, vary, ra15
    fadd r1, r1, r5 ; mov r3.8a, r0
    nop ; fmul r2, vary, ra15
    fadd r2, r2, r5 ; mov r3.8b, r1
    nop ; mov r3.8c, r2
    nop ; mov r3.8d, 1.0
    sbwait
    mov tlbc, r3 ; nop ; thrend
    nop
    nop ; nop ; sbdone
"""


def _indices() -> bytes:
    """Two triangles for each cell of a patch."""
    found = []
    for y in range(ROWS - 1):
        for x in range(COLUMNS - 1):
            a = y * COLUMNS + x
            found += [a, a + 1, a + COLUMNS, a + COLUMNS, a + 1, a + COLUMNS + 1]
    return struct.pack(f"<{len(found)}H", *found)


def _patch(number: int) -> bytes:
    """Positions of a patch: a strip of hills from left to right, farther up with each number."""
    data = bytearray()
    for y in range(ROWS):
        v = (number + y / (ROWS - 1)) / JOBS * 1.8 - 0.9
        for x in range(COLUMNS):
            u = x / (COLUMNS - 1) * 1.8 - 0.9
            data += struct.pack("<3f", u, v + 0.02 * math.sin(9 * u + 40 * v), 0.5 + 0.4 * v)
    return bytes(data)


class Terrain:
    """A V3D and the lists of all jobs of a frame."""

    def __init__(self) -> None:
        self.job = job = Job(width=WIDTH, height=HEIGHT)
        self.v3d = V3D(job.memory, Reporter(), threads=1)
        self.surface = job.room(WIDTH * HEIGHT * 4)
        programs = (
            job.program(COLOURS),
            job.program(transform_shader(varyings=3)),
            job.program(transform_shader()),
        )
        indices = job.put(_indices())
        self.lists = [self._job(number, programs, indices) for number in range(JOBS)]

    def _job(self, number: int, programs: tuple[int, int, int], indices: int) -> tuple[int, int, int, int]:
        """CT0CA, CT0EA, CT1CA, CT1EA of a patch."""
        job = self.job
        matrix = [1, 0, 0, 0, 0, 1, 0.05, 0, 0, 0, 1, 0, 0, 0, 0, 1]
        uniforms = job.put(struct.pack("<18f", *matrix, 8 * WIDTH, 8 * HEIGHT))
        record = struct.pack("<HBBII", 5, 0, 3, programs[0], 0)
        for program in programs[1:]:
            record += struct.pack("<HBBII", 0, 1, 12, program, uniforms)
        record += struct.pack("<IBBBB", job.put(_patch(number)), 11, 12, 0, 0)
        body = viewport(job) + build(103, x=8 * WIDTH, y=8 * HEIGHT)
        body += build(105, x=8.0 * WIDTH, y=8.0 * HEIGHT) + build(106, scale=0.5, offset=0.5)
        body += build(64, address=job.put(record), attributes=1)
        length = 6 * (COLUMNS - 1) * (ROWS - 1)
        top = COLUMNS * ROWS - 1
        body += build(32, mode=4, index_type=1, length=length, address=indices, maximum_index=top)
        start, end, lists = job.binning(body, flush=build(7) + build(4))
        columns, rows = job.tiles
        data = build(114, colour=0xFF604020, colour_high=0xFF604020, z=0xFFFFFF)
        data += build(113, address=self.surface, width=WIDTH, height=HEIGHT, format=1)
        data += build(115) + build(28) + build(8)
        for tile in range(columns * rows):
            if number:  # the patches before
                data += build(29, buffer=1, address=self.surface)
            data += build(115, column=tile % columns, row=tile // columns)
            data += build(17, address=lists + 32 * tile)
            data += build(25 if tile == columns * rows - 1 else 24)
        render = job.put(data)
        return start, end, render, render + len(data)

    def submit(self, number: int) -> None:
        """One job of the frame."""
        for register, value in zip((CT0CA, CT0EA, CT1CA, CT1EA), self.lists[number], strict=True):
            self.v3d.write(register, value)

    def frame(self) -> None:
        """All jobs."""
        for number in range(JOBS):
            self.submit(number)


def frame_time(terrain: Terrain) -> float:
    """Milliseconds of a frame on one core; the best of each job counts."""
    best = [math.inf] * JOBS
    for _ in range(FRAMES):
        for number in range(JOBS):
            start = time.perf_counter()
            terrain.submit(number)
            best[number] = min(best[number], time.perf_counter() - start)
    return 1000 * sum(best)


def python_time() -> float:
    """Of those Python's, of a V3D that is watched."""
    best = [math.inf] * JOBS
    with PythonTime().watching() as watch:
        terrain = Terrain()
        for _ in range(3):
            terrain.frame()
        for _ in range(FRAMES):
            for number in range(JOBS):
                start = watch.nanoseconds()[0]
                terrain.submit(number)
                best[number] = min(best[number], watch.nanoseconds()[0] - start)
    return sum(best) / 1e6


def run() -> list[dict[str, Any]]:
    """Rows for the benchmark table."""
    terrain = Terrain()
    for _ in range(3):
        terrain.frame()
    whole = frame_time(terrain)
    python = python_time()
    name = f"terrain, {JOBS * COLUMNS * ROWS // 1000} k vertices in {JOBS} jobs"
    return [
        {"name": f"{name}, one core", "value": whole, "unit": "ms/frame"},
        {"name": f"{name}, Python's CPU time when watched", "value": 100 * python / whole, "unit": "%"},
    ]
