"""Fragment pipelines on one core: pixels per second of whole tiles, small triangles per second.

One compressed list is drawn again and again into the same tile, so that only setup, coverage,
interpolation, the fragment program and the tile buffer are measured.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from tests.support.frame_work import FrameWork
from tests.support.programs import GOURAUD

from vc4lab.memory import GuestMemory
from vc4lab.qpu.text.assembler import assemble
from vc4lab.v3d.fragment.pipeline import fragment_pipeline
from vc4lab.v3d.pse.setup import raster
from vc4lab.v3d.state.frame_mode import Surface
from vc4lab.v3d.state.tile_context import STATUS_OK, TRIANGLE_SETUPS, DrawParams, FragmentKey, TileContext
from vc4lab.v3d.tiles.threads import TileThreads, triangle_setup
from vc4lab.v3d.tmu.texture_state import describe_texture

LIST_AT, UNIFORMS_AT, TEXTURE_AT = 0x1000, 0x8000, 0x400000
FULL_TILES, SMALL_TRIANGLES = 50, 1000

_END = "nop ; nop ; sbwait\n {z} \n mov tlbc, {colour} ; nop ; thrend\n nop\n nop ; nop ; sbdone\n"
FLAT = _END.format(z="nop", colour="unif")
TEXTURED = """
    mov r0, vary
    fmul r0, r0, ra15
    fadd r0, r0, r5 ; mov r1, vary
    nop
    fmul r1, r1, ra15
    fadd t0t, r1, r5
    nop
    mov t0s, r0
    nop ; nop ; ldtmu0
    mov r3, r4
"""
_PLAIN = _END.format(z="nop", colour="r3")
_TESTED = _END.format(z="mov tlbz, rb15", colour="r3")


def _vertices(points: list[tuple[float, ...]]) -> np.ndarray:
    rows = 3 + len(points[0]) - 4
    buffer = np.zeros(((len(points) + 15) // 16, rows, 16), np.uint32)
    for number, (x, y, *values) in enumerate(points):
        packed = (round(y * 16) & 0xFFFF) << 16 | round(x * 16) & 0xFFFF
        words = np.array(values, np.float32).view(np.uint32)
        buffer[number >> 4, :, number & 15] = [packed, *words]
    return buffer


def _best(work: Callable[[], Any], repeats: int = 20) -> float:
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


class _Case:
    """One shader with the right number of varyings, drawn into one tile."""

    def __init__(self, name: str, text: str, varyings: int, **key: Any) -> None:
        self.name = name
        self.varyings = varyings
        self.memory = GuestMemory()
        self.key = FragmentKey(program=tuple(assemble(text).words), n_varyings=varyings, **key)
        self.pipeline = fragment_pipeline(self.key)
        self.textures: list[Any] = []

    def seconds(self, points: list[tuple[float, ...]], triangles: list[tuple[int, ...]]) -> float:
        """Time of one list with these triangles."""
        cut = [(*point[:4], *point[4 : 4 + self.varyings]) for point in points]
        buffer = _vertices(cut)
        lists = b"".join(b"\x81" + struct.pack("<3H", *indices) for indices in triangles)
        self.memory.write(LIST_AT, b"\x30" + lists + b"\x80")
        params: Any = DrawParams()
        params.vertices, params.batch_pitch = buffer.ctypes.data, buffer.shape[1] * 64
        params.vertex_count, params.uniforms = len(points), UNIFORMS_AT
        params.clip_right = params.clip_top = 64
        params.facing, params.z_max = 3, 1.0
        for number, descriptor in enumerate(self.textures):
            params.textures[number] = descriptor.address
        context: Any = TileContext()
        context.memory = self.memory.base
        context.tile_width = context.tile_height = 64
        context.frame_width = context.frame_height = 64
        setup = triangle_setup(self.key.index_bits, raster(self.key.unknowns, False))
        context.setups[TRIANGLE_SETUPS.index((self.key.index_bits, False))] = setup.address
        draw = self.pipeline.draw
        if draw(context.address, params.address, LIST_AT) != STATUS_OK:
            raise RuntimeError("the pipeline gave up")
        return _best(lambda: draw(context.address, params.address, LIST_AT))


def _textured(name: str, nearest: bool) -> _Case:
    p0, p1 = TEXTURE_AT, 256 << 20 | 256 << 8 | nearest << 7 | nearest << 4
    kind, descriptor = describe_texture(p0, p1)
    case = _Case(name, TEXTURED + _PLAIN, 2, textures=(kind,))
    case.textures.append(descriptor)
    return case


def _cases() -> list[_Case]:
    return [
        _Case("flat", FLAT, 0),
        _Case("gouraud", GOURAUD + _PLAIN, 3),
        _Case("gouraud, depth test", GOURAUD + _TESTED, 3, depth_function=3, z_update=True),
        _textured("textured, nearest", True),
        _textured("textured, bilinear", False),
    ]


def _row(name: str, value: float, unit: str) -> dict[str, Any]:
    return {"name": f"fragment: {name}", "value": value, "unit": unit}


def run() -> list[dict[str, Any]]:
    """Rows for the benchmark table."""
    big = [
        (-64.0, -64.0, 0.5, 1.0, 0.0, 0.0, 0.1),
        (200.0, -64.0, 0.4, 1.0, 1.0, 0.0, 0.4),
        (-64.0, 200.0, 0.3, 1.0, 0.0, 1.0, 0.9),
    ]
    random = np.random.default_rng(0)
    small, triangles = [], []
    for number in range(SMALL_TRIANGLES):
        x, y = random.integers(0, 62, 2) + 0.1
        small += [(x + dx, y + dy, 0.5, 1.0, 0.1, 0.2, 0.3) for dx, dy in ((0, 0), (2, 0), (0, 2))]
        triangles.append((3 * number, 3 * number + 1, 3 * number + 2))
    rows = []
    for case in _cases():
        seconds = case.seconds(big, [(0, 1, 2)] * FULL_TILES)
        rate = FULL_TILES * 4096 / seconds / 1e6
        rows.append(_row(f"{case.name}, full tiles", rate, "Mpixel/s"))
        seconds = case.seconds(small, triangles)
        rows.append(_row(f"{case.name}, 2 pixel triangles", len(triangles) / seconds / 1e6, "M/s"))
    rows += [_store(name, *surface) for name, *surface in _SURFACES]
    return rows


_SURFACES = [("raster", 0, 0), ("T format", 1, 0), ("raster 565", 0, 2)]


def _store(name: str, tiling: int, format_: int) -> dict[str, Any]:
    memory = GuestMemory()
    work = FrameWork(memory, 1024, 1024)
    for tile in range(256):
        work.begin_chain()
        work.tile(tile & 15, tile >> 4)
        work.clear(0x11223344, 0)
        work.store(Surface(0x1000000, 1024, 1024, tiling, format_))
    tile_threads = TileThreads(1)
    seconds = _best(lambda: tile_threads.run(work.native()))
    return _row(f"clear and store, {name}", 1024 * 1024 / seconds / 1e6, "Mpixel/s")
