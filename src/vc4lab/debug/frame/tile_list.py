"""The primitives of a tile's list, and which draw of the binning list made each.

The binner says how long the tile's list was before each draw, so what it wrote afterwards is that
draw's.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING, Any, NamedTuple

from vc4lab.memory import MEMORY_MASK
from vc4lab.records.codes import PrimitiveMode
from vc4lab.records.control import RECORD_SIZES
from vc4lab.records.primitives import ListFormat, decode_compressed
from vc4lab.v3d.tile_lists.scan_context import EXPANDED, Segment

if TYPE_CHECKING:
    from collections.abc import Sequence

    from vc4lab.debug.frame.index import FrameDraw
    from vc4lab.memory import GuestMemory
    from vc4lab.v3d.events import FrameWork


class TilePrimitive(NamedTuple):
    """A primitive in a tile's list.

    Attributes
    ----------
    number
        Among all of the tile, from 0 on.
    draw
        What made it; None: no draw that was binned here.
    vertices
        Their numbers, or (x, y) in sixteenths of a pixel.
    segment, position
        Of its compressed list in the tile, and of itself in that.
    state
        Of its render state among those of the frame.
    """

    number: int
    draw: FrameDraw | None
    vertices: tuple[Any, ...]
    segment: int
    position: int
    state: int


class TileList:
    """A tile's primitives, read from memory as they lie there when its tile was drawn.

    cursors: number of each draw that was binned, and where the tile's list went on before it.
    """

    def __init__(
        self,
        memory: GuestMemory,
        event: FrameWork,
        draws: Sequence[FrameDraw],
        cursors: Sequence[tuple[int, int]],
    ) -> None:
        self.primitives: list[TilePrimitive] = []
        self._first: list[int] = []
        """The first primitive of each segment."""
        ends: dict[int, int] = {}
        owners = {address: one for one in draws for address, _size in one.lists}
        kind: Any = Segment.python
        for number in range(len(event.segments) // Segment.size):
            segment = kind.from_buffer_copy(event.segments, number * Segment.size)
            self._first.append(len(self.primitives))
            state = event.draws[segment.draw].state
            if state.list_format & EXPANDED:
                continue  # made of a primitive record of the rendering list
            address = segment.list_address & MEMORY_MASK
            start = address + RECORD_SIZES[memory.u8(address)]
            owner = owners.get(address)
            found = decode_compressed(memory.read, start, ListFormat(state.list_format & 0xFF))
            for position, (vertices, end) in enumerate(zip(found.items, found.ends, strict=True)):
                place = len(self.primitives)
                self.primitives.append(TilePrimitive(place, owner, vertices, number, position, segment.draw))
                ends[end & MEMORY_MASK] = place + 1
        self._attribute(draws, cursors, ends)

    def _attribute(
        self, draws: Sequence[FrameDraw], cursors: Sequence[tuple[int, int]], ends: dict[int, int]
    ) -> None:
        by_number = {one.number: one for one in draws}
        numbers: list[int] = []
        firsts: list[int] = []
        for number, cursor in cursors:
            if number not in by_number:
                continue
            before = ends.get(cursor & MEMORY_MASK, firsts[-1] if firsts else 0)
            firsts.append(max(before, firsts[-1] if firsts else 0))
            numbers.append(number)
        for place, one in enumerate(self.primitives):
            at = bisect_right(firsts, place) - 1
            if at >= 0:
                self.primitives[place] = one._replace(draw=by_number[numbers[at]])

    def at(self, segment: int, position: int) -> TilePrimitive | None:
        """The primitive at a place of a segment's list."""
        place = self._first[segment] + position if segment < len(self._first) else len(self.primitives)
        if place >= len(self.primitives) or self.primitives[place].segment != segment:
            return None
        return self.primitives[place]


_STEPS = {PrimitiveMode.POINTS: (1, 1), PrimitiveMode.LINES: (2, 2), PrimitiveMode.TRIANGLES: (3, 3)}
_CHAINS = {PrimitiveMode.LINE_STRIP: 2, PrimitiveMode.LINE_LOOP: 2, PrimitiveMode.TRIANGLE_STRIP: 3}
MOST_VERTICES = 1 << 22
"""Vertices of a draw among which a primitive is looked for, at most."""


def primitives_of(memory: GuestMemory, draw: FrameDraw) -> Any:
    """The vertices of a draw's primitives, of shape (primitives, vertices of one); None: it has none."""
    import numpy as np

    names = {one.name.lower().replace("_", " "): one for one in PrimitiveMode}
    mode = names.get(draw.mode)
    length = min(draw.length, MOST_VERTICES)
    if mode is None:
        return None
    if draw.index_bits:
        found = memory.array(draw.place, length, f"u{draw.index_bits // 8}").astype(np.int64)
    else:
        found = np.arange(draw.place, draw.place + length)
    size, step = _STEPS.get(mode, (_CHAINS.get(mode, 3), 1))
    count = (length - size) // step + 1 if length >= size else 0
    if mode is PrimitiveMode.TRIANGLE_FAN and count:
        rows = np.stack([np.full(count, found[0]), found[1 : 1 + count], found[2 : 2 + count]], 1)
    else:
        rows = np.stack([found[k : k + step * count : step] for k in range(size)], 1)
    if mode is PrimitiveMode.LINE_LOOP and length > 1:
        rows = np.concatenate([rows, [[found[-1], found[0]]]])
    return rows


def number_in_draw(memory: GuestMemory, draw: FrameDraw, vertices: tuple[Any, ...]) -> int | None:
    """Which of a draw's primitives has these vertices, from 0 on: the first that has; None: none."""
    import numpy as np

    if any(isinstance(one, tuple) for one in vertices):
        return None
    rows = primitives_of(memory, draw)
    if rows is None or rows.shape[1] != len(vertices):
        return None
    same = (np.sort(rows, axis=1) == np.sort(np.array(vertices))).all(axis=1)
    return int(same.argmax()) if same.any() else None
