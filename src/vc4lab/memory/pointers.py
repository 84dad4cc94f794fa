"""From guest addresses to native pointers, in traced code."""

from __future__ import annotations

from vc4lab.memory.guest import MEMORY_MASK
from vc4lab.simd import Value, i64


def host(base: Value, address: Value) -> Value:
    """Native pointer to a guest address (masked into guest memory)."""
    return base + (address & MEMORY_MASK).zext(i64)


def word_at(base: Value, number: Value) -> Value:
    """Native pointer to a 32-bit word, by its number (unsigned) after `base`."""
    return base + number.zext(i64) * 4
