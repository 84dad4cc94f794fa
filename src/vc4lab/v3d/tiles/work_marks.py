"""Native: which part of a thread's streams is a chain's, and what drawing each list took.

For the variant of the tile loop that records the pieces of work (`../state/work_records.py`).
"""

from __future__ import annotations

from vc4lab.memory.streams import Stream, append
from vc4lab.simd import Value, i32, load, staged, store
from vc4lab.v3d.fragment.counting import place_of
from vc4lab.v3d.state.tile_context import TileContext
from vc4lab.v3d.state.work_records import LIST_COUNTERS, STREAMS, BlockWork, ChainWork, ListWork, TileWork
from vc4lab.v3d.tiles.job import TileJob


def _stream(context: TileContext, name: str) -> Stream:
    """A stream of the thread."""
    work: Stream = getattr(TileWork.at(context.work), name)
    return work


@staged
def mark_chain(job: TileJob, context: TileContext, chain: Value, thread: Value, side: str) -> None:
    """Notes how far the streams are at the `side` ("start", "end") of a chain."""
    record = ChainWork.at(job.works + chain * ChainWork.size)
    record.thread = thread
    for number, name in enumerate(STREAMS):
        store(record.field_ptr(side) + 8 * number, _stream(context, name).used)


class ListMark:
    """What had been counted when a list began, and how many bytes of blocks there were."""

    def __init__(self, context: TileContext) -> None:
        self.counters = [load(i32, place_of(context, name)) for name in LIST_COUNTERS]
        self.blocks = _stream(context, "blocks").used

    def finish(self, context: TileContext, segment: Value) -> None:
        """The list has been drawn."""
        record = ListWork.at(append(_stream(context, "lists"), ListWork.size))
        record.segment = segment
        blocks = (_stream(context, "blocks").used - self.blocks).trunc(i32)
        record.blocks = blocks.udiv(BlockWork.size)
        for number, name in enumerate(LIST_COUNTERS):
            amount = load(i32, place_of(context, name)) - self.counters[number]
            store(record.counters + 4 * number, amount)
