"""From the events of a V3D to the tables of a frame."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from vc4lab.memory import MEMORY_MASK
from vc4lab.qpu.isa.qpu_unknowns import Settings
from vc4lab.qpu.program.reader import program_at
from vc4lab.records.control import RECORD_SIZES
from vc4lab.records.declarations import ClippedList, CompressedList, TileBinningMode
from vc4lab.records.states import ConfigurationBits
from vc4lab.timing.frames import columns as cols
from vc4lab.timing.frames.columns import Table, starts, table_of
from vc4lab.timing.frames.frame import Binning, Frame, Words
from vc4lab.v3d.cle.binning_context import DrawBinned
from vc4lab.v3d.events import DrawWork, FrameWork, ListBinned, RecordsNoted
from vc4lab.v3d.ptb.context import COUNTERS as BINNER_COUNTERS
from vc4lab.v3d.state.frame_mode import TILE_WORDS
from vc4lab.v3d.state.render_state import INDEX_8, INDEX_16
from vc4lab.v3d.state.tile_context import LIST_COUNTERS, BlockWork, ListWork, RequestWork
from vc4lab.v3d.tile_lists.list_vertices import ListSize
from vc4lab.v3d.tile_lists.scan_context import Segment
from vc4lab.v3d.tiles.job import (
    OP_DRAW_PIECES,
    OP_LOAD,
    OP_LOAD_FULL,
    OP_STORE,
    OP_STORE_FULL,
    OP_TILE,
    TileOp,
)

if TYPE_CHECKING:
    from vc4lab.memory import GuestMemory
    from vc4lab.qpu.program.program import Program
    from vc4lab.v3d.state.render_state import ShaderRecord

_SIZES = np.array(RECORD_SIZES, np.int32)
_LISTS = (CompressedList.id, ClippedList.id)
_INDEX_BYTES = {INDEX_8: 1, INDEX_16: 2}


class Programs:
    """The distinct programs of frames, numbered as they are met."""

    def __init__(self, memory: GuestMemory, settings: Settings) -> None:
        self.memory, self._settings = memory, settings
        self._numbers: dict[Words, int] = {}
        self._known: dict[int, Program] = {}

    def number(self, words: Words) -> int:
        """The number of a program."""
        return self._numbers.setdefault(words, len(self._numbers))

    def at(self, address: int) -> int:
        """The number of the program that is at a guest address now."""
        known = self._known.get(address)
        if known is None or not known.lies_in(self.memory):
            known = program_at(self.memory, address, settings=self._settings)
            self._known[address] = known
        return self.number(known.words)

    @property
    def words(self) -> tuple[Words, ...]:
        """All of them."""
        return tuple(self._numbers)


def records(notes: Iterable[RecordsNoted]) -> Table:
    """The records of notes; those of lists have the bytes of their fixed part."""
    data = np.frombuffer(b"".join(note.notes for note in notes), np.uint64)
    table = np.zeros(len(data), cols.RECORD)
    table["address"], table["id"] = data & 0xFFFFFFFF, data >> 32
    table["bytes"], table["tile"] = _SIZES[table["id"]], -1
    return table


def addresses(notes: Iterable[RecordsNoted]) -> NDArray[np.int64]:
    """Guest addresses of the records of notes."""
    return records(notes)["address"].astype(np.int64)


def binning(
    event: ListBinned, notes: Sequence[RecordsNoted], memory: GuestMemory, programs: Programs
) -> Binning:
    """Return the work of thread 0 up to the flush that ends it."""
    raw = table_of(event.draws, DrawBinned)
    table = np.zeros(len(raw), cols.BINNED)
    for name in ("record", "op", "mode", "length", "place", "config"):
        table[name] = raw[name]
    totals = np.concatenate([raw["before"], np.array([event.totals], np.int64)])
    for number, name in enumerate(BINNER_COUNTERS):
        table[name] = np.diff(totals[:, number])
    vertices: list[NDArray[np.uint32]] = []
    shaders: list[ShaderRecord | None] = []
    for row, draw in zip(table, raw, strict=True):
        width = _INDEX_BYTES.get(int(draw["index_type"]), 0)
        row["index_bytes"] = width
        vertices.append(_indices(memory, draw, width))
        kind, word = int(draw["shader_kind"]), int(draw["shader_word"]) & 0xFFFFFFFF
        shader = event.shaders.get((kind, word))
        shaders.append(shader)
        _add_coordinate_shader(row, shader, programs)
    table["vertices"] = [len(part) for part in vertices]
    table["first_vertex"] = starts(table["vertices"])[:-1]
    named = np.concatenate(vertices) if vertices else np.zeros(0, np.uint32)
    executed = records(notes)
    return Binning(
        executed,
        table,
        attribute_table(shaders, vertex=False),
        named,
        event.tiles,
        event.initial_bytes,
        event.block_bytes,
        _list_memory(executed, memory),
    )


def _list_memory(executed: Table, memory: GuestMemory) -> tuple[int, int]:
    """Return the guest address and bytes of the list memory that the last record 112 sets."""
    modes = executed["address"][executed["id"] == TileBinningMode.id]
    if not len(modes):
        return 0, 0
    payload = memory.read(int(modes[-1]) + 1, TileBinningMode.size - 1)
    mode = TileBinningMode.from_bytes(payload)
    return int(mode.address), int(mode.memory_size)


def _indices(memory: GuestMemory, draw: Any, width: int) -> NDArray[np.uint32]:
    """The vertices that a draw names; none of vector graphics or where it was left out."""
    first, last, length = int(draw["first"]), int(draw["last"]), int(draw["length"])
    if last < first:
        return np.zeros(0, np.uint32)
    if not width:
        return np.arange(first, last + 1, dtype=np.uint32)
    data = memory.read(int(draw["place"]) & 0xFFFFFFFF, length * width)
    return np.frombuffer(data, f"<u{width}").astype(np.uint32)


def _add_coordinate_shader(row: Any, shader: ShaderRecord | None, programs: Programs) -> None:
    row["shader"] = -1 if shader is None else shader.address
    row["program"] = -1
    if shader is None or shader.gl is None:
        return
    record = shader.gl.record
    row["program"], row["code"] = programs.at(record.cs_code), record.cs_code
    row["uniforms"], row["attribute_bytes"] = record.cs_uniforms, record.cs_size
    row["attributes"] = int(record.cs_attributes).bit_count()


def frame(
    event: FrameWork,
    binnings: tuple[Binning, ...],
    main: Sequence[RecordsNoted],
    in_tiles: Sequence[RecordsNoted],
    programs: Programs,
) -> Frame:
    """The tables of tiles that were drawn."""
    if event.lost:  # what is there does not fit together
        event = event._replace(lists=b"", blocks=b"", requests=b"", lines=b"")
    ops, tiles = operations(event)
    lists = list_table(event, ops)
    add_clip_records(lists, programs.memory)
    tile_of_piece = _tile_of_piece(event, ops)
    mine = tile_records(in_tiles, lists, tile_of_piece)
    add_lists(tiles, lists, mine)
    draws = draw_table(event.draws, programs)  # numbers programs
    return Frame(
        event.width,
        event.height,
        event.tile_width,
        event.tile_height,
        event.multisample,
        event.wide,
        binnings,
        programs.words,
        draws,
        texture_table(event.draws),
        attribute_table([draw.shader for draw in event.draws], vertex=True),
        tiles,
        ops,
        lists,
        np.concatenate([records(main), mine]),
        np.frombuffer(event.vertices, np.uint32),
        table_of(event.blocks, BlockWork),
        table_of(event.requests, RequestWork),
        np.frombuffer(event.lines, np.uint32),
        event.surfaces,
        event.lost,
    )


def operations(event: FrameWork) -> tuple[Table, Table]:
    """The operations, and the tiles that they work on."""
    raw = table_of(event.ops, TileOp)
    table = np.zeros(len(raw), cols.OP)
    table["kind"], table["a"], table["b"] = raw["kind"], raw["a"], raw["b"]
    chains = np.frombuffer(event.chains, np.int32)
    chain = np.repeat(np.arange(len(chains) - 1), np.diff(chains))
    named = (raw["kind"] == OP_TILE).nonzero()[0]
    x, y, own = raw["a"][named], raw["b"][named], chain[named]
    new = np.ones(len(named), bool)
    new[1:] = (np.diff(x) != 0) | (np.diff(y) != 0) | (np.diff(own) != 0)
    first = named[new]
    tiles = np.zeros(len(first), cols.TILE)
    tiles["x"], tiles["y"], tiles["chain"] = raw["a"][first], raw["b"][first], chain[first]
    if len(first):
        first[0] = 0  # whatever comes before the first coordinates belongs to it
        tiles["first_op"] = first
        tiles["ops"] = np.diff(first, append=len(raw))
        table["tile"] = np.repeat(np.arange(len(first)), tiles["ops"])
    add_transfers(table, event)
    return table, tiles


def add_transfers(table: Table, event: FrameWork) -> None:
    """Set what each operation moves: surface, its address, bytes."""
    table["surface"] = -1
    pixels = event.tile_width * event.tile_height
    moves = np.isin(table["kind"], (OP_LOAD, OP_STORE))
    numbers = table["a"][moves].astype(np.int64)
    table["surface"][moves] = numbers
    sizes = np.array([surface.bits // 8 * pixels for surface in event.surfaces], np.int64)
    places = np.array([surface.address for surface in event.surfaces], np.uint32)
    table["bytes"][moves], table["address"][moves] = sizes[numbers], places[numbers]
    whole = np.isin(table["kind"], (OP_LOAD_FULL, OP_STORE_FULL))
    parts = table["b"][whole]
    bits = sum(((parts >> bit) & 1 for bit in range(8)), np.zeros_like(parts))
    table["bytes"][whole] = bits * np.uint32(4 * TILE_WORDS)
    table["address"][whole] = table["a"][whole]


def _tile_of_piece(event: FrameWork, ops: Table) -> NDArray[np.int32]:
    """The tile of each piece of list; -1 if none draws it."""
    count = len(event.pieces) // 8
    tiles = np.full(count, -1, np.int32)
    for op in ops[ops["kind"] == OP_DRAW_PIECES]:
        tiles[int(op["a"]) : int(op["a"]) + int(op["b"])] = op["tile"]
    return tiles


def list_table(event: FrameWork, ops: Table) -> Table:
    """The lists of all tiles, with what drawing them took."""
    segments, sizes = table_of(event.segments, Segment), table_of(event.sizes, ListSize)
    table = np.zeros(len(segments), cols.LIST)
    table["tile"] = _tile_of_piece(event, ops)[segments["tile"]]
    table["draw"], table["address"] = segments["draw"], segments["list_address"]
    for name in ("bytes", "primitives", "vertices", "clipped"):
        table[name] = sizes[name]
    table["first_vertex"] = starts(table["vertices"])[:-1]
    works = table_of(event.lists, ListWork)
    where = works["segment"]
    table["drawn"][where] = True
    table["blocks"][where] = works["blocks"]
    table["first_block"][where] = starts(works["blocks"])[:-1]
    for number, name in enumerate(LIST_COUNTERS):
        table[name][where] = works["counters"][:, number]
    return table


def add_clip_records(lists: Table, memory: GuestMemory) -> None:
    """Set the guest addresses of clip records in the lists that have one."""
    for number in (lists["clipped"] > 0).nonzero()[0]:
        place = int(lists["address"][number]) + 1 & MEMORY_MASK
        found = ClippedList.from_bytes(memory.read(place, ClippedList.size - 1))
        lists["clip"][number] = found.address & 0xFFFFFFFF


def tile_records(notes: Sequence[RecordsNoted], lists: Table, tile_of_piece: NDArray[np.int32]) -> Table:
    """Records of tile lists, with their tiles and the bytes of compressed lists."""
    table = records(notes)
    pieces = np.frombuffer(b"".join(note.pieces or b"" for note in notes), np.int32)
    table["tile"] = tile_of_piece[pieces]
    is_list = np.isin(table["id"], _LISTS)
    own = lists[np.isin(lists["address"], table["address"][is_list])]
    if is_list.sum() == len(own):
        table["bytes"][is_list] = own["bytes"]
    return table


def add_lists(tiles: Table, lists: Table, noted: Table) -> None:
    """Count each tile's lists, records and bytes."""
    count = len(tiles)
    for name, numbers, weights in (
        ("lists", lists["tile"], None),
        ("records", noted["tile"], None),
        ("bytes", noted["tile"], noted["bytes"]),
    ):
        known = numbers >= 0
        chosen = None if weights is None else weights[known]
        tiles[name] = np.bincount(numbers[known], chosen, count)[:count]
    tiles["first_list"] = np.searchsorted(lists["tile"], np.arange(count))


def draw_table(draws: Sequence[DrawWork], programs: Programs) -> Table:
    """The distinct render states."""
    table = np.zeros(len(draws), cols.DRAW)
    for row, draw in zip(table, draws, strict=True):
        state, shader, pipeline = draw.state, draw.shader, draw.pipeline
        config = ConfigurationBits(state.config & 0xFFFFFF)
        row["record"] = -1 if draw.record is None else draw.record
        row["form"], row["config"] = state.list_format & 0xFF, config.value
        row["primitives"], row["vertices"] = draw.primitives, draw.vertices
        row["early_z"], row["early_z_update"] = bool(config.early_z), bool(config.early_z_update)
        row["coverage_pipe"] = bool(config.coverage_pipe)
        row["program"] = row["vertex_program"] = row["shader"] = -1
        if pipeline is not None:
            row["reference"] = pipeline.key.engine == "interpreter"
            row["program"] = programs.number(pipeline.key.program)
        if shader is not None:
            _add_shader(row, shader, programs)
    return table


def _add_shader(row: Any, shader: ShaderRecord, programs: Programs) -> None:
    row["shader"], row["code"], row["uniforms"] = shader.address, shader.code, shader.uniforms
    row["varyings"], row["vertex_words"] = shader.varyings, 3 + shader.point_size + shader.varyings
    row["threads"] = 2 - (shader.data[0] & 1) if shader.data else 1
    if shader.gl is not None:
        record = shader.gl.record
        row["vertex_program"] = programs.at(record.vs_code)
        row["vertex_code"], row["vertex_uniforms"] = record.vs_code, record.vs_uniforms
        row["attributes"] = int(record.vs_attributes).bit_count()
        row["attribute_bytes"] = record.vs_size
    elif shader.nv is not None:
        row["attribute_bytes"] = shader.nv.stride


def texture_table(draws: Sequence[DrawWork]) -> Table:
    """The textures of all draws, as far as they are known before the programs run."""
    rows = []
    for number, draw in enumerate(draws):
        kinds = () if draw.pipeline is None else draw.pipeline.key.textures
        for request, (kind, texture) in enumerate(zip(kinds, draw.textures, strict=False)):
            if kind is None or texture is None:
                continue
            size = int(texture.width[0]), int(texture.height[0]), int(texture.last_level) + 1
            form = int(kind.type), int(kind.type.bits), int(kind.layout)
            filters = kind.mag_linear, kind.min_linear, int(kind.mip), kind.cube
            rows.append((number, request, texture.base[0] & 0xFFFFFFFF, *size, *form, *filters))
    return np.array(rows, cols.TEXTURE)


def attribute_table(shaders: Sequence[ShaderRecord | None], *, vertex: bool) -> Table:
    """The arrays that the vertex (or coordinate) shaders of draws select; NV: shaded vertices."""
    rows = []
    for number, shader in enumerate(shaders):
        if shader is not None and shader.gl is not None:
            record = shader.gl.record
            chosen = int(record.vs_attributes if vertex else record.cs_attributes)
            for array, one in enumerate(shader.gl.attributes):
                if chosen >> array & 1:
                    rows.append((number, array, one.address & 0xFFFFFFFF, one.size, one.stride))
        elif shader is not None and shader.nv is not None:
            stride = int(shader.nv.stride)
            rows.append((number, 0, int(shader.nv.vertices) & 0xFFFFFFFF, stride, stride))
    return np.array(rows, cols.ATTRIBUTE)
