"""The pieces of work that binning and frames consist of, for models of their time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from vc4lab.v3d.events.frames import PreparedPipeline


class ListBinned(NamedTuple):
    """The draws up to a flush have been binned; the event comes before the flush shows.

    Attributes
    ----------
    draws
        A `state.binning_work.DrawBinned` for each.
    shaders
        The shader records (`state.shader_record`) that they name, by kind and word.
    totals
        What the binner had counted at the end, in the order of `DrawBinned.before`.
    tiles
        The grid, in tiles.
    initial_bytes, block_bytes
        Of a tile's first block of list memory, and of others.
    """

    draws: bytes
    shaders: Mapping[tuple[int, int], Any]
    totals: tuple[int, ...]
    tiles: tuple[int, int]
    initial_bytes: int
    block_bytes: int


class DrawWork(NamedTuple):
    """A draw of `FrameWork`; `state` is a RenderState, `shader` what it names, if that exists.

    `textures`: a `tmu.state.TextureDescriptor` for each of `pipeline.key.textures`, or None.
    """

    state: Any
    shader: Any
    record: int | None
    primitives: int
    vertices: int
    pipeline: PreparedPipeline | None
    textures: Sequence[Any]


class FrameWork(NamedTuple):
    """The pieces of work in tiles that were drawn and stored, in the order of their operations.

    It comes after `FrameDrawn`. Pipelines that record count all that performance counters know.

    Attributes
    ----------
    address, width, height, multisample, wide
        Of record 113.
    tile_width, tile_height
        In pixels.
    draws
        The distinct render states.
    surfaces
        What is loaded and stored (`state.surface`), by the numbers that operations have.
    ops, chains
        Operations (`tiles.job.TileOp`), and where each chain of them begins (i32, and the end).
    pieces, piece_first
        Start and end of each piece of list (i32), and its first list (i32, and the end).
    segments, sizes
        Lists: a `tile_lists.scan_context.Segment`, a `tile_lists.list_vertices.ListSize` each.
    vertices
        Numbers of the vertices (u32) of all lists.
    lists, blocks, requests, lines
        What drawing recorded: `state.work_records`.
    lost
        How many records found no room: what is there is not all.
    """

    address: int
    width: int
    height: int
    multisample: bool
    wide: bool
    tile_width: int
    tile_height: int
    draws: tuple[DrawWork, ...]
    surfaces: Sequence[Any]
    ops: bytes
    chains: bytes
    pieces: bytes
    piece_first: bytes
    segments: bytes
    sizes: bytes
    vertices: bytes
    lists: bytes
    blocks: bytes
    requests: bytes
    lines: bytes
    lost: int
