"""A job's lists in words: records with sub-lists followed, shader records, programs, uniforms.

Tile lists only exist once the job was binned; before that the listing shows what lies there.
Nothing is ever raised for damaged lists: the damage is a line of the listing.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from vc4lab.jobs.uniforms import uniform_uses
from vc4lab.jobs.walk import nested, programs_of
from vc4lab.qpu.program.program import Program
from vc4lab.qpu.program.reader import program_at
from vc4lab.qpu.text.disassembler import disassemble_program
from vc4lab.records.control import Record, format
from vc4lab.records.shader import parse_gl_state, parse_nv, parse_vg
from vc4lab.records.states import GlShaderState, NvShaderState, VgShaderState

if TYPE_CHECKING:
    from vc4lab.memory import GuestMemory
    from vc4lab.v3d.core import V3D
    from vc4lab.v3d.events import JobStarted, ProgramStarted
    from vc4lab.v3d.submission import ListAddresses

INDENT = "    "
MAX_RECORDS = 1 << 18
"""A listing of more records ends with a line that says so."""
_RECORDS: dict[int, tuple[str, Callable[..., Any]]] = {
    GlShaderState.id: ("GL", parse_gl_state),
    NvShaderState.id: ("NV", lambda read, state: parse_nv(read, int(state.address))),
    VgShaderState.id: ("VG", lambda read, state: parse_vg(read, int(state.address))),
}
"""Shader records by the ids of the records that name them."""
MAX_PROGRAM = 4096
"""Instructions of a program that a listing shows."""


class JobListing:
    """The listing of one job; shader records and programs are written out where first met."""

    def __init__(self, memory: GuestMemory) -> None:
        self.memory = memory
        self._shaders: set[tuple[int, int]] = set()
        self._programs: set[tuple[int, int]] = set()

    def forget(self) -> None:
        """Shader records and programs are written out again: memory may hold others."""
        self._shaders.clear()
        self._programs.clear()

    def lines(self, job: ListAddresses) -> Iterator[str]:
        """Everything, line by line: binning list, rendering list with the tiles' lists."""
        if job.bin_start != job.bin_end:
            yield f"binning list 0x{job.bin_start:08x}..0x{job.bin_end:08x}"
            yield from self.list_lines(job.bin_start, job.bin_end)
        yield f"rendering list 0x{job.render_start:08x}..0x{job.render_end:08x}"
        yield from self.list_lines(job.render_start, job.render_end)

    def list_lines(self, start: int, end: int) -> Iterator[str]:
        """A list with its sub-lists, which are indented, and what its records point to."""
        for record, depth in nested(self.memory.read, start, end, MAX_RECORDS):
            pad = INDENT * (1 + depth)
            for line in format(record).split("\n"):
                yield pad + line
            for line in self.shader_lines(record):
                yield pad + INDENT + line

    def shader_lines(self, record: Record) -> Iterator[str]:
        """The shader record that a record names, with its programs, unless shown before."""
        payload, read = record.payload, self.memory.read
        if isinstance(payload, GlShaderState | NvShaderState | VgShaderState):
            key = (record.id, payload.value)
            if key in self._shaders:
                return
            self._shaders.add(key)
            name, parse = _RECORDS[record.id]
            first, *arrays = parse(read, payload).text().split("\n")
            yield f"{name} shader record 0x{int(payload.address):08x}: {first}"
            yield from (INDENT + line for line in arrays)
        for kind, code, uniforms in programs_of(read, payload):
            yield from self.program_lines(kind, code, uniforms)

    def program_lines(self, name: str, code: int, uniforms: int) -> Iterator[str]:
        """A program's instructions (once) and its uniforms with what they are for."""
        program = program_at(self.memory, code, limit=MAX_PROGRAM)
        count = len(program.words)
        yield f"{name} shader 0x{code:08x}: {count} instructions, uniforms 0x{uniforms:08x}"
        for problem in program.problems:
            yield f"{INDENT}!! {problem.message}"
        if (code, count) in self._programs:
            yield f"{INDENT}(listed above)"
        else:
            self._programs.add((code, count))
            for address, word, text in disassemble_program(program):
                yield f"{INDENT}{address:08x}  {word:016x}  {text}"
        yield from (INDENT + line for line in self.uniform_lines(program, uniforms))

    def uniform_lines(self, program: Program, uniforms: int) -> Iterator[str]:
        """Every word of the stream in textual order, textures decoded after their last word."""
        for one in uniform_uses(self.memory, program, uniforms):
            (value,) = struct.unpack("<f", one.word.to_bytes(4, "little"))
            number = f"{value:.7g}, " if one.is_plain else ""
            yield f"uniform {one.number:3d}  0x{one.word:08x}  {number}{one.what}"
            if one.texture is not None:
                yield f"{INDENT}texture: {one.texture.text()}"


def listen(v3d: V3D, write: Callable[[str], object]) -> None:
    """Write what a V3D is given: each list when it starts, each user program when it gets a QPU.

    Tile lists stand in rendering lists, as the binner has written them.
    """
    listing = JobListing(v3d.memory)

    def started(event: JobStarted) -> None:
        name = "rendering" if event.thread else "binning"
        write(f"{name} list 0x{event.address:08x}..0x{event.end:08x}")
        for line in listing.list_lines(event.address, event.end):
            write(INDENT + line)
        listing.forget()

    def program(event: ProgramStarted) -> None:
        for line in listing.program_lines("user", event.address, event.uniforms):
            write(line)

    v3d.listeners.job_started.subscribe(started)
    v3d.listeners.program_started.subscribe(program)
