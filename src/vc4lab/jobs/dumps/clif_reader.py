"""CLIF → buffers and lists: the text in which Broadcom's and Mesa's tools keep a job.

@createbuf_aligned 4096 mem_0x1e000000      a buffer; its content follows below
@buffer mem_0x1e000000
@format ctrllist                            records: a name, then a value for each field
CLEAR_COLORS
  /*                        stencil: */ 0
@format shadrec_gl_main, shadrec_gl_attr    a GL shader record, one of its arrays
@format binary                              words of 0x and eight digits, bytes of two
@format blank 4096                          zeros
@add_bin 0 [mem_0x1e000000+0x10] [mem_0x1e000000+0x90] [null] 0 [null]
@add_render 0 START END [null]

Formats follow each other in a buffer without gaps. The text does not say where buffers lie: a
name that ends in `_0x` and an address says it, or a comment after `[buffer+0x…]`; others are put where
there is room. What VC4_DEBUG=cl prints is a list of the same records without memory.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from vc4lab.bits import Layout
from vc4lab.capture.errors import CaptureError
from vc4lab.files import size_text
from vc4lab.jobs.dumps.clif_fields import BY_CLIF_NAME, fields_of, word_of
from vc4lab.jobs.dumps.memory_dump import MOST_BUFFERS, MOST_BYTES, DumpBuffer, ListRange, MemoryDump
from vc4lab.memory import MEMORY_SIZE
from vc4lab.records.control import RECORDS
from vc4lab.records.shader import AttributeRecord, GlShaderRecord

MOST_TEXT = 1 << 27
MOST_RECORDS = 1 << 18
LONGEST_LINE = 1 << 16
FIRST = 0x0100_0000
"""Address of the first buffer that has none."""
ALIGNMENT = 4096
LIST, BINARY, BLANK = "ctrllist", "binary", "blank"
_STRUCTS: dict[str, type[Layout]] = {"shadrec_gl_main": GlShaderRecord, "shadrec_gl_attr": AttributeRecord}
_COMMENT = re.compile(r"/\*.*?\*/")
_NAMED = re.compile(r"\[([^\[\]+\s]{1,100})\+0x([0-9a-fA-F]{1,8})\]\s*/\*\s*0x([0-9a-fA-F]{1,8})\s*\*/")
_REFERENCE = re.compile(r"\[([^\[\]+\s]{1,100})(?:\+(0x[0-9a-fA-F]{1,8}|\d{1,10}))?\]")
_ADDRESS = re.compile(r".*_0x([0-9a-fA-F]{1,8})")
_TOKEN = re.compile(r"\[[^\]]*\]|\S+")
_ARGUMENTS = {"@add_bin": 5, "@add_render": 3}
"""Numbers and addresses after the number of the core."""


def is_clif(head: bytes) -> bool:
    """Whether a file begins as CLIF does."""
    lines = (line.strip() for line in head.split(b"\n"))
    first = next((line for line in lines if line and not line.startswith((b"/*", b"#", b"//"))), b"")
    return first.startswith((b"@createbuf", b"@buffer"))


class _Part(NamedTuple):
    """A part of a buffer: a record to be made when all addresses are known."""

    at: int
    kind: type[Layout]
    id: int
    """The id of a record of a list; -1: the part has none."""
    values: tuple[str, ...]
    line: int


@dataclass
class _Buffer:
    name: str
    address: int | None = None
    data: bytearray = field(default_factory=bytearray)
    parts: list[_Part] = field(default_factory=list)


def read_clif(data: bytes, name: str) -> MemoryDump:
    """The buffers and lists of a CLIF. Raises CaptureError, with the line that is wrong."""
    return _Reader(data, name).dump()


class _Reader:
    def __init__(self, data: bytes, name: str) -> None:
        self._data, self._name = data, name
        self._buffers: dict[str, _Buffer] = {}
        self._buffer: _Buffer | None = None
        self._format = ""
        self._record: tuple[str, int] | None = None
        """Name of the record at hand, and its line."""
        self._values: list[str] = []
        self._jobs: list[tuple[str, list[str], int]] = []
        self._line = 0
        self._bytes = self._records = 0

    def wrong(self, text: str, line: int | None = None) -> CaptureError:
        """An error about a line, or the one at hand."""
        return CaptureError("CAP-012", text, self._name, self._line if line is None else line)

    def dump(self) -> MemoryDump:
        """Read all of it. Raises CaptureError."""
        if len(self._data) > MOST_TEXT:
            raise CaptureError("CAP-012", f"more than {size_text(MOST_TEXT)} of text", self._name)
        for text in self._lines():
            self._take(text)
        self._end_record()
        self._place()
        for one in self._buffers.values():
            self._fill(one)
        dump = MemoryDump("clif", self._name)
        dump.buffers = [
            DumpBuffer(one.name, one.address or 0, one.data) for one in self._buffers.values() if one.data
        ]
        for kind, values, line in self._jobs:
            dump.lists.append(self._job(kind, values, line))
        if not dump.lists:
            dump.notes.append("it starts no list: there is no @add_bin and no @add_render")
        return dump

    def _lines(self) -> Iterator[str]:
        place = 0
        while place < len(self._data):
            self._line += 1
            end = self._data.find(b"\n", place)
            end = len(self._data) if end < 0 else end
            if end - place > LONGEST_LINE:
                raise self.wrong(f"a line of {end - place} bytes")
            yield self._data[place:end].decode("latin-1")
            place = end + 1

    # -- lines -----------------------------------------------------------------------------------------

    def _take(self, text: str) -> None:
        if self._format == BINARY and text.startswith("0x") and self._buffer is not None:
            self._binary(text)
            return
        if "*/" in text:
            for found in _NAMED.finditer(text):
                self._hint(found[1], int(found[3], 16) - int(found[2], 16))
            text = _COMMENT.sub(" ", text)
        tokens = _TOKEN.findall(text)
        if not tokens:
            return
        if tokens[0].startswith("@"):
            self._directive(tokens[0], tokens[1:])
        elif self._jobs_are_open:
            self._jobs[-1][1].extend(tokens)
        elif self._format == BINARY:
            self._binary(text)
        elif self._format == LIST:
            for one in tokens:
                if one[0].isalpha() or one == "_":
                    self._begin_record(one)
                else:
                    self._value(one)
        elif self._format in _STRUCTS:
            for one in tokens:
                self._value(one)
        else:
            raise self.wrong(f"{text.strip()[:40]!r} stands in no format")

    @property
    def _jobs_are_open(self) -> bool:
        """Whether words belong to the list that was started last."""
        return self._format == "@"

    def _directive(self, word: str, rest: list[str]) -> None:
        self._end_record()
        if word in ("@createbuf", "@createbuf_aligned"):
            if not rest:
                raise self.wrong(f"{word} takes an alignment and a name")
            self._create(rest[-1])
        elif word == "@buffer":
            if len(rest) != 1:
                raise self.wrong("@buffer takes a name")
            self._buffer, self._format = self._create(rest[0]), ""
        elif word == "@format":
            self._begin_format(rest)
        elif word in _ARGUMENTS:
            self._format = "@"
            self._jobs.append((word, list(rest), self._line))
            if len(self._jobs) > MOST_BUFFERS:
                raise self.wrong("too many lists are started")
        elif word.startswith("@wait"):
            self._format = ""
        else:
            raise self.wrong(f"there is no {word[:40]}, but @buffer, @format, @add_bin, @add_render")

    def _begin_format(self, rest: list[str]) -> None:
        if self._buffer is None:
            raise self.wrong("@format: there is no @buffer before it")
        kind = rest[0] if rest else ""
        if kind == BLANK:
            try:
                size = int(rest[1], 0)
            except (IndexError, ValueError):
                size = -1
            if size < 0:
                raise self.wrong("@format blank takes how many bytes")
            self._grow(size)
            self._buffer.data += bytes(size)
            self._format = ""
        elif kind in (LIST, BINARY) or kind in _STRUCTS:
            self._format = kind
            if kind in _STRUCTS:
                self._record = kind, self._line
        else:
            raise self.wrong(f"there is no format {kind[:40]!r}, but {LIST}, {BINARY}, {BLANK}, "
                             f"{', '.join(_STRUCTS)}")  # fmt: skip

    # -- content -----------------------------------------------------------------------------------

    def _create(self, name: str) -> _Buffer:
        found = self._buffers.get(name)
        if found is None:
            if len(self._buffers) >= MOST_BUFFERS:
                raise self.wrong(f"more than {MOST_BUFFERS} buffers")
            found = self._buffers[name] = _Buffer(name)
            said = _ADDRESS.fullmatch(name)
            if said is not None:
                found.address = int(said[1], 16)
        return found

    def _hint(self, name: str, address: int) -> None:
        known = self._buffers.get(name)
        if known is not None and known.address is None and address >= 0:
            known.address = address

    def _grow(self, size: int) -> None:
        self._bytes += size
        if self._bytes > MOST_BYTES:
            raise self.wrong(f"the buffers have more than {size_text(MOST_BYTES)}")

    def _binary(self, text: str) -> None:
        if "/*" in text:
            text = _COMMENT.sub(" ", text)
        assert self._buffer is not None
        for one in text.split():
            try:
                self._buffer.data += int(one, 16).to_bytes(4 if len(one) > 4 else 1, "little")
            except (ValueError, OverflowError):
                raise self.wrong(f"{one[:40]!r} is neither a word, 0x and eight digits, nor a byte") from None
        self._grow(4 * text.count("0x"))

    def _begin_record(self, name: str) -> None:
        self._end_record()
        if name not in BY_CLIF_NAME:
            raise self.wrong(f"there is no record {name[:60]}")
        self._record = name, self._line

    def _value(self, text: str) -> None:
        if self._record is None:
            raise self.wrong(f"{text[:40]} belongs to no record")
        if len(self._values) >= 32:
            raise self.wrong(f"{self._record[0]} has not as many values")
        self._values.append(text)

    def _end_record(self) -> None:
        """Put the record at hand into its buffer; its bits are found when addresses are known."""
        record, self._record = self._record, None
        values, self._values = tuple(self._values), []
        if record is None or self._buffer is None:
            return
        name, line = record
        self._records += 1
        if self._records > MOST_RECORDS:
            raise self.wrong(f"more than {MOST_RECORDS} records")
        number = -1 if name in _STRUCTS else BY_CLIF_NAME[name]
        kind = _STRUCTS[name] if number < 0 else RECORDS[number]
        if len(values) != len(fields_of(kind)):
            names = ", ".join(one.name for one in fields_of(kind)) or "none"
            raise self.wrong(f"{name}: {len(values)} values, but its fields are {names}", line)
        size = (number >= 0) + kind.bit_width // 8
        self._grow(size)
        self._buffer.parts.append(_Part(len(self._buffer.data), kind, number, values, line))
        self._buffer.data += bytes(size)

    # -- addresses ---------------------------------------------------------------------------------

    def _place(self) -> None:
        """Give the buffers that have none an address above all others."""
        known = [(one.address, len(one.data)) for one in self._buffers.values() if one.address is not None]
        free = max([FIRST, *((address + size) & MEMORY_SIZE - 1 for address, size in known)])
        for one in self._buffers.values():
            if one.address is None:
                one.address = free = -(-free // ALIGNMENT) * ALIGNMENT
                free += max(len(one.data), 1)
        if free > MEMORY_SIZE:
            raise CaptureError("CAP-012", "there is no room in memory for its buffers", self._name)

    def _resolve(self, text: str) -> int:
        """The address of `[buffer+0x…]`. Raises ValueError."""
        if text == "[null]":
            return 0
        found = _REFERENCE.fullmatch(text)
        target = self._buffers.get(found[1]) if found is not None else None
        if found is None or target is None:
            raise ValueError(f"there is no buffer {text[:60]}")
        return ((target.address or 0) + int(found[2] or "0", 0)) & 0xFFFFFFFF

    def _fill(self, one: _Buffer) -> None:
        for part in one.parts:
            try:
                word = word_of(part.kind, part.values, self._resolve)
            except ValueError as error:
                raise self.wrong(str(error), part.line) from None
            data = (bytes([part.id]) if part.id >= 0 else b"") + word.to_bytes(
                part.kind.bit_width // 8, "little"
            )
            one.data[part.at : part.at + len(data)] = data

    def _job(self, kind: str, values: list[str], line: int) -> ListRange:
        """A list that is started. Raises CaptureError."""
        if len(values) not in (3, 1 + _ARGUMENTS[kind]):
            raise self.wrong(f"{kind} takes a core, start, end and {_ARGUMENTS[kind] - 2} more", line)
        try:
            start, end = (self._resolve(one) if one.startswith("[") else int(one, 0) for one in values[1:3])
            if not 0 <= start <= 0xFFFFFFFF or not 0 <= end <= 0xFFFFFFFF:
                raise ValueError("an address has 32 bits")
        except ValueError as error:
            raise self.wrong(f"{kind}: {error}", line) from None
        return ListRange(int(kind == "@add_render"), start, end)
