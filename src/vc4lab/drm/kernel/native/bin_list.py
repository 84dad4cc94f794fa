"""The compiled form of `binning.py`: the driver's binning list made into the hardware's."""

from __future__ import annotations

from typing import Any

from vc4lab.drm.kernel.binning import ALLOWED, BLOCK, INITIAL_BLOCK, TILE_STATE_BYTES
from vc4lab.drm.kernel.native.context import DONE, EXTENDED, UNUSUAL, USE_BYTES, JobContext
from vc4lab.records import declarations as d
from vc4lab.records.codes import IndexType
from vc4lab.records.control import RECORDS
from vc4lab.records.shader import ATTRIBUTE_SIZE, EXTENDED_STRIDES, GL_FIXED_SIZE, MAX_ATTRIBUTES
from vc4lab.simd import (
    Value,
    call,
    const,
    i8,
    i32,
    i64,
    kernel,
    load,
    max_,
    ptr,
    select,
    staged,
    store,
    table,
)

SIZES = [
    RECORDS[number].size if number in ALLOWED and number != d.Halt.id else 0
    for number in range(256)
]
"""Bytes of the records that may stand in a list that is built; after Halt the end is missing."""
MAX_INDEX = 0xFFFF


def _byte(kind: type[d.Payload], name: str) -> int:
    """Byte of a field in its record, the id not counted."""
    return 1 + kind.layout_fields[name].lo // 8


_MODE = d.TileBinningMode
_MODE_FLAGS = _MODE.make(auto_initialise=1, initial_block=INITIAL_BLOCK, block=BLOCK).value >> 112
_MULTISAMPLE = _MODE.layout_fields["multisample"].mask >> 112
_REFUSED_MODE = sum(_MODE.layout_fields[name].mask >> 112 for name in ("colour64", "double_buffer"))


@staged
def word(place: Value) -> Value:
    """The 32-bit word there, without a sign."""
    return load(i32, place).zext(i64)


@staged
def byte(place: Value) -> Value:
    """The byte there."""
    return load(i8, place).zext(i64)


@staged
def copy_bytes(target: Value, source: Value, size: Any) -> None:
    """A short copy that touches nothing else."""
    for k in range(size.trunc(i32)):
        store(target + k, load(i8, source + k))


@staged
def gl_record_bytes(attributes: Value, extended: Value) -> Value:
    """As `gl_record_size`."""
    return select(
        extended,
        attributes * 4 + EXTENDED_STRIDES,
        attributes * ATTRIBUTE_SIZE + GL_FIXED_SIZE,
    )


@kernel(args=(ptr, ptr), returns=i32)
def binning_mode(context: Value, record: Value) -> Value:
    """Record 112 in its new place, with the kernel's tile memory."""
    c = JobContext.at(context)
    x = byte(record + _byte(_MODE, "tiles_x"))
    y = byte(record + _byte(_MODE, "tiles_y"))
    flags = byte(record + 15)
    state = (x * y * TILE_STATE_BYTES + 4095) & ~4095
    again = c.tiles_x != 0
    if again | (x == 0) | (y == 0) | ((flags & _REFUSED_MODE) != 0) | (c.tile_memory_size < state):
        return const(i32, UNUSUAL)
    c.tiles_x = x
    c.tiles_y = y
    c.tile_lists = c.tile_memory + state
    place = c.memory + c.bin_end
    store(place, const(i8, _MODE.id))
    store(place + 1, c.tile_lists.trunc(i32))
    store(place + 5, (c.tile_memory_size - state).trunc(i32))
    store(place + 9, c.tile_memory.trunc(i32))
    store(place + 13, x.trunc(i8))
    store(place + 14, y.trunc(i8))
    store(place + 15, ((flags & _MULTISAMPLE) | _MODE_FLAGS).trunc(i8))
    return const(i32, DONE)


@kernel(args=(ptr, ptr), returns=i32)
def shader_state(context: Value, record: Value) -> Value:
    """Record 64 with the address of its record, and a row for what its draws need."""
    c = JobContext.at(context)
    state = word(record + 1)
    if ((state & ~15) != 0) | (c.use_count >= c.room):
        return const(i32, UNUSUAL)
    count = state & 7
    count = select(count == 0, const(i64, MAX_ATTRIBUTES), count)
    extended = (state & 8) != 0
    address = c.next_record
    c.next_record = (address + gl_record_bytes(count, extended) + 15) & ~15
    place = c.memory + c.bin_end
    store(place, const(i8, d.GlShaderState.id))
    store(place + 1, (address | state).trunc(i32))
    use = c.uses + c.use_count * USE_BYTES
    store(use, select(extended, count | EXTENDED, count).trunc(i32))
    store(use + 4, const(i32, 0))
    c.use_count = c.use_count + 1
    return const(i32, DONE)


@kernel(args=(ptr, i64), returns=i32)
def draw(context: Value, highest: Value) -> Value:
    """A draw that reads vertices up to that number."""
    c = JobContext.at(context)
    if (c.use_count == 0) | (highest > MAX_INDEX):
        return const(i32, UNUSUAL)
    place = c.uses + (c.use_count * USE_BYTES - (USE_BYTES - 4))
    store(place, max_(load(i32, place), highest.trunc(i32)))
    return const(i32, DONE)


@kernel(args=(ptr, ptr, ptr, i64), returns=i32)
def indexed(context: Value, record: Value, buffers: Value, handle: Value) -> Value:
    """Record 32, copied already, with the index buffer's address."""
    c = JobContext.at(context)
    if handle >= c.buffer_count:
        return const(i32, UNUSUAL)
    row = buffers + (handle << 4)
    is_bytes = (byte(record + 1) >> 4) == int(IndexType.BYTE)
    length = word(record + 2)
    size = select(is_bytes, length, length << 1)
    offset = word(record + 6)
    if offset + size > word(row + 4):
        return const(i32, UNUSUAL)
    store(c.memory + c.bin_end + 6, (word(row) + offset).trunc(i32))
    return const(i32, DONE)


@kernel(args=(ptr, ptr, ptr), returns=i32)
def bin_list(context: Value, data: Value, buffers: Value) -> Value:
    """The whole list. It never gets longer: writing never overtakes reading."""
    c = JobContext.at(context)
    sizes = table(i8, SIZES)
    size = c.bin_size
    position = const(i64, 0)
    handle = const(i64, 0)
    started = const(i32, 0)
    ends = const(i32, 0)
    c.bin_end = c.lists
    c.next_record = c.first_record
    c.use_count = 0
    c.tiles_x = 0
    while position < size:
        record = data + position
        op = load(i8, record).zext(i32)
        length = load(i8, sizes + op.zext(i64)).zext(i64)
        if (length == 0) | (position + length > size):
            return const(i32, UNUSUAL)
        status = const(i32, DONE)
        kept = length
        if op == d.GemHandles.id:
            handle = word(record + 1)
            kept = const(i64, 0)
        elif op == d.TileBinningMode.id:
            status = call(binning_mode, context, record)
        elif op == d.GlShaderState.id:
            status = call(shader_state, context, record)
        else:
            copy_bytes(c.memory + c.bin_end, record, length)
            if op == d.IndexedPrimitives.id:
                status = call(draw, context, word(record + 10))
                status = status | call(indexed, context, record, buffers, handle)
            elif op == d.VertexArrayPrimitives.id:
                count = word(record + 2)
                end = count + word(record + 6)
                status = call(draw, context, select(count == 0, const(i64, 0), end - 1))
                status = status | (end > 0xFFFFFFFF).zext(i32)
            elif op == d.StartTileBinning.id:
                status = ((started != 0) | (c.tiles_x == 0)).zext(i32)
                started = const(i32, 1)
            elif op == d.IncrementSemaphore.id:
                status = (position != size - 2).zext(i32)
                ends = ends + 1
            elif op == d.Flush.id:
                status = (position != size - 1).zext(i32)
                ends = ends + 1
        if status != DONE:
            return const(i32, UNUSUAL)
        c.bin_end = c.bin_end + kept
        position = position + length
    return select((started != 0) & (ends == 2), const(i32, DONE), const(i32, UNUSUAL))
