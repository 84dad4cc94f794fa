"""How many primitives and quads of a frame each stage has let through: counts of what a second run recorded.

Draws with the same render state are a group, because tile lists have states and not draws. Up to the tile
lists primitives are counted, after them primitives in tiles, then 2x2 quads of pixels.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any

import numpy as np

from vc4lab.records.codes import ListPrimitive, PrimitiveMode
from vc4lab.timing.frames.columns import table_of
from vc4lab.timing.frames.frame import count_bits, quads_of
from vc4lab.v3d.cle.binning_context import DrawBinned
from vc4lab.v3d.ptb.context import COUNTERS as BINNER_COUNTERS

if TYPE_CHECKING:
    from vc4lab.debug.why.rerun import Rerun
    from vc4lab.v3d.events import DrawWork
    from vc4lab.v3d.state.render_state import ShaderRecord

_WORD = 0xFFFFFFFF


class Stage(Enum):
    """A stage that drops primitives or pixels; in the order in which they meet it."""

    ASSEMBLY = "vertices"
    VIEW_VOLUME = "view volume"
    AREA = "area"
    WINDOW = "window"
    TILE_LISTS = "tile lists"
    FACING = "facing"
    COVERAGE = "pixels"
    DEPTH_RANGE = "Z planes"
    DEPTH_TEST = "depth and stencil"
    PROGRAM = "colour"


def primitives_of(mode: int, vertices: int) -> int:
    """How many primitives so many vertices make."""
    match mode:
        case PrimitiveMode.POINTS:
            return vertices
        case PrimitiveMode.LINES:
            return vertices // 2
        case PrimitiveMode.LINE_LOOP:
            return vertices if vertices > 1 else 0
        case PrimitiveMode.LINE_STRIP:
            return max(vertices - 1, 0)
        case PrimitiveMode.TRIANGLES:
            return vertices // 3
        case _:
            return max(vertices - 2, 0)


def kind_of(mode: int) -> str:
    """Return the name of a mode's primitives."""
    if mode == PrimitiveMode.POINTS:
        return "point"
    return "line" if mode < PrimitiveMode.TRIANGLES else "triangle"


@dataclass
class Group:
    """The draws with one record 96 and one shader record.

    Attributes
    ----------
    config, shader
        Bits of record 96; address of the shader record, -1 without one.
    binned
        Rows of `DrawBinned`, in order.
    work
        The draw of the renderer; None: no tile list that was drawn has it.
    record
        The shader record as it was read.
    primitives, rejected, degenerate, outside
        In the binner: all, and those that it left out.
    entries, drawn
        Primitives in tiles: as the binner wrote them, and as the renderer found them.
    turned, empty
        Of `drawn`: of a face that is not enabled; without a pixel.
    quads, ranged, stencil_failed, depth_failed, written
        Quads that are covered; between the Z planes; refused by the stencil test, and by it or the depth
        test; written by the program.
    """

    config: int
    shader: int
    binned: list[Any] = field(default_factory=list)
    work: DrawWork | None = None
    record: ShaderRecord | None = None
    primitives: int = 0
    rejected: int = 0
    degenerate: int = 0
    outside: int = 0
    entries: int = 0
    drawn: int = 0
    turned: int = 0
    empty: int = 0
    quads: int = 0
    ranged: int = 0
    stencil_failed: int = 0
    depth_failed: int = 0
    written: int = 0

    @property
    def kind(self) -> str:
        """Return the name of its primitives."""
        if self.binned:
            return kind_of(int(self.binned[0]["mode"]))
        kind = self.work.state.list_format & 0xF if self.work is not None else ListPrimitive.TRIANGLES
        return {int(ListPrimitive.POINTS): "point", int(ListPrimitive.LINES): "line"}.get(kind, "triangle")

    @property
    def placed(self) -> int:
        """Primitives that were put into tile lists."""
        return self.primitives - self.rejected - self.degenerate - self.outside

    @property
    def last(self) -> Stage | None:
        """The stage that has dropped all that was left; None: colours were written."""
        if not self.primitives:
            return Stage.ASSEMBLY
        if self.placed <= 0:
            return self._in_binner
        if not self.drawn:
            return Stage.TILE_LISTS
        if not self.quads:
            return Stage.FACING if self.turned >= max(self.drawn - self.turned, 1) else Stage.COVERAGE
        if not self.ranged:
            return Stage.DEPTH_RANGE
        if not self.written:
            failed = self.depth_failed
            return Stage.DEPTH_TEST if failed >= max(self.ranged - failed, 1) else Stage.PROGRAM
        return None

    @property
    def _in_binner(self) -> Stage:
        counts = (self.rejected, self.degenerate, self.outside)
        stages = (Stage.VIEW_VOLUME, Stage.AREA, Stage.WINDOW)
        return stages[counts.index(max(counts))]

    def steps(self) -> Iterator[tuple[Stage, int]]:
        """Yield each stage with the count that it lets through, up to the first that lets nothing through."""
        left = self.primitives
        steps = [(Stage.ASSEMBLY, left)]
        for stage, lost in (
            (Stage.VIEW_VOLUME, self.rejected),
            (Stage.AREA, self.degenerate),
            (Stage.WINDOW, self.outside),
        ):
            left -= lost
            steps.append((stage, left))
        steps += [
            (Stage.TILE_LISTS, self.drawn),
            (Stage.FACING, self.drawn - self.turned),
            (Stage.COVERAGE, self.drawn - self.turned - self.empty),
            (Stage.DEPTH_RANGE, self.ranged),
            (Stage.DEPTH_TEST, self.ranged - self.depth_failed),
            (Stage.PROGRAM, self.written),
        ]
        for stage, count in steps:
            yield stage, count
            if count <= 0:
                return

    def text(self) -> str:
        """Return what each stage has let through, as text for people."""
        vertices = sum(int(row["length"]) for row in self.binned)
        parts = [many(vertices, "vertex")] if self.binned else []
        for stage, count in self.steps():
            match stage:
                case Stage.ASSEMBLY:
                    parts.append(many(count, self.kind))
                case Stage.TILE_LISTS:
                    parts.append(f"{stage.value} {count} (once for each tile)")
                case Stage.DEPTH_RANGE:
                    parts.append(f"{stage.value} {many(count, 'quad')}")
                case _:
                    parts.append(f"{stage.value} {count}")
        return "  left after each stage: " + ", ".join(parts)


def many(count: int, noun: str) -> str:
    """A number with its noun: 1 triangle, 2 triangles."""
    if count == 1:
        return f"1 {noun}"
    return f"{count} vertices" if noun == "vertex" else f"{count} {noun}s"


def groups_of(found: Rerun) -> list[Group]:
    """The groups of a frame, those with draws in the binning list first, in their order."""
    groups: dict[tuple[int, int], Group] = {}
    for event in found.binned:
        _add_binned(groups, event)
    for work, frame in zip(found.works, found.frames, strict=False):
        totals = _by_draw(frame)
        for number, draw in enumerate(work.draws):
            shader = draw.shader.address if draw.shader is not None else -1
            group = _group(groups, draw.state.config & 0xFFFFFF, shader)
            group.work, group.record = draw, draw.shader
            for name, values in totals.items():
                setattr(group, name, getattr(group, name) + int(values[number]))
    for group in groups.values():
        if not group.binned:
            group.primitives = group.drawn
    return list(groups.values())


def _group(groups: dict[tuple[int, int], Group], config: int, shader: int) -> Group:
    return groups.setdefault((config, shader), Group(config, shader))


def _add_binned(groups: dict[tuple[int, int], Group], event: Any) -> None:
    rows = table_of(event.draws, DrawBinned)
    totals = np.concatenate([rows["before"], np.array([event.totals], np.int64)])
    counts = dict(zip(BINNER_COUNTERS, np.diff(totals, axis=0).T, strict=True))
    for number, row in enumerate(rows):
        named = int(row["shader_kind"]), int(row["shader_word"]) & _WORD
        shader = event.shaders.get(named)
        group = _group(groups, int(row["config"]) & 0xFFFFFF, shader.address if shader is not None else -1)
        group.record = shader
        group.binned.append(row)
        group.primitives += primitives_of(int(row["mode"]), int(row["length"]))
        for name in ("rejected", "degenerate", "outside", "entries"):
            setattr(group, name, getattr(group, name) + int(counts[name][number]))


def _by_draw(frame: Any) -> dict[str, Any]:
    """Counts of the renderer by the number of the draw."""
    lists, blocks = frame.lists, frame.blocks
    size = len(frame.draws)

    def total(values: Any, owners: Any = lists["draw"]) -> Any:
        return np.bincount(owners, values, size).astype(np.int64)

    owners = lists["draw"][frame.list_of_block] if len(blocks) else np.zeros(0, np.int64)
    return {
        "drawn": total(np.where(lists["drawn"], lists["primitives"], 0)),
        "turned": total(lists["primitives_reversed"]),
        "empty": total(lists["primitives_empty"]),
        "stencil_failed": total(lists["quads_stencil_failed"]),
        "depth_failed": total(lists["quads_depth_failed"]),
        "written": total(lists["quads_covered"]),
        "quads": total(count_bits(quads_of(blocks["covered"])), owners),
        "ranged": total(count_bits(quads_of(blocks["flags"])), owners),
    }
