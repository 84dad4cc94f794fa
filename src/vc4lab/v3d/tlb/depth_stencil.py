"""The depth and stencil tests of a block, which decide which lanes stay on.

Staged functions over one 4x4 block, shared by the compiled pipelines (inlined) and the reference
interpreter (compiled on their own). Source: hardware reference 7.9.
"""

from __future__ import annotations

from dataclasses import dataclass

from vc4lab.records.codes import Compare
from vc4lab.simd import Cell, Value, const, i32, mask16, max_, min_, select, splat, staged
from vc4lab.v3d.state.frame_mode import Z_MAX, TileLayout

STENCIL_CELLS = ("front", "back", "front_mask", "back_mask", "front_on", "back_on")


def stencil_operation(code: Value, old: Value, reference: Value) -> Value:
    """Result of stencil operation `code` (scalar) on the stored values `old` (0..255)."""
    results = (
        splat(const(i32, 0)),
        old,
        splat(reference),
        min_(old + 1, 255),
        max_(old - 1, 0),
        old ^ 255,
        (old + 1) & 255,
        (old - 1) & 255,
    )
    value = results[0]
    for number in range(1, 8):
        value = select(splat(code == number), results[number], value)
    return value


@dataclass
class StencilState:
    """The two stencil configurations of a running program, as staged cells (see STENCIL_CELLS)."""

    front: Cell
    back: Cell
    front_mask: Cell
    back_mask: Cell
    front_on: Cell
    back_on: Cell

    def setup(self, word: Value) -> None:
        """A write of TLB_STENCIL_SETUP: `word` is a scalar i32."""
        _stencil_setup(self, word)


@staged
def _stencil_setup(state: StencilState, word: Value) -> None:
    side = word.shr(30)
    if side == 0:
        state.front_mask.set(word & 255)
        state.back_mask.set(word.shr(8) & 255)
    else:
        code = word.shr(28) & 3
        mask = select(code == 0, const(i32, 0x01), const(i32, 0x03))
        mask = select(code == 2, const(i32, 0x0F), mask)
        mask = select(code == 3, const(i32, 0xFF), mask)
        if (side & 1) != 0:
            state.front.set(word)
            state.front_mask.set(mask)
            state.front_on.set(1)
        if (side & 2) != 0:
            state.back.set(word)
            state.back_mask.set(mask)
            state.back_on.set(1)


@staged
def stencil_matches(stencil: StencilState, reverse: Value, layout: TileLayout, zs: Value) -> Value:
    """Lanes of one sample at `zs` that pass the stencil test."""
    setup = select(reverse, stencil.back.get(), stencil.front.get())
    enabled = select(reverse, stencil.back_on.get(), stencil.front_on.get()) != 0
    return _matches(setup, enabled, layout.load_block(zs) & 255)


def compare_dynamic(function: Value, new: Value, old: Value) -> Value:
    """`new function old` per lane for a function only known when drawing (scalar i32); a mask."""

    def wanted(bit: int) -> Value:
        return splat((function & bit) != 0)

    return ((new < old) & wanted(1)) | ((new == old) & wanted(2)) | ((new > old) & wanted(4))


def _matches(setup: Value, enabled: Value, old: Value) -> Value:
    """Lanes whose stored stencil value passes the comparison of a setup word."""
    reference, test_mask = setup.shr(8) & 255, setup & 255
    matched = compare_dynamic(setup.shr(16) & 7, splat(reference & test_mask), old & splat(test_mask))
    return matched | splat(~enabled)


@staged
def stencil_test(
    layout: TileLayout, update: bool, stencil: StencilState, reverse: Value, zs: Value, new: Value,
    old_word: Value, z_passed: Value, active: Value,
) -> Value:  # fmt: skip
    """Tests and updates stencil and depth of one sample at `zs`; returns the lanes that stay on.

    Arguments as of `depth.z_test`; `z_passed`: lanes that pass the depth test.
    """
    setup = select(reverse, stencil.back.get(), stencil.front.get())
    write_mask = select(reverse, stencil.back_mask.get(), stencil.front_mask.get())
    enabled = select(reverse, stencil.back_on.get(), stencil.front_on.get()) != 0
    old = old_word & 255
    reference = setup.shr(8) & 255
    matched = _matches(setup, enabled, old)
    passed = active & matched & z_passed
    failed_stencil = stencil_operation(setup.shr(19) & 7, old, reference)
    on_pass = stencil_operation(setup.shr(22) & 7, old, reference)
    on_fail = stencil_operation(setup.shr(25) & 7, old, reference)
    result = select(matched, select(z_passed, on_pass, on_fail), failed_stencil)
    result = (old & splat(~write_mask)) | (result & splat(write_mask))
    result = select(active & splat(enabled), result, old)
    depth = old_word & ~255
    if update:
        depth = select(passed, new << 8, depth)
    layout.store_block(zs, depth | result)
    return passed


@dataclass(frozen=True)
class DepthTest:
    """A draw's depth test as it is compiled."""

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
