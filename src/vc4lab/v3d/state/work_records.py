"""The pieces of work of a frame's tiles, as pipelines and the tile loop record them for listeners.

Each Struct is a record of a stream (`memory/streams.py`); each thread has its own streams, of which
the tile loop marks the part of each chain. So the records of a frame are those of its chains, in
their order, whatever thread ran them, and a chain that had to run again leaves those of its last
run. `events.FrameWork` has them; `timing/frames/` reads them.
"""

from __future__ import annotations

from vc4lab.memory.streams import Stream
from vc4lab.simd import Array, Struct, i16, i32, i64, nested
from vc4lab.v3d.state.tile_context import COUNTERS

LIST_COUNTERS = COUNTERS[: COUNTERS.index("quads_valid") + 1]
"""What `ListWork.counters` counts."""

DIRECT_LOOKUP = -1
"""`RequestWork.number` of a direct lookup."""


class TileWork(Struct):
    """The streams of one thread; their order is that of `ChainWork`."""

    lists = nested(Stream)
    blocks = nested(Stream)
    requests = nested(Stream)
    lines = nested(Stream)


STREAMS = tuple(TileWork.fields)


class ChainWork(Struct):
    """Of one chain: the thread that ran it last, and its part (bytes) of each stream."""

    start = Array(i64, len(STREAMS))
    end = Array(i64, len(STREAMS))
    thread = i32
    reserved = i32


class ListWork(Struct):
    """A compressed list drawn into a tile.

    Attributes
    ----------
    segment
        Its number among the lists of the frame.
    blocks
        How many `BlockWork` it has.
    counters
        What drawing it counted, by the names in `LIST_COUNTERS`.
    """

    segment = i32
    blocks = i32
    counters = Array(i32, len(LIST_COUNTERS))


class BlockWork(Struct):
    """A 4x4 block of pixels that a primitive covers: up to four quads. Lanes are bits.

    Attributes
    ----------
    primitive
        Number among those of its list that have blocks, from 0 on.
    position
        Number among all of its list.
    place
        Its corner in the tile: x in 7:0, y in 15:8; whether the primitive faces backwards: 16.
    covered
        Lanes that any sample covers; a quad without one is not there.
    flags
        Those of them between the Z planes (for any sample).
    passed
        Those of these that pass the depth test when the block is drawn: what a front end with an
        exact depth buffer would let through. `flags` where nothing is tested, or where the golden
        interpreter runs the program.
    requests
        How many `RequestWork` it has.
    instructions
        How many its program executed; 0 without one, and in the golden interpreter.
    """

    primitive = i32
    position = i32
    place = i32
    covered = i16
    flags = i16
    passed = i16
    reserved = i16
    requests = i32
    instructions = i32


class RequestWork(Struct):
    """A texture request of a block.

    `number`: of its S write among those of the program (`DIRECT_LOOKUP`: a direct one); `lines`:
    how many words it has in the stream of lines (`memory/touched_lines.py`), none where the
    texture's parameters are only known while the program runs.
    """

    number = i32
    lines = i32
