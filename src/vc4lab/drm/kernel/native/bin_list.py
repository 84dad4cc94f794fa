"""The driver's binning list made into the one that the hardware reads.

Buffer indices become addresses, the tile memory is filled in, shader records get their places.
Source: Linux vc4_validate.c.
"""

from __future__ import annotations

from typing import Any

from vc4lab.drm.kernel.native.context import EXTENDED, USE_BYTES, Finding, JobContext, found
from vc4lab.records import declarations as d
from vc4lab.records.codes import BlockSize, IndexType
from vc4lab.records.control import RECORDS
from vc4lab.records.payload import Payload
from vc4lab.records.shader import ATTRIBUTE_SIZE, EXTENDED_STRIDES, GL_FIXED_SIZE, MAX_ATTRIBUTES
from vc4lab.records.states import ConfigurationBits, GlShaderState, PrimitiveListFormat, ViewportOffset
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
from vc4lab.v3d.checks.hints import TILE_STATE_BYTES

SPECIAL = frozenset(
    kind.id
    for kind in (
        d.Flush,
        d.IncrementSemaphore,
        d.IndexedPrimitives,
        d.VertexArrayPrimitives,
        d.GemHandles,
        GlShaderState,
        d.TileBinningMode,
        d.StartTileBinning,
    )
)
"""Records that are checked or changed."""
COPIED = frozenset(
    [
        *(d.Halt.id, d.Nop.id, d.FlushAllState.id, PrimitiveListFormat.id),
        *range(ConfigurationBits.id, ViewportOffset.id + 1),
        *(d.ClipperXyScaling.id, d.ClipperZScale.id),
    ]
)
"""Records that are copied as they stand."""
_SIZES = [RECORDS[number].size if number in SPECIAL | COPIED else 0 for number in range(256)]
MAX_INDEX = 0xFFFF
_INITIAL_BLOCK, _BLOCK = BlockSize.B32, BlockSize.B128


def _byte(kind: type[Payload], name: str) -> int:
    """Byte of a field in its record, the id not counted."""
    found: int = 1 + kind.layout_fields[name].lo // 8
    return found


_MODE = d.TileBinningMode
_MODE_FLAGS = _MODE.make(auto_initialise=1, initial_block=_INITIAL_BLOCK, block=_BLOCK).value >> 112
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
    return select(extended, attributes * 4 + EXTENDED_STRIDES, attributes * ATTRIBUTE_SIZE + GL_FIXED_SIZE)


@kernel(args=(ptr, ptr), returns=i32)
def binning_mode(context: Value, record: Value) -> Value:
    """Record 112 in its new place, with the kernel's tile memory."""
    c = JobContext.at(context)
    x = byte(record + _byte(_MODE, "tiles_x"))
    y = byte(record + _byte(_MODE, "tiles_y"))
    flags = byte(record + 15)
    if c.tiles_x != 0:
        return found(Finding.SECOND_MODE)
    if (x == 0) | (y == 0):
        return found(Finding.NO_TILES)
    if (flags & _REFUSED_MODE) != 0:
        return found(Finding.REFUSED_MODE)
    state = (x * y * TILE_STATE_BYTES + 4095) & ~4095
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
    return found(Finding.DONE)


@kernel(args=(ptr, ptr, i64), returns=i32)
def shader_state(context: Value, record: Value, position: Value) -> Value:
    """Record 64 with the address of its record, and a row for what its draws need."""
    c = JobContext.at(context)
    state = word(record + 1)
    if c.use_count >= c.room:
        return found(Finding.TOO_MANY_STATES)
    if (state & ~15) != 0:
        return found(Finding.STATE_WITH_ADDRESS)
    count = state & 7
    count = select(count == 0, const(i64, MAX_ATTRIBUTES), count)
    extended = (state & 8) != 0
    address = c.next_record
    c.next_record = (address + gl_record_bytes(count, extended) + 15) & ~15
    place = c.memory + c.bin_end
    store(place, const(i8, GlShaderState.id))
    store(place + 1, (address | state).trunc(i32))
    use = c.uses + c.use_count * USE_BYTES
    store(use, select(extended, count | EXTENDED, count).trunc(i32))
    store(use + 4, const(i32, 0))
    store(use + 12, position.trunc(i32))
    c.use_count = c.use_count + 1
    return found(Finding.DONE)


@kernel(args=(ptr, i64, i64), returns=i32)
def draw(context: Value, highest: Value, position: Value) -> Value:
    """A draw that reads vertices up to that number."""
    c = JobContext.at(context)
    if c.use_count == 0:
        return found(Finding.DRAW_WITHOUT_STATE)
    place = c.uses + (c.use_count * USE_BYTES - (USE_BYTES - 4))
    store(place, max_(word(place), highest).trunc(i32))
    if (highest > MAX_INDEX) & (c.reported <= position):
        return found(Finding.LARGE_INDEX)
    return found(Finding.DONE)


@kernel(args=(ptr, ptr, ptr, i64, i64), returns=i32)
def indexed(context: Value, record: Value, buffers: Value, handle: Value, position: Value) -> Value:
    """Record 32, copied already, with the index buffer's address."""
    c = JobContext.at(context)
    status = call(draw, context, word(record + 10), position)
    if status != int(Finding.DONE):
        return status
    if handle >= c.buffer_count:
        return found(Finding.BAD_HANDLE)
    row = buffers + (handle << 4)
    is_bytes = (byte(record + 1) >> 4) == int(IndexType.BYTE)
    length = word(record + 2)
    size = select(is_bytes, length, length << 1)
    offset = word(record + 6)
    if offset + size > word(row + 4):
        return found(Finding.INDICES_OUTSIDE)
    store(c.memory + c.bin_end + 6, (word(row) + offset).trunc(i32))
    return found(Finding.DONE)


@kernel(args=(ptr, ptr, i64), returns=i32)
def vertices(context: Value, record: Value, position: Value) -> Value:
    """Record 33, copied already."""
    count = word(record + 2)
    end = count + word(record + 6)
    if end > 0xFFFFFFFF:
        return found(Finding.BAD_VERTICES)
    return call(draw, context, select(count == 0, const(i64, 0), end - 1), position)


@staged
def _fault(condition: Value, finding: Finding) -> Value:
    return select(condition, found(finding), found(Finding.DONE))


@kernel(args=(ptr, ptr, ptr), returns=i32)
def bin_list(context: Value, data: Value, buffers: Value) -> Value:
    """The list from `position` on. It never gets longer: writing never overtakes reading."""
    c = JobContext.at(context)
    sizes = table(i8, _SIZES)
    size = c.bin_size
    position = c.position
    begin = position
    handle: Value = c.handle
    ends = c.ends
    status = found(Finding.DONE)
    while (position < size) & (status == int(Finding.DONE)):
        begin = position
        record = data + position
        op = load(i8, record).zext(i32)
        length = load(i8, sizes + op.zext(i64)).zext(i64)
        kept = length
        if (length == 0) | (position + length > size):
            status = found(Finding.BAD_RECORD)
        elif op == d.Halt.id:  # what comes after it is not read
            status = found(Finding.NO_END)
        elif op == d.GemHandles.id:
            handle = word(record + 1)
            kept = const(i64, 0)
        elif op == d.TileBinningMode.id:
            status = call(binning_mode, context, record)
        elif op == GlShaderState.id:
            status = call(shader_state, context, record, position)
        else:
            copy_bytes(c.memory + c.bin_end, record, length)
            if op == d.IndexedPrimitives.id:
                status = call(indexed, context, record, buffers, handle, position)
            elif op == d.VertexArrayPrimitives.id:
                status = call(vertices, context, record, position)
            elif op == d.StartTileBinning.id:
                status = _fault((c.started != 0) | (c.tiles_x == 0), Finding.BAD_START)
                c.started = 1
            elif op == d.IncrementSemaphore.id:
                status = _fault(position != size - 2, Finding.NOT_AT_END)
                ends = ends + 1
            elif op == d.Flush.id:
                status = _fault(position != size - 1, Finding.NOT_AT_END)
                ends = ends + 1
        if status == int(Finding.DONE):
            c.bin_end = c.bin_end + kept
            position = position + length
    if (status == int(Finding.DONE)) & (ends != 2):
        status = found(Finding.NO_END)
    if ((status == int(Finding.DONE)) | (status == int(Finding.NO_END))) & (c.started == 0):
        status = found(Finding.NOT_STARTED)
    c.position = select(status == int(Finding.DONE), size, begin)
    c.handle = handle
    c.ends = ends
    return status
