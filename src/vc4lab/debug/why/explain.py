"""Why a frame has no picture: the stage that has dropped most, or what is the matter with its stores."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING

from vc4lab.debug.why import binner_causes, renderer_causes
from vc4lab.debug.why.evidence import Cause, Evidence
from vc4lab.debug.why.rerun import Lists, run_again
from vc4lab.debug.why.stages import Group, Stage
from vc4lab.diagnostics import Severity, severity_of
from vc4lab.images.pixels import colours
from vc4lab.images.tiling import Tiling
from vc4lab.jobs.walk import surface_bytes
from vc4lab.records.declarations import ClearColours, TileCoordinates
from vc4lab.v3d.state.frame_mode import COLOUR

if TYPE_CHECKING:
    from vc4lab.v3d.core import V3D
    from vc4lab.v3d.state.frame_mode import Surface

BLOCKS = ("CLE-", "MEM-", "VTX-", "FRG-", "TMU-", "QPU-", "SOC-145")
"""Beginnings of the codes of the V3D's messages; after an error of these nothing else need be said."""
TOLERANCE = 16
"""A level of a colour that is stored in 16 bits is as near as this to what it was."""

Sentence = Callable[[Evidence, Group], Cause]
STAGES: dict[Stage, tuple[Sentence, frozenset[str]]] = {
    Stage.VIEW_VOLUME: (binner_causes.view_volume, frozenset({"VTX-003", "VTX-004", "VTX-009", "QPU-110"})),
    Stage.AREA: (binner_causes.area, frozenset({"VTX-003", "VTX-004", "VTX-009", "CLE-048", "MEM-001"})),
    Stage.WINDOW: (binner_causes.window, frozenset({"CLE-048"})),
    Stage.TILE_LISTS: (binner_causes.tile_lists, frozenset({"CLE-019", "CLE-024", "CLE-030"})),
    Stage.FACING: (renderer_causes.facing, frozenset()),
    Stage.COVERAGE: (renderer_causes.coverage, frozenset({"CLE-019", "CLE-026", "CLE-030"})),
    Stage.DEPTH_RANGE: (renderer_causes.depth_range, frozenset()),
    Stage.DEPTH_TEST: (renderer_causes.depth_test, frozenset()),
    Stage.PROGRAM: (renderer_causes.program, frozenset()),
}
"""For each stage the sentence about it, and the messages after which it would say the same again."""


def why_empty(v3d: V3D, lists: Lists, told: Collection[str]) -> Cause | None:
    """Why the frame of these lists, which a V3D has just drawn, has no picture.

    told: codes of what was reported since the frame before. None: that is known already, or there is a
    picture, or nothing was to be drawn.
    """
    if any(code.startswith(BLOCKS) and severity_of(code) >= Severity.ERROR for code in told):
        return None  # SOC-145: the lists may be overwritten
    found = run_again(v3d, lists)
    return None if found is None else cause_of(Evidence(v3d, lists, found), told)


def cause_of(evidence: Evidence, told: Collection[str] = ()) -> Cause | None:
    """Why a frame that was run again has no picture, as `why_empty`."""
    return _stores(evidence, told) or _draws(evidence, told)


def _draws(evidence: Evidence, told: Collection[str]) -> Cause | None:
    groups = evidence.groups
    if not groups:
        return binner_causes.no_draw(evidence)
    written = [group for group in groups if group.last is None]
    if written:
        colour = _clear_colour(evidence)
        if colour is not None:
            return renderer_causes.effect(evidence, max(written, key=lambda one: one.written), colour)
        return None if {"DRAW-014", "CLE-048"} & set(told) else renderer_causes.small(evidence, written)
    group = max(groups, key=lambda one: one.primitives)
    if group.last not in STAGES or (group.work is not None and group.work.pipeline is None):
        return None
    if group.last is Stage.PROGRAM and _keeps_depth(evidence):
        return None
    sentence, same = STAGES[group.last]
    return None if same & set(told) else sentence(evidence, group)


def _keeps_depth(evidence: Evidence) -> bool:
    """Whether depth is stored or loaded: then a frame may be there for it alone."""
    return any(one.buffer != COLOUR for event in evidence.found.tiles for one in event.surfaces)


def _stores(evidence: Evidence, told: Collection[str]) -> Cause | None:
    """Tiles with coordinates that are not stored."""
    if "CLE-019" in told or "CLE-030" in told:
        return None
    memory = evidence.memory
    places = {memory.u16(at + 1) for at in evidence.executed(TileCoordinates, thread=1)}
    stored = sum(event.stores for event in evidence.found.tiles)
    full = any(event.full for event in evidence.found.tiles)
    if full or stored >= len(places):
        return None
    return renderer_causes.stores(evidence, len(places), stored)


def _clear_colour(evidence: Evidence) -> str | None:
    """The colour that the frame is cleared to, in words, if the picture has no other."""
    clear = evidence.before(ClearColours, None, 1)
    surfaces = [one for event in evidence.found.tiles for one in event.surfaces if one.buffer == COLOUR]
    if clear is None or not surfaces:
        return None
    wanted = int(clear[1].colour)
    shown = one_colour(evidence.v3d, surfaces[0])
    if shown is None:
        return None
    levels = [wanted >> shift & 0xFF for shift in (0, 8, 16)]
    if any(abs(a - b) > TOLERANCE * (surfaces[0].bits < 32) for a, b in zip(levels, shown, strict=False)):
        return None
    return f"0x{wanted:08x} (record 114 at 0x{clear[0]:08x})"


def one_colour(v3d: V3D, surface: Surface) -> tuple[int, ...] | None:
    """Red, green and blue of all pixels of a surface; None: they differ, or it is not known."""
    size = surface_bytes(surface)
    if not size or surface.wide:
        return None
    tiling = Tiling(min(surface.tiling, 2))
    stride = surface.pitch if tiling is Tiling.RASTER else None
    data = bytes(v3d.memory.view(surface.address, size))
    pixels = colours(memoryview(data), surface.width, surface.height, surface.bits, tiling, stride)
    first = pixels[0, 0]
    return tuple(int(level) for level in first) if bool((pixels == first).all()) else None
