"""Shaders that were checked (once, when their buffer is made), and their uniform streams."""

from __future__ import annotations

import ctypes
import struct
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from vc4lab.drm.kernel.native.context import NO_WORD
from vc4lab.drm.kernel.shader_rules import CheckedShader, Violation, check_shader
from vc4lab.drm.uapi.submit import Buffer
from vc4lab.qpu.isa.encoding import INSTRUCTION_BYTES, Branch, words_of
from vc4lab.qpu.isa.registers import Write
from vc4lab.qpu.program.program import DEFAULT_LIMIT, Program, TextureRequest
from vc4lab.qpu.program.reader import program_at

if TYPE_CHECKING:
    from vc4lab.memory import GuestMemory

_row = struct.Struct("<IIQ").pack
"""A buffer in compiled code's form: address, size, place of its stream's table."""
MAX_TABLES = 256
MAX_TABLE = 256
"""Buffers of a job whose table is remembered."""


@dataclass(frozen=True)
class Lookup:
    """One texture request and the uniform words that it takes (their places in the stream)."""

    request: TextureRequest
    base: int
    """The word that gets the buffer's address."""
    parameters: tuple[int, ...]
    """Words of a texture; none for a lookup of memory."""
    clamp: int = -1
    """The word that a memory lookup's address is clamped to."""


@dataclass(frozen=True)
class Stream:
    """The part of a job's uniform stream that one program takes: words, texture requests, resets."""

    program: Program
    words: int
    resets: tuple[int, ...]
    """Indices of the words that must hold the address of the program's own uniforms."""
    checked: CheckedShader
    lookups: tuple[Lookup, ...] = ()
    size: int = 0
    """Bytes of the shader's buffer."""

    @classmethod
    def of(cls, program: Program, checked: CheckedShader, size: int = 0) -> Stream:
        """The stream of a program in a buffer of that size."""
        sites = {site.instruction_index: site.index for site in reversed(program.uniform_sites)}
        lookups = tuple(
            Lookup(request, sites[request.instruction_index], (), checked.clamps[request.instruction_index])
            if request.is_direct
            else Lookup(request, request.uniforms[0], request.uniforms)
            for request in program.texture_requests
        )
        count = len(program.uniform_sites)
        writers = address_writers(program)
        resets = [
            site.index
            for site in program.uniform_sites
            if site.kind == "uniform" and site.instruction_index in writers
        ]
        if needs_extra_word(program, writers):
            resets.append(count)
            count += 1
        return cls(program, count, tuple(resets), checked, lookups, size)

    @cached_property
    def code(self) -> bytes:
        """The words that were checked: all that the verdict depends on, beside the size."""
        return b"".join(word.to_bytes(8, "little") for word in self.program.words)

    @property
    def bytes(self) -> int:
        """Bytes that it takes: an index for each request, and its words."""
        return 4 * (len(self.lookups) + self.words)

    @cached_property
    def table(self) -> ctypes.Array[ctypes.c_uint32]:
        """The stream as native code takes it."""
        words = self.words
        rows: list[int] = []
        for lookup in self.lookups:
            if lookup.clamp >= 0:
                row = [1, lookup.base, lookup.clamp, NO_WORD, NO_WORD]
            else:
                row = [0, *[*lookup.parameters, *[NO_WORD] * 4][:4]]
            assert row[1] < words
            assert all(word < words or word == NO_WORD for word in row[2:])
            rows += row
        assert all(word < words for word in self.resets)
        head = [words, len(rows) // 5, len(self.resets), int(self.checked.threaded)]
        numbers = [*head, *rows, *self.resets]
        return (ctypes.c_uint32 * len(numbers))(*numbers)

    @cached_property
    def table_address(self) -> int:
        """Host address of the table."""
        return ctypes.addressof(self.table)


def address_writers(program: Program) -> set[int]:
    """Indices of the instructions that write UNIFORMS_ADDRESS."""
    return {
        index
        for index, instruction in enumerate(program.instructions)
        if not isinstance(instruction, Branch)
        and any(address == Write.UNIFORMS_ADDRESS for _, address in instruction.write_addresses())
    }


def needs_extra_word(program: Program, writers: set[int]) -> bool:
    """Whether the stream ends with an address word for a backward branch, no reset after it."""
    needed = False
    for index, instruction in enumerate(program.instructions):
        if index in writers:
            needed = False
        if isinstance(instruction, Branch) and not instruction.register:
            here = program.address_of(index)
            offset = (instruction.target(here) - here) & 0xFFFFFFFF
            if offset >= 0x80000000 or offset == 0:
                needed = True
    return needed


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
        """The shaders in a job's buffers, and the buffers in compiled code's form.

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
        if problem.code == "QPU-047":  # breakpoints are not the kernel's business
            continue
        index = (problem.address - address) // INSTRUCTION_BYTES
        raise Violation("DRM-011", 2, index, problem.message)
    return Stream.of(program, checked, size)
