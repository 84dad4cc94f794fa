"""Lists as listeners walk them: their records and programs, and which memory they and surfaces lie in."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from vc4lab.images.tiling import Tiling, image_bytes
from vc4lab.records.control import Reader, Record, parse_list
from vc4lab.records.declarations import BranchToSublist, Return, TileBinningMode
from vc4lab.records.shader import parse_gl_state, parse_nv, parse_vg
from vc4lab.records.states import GlShaderState, NvShaderState, VgInlineShader, VgShaderState
from vc4lab.v3d.checks.hints import TILE_STATE_BYTES

if TYPE_CHECKING:
    from vc4lab.v3d.state.frame_mode import Surface

LONGEST_PIECE = 1 << 26
"""Bytes of a piece of list; an end further away is meant as "never"."""
MOST_RECORDS = 1 << 16
"""Records that are read of a list that has no end, or a distant one."""
LOOKED_AT = 16
"""Records from the start of a binning list among which its mode is looked for."""
AROUND = 64
"""Bytes before the end of a compressed list that lies in pieces."""


def nested(read: Reader, start: int, end: int, limit: int) -> Iterator[tuple[Record, int]]:
    """The records of a list with its sub-lists, and how deep each of them stands."""
    depth = 0
    for record in parse_list(read, start, end, follow=True, limit=limit):
        yield record, depth
        depth = max(depth + (record.id == BranchToSublist.id) - (record.id == Return.id), 0)


def programs_of(read: Reader, state: object) -> Iterator[tuple[str, int, int]]:
    """The programs that a record of shader state names: kind, code, uniforms."""
    if isinstance(state, VgInlineShader):
        yield "fragment", state.code, state.uniforms
    elif isinstance(state, NvShaderState | VgShaderState):
        parse = parse_nv if isinstance(state, NvShaderState) else parse_vg
        shader: Any = parse(read, int(state.address))
        yield "fragment", shader.code, shader.uniforms
    elif isinstance(state, GlShaderState):
        record = parse_gl_state(read, state).record
        yield "fragment", record.fs_code, record.fs_uniforms
        yield "vertex", record.vs_code, record.vs_uniforms
        yield "coordinate", record.cs_code, record.cs_uniforms


def list_ranges(read: Reader, start: int, end: int | None) -> Iterator[tuple[int, int]]:
    """Address and size of the ranges that a list lies in; end None: up to its Return."""
    if end is not None and 0 <= end - start <= LONGEST_PIECE:
        yield start, end - start
        return
    first = last = start
    for record in parse_list(read, start, follow=True, limit=MOST_RECORDS):
        if record.address != last:
            yield first, last - first
            first = record.address
        last = record.address + record.size
        if record.primitives and record.next != last:
            yield record.next - AROUND, AROUND
    yield first, last - first


def tile_state(read: Reader, start: int, end: int) -> tuple[int, int] | None:
    """Address and size of the tile state that a binning list goes on with; None: it initialises it."""
    for record in parse_list(read, start, end, limit=LOOKED_AT):
        mode = record.payload
        if isinstance(mode, TileBinningMode):
            if mode.auto_initialise:
                return None
            return int(mode.state_address), TILE_STATE_BYTES * int(mode.tiles_x) * int(mode.tiles_y)
    return None


def surface_bytes(surface: Surface) -> int:
    """From a surface's first byte to its last."""
    if not surface.width or not surface.height:
        return 0
    tiling = Tiling(min(surface.tiling, 2))
    if tiling is Tiling.RASTER:
        return surface.pitch * surface.height
    return image_bytes(surface.width, surface.height, surface.bits, tiling)


def stored_ranges(surfaces: Iterable[Surface], full: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Address and bytes of what a frame's tiles are loaded from and stored to: surfaces, whole tiles."""
    return [(one.address, surface_bytes(one)) for one in surfaces] + sorted(full)
