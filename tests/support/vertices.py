"""Shading vertices in tests: memory, programs, one job."""

import ctypes

import numpy as np

from vc4lab.qpu.text.assembler import assemble
from vc4lab.v3d.vertex.context import DONE, VertexContext, buffer_bytes
from vc4lab.v3d.vertex.pipeline import vertex_pipeline

ENGINES = ("jit", "exact", "interpreter")
UNIFORMS, ARRAYS = 0x2000, 0x10000


def words(text):
    """The words of a program's text."""
    return tuple(assemble(text).words)


def shade(memory, key, first, last, arrays, used=None, status=DONE, textures=(), late=None):
    """Output rows (rows x vertices) of a job; arrays: number → (address, stride)."""
    buffer = (ctypes.c_char * (buffer_bytes(key.rows, last) + 64))()
    start = (ctypes.addressof(buffer) + 63) & ~63
    context = VertexContext(memory=memory.base, output=start, uniforms=UNIFORMS, first=first, last=last)
    for number, (address, stride) in arrays.items():
        context.bases[number], context.strides[number] = address, stride
    for number, texture in enumerate(textures):
        context.textures[number] = texture.address
    if late is not None:
        context.late = late.table.address
    if used is not None:
        marks = (ctypes.c_char * 65536)()
        for index in used:
            marks[index] = 1
        context.used = ctypes.addressof(marks)
    pipeline = vertex_pipeline(key)
    assert pipeline.shade(context) == status
    count = (last >> 4) + 1
    raw = np.frombuffer(ctypes.string_at(start, buffer_bytes(key.rows, last)), np.uint32)
    rows = raw.reshape(count, key.rows, 16).transpose(1, 0, 2).reshape(key.rows, count * 16)
    return rows, context, pipeline
