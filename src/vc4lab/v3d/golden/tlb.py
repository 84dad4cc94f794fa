"""The staged TLB functions of the pipelines, compiled on their own for the golden interpreter."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from vc4lab.simd import (
    Function,
    NativeFunction,
    Struct,
    Value,
    build,
    const,
    i32,
    i32x16,
    load,
    ptr,
    select,
    splat,
    staged,
    store,
    var,
)
from vc4lab.v3d.state.tile_context import (
    FragmentBatch,
    FragmentKey,
    FragmentQueue,
    TileContext,
)
from vc4lab.v3d.state.tile_layout import PLANE_BYTES, SAMPLE_BYTES, TileLayout
from vc4lab.v3d.tlb.depth import DepthTest, sample_depth, z_test
from vc4lab.v3d.tlb.samples import any_lane, colour_write, flags_word, sample_masks
from vc4lab.v3d.tlb.stencil import STENCIL_CELLS, StencilState, stencil_matches

WRITE_Z, WRITE_COLOUR, WRITE_MASK, WRITE_STENCIL, WRITE_FLAGS, WRITE_REVERSE = range(6)
LOAD_COLOUR, LOAD_MASK, LOAD_COVERAGE = range(6, 9)
"""Kinds of `TileAccess`."""

EACH_SAMPLE = -1
"""`TileAccess.sample` of a write of all samples."""

_LANE_BYTES = 64


class TileAccess(Struct):
    """One access of a program to the tile buffer or to its pixels' flags, made by many blocks.

    `values` and `masks` point to 16 words for each block: what is written (or read) and, not 0,
    the lanes that take part. `sample` and `word`: which part of a pixel's colour is meant.
    """

    kind = i32
    sample = i32
    word = i32
    reserved = i32
    values = ptr
    masks = ptr


@dataclass(frozen=True)
class AccessKey:
    """What `tile_accesses` is compiled for."""

    test: DepthTest
    counting: bool
    vg_mask: bool
    coverage: FragmentKey | None
    """`FragmentKey.coverage_reads` of a program that reads coverage."""


@lru_cache(maxsize=64)
def tile_accesses(parts: AccessKey) -> NativeFunction:
    """Native `(context, queue, accesses, count, rows, first, end)`.

    Blocks `first` … `end` - 1 of `rows` (numbers of blocks of the queue; `values` and `masks` have
    their order) make their accesses one block after the other.
    """

    def body(*arguments: Value) -> Any:
        return _all_blocks(parts, *arguments)

    entry = Function((ptr, ptr, ptr, i32, ptr, i32, i32), None, body, name="accesses")
    return build("tlb", {"accesses": entry}, key=f"tlb-{parts!r}")["accesses"]


@staged
def _all_blocks(
    parts: AccessKey, context_pointer: Value, queue: Value, accesses: Value, count: Value,
    rows: Value, first: Value, end: Value,
) -> None:  # fmt: skip
    context = TileContext.at(context_pointer)
    while first < end:
        row = load(i32, rows + first * 4)
        batch = FragmentBatch.at(queue + (row * FragmentBatch.size + FragmentQueue.size))
        number = const(i32, 0)
        while number < count:
            access = TileAccess.at(accesses + number * TileAccess.size)
            values, masks = access.values + first * _LANE_BYTES, access.masks + first * _LANE_BYTES
            _one(parts, context, batch, access, values, masks)
            number = number + 1
        first = first + 1


@staged
def _one(
    parts: AccessKey,
    context: TileContext,
    batch: FragmentBatch,
    access: TileAccess,
    values: Value,
    masks: Value,
) -> None:
    kind = access.kind
    if kind == WRITE_Z:
        _z(parts, context, batch, values, masks)
    elif kind == WRITE_COLOUR:
        _colour(parts, context, batch, access, values, masks)
    elif kind == LOAD_COLOUR:
        place = access.word * PLANE_BYTES + access.sample * SAMPLE_BYTES
        store(values, parts.test.layout.load_block(_place(context, batch, "colour") + place))
    elif kind == WRITE_STENCIL:
        _stencil(batch, load(i32, values))
    elif kind == WRITE_FLAGS:
        _set_flags(parts.test.layout, batch, access.word, values, masks)
    elif kind == WRITE_REVERSE:
        batch.reverse = select(load(i32, masks) != 0, load(i32, values) & 1, batch.reverse)
    if parts.vg_mask:
        if kind == WRITE_MASK:
            _mask(parts, context, batch, values, masks)
        elif kind == LOAD_MASK:
            store(values, parts.test.layout.load_block(_place(context, batch, "mask")))
    if parts.coverage is not None:
        if kind == LOAD_COVERAGE:
            from vc4lab.v3d.pse.coverage_pipe import load_coverage

            flags = _flags(batch, parts.test.layout)
            store(values, load_coverage(parts.coverage, _place(context, batch, "zs"), flags))


def _place(context: TileContext, batch: FragmentBatch, plane: str) -> Value:
    return context.field_ptr(plane) + batch.place


def _lane_mask(pointer: Value) -> Value:
    return load(i32x16, pointer) != 0


def _flags(batch: FragmentBatch, layout: TileLayout, name: str = "flags") -> list[Value]:
    return sample_masks(load(i32x16, batch.field_ptr(name)), layout.samples)


def _stencil_cells(batch: FragmentBatch) -> StencilState:
    place = batch.stencil
    count = len(STENCIL_CELLS)
    return StencilState(*(var(i32, load(i32, place + 4 * k)) for k in range(count)))


def _z(
    parts: AccessKey, context: TileContext, batch: FragmentBatch, values: Value, masks: Value
) -> None:
    test, wanted = parts.test, _lane_mask(masks)
    reverse = batch.reverse != 0
    z = load(i32x16, values)
    left, drawn, taking, matched = [], [], [], []
    before = _flags(batch, test.layout)
    for number, flags in enumerate(_flags(batch, test.layout, "asked")):
        step = None
        if test.layout.multisample:
            step = load(i32, batch.z_steps + 4 * number)
        place = _place(context, batch, "zs") + SAMPLE_BYTES * number
        taking.append(flags & wanted)
        if parts.counting:
            cells = _stencil_cells(batch)
            lanes = stencil_matches(cells, reverse, test.layout, place)
            matched.append(lanes & flags & wanted)
        passed = z_test(
            test, _stencil_cells(batch), reverse, place, sample_depth(z, step), flags & wanted
        )
        left.append(passed | (flags & ~wanted))
        drawn.append(passed | (before[number] & ~wanted))
    store(batch.asked, flags_word(left))
    store(batch.flags, flags_word(drawn))
    if parts.counting:
        from vc4lab.v3d.fragment.counting import count_depth

        count_depth(context, any_lane(taking), any_lane(matched), any_lane(left) & wanted)


def _stencil(batch: FragmentBatch, word: Value) -> None:
    state = _stencil_cells(batch)
    state.setup(word)
    for k, name in enumerate(STENCIL_CELLS):
        store(batch.stencil + 4 * k, getattr(state, name).get())


@staged
def _set_flags(
    layout: TileLayout, batch: FragmentBatch, only_asked: Value, values: Value, masks: Value
) -> None:
    place = batch.asked
    word = flags_word(sample_masks(load(i32x16, values), layout.samples))
    word = select(_lane_mask(masks), word, load(i32x16, place))
    store(place, word)
    if only_asked == 0:
        store(batch.flags, word)


def _colour(
    parts: AccessKey,
    context: TileContext,
    batch: FragmentBatch,
    access: TileAccess,
    values: Value,
    masks: Value,
) -> None:
    layout, wanted = parts.test.layout, _lane_mask(masks)
    colour = _place(context, batch, "colour") + access.word * PLANE_BYTES
    sample = access.sample
    if parts.counting:
        from vc4lab.v3d.fragment.counting import count_colour

        count_colour(context, batch.valid, any_lane(_flags(batch, layout)) & wanted)
    for number, flags in enumerate(_flags(batch, layout)):
        chosen = splat((sample == number) | (sample == EACH_SAMPLE))
        place = colour + SAMPLE_BYTES * number
        colour_write(layout, place, load(i32x16, values), flags & wanted & chosen)


def _mask(
    parts: AccessKey, context: TileContext, batch: FragmentBatch, values: Value, masks: Value
) -> None:
    layout, words = parts.test.layout, load(i32x16, values) & 255
    for number, flags in enumerate(_flags(batch, layout)):
        place = _place(context, batch, "mask") + SAMPLE_BYTES * number
        colour_write(layout, place, words, flags & _lane_mask(masks))
