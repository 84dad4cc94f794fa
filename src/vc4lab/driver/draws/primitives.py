"""A draw's vertices as records 32 and 33 can name them.

Tile lists have indices of 16 bits: draws of more vertices are taken apart without seams, and what
cannot be taken apart in place (fans, loops, scattered 32-bit indices) has its vertices copied.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from vc4lab.driver.draws.polygons import drawn_as, first_is_last, outlines
from vc4lab.mesa.protocol.codes import Primitive
from vc4lab.mesa.store.resources import Refused
from vc4lab.records import declarations as d
from vc4lab.records.codes import IndexType, PrimitiveMode
from vc4lab.records.control import build

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from vc4lab.driver.commands.commands import Draw
    from vc4lab.driver.gpu.memory import GpuMemory
    from vc4lab.mesa.protocol.objects import RasterizerState
    from vc4lab.mesa.state.pipe import IndexBuffer

MAX_VERTICES = 65535
"""First vertex and their number together, in a record (GFXH-515)."""
MAX_INDEX = 0xFFFF
_STEPS = {
    Primitive.POINTS: (MAX_VERTICES, 0),
    Primitive.LINES: (MAX_VERTICES - 1, 0),
    Primitive.LINE_STRIP: (MAX_VERTICES, 1),
    Primitive.TRIANGLES: (MAX_VERTICES, 0),
    Primitive.TRIANGLE_STRIP: (MAX_VERTICES - 1, 2),
}
"""Vertices of a piece, and how many of them the next one has again. Pieces of a triangle strip
begin with an even vertex, so that their triangles keep their facing."""
LEAST = {
    Primitive.POINTS: 1,
    Primitive.LINES: 2,
    Primitive.LINE_LOOP: 2,
    Primitive.LINE_STRIP: 2,
    Primitive.TRIANGLES: 3,
    Primitive.TRIANGLE_STRIP: 3,
    Primitive.TRIANGLE_FAN: 3,
}
"""Vertices without which nothing is drawn."""


class Batch(NamedTuple):
    """One primitive record.

    Attributes
    ----------
    record
        Its bytes.
    base
        The vertex that its index 0 is.
    lowest, highest
        The vertices that it names, `base` included.
    picked
        Vertices to be copied in this order, which are then its indices; None: as they lie.
    is_whole
        Whether it stands for the draw: its vertices one after the other, or its index buffer with
        all restarts.
    """

    record: bytes
    base: int
    lowest: int
    highest: int
    picked: NDArray[np.int64] | None = None
    is_whole: bool = False


def batches(
    draw: Draw,
    rasterizer: RasterizerState,
    indices: IndexBuffer | None,
    memory: GpuMemory,
    *,
    is_first_flat: bool = False,
    as_one: bool = False,
) -> list[Batch]:
    """The records of a draw. Raises Refused, OutOfMemory.

    is_first_flat: it has flat colours, which come from the first vertex of each primitive. as_one:
    one record stands for it, whatever its restarts, if that is possible.
    """
    if draw.mode not in LEAST:
        raise Refused("GL-007", f"primitives of kind {draw.mode} were not announced")
    mode = drawn_as(draw.mode, rasterizer)
    if not draw.indexed and mode != draw.mode:
        return list(_outlines(draw, mode, draw.start + np.arange(draw.count)))
    if not draw.indexed and is_first_flat:
        return list(_turned(draw, draw.start + np.arange(draw.count), memory))
    if not draw.indexed:
        return list(_array_batches(draw.mode, draw.start, draw.count))
    if indices is None:
        raise Refused("GL-015", "an indexed draw without an index buffer")
    made: list[Batch] = []
    for start, numbers in _runs(draw, indices, memory, as_one=as_one):
        if len(numbers) < LEAST[draw.mode]:
            continue
        if mode != draw.mode:
            made += _outlines(draw, mode, numbers.astype(np.int64) + draw.index_bias)
        elif is_first_flat:
            made += _turned(draw, numbers.astype(np.int64) + draw.index_bias, memory)
        else:
            address = indices.resource.address + start  # type: ignore[attr-defined]
            made += _index_batches(draw, numbers, address, memory, is_whole=as_one)
    return made


def _array_batches(mode: Primitive, start: int, count: int) -> Iterator[Batch]:
    if count < LEAST[mode]:
        return
    if start + count <= MAX_VERTICES:
        record = _array_record(mode, start, count)
        yield Batch(record, 0, start, start + count - 1, is_whole=True)
    elif count <= MAX_VERTICES:
        yield Batch(_array_record(mode, 0, count), start, start, start + count - 1)
    elif mode in _STEPS:
        for first, size in pieces(mode, count):
            base = start + first
            yield Batch(_array_record(mode, 0, size), base, base, base + size - 1)
    else:
        yield from _picked_batches(mode, start + np.arange(count))


def pieces(mode: Primitive, count: int) -> Iterator[tuple[int, int]]:
    """First vertex and number of vertices of the parts of a long draw."""
    step, again = _STEPS[mode]
    first = 0
    while count - first >= LEAST[mode]:
        size = min(step, count - first)
        yield first, size
        first += size - again
        if first + again >= count:
            return


def _runs(
    draw: Draw, indices: IndexBuffer, memory: GpuMemory, *, as_one: bool
) -> Iterator[tuple[int, NDArray[Any]]]:
    """Byte offset and indices of each part between restarts, or (`as_one`) of all of them."""
    resource: Any = indices.resource
    size = indices.index_size
    offset = indices.offset  # Mesa's driver has added the draw's start to it
    if offset + draw.count * size > resource.size:
        raise Refused("GL-005", f"{resource} does not hold {draw.count} indices from {offset} on")
    numbers = memory.guest.array(resource.address + offset, draw.count, f"<u{size}")
    if not draw.primitive_restart:
        yield offset, numbers
        return
    ends = np.flatnonzero(numbers == draw.restart_index)
    if as_one:
        yield offset, np.delete(numbers, ends)
        return
    first = 0
    for end in [*ends.tolist(), len(numbers)]:
        yield offset + first * size, numbers[first:end]
        first = end + 1


def _index_batches(
    draw: Draw, numbers: NDArray[Any], address: int, memory: GpuMemory, *, is_whole: bool
) -> Iterator[Batch]:
    lowest, highest = int(numbers.min()), int(numbers.max())
    base = draw.index_bias
    kind = IndexType.BYTE if numbers.itemsize == 1 else IndexType.SHORT
    if numbers.itemsize == 4:
        shift = lowest if highest > MAX_INDEX else 0
        if highest - shift > MAX_INDEX:
            yield from _picked_batches(draw.mode, numbers.astype(np.int64) + base)
            return
        short = (numbers - np.uint32(shift)).astype(np.uint16)
        address = memory.keep(short.tobytes())
        base, lowest, highest = base + shift, lowest - shift, highest - shift
    record = _index_record(draw.mode, kind, len(numbers), address, highest)
    yield Batch(record, base, base + lowest, base + highest, is_whole=is_whole)


def _turned(draw: Draw, numbers: NDArray[np.int64], memory: GpuMemory) -> Iterator[Batch]:
    """Primitives whose first vertex gives the flat colours: lists of indices of our own."""
    if len(numbers) < LEAST[draw.mode]:
        return
    mode, turned = first_is_last(draw.mode, numbers)
    lowest, highest = int(turned.min()), int(turned.max())
    if highest - lowest > MAX_INDEX:
        yield from _picked_batches(mode, turned)
        return
    address = memory.keep((turned - lowest).astype(np.uint16).tobytes())
    record = _index_record(mode, IndexType.SHORT, len(turned), address, highest - lowest)
    yield Batch(record, lowest, lowest, highest)


def _picked_batches(mode: Primitive, numbers: NDArray[Any]) -> Iterator[Batch]:
    """Vertices one after the other, as strips and lists."""
    if mode == Primitive.LINE_LOOP:
        mode, numbers = Primitive.LINE_STRIP, np.append(numbers, numbers[:1])
    elif mode == Primitive.TRIANGLE_FAN:
        count = len(numbers) - 2
        middle = np.full(count, numbers[0])
        numbers = np.stack([middle, numbers[1:-1], numbers[2:]], axis=1).reshape(-1)
        mode = Primitive.TRIANGLES
    for first, size in pieces(mode, len(numbers)):
        picked = numbers[first : first + size]
        record = _array_record(mode, 0, size)
        yield Batch(record, 0, int(picked.min()), int(picked.max()), picked)


def _outlines(draw: Draw, mode: Primitive, numbers: NDArray[np.int64]) -> Iterator[Batch]:
    if len(numbers) >= LEAST[draw.mode]:
        yield from _picked_batches(mode, outlines(draw.mode, mode, numbers))


def _index_record(mode: Primitive, kind: IndexType, count: int, address: int, highest: int) -> bytes:
    return build(
        d.IndexedPrimitives,
        mode=PrimitiveMode(int(mode)),
        index_type=kind,
        length=count,
        address=address,
        maximum_index=highest,
    )


def _array_record(mode: Primitive, first: int, count: int) -> bytes:
    return build(d.VertexArrayPrimitives, mode=PrimitiveMode(int(mode)), length=count, first=first)
