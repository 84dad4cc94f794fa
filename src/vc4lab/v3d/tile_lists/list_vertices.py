"""Which vertices the lists of a frame name, one after the other, and how many bytes they have.

For listeners (`events.FrameWork`): drawing decodes the lists itself. A list is read as the chip
reads it, with the branches from block to block.
"""

from __future__ import annotations

import ctypes
from functools import cache, lru_cache
from typing import TYPE_CHECKING

from vc4lab.memory.native import Stream, StreamMemory, append, host
from vc4lab.records.primitives import ESCAPE_BRANCH
from vc4lab.records.states import TRIANGLES_16_BIT, RenderState
from vc4lab.simd.kernel import Function, call, kernel, staged
from vc4lab.simd.members import i1, i8, i16, i32, nested, ptr
from vc4lab.simd.memory import load, store
from vc4lab.simd.native import NativeFunction, build
from vc4lab.simd.struct import Struct
from vc4lab.simd.value import Value, const, select
from vc4lab.simd.vector import min_, popcount_
from vc4lab.v3d.tile_lists import primitive_decoder as pd
from vc4lab.v3d.tile_lists.scan_context import EXPANDED, MAX_VERTICES, DrawEntry, Segment

if TYPE_CHECKING:
    from vc4lab.v3d.tile_lists.scan_context import ScanResult

ROOM = 1 << 29
"""Bytes for the vertices of a frame."""

BRANCH_BYTES = 3


class ListSize(Struct):
    """The size of one list: its bytes, branches and end included; primitives; vertices in the stream (none
    if their coordinates stand in the list); vertices that come from its clip record.
    """

    bytes = i32
    primitives = i32
    vertices = i32
    clipped = i32


class ListReading(Struct):
    """The lists to be read (`Segment` each, of draws `DrawEntry`), and where results go."""

    memory = ptr
    expanded = ptr
    draws = ptr
    segments = ptr
    sizes = ptr  # ListSize each
    count = i32
    reserved = i32
    vertices = nested(Stream)


@staged
def pass_branches(decoder: pd.Decoder) -> Value:
    """Goes where the next primitive stands; bytes of the branches on the way."""
    address, budget = decoder.address.get(), decoder.budget.get()
    size = const(i32, 0)
    pointer = host(decoder.base, address)
    code = load(i8, pointer).zext(i32)
    while (code == ESCAPE_BRANCH) & (budget > 0):
        address = (address & ~31) + load(i16, pointer + 1).sext(i32) * 32
        pointer = host(decoder.base, address)
        code = load(i8, pointer).zext(i32)
        budget = budget - 1
        size = size + BRANCH_BYTES
    decoder.address.set(address)
    decoder.budget.set(budget)
    return size


def put_vertices(stream: Stream, decoder: pd.Decoder, corners: list[Value]) -> None:
    """Appends the vertices of the primitive at hand."""
    place = append(stream, 4 * len(corners))
    for number, vertex in enumerate(corners):
        if decoder.data == pd.INDEX_24:  # what lies beyond the last vertex counts as the last
            vertex = min_(vertex, const(i32, MAX_VERTICES - 1))
        store(place + 4 * number, vertex)


def corners_of(decoder: pd.Decoder) -> list[Value]:
    """The vertices of the primitive at hand."""
    first, second, third = (cell.get() for cell in (decoder.i0, decoder.i1, decoder.i2))
    if decoder.primitive == pd.POINTS:
        return [third]
    return [first, second, third] if decoder.primitive == pd.TRIANGLES else [first, second]


@lru_cache(maxsize=16)
def _reader(code: int) -> Function[None]:
    """Kernel (reading, base, list address, ListSize) for one list format."""

    @kernel(args=(ptr, ptr, i32, ptr), returns=None)
    def read_list(reading: Value, base: Value, address: Value, result: Value) -> None:
        stream = ListReading.at(reading).vertices
        size = ListSize.at(result, 4)
        decoder = pd.Decoder(base, code & 15, code >> 4)
        decoder.open(address)
        length = decoder.address.get() - address
        size.clipped = popcount_(decoder.clipped.get())
        before = stream.used
        count = const(i32, 0)
        more = const(i1, True)
        while more:
            length = length + pass_branches(decoder)
            start = decoder.address.get()
            more = decoder.next()
            length = length + (decoder.address.get() - start)
            if more:
                count = count + 1
                if decoder.data != pd.XY_32:
                    put_vertices(stream, decoder, corners_of(decoder))
        size.bytes = length
        size.primitives = count
        size.vertices = (stream.used - before).trunc(i32).shr(2)

    return read_list


@staged
def read_lists(codes: tuple[int, ...], reading: Value) -> None:
    """Reads all lists."""
    r = ListReading.at(reading)
    for number in range(r.count):
        segment = Segment.at(r.segments + number * Segment.size, 4)
        form = RenderState.at(r.draws + segment.draw * DrawEntry.size).list_format
        base = select((form & EXPANDED) != 0, r.expanded, r.memory)
        place = r.sizes + number * ListSize.size
        for code in codes:
            if (form & 0xFF) == code:
                call(_reader(code), reading, base, segment.list_address, place)


@cache
def _native(all_formats: bool) -> NativeFunction:
    codes = pd.FORMATS if all_formats else (TRIANGLES_16_BIT,)

    def body(reading: Value) -> None:
        read_lists(codes, reading)

    functions = {"read": Function(args=(ptr,), returns=None, body=body)}
    key = f"list_vertices {all_formats}"
    return build("list_vertices", functions, float_mode="default", key=key)["read"]


class ListReader:
    """Reads the lists of one frame after the other."""

    def __init__(self, memory_base: int) -> None:
        self._reading = ListReading()
        self._reading.memory = memory_base
        self._vertices = StreamMemory(self._reading.vertices, ROOM)

    def read(self, scan: ScanResult) -> tuple[bytes, bytes, int]:
        """`ListSize` of each segment, the vertices of all (u32), and how many were lost."""
        reading, context = self._reading, scan.context
        count = scan.segment_count
        sizes = (ctypes.c_char * (ListSize.size * max(count, 1)))()
        reading.segments, reading.draws = scan.segments, scan.draw_entries
        reading.expanded, reading.count = context.expanded, count
        reading.sizes = ctypes.addressof(sizes)
        self._vertices.clear()
        plain = all(draw.state.list_format & 0xFF == TRIANGLES_16_BIT for draw in scan.draws)
        _native(not plain)(reading.address)
        lost = int(reading.vertices.lost)
        return bytes(sizes)[: ListSize.size * count], self._vertices.content, lost
