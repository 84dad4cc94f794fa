"""Hints about lists: orders of records that only fail on a board, and lists that run, but hardly as meant.

Nothing here changes what is drawn. Each check looks at what Python holds anyway, once per mode
record, frame or draw, so that lists full of records cost nothing. Source: hardware reference 3.10.

Of a list that starts only the first records of the first few lists are read, so that long lists and many
frames cost nothing. Source: hardware reference 3.3, 3.10.
"""

from __future__ import annotations

import struct
from collections import deque
from typing import TYPE_CHECKING

from vc4lab.memory import MEMORY_MASK, MEMORY_SIZE
from vc4lab.records.codes import ListPrimitive
from vc4lab.records.control import RECORD_SIZES, ids_of, records_of
from vc4lab.records.declarations import ClipperXyScaling
from vc4lab.records.payload import Compressed, Flow, Primitives, ShaderState
from vc4lab.records.shader import CLIP_HEADER_WORDS, PSE_WORDS
from vc4lab.records.states import (
    ClipWindow,
    ConfigurationBits,
    PrimitiveListFormat,
    VgInlineShader,
    ViewportOffset,
)
from vc4lab.v3d.checks.addresses import AddressCheck
from vc4lab.v3d.events import Use
from vc4lab.v3d.state.render_state import NO_CLIP_LIMIT, clip_box

if TYPE_CHECKING:
    from collections.abc import Mapping

    from vc4lab.diagnostics import Reporter
    from vc4lab.listeners import Listeners
    from vc4lab.memory import GuestMemory
    from vc4lab.records.declarations import TileBinningMode, TileRenderingMode
    from vc4lab.records.shader import NvShaderRecord
    from vc4lab.records.states import RenderState
    from vc4lab.v3d.events import MemoryUse
    from vc4lab.v3d.state.frame_mode import FrameMode
    from vc4lab.v3d.state.render_state import ShaderRecord

LIST_ALIGNMENT, RECORD_ALIGNMENT = 32, 16
"""Alignment of tile lists; of shader records, tile state, surfaces, NV vertices with a clip header."""

TILE_STATE_BYTES = 48

_FACES = ConfigurationBits.enable_forward.mask | ConfigurationBits.enable_reverse.mask

REMEMBERED_GRIDS = 8
"""Tile grids that were binned last; a frame should fit one of them."""

LOOKED_AT = 3
"""Vertices of a draw whose 1/Wc is looked at, the word `ONE_OVER_W` of what primitive setup gets."""
ONE_OVER_W = 2

MAX_MODES = 256
"""Mode records without findings that are remembered."""

RESERVED_CODE = 3
"""A code that format, decimation and tiling of record 113 do not have."""


class Lint:
    """Remembers what both threads did, as far as hints need it."""

    def __init__(
        self, reporter: Reporter, ram_bytes: int = MEMORY_SIZE, used: Listeners[MemoryUse] | None = None
    ) -> None:
        self.reporter = reporter
        self.addresses = AddressCheck(reporter, ram_bytes, used)
        self.grids: deque[tuple[int, int]] = deque(maxlen=REMEMBERED_GRIDS)
        self._quiet: set[tuple[int, int]] = set()

    def forget(self) -> None:
        """Forget what was seen at addresses; another program has other things there."""
        self.addresses.forget()
        self._quiet.clear()

    def binning_mode(self, address: int, mode: TileBinningMode) -> None:
        """Record 112."""
        self._aligned(address, "tile allocation memory", int(mode.address), LIST_ALIGNMENT)
        self._aligned(address, "the tile state array", int(mode.state_address), RECORD_ALIGNMENT)
        tiles = int(mode.tiles_x * mode.tiles_y)
        uses = self.addresses.uses
        uses(Use.TILE_MEMORY, int(mode.address), int(mode.memory_size), address)
        uses(Use.TILE_STATE, int(mode.state_address), TILE_STATE_BYTES * tiles, address)

    def rendering_mode(self, address: int, mode: TileRenderingMode) -> bool:
        """Checks record 113; whether there is no finding, so that repetitions need no check."""
        if (address, mode.value) in self._quiet and not self.addresses.used.subscriptions:
            return True
        codes = [int(getattr(mode, name)) for name in ("format", "decimate", "tiling")]
        quiet = RESERVED_CODE not in codes and not (mode.address % RECORD_ALIGNMENT or mode.coverage)
        if quiet:
            if len(self._quiet) >= MAX_MODES:
                self._quiet.clear()
            self._quiet.add((address, mode.value))
        self._aligned(address, "the frame buffer", int(mode.address), RECORD_ALIGNMENT)
        self.addresses.uses(Use.SURFACE, int(mode.address), 4, address)
        for name in ("format", "decimate", "tiling"):
            if int(getattr(mode, name)) == RESERVED_CODE:
                self.reporter.report(
                    "CLE-007", f"{name} {RESERVED_CODE} of the rendering mode (113)", address=address
                )
        if mode.coverage:
            self.reporter.report("CLE-031", "coverage mode (record 113 bit 73) is ignored", address=address)
        return quiet and not self.addresses.used.subscriptions

    def frame(self, mode: FrameMode, tile: tuple[int, int], primitives: int) -> None:
        """A frame is about to be drawn; ``tile``: its pixels, ``primitives``: in all tiles."""
        if not mode.width or not mode.height:
            text = "tiles are stored, but the frame has no size: record 113 is missing, or has 0"
            self.reporter.report("CLE-030", text)
        elif primitives and self.grids:
            columns, rows = -(-mode.width // tile[0]), -(-mode.height // tile[1])
            for x, y in self.grids:
                if columns == x and rows <= y:
                    return
            x, y = self.grids[-1]
            self.reporter.report(
                "CLE-024", f"the frame has {columns} x {rows} tiles, but {x} x {y} were binned"
            )

    def clip_window(self, state: RenderState, empty_windows: int, address: int | None = None) -> None:
        """A primitive goes through the clip window of `state`."""
        width, height = state.clip_width, state.clip_height
        if not width or not height:
            left, bottom, right, top = clip_box(state, empty_windows)
            effect = "only the other dimension limits what is drawn"
            if left == right or bottom == top:
                effect = "nothing is drawn"
            elif left == bottom == 0 and right == top == NO_CLIP_LIMIT:
                effect = "it limits nothing"
            text = f"the clip window (102) is {width} x {height} pixels: {effect}"
            self.reporter.report("CLE-026", text, address=address)

    def draw(self, state: RenderState, shader: ShaderRecord, empty_windows: int) -> None:
        """A distinct render state is about to be drawn. `empty_windows`: an `EMPTY_WINDOWS`."""
        self.clip_window(state, empty_windows)
        if not state.config & _FACES and state.list_format & 0xF >= ListPrimitive.TRIANGLES:
            text = "triangles are drawn, but no face is enabled (record 96): none appears"
            self.reporter.report("CLE-047", text)
        if state.shader_kind != VgInlineShader.id:  # there it is the code, with flags below
            self._aligned(None, "a shader record", shader.address, RECORD_ALIGNMENT)
        if shader.nv is not None and shader.nv.clip_header:
            where = int(shader.nv.vertices)
            self._aligned(shader.address, "NV vertices with a clip header", where, 16)
        if shader.nv is not None:
            self._nv_stride(shader, shader.nv)
        if shader.gl is not None:
            record = shader.gl.record
            if not record.vs_attributes or not record.cs_attributes:
                kind = "vertex" if not record.vs_attributes else "coordinate"
                self.reporter.report(
                    "CLE-033", f"no attribute array for the {kind} shader", address=shader.address
                )

    def nv_vertices(self, nv: NvShaderRecord, memory: GuestMemory, first: int, last: int) -> None:
        """Looks at 1/Wc of the first vertices of a draw that were shaded beforehand."""
        if not nv.varyings:
            return
        start = int(nv.vertices) + 4 * (CLIP_HEADER_WORDS * bool(nv.clip_header) + ONE_OVER_W)
        places = [
            start + number * int(nv.stride) for number in range(first, min(last + 1, first + LOOKED_AT))
        ]
        values = [struct.unpack("<f", memory.read(place, 4))[0] for place in places]
        if values and not any(value > 0 for value in values):
            self.reporter.report(
                "VTX-010",
                f"1/Wc of vertices {first} to {first + len(values) - 1} is "
                f"{', '.join(f'{v:g}' for v in values)}: varyings are divided by it; it is 1.0 where there "
                "is no perspective",
                address=places[0] & 0xFFFFFFFF,
            )

    def _nv_stride(self, shader: ShaderRecord, nv: NvShaderRecord) -> None:
        size = 4 * (PSE_WORDS + int(nv.varyings) + bool(nv.point_size))
        size += 4 * CLIP_HEADER_WORDS * bool(nv.clip_header)
        if nv.stride < size:
            text = f"NV vertices of {size} bytes follow each other after {int(nv.stride)}"
            self.reporter.report("CLE-048", text, address=shader.address)

    def _aligned(self, address: int | None, what: str, value: int, alignment: int) -> None:
        if value & (alignment - 1):
            self.reporter.report(
                "CLE-009", f"{what} at 0x{value:08x} is not a multiple of {alignment}",
                address=address,
            )  # fmt: skip


MAX_RECORDS = 512
MAX_LISTS = 64
FORMAT = PrimitiveListFormat.id
SCALED = frozenset((ClipWindow.id, ViewportOffset.id, ClipperXyScaling.id))
SHADERS = frozenset(ids_of(ShaderState))
PRIMITIVES = frozenset(ids_of(Primitives, Compressed))
JUMPS = frozenset(kind.id for kind in records_of() if kind.variable or issubclass(kind, Flow))
"""After these another list or bytes of another kind follow."""


class OrderCheck:
    """Looks at the lists of one V3D as they are started."""

    def __init__(self, memory: GuestMemory, reporter: Reporter) -> None:
        self._memory = memory
        self._reporter = reporter
        self._seen: set[int] = set()

    def list(self, start: int, end: int) -> None:
        """A list is about to run from `start` to `end`."""
        if start in self._seen or len(self._seen) >= MAX_LISTS:
            return
        self._seen.add(start)
        size = min((end - start) & 0xFFFFFFFF, 16 * MAX_RECORDS)
        data = self._memory.view(start & MEMORY_MASK, size)
        at, format_at = 0, -1
        scaled: dict[int, int] = {}
        for _ in range(MAX_RECORDS):
            if at >= len(data) or not RECORD_SIZES[data[at]] or at + RECORD_SIZES[data[at]] > len(data):
                return
            identity = data[at]
            if identity in SCALED:
                scaled[identity] = at
            elif identity == FORMAT:
                format_at = at
            elif identity in SHADERS:
                format_at = -1
            elif identity in PRIMITIVES and len(scaled) > 1:
                self._units(data, start, scaled)
                scaled.clear()
            if identity in PRIMITIVES and format_at >= 0:
                self._reporter.report(
                    "CLE-025",
                    "a primitive comes after record 56 with no shader state (64-67) between them",
                    address=start + format_at,
                )
                return
            if identity in JUMPS:
                return
            at += RECORD_SIZES[identity]

    def _units(self, data: memoryview, start: int, scaled: Mapping[int, int]) -> None:
        """Reports offsets and scales in pixels: half of the clip window instead of 16 times that."""
        window = scaled.get(ClipWindow.id)
        if window is None:
            return
        _, _, width, height = struct.unpack_from("<4H", data, window + 1)
        half = width / 2, height / 2
        for kind, form in ((ViewportOffset, "<2h"), (ClipperXyScaling, "<2f")):
            place = scaled.get(kind.id)
            if place is None or not (width and height):
                continue
            x, y = struct.unpack_from(form, data, place + 1)
            if (x, abs(y)) == half:
                self._reporter.report(
                    "DRAW-014",
                    f"record {kind.id} has {x:g} and {y:g}, half of the clip window's {width} x {height} "
                    f"pixels: it is in 1/16 pixel, so {16 * x:g} and {16 * y:g} are the picture's middle",
                    address=start + place,
                )
