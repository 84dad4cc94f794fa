"""Makes the tables of frames, and says which modules take part."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vc4lab.timing.chip import Chip
from vc4lab.timing.frames.bigger_tiles import bigger_tiles
from vc4lab.timing.frames.columns import Table
from vc4lab.timing.frames.frame import Frame
from vc4lab.timing.graphics.counters import CounterTotals
from vc4lab.timing.graphics.deadlock import deadlock, standing_threads
from vc4lab.timing.graphics.result import ShaderUse
from vc4lab.timing.graphics.shaders.preparation import fill_shading
from vc4lab.timing.graphics.shaders.tables import ShaderTables
from vc4lab.timing.graphics.shaders.use import SegmentCounts, shader_uses
from vc4lab.timing.graphics.state import GraphicsFigures
from vc4lab.timing.graphics.tables import Named, Tables
from vc4lab.timing.graphics.topology import PARTS
from vc4lab.timing.graphics.vertices import preparation as vertices
from vc4lab.timing.graphics.vertices.preparation import frame_vertices
from vc4lab.timing.graphics.vertices.state import BINNING, RENDERING
from vc4lab.timing.graphics.vertices.vertex_work import binned_draws
from vc4lab.timing.graphics.work import Choices, Rendering, rendering
from vc4lab.timing.machine import Machine

TILE = 64
"""Pixels of VideoCore IV's tile without multisampling, across and down."""


def tile_size(chip: Chip) -> tuple[int, int]:
    """Pixels of a tile without multisampling: across, down."""
    return chip.whole("tile_buffer", "width"), chip.whole("tile_buffer", "height")


class Feed:
    """Makes tables of frames, and says which modules take part. Tests have others."""

    name = "frames"
    parts = PARTS

    def __init__(self, chip: Chip) -> None:
        self.chip = chip
        self.choices = Choices.of(chip)
        self.programs = ShaderTables(chip.whole("uniform_cache", "ahead"))
        self._counted = SegmentCounts(self.programs)
        self.names_all = False
        """Whether `ShaderUse.hot` has every instruction."""

    def tables(self, frame: Frame) -> Tables:
        """Make the tables of a frame. Raises NotTimed."""
        frame = bigger_tiles(frame, *(side // TILE for side in tile_size(self.chip)))
        found = rendering(frame, self.choices)
        tables = Tables(found)
        tables.rendered = {
            "vectors": found.vectors,
            "quads": found.quads,
            "first_request": found.first_request,
            "first_line": found.first_line,
            "lines": np.ascontiguousarray(frame.lines),
            "steps": found.steps,
            "lists": found.lists,
            "primitives": found.primitives,
            "tile_work": found.tile_work,
            "draws": found.draws,
        }
        self._add_vertices(tables, found)
        self.add_shaders(tables)
        tables.notes = self._notes(frame)
        return tables

    def _notes(self, frame: Frame) -> tuple[str, ...]:
        """Report in words which parts of a frame are not timed exactly."""
        found = []
        if frame.lost:
            found.append(
                f"{frame.lost} records of what was drawn found no room: the frame is timed "
                "without its fragments"
            )
        reference = int(frame.draws["reference"].sum())
        if reference:
            found.append(
                f"{reference} draws were drawn by the interpreter, which records no texture lines: "
                "they are timed as if their texels were in the cache"
            )
        if self.programs.inexact:
            found.append(
                f"{self.programs.inexact} runs of programs executed as many instructions as no "
                "way through them has: they are timed as the nearest one that is known"
            )
        return tuple(found)

    def _add_vertices(self, tables: Tables, found: Rendering) -> None:
        """Batches of both threads, and what they read; their shaders are draws so far."""
        tables.vertices = frame_vertices(found.frame, self.choices.kept, found.batches)
        for thread, named in ((BINNING, tables.binned), (RENDERING, tables.rendered)):
            mine = tables.vertices.of(thread)
            named["batches"], named["fetches"] = mine.batches, mine.fetches

    def add_shaders(self, tables: Tables) -> None:
        """Programs of vectors and batches, by their rows among the frame's shaders."""
        assert tables.rendering is not None
        assert tables.vertices is not None
        frame, programs = tables.rendering.frame, self.programs
        programs.begin()
        vectors = tables.rendering.vectors
        vectors["shader"] = programs.rows_of_vectors(frame, vectors)
        for thread, draws, prefix in (
            (BINNING, binned_draws(frame), ""),
            (RENDERING, frame.draws, "vertex_"),
        ):
            mine = tables.vertices.of(thread)
            kind = "vertex" if prefix else "coordinate"
            mine.use_shaders(self._rows_of_draws(frame, draws, prefix, kind))
        tables.binned["shaders"] = tables.rendered["shaders"] = programs.shaders
        tables.labels = programs.labels

    def _rows_of_draws(self, frame: Frame, draws: Table, prefix: str, kind: str) -> NDArray[np.int32]:
        """The shader of each draw's vertices; 0 where there is none."""
        rows = np.zeros(len(draws), np.int32)
        named = draws[[prefix + name for name in ("program", "code", "uniforms")]]
        for number, (program, code, uniforms) in enumerate(named.tolist()):
            if program >= 0:
                words = frame.programs[program]
                rows[number] = self.programs.row(words, code, uniforms, label=(kind, number))
        return rows

    def restart(self) -> None:
        """Count the work of shaders from here on."""
        self._counted = SegmentCounts(self.programs)

    def uses(self, tables: Tables) -> tuple[ShaderUse, ...]:
        """Return the clocks of each shader of a frame; stalls are those since `restart`."""
        shaders = tables.rendered["shaders"]
        slot = self.chip.whole("qpu", "slot")
        return shader_uses(self._counted, shaders, tables.labels, slot, everything=self.names_all)

    def shared(self) -> Named:
        """Tables of all frames, where they are now."""
        return {"segments": self.programs.segments, "routes": self.programs.routes}

    def prepare(self, machine: Machine, figures: GraphicsFigures) -> None:
        """Fills figures and states of a new model."""
        vertices.prepare(machine, self.chip)
        fill_shading(figures.shading, self.chip)

    def reset(self, machine: Machine, thread: int, tables: Tables) -> None:
        """A list thread begins another frame."""
        vertices.reset(machine, thread, tables.vertices)

    def binned(self, machine: Machine) -> bool:
        """Whether all of it is binned."""
        return vertices.is_binned(machine)

    def binning_end(self, machine: Machine) -> int:
        """The clock at which that was so."""
        return vertices.binning_end(machine)

    def counters(self, machine: Machine) -> CounterTotals | None:
        """Return the totals that feed performance counters; None: there are none."""
        return CounterTotals(machine, self.programs, self.chip.whole("qpu", "slot"))

    def standing(self, machine: Machine) -> list[str]:
        """Lines about what waits where, in a model that stands still."""
        return deadlock(machine) + vertices.standing(machine) + standing_threads(machine)
