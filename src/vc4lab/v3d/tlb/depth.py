"""The depth test of a block: with the stencil test it decides which lanes stay on.

Staged functions over one 4x4 block, shared by the compiled pipelines (inlined) and the golden
interpreter (compiled on their own). Source: hardware reference 7.9.
"""

from __future__ import annotations

from dataclasses import dataclass

from vc4lab.records.codes import Compare
from vc4lab.simd import Value, const, mask16, max_, min_, splat, staged
from vc4lab.v3d.state.tile_layout import Z_MAX, TileLayout
from vc4lab.v3d.tlb.stencil import StencilState, stencil_test


@dataclass(frozen=True)
class DepthTest:
    """What a draw's depth test is compiled for."""

    layout: TileLayout
    function: int
    update: bool


def sample_depth(z: Value, step: Value | None) -> Value:
    """Depth of a sample that lies `step` (scalar) from the pixel centre's (bits 23:0 of `z`)."""
    depth = z & Z_MAX
    return depth if step is None else min_(max_(depth + splat(step), 0), Z_MAX)


def compare(function: int, new: Value, old: Value) -> Value:
    """`new function old` per lane for a function known at compile time; a mask."""
    if function == Compare.NEVER:
        return const(mask16, 0)
    if function == Compare.LESS:
        return new < old
    if function == Compare.EQUAL:
        return new == old
    if function == Compare.LESS_EQUAL:
        return new <= old
    if function == Compare.GREATER:
        return new > old
    if function == Compare.NOT_EQUAL:
        return new != old
    if function == Compare.GREATER_EQUAL:
        return new >= old
    return const(mask16, [1] * 16)


@staged
def z_test(
    test: DepthTest, stencil: StencilState | None, reverse: Value, zs: Value, new: Value,
    active: Value,
) -> Value:  # fmt: skip
    """A write of TLB_Z: tests and updates one sample at `zs`; returns the lanes that stay on.

    `new`: depth per lane (24 bits), `active`: lanes that take part, `stencil`: the program's
    `StencilState` or None, `reverse`: i1, the primitive is back-facing.
    """
    old_word = test.layout.load_block(zs)
    old = old_word.shr(8)
    z_passed = compare(test.function, new, old)
    passed = active & z_passed
    if stencil is None:
        if test.update and test.function != Compare.NEVER:
            test.layout.update_block(zs, old_word, (new << 8) | (old_word & 255), passed)
    else:
        passed = stencil_test(test.layout, test.update, stencil, reverse, zs, new, old_word, z_passed, active)
    return passed
