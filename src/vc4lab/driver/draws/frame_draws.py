"""The draws of a frame, and prepared draws as native code adds them to it (`placing.py`)."""

from __future__ import annotations

import ctypes
import struct
from itertools import count
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from vc4lab.bits import signed32
from vc4lab.bounded import Bounded
from vc4lab.driver.draws.placing import MOST_CHANGES, SHADER_STATE_BYTES, native_place
from vc4lab.driver.draws.plans import FIXED, KNOWN, Move, Piece, Placed, Sink
from vc4lab.driver.gpu.memory import OutOfMemory
from vc4lab.mesa.protocol.limits import VERTEX_BUFFERS
from vc4lab.records import declarations as d

if TYPE_CHECKING:
    from collections.abc import Sequence

    from vc4lab.driver.draws.plans import DrawPlan
    from vc4lab.driver.gpu.memory import GpuMemory

FIRST_BODY = 1 << 16
"""Bytes of a frame's binning list that there is room for at first."""
ZEROS = 16
"""Bytes, for look-ups of constants that there are not."""
MOST_VALUES = 1 << 14
MOST_JOBS = 1 << 30
_KNOWN_BYTES = 4 * KNOWN
_PIECE = struct.Struct("<2iQ2i")
assert _PIECE.size == Piece.size
_MOVE = struct.Struct("<8iQ")
assert _MOVE.size == Move.size
MOST_TURNS = 1 << 30


class Values:
    """Numbers for the bytes of state records: equal ones have the same."""

    def __init__(self) -> None:
        self._numbers: Bounded[bytes, int] = Bounded(MOST_VALUES)
        self._next = count()

    def number(self, record: bytes) -> int:
        """Its number; after very many others it may get another one."""
        known = self._numbers.get(record)
        if known is None:
            known = self._numbers[record] = next(self._next)
        return known


VALUES = Values()
_SERIALS = count()


class Moving(NamedTuple):
    """The part in which draws of the same state may differ: where their vertices and indices are, how
    many there are.

    Attributes
    ----------
    kind
        `placed.ARRAYS` or `INDEXED`.
    least
        Vertices without which nothing is drawn.
    arrays
        Rows of `placed.Move`.
    buffer_count
        How many vertex buffers the state has.
    index_size, index_base, index_limit, index_used
        Bytes of an index, address and bytes of the index buffer's resource, address of its
        `placed.Used`.
    restart
        The index at which primitives end; None: at none.
    seen
        Resources that were looked at, and their `changes` then, although vertices are others.
    """

    kind: int
    least: int
    arrays: Sequence[tuple[int, ...]]
    buffer_count: int
    index_size: int = 0
    index_base: int = 0
    index_limit: int = 0
    index_used: int = 0
    restart: int | None = None
    seen: tuple[tuple[Any, int], ...] = ()


class Vertices(NamedTuple):
    """A draw's own vertices: the first one, how many, what is added to indices, and the offsets of
    its vertex buffers and after them of its index buffer.
    """

    start: int
    length: int
    bias: int
    offsets: tuple[int, ...]


class PlacedDraw:
    """The native form of a prepared draw (its parts are `PreparedDraw`'s), with its memory."""

    def __init__(
        self,
        plan: DrawPlan,
        states: dict[int, bytes],
        batches: list[tuple[int, int, bytes]],
        seen: tuple[tuple[Any, int], ...],
        moving: Moving | None = None,
    ) -> None:
        self._plan = plan
        records = [(number, VALUES.number(data), data) for number, data in states.items()]
        self._records, records_at = _pieces(records)
        self._batches, batches_at = _pieces(batches)
        seen_rows = [(ctypes.addressof(one.counter), changes) for one, changes in seen]
        self._seen = np.array(seen_rows, np.uint64)
        moving = moving or FIXED_DRAW
        assert seen[: len(moving.seen)] == moving.seen
        moves = b"".join(_MOVE.pack(*map(signed32, one[:-1]), one[-1]) for one in moving.arrays)
        self._moves = np.frombuffer(moves, np.uint8)
        self.block = Placed(
            moves=self._moves.ctypes.data,
            move_count=len(moving.arrays),
            kind=moving.kind,
            least=moving.least,
            index_size=moving.index_size,
            index_base=signed32(moving.index_base),
            index_limit=moving.index_limit,
            buffer_count=moving.buffer_count,
            index_used=moving.index_used,
            restarts=moving.restart is not None,
            restart=signed32(moving.restart or 0),
            serial=next(_SERIALS) % MOST_TURNS + 1,
            moving_seen_count=len(moving.seen),
            records=records_at,
            batches=batches_at,
            seen=self._seen.ctypes.data,
            record_count=len(records),
            batch_count=len(batches),
            seen_count=len(seen),
            most_bytes=sum(len(data) for *_, data in records)
            + sum(SHADER_STATE_BYTES + len(data) for *_, data in batches),
        )
        self.put_head(plan.head)

    @property
    def address(self) -> int:
        """The address of the native form."""
        return self.block.address

    def put_head(self, head: bytes) -> None:
        """The addresses and counts of a plan."""
        ctypes.memmove(self.address, head, len(head))


FIXED_DRAW = Moving(FIXED, 0, (), 0)


def _pieces(rows: list[tuple[int, int, bytes]]) -> tuple[Any, int]:
    """Records as native code reads them, followed by their bytes; the address."""
    at = _PIECE.size * len(rows)
    data = b"".join(one[2] for one in rows)
    whole = np.zeros(at + len(data) + 1, np.uint8)
    address = whole.ctypes.data
    parts = []
    for first, second, record in rows:
        parts.append(_PIECE.pack(signed32(first), second, address + at, len(record), 0))
        at += len(record)
    made = b"".join(parts) + data
    whole[: len(made)] = np.frombuffer(made, np.uint8)
    return whole, address


class KeptDraws(NamedTuple):
    """The draws of a frame that waits: its records, their number, changes of state in them, the
    number of the frame, and the values of state records that count at its end.
    """

    records: bytes
    draws: int
    changes: int
    job: int
    known: bytes


class FrameDraws:
    """The draws of a frame, as they are added. There is one frame at a time."""

    def __init__(self, memory: GpuMemory) -> None:
        self._memory = memory
        self._native = native_place()
        self._body = np.zeros(FIRST_BODY, np.uint8)
        self._offsets = np.zeros(VERTEX_BUFFERS + 1, np.uint32)
        self._jobs = 0
        self.sink = Sink(
            memory=memory.guest.base,
            body=self._body.ctypes.data,
            capacity=len(self._body),
            zeros=memory.store(bytes(ZEROS)),
            turn=1,
        )

    def begin(self, framebuffer: int, kept: KeptDraws | None = None) -> None:
        """Another frame, to a frame buffer with this number, from 1 on; it may have draws."""
        sink = self.sink
        sink.framebuffer = framebuffer
        sink.last = 0
        known = sink.address + Sink.offset("known")
        if kept is None:
            sink.length = sink.draws = sink.changes = 0
            self._jobs = sink.job = self._jobs % MOST_JOBS + 1
            ctypes.memset(known, 0xFF, _KNOWN_BYTES)
        else:
            sink.length, sink.draws, sink.job = len(kept.records), kept.draws, kept.job
            sink.changes = kept.changes
            self._body[: sink.length] = np.frombuffer(kept.records, np.uint8)
            ctypes.memmove(known, kept.known, _KNOWN_BYTES)

    def all_drawn(self) -> None:
        """No frame waits: nothing is read any more."""
        self.sink.turn = self.sink.turn % MOST_TURNS + 1

    def keep(self) -> KeptDraws:
        """Keep what the frame at hand has, for `begin`."""
        sink = self.sink
        known = ctypes.string_at(sink.address + Sink.offset("known"), _KNOWN_BYTES)
        return KeptDraws(self.records, sink.draws, sink.changes, sink.job, known)

    def end(self) -> None:
        """No frame is at hand; its records stay until the next one begins."""
        self.sink.framebuffer = 0

    def take_arena(self) -> None:
        """Native code adds draws next."""
        arena = self._memory.arena
        self.sink.arena, self.sink.arena_end = arena.next, arena.end

    def give_arena(self) -> None:
        """It has added them."""
        self._memory.arena.next = self.sink.arena

    def add(self, placed: PlacedDraw, blocks: tuple[int, int], vertices: Vertices | None = None) -> bool:
        """Add a draw with the blocks of its constants, 0: none. Raises OutOfMemory.

        vertices: its own; False if they are not inside of their buffers, a record cannot name
        them, or there is no room.
        """
        self.make_room(placed, 0 if vertices is None else vertices.length)
        self.take_arena()
        constants: list[int] = []
        for block in blocks:
            size = self._memory.guest.u32(block) if block else 0
            constants += self._memory.host(block + 4) if block else 0, size, block and block + 4
        named: tuple[int, ...] = 0, 0, 0, 0
        if vertices is not None:
            self._offsets[: len(vertices.offsets)] = vertices.offsets
            named = 1, *map(signed32, vertices[:3])
        added = self._native(self.sink.address, placed.address, *constants, *named, self._offsets.ctypes.data)
        self.give_arena()
        if not added and vertices is None:
            raise OutOfMemory(f"a draw with {4 * placed.block.word_count} bytes of uniforms")
        return bool(added)

    @property
    def is_full(self) -> bool:
        """Whether its list has as many changes of state as the chip counts."""
        return bool(self.sink.changes >= MOST_CHANGES)

    def changes(self) -> None:
        """The plan of a draw is another one for once: no draw is the same as the one before."""
        self.sink.last = 0

    def make_room(self, placed: PlacedDraw, indices: int) -> None:
        """For a draw's records, of which it has many where these indices have restarts."""
        sink, block = self.sink, placed.block
        size = block.most_bytes
        if block.restarts:
            runs = min(indices, block.index_limit) // block.least + 1
            size += runs * block.batch_count * d.IndexedPrimitives.size
        if sink.capacity - sink.length < size:
            body = np.zeros(2 * sink.capacity + size, np.uint8)
            body[: sink.length] = self._body[: sink.length]
            self._body = body
            sink.body, sink.capacity = body.ctypes.data, len(body)

    @property
    def records(self) -> bytes:
        """The records of these draws in the frame's binning list."""
        return self._body[: self.sink.length].tobytes()
