"""Memory of one thread of the tile loop; decides whether interpreted programs end.

Compiled code finds that out, so that the interpreter ends programs by the same budgets as compiled
engines, and an endless program is found in the time of a few thousand interpreted instructions.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager

from vc4lab.memory import lazy_zeros
from vc4lab.v3d.reference.draw import ReferenceDraw, registered
from vc4lab.v3d.reference.fragment import batch_callback
from vc4lab.v3d.state.tile_context import COUNTERS, QUEUE_BYTES, TileContext
from vc4lab.v3d.tiles import job as tj
from vc4lab.v3d.tiles.job import NativeFrame, WorkMemory


class Worker:
    """The native state of one thread. `interrupts`: as of `TileThreads`."""

    def __init__(self, interrupts: int) -> None:
        self.context = TileContext()
        self.context.interrupts = interrupts
        self.address: int = self.context.address
        totals = self.address + TileContext.totals.offset
        self.totals = (ctypes.c_int64 * len(COUNTERS)).from_address(totals)
        self.queue = (ctypes.c_char * QUEUE_BYTES).from_buffer(lazy_zeros(QUEUE_BYTES))
        self.context.batch = ctypes.addressof(self.queue)
        self.context.callback = batch_callback()
        self.work: WorkMemory | None = None
        """Memory in which it records pieces of work, once that was asked for."""

    def begin_work(self) -> None:
        """It records pieces of work from now on, and has none yet."""
        if self.work is None:
            self.work = WorkMemory()
            self.context.work = self.work.address
        self.work.clear()

    def end_work(self) -> None:
        """It records no more."""
        self.work, self.context.work = None, 0


class TerminationTrial:
    """Renders tiles with compiled code in place of the interpreter, without storing anything."""

    def __init__(self, frame: NativeFrame, workers: list[Worker]) -> None:
        self._frame = frame
        self._workers = workers
        self._table: dict[int, tuple[int, ReferenceDraw]] = {}

    @contextmanager
    def compiled_instead(self) -> Iterator[None]:
        """Draws whose programs may not end run compiled; nothing is stored or counted.

        A draw that is left out meanwhile stays left out.
        """
        frame, job = self._frame, self._frame.job
        self._table.clear()
        for number in range(len(frame.draw_list)):
            function, params = frame.draws[2 * number], frame.draws[2 * number + 1]
            draw = registered(params) if function else None
            if draw is not None and draw.termination.unproven and draw.compiled:
                self._table[number] = function, draw
                frame.draws[2 * number] = draw.compiled
        ops = self._without_stores()
        before, job.ops = job.ops, ctypes.addressof(ops)
        totals = {id(worker): bytes(worker.totals) for worker in self._workers}
        try:
            yield
        finally:
            job.ops = before
            for number, (function, draw) in self._table.items():
                if frame.draws[2 * number] == draw.compiled:
                    frame.draws[2 * number] = function
            for worker in self._workers:
                size = ctypes.sizeof(worker.totals)
                ctypes.memmove(worker.totals, totals.get(id(worker), bytes(size)), size)

    @contextmanager
    def proven(self) -> Iterator[None]:
        """Draws are interpreted: their programs have been shown to end."""
        draws = [draw for _, draw in self._table.values()]
        for draw in draws:
            draw.proven = True
        try:
            yield
        finally:
            for draw in draws:
                draw.proven = False

    def _without_stores(self) -> ctypes.Array[ctypes.c_uint32]:
        """The frame's operations, without those that write to memory."""
        frame = self._frame
        count = tj.OP_WORDS * frame.chains[frame.count]
        ops: ctypes.Array[ctypes.c_uint32] = (ctypes.c_uint32 * max(count, 1))()
        ctypes.memmove(ops, frame.job.ops, 4 * count)
        for place in range(0, count, tj.OP_WORDS):
            if ops[place] in (tj.OP_STORE, tj.OP_STORE_FULL):
                ops[place] = tj.OP_NOTHING
        return ops
