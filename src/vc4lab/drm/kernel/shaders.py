"""The kernel's half of shader records and uniforms: indices become addresses.

Stream formats: per record 3 + n buffer indices (fragment, vertex, coordinate code, then attribute
buffers) and the record with offsets in place of addresses; per program one index for each texture
request, then the words it consumes, in the textual order of its instructions.
Source: Linux vc4_validate.c and vc4_validate_shaders.c.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, NoReturn

from vc4lab.diagnostics import Reporter
from vc4lab.drm.kernel.binning import ShaderUse, buffer_at, place_in_list, round_up
from vc4lab.drm.kernel.shader_rules import CheckedShader, Violation, check_shader
from vc4lab.drm.kernel.streams import Stream
from vc4lab.drm.kernel.texture_rules import lookup_problem, texture_problem
from vc4lab.drm.uapi.submit import Buffer, Submit, refuse
from vc4lab.qpu.isa.encoding import INSTRUCTION_BYTES, words_of
from vc4lab.qpu.program.program import DEFAULT_LIMIT, Program
from vc4lab.qpu.program.reader import program_at
from vc4lab.qpu.text.disassembler import disassemble
from vc4lab.records.shader import (
    ALIGNMENT,
    ATTRIBUTE_SIZE,
    EXTENDED_STRIDES,
    GL_FIXED_SIZE,
    gl_record_size,
)

if TYPE_CHECKING:
    from vc4lab.memory import GuestMemory

PROGRAMS = ("fragment", "vertex", "coordinate")
CODE_PLACES = (4, 16, 28)
"""Byte of a record where each program's code address stands; that of its uniforms follows."""
_ADDRESSES = struct.Struct("<II")
_ATTRIBUTE = struct.Struct("<IBB")
_WORD = struct.Struct("<I")
_row = struct.Struct("<IIQ").pack
"""A buffer as compiled code wants it: address, size, place of its stream's table."""
MAX_TABLES = 256
MAX_TABLE = 256
"""Buffers of a job whose table is remembered."""
Streams = list[Stream | None]


class KnownShaders:
    """Shaders that were checked before, by the addresses of their buffers.

    Parameters
    ----------
    memory
        Where buffers lie whose content can change: a shader counts as known as long as its code is
        still there. None: buffers that nothing can write after they were checked.
    """

    def __init__(self, memory: GuestMemory | None = None) -> None:
        self._memory = memory
        self._streams: dict[int, Stream] = {}
        self._tables: dict[int, tuple[tuple[Buffer, ...], Streams, bytes]] = {}

    def add(self, address: int, stream: Stream) -> None:
        """Remember the shader whose buffer begins there, instead of the one that was there."""
        self._streams[address] = stream
        self._tables.clear()

    def table(self, buffers: tuple[Buffer, ...]) -> tuple[Streams, bytes]:
        """The shaders in a job's buffers, and the buffers as compiled code wants them.

        Where nothing can write them, they are remembered for this very tuple. Raises struct.error.
        """
        kept = self._tables.get(id(buffers))
        if kept is not None and kept[0] is buffers:
            return kept[1], kept[2]
        streams: Streams = []
        rows = []
        for buffer in buffers:
            stream = self.find(buffer.address, buffer.size) if buffer.shader else None
            streams.append(stream)
            place = stream.table_address if stream is not None else 0
            rows.append(_row(buffer.address, buffer.size, place))
        row_bytes = b"".join(rows)
        if self._memory is None and len(buffers) <= MAX_TABLE:
            if len(self._tables) >= MAX_TABLES:
                self._tables.clear()
            self._tables[id(buffers)] = buffers, streams, row_bytes
        return streams, row_bytes

    def find(self, address: int, size: int) -> Stream | None:
        """The shader in that buffer, if it was checked before."""
        stream = self._streams.get(address)
        if stream is None or self._memory is None:
            return stream
        same = stream.size == size and self._memory.holds(address, stream.code)
        return stream if same else None


def analyse(memory: GuestMemory, address: int, size: int) -> Stream:
    """Check a shader's buffer as the kernel does when it is made. Raises Violation."""
    length = INSTRUCTION_BYTES * min(size // INSTRUCTION_BYTES, DEFAULT_LIMIT)
    checked = check_shader(words_of(memory.read(address, length)))
    program = program_at(memory, address, limit=checked.length)
    for problem in program.problems:
        index = (problem.address - address) // INSTRUCTION_BYTES
        raise Violation("DRM-011", 2, index, problem.message)
    return Stream.of(program, checked, size)


class ShaderBuilder:
    """Consumes the record and uniform streams of one job, in order."""

    def __init__(
        self,
        submit: Submit,
        memory: GuestMemory,
        reporter: Reporter,
        uniforms: int,
        known: KnownShaders | None = None,
    ) -> None:
        self.known = known if known is not None else KnownShaders(memory)
        self.submit = submit
        self.memory = memory
        self.reporter = reporter
        self.records = submit.shader_rec
        self.next_index = 0
        """Byte of the record stream that comes next."""
        self.words = submit.uniforms
        self.next_word = 0
        """Byte of the uniform stream that comes next."""
        self.next_uniforms = self.first_uniforms = uniforms
        """Where the hardware's uniforms go; grows with every program."""
        self.buffers = submit.buffers
        self.built_records = bytearray()
        self.built_uniforms = bytearray()
        self.fragment_programs: list[Program] = []
        self._streams: dict[tuple[int, int], Stream] = {}
        self.place = 0
        """Byte of the binning list where the record stands that is at hand."""

    def refuse(self, code: str, text: str, rule: str, address: int | None = None) -> NoReturn:
        """Give up the job because of the record at hand. Raises JobError."""
        text = f"{place_in_list(self.place)}{text} (rule {rule})"
        refuse(self.reporter, code, text, address)

    def buffer(self, index: int, what: str, more: str = "", rule: str = "9.3") -> Buffer:
        """A buffer that the record at hand names. Raises JobError."""
        if index < len(self.buffers):
            return self.buffers[index]
        what = f"{place_in_list(self.place)}{what}{more}"
        return buffer_at(self.submit, index, self.reporter, what, rule)

    def record(self, use: ShaderUse) -> None:
        """Take the next record of the stream and write the hardware's form. Raises JobError."""
        self.place = use.place
        count = 3 + use.attributes
        size = gl_record_size(use.attributes, use.extended)
        start = self.next_index
        left = len(self.records) - start
        if left < 4 * count + size:
            self.refuse(
                "DRM-008",
                f"the stream has {left} bytes left, a record with {use.attributes} "
                f"attributes needs {4 * count + size}",
                "9.3",
            )
        indices = struct.unpack_from(f"<{count}I", self.records, start)
        self.next_index = start + 4 * count + size
        raw = bytearray(self.records[start + 4 * count : self.next_index])
        single = bool(raw[0] & 1)
        for name, code, index in zip(PROGRAMS, CODE_PLACES, indices, strict=False):
            buffer = self.buffer(index, name, " shader")
            if raw[code : code + 4] != bytes(4):
                self.refuse("DRM-011", f"{name} shader: code not at a buffer's start", "9.3")
            if not buffer.shader:
                self.refuse("DRM-011", f"{name} shader: its buffer is no shader buffer", "9.3")
            stream = self.stream(buffer.address, buffer.size, name)
            if name != "fragment" or stream.checked.threaded == single:
                self.check_threads(stream, name, single)
            if name == "fragment":
                self.fragment_programs.append(stream.program)
            _ADDRESSES.pack_into(raw, code, buffer.address, self.uniforms(stream, name))
        for number, index in enumerate(indices[3:]):
            self.attribute(number, raw, index, use)
        self.built_records += raw.ljust(round_up(len(raw), ALIGNMENT), b"\0")

    def write(self, records: int) -> None:
        """Put records and uniforms into memory; `records` is the first record's address."""
        self.memory.write(records, self.built_records)
        self.memory.write(self.first_uniforms, self.built_uniforms)

    def stream(self, address: int, size: int, name: str) -> Stream:
        """The program in a buffer and its uniforms. Raises JobError when it has no end there."""
        key = (address, size)
        if key not in self._streams:
            stream = self.known.find(address, size)
            if stream is None:
                stream = self.read(address, size, name)
                self.known.add(address, stream)
            self._streams[key] = stream
        return self._streams[key]

    def read(self, address: int, size: int, name: str) -> Stream:
        """Check and read a shader that is not known. Raises JobError."""
        checked = self.check(address, size, name)
        program = program_at(self.memory, address, limit=checked.length)
        for problem in program.problems:
            if problem.code == "QPU-047":  # breakpoints are not the kernel's business
                continue
            self.refuse("DRM-011", f"{name} shader: {problem.message}", "9.5", problem.address)
        return Stream.of(program, checked, size)

    def check(self, address: int, size: int, name: str) -> CheckedShader:
        """The kernel's look at a shader when its buffer is made. Raises JobError."""
        length = INSTRUCTION_BYTES * min(size // INSTRUCTION_BYTES, DEFAULT_LIMIT)
        words = words_of(self.memory.read(address, length))
        try:
            return check_shader(words)
        except Violation as violation:
            text = disassemble(words[violation.index]) if words else "nothing"
            refuse(
                self.reporter,
                violation.code,
                f"{place_in_list(self.place)}{name} shader, instruction {violation.index} "
                f"`{text}`: {violation}",
                address=address + INSTRUCTION_BYTES * violation.index,
            )

    def check_threads(self, stream: Stream, name: str, single: bool) -> None:
        """The record's flag must say what the program does; only fragment shaders switch."""
        threaded = stream.checked.threaded
        if name != "fragment":
            if threaded:
                self.refuse("DRM-011", f"a {name} shader switches threads", "9.3")
        elif threaded and single:
            text = "a fragment shader switches threads, its record says single threaded"
            self.refuse("DRM-011", text, "9.3")
        elif not threaded and not single:
            text = "a fragment shader never switches threads, its record says it has two"
            self.refuse("DRM-011", text, "9.3")

    def attribute(self, number: int, raw: bytearray, index: int, use: ShaderUse) -> None:
        """Give one attribute array its buffer's address."""
        buffer = self.buffer(index, "attribute", f" {number}")
        place = GL_FIXED_SIZE + ATTRIBUTE_SIZE * number
        address, size, stride = _ATTRIBUTE.unpack_from(raw, place)
        if use.extended:
            at = EXTENDED_STRIDES + 4 * number
            stride |= int.from_bytes(raw[at : at + 4], "little") & ~0xFF
        end = address + size + 1
        if end + stride * use.maximum_index > buffer.size:
            self.refuse(
                "DRM-012",
                f"attribute {number}: vertex {use.maximum_index} x {stride} + {end} bytes "
                f"in a buffer of {buffer.size}",
                "9.3",
                buffer.address,
            )
        _WORD.pack_into(raw, place, (buffer.address + address) & 0xFFFFFFFF)

    def uniforms(self, stream: Stream, name: str) -> int:
        """Take a program's words off the stream; returns the address of its uniforms."""
        lookups = stream.lookups
        count = stream.words
        needed = 4 * (len(lookups) + count)
        start = self.next_word
        left = len(self.words) - start
        if left < needed:
            self.refuse(
                "DRM-009",
                f"{name} shader needs {needed} bytes, the uniform stream has {left} left",
                "9.3",
            )
        self.next_word = start + needed
        address = self.next_uniforms
        self.next_uniforms += 4 * count
        begin = start + 4 * len(lookups)
        if not lookups and not stream.resets:
            self.built_uniforms += self.words[begin : start + needed]
            return address
        indices = struct.unpack_from(f"<{len(lookups)}I", self.words, start)
        words = list(struct.unpack_from(f"<{count}I", self.words, begin))
        for lookup, index in zip(lookups, indices, strict=True):
            buffer = self.buffer(index, name, " shader's texture", "9.4")
            if lookup.clamp >= 0:
                problem = lookup_problem(words[lookup.base], words[lookup.clamp], buffer.size)
            else:
                parameters = tuple([words[n] for n in lookup.parameters])
                problem = texture_problem(parameters, buffer.size)
            if problem is not None:
                request = lookup.request
                self.refuse(
                    "DRM-010",
                    f"{name} shader, request {request.request} of TMU{request.unit}: {problem}",
                    "9.4",
                    buffer.address,
                )
            words[lookup.base] = (words[lookup.base] + buffer.address) & 0xFFFFFFFF
        for index in stream.resets:
            words[index] = address
        self.built_uniforms += struct.pack(f"<{count}I", *words)
        return address
