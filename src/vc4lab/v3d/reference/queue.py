"""The queue of a draw's blocks as the reference interpreter runs it: wide numpy words, TLB in order.

All blocks run side by side, but what they do to the tile buffer must happen block after block.
Writes are therefore noted and made at the end. Where a program looks at the tile buffer, the blocks
first part into groups whose quads do not overlap, and each group is finished before the next.
"""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any

import numpy as np

from vc4lab.qpu.run.environment import REFERENCE_BUDGET
from vc4lab.qpu.run.wide import run_wide
from vc4lab.simd.eager_wide import Diverged
from vc4lab.v3d.reference.environment import AccessTable, QueueEnvironment, program_traits
from vc4lab.v3d.reference.tlb import tile_accesses
from vc4lab.v3d.state.tile_context import COUNTERS, FragmentBatch, FragmentQueue, TileContext

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from vc4lab.qpu.run.wide import Words
    from vc4lab.v3d.reference.draw import ReferenceDraw

    Rows = NDArray[np.intp]


def shade_queue(draw: ReferenceDraw, context: int, params: int, queue: int, count: int, budget: int) -> None:
    """Runs the program of `draw` on the `count` blocks of a `FragmentQueue`. Raises Unsupported.

    budget: instructions after which a block counts as endless.
    """
    shared = Shared(draw, context, params, queue, count)
    shared.budget = budget
    rows = np.arange(count)
    together = not (shared.traits.moves_uniforms and shared.traits.looks)
    if together:
        try:
            shared.run(rows)
        except Diverged:
            together = False
    if not together:
        shared.reset()
        for row in rows:
            shared.run(rows[row : row + 1])
    shared.finish()


class Shared:
    """Shared by all groups of a queue. Arguments as of `shade_queue`."""

    def __init__(self, draw: ReferenceDraw, context: int, params: int, queue: int, count: int) -> None:
        self.draw = draw
        self.key = key = draw.key
        self.context, self.params, self.queue = context, params, queue
        size = FragmentBatch.size // 4
        memory: Any = (ctypes.c_uint32 * (count * size)).from_address(queue + FragmentQueue.size)
        self.words = np.frombuffer(memory, np.uint32).reshape(count, size)
        self.texture_quads = 0
        self.budget = REFERENCE_BUDGET
        self.done: list[QueueEnvironment] = []
        """Groups at their end whose accesses are still to be made."""
        self.traits = program_traits(draw.program)
        self.native = tile_accesses(key.accesses, self.traits.coverage)
        self.column("stencil", 8)[:] = 0

    def column(self, name: str, count: int = 16, start: int = 0) -> Words:
        """Words of a member of every block: a view of shape (blocks, count)."""
        first = FragmentBatch.offset(name) // 4 + start
        return self.words[:, first : first + count]

    def run(self, rows: Rows) -> None:
        """Runs some blocks to their end."""
        environment, settings = QueueEnvironment(self, rows), self.key.unknowns
        run_wide(self.draw.program, environment, settings=settings, budget=self.budget)

    def reset(self) -> None:
        """Back to the state before anything has run."""
        self.done.clear()
        self.texture_quads = 0

    def finish(self) -> None:
        """Makes the accesses that are left, block after block."""
        self._make_noted()
        if self.texture_quads:
            place = TileContext.counters.offset + 4 * COUNTERS.index("texture_quads")
            ctypes.c_int32.from_address(self.context + place).value += self.texture_quads

    def _make_noted(self) -> None:
        if len(self.done) < 2:
            for environment in self.done:
                environment.make()
            return
        tables = [environment.table() for environment in self.done]
        sizes = [len(environment.rows) for environment in self.done]
        order = np.argsort(np.concatenate([environment.rows for environment in self.done]))
        owners = np.repeat(np.arange(len(sizes)), sizes)[order]
        places = np.concatenate([np.arange(size) for size in sizes])[order]
        starts = np.flatnonzero(np.diff(owners, prepend=-1))
        for start, end in zip(starts, [*starts[1:], len(owners)], strict=True):
            table = tables[owners[start]]
            self.call(table, int(places[start]), int(places[end - 1]) + 1)
        for environment in self.done:
            environment.pending.clear()

    def call(self, table: AccessTable, first: int, end: int) -> None:
        """Makes all accesses of a table for the blocks `first` … `end` - 1 of its group."""
        accesses, rows = table.accesses, table.rows
        self.native(
            self.context, self.queue, ctypes.addressof(accesses), table.length, rows.ctypes.data,
            first, end,
        )  # fmt: skip

    def groups(self, rows: Rows) -> list[Rows]:
        """Blocks in groups without common quads; a block comes after those it overlaps."""
        places = self.column("place", 1)[rows, 0].astype(np.int64)
        valid = self.column("valid", 1)[rows, 0]
        layout = self.key.layout
        latest: dict[int, int] = {}
        groups: list[list[int]] = []
        corners = [
            (layout.quad_row_bytes * (quad >> 1) + layout.quad_bytes * (quad & 1), 1 << 4 * quad)
            for quad in range(4)
        ]
        for row, place, bits in zip(rows.tolist(), places.tolist(), valid.tolist(), strict=True):
            quads = [place + offset for offset, bit in corners if self.traits.whole_blocks or bits & bit]
            number = max((latest.get(quad, -1) for quad in quads), default=-1) + 1
            if number == len(groups):
                groups.append([])
            groups[number].append(row)
            for quad in quads:
                latest[quad] = number
        return [np.array(group) for group in groups]
