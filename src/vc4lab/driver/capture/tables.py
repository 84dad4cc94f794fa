"""Vertices, indices and constants of draws as tables that people edit.

    # resource-3, 24 bytes a row
    vertex,IN[0].x,IN[0].y,IN[0].z,IN[1].x,IN[1].y,IN[1].z
    0,-0.5,0.25,0.0,0.0,1.0,0.0

Numbers of formats with fractions (UNORM, SNORM) are the integers that are stored.

Commands are followed in order, so that a draw's vertices can be edited where their bytes are: in
the content at the begin, or in an upload.

Constant buffers have a row for each register, named as in TGSI.

    name,x,y,z,w
    CONST[0],0.5,-1.0,0.0,1.0
    CONST[1],0x00000003,0.0,0.0,0.0

A word is a number (a single) or its bits in hex: integers are written so.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from vc4lab.capture.errors import CaptureError
from vc4lab.driver.commands import commands as c
from vc4lab.jobs.fields_text import SMALLEST, word_from_text, word_text
from vc4lab.mesa.protocol.codes import Target
from vc4lab.mesa.protocol.formats import layout_of
from vc4lab.mesa.state.pipe import INDEX_SIZES
from vc4lab.mesa.store.resources import Box

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from vc4lab.driver.capture.model import Capture, CapturedResource
    from vc4lab.mesa.state.pipe import PipeState

AT_BEGIN = 0
"""The owner of bytes that were there when the first frame began; others are numbers of data."""


@dataclass
class Buffer:
    """A buffer at a moment.

    Attributes
    ----------
    content
        Its bytes.
    owner, place
        The data that each byte comes from, and its place in it.
    writes
        How often it was written.
    """

    content: NDArray[np.uint8]
    owner: NDArray[np.int32]
    place: NDArray[np.int64]
    writes: int = 0

    def runs(self, first: int, end: int) -> list[tuple[int, int, int, int]]:
        """Bytes from `first` to `end`: begin, length, owner, place of each part in a row."""
        owner, place = self.owner[first:end], self.place[first:end]
        if not len(owner):
            return []
        breaks = (np.diff(owner) != 0) | (np.diff(place) != 1)
        starts = [0, *(np.flatnonzero(breaks) + 1).tolist(), len(owner)]
        return [
            (first + start, stop - start, int(owner[start]), int(place[start]))
            for start, stop in pairwise(starts)
        ]


class Buffers:
    """The buffers of a capture while its commands are followed."""

    def __init__(self, capture: Capture) -> None:
        self._capture = capture
        self._buffers: dict[int, Buffer] = {}

    def buffer(self, resource: CapturedResource) -> Buffer:
        """A buffer as it is now."""
        found = self._buffers.get(resource.number)
        if found is None:
            size = resource.size
            found = self._buffers[resource.number] = Buffer(
                resource.memory.copy(), np.full(size, AT_BEGIN, np.int32), np.arange(size, dtype=np.int64)
            )
        return found

    def follow(self, command: c.QueueCommand) -> None:
        """The next command."""
        resources: Any = self._capture.resources
        if isinstance(command, c.Upload):
            resource = resources[command.resource]
            if resource.target == Target.BUFFER:
                box = Box(*command.box)
                data = np.frombuffer(self._capture.data[command.address], np.uint8)
                target, end = self.buffer(resource), box.x + box.width
                target.content[box.x : end] = data
                target.owner[box.x : end] = command.address
                target.place[box.x : end] = np.arange(box.width)
                target.writes += 1
        elif isinstance(command, c.Copy):
            target, source = resources[command.target], resources[command.source]
            if target.target == source.target == Target.BUFFER:
                self._copy(command, target, source)

    def _copy(self, command: c.Copy, target: Any, source: Any) -> None:
        box, at = Box(*command.box), command.place[0]
        if box.x + box.width > source.size or at + box.width > target.size:
            return  # the processor refuses it
        one, other = self.buffer(target), self.buffer(source)
        for name in ("content", "owner", "place"):
            part = getattr(other, name)[box.x : box.x + box.width].copy()
            getattr(one, name)[at : at + box.width] = part
        one.writes += 1


KINDS: dict[str, Any] = {
    "f4": np.float32, "f2": np.float16, "u1": np.uint8, "u2": np.uint16, "u4": np.uint32,
    "i1": np.int8, "i2": np.int16, "i4": np.int32,
}  # fmt: skip
"""Types of cells: letter and bytes."""
MAX_ROWS = 1 << 22
_SIGNED = ("SNORM", "SSCALED", "SINT")
_WORD = 1 << 32


@dataclass(frozen=True)
class Column:
    """A column of a table: a number of each row, `offset` bytes after the row's begin."""

    name: str
    kind: str
    offset: int

    @property
    def size(self) -> int:
        """Bytes of a cell."""
        return int(self.kind[1])


@dataclass(frozen=True)
class Shape:
    """The place of a table in a buffer.

    Attributes
    ----------
    resource
        The buffer's number.
    start, stride
        Byte of row 0, and bytes from row to row.
    """

    resource: int
    start: int
    stride: int
    columns: tuple[Column, ...]


@dataclass
class Table:
    """Rows `first` to `last` of a shape, as they were when draws read them.

    `content` begins at byte `begin` of the buffer; `runs` say where its bytes come from.
    """

    shape: Shape
    first: int
    last: int
    begin: int = 0
    content: Any = None
    runs: Sequence[tuple[int, int, int, int]] = ()


def columns_of(name: str, number: Any, offset: int) -> tuple[Column, ...]:
    """The columns of a vertex format."""
    layout = layout_of(number)
    if layout is None or not layout.channels:
        return ()
    widths = {width for _, width in layout.channels}
    if len(widths) != 1 or not widths <= {8, 16, 32}:
        sizes = layout.block_bytes
        return tuple(Column(f"{name}.byte{one}", "u1", offset + one) for one in range(sizes))
    width = widths.pop()
    letter = "f" if layout.kind == "FLOAT" else "i" if layout.kind in _SIGNED else "u"
    return tuple(
        Column(f"{name}.{'xyzw'[place]}", f"{letter}{width // 8}", offset + place * width // 8)
        for place in range(len(layout.channels))
        if place < 4
    )


class DrawTables:
    """The tables of all draws; draws that read the same bytes share them."""

    def __init__(self, capture: Capture) -> None:
        self._capture = capture
        self._buffers = Buffers(capture)
        self.tables: dict[tuple[Shape, int], Table] = {}
        self.of_draws: dict[tuple[int, int], list[tuple[Shape, int]]] = {}
        """By frame and place of the command."""
        for frame, place, command in capture.walk():
            self._buffers.follow(command)
            if command.name == "draw":
                drawn: Any = command
                self.of_draws[frame.number, place] = self._draw(drawn)

    def _draw(self, draw: c.Draw) -> list[tuple[Shape, int]]:
        state = self._capture.state_of(draw)
        found = []
        lowest, highest = draw.start, draw.start + draw.count - 1
        if draw.indexed and state.index_buffer is not None:
            indices = self._indices(state, draw)
            if indices is None:
                return []
            shape, used = indices
            found.append(self._table(shape, draw.start, draw.start + draw.count - 1))
            if not len(used):
                return [one for one in found if one is not None]
            lowest, highest = int(used.min()) + draw.index_bias, int(used.max()) + draw.index_bias
        for divisor, shape in self._shapes(state):
            if divisor:
                first = draw.start_instance
                last = first + (draw.instances - 1) // divisor
                found.append(self._table(shape, first, last))
            else:
                found.append(self._table(shape, lowest, highest))
        return [one for one in found if one is not None]

    def _shapes(self, state: PipeState) -> list[tuple[int, Shape]]:
        elements = state.vertex_elements.elements if state.vertex_elements is not None else ()
        groups: dict[tuple[int, int, int, int], list[Column]] = {}
        for number, one in enumerate(elements):
            index = one.vertex_buffer_index
            bound = state.vertex_buffers[index] if index < len(state.vertex_buffers) else None
            resource: Any = bound.resource if bound is not None else None
            if bound is None or resource.target != Target.BUFFER:
                continue
            key = resource.number, bound.state.offset, bound.state.stride, one.instance_divisor
            groups.setdefault(key, []).extend(columns_of(f"IN[{number}]", one.src_format, one.src_offset))
        found = []
        for (resource, offset, stride, divisor), columns in groups.items():
            # Mesa subtracts what a draw does not read: offsets wrap.
            least = min((one.offset for one in columns), default=0)
            inside = tuple(Column(one.name, one.kind, one.offset - least) for one in columns)
            start = (offset + least) % _WORD
            if start >= _WORD // 2:
                start -= _WORD
            found.append((divisor, Shape(resource, start, stride, inside)))
        return found

    def _indices(self, state: PipeState, draw: c.Draw) -> tuple[Shape, Any] | None:
        bound = state.index_buffer
        assert bound is not None
        resource: Any = bound.resource
        size = bound.index_size
        if size not in INDEX_SIZES or resource.target != Target.BUFFER:
            return None
        content = self._buffers.buffer(resource).content
        begin = bound.offset + draw.start * size
        end = begin + draw.count * size
        if end > len(content):
            return None
        used = (
            content[begin:end].view(f"<u{size}")
            if not begin % size
            else (content[begin:end].copy().view(f"<u{size}"))
        )
        if draw.primitive_restart:
            used = used[used != draw.restart_index % (1 << 8 * size)]
        columns = (Column("index", f"u{size}", 0),)
        return Shape(resource.number, bound.offset, size, columns), used

    def _table(self, shape: Shape, lowest: int, highest: int) -> tuple[Shape, int] | None:
        """The table of a shape as its buffer is now, with these rows."""
        resource = self._capture.resources[shape.resource]
        size = max((one.offset + one.size for one in shape.columns), default=0)
        if not size:
            return None
        if shape.stride == 0:
            lowest = highest = 0
        else:
            lowest = max(lowest, -(shape.start // shape.stride) if shape.start < 0 else 0)
            highest = min(highest, (resource.size - size - shape.start) // shape.stride)
        highest = min(highest, lowest + MAX_ROWS)
        begin, end = (shape.start + lowest * shape.stride, shape.start + highest * shape.stride + size)
        if highest < lowest or begin < 0 or end > resource.size:
            return None
        buffer = self._buffers.buffer(resource)
        key = shape, buffer.writes
        known = self.tables.get(key)
        if known is not None:
            lowest, highest = min(known.first, lowest), max(known.last, highest)
            begin = shape.start + lowest * shape.stride
            end = shape.start + highest * shape.stride + size
            if (lowest, highest) == (known.first, known.last):
                return key
        self.tables[key] = Table(
            shape, lowest, highest, begin, buffer.content[begin:end].copy(), buffer.runs(begin, end)
        )
        return key


def header(shape: Shape) -> str:
    """The line with the columns' names."""
    return ",".join(["row", *(one.name for one in shape.columns)])


def rows_text(shape: Shape, first: int, last: int, content: Any) -> list[str]:
    """The lines of rows; `content` begins with row `first`."""
    count = last - first + 1
    texts: list[list[str]] = [[str(number) for number in range(first, last + 1)]]
    for one in shape.columns:
        values = _cells(one, shape.stride, count, content)
        texts.append(values.astype("U").tolist())
    return [",".join(row) for row in zip(*texts, strict=True)]


def _cells(column: Column, stride: int, count: int, content: Any) -> Any:
    """The numbers of a column."""
    starts = column.offset + np.arange(count, dtype=np.int64) * stride
    data = content[starts[:, None] + np.arange(column.size)]
    kind = np.dtype(KINDS[column.kind]).newbyteorder("<")
    return np.ascontiguousarray(data).view(kind)[:, 0]


def cell_bytes(column: Column, text: str) -> bytes:
    """The bytes of an edited cell. Raises ValueError, OverflowError."""
    if column.kind[0] == "f":
        value = KINDS[column.kind](float(text))
        if np.isinf(value) and "inf" not in text.lower():
            raise OverflowError(text)
        return bytes(value.astype(value.dtype.newbyteorder("<")).tobytes())
    if len(text) > 12:
        raise ValueError(text)
    return int(text, 0).to_bytes(column.size, "little", signed=column.kind[0] == "i")


HEADER = "name,x,y,z,w"


def constants_rows(data: bytes) -> list[list[str]]:
    """Name and four words of each register."""
    words = struct.unpack(f"<{len(data) // 4}I", data[: len(data) & ~3])
    return [
        [f"CONST[{first // 4}]", *(word_text(word, SMALLEST, math.inf) for word in words[first : first + 4])]
        for first in range(0, len(words), 4)
    ]


def constants_csv(data: bytes) -> str:
    """The table of a buffer."""
    return "".join(f"{line}\n" for line in [HEADER, *map(",".join, constants_rows(data))])


def parse_constants(text: str, file: str) -> bytes:
    """The buffer of a table. Raises CaptureError."""
    words: list[int] = []
    lines = text.rstrip().split("\n")
    if lines[0].strip() != HEADER:
        raise CaptureError("CAP-006", f"the first line is not {HEADER}", file, 1)
    for number, line in enumerate(lines[1:], 2):
        cells = [cell.strip() for cell in line.split(",")]
        if cells[0] != f"CONST[{number - 2}]":
            raise CaptureError("CAP-006", f"{cells[0][:40]!r} is not CONST[{number - 2}]", file, number)
        if not 2 <= len(cells) <= 5 or (len(cells) < 5 and number <= len(lines) - 1):
            raise CaptureError("CAP-006", f"{len(cells) - 1} words, but there must be 4", file, number)
        for cell in cells[1:]:
            try:
                words.append(word_from_text(cell))
            except ValueError as error:
                raise CaptureError("CAP-006", str(error), file, number) from None
    if len(words) > 1 << 16:
        raise CaptureError("CAP-006", "more than 65536 words", file)
    return struct.pack(f"<{len(words)}I", *words)
