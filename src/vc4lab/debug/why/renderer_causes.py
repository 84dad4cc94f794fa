"""Why primitives that reach their tiles change no pixel, or why nothing of it is stored: sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from vc4lab.debug.why.evidence import Cause, Evidence
from vc4lab.debug.why.stages import Group, many
from vc4lab.qpu.isa.operations import Signal
from vc4lab.qpu.isa.registers import Write
from vc4lab.qpu.program.program import Program
from vc4lab.records.codes import Compare
from vc4lab.records.declarations import ClearColours, StoreGeneral, StoreResolved, StoreResolvedEnd
from vc4lab.records.states import ClipWindow, ConfigurationBits, ZClipPlanes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from vc4lab.v3d.events import DrawWork

SIXTEENTHS = 16
FITS = 0.4, 1.6
"""Parts of the picture that something meant to be seen has, in each direction."""
_COLOUR_LOADS = (Signal.LOAD_COLOUR, Signal.LOAD_COLOUR_END)
_COLOUR_WRITES = (Write.TLB_COLOUR_MS, Write.TLB_COLOUR_ALL)


def facing(evidence: Evidence, group: Group) -> Cause:
    """Triangles of a face that is not enabled."""
    config = ConfigurationBits(group.config)
    found = evidence.before(ConfigurationBits, group)
    where = f"record 96 at 0x{found[0]:08x}" if found is not None else "no record 96 is executed, which"
    if not (config.enable_forward or config.enable_reverse):
        enabled = "enables neither face: set bit 0, bit 1 or both"
    else:
        side, other = ("forward", 1) if config.enable_forward else ("reverse", 0)
        way = "clockwise" if config.clockwise != config.enable_forward else "anticlockwise"
        enabled = (
            f"enables {side}-facing ones only, whose corners go {way} on the screen: set bit {other}, invert "
            "bit 2, or exchange two corners of each"
        )
    verb = "faces away" if group.primitives == 1 else "face away"
    text = f"{_share(group, group.turned)} {verb}: {where} {enabled}"
    return Cause("DRAW-006", text, found[0] if found is not None else None, group.text())


def coverage(evidence: Evidence, group: Group) -> Cause:
    """Primitives between the middles of pixels, or cut off by the clip window."""
    verb = "covers" if group.primitives == 1 else "cover"
    text = f"{_share(group, group.drawn - group.turned)} {verb} no pixel"
    corners = evidence.corners(group)
    if corners is not None and len(corners.number):
        left, top, right, bottom = corners.box
        text += f": vertices lie between pixels ({left:g}, {top:g}) and ({right:g}, {bottom:g})"
        if right - left < 1 and bottom - top < 1:
            text += ", less than a pixel; X and Y of a shaded vertex are in 1/16 pixels"
    clip = evidence.before(ClipWindow, group)
    if clip is not None:
        one = clip[1]
        text += (
            f"; the clip window is {int(one.width)} x {int(one.height)} pixels at ({int(one.left)}, "
            f"{int(one.bottom)}) (record 102 at 0x{clip[0]:08x})"
        )
    return Cause("DRAW-007", text, clip[0] if clip is not None else None, group.text())


def depth_range(evidence: Evidence, group: Group) -> Cause:
    """Depths that are not between the Z planes."""
    found = evidence.before(ZClipPlanes, group)
    low, high = (0.0, 1.0) if found is None else (float(found[1].minimum), float(found[1].maximum))
    where = "without a record 104" if found is None else f"which record 104 at 0x{found[0]:08x} sets"
    text = f"all {group.quads} quads (2 x 2 pixels) are outside of the Z planes {low:g} and {high:g}, {where}"
    if low > high:
        text += ": the smaller one comes first"
    text += _depths(evidence, group)
    return Cause("DRAW-008", text, found[0] if found is not None else _shader(group), group.text())


def depth_test(evidence: Evidence, group: Group) -> Cause:
    """Pixels that the depth test or the stencil test refuses."""
    if 2 * group.stencil_failed > group.depth_failed:
        text = (
            f"the stencil test refuses {group.stencil_failed} of {group.ranged} quads (2 x 2 pixels); the "
            "fragment program sets it (stencil)"
        )
        return Cause("DRAW-009", text, _code(group), group.text())
    config = ConfigurationBits(group.config)
    found = evidence.before(ConfigurationBits, group)
    function = Compare(int(config.depth_test))
    name = function.name.lower().replace("_", " ")
    refused = f"{group.depth_failed} of {group.ranged} quads (2 x 2 pixels)"
    text = f"the depth test refuses {refused}: its function is '{name}'"
    if found is not None:
        text += f" (bits 14:12 of record 96 at 0x{found[0]:08x})"
    clear = evidence.before(ClearColours, None, 1)
    if clear is not None and function is not Compare.NEVER:
        depth = int(clear[1].z)
        text += f", the depth buffer is cleared to 0x{depth:06x} ({depth / 0xFFFFFF:.3g}, record 114)"
    text += _depths(evidence, group)
    return Cause("DRAW-009", text, found[0] if found is not None else None, group.text())


def program(evidence: Evidence, group: Group) -> Cause:
    """Programs that write no colour."""
    found = _program(group.work)
    text = f"the fragment program runs for {group.ranged} quads (2 x 2 pixels) and "
    if found is not None and not any(found.writes(register) for register in _COLOUR_WRITES):
        other = " (only depth, tlbz)" if found.writes(Write.TLB_Z) else ""
        text += f"has no instruction that writes a colour{other}: mov tlbc, … does"
    else:
        text += (
            "writes no colour: the condition of its write to tlbc never holds, so all pixels are discarded"
        )
    return Cause("DRAW-010", text, _code(group), group.text())


def effect(evidence: Evidence, group: Group, colour: str) -> Cause:
    """Colours that are those that were there."""
    text = (
        f"the fragment program writes {group.written} quads (2 x 2 pixels), but all of the picture is "
        f"{colour}, which the frame is cleared to"
    )
    found = _program(group.work)
    if found is not None and any(one.signal in _COLOUR_LOADS for one in found.instructions):
        text += ": what it blends with the colour that is there (loadc) has no weight; is alpha 0?"
    elif found is not None and found.writes(Write.TLB_ALPHA_MASK):
        text += ": it sets a mask of colours or samples (tlbam)"
    else:
        text += ": it writes the same colour"
    return Cause("DRAW-011", text, _code(group), group.text())


def small(evidence: Evidence, groups: Sequence[Group]) -> Cause | None:
    """A picture that would fit if it were 16 times as large; None: it does not look so."""
    mode = evidence.v3d.rendering.mode
    boxes = [corners.box for group in groups if (corners := evidence.corners(group)) is not None]
    if not boxes or len(boxes) < len(groups):
        return None
    left, top = min(box[0] for box in boxes), min(box[1] for box in boxes)
    right, bottom = max(box[2] for box in boxes), max(box[3] for box in boxes)
    across, up = SIXTEENTHS * (right - left) / mode.width, SIXTEENTHS * (bottom - top) / mode.height
    if not (FITS[0] < across < FITS[1] and FITS[0] < up < FITS[1]):
        return None
    text = (
        f"all that is drawn lies between pixels ({left:g}, {top:g}) and ({right:g}, {bottom:g}) of "
        f"{mode.width} x {mode.height}: Xs and Ys of shaded vertices are in 1/16 pixel; were pixels meant?"
    )
    return Cause("DRAW-013", text, _shader(groups[0]), groups[0].text())


def stores(evidence: Evidence, tiles: int, stored: int) -> Cause:
    """Tiles that are drawn and not stored."""
    start = evidence.lists.rendering[0] if evidence.lists.rendering else None
    records = evidence.executed(StoreResolved, StoreResolvedEnd, StoreGeneral, thread=1)
    kinds = f"{StoreResolved.id}, {StoreGeneral.id}"
    text = (
        f"{many(stored, 'tile')} of {tiles} {'is' if stored == 1 else 'are'} stored: in the rendering list a "
        f"store ({kinds}) follows the branch to each tile's list, before the next coordinates (115)"
    )
    return Cause("DRAW-012", text, records[-1] if records else start)


def _share(group: Group, count: int) -> str:
    """How many primitives that is; one primitive may be in many tiles."""
    if count >= group.drawn:
        return f"{group.placed} of {many(group.primitives, group.kind)}"
    return f"{count} of {group.drawn} {group.kind}s (once for each tile)"


def _depths(evidence: Evidence, group: Group) -> str:
    corners = evidence.corners(group)
    if corners is None or not len(corners.depth):
        return ""
    low, high = float(np.min(corners.depth)), float(np.max(corners.depth))
    return f"; Zs of the vertices is {low:g}" + (f" to {high:g}" if high != low else "")


def _program(work: DrawWork | None) -> Program | None:
    pipeline = work.pipeline if work is not None else None
    if pipeline is None:
        return None
    found: Program = pipeline.key.whole_program
    return found


def _code(group: Group) -> int | None:
    return group.record.code if group.record is not None else None


def _shader(group: Group) -> int | None:
    return group.shader if group.shader >= 0 else None
