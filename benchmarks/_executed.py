"""Instructions that programs execute, counted by the reference interpreter while frames are drawn.

The interpreter runs many batches of 16 side by side and parts them where their ways part, so the
count is exact for each batch: branches, loops and discarded pixels included.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from vc4lab.qpu.run import wide
from vc4lab.v3d.events import ProgramKind
from vc4lab.v3d.vertex.shading import VertexStage

STAGES = (ProgramKind.FRAGMENT, ProgramKind.VERTEX, ProgramKind.COORDINATE)


@dataclass
class Count:
    """Of one program: batches of 16 pixels or vertices, and instructions executed for them."""

    batches: int = 0
    instructions: int = 0

    @property
    def mean(self) -> float:
        """Instructions a batch."""
        return self.instructions / self.batches


@dataclass
class Executed:
    """Programs in the order in which they were first run, by stage and words."""

    programs: dict[tuple[ProgramKind, tuple[int, ...]], Count] = field(default_factory=dict)

    def of(self, stage: ProgramKind) -> list[tuple[tuple[int, ...], Count]]:
        """The programs of a stage."""
        return [(words, count) for (kind, words), count in self.programs.items() if kind is stage]


@contextmanager
def executed() -> Iterator[Executed]:
    """Counts what V3Ds with the engine "interpreter" execute meanwhile."""
    found = Executed()
    here = threading.local()
    honest_shade, honest = VertexStage._shade, wide.WideInterpreter

    def shade(stage: VertexStage, *arguments: Any) -> Any:
        here.kind = ProgramKind.VERTEX if stage._is_vertex else ProgramKind.COORDINATE
        try:
            return honest_shade(stage, *arguments)
        finally:
            here.kind = ProgramKind.FRAGMENT

    class Counting(wide.WideInterpreter):
        """Notes what was executed when some batches are at their end."""

        def advance(self, budget: int) -> list[wide.WideInterpreter]:
            parts = super().advance(budget)
            if self.finished:
                kind = getattr(here, "kind", ProgramKind.FRAGMENT)
                key = kind, tuple(self.program.words)
                count = found.programs.setdefault(key, Count())
                count.batches += self.env.blocks
                count.instructions += self.env.blocks * self.count
            return parts

    VertexStage._shade = shade  # type: ignore[method-assign]
    wide.WideInterpreter = Counting  # type: ignore[misc]
    try:
        yield found
    finally:
        VertexStage._shade = honest_shade  # type: ignore[method-assign]
        wide.WideInterpreter = honest  # type: ignore[misc]
