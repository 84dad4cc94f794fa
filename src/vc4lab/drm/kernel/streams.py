"""A program's use of a job's uniform stream: words, texture requests, uniform resets."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from functools import cached_property

from vc4lab.drm.kernel.native.context import NO_WORD
from vc4lab.drm.kernel.shader_rules import CheckedShader
from vc4lab.qpu.isa.encoding import Branch
from vc4lab.qpu.isa.registers import Write
from vc4lab.qpu.program.program import Program, TextureRequest


@dataclass(frozen=True)
class Lookup:
    """One texture request and the uniform words that it takes (their places in the stream)."""

    request: TextureRequest
    base: int
    """The word that gets the buffer's address."""
    parameters: tuple[int, ...]
    """Of a texture; none for a lookup of memory."""
    clamp: int = -1
    """The word that a memory lookup's address is clamped to."""


@dataclass(frozen=True)
class Stream:
    """What one program takes from the uniform stream."""

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
            Lookup(
                request,
                sites[request.instruction_index],
                (),
                checked.clamps[request.instruction_index],
            )
            if request.is_direct
            else Lookup(request, request.uniforms[0], request.uniforms)
            for request in program.texture_requests
        )
        count = len(program.uniform_sites)
        resets = reset_indices(program)
        if needs_extra_word(program):
            resets.append(count)
            count += 1
        return cls(program, count, tuple(resets), checked, lookups, size)

    @cached_property
    def code(self) -> bytes:
        """The words that were checked: all that the verdict depends on, beside the size."""
        return b"".join(word.to_bytes(8, "little") for word in self.program.words)

    @property
    def bytes(self) -> int:
        """What it takes: an index for each request, and its words."""
        return 4 * (len(self.lookups) + self.words)

    @cached_property
    def table(self) -> ctypes.Array[ctypes.c_uint32]:
        """The stream as native code takes it."""
        return _table(self)

    @cached_property
    def table_address(self) -> int:
        """Host address of the table."""
        return ctypes.addressof(self.table)


def reset_indices(program: Program) -> list[int]:
    """Indices of the uniform words that the program writes to UNIFORMS_ADDRESS."""
    writers = set(uniform_address_writers(program))
    return [
        site.index
        for site in program.uniform_sites
        if site.kind == "uniform" and site.instruction_index in writers
    ]


def uniform_address_writers(program: Program) -> list[int]:
    """Indices of the instructions that write UNIFORMS_ADDRESS."""
    return [
        index
        for index, instruction in enumerate(program.instructions)
        if not isinstance(instruction, Branch)
        and any(address == Write.UNIFORMS_ADDRESS for _, address in instruction.write_addresses())
    ]


def needs_extra_word(program: Program) -> bool:
    """Whether the stream ends with an address word for a backward branch, no reset after it."""
    writers = set(uniform_address_writers(program))
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


def _table(stream: Stream) -> ctypes.Array[ctypes.c_uint32]:
    words = stream.words
    rows: list[int] = []
    for lookup in stream.lookups:
        if lookup.clamp >= 0:
            row = [1, lookup.base, lookup.clamp, NO_WORD, NO_WORD]
        else:
            row = [0, *[*lookup.parameters, *[NO_WORD] * 4][:4]]
        assert row[1] < words
        assert all(word < words or word == NO_WORD for word in row[2:])
        rows += row
    assert all(word < words for word in stream.resets)
    head = [words, len(rows) // 5, len(stream.resets), int(stream.checked.threaded)]
    numbers = [*head, *rows, *stream.resets]
    return (ctypes.c_uint32 * len(numbers))(*numbers)
