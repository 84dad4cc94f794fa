"""The staged TLB functions of the pipelines, compiled on their own for the interpreter."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

from vc4lab.simd import Function, NativeModule, Value, build, i32, i32x16, load, ptr, store, var
from vc4lab.v3d.fragment import tlb
from vc4lab.v3d.fragment.tile_context import FragmentBatch, TileContext
from vc4lab.v3d.fragment.tmu import direct_lookup


def _lane_mask(pointer: Value) -> Value:
    return load(i32x16, pointer) != 0


def _stencil_cells(batch: Any) -> tlb.StencilState:
    place = batch.field_ptr("stencil")
    count = len(tlb.STENCIL_CELLS)
    return tlb.StencilState(*(var(i32, load(i32, place + 4 * k)) for k in range(count)))


def _z(function: int, z_update: bool) -> Callable[[Value, Value, Value], None]:
    def body(context_pointer: Value, value: Value, mask: Value) -> None:
        context: Any = TileContext.at(context_pointer)
        batch: Any = FragmentBatch.at(context.batch)
        flags = _lane_mask(batch.field_ptr("flags"))
        wanted = _lane_mask(mask)
        reverse = batch.reverse != 0
        passed = tlb.z_test(
            function, z_update, _stencil_cells(batch), reverse,
            context.field_ptr("zs") + batch.place, load(i32x16, value), flags & wanted,
        )  # fmt: skip
        store(batch.field_ptr("flags"), (passed | (flags & ~wanted)).zext(i32))

    return body


def _stencil(context_pointer: Value, word: Value) -> None:
    context: Any = TileContext.at(context_pointer)
    batch: Any = FragmentBatch.at(context.batch)
    state = _stencil_cells(batch)
    state.setup(word)
    for k, name in enumerate(tlb.STENCIL_CELLS):
        store(batch.field_ptr("stencil") + 4 * k, getattr(state, name).get())


def _colour(context_pointer: Value, value: Value, mask: Value) -> None:
    context: Any = TileContext.at(context_pointer)
    batch: Any = FragmentBatch.at(context.batch)
    active = _lane_mask(batch.field_ptr("flags")) & _lane_mask(mask)
    tlb.colour_write(context.field_ptr("colour") + batch.place, load(i32x16, value), active)


def _load(context_pointer: Value, result: Value) -> None:
    context: Any = TileContext.at(context_pointer)
    batch: Any = FragmentBatch.at(context.batch)
    store(result, tlb.colour_load(context.field_ptr("colour") + batch.place))


def _direct(memory: Value, addresses: Value, result: Value) -> None:
    store(result, direct_lookup(memory, load(i32x16, addresses)))


@lru_cache(maxsize=64)
def tlb_functions(function: int, z_update: bool) -> NativeModule:
    """Native `z`, `colour` (context, words, mask), `load`, `stencil` and `direct`."""
    three, two = (ptr, ptr, ptr), (ptr, ptr)

    functions = {
        "z": Function(args=three, body=_z(function, z_update)),
        "colour": Function(args=three, body=_colour),
        "load": Function(args=two, body=_load),
        "stencil": Function(args=(ptr, i32), body=_stencil),
        "direct": Function(args=three, body=_direct),
    }
    return build("tlb", functions, key=f"tlb-{function}-{z_update}")
