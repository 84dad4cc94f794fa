"""Vertex shading, binning and reading of tile lists, on one core."""

from __future__ import annotations

import ctypes
import struct
import time
from collections.abc import Callable
from typing import Any

from tests.support.binning import BinnerByHand, Coordinates, IndexSource

from vc4lab.diagnostics import Reporter
from vc4lab.memory import GuestMemory
from vc4lab.qpu.text.assembler import assemble
from vc4lab.records import control
from vc4lab.records.declarations import TileBinningMode
from vc4lab.v3d.tile_lists.scan_context import NO_END
from vc4lab.v3d.tile_lists.scanner import ListScanner
from vc4lab.v3d.vertex.context import buffer_bytes
from vc4lab.v3d.vertex.pipeline import VertexContext, VertexKey, vertex_pipeline

SIDE = 250
"""The mesh is a grid of SIDE x SIDE vertices."""
LISTS, ARRAYS, INDICES, UNIFORMS = 0x0100_0000, 0x0200_0000, 0x0300_0000, 0x0400_0000


def transform_shader(varyings: int | None = None) -> str:
    """Position (x, y, z) through a 4x4 matrix and a perspective division: a coordinate shader, or a
    vertex shader that hands up to 3 of the coordinates on as varyings.
    """
    lines = ["ldi vr_setup, 0x301a00", "ldi vw_setup, 0x1a00"]
    lines += [f"mov ra{k}, vpm ; nop" for k in range(3)] + ["nop ; nop"]
    for row in range(4):
        lines += ["mov r0, unif ; nop", "fmul r0, r0, ra0"]
        for k in (1, 2):
            lines += [f"fmul r1, ra{k}, unif", "fadd r0, r0, r1 ; nop"]
        lines += [f"fadd rb{row}, r0, unif ; nop", "nop ; nop"]
        lines += [f"mov vpm, rb{row} ; nop"] if varyings is None else []
    lines += ["mov recip, rb3 ; nop", "mov r2, unif ; nop", "nop ; nop"]
    lines += ["mov r3, r4 ; nop", "fmul r0, r2, rb0", "fmul r0, r0, r3"]
    lines += ["ftoi ra4.16a, r0 ; nop", "fmul r0, r2, rb1", "fmul r0, r0, r3"]
    lines += ["ftoi ra4.16b, r0 ; nop", "fmul r1, rb2, r3", "mov vpm, ra4 ; nop"]
    lines += ["mov vpm, r1 ; nop", "mov vpm, r3 ; nop"]
    lines += [f"mov vpm, ra{k} ; nop" for k in range(varyings or 0)]
    lines += ["nop ; nop ; thrend", "nop", "nop"]
    return "\n".join(lines)


def _best(work: Callable[[], Any], repeats: int = 7) -> float:
    """Seconds of the fastest of several runs."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def _grid(memory: GuestMemory) -> IndexSource:
    """Triangle list over the grid, two triangles per cell, row by row."""
    indices = []
    for y in range(SIDE - 1):
        for x in range(SIDE - 1):
            a = y * SIDE + x
            indices += [a, a + 1, a + SIDE, a + SIDE, a + 1, a + SIDE + 1]
    memory.write(INDICES, struct.pack(f"<{len(indices)}H", *indices))
    return IndexSource(len(indices), address=INDICES)


def _mesh(pixels: float) -> tuple[Coordinates, Any]:
    """Coordinates of the grid with cells of `pixels`, wrapping inside 800x600."""
    rows, count = 8, SIDE * SIDE
    pitch = rows * 64
    data = bytearray(buffer_bytes(rows, count - 1) + 64)
    for k in range(count):
        x = int((k % SIDE) * pixels * 16) % (780 * 16) + 160
        y = int((k // SIDE) * pixels * 16) % (580 * 16) + 160
        base = (k >> 4) * pitch + (k & 15) * 4
        struct.pack_into("<I", data, base + 4 * 64, x | y << 16)
        struct.pack_into("<f", data, base + 3 * 64, 1.0)
    buffer = (ctypes.c_char * len(data)).from_buffer(data)
    return Coordinates(ctypes.addressof(buffer), pitch, 0, count - 1, True, keep=buffer), buffer


def _binner(memory: GuestMemory) -> BinnerByHand:
    binner = BinnerByHand(memory, Reporter())
    mode = control.build(112, address=LISTS, memory_size=0xF00000, tiles_x=13, tiles_y=10)
    binner.configure(TileBinningMode(int.from_bytes(mode[1:], "little")))
    binner.start()
    binner.set_state(b"\x41\0\x10\0\0")
    return binner


def _shading(memory: GuestMemory) -> dict[str, Any]:
    """A coordinate shader over all vertices."""
    words = tuple(assemble(transform_shader()).words)
    count = 60_000
    memory.write(ARRAYS, struct.pack("<3f", 0.25, -0.5, 0.75) * count)
    matrix = [1, 0.1, 0.2, 0, 0, 1, 0.1, 0, 0, 0.1, 1, 0, 0.1, 0, 0.1, 2, 4096]
    memory.write(UNIFORMS, struct.pack("<18f", *matrix, 4096))
    pipeline = vertex_pipeline(VertexKey(words, ((0, 12, 0),), 12, 7))
    buffer = (ctypes.c_char * (buffer_bytes(7, count) + 64))()
    context = VertexContext(memory=memory.base, uniforms=UNIFORMS, last=count - 1)
    context.output = (ctypes.addressof(buffer) + 63) & ~63
    context.bases[0], context.strides[0] = ARRAYS, 12
    seconds = _best(lambda: pipeline.shade(context))
    assert pipeline.deopts == 0
    return {
        "name": f"coordinate shader, {len(words)} instructions",
        "value": count / seconds / 1e6,
        "unit": "M vertices/s",
    }


def run() -> list[dict[str, Any]]:
    """Rows for the benchmark table."""
    memory = GuestMemory()
    rows = [_shading(memory)]
    source = _grid(memory)
    triangles = source.length // 3
    for pixels in (2.0, 12.0):
        coordinates, _ = _mesh(pixels)
        binners = [_binner(memory) for _ in range(7)]
        queue = iter(binners)
        seconds = _best(lambda: next(queue).draw(4, source, coordinates))  # noqa: B023
        rows.append(
            {
                "name": f"binning, grid of {pixels:g}-pixel cells",
                "value": triangles / seconds / 1e6,
                "unit": "M triangles/s",
            }
        )
        binners[-1].flush()
        starts = (ctypes.c_int32 * 130)(*(LISTS + 32 * k for k in range(130)))
        ends = (ctypes.c_int32 * 130)(*[NO_END] * 130)
        where = ctypes.addressof(starts), ctypes.addressof(ends), 130
        scanner = ListScanner(memory)
        found = scanner.scan(*where)
        seconds = _best(lambda: scanner.scan(*where))  # noqa: B023
        rows.append(
            {
                "name": f"tile list scan, {found.entries} entries",
                "value": seconds / found.entries * 1e9,
                "unit": "ns/entry",
            }
        )
    return rows
