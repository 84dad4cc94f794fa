"""The tables of a frame together, and who makes them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from vc4lab.timing.chip import Chip
from vc4lab.timing.frames.columns import Table
from vc4lab.timing.frames.frame import Frame
from vc4lab.timing.graphics.state import GraphicsFigures, Work
from vc4lab.timing.graphics.work import Choices, Rendering, rendering
from vc4lab.timing.machine import Machine

if TYPE_CHECKING:
    from vc4lab.timing.graphics.topology import Parts
    from vc4lab.timing.graphics.vertices import FrameVertices

Named = Mapping[str, Table]
"""Tables by their names in `Work`."""

_COUNTED = {"steps": "step_count", "vectors": "vector_count", "batches": "batch_count",
            "draws": "draw_count"}  # fmt: skip


@dataclass
class Tables:
    """A frame's tables. binned, rendered: those of each list thread by name."""

    rendering: Rendering | None
    binned: dict[str, Table] = field(default_factory=dict)
    rendered: dict[str, Table] = field(default_factory=dict)
    vertices: FrameVertices | None = None

    @classmethod
    def nothing(cls) -> Tables:
        """Of no frame."""
        return cls(None)

    def work(self, thread: int) -> Work:
        """Where the tables of a list thread are; they must be kept as long."""
        work: Any = Work()
        for name, table in (self.rendered if thread else self.binned).items():
            assert table.flags.c_contiguous
            setattr(work, name, table.ctypes.data if len(table) else 0)
            if name in _COUNTED:
                setattr(work, _COUNTED[name], len(table))
        return work


class Feed:
    """Makes tables of frames, and says which modules take part. Tests have one of their own."""

    name = "frames"
    parts: Parts

    def __init__(self, chip: Chip) -> None:
        self.chip = chip
        self.choices = Choices.of(chip)

    def tables(self, frame: Frame) -> Tables:
        """Of a frame."""
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
        self.add_shaders(tables)
        self.add_vertices(tables)
        return tables

    def add_shaders(self, tables: Tables) -> None:
        """Programs: `shaders`, `segments`."""

    def add_vertices(self, tables: Tables) -> None:
        """Vertices of both threads: `batches`, `fetches`, groups, what is binned."""

    def prepare(self, machine: Machine, figures: GraphicsFigures) -> None:
        """Fills figures and states of a new model."""

    def reset(self, machine: Machine, thread: int, tables: Tables) -> None:
        """A list thread begins another frame."""

    def binned(self, machine: Machine) -> bool:
        """Whether all of it is binned."""
        return True

    def binning_end(self, machine: Machine) -> int:
        """The clock at which that was so."""
        return 0

    def standing(self, machine: Machine) -> list[str]:
        """Lines about what waits where, in a model that stands still."""
        return []
