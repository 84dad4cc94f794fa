"""Frames whose vertices are fetched, shaded and binned by the modules of this folder."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vc4lab.timing.frames.frame import Frame
from vc4lab.timing.graphics import vertices
from vc4lab.timing.graphics.attributes import step_attributes
from vc4lab.timing.graphics.binner import step_binner
from vc4lab.timing.graphics.binning_list import step_binning_list
from vc4lab.timing.graphics.state import GraphicsFigures
from vc4lab.timing.graphics.tables import Feed, Tables
from vc4lab.timing.graphics.topology import Part, Parts
from vc4lab.timing.graphics.vertex_cache import step_vertex_cache
from vc4lab.timing.graphics.vertex_state import (
    BINNING,
    RENDERING,
    Attributes,
    Binner,
    BinningList,
    VertexCache,
)
from vc4lab.timing.graphics.vertex_work import binned_draws
from vc4lab.timing.machine import Machine


def parts_with(qpu: Part) -> Parts:
    """The modules of vertices, and QPUs."""
    return Parts(
        qpu,
        Part(step_binning_list, BinningList),
        Part(step_vertex_cache, VertexCache),
        Part(step_attributes, Attributes),
        Part(step_binner, Binner),
    )


class VertexFeed(Feed):
    """Makes the tables of vertices; what shades them is for others to say."""

    def shader_rows(self, frame: Frame, thread: int) -> NDArray[np.int32]:
        """Rows of `Work.shaders` of the coordinate (thread 0) or vertex shaders, by draw."""
        count = len(frame.draws) if thread == RENDERING else len(binned_draws(frame))
        return np.arange(count, dtype=np.int32)

    def add_vertices(self, tables: Tables) -> None:
        assert tables.rendering is not None
        frame = tables.rendering.frame
        found = vertices.frame_vertices(frame, self.choices.kept, tables.rendering.batches)
        tables.vertices = found
        for thread, named in ((BINNING, tables.binned), (RENDERING, tables.rendered)):
            mine = found.of(thread)
            mine.use_shaders(self.shader_rows(frame, thread))
            named["batches"], named["fetches"] = mine.batches, mine.fetches

    def prepare(self, machine: Machine, figures: GraphicsFigures) -> None:
        vertices.prepare(machine, self.chip)

    def reset(self, machine: Machine, thread: int, tables: Tables) -> None:
        vertices.reset(machine, thread, tables.vertices)

    def binned(self, machine: Machine) -> bool:
        return vertices.is_binned(machine)

    def binning_end(self, machine: Machine) -> int:
        return vertices.binning_end(machine)

    def standing(self, machine: Machine) -> list[str]:
        return vertices.standing(machine)
