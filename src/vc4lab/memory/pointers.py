"""From guest addresses to native pointers, in traced code."""

from __future__ import annotations

from vc4lab.memory.guest import MEMORY_MASK
from vc4lab.simd import Value, i64


def host(base: Value, address: Value) -> Value:
    """Native pointer to a guest address (masked into guest memory)."""
    return base + (address & MEMORY_MASK).zext(i64)
