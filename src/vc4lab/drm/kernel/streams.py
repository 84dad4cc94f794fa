"""What a program takes from a job's uniform stream: words, texture requests, uniform resets."""

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

    @cached_property
    def table(self) -> ctypes.Array[ctypes.c_uint32] | None:
        """The stream as native code takes it; None if it cannot."""
        return _table(self)

    @cached_property
    def table_address(self) -> int:
        """Host address of the table, 0 without one."""
        return ctypes.addressof(self.table) if self.table is not None else 0


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


def _table(stream: Stream) -> ctypes.Array[ctypes.c_uint32] | None:
    """What the kernels need to know of a stream; None if its indices make no sense together."""
    words = stream.words
    rows: list[int] = []
    for lookup in stream.lookups:
        if lookup.clamp >= 0:
            row = [1, lookup.base, lookup.clamp, NO_WORD, NO_WORD]
        else:
            row = [0, *[*lookup.parameters, *[NO_WORD] * 4][:4]]
        if not row[1] < words or any(words <= word != NO_WORD for word in row[2:]):
            return None
        rows += row
    if any(word >= words for word in stream.resets):
        return None
    head = [words, len(rows) // 5, len(stream.resets), int(stream.checked.threaded)]
    numbers = [*head, *rows, *stream.resets]
    return (ctypes.c_uint32 * len(numbers))(*numbers)
