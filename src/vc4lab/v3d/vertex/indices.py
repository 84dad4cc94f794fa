"""Which vertices a draw uses: range and used map of an index list, natively."""

from __future__ import annotations

from functools import lru_cache

from vc4lab.memory import MEMORY_MASK
from vc4lab.simd import (
    Function,
    NativeFunction,
    NativeModule,
    Value,
    build,
    const,
    i8,
    i16,
    i32,
    i64,
    kernel,
    load,
    max_,
    min_,
    ptr,
    store,
)
from vc4lab.v3d.tile_lists.scan_context import MAX_VERTICES


def _range_kernel(bits: int) -> Function[None]:
    size = bits // 8

    @kernel(args=(ptr, i32, i32, ptr, ptr), returns=None)
    def scan(memory: Value, address: Value, length: Value, used: Value, result: Value) -> None:
        first = const(i32, MAX_VERTICES)
        last = const(i32, -1)
        mark = const(i8, 1)
        for k in range(length):
            place = memory + ((address + k * size) & MEMORY_MASK).zext(i64)
            index = load(i8 if bits == 8 else i16, place).zext(i32)
            store(used + index, mark)
            first = min_(first, index)
            last = max_(last, index)
        store(result, first)
        store(result + 4, last)

    return scan


@lru_cache(maxsize=1)
def _module() -> NativeModule:
    kernels = {"bytes": _range_kernel(8), "shorts": _range_kernel(16)}
    return build("index_range", kernels, float_mode="default", key="index_range")


def range_function(bits: int) -> NativeFunction:
    """Native `(memory, address, length, used map, first and last)` for indices of 8 or 16 bits."""
    return _module()["bytes" if bits == 8 else "shorts"]
