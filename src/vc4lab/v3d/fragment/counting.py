"""Counts of quads in the tile buffer and texture unit, for pipelines compiled to count.

A quad belongs to a write if one of its pixels takes part: it is covered, inside near and far, still
switched on in MS_FLAGS, and the write is not conditional against it. Quads of a block that the
primitive does not touch are never counted. Source: hardware reference 2.9 and AG100-R pp. 97-99.
"""

from __future__ import annotations

from vc4lab.simd import Cell, Value, i32, load, mask_bits, popcount_, store
from vc4lab.v3d.fragment.shader import BlockInputs, DrawConstants, FragmentEnvironment
from vc4lab.v3d.pse.coverage import quads_of
from vc4lab.v3d.state.frame_mode import SAMPLE_BYTES
from vc4lab.v3d.state.tile_context import COUNTERS, TileContext
from vc4lab.v3d.tlb.depth_stencil import stencil_matches
from vc4lab.v3d.tlb.samples import any_lane


def quads(lanes: Value) -> Value:
    """The quads (as `quads_of` gives them) with at least one of `lanes`."""
    return quads_of(mask_bits(lanes))


def place_of(context: TileContext, name: str) -> Value:
    """The place of a counter of the tile context."""
    return context.counters + 4 * COUNTERS.index(name)


def add(context: TileContext, name: str, amount: Value) -> None:
    """Adds to a counter of the tile context."""
    place = place_of(context, name)
    store(place, load(i32, place) + amount)


def count_depth(context: TileContext, active: Value, matched: Value | None, passed: Value) -> None:
    """A depth test: lanes that took part, that passed stencil (None: all), that passed both."""
    taking, left = quads(active), quads(passed)
    if matched is not None:
        add(context, "quads_stencil_failed", popcount_(taking & ~quads(matched & active)))
    add(context, "quads_depth_failed", popcount_(taking & ~left))
    add(context, "quads_depth_passed", popcount_(left))


def count_colour(context: TileContext, valid: Value, active: Value) -> None:
    """A colour write: quads of the block that are valid, lanes that are written."""
    covered = quads(active)
    add(context, "quads_uncovered", popcount_(valid & ~covered))
    add(context, "quads_covered", popcount_(covered))


class CountingEnvironment(FragmentEnvironment):
    """The environment of one block that counts what its writes do."""

    def __init__(
        self, constants: DrawConstants, inputs: BlockInputs, status: Cell, context: TileContext
    ) -> None:
        super().__init__(constants, inputs, status)
        self.context = context
        self.valid = quads(any_lane(inputs.flags))

    def tmu_write(self, unit: int, register: str, value: Value, mask: Value, site: int) -> None:
        if register == "s":
            add(self.context, "texture_quads", popcount_(self.valid))
        super().tmu_write(unit, register, value, mask, site)

    def tlb_z(self, value: Value, mask: Value) -> None:
        before = [cell.get() & mask for cell in self.asked]
        matched = None
        if self.stencil is not None:
            places = [self.inputs.zs + SAMPLE_BYTES * k for k in range(len(before))]
            matched = any_lane(
                [
                    stencil_matches(self.stencil, self.reverse.get(), self.layout, place) & lanes
                    for place, lanes in zip(places, before, strict=True)
                ]
            )
        super().tlb_z(value, mask)
        passed = any_lane([cell.get() & mask for cell in self.flags])
        count_depth(self.context, any_lane(before), matched, passed)

    def tlb_colour(self, value: Value, mask: Value, all_samples: bool) -> None:
        active = any_lane([cell.get() for cell in self.flags]) & mask
        count_colour(self.context, self.valid, active)
        super().tlb_colour(value, mask, all_samples)
