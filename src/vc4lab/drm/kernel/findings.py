"""Says what is wrong with a job: the builder stops there, and its context says where.

The kernel answers EINVAL; here a sentence says why. Sections 9.2 to 9.4 of the hardware reference.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NoReturn

from vc4lab.drm.kernel.native.context import EXTENDED, USE_BYTES, Finding, JobContext, TextureFinding
from vc4lab.drm.kernel.shader_rules import Violation
from vc4lab.drm.kernel.shaders import Stream, analyse
from vc4lab.drm.uapi.submit import Submit, refuse
from vc4lab.qpu.isa.encoding import INSTRUCTION_BYTES
from vc4lab.qpu.text.disassembler import disassemble
from vc4lab.records import declarations as d
from vc4lab.records.codes import IndexType
from vc4lab.records.control import bytes_reader, parse_record
from vc4lab.records.payload import Payload
from vc4lab.records.shader import ATTRIBUTE_SIZE, EXTENDED_STRIDES, GL_FIXED_SIZE, gl_record_size
from vc4lab.records.states import GlShaderState
from vc4lab.records.texture import Texture0, Texture1, TextureType

if TYPE_CHECKING:
    from vc4lab.diagnostics import Reporter
    from vc4lab.drm.kernel.shaders import KnownShaders, Streams
    from vc4lab.memory import GuestMemory

PROGRAMS = ("fragment", "vertex", "coordinate")
_USE_WORDS = USE_BYTES // 4
_RULES = {
    Finding.NOT_STARTED: ("DRM-007", "the list never starts tile binning"),
    Finding.NO_END: ("DRM-007", "the list does not end with 7 and 4"),
    Finding.SECOND_MODE: ("DRM-007", "record 112 twice"),
    Finding.NO_TILES: ("DRM-007", "an empty tile grid"),
    Finding.REFUSED_MODE: ("DRM-006", "double buffer or 64-bit colour in record 112"),
    Finding.BAD_START: ("DRM-007", "record 6 twice, or before record 112"),
    Finding.DRAW_WITHOUT_STATE: ("DRM-007", "a draw before any shader state"),
}
"""Sentences about a record of the binning list, where they need no number."""


@dataclass
class JobFindings:
    """Reports what the builder found in one job: `serve` raises JobError, or the job goes on."""

    submit: Submit
    memory: GuestMemory
    reporter: Reporter
    known: KnownShaders
    job: JobContext
    uses: memoryview
    _place: int = 0
    """Byte of the binning list that messages name."""

    def serve(self, status: int, streams: Streams) -> None:
        """Report a warning or check a shader, with which the job goes on. Else raises JobError."""
        finding = Finding(status)
        if finding < Finding.SHORT_RECORDS:
            self._record(finding, int(self.job.position))
        else:
            self._shader(finding, streams)

    # -- the binning list ------------------------------------------------------------------------

    def _refuse(self, code: str, text: str, rule: str, address: int | None = None) -> NoReturn:
        text = f"binning list, byte {self._place}: {text} (rule {rule})"
        refuse(self.reporter, code, text, address)

    def _record(self, finding: Finding, place: int) -> None:
        data = self.submit.bin_cl
        self._place = place
        record = parse_record(bytes_reader(data), place, len(data))
        payload = record.payload
        if finding in _RULES:
            code, text = _RULES[finding]
        elif finding == Finding.BAD_RECORD:
            code = "DRM-006"
            text = f"{record.name} ({record.id}) is not accepted"
            if record.problem is not None:
                text = f"{record.problem}"
        elif finding == Finding.NOT_AT_END:
            code, text = "DRM-007", f"{record.name} ({record.id}) is not at the list's end"
        elif finding == Finding.TOO_MANY_STATES:
            count = self.submit.shader_rec_count
            code, text = "DRM-008", f"more shader states than the {count} announced"
        elif isinstance(payload, GlShaderState):
            code, text = "DRM-008", f"record 64 contains an address (0x{payload.address:x})"
        elif finding == Finding.LARGE_INDEX:
            self._warn_of_index(payload)
            return
        elif isinstance(payload, d.VertexArrayPrimitives):
            code, text = "DRM-012", f"{payload.length} vertices from {payload.first} on"
        else:
            assert isinstance(payload, d.IndexedPrimitives)
            handle = int(self.job.handle)
            if finding == Finding.BAD_HANDLE:
                self._bad_buffer(handle, "index buffer", "9.2")
            size = 1 if payload.index_type == IndexType.BYTE else 2
            code = "DRM-012"
            text = (
                f"{payload.length} indices of {size} bytes at offset {int(payload.address)} of a"
                f" buffer of {self.submit.buffers[handle].size} bytes"
            )
        self._refuse(code, text, "9.2")

    def _warn_of_index(self, payload: Payload | None) -> None:
        if isinstance(payload, d.IndexedPrimitives):
            highest = payload.maximum_index
        else:
            assert isinstance(payload, d.VertexArrayPrimitives)
            highest = payload.first + payload.length - 1
        self.reporter.report(
            "CLE-015",
            f"binning list, byte {self._place}: vertex number {highest} does not fit in 16 bits",
            block="DRM",
        )
        self.job.reported = self._place + 1

    def _bad_buffer(self, index: int, what: str, rule: str) -> NoReturn:
        text = f"{what}: buffer index {index} of a list of {len(self.submit.buffers)}"
        self._refuse("DRM-005", text, rule)

    # -- shader records --------------------------------------------------------------------------

    def _shader(self, finding: Finding, streams: Streams) -> None:
        submit, job = self.submit, self.job
        use = int(job.use_number) * _USE_WORDS
        shape, highest, _, self._place = self.uses[use : use + _USE_WORDS]
        attributes, extended = shape & (EXTENDED - 1), bool(shape & EXTENDED)
        size = gl_record_size(attributes, extended)
        start = int(job.use_record)
        if finding == Finding.SHORT_RECORDS:
            left = len(submit.shader_rec) - start
            text = (
                f"the stream has {left} bytes left, a record with {attributes} attributes needs"
                f" {4 * (3 + attributes) + size}"
            )
            self._refuse("DRM-008", text, "9.3")
        name, item = PROGRAMS[job.program], int(job.item)
        indices = words_at(submit.shader_rec, start, 3 + attributes)
        if finding in (Finding.BAD_ATTRIBUTE_BUFFER, Finding.ATTRIBUTE_OUTSIDE):
            index = indices[3 + item]
            if finding == Finding.BAD_ATTRIBUTE_BUFFER:
                self._bad_buffer(index, f"attribute {item}", "9.3")
            record = submit.shader_rec[start + 4 * len(indices) :]
            self._attribute(item, index, record, highest, extended)
        index = indices[job.program]
        if finding == Finding.BAD_CODE_BUFFER:
            self._bad_buffer(index, f"{name} shader", "9.3")
        if finding == Finding.CODE_WITH_OFFSET:
            self._refuse("DRM-011", f"{name} shader: code not at a buffer's start", "9.3")
        buffer = submit.buffers[index]
        if finding == Finding.UNKNOWN_SHADER:
            if not buffer.shader:
                self._refuse("DRM-011", f"{name} shader: its buffer is not a shader buffer", "9.3")
            self.known.add(buffer.address, self._read(buffer.address, buffer.size, name))
            return
        stream = streams[index]
        assert stream is not None
        if finding == Finding.BAD_THREADS:
            self._bad_threads(stream, name)
        if finding == Finding.SHORT_UNIFORMS:
            left = len(submit.uniforms) - int(job.next_word)
            text = f"{name} shader needs {stream.bytes} bytes, the uniform stream has {left} left"
            self._refuse("DRM-009", text, "9.3")
        self._texture(finding, stream, name, item)

    def _bad_threads(self, stream: Stream, name: str) -> NoReturn:
        """The record's flag must say what the program does; only fragment shaders switch."""
        if name != "fragment":
            text = f"a {name} shader switches threads"
        elif stream.checked.threaded:
            text = "a fragment shader switches threads, its record says single threaded"
        else:
            text = "a fragment shader never switches threads, its record says multi-threaded"
        self._refuse("DRM-011", text, "9.3")

    def _attribute(self, number: int, index: int, record: bytes, highest: int, extended: bool) -> NoReturn:
        place = GL_FIXED_SIZE + ATTRIBUTE_SIZE * number
        (offset,) = words_at(record, place, 1)
        stride = record[place + 5]
        if extended:
            stride |= words_at(record, EXTENDED_STRIDES + 4 * number, 1)[0] & ~0xFF
        buffer = self.submit.buffers[index]
        end = offset + record[place + 4] + 1
        text = f"attribute {number}: vertex {highest} x {stride} + {end} bytes in a buffer of {buffer.size}"
        self._refuse("DRM-012", text, "9.3", buffer.address)

    def _texture(self, finding: Finding, stream: Stream, name: str, number: int) -> NoReturn:
        start = int(self.job.next_word)
        (index,) = words_at(self.submit.uniforms, start + 4 * number, 1)
        if finding == Finding.BAD_TEXTURE_BUFFER:
            self._bad_buffer(index, f"{name} shader's texture", "9.4")
        lookup = stream.lookups[number]
        begin = start + 4 * len(stream.lookups)
        words = words_at(self.submit.uniforms, begin, stream.words)
        used = (lookup.base, lookup.clamp) if lookup.clamp >= 0 else lookup.parameters
        buffer = self.submit.buffers[index]
        reason, job = TextureFinding(self.job.reason), self.job
        problem = texture_problem(
            reason, [words[n] for n in used], buffer.size, int(job.value), int(job.more)
        )
        where = f"request {lookup.request.request} of TMU{lookup.request.unit}"
        self._refuse("DRM-010", f"{name} shader, {where}: {problem}", "9.4", buffer.address)

    # -- shaders that are not known --------------------------------------------------------------

    def _read(self, address: int, size: int, name: str) -> Stream:
        """The kernel's look at a shader when its buffer is made. Raises JobError."""
        try:
            return analyse(self.memory, address, size)
        except Violation as violation:
            place = address + INSTRUCTION_BYTES * violation.index
            text = disassemble(self.memory.u64(place)) if size >= INSTRUCTION_BYTES else "nothing"
            refuse(
                self.reporter,
                violation.code,
                f"binning list, byte {self._place}: {name} shader, instruction {violation.index} "
                f"`{text}`: {violation}",
                address=place,
            )


def texture_problem(reason: TextureFinding, words: Sequence[int], size: int, value: int, more: int) -> str:
    """Why the kernel refuses a request with these words, in a buffer of `size` bytes."""
    if reason == TextureFinding.TYPE:
        number = Texture0(words[0]).type_low | Texture1([*words, 0][1]).type_high << 4
        is_known = number in TextureType._value2member_map_
        kind = TextureType(number).name.lower() if is_known else "reserved"
        return f"textures of type {number} ({kind}) are not accepted"
    if reason == TextureFinding.LOOKUP_BASE:
        return f"lookups at offset {words[0]} of a buffer of {size} bytes"
    if reason == TextureFinding.LOOKUP_CLAMP:
        return f"lookups up to offset {words[0]} + {words[1]} of a buffer of {size} bytes"
    return {
        TextureFinding.TWO_STRIDES: "the cube map stride is given twice",
        TextureFinding.NO_STRIDE: "a cube map without a stride",
        TextureFinding.END: f"level 0 ends at byte {value} of a buffer of {size}",
        TextureFinding.LEVEL: f"level {value} of {more} bytes begins before the buffer",
    }[reason]


def words_at(data: bytes, place: int, count: int) -> list[int]:
    """32-bit words of a stream."""
    return memoryview(data[place : place + 4 * count]).cast("I").tolist()
