"""Textures whose parameters native code compares: a slot for each that was met before."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from vc4lab.bits import signed32
from vc4lab.simd import Array, Struct, Value, i32, load, ptr, staged

if TYPE_CHECKING:
    from vc4lab.simd import NativeModule
    from vc4lab.v3d.tmu.texture_state import TextureDescriptor, TextureKind

PARAMETERS = 4
"""Parameters of a request that count: P0 to P3."""


class TextureSlot(Struct):
    """P0..P3 of a texture, how many of them count, its native sampler (results of `words` x 16
    lanes), and the one that notes lines of memory as well, if it was asked for."""

    parameters = Array(i32, PARAMETERS)
    used = i32
    words = i32
    sampler = ptr
    descriptor = ptr
    recorder = ptr


@staged
def same_parameters(slot: Value, parameters: Value, used: Value) -> Any:
    """Whether a TextureSlot is that of `used` parameters."""
    known = TextureSlot.at(slot)
    same = known.used == used
    for k in range(PARAMETERS):
        word = load(i32, known.parameters + k * 4)
        same = same & ((word == load(i32, parameters + k * 4)) | (used <= k))
    return same


def padded(words: Sequence[int]) -> tuple[int, int, int, int]:
    """P0 to P3; those that do not count are 0."""
    p0, p1, p2, p3 = (*words, 0, 0, 0)[:PARAMETERS]
    return p0, p1, p2, p3


def fill_slot(
    slot: TextureSlot,
    words: Sequence[int],
    kind: TextureKind,
    descriptor: TextureDescriptor,
    module: NativeModule,
    recorder: NativeModule | None = None,
) -> None:
    """Makes a slot that of a texture with these 1 to 4 parameters."""
    slot.parameters = [signed32(word) for word in padded(words)]
    slot.used, slot.words = len(words), kind.result_words
    slot.sampler, slot.descriptor = module["sample"].address, descriptor.address
    slot.recorder = 0 if recorder is None else recorder["sample"].address
