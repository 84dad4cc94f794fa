"""The streams in which the threads of the tile loop record pieces of work, and what a frame left.

See `../state/work_records.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from vc4lab.memory.streams import StreamMemory
from vc4lab.v3d.state.work_records import STREAMS, TileWork

if TYPE_CHECKING:
    from vc4lab.v3d.tiles.job import NativeFrame

ROOM = {"lists": 1 << 26, "blocks": 1 << 28, "requests": 1 << 28, "lines": 1 << 29}
"""Bytes of each stream of a thread: some hundred times what a frame of a driver's program takes."""


class WorkMemory:
    """The streams of one thread. `address` is the host address of their `TileWork`."""

    def __init__(self) -> None:
        work = TileWork()
        self.work = work
        self.address: int = work.address
        self._parts = [StreamMemory(getattr(work, name), ROOM[name]) for name in STREAMS]

    def clear(self) -> None:
        """Nothing is recorded yet."""
        for part in self._parts:
            part.clear()

    def part(self, number: int, start: int, end: int) -> memoryview:
        """Bytes of a stream, by its number in STREAMS."""
        return self._parts[number].part(start, end)

    @property
    def lost(self) -> int:
        """How many records found no room."""
        return sum(part.stream.lost for part in self._parts)


def recorded(frame: NativeFrame, memories: Sequence[WorkMemory]) -> tuple[dict[str, bytes], int]:
    """What was recorded of a frame, chain by chain, by stream; and how many records were lost."""
    parts: list[list[memoryview]] = [[] for _ in STREAMS]
    for chain in range(frame.count):
        work = frame.works[chain]
        memory = memories[work.thread]
        for number, found in enumerate(parts):
            start, end = work.start[number], work.end[number]
            if end > start:
                found.append(memory.part(number, start, end))
    joined = {name: b"".join(found) for name, found in zip(STREAMS, parts, strict=True)}
    return joined, sum(memory.lost for memory in memories)
