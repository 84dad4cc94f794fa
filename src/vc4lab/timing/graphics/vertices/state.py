"""The memory of thread 0 and of the modules that fetch, keep and bin vertices."""

from __future__ import annotations

from enum import IntEnum

from vc4lab.simd import Array, Struct, i32, i64, nested, ptr

BINNING, RENDERING = 0, 1
"""Threads, as `Batch.thread` says them."""

TAKEN = 4
"""Batches that the attribute DMA works on at most: asks for one while others come."""


class RecordKind(IntEnum):
    """Names what a record of thread 0 needs of other modules."""

    PLAIN = 0
    DRAW = 1
    FLUSH = 2


class BinningRecord(Struct):
    """A record of thread 0. last_read: the read of its list that brings its last byte.

    group, item: what a draw puts into BINNING_GROUPS and BINNED, or a flush into BINNED; -1: none.
    until: batches that were collected when its last vertex is.
    """

    kind = i32
    last_read = i32
    group = i32
    item = i32
    until = i32
    unused = i32


class BinningList(Struct):
    """Thread 0. next: the record at hand; sent, back: reads asked for, and those that have come.

    taken: reads whose bytes are used up. grouped: the record at hand has put its group.
    waiting: for batches to be collected (`until`) or for a flush. flushes: those that are through.
    collected: batches that vertex caches have collected; used: the last read that those needed.
    ended: when it last ended something.
    """

    records = ptr
    reads = ptr
    count = i32
    read_count = i32
    next = i32
    sent = i32
    back = i32
    taken = i32
    ahead = i32
    grouped = i32
    waiting = i32
    until = i32
    collected = i32
    used = i32
    free_at = i64
    record_clocks = i64
    flushes = i64
    bytes = i64
    ended = i64


class VertexThread(Struct):
    """The state of a list thread in the vertex cache manager.

    batches: its `Batch` rows. first_batch: of each group its first batch, and the end. batch, end:
    the next batch of the group at hand, and the group's end. freed, shaded: how far room was given
    back, that of shaded vertices and that of attributes. held: batches that have room. rows: of the
    VPM in use, at most `limit`. since: the clock from which it waits for room, -1 if it does not;
    waited: clocks. last_at: when it had its last batch.
    """

    batches = ptr
    first_batch = ptr
    batch = i32
    end = i32
    freed = i32
    shaded = i32
    held = i32
    rows = i32
    limit = i32
    unused = i32
    since = i64
    waited = i64
    last_at = i64


class VertexCache(Struct):
    """The vertex cache manager. rows: of the VPM in use, at most `room`; peak: the most there were.

    full_since: the clock
    from which there is no room for any batch, -1 if there is.
    """

    binning = nested(VertexThread)
    rendering = nested(VertexThread)
    rows = i32
    room = i32
    peak = i32
    kept = i32
    arbitration = i32
    last = i32
    free_at = i64
    full_since = i64
    index_part = i64


class Attributes(Struct):
    """The attribute DMA: batches that it took, oldest at `head`, with their threads.

    batches, fetches: rows of both threads. asked: reads of the newest batch that the memory was
    asked for; back: those of the oldest that have come; open: reads under way. time_part: when the
    last read was through.
    """

    batches = Array(i64, 2)
    fetches = Array(i64, 2)
    head = i32
    count = i32
    asked = i32
    back = i32
    open = i32
    ahead = i32
    vertex_part = i64
    word_part = i64
    time_part = i64
    bytes = i64
    taken = Array(i32, TAKEN)
    threads = Array(i32, TAKEN)


class Chunk(Struct):
    """Primitives of a draw that are binned when a batch is there (-1: they need none), or a flush.

    entries: written into tile lists; clipped: primitives that are cut; writes: of so many bytes
    to list memory from a guest address on. tiles: whose lists a flush ends. keep: batches before
    this one are wanted no more.
    """

    batch = i32
    primitives = i32
    entries = i32
    clipped = i32
    tiles = i32
    writes = i32
    write_bytes = i32
    keep = i32
    location = i64


class Binner(Struct):
    """The binner of a cluster. chunk, end: the next chunk of the items that were taken, and their
    end; chunks of batches that another cluster shaded are passed over. passed: batches before this
    number are wanted no more here.
    working: on `chunk` since `started_part`, until `end_part`; written: of its writes.
    """

    first_chunk = ptr
    chunks = ptr
    batches = ptr
    chunk = i32
    end = i32
    working = i32
    written = i32
    passed = i32
    unused = i32
    started_part = i64
    end_part = i64
    primitive_part = i64
    entry_part = i64
    clip_part = i64
    tile_part = i64
    primitives = i64
    entries = i64
    bytes = i64
    flushes = i64
