"""Shader records and uniforms of shaders that are known: buffer indices become addresses.

Stream formats: per record 3 + n buffer indices (fragment, vertex, coordinate code, then attribute
buffers) and the record with offsets in place of addresses; per program one index for each texture
request, then the words it consumes, in the textual order of its instructions.
Source: Linux vc4_validate.c and vc4_validate_shaders.c.
"""

from __future__ import annotations

from typing import Any

from vc4lab.drm.kernel.native.bin_list import bin_list, byte, gl_record_bytes, word
from vc4lab.drm.kernel.native.context import (
    EXTENDED,
    NO_WORD,
    REQUEST_BYTES,
    STREAM_HEAD,
    USE_BYTES,
    Finding,
    JobContext,
    TextureFinding,
    found,
)
from vc4lab.drm.kernel.native.texture_check import check_lookup, check_texture
from vc4lab.drm.uapi.submit import PAGE
from vc4lab.records.shader import ALIGNMENT, ATTRIBUTE_SIZE, EXTENDED_STRIDES, GL_FIXED_SIZE, GlShaderRecord
from vc4lab.simd import Value, call, const, i32, i64, kernel, load, min_, ptr, staged, store

_LARGEST = 1 << 30
"""Vertex numbers count up to here: no buffer has as many bytes."""
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
def relocate(context: Value, words: Value, request: Value, row: Value) -> Value:
    """One texture request: is it inside of its buffer? Then the buffer's address is added."""
    c = JobContext.at(context)
    first = words + word(request + 4) * 4
    second = word(request + 8)
    size = word(row + 4)
    base = word(first)
    if word(request) != 0:
        reason = check_lookup(base, word(words + second * 4), size)
    else:
        p2, p3 = _parameter(words, word(request + 12)), _parameter(words, word(request + 16))
        reason = call(check_texture, context, base, _parameter(words, second), p2, p3, size)
    if reason != int(TextureFinding.ACCEPTED):
        c.reason = reason.zext(i64)
        return found(Finding.BAD_TEXTURE)
    store(first, (base + word(row)).trunc(i32))
    return found(Finding.DONE)


@kernel(args=(ptr, ptr, ptr, ptr), returns=i32)
def uniforms(context: Value, source: Value, buffers: Value, stream: Value) -> Value:
    """Takes a program's words off the stream, and puts them where `next_uniforms` was."""
    c = JobContext.at(context)
    count, requests, resets = word(stream), word(stream + 4), word(stream + 8)
    start = c.next_word
    needed = (count + requests) * 4
    if c.words_size - start < needed:
        return found(Finding.SHORT_UNIFORMS)
    address = c.next_uniforms
    indices = source + start
    words = c.memory + address
    copy_words(words, indices + requests * 4, count)
    request = stream + STREAM_HEAD
    number = const(i64, 0)
    while number < requests:
        c.item = number
        index = word(indices + number * 4)
        if index >= c.buffer_count:
            return found(Finding.BAD_TEXTURE_BUFFER)
        status = call(relocate, context, words, request, buffers + (index << 4))
        if status != int(Finding.DONE):
            return status
        request = request + REQUEST_BYTES
        number = number + 1
    for k in range(resets.trunc(i32)):
        store(words + word(request + k * 4) * 4, address.trunc(i32))
    c.next_word = start + needed
    c.next_uniforms = address + count * 4
    return found(Finding.DONE)


@kernel(args=(ptr, ptr, ptr, ptr, ptr, i64), returns=i32)
def attributes(
    context: Value, use: Value, indices: Value, record: Value, buffers: Value, count: Value
) -> Value:
    """The arrays of a record, copied already, with their buffers' addresses."""
    c = JobContext.at(context)
    extended = (load(i32, use) & EXTENDED) != 0
    highest = min_(word(use + 4), const(i64, _LARGEST))
    number = const(i64, 0)
    while number < count:
        c.item = number
        array = record + GL_FIXED_SIZE + number * ATTRIBUTE_SIZE
        stride = byte(array + 5)
        if extended:
            upper = word(record + EXTENDED_STRIDES + number * 4) & 0xFFFFFF00
            stride = stride | upper
        index = word(indices + number * 4)
        if index >= c.buffer_count:
            return found(Finding.BAD_ATTRIBUTE_BUFFER)
        row = buffers + (index << 4)
        offset = word(array)
        if offset + byte(array + 4) + 1 + stride * highest > word(row + 4):
            return found(Finding.ATTRIBUTE_OUTSIDE)
        store(array, (offset + word(row)).trunc(i32))
        number = number + 1
    return found(Finding.DONE)


@staged
def copy_record(target: Value, source: Value, size: Value) -> None:
    """A record's bytes, and zeros up to where the next one may begin."""
    copy_words(target, source, size >> 2)
    rest: Any = ((-size & (ALIGNMENT - 1)) >> 2).trunc(i32)
    for k in range(rest):
        store(target + size + k * 4, const(i32, 0))


@kernel(args=(ptr, ptr, ptr, ptr, ptr), returns=i32)
def shader_record(context: Value, use: Value, data: Value, words: Value, buffers: Value) -> Value:
    """The next record of the stream, with its programs' uniforms.

    `data` is where the stream has come to; whether it is long enough was looked at.
    """
    c = JobContext.at(context)
    shape = word(use)
    count = shape & (EXTENDED - 1)
    extended = (shape & EXTENDED) != 0
    indices = data
    source = data + (count + len(PROGRAMS)) * 4
    target = c.memory + c.use_address
    copy_record(target, source, gl_record_bytes(count, extended))
    single = load(i32, source) & 1
    for number, name in enumerate(PROGRAMS):
        c.program = number
        index = word(indices + 4 * number)
        if index >= c.buffer_count:
            return found(Finding.BAD_CODE_BUFFER)
        if load(i32, source + _place(f"{name}_code")) != 0:
            return found(Finding.CODE_WITH_OFFSET)
        row = buffers + (index << 4)
        stream = load(ptr, row + 8)
        if load(i64, row + 8) == 0:
            return found(Finding.UNKNOWN_SHADER)
        threaded = load(i32, stream + 12)
        if name == "fs":
            store(use + 8, index.trunc(i32))
            if threaded == single:
                return found(Finding.BAD_THREADS)
        elif threaded != 0:
            return found(Finding.BAD_THREADS)
        store(target + _place(f"{name}_code"), load(i32, row))
        store(target + _place(f"{name}_uniforms"), c.next_uniforms.trunc(i32))
        status = call(uniforms, context, words, buffers, stream)
        if status != int(Finding.DONE):
            return status
    arrays = indices + 4 * len(PROGRAMS)
    return call(attributes, context, use, arrays, target, buffers, count)


@kernel(args=(ptr, ptr, ptr, ptr, ptr), returns=i32)
def build_job(context: Value, bin_cl: Value, records: Value, words: Value, buffers: Value) -> Value:
    """The binning list, then all shader records with their uniforms; from where it stopped."""
    c = JobContext.at(context)
    status = call(bin_list, context, bin_cl, buffers)
    if status != int(Finding.DONE):
        return status
    if c.next_uniforms == 0:  # a job whose stream is too short for its records is refused below
        end = min_(c.next_record, c.first_record + c.records_size)
        c.next_uniforms = (end + (PAGE - 1)) & ~(PAGE - 1)
    while c.use_number < c.use_count:
        use = c.uses + c.use_number * USE_BYTES
        shape = word(use)
        count = shape & (EXTENDED - 1)
        size = gl_record_bytes(count, (shape & EXTENDED) != 0)
        taken = (count + len(PROGRAMS)) * 4 + size
        if c.records_size - c.use_record < taken:
            return found(Finding.SHORT_RECORDS)
        next_word, next_uniforms = c.next_word, c.next_uniforms
        status = call(shader_record, context, use, records + c.use_record, words, buffers)
        if status != int(Finding.DONE):
            if status == int(Finding.UNKNOWN_SHADER):
                c.next_word = next_word
                c.next_uniforms = next_uniforms
            return status
        c.use_record = c.use_record + taken
        c.use_address = (c.use_address + size + 15) & ~15
        c.use_number = c.use_number + 1
    return found(Finding.DONE)
