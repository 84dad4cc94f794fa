"""Helpers of the fragment tests: a frame with its vertices, lists and draws; reference masks."""

import struct
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from tests.support.frame_work import FrameWork

from vc4lab.memory import GuestMemory
from vc4lab.qpu.text.assembler import assemble
from vc4lab.v3d.fragment.pipeline import fragment_pipeline
from vc4lab.v3d.reference.draw import ReferenceDraw, register
from vc4lab.v3d.state.frame_mode import COLOUR, MASK, PART_COLOUR, PART_ZS, SINGLE, ZS, Surface, TileLayout
from vc4lab.v3d.state.tile_context import DrawParams, FragmentKey
from vc4lab.v3d.tiles.job import Draw
from vc4lab.v3d.tiles.threads import RenderResult, TileThreads
from vc4lab.v3d.unknowns import DEFAULT_UNKNOWNS, Unknowns

COLOUR_DUMP, ZS_DUMP, MASK_AT = 0x1000000, 0x1800000, 0xA00000
COLOUR_AT, ZS_AT, LISTS_AT, UNIFORMS_AT = 0x100000, 0x800000, 0x10000, 0x8000

FLAT = """
    nop ; nop ; sbwait
    mov tlbc, unif ; nop
    nop ; nop ; thrend
    nop ; nop
    nop ; nop ; sbdone
"""
"""Colour is uniform 0."""


def words(text: str) -> tuple[int, ...]:
    """Words of an assembled program."""
    return tuple(assemble(text).words)


def vertex(x: float, y: float, z: float = 0.5, w: float = 1.0, *varyings: float) -> list[int]:
    """A shaded vertex in PSE form as words; x and y in pixels, `w` is 1/Wc."""
    xs, ys = round(x * 16) & 0xFFFF, round(y * 16) & 0xFFFF
    return [ys << 16 | xs, *(int(np.float32(v).view(np.uint32)) for v in (z, w, *varyings))]


def vertex_buffer(vertices: list[list[int]]) -> np.ndarray:
    """Batches of 16 vertices, word by word side by side."""
    rows = len(vertices[0])
    buffer = np.zeros(((len(vertices) + 15) // 16, rows, 16), np.uint32)
    for i, shaded in enumerate(vertices):
        buffer[i >> 4, :, i & 15] = shaded
    return buffer


@dataclass
class Scene:
    """One frame: draws are added in order, `render` gives the result."""

    width: int = 64
    height: int = 64
    memory: GuestMemory = field(default_factory=GuestMemory)
    draws: list[tuple[FragmentKey, Any, int]] = field(default_factory=list)
    keep: list[Any] = field(default_factory=list)
    layout: TileLayout = SINGLE
    clear_colour: int = 0
    clear_zs: int = 0xFFFFFF00
    clear_mask: int | None = None
    tile: tuple[int, int] = (64, 64)
    next_list: int = LISTS_AT
    next_uniform: int = UNIFORMS_AT
    result: RenderResult | None = None
    counters: dict[str, int] = field(default_factory=dict)
    recorded: dict[str, bytes] = field(default_factory=dict)
    lost: int = 0

    def add(
        self,
        key: FragmentKey,
        vertices: list[list[int]],
        indices: list[tuple[int, ...]] | None = None,
        uniforms: tuple[int, ...] = (),
        **params: Any,
    ) -> None:
        """A draw of `indices` (default: every vertex once, in order)."""
        count = {"points": 1, "lines": 2, "triangles": 3}[key.primitive]
        if indices is None:
            numbers = range(0, len(vertices), count)
            indices = [tuple(range(n, n + count)) for n in numbers]
        data = b"\x30"
        for primitive in indices:
            data += b"\x81" + struct.pack(f"<{count}H", *primitive)
        self.add_list(key, vertices, data + b"\x80", uniforms, **params)

    def add_list(
        self,
        key: FragmentKey,
        vertices: list[list[int]],
        data: bytes,
        uniforms: tuple[int, ...] = (),
        **params: Any,
    ) -> None:
        """A draw of an encoded list."""
        buffer = vertex_buffer(vertices)
        p: Any = DrawParams()
        p.vertices, p.batch_pitch = buffer.ctypes.data, buffer.shape[1] * 64
        p.vertex_count = len(vertices)
        p.clip_right, p.clip_top = self.width, self.height
        p.facing, p.z_max, p.point_size, p.line_width = 3, 1.0, 1.0, 1.0
        p.uniforms = self.next_uniform
        for word in uniforms:
            self.memory.set_u32(self.next_uniform, word)
            self.next_uniform += 4
        for name, value in params.items():
            if name == "textures":
                for number, descriptor in enumerate(value):
                    p.textures[number] = descriptor.address
                    self.keep.append(descriptor)
            else:
                setattr(p, name, value)
        self.memory.write(self.next_list, data)
        self.draws.append((key, p, self.next_list))
        self.next_list += len(data)
        self.keep.append(buffer)

    def render(
        self,
        engine: str = "fast",
        threads: int = 1,
        target: Any = None,
        store: Surface | None = None,
        unknowns: Unknowns | None = None,
        record: bool = False,
        works: bool = False,
    ) -> np.ndarray:
        """Renders all draws; the colours as an array (height, width).

        `works`: pieces of work are recorded, in `recorded`.

        Multisample frames are dumped sample by sample, too: see `samples`.
        """
        pitch = (self.width + 3) // 4 * 4
        store = store or Surface(COLOUR_AT, self.width, self.height)
        columns, rows = self.tile
        work = FrameWork(
            self.memory, self.width, self.height, tile_width=columns, tile_height=rows, layout=self.layout
        )
        for key, params, _ in self.draws:
            key = replace(
                key,
                engine=engine,
                unknowns=unknowns or key.unknowns,
                multisample=self.layout.multisample,
                wide_colour=self.layout.wide,
                counting=key.counting or works,
                recording=works,
            )
            pipeline = fragment_pipeline(key, target)
            if engine == "interpreter":
                reference = ReferenceDraw(key, self.memory)
                params.callback_id = register(reference)
                self.keep.append(reference)
            exact = replace(key, engine="exact")
            work.draws.append(
                Draw(
                    pipeline.address,
                    params.address,
                    lambda _share, exact=exact: fragment_pipeline(exact, target).address,
                    pipeline,
                )
            )
        work.set_segments([(n, at) for n, (_, _, at) in enumerate(self.draws)])
        depth = Surface(ZS_AT, self.width, self.height, buffer=ZS)
        for number, (row, column) in enumerate(np.ndindex(self.grid)):
            work.begin_chain()
            work.tile(column, row)
            colours = (self.clear_colour & 0xFFFFFFFF, self.clear_colour >> 32)
            work.clear(colours[0], self.clear_zs, colours[1], self.clear_mask)
            work.draw(0, len(self.draws))
            work.store(depth)
            work.store(store)
            if self.clear_mask is not None:
                work.store(Surface(MASK_AT, self.width, self.height, buffer=MASK))
            if self.layout.multisample:
                work.store_full(COLOUR_DUMP + 16384 * number, PART_COLOUR)
                work.store_full(ZS_DUMP + 16384 * number, PART_ZS)
        settings = unknowns or (self.draws[0][0].unknowns if self.draws else DEFAULT_UNKNOWNS)
        tile_threads = TileThreads(threads, settings, target=target)
        self.frame = work.native()
        self.result = tile_threads.run(self.frame, record=record, works=works)
        if works:
            self.recorded, self.lost = tile_threads.recorded(self.frame)
        self.counters = tile_threads.counters()
        tile_threads.close()
        if store.buffer != COLOUR or store.tiling or store.format or store.wide:
            return np.zeros(0)
        return self._surface(store.address, pitch)

    @property
    def grid(self) -> tuple[int, int]:
        """Rows and columns of tiles."""
        return -(-self.height // self.tile[1]), -(-self.width // self.tile[0])

    def samples(self, address: int = 0) -> np.ndarray:
        """Every sample of the last `render`: an array (height, width, 4), colours or Z/stencil."""
        rows, columns = self.grid
        address = address or COLOUR_DUMP
        result = np.zeros((rows * 32, columns * 32, 4), np.uint32)
        y, x, s = np.mgrid[0:32, 0:32, 0:4]
        offset = (x & ~1) * 32 + (y & ~1) * 512 + s * 16 + (y & 1) * 8 + (x & 1) * 4
        for number, (row, column) in enumerate(np.ndindex(rows, columns)):
            words = self.memory.array(address + 16384 * number, 4096, "<u4")
            part = result[32 * row : 32 * row + 32, 32 * column : 32 * column + 32]
            part[...] = words[offset // 4]
        return result[: self.height, : self.width]

    def depth(self) -> np.ndarray:
        """The Z/stencil words of the last `render`."""
        return self._surface(ZS_AT, (self.width + 3) // 4 * 4)

    def _surface(self, address: int, pitch: int) -> np.ndarray:
        image = self.memory.array(address, pitch * self.height, "<u4")
        return image.reshape(self.height, pitch)[:, : self.width].copy()


def coverage(points: list[tuple[int, int]], width: int, height: int) -> np.ndarray:
    """Pixels of a triangle by the definition: exact edges at pixel centres, top-left rule."""
    (x0, y0), (x1, y1), (x2, y2) = points
    area = (x1 - x0) * (y2 - y0) - (x2 - x0) * (y1 - y0)
    if area < 0:
        points = [points[0], points[2], points[1]]
    inside = np.full((height, width), area != 0)
    px = np.arange(width, dtype=np.int64)[None, :] * 16 + 8
    py = np.arange(height, dtype=np.int64)[:, None] * 16 + 8
    for (ax, ay), (bx, by) in zip(points, points[1:] + points[:1], strict=True):
        dx, dy = bx - ax, by - ay
        edge = dx * (py - ay) - dy * (px - ax)
        inclusive = dy < 0 or (dy == 0 and dx > 0)
        inside &= (edge > 0) | ((edge == 0) & inclusive)
    return inside
