"""The arrays of the frame being collected, and the calls of the kernel that fills them.

`collect_kernel.py` reads a rendering list; this is its Python side, used by `../cle/rendering.py`
for one frame after the other.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any

from vc4lab.bits import signed32
from vc4lab.records.states import TRIANGLES_16_BIT
from vc4lab.simd import NativeFunction, build, i32, late_kernel, ptr
from vc4lab.v3d.state.record_notes import MAX_NOTES
from vc4lab.v3d.state.tile_layout import TILE_SIZE
from vc4lab.v3d.tiles import collect_context as cc
from vc4lab.v3d.tiles.collect_context import CollectContext
from vc4lab.v3d.tiles.job import OP_LOAD, TileOp

if TYPE_CHECKING:
    from vc4lab.v3d.state.record_notes import RecordNotes

assert cc.BUDGET < MAX_NOTES, "one call notes more records than there is room for"


@cache
def _native(recording: bool) -> NativeFunction:
    where = "vc4lab.v3d.tiles.collect_kernel"
    functions = {"collect": late_kernel(where, "collect", (ptr,), i32, recording=recording)}
    key = f"collector{'-recording' * recording}"
    return build("collector", functions, float_mode="default", key=key)["collect"]


class Collector:
    """The native arrays of the frame being collected, and the kernel that fills them."""

    def __init__(self, memory_base: int) -> None:
        context = CollectContext()
        self.context = context
        self._address = context.address
        self._collect: Callable[[int], int] | None = None  # made when needed, see v3d/README.md
        context.memory = memory_base
        self._stored = (ctypes.c_char * cc.MAX_TILES)()
        self._surfaces = (ctypes.c_uint64 * cc.MAX_SURFACES)()
        self._loads = (ctypes.c_int32 * (cc.LOAD_WORDS * cc.MAX_LOADS))()
        context.stored = ctypes.addressof(self._stored)
        context.surfaces = ctypes.addressof(self._surfaces)
        context.loads = ctypes.addressof(self._loads)
        context.fresh = context.frame = 1
        context.list_format = TRIANGLES_16_BIT
        context.tile_width = context.tile_height = TILE_SIZE
        context.surface_count = 1
        self._ops: Any = None
        self._chains: Any = None
        self._pieces: Any = None
        self._ends: Any = None
        self._grow_ops(1024)
        self._grow_pieces(256)

    def begin(self, address: int) -> None:
        """A list starts at `address`: a new piece begins there."""
        self.context.piece_start = address

    def run(self, address: int, end: int, notes: RecordNotes) -> int:
        """Executes records from `address` on, and notes them if that is wanted.

        Returns why it stopped (`collect_context`).
        """
        context = self.context
        context.here, context.end = address, end  # members take the low 32 bits
        if notes.any_listener.present:
            return notes.run(1, context, _native(True).call)
        collect = self._collect
        if collect is None:
            collect = self._collect = _native(False).call
        return collect(self._address)

    def grow(self) -> None:
        """Twice the room for operations and pieces."""
        self._grow_ops(2 * self.context.op_capacity)
        self._grow_pieces(2 * self.context.piece_capacity)

    def close_piece(self, end: int) -> None:
        """The list jumps: the piece up to `end` belongs to the current task, too."""
        context = self.context
        if context.piece_start == signed32(end):
            return
        if context.piece_count + 2 > context.piece_capacity:
            self._grow_pieces(2 * context.piece_capacity)
        self._pieces[context.piece_count] = context.piece_start
        self._ends[context.piece_count] = signed32(end)
        context.piece_count += 1

    def set_mode(self, payload: bytes, tile: tuple[int, int], *, uses_mask: bool, quiet: bool) -> None:
        """Record 113: pixels of a tile, and whether there is a VG mask.

        `quiet`: there was nothing to say about it; if it comes again, nothing has changed.
        """
        context = self.context
        context.tile_width, context.tile_height = tile
        context.uses_mask, context.mode_known = int(uses_mask), int(quiet)
        context.mode = payload

    def arrays(self) -> tuple[Any, Any, int]:
        """The operations, the first operation of each chain (and their number), the chains."""
        count = self.context.chain_count
        self._chains[count] = self.context.op_count
        return self._ops, self._chains, count

    @property
    def surfaces(self) -> list[int]:
        """Masked payloads of the surfaces from number 1 on; number 0 is that of record 113."""
        count = self.context.surface_count
        return self._surfaces[1:count] if count > 1 else []

    def forget(self) -> None:
        """Empties the arrays; the tile buffer is as after a store that clears it."""
        context = self.context
        context.load_count = context.has_coordinates = 0
        context.fresh = 1
        self.reset()

    def reset(self) -> None:
        """The frame was drawn; native code empties the arrays before it goes on."""
        context = self.context
        context.is_drawn, context.tasks = 1, 0
        context.piece_count = context.first_piece = 0  # `close_piece` may be called before that
        context.surface_count = self._pending_surfaces() if context.load_count else 1

    def _pending_surfaces(self) -> int:
        """Keeps the surfaces of loads that wait for the next tile; how many there are, and one."""
        kinds = range(0, cc.LOAD_WORDS * self.context.load_count, cc.LOAD_WORDS)
        waiting = [place + 1 for place in kinds if self._loads[place] == OP_LOAD]
        payloads = [self._surfaces[self._loads[place]] for place in waiting]
        for number, (place, payload) in enumerate(zip(waiting, payloads, strict=True), 1):
            self._loads[place], self._surfaces[number] = number, payload
        return 1 + len(waiting)

    def _grow_ops(self, capacity: int) -> None:
        self._ops = _longer(self._ops, ctypes.c_char, capacity * TileOp.size)
        self._chains = _longer(self._chains, ctypes.c_int32, capacity + 1)
        self.context.ops = ctypes.addressof(self._ops)
        self.context.chains = ctypes.addressof(self._chains)
        self.context.op_capacity = capacity

    def _grow_pieces(self, capacity: int) -> None:
        self._pieces = _longer(self._pieces, ctypes.c_int32, capacity)
        self._ends = _longer(self._ends, ctypes.c_int32, capacity)
        self.context.pieces = ctypes.addressof(self._pieces)
        self.context.piece_ends = ctypes.addressof(self._ends)
        self.context.piece_capacity = capacity


def _longer(old: Any, kind: Any, count: int) -> Any:
    """An array of so many elements that begins with what the old one holds, if there is one."""
    array = (kind * count)()
    if old is not None:
        ctypes.memmove(array, old, ctypes.sizeof(old))
    return array
