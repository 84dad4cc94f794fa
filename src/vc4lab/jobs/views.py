"""Shows what the memory of a job means, as text and tables that people edit.

A view shows memory as it is when a list or user program starts. Each of its lines stands for bytes
at an address; a line that was edited changes these bytes before the job starts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from vc4lab.bits import sign_extend
from vc4lab.jobs.fields_text import layout_from_text, word_from_text, word_text
from vc4lab.jobs.texture_views import TextureView, texture_view
from vc4lab.jobs.uniforms import uniform_uses
from vc4lab.jobs.walk import nested, programs_of
from vc4lab.qpu.program.reader import program_at
from vc4lab.qpu.text.assembler import assemble
from vc4lab.qpu.text.disassembler import disassemble
from vc4lab.qpu.text.syntax import AssemblyError
from vc4lab.records.codes import IndexType
from vc4lab.records.control import RECORDS, Record, format
from vc4lab.records.declarations import IndexedPrimitives, VertexArrayPrimitives, VgCoordinateArray
from vc4lab.records.shader import (
    ATTRIBUTE_SIZE,
    EXTENDED_STRIDES,
    GL_FIXED_SIZE,
    AttributeRecord,
    GlShaderRecord,
    NvShaderRecord,
    VgShaderRecord,
    WideStrideRecord,
    attribute_count,
    parse_gl_state,
    parse_nv,
)
from vc4lab.records.states import GlShaderState, NvShaderState, VgInlineShader, VgShaderState

if TYPE_CHECKING:
    from vc4lab.bits import Layout
    from vc4lab.memory import GuestMemory

MAX_RECORDS = 1 << 16
MAX_ROWS = 1 << 16
"""Rows of a table of vertices or indices, at most."""
MAX_INSTRUCTIONS = 4096
INSTRUCTION = 8

Encode = Callable[[str], bytes]


@dataclass(frozen=True)
class ViewLine:
    """A line, and the bytes that it stands for; `encode` makes them of such a line (ValueError).

    None: it is there to be read only.
    """

    text: str
    address: int = 0
    size: int = 0
    encode: Encode | None = None


@dataclass
class View:
    """Lines of a file."""

    file: str
    lines: list[ViewLine] = field(default_factory=list)

    def say(self, text: str) -> None:
        """A line to be read."""
        self.lines.append(ViewLine(f"# {text}"))

    def add(self, text: str, address: int, size: int, encode: Encode) -> None:
        """A line to be edited."""
        self.lines.append(ViewLine(text, address, size, encode))


class JobViews:
    """The views of one job. `name` begins the names of their files."""

    def __init__(self, memory: GuestMemory, name: str) -> None:
        self._memory = memory
        self._name = name
        self.views: list[View] = []
        self.textures: dict[str, TextureView] = {}
        self._known: set[tuple[Any, ...]] = set()
        self._tables: dict[tuple[Any, ...], View] = {}
        """By address, stride and bytes of a row: draws use more and more of a table."""

    def _view(self, what: str, kind: str) -> View:
        """A view in a file of its own: what lies at an address may be read in several ways."""
        name, count = f"{self._name}-{what}", 1
        while not self._first("file", name):
            count += 1
            name = f"{self._name}-{what}-{count}"
        view = View(f"{name}.{kind}")
        self.views.append(view)
        return view

    def _first(self, *key: Any) -> bool:
        """Whether this is seen for the first time."""
        new = key not in self._known
        self._known.add(key)
        return new

    # -- lists -------------------------------------------------------------------------------------

    def list(self, kind: str, start: int, end: int) -> None:
        """A list with its sub-lists, and all that its records point to."""
        view = self._view(kind, "txt")
        view.say(f"{kind} list 0x{start:08x}..0x{end:08x}: address, id, name, fields")
        shader: Record | None = None
        for record, depth in nested(self._memory.read, start, end, MAX_RECORDS):
            self._record(view, record, "    " * depth)
            payload = record.payload
            if isinstance(payload, GlShaderState | NvShaderState | VgShaderState | VgInlineShader):
                shader = record
                self._shader(record)
            elif isinstance(payload, IndexedPrimitives):
                self._indices(payload)
                self._vertices(shader, int(payload.maximum_index) + 1)
            elif isinstance(payload, VertexArrayPrimitives):
                self._vertices(shader, int(payload.first) + int(payload.length))
            elif isinstance(payload, VgCoordinateArray):
                self._coordinates(payload)

    def _record(self, view: View, record: Record, pad: str) -> None:
        first, *more = format(record).split("\n")
        kind = RECORDS.get(record.id)
        if record.problem is not None or kind is None:
            view.say(first)
            return
        view.add(pad + first, record.address, kind.size, partial(_record_bytes, kind.size))
        for line in more:
            view.say(line.strip())

    # -- shaders -----------------------------------------------------------------------------------

    def _shader(self, record: Record) -> None:
        payload = record.payload
        if isinstance(payload, GlShaderState | NvShaderState | VgShaderState):
            if not self._first("shader", record.id, payload.value):
                return
            address = int(payload.address)
            view = self._view(f"shader-{address:08x}", "txt")
            if isinstance(payload, GlShaderState):
                self._gl_record(view, payload, address)
            else:
                is_nv = isinstance(payload, NvShaderState)
                self._layout(view, NvShaderRecord if is_nv else VgShaderRecord, address)
        for name, code, uniforms in programs_of(self._memory.read, payload):
            self.program(name, code, uniforms)

    def _gl_record(self, view: View, payload: GlShaderState, address: int) -> None:
        self._layout(view, GlShaderRecord, address)
        count = attribute_count(payload)
        for number in range(count):
            self._layout(view, AttributeRecord, address + GL_FIXED_SIZE + ATTRIBUTE_SIZE * number)
        if payload.extended:
            view.say("the strides of the arrays, beyond their lowest 8 bits")
            for number in range(count):
                self._layout(view, WideStrideRecord, address + EXTENDED_STRIDES + 4 * number)

    def _layout(self, view: View, kind: type[Layout], address: int) -> None:
        size = kind.bit_width // 8
        found = kind.from_bytes(self._memory.read(address, size).ljust(size, b"\0"))
        view.add(f"{address:08x}  {found.text()}", address, size, partial(_layout_bytes, kind))

    def program(self, name: str, code: int, uniforms: int) -> None:
        """A program's instructions, its uniforms with what they are for, and its textures."""
        program = program_at(self._memory, code, limit=MAX_INSTRUCTIONS)
        if self._first("code", code):
            view = self._view(f"program-{code:08x}", "qasm")
            view.say(f"{name} program")
            for index, word in enumerate(program.words):
                at = code + INSTRUCTION * index
                text = disassemble(word, at)
                view.add(text, at, INSTRUCTION, _instruction_bytes)
        if not program.uniform_sites or not self._first("uniforms", code, uniforms):
            return
        view = self._view(f"uniforms-{uniforms:08x}-{code:08x}", "csv")
        view.say(f"of the {name} program at 0x{code:08x}: uniform, value, what it is for")
        uses = uniform_uses(self._memory, program, uniforms)
        for one in uses:
            value = word_text(one.word) if one.is_plain else f"0x{one.word:08x}"
            view.add(f"{one.number},{value},{one.what}", uniforms + 4 * one.number, 4, _cell_bytes)
        for one in uses:
            if one.texture is not None and len(one.request) > 1:
                view.say(f"texture of request {one.request[0]}: {one.texture.text()}")
                if self._first("texture", *one.parameters[:2]):
                    found = texture_view(self._memory.read, one.texture)
                    if found is not None:
                        self.textures[f"{self._name}-texture-{one.texture.base:08x}.png"] = found

    # -- vertices ----------------------------------------------------------------------------------

    def _vertices(self, shader: Record | None, count: int) -> None:
        payload = shader.payload if shader is not None else None
        rows, read = min(count, MAX_ROWS), self._memory.read
        if isinstance(payload, NvShaderState):
            nv = parse_nv(read, payload.address)
            self._table(int(nv.vertices), int(nv.stride), int(nv.stride), rows)
        elif isinstance(payload, GlShaderState):
            for array in parse_gl_state(read, payload).attributes:
                self._table(array.address, array.stride, array.size, rows)

    def _table(self, address: int, stride: int, size: int, rows: int) -> None:
        if not size:
            return
        unit = 4 if not size % 4 else 2 if not size % 2 else 1
        view = self._tables.get((address, stride, size))
        if view is None:
            view = self._tables[address, stride, size] = self._view(f"vertices-{address:08x}", "csv")
            what = {4: "words", 2: "half words", 1: "bytes"}[unit]
            view.say(f"vertex, {what} from 0x{address:08x} on, {stride} bytes from one to the next")
        for row in range(len(view.lines) - 1, rows if stride else 1):
            at = (address + stride * row) & 0xFFFFFFFF
            data = self._memory.read(at, size).ljust(size, b"\0")
            cells = [int.from_bytes(data[n : n + unit], "little") for n in range(0, size, unit)]
            text = ",".join([str(row), *map(word_text if unit == 4 else str, cells)])
            view.add(text, at, size, partial(_row_bytes, row, size // unit, unit))

    def _coordinates(self, payload: VgCoordinateArray) -> None:
        """The points of a VG list."""
        address, count = int(payload.address), min(int(payload.length), MAX_ROWS)
        if not self._first("coordinates", address, count):
            return
        view = self._view(f"coordinates-{address:08x}", "csv")
        view.say(f"point, x and y in pixels, from 0x{address:08x} on")
        for place in range(count):
            word = self._memory.u32(address + 4 * place)
            x, y = (sign_extend(one, 16) / 16 for one in (word, word >> 16))
            view.add(f"{place},{x:g},{y:g}", (address + 4 * place) & 0xFFFFFFFF, 4, _point_bytes)

    def _indices(self, payload: IndexedPrimitives) -> None:
        wide = payload.index_type == IndexType.SHORT
        size = 2 if wide else 1
        address, count = int(payload.address), min(int(payload.length), MAX_ROWS)
        if not self._first("indices", address, count, size):
            return
        view = self._view(f"indices-{address:08x}", "csv")
        view.say(f"place, index of {size} bytes, from 0x{address:08x} on")
        for place in range(count):
            at = address + size * place
            value = self._memory.u16(at) if wide else self._memory.u8(at)
            view.add(f"{place},{value}", at, size, partial(_index_bytes, size))


def _record_bytes(size: int, text: str) -> bytes:
    """A record of a list."""
    words = text.split(None, 2)
    if len(words) < 2 or not words[1].isdigit():
        raise ValueError("a record is its address, its id, its name and its fields")
    kind = RECORDS.get(int(words[1]))
    if kind is None:
        raise ValueError(f"there is no record {words[1]}")
    if kind.size != size:
        raise ValueError(f"record {kind.id} has {kind.size} bytes, but there is room for {size}")
    rest = words[2] if len(words) > 2 else ""
    if not rest.startswith(kind.title):
        raise ValueError(f"record {kind.id} is called {kind.title!r}")
    fields = rest[len(kind.title) :].partition("  [")[0]
    return bytes([kind.id]) + layout_from_text(kind, fields).to_bytes()


def _layout_bytes(kind: type[Layout], text: str) -> bytes:
    return layout_from_text(kind, text.partition(" ")[2]).to_bytes()


def _instruction_bytes(text: str) -> bytes:
    try:
        made = assemble(text)
    except AssemblyError as error:
        raise ValueError(error.errors[0].message) from None
    if len(made.words) != 1:
        raise ValueError("a line is one instruction")
    return made.words[0].to_bytes(INSTRUCTION, "little")


def _cell_bytes(text: str) -> bytes:
    cells = text.split(",")
    if len(cells) < 2:
        raise ValueError("a row is the uniform, its value and what it is for")
    return word_from_text(cells[1]).to_bytes(4, "little")


def _row_bytes(row: int, count: int, unit: int, text: str) -> bytes:
    cells = text.split(",")
    if len(cells) != count + 1 or cells[0].strip() != str(row):
        raise ValueError(f"not row {row} with {count} numbers")
    if unit == 4:
        return b"".join(word_from_text(one).to_bytes(4, "little") for one in cells[1:])
    return b"".join(_whole_bytes(unit, one) for one in cells[1:])


def _point_bytes(text: str) -> bytes:
    cells = text.split(",")
    if len(cells) != 3:
        raise ValueError("a row is the point, x and y")
    try:
        return b"".join(round(float(one) * 16).to_bytes(2, "little", signed=True) for one in cells[1:])
    except (ValueError, OverflowError):
        raise ValueError(f"{text[:40]!r} has no coordinates from -2048 to 2047.9375") from None


def _whole_bytes(size: int, text: str) -> bytes:
    try:
        return int(text, 0).to_bytes(size, "little")
    except (ValueError, OverflowError):
        raise ValueError(f"{text[:40]!r} is no number of {size} bytes") from None


def _index_bytes(size: int, text: str) -> bytes:
    return _whole_bytes(size, text.partition(",")[2])


def lines_of(view: View) -> Iterator[str]:
    """The lines of a view's file."""
    for line in view.lines:
        yield line.text
