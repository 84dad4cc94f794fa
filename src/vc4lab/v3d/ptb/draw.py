"""The beginning of a draw of primitives whose vertices are shaded: records 32 and 33."""

from __future__ import annotations

from vc4lab.records.codes import ListData, PrimitiveMode
from vc4lab.records.states import PrimitiveListFormat
from vc4lab.simd import (
    Value,
    alloca,
    call,
    const,
    i8,
    i32,
    kernel,
    load,
    max_,
    ptr,
    select,
    splat,
    staged,
    store,
    table,
)
from vc4lab.v3d.ptb.context import WORK_PER_CALL, BinnerContext
from vc4lab.v3d.ptb.state_records import apply_state
from vc4lab.v3d.state.draw_input import PRIMITIVE_TYPE
from vc4lab.v3d.state.native_records import RECORD_SLOT


@staged
def primitive_type(mode: Value) -> Value:
    """What primitives of a mode are in compressed lists."""
    return load(i8, table(i8, list(PRIMITIVE_TYPE)) + mode).zext(i32)


@staged
def primitives(mode: Value, length: Value) -> Value:
    """How many primitives `length` vertices make."""
    count = max_(length - 2, const(i32, 0))
    if mode == PrimitiveMode.POINTS:
        count = length
    elif mode == PrimitiveMode.LINES:
        count = length.udiv(2)
    elif mode == PrimitiveMode.LINE_LOOP:
        count = select(length > 1, length, const(i32, 0))
    elif mode == PrimitiveMode.LINE_STRIP:
        count = max_(length - 1, const(i32, 0))
    elif mode == PrimitiveMode.TRIANGLES:
        count = length.udiv(3)
    return count


@kernel(args=(ptr,), returns=None)
def begin_draw(context: Value) -> None:
    """A draw whose mode, vertices and indices the context describes, before its first primitive.

    If the format of its lists is new, tiles get record 56.
    """
    c = BinnerContext.at(context)
    kind = primitive_type(c.mode)
    form = kind | ListData.INDEX16 << 4
    if c.format_in_force != form:
        record = alloca(RECORD_SLOT)
        store(record, splat(const(i8, 0)))
        store(record, const(i8, PrimitiveListFormat.id))
        store(record + 1, form.trunc(i8))
        call(apply_state, context, const(i32, PrimitiveListFormat.id), record)
    c.primitive_count = primitives(c.mode, c.length)
    c.primitive = 0
    c.part = -1
    c.tile_x = -1
    c.clip_record = 0
    c.key = ((c.counter << 2) | kind) + 1
    c.drawn = 1
    c.work = WORK_PER_CALL
