"""What one thread of the tile loop works with."""

from __future__ import annotations

import ctypes

from vc4lab.memory import lazy_zeros
from vc4lab.v3d.golden.fragment import batch_callback
from vc4lab.v3d.state.tile_context import COUNTERS, QUEUE_BYTES, TileContext
from vc4lab.v3d.tiles.work_memory import WorkMemory


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
        """Where it records pieces of work, once that was asked for."""

    def begin_work(self) -> None:
        """It records pieces of work from now on, and has none yet."""
        if self.work is None:
            self.work = WorkMemory()
            self.context.work = self.work.address
        self.work.clear()

    def end_work(self) -> None:
        """It records no more."""
        self.work, self.context.work = None, 0
