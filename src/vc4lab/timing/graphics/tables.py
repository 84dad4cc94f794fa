"""The tables of a frame together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from vc4lab.timing.frames.columns import Table, point_at
from vc4lab.timing.graphics.state import Work
from vc4lab.timing.graphics.vertices.preparation import FrameVertices
from vc4lab.timing.graphics.work import Rendering

Named = Mapping[str, Table]
"""Tables by their names in `Work`."""

_COUNTED = {"steps": "step_count", "vectors": "vector_count", "batches": "batch_count",
            "draws": "draw_count"}  # fmt: skip


@dataclass
class Tables:
    """A frame's tables. binned, rendered: those of each list thread by name.

    vertices: the batches of both, and what thread 0 does. labels: of the frame's shaders, as
    `ShaderTables` has them. notes: what is not timed as it was, in words.
    """

    rendering: Rendering | None
    binned: dict[str, Table] = field(default_factory=dict)
    rendered: dict[str, Table] = field(default_factory=dict)
    vertices: FrameVertices | None = None
    labels: Sequence[tuple[str, int]] = ()
    notes: tuple[str, ...] = ()

    @classmethod
    def nothing(cls) -> Tables:
        """Return the tables of no frame."""
        return cls(None)

    def work(self, thread: int, shared: Named) -> Work:
        """Return the addresses of a list thread's tables and of those of all frames; keep them as long."""
        work: Work = Work()
        tables = {**shared, **(self.rendered if thread else self.binned)}
        point_at(work, tables)
        for name in tables.keys() & _COUNTED.keys():
            setattr(work, _COUNTED[name], len(tables[name]))
        return work
