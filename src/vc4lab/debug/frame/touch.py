"""A primitive that touched a pixel: what became of it there, in words and as JSON."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from vc4lab.records.codes import Compare
from vc4lab.records.states import ConfigurationBits
from vc4lab.v3d.reference import tlb
from vc4lab.v3d.state.frame_mode import Z_MAX

if TYPE_CHECKING:
    from vc4lab.debug.frame.copies import TextureSource
    from vc4lab.debug.frame.index import FrameDraw
    from vc4lab.debug.frame.tile_list import TilePrimitive
    from vc4lab.debug.frame.watch import PixelState, WatchedBlock
    from vc4lab.records.states import RenderState

DRAWN, HIDDEN, STENCILLED, DISCARDED = "drawn", "depth failed", "stencil failed", "discarded"
UNCOVERED, CLIPPED, COLOURLESS = "not covered", "outside of the Z planes", "no colour written"
"""Outcomes for a pixel, in words."""

_SIGNS = {
    Compare.NEVER: "never passes", Compare.LESS: "is not less than", Compare.EQUAL: "is not equal to",
    Compare.LESS_EQUAL: "is greater than", Compare.GREATER: "is not greater than",
    Compare.NOT_EQUAL: "is equal to", Compare.GREATER_EQUAL: "is less than",
}  # fmt: skip


@dataclass
class Touch:
    """A primitive whose blocks have the pixel.

    Attributes
    ----------
    draw, primitive
        The draw, and the number of the primitive in it, from 0 on; None: not known.
    listed
        As the tile's list has it.
    is_covered
        Whether it covers the pixel (with any sample).
    outcome, why
        One of the constants above, and the reason in words, or "".
    block
        The program's run.
    config
        Record 96.
    code
        Guest address of the fragment program.
    sources
        What each of `block.texels` sampled; None: not known.
    """

    draw: FrameDraw | None
    primitive: int | None
    listed: TilePrimitive | None
    is_covered: bool
    outcome: str
    why: str
    block: WatchedBlock
    config: int
    code: int
    sources: tuple[TextureSource | None, ...] = ()

    @property
    def before(self) -> PixelState:
        """The pixel before it."""
        return self.block.before

    @property
    def after(self) -> PixelState:
        """The pixel after it."""
        return self.block.after


def outcome_of(block: WatchedBlock, state: RenderState, covered: bool) -> tuple[str, str]:
    """Return the pixel's outcome and the reason for it, in words."""
    if not block.samples:
        return (CLIPPED, "") if covered else (UNCOVERED, "")
    config = ConfigurationBits(int(state.config) & 0xFFFFFF)
    tests = [one for one in block.writes if one.kind == tlb.WRITE_Z]
    colours = [one for one in block.writes if one.kind == tlb.WRITE_COLOUR]
    made = [one for one in tests if one.takes_part]
    if made and not block.left:
        return _refused(block, int(config.depth_test), made[0].value & Z_MAX)
    if colours and not any(one.takes_part for one in colours):
        return DISCARDED, "the program's condition leaves this pixel out"
    if not colours:
        return COLOURLESS, "the program writes no colour"
    if not block.left:
        return DISCARDED, "the program has switched all samples off"
    return DRAWN, ""


def _refused(block: WatchedBlock, function: int, depth: int) -> tuple[str, str]:
    """Whether depth or stencil refused all samples."""
    steps = block.steps or (0,)
    new = [min(max(depth + step, 0), Z_MAX) for step in steps]
    old = block.before.depths
    on = [k for k in range(len(new)) if block.samples >> k & 1]
    failed = [k for k in on if not _passes(function, new[k], old[k])]
    if not failed:
        return STENCILLED, "the stencil test failed"
    k = failed[0]
    if function == Compare.NEVER:
        return HIDDEN, "the depth test never passes"
    return HIDDEN, f"depth {new[k]:06x} {_SIGNS[Compare(function)]} {old[k]:06x}"


def _passes(function: int, new: int, old: int) -> bool:
    return bool(function & (1 if new < old else 2 if new == old else 4))


def state_dict(state: PixelState) -> dict[str, Any]:
    """A pixel in the tile buffer as JSON has it."""
    return {
        "colours": [[f"{word:08x}" for word in words] for words in state.colours],
        "depths": list(state.depths),
        "stencils": list(state.stencils),
    }
