"""The compiled form of `shaders.py`: records and uniforms of shaders that are known."""

from __future__ import annotations

from typing import Any

from vc4lab.drm.kernel.native.bin_list import bin_list, byte, gl_record_bytes, word
from vc4lab.drm.kernel.native.context import (
    DONE,
    EXTENDED,
    NO_WORD,
    REQUEST_BYTES,
    STREAM_HEAD,
    UNUSUAL,
    USE_BYTES,
    JobContext,
)
from vc4lab.drm.kernel.native.texture_check import is_bad_lookup, is_bad_texture
from vc4lab.drm.uapi.submit import PAGE
from vc4lab.records.shader import (
    ALIGNMENT,
    ATTRIBUTE_SIZE,
    EXTENDED_STRIDES,
    GL_FIXED_SIZE,
    GlShaderRecord,
)
from vc4lab.simd import Value, call, const, i32, i64, kernel, load, ptr, staged, store

FAILED = -1
PROGRAMS = ("fs", "vs", "cs")
"""In the order of a record's buffer indices."""


def _place(name: str) -> int:
    return GlShaderRecord.layout_fields[name].lo // 8


@staged
def copy_words(target: Value, source: Value, count: Any) -> None:
    """Copy 32-bit words."""
    for k in range(count.trunc(i32)):
        store(target + k * 4, load(i32, source + k * 4))


@staged
def _parameter(words: Value, index: Value) -> Value:
    """A texture parameter by its place in the stream; 0 for one that the request does not have."""
    given = index != NO_WORD
    value = const(i64, 0)
    if given:
        value = word(words + index * 4)
    return value


@kernel(args=(ptr, ptr, ptr, ptr), returns=i32)
def relocate(words: Value, request: Value, row: Value, stream: Value) -> Value:
    """One texture request: is it inside of its buffer? Then the buffer's address is added."""
    first = words + word(request + 4) * 4
    second = word(request + 8)
    size = word(row + 4)
    base = word(first)
    if word(request) != 0:
        bad = is_bad_lookup(base, word(words + second * 4), size)
    else:
        p2, p3 = _parameter(words, word(request + 12)), _parameter(words, word(request + 16))
        bad = call(is_bad_texture, base, _parameter(words, second), p2, p3, size) != 0
    if bad:
        return const(i32, UNUSUAL)
    store(first, (base + word(row)).trunc(i32))
    return const(i32, DONE)


@kernel(args=(ptr, ptr, ptr, ptr), returns=i64)
def uniforms(context: Value, source: Value, buffers: Value, stream: Value) -> Value:
    """Takes a program's words off the stream; the address of its uniforms, or FAILED."""
    c = JobContext.at(context)
    failed = const(i64, FAILED)
    count, requests, resets = word(stream), word(stream + 4), word(stream + 8)
    start = c.next_word
    needed = (count + requests) * 4
    address = c.next_uniforms
    if (c.words_size - start < needed) | (address + count * 4 > c.limit):
        return failed
    c.next_word = start + needed
    c.next_uniforms = address + count * 4
    indices = source + start
    words = c.memory + address
    copy_words(words, indices + requests * 4, count)
    request = stream + STREAM_HEAD
    number = const(i64, 0)
    while number < requests:
        index = word(indices + number * 4)
        if index >= c.buffer_count:
            return failed
        if call(relocate, words, request, buffers + (index << 4), stream) != DONE:
            return failed
        request = request + REQUEST_BYTES
        number = number + 1
    for k in range(resets.trunc(i32)):
        store(words + word(request + k * 4) * 4, address.trunc(i32))
    return address


@kernel(args=(ptr, ptr, ptr, ptr, ptr, i64), returns=i32)
def attributes(
    context: Value, use: Value, indices: Value, record: Value, buffers: Value, count: Value
) -> Value:
    """The arrays of a record, copied already, with their buffers' addresses."""
    c = JobContext.at(context)
    extended = (load(i32, use) & EXTENDED) != 0
    highest = word(use + 4)
    number = const(i64, 0)
    while number < count:
        array = record + GL_FIXED_SIZE + number * ATTRIBUTE_SIZE
        stride = byte(array + 5)
        if extended:
            upper = word(record + EXTENDED_STRIDES + number * 4) & 0xFFFFFF00
            stride = stride | upper
        index = word(indices + number * 4)
        if index >= c.buffer_count:
            return const(i32, UNUSUAL)
        row = buffers + (index << 4)
        offset = word(array)
        if offset + byte(array + 4) + 1 + stride * highest > word(row + 4):
            return const(i32, UNUSUAL)
        store(array, (offset + word(row)).trunc(i32))
        number = number + 1
    return const(i32, DONE)


@staged
def copy_record(target: Value, source: Value, size: Value) -> None:
    """A record's bytes, and zeros up to where the next one may begin."""
    copy_words(target, source, size >> 2)
    rest: Any = ((-size & (ALIGNMENT - 1)) >> 2).trunc(i32)
    for k in range(rest):
        store(target + size + k * 4, const(i32, 0))


@kernel(args=(ptr, ptr, ptr, ptr, ptr, i64), returns=i64)
def shader_record(
    context: Value, use: Value, data: Value, words: Value, buffers: Value, address: Value
) -> Value:
    """The next record of the stream at guest `address`; its bytes in the stream, or FAILED.

    `data` is where the stream has come to; whether it is long enough was looked at.
    """
    c = JobContext.at(context)
    failed = const(i64, FAILED)
    shape = word(use)
    count = shape & (EXTENDED - 1)
    extended = (shape & EXTENDED) != 0
    indices = data
    source = data + (count + len(PROGRAMS)) * 4
    target = c.memory + address
    copy_record(target, source, gl_record_bytes(count, extended))
    single = load(i32, source) & 1
    for number, name in enumerate(PROGRAMS):
        index = word(indices + 4 * number)
        if (index >= c.buffer_count) | (load(i32, source + _place(f"{name}_code")) != 0):
            return failed
        row = buffers + (index << 4)
        stream = load(ptr, row + 8)
        if load(i64, row + 8) == 0:
            return failed
        threaded = load(i32, stream + 12)
        if name == "fs":
            store(use + 8, index.trunc(i32))
            if threaded == single:
                return failed
        elif threaded != 0:
            return failed
        place = call(uniforms, context, words, buffers, stream)
        if place < 0:
            return failed
        store(target + _place(f"{name}_code"), load(i32, row))
        store(target + _place(f"{name}_uniforms"), place.trunc(i32))
    arrays = indices + 4 * len(PROGRAMS)
    if call(attributes, context, use, arrays, target, buffers, count) != DONE:
        return failed
    return (count + len(PROGRAMS)) * 4 + gl_record_bytes(count, extended)


@kernel(args=(ptr, ptr, ptr, ptr, ptr), returns=i32)
def build_job(context: Value, bin_cl: Value, records: Value, words: Value, buffers: Value) -> Value:
    """The binning list, then all shader records with their uniforms."""
    c = JobContext.at(context)
    if call(bin_list, context, bin_cl, buffers) != DONE:
        return const(i32, UNUSUAL)
    c.next_uniforms = (c.next_record + (PAGE - 1)) & ~(PAGE - 1)
    c.next_word = 0
    if c.next_uniforms > c.limit:
        return const(i32, UNUSUAL)
    address = c.first_record
    position = const(i64, 0)
    number = const(i64, 0)
    while number < c.use_count:
        use = c.uses + number * USE_BYTES
        shape = word(use)
        count = shape & (EXTENDED - 1)
        size = gl_record_bytes(count, (shape & EXTENDED) != 0)
        if c.records_size - position < (count + len(PROGRAMS)) * 4 + size:
            return const(i32, UNUSUAL)
        taken = call(shader_record, context, use, records + position, words, buffers, address)
        if taken < 0:
            return const(i32, UNUSUAL)
        position = position + taken
        address = (address + size + 15) & ~15
        number = number + 1
    return const(i32, DONE)
