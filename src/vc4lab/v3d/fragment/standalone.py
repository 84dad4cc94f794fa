"""The staged TLB functions of the pipelines, compiled on their own for the interpreter."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

from vc4lab.simd import (
    Function,
    NativeModule,
    Value,
    build,
    i32,
    i32x16,
    load,
    ptr,
    splat,
    store,
    var,
)
from vc4lab.v3d.fragment import tlb
from vc4lab.v3d.fragment.tile_context import FragmentBatch, FragmentKey, TileContext
from vc4lab.v3d.fragment.tile_layout import PLANE_BYTES, SAMPLE_BYTES, TileLayout
from vc4lab.v3d.fragment.tmu import direct_lookup


def _lane_mask(pointer: Value) -> Value:
    return load(i32x16, pointer) != 0


def _stencil_cells(batch: Any) -> tlb.StencilState:
    place = batch.field_ptr("stencil")
    count = len(tlb.STENCIL_CELLS)
    return tlb.StencilState(*(var(i32, load(i32, place + 4 * k)) for k in range(count)))


def _flags(batch: Any, layout: TileLayout) -> list[Value]:
    return tlb.sample_masks(load(i32x16, batch.field_ptr("flags")), layout.samples)


def _z(test: tlb.DepthTest, counting: bool) -> Callable[[Value, Value, Value], None]:
    def body(context_pointer: Value, value: Value, mask: Value) -> None:
        context: Any = TileContext.at(context_pointer)
        batch: Any = FragmentBatch.at(context.batch)
        wanted = _lane_mask(mask)
        reverse = batch.reverse != 0
        z = load(i32x16, value)
        left, taking, matched = [], [], []
        for number, flags in enumerate(_flags(batch, test.layout)):
            step = None
            if test.layout.multisample:
                step = load(i32, batch.field_ptr("z_steps") + 4 * number)
            place = context.field_ptr("zs") + batch.place + SAMPLE_BYTES * number
            taking.append(flags & wanted)
            if counting:
                cells = _stencil_cells(batch)
                lanes = tlb.stencil_matches(cells, reverse, test.layout, place)
                matched.append(lanes & flags & wanted)
            passed = tlb.z_test(
                test, _stencil_cells(batch), reverse, place, tlb.sample_depth(z, step),
                flags & wanted,
            )  # fmt: skip
            left.append(passed | (flags & ~wanted))
        store(batch.field_ptr("flags"), tlb.flags_word(left))
        if counting:
            from vc4lab.v3d.fragment.counting import any_lane, count_depth

            count_depth(context, any_lane(taking), any_lane(matched), any_lane(left) & wanted)

    return body


def _stencil(context_pointer: Value, word: Value) -> None:
    context: Any = TileContext.at(context_pointer)
    batch: Any = FragmentBatch.at(context.batch)
    state = _stencil_cells(batch)
    state.setup(word)
    for k, name in enumerate(tlb.STENCIL_CELLS):
        store(batch.field_ptr("stencil") + 4 * k, getattr(state, name).get())


def _colour(layout: TileLayout, counting: bool) -> Callable[[Value, Value, Value], None]:
    def body(context_pointer: Value, value: Value, mask: Value) -> None:
        context: Any = TileContext.at(context_pointer)
        batch: Any = FragmentBatch.at(context.batch)
        colour = context.field_ptr("colour") + batch.place + batch.colour_word * PLANE_BYTES
        sample = batch.colour_sample
        if counting:
            from vc4lab.v3d.fragment.counting import any_lane, count_colour

            active = any_lane(_flags(batch, layout)) & _lane_mask(mask)
            count_colour(context, batch.valid, active)
        for number, flags in enumerate(_flags(batch, layout)):
            chosen = splat((sample == number) | (sample < 0))
            active = flags & _lane_mask(mask) & chosen
            place = colour + SAMPLE_BYTES * number
            tlb.colour_write(layout, place, load(i32x16, value), active)

    return body


def _load(layout: TileLayout) -> Callable[[Value, Value], None]:
    def body(context_pointer: Value, result: Value) -> None:
        context: Any = TileContext.at(context_pointer)
        batch: Any = FragmentBatch.at(context.batch)
        place = batch.place + batch.colour_word * PLANE_BYTES + batch.colour_sample * SAMPLE_BYTES
        store(result, layout.load_block(context.field_ptr("colour") + place))

    return body


def _mask(layout: TileLayout) -> Callable[[Value, Value, Value], None]:
    def body(context_pointer: Value, value: Value, mask: Value) -> None:
        context: Any = TileContext.at(context_pointer)
        batch: Any = FragmentBatch.at(context.batch)
        words = load(i32x16, value) & 255
        for number, flags in enumerate(_flags(batch, layout)):
            place = context.field_ptr("mask") + batch.place + SAMPLE_BYTES * number
            tlb.colour_write(layout, place, words, flags & _lane_mask(mask))

    return body


def _load_mask(layout: TileLayout) -> Callable[[Value, Value], None]:
    def body(context_pointer: Value, result: Value) -> None:
        context: Any = TileContext.at(context_pointer)
        batch: Any = FragmentBatch.at(context.batch)
        store(result, layout.load_block(context.field_ptr("mask") + batch.place))

    return body


def _direct(memory: Value, addresses: Value, result: Value) -> None:
    store(result, direct_lookup(memory, load(i32x16, addresses)))


@lru_cache(maxsize=64)
def tlb_functions(test: tlb.DepthTest, counting: bool = False) -> NativeModule:
    """Native `z`, `colour`, `mask` (context, words, mask), their loads, `stencil` and `direct`.

    `colour` writes sample `FragmentBatch.colour_sample` (-1: all) and word `colour_word`; `load`
    reads them.
    """
    three, two = (ptr, ptr, ptr), (ptr, ptr)

    functions = {
        "z": Function(args=three, body=_z(test, counting)),
        "colour": Function(args=three, body=_colour(test.layout, counting)),
        "load": Function(args=two, body=_load(test.layout)),
        "mask": Function(args=three, body=_mask(test.layout)),
        "load_mask": Function(args=two, body=_load_mask(test.layout)),
        "stencil": Function(args=(ptr, i32), body=_stencil),
        "direct": Function(args=three, body=_direct),
    }
    return build("tlb", functions, key=f"tlb-{test!r}-{counting}")


@lru_cache(maxsize=16)
def coverage_function(key: FragmentKey) -> NativeModule:
    """Native `load_coverage` (context, result): signal 7."""
    from vc4lab.v3d.fragment.coverage_pipe import load_coverage

    def body(context_pointer: Value, result: Value) -> None:
        context: Any = TileContext.at(context_pointer)
        batch: Any = FragmentBatch.at(context.batch)
        zs = context.field_ptr("zs") + batch.place
        store(result, load_coverage(key, zs, _flags(batch, key.layout)))

    function = Function(args=(ptr, ptr), body=body)
    return build("coverage", {"load_coverage": function}, key=f"coverage-{key!r}")
