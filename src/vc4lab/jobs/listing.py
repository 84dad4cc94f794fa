"""A job's lists in words: records with sub-lists followed, shader records, programs, uniforms.

Tile lists only exist once the job was binned; before that the listing shows what lies there.
Nothing is ever raised for damaged lists: the damage is a line of the listing.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from vc4lab.qpu.program.program import Program
from vc4lab.qpu.program.reader import program_at
from vc4lab.qpu.text.disassembler import disassemble_program
from vc4lab.records.control import Record, format, parse_list
from vc4lab.records.declarations import BranchToSublist, Return
from vc4lab.records.shader import GlShader, parse_gl_state, parse_nv, parse_vg
from vc4lab.records.states import GlShaderState, NvShaderState, VgInlineShader, VgShaderState
from vc4lab.records.texture import TextureConfig

if TYPE_CHECKING:
    from vc4lab.memory import GuestMemory
    from vc4lab.v3d.core import V3D
    from vc4lab.v3d.events import JobStarted, ProgramStarted
    from vc4lab.v3d.submission import ListAddresses

INDENT = "    "
MAX_RECORDS = 1 << 18
"""A listing of more records ends with a line that says so."""
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
        depth = 0
        records = parse_list(self.memory.read, start, end, follow=True, limit=MAX_RECORDS)
        for record in records:
            pad = INDENT * (1 + depth)
            for line in format(record).split("\n"):
                yield pad + line
            if record.id == BranchToSublist.id:
                depth += 1
            elif record.id == Return.id:
                depth = max(depth - 1, 0)
            for line in self.shader_lines(record):
                yield pad + INDENT + line

    def shader_lines(self, record: Record) -> Iterator[str]:
        """The shader record that a record names, with its programs, unless shown before."""
        payload = record.payload
        if isinstance(payload, VgInlineShader):
            yield from self.program_lines("fragment", payload.code, payload.uniforms)
        if not isinstance(payload, GlShaderState | NvShaderState | VgShaderState):
            return
        key = (record.id, payload.value)
        if key in self._shaders:
            return
        self._shaders.add(key)
        read = self.memory.read
        if isinstance(payload, GlShaderState):
            yield from self._gl_lines(payload.address, parse_gl_state(read, payload))
            return
        address = int(payload.address)
        name, parse = ("NV", parse_nv) if isinstance(payload, NvShaderState) else ("VG", parse_vg)
        shader: Any = parse(read, address)
        yield f"{name} shader record 0x{address:08x}: {shader.text()}"
        yield from self.program_lines("fragment", shader.code, shader.uniforms)

    def _gl_lines(self, address: int, shader: GlShader) -> Iterator[str]:
        first, *arrays = shader.text().split("\n")
        yield f"GL shader record 0x{address:08x}: {first}"
        yield from (INDENT + line for line in arrays)
        record = shader.record
        yield from self.program_lines("fragment", record.fs_code, record.fs_uniforms)
        yield from self.program_lines("vertex", record.vs_code, record.vs_uniforms)
        yield from self.program_lines("coordinate", record.cs_code, record.cs_uniforms)

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
        words = [self.memory.u32(uniforms + 4 * n) for n in range(len(program.uniform_sites))]
        complete = {r.uniforms[-1]: r for r in program.texture_requests if r.uniforms}
        for site, word in zip(program.uniform_sites, words, strict=True):
            place = f"uniform {site.index:3d}  0x{word:08x}"
            at = program.address_of(site.instruction_index)
            if site.kind == "uniform":
                (value,) = struct.unpack("<f", word.to_bytes(4, "little"))
                yield f"{place}  {value:.7g}, read at {at:08x}"
                continue
            yield f"{place}  TMU{site.unit} request {site.request} parameter {site.parameter}"
            request = complete.get(site.index)
            if request is not None:
                parameters = [*(words[n] for n in request.uniforms[:4]), 0, 0, 0][:4]
                yield f"{INDENT}texture: {TextureConfig.parse(*parameters).text()}"


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
