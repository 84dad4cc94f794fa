"""A QPU program: the words from an entry point to its last delay slot, and what they consume.

Shader records only give an address, so the end has to be found the way the hardware meets it: the
instruction with a program-end signal plus two delay slots, on every path that branches can take.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Final, Literal

from vc4lab.qpu.isa import (
    BRANCH_DELAY_SLOTS,
    END_DELAY_SLOTS,
    INSTRUCTION_BYTES,
    Alu,
    Branch,
    BranchCondition,
    Instruction,
    LoadImmediate,
    Semaphore,
    words_of,
)
from vc4lab.qpu.registers import TMU_WRITES, Read, Write
from vc4lab.qpu.unknowns import DEFAULTS, Settings

if TYPE_CHECKING:
    from vc4lab.memory import GuestMemory

AnyInstruction = Alu | LoadImmediate | Semaphore | Branch

DEFAULT_LIMIT: Final = 16384
"""Instructions after which a program without an end is given up (the hardware has no limit)."""

_CHUNK: Final = 64


@dataclass(frozen=True)
class UniformSite:
    """One word of the uniform stream, in textual order.

    ``kind`` "uniform": read by address 32 in either file. ``kind`` "texture": silently consumed as
    configuration word ``parameter`` of request number ``request`` of TMU ``unit``.
    """

    instruction_index: int
    kind: Literal["uniform", "texture"]
    index: int
    unit: int = -1
    request: int = -1
    parameter: int = -1


@dataclass(frozen=True)
class TextureRequest:
    """One TMU lookup in textual order of its S write.

    ``uniforms`` are stream indices of the configuration words in write order; a direct memory
    lookup (only S written) has none. ``coordinates`` names the written registers in that order.
    """

    unit: int
    request: int
    instruction_index: int
    coordinates: str
    uniforms: tuple[int, ...]

    @property
    def is_direct(self) -> bool:
        """Whether this is a lookup of a memory address instead of a texture."""
        return self.coordinates == "s"


@dataclass(frozen=True)
class Problem:
    """Something odd about a program's shape; ``code`` is a diagnostic code."""

    code: str
    message: str
    address: int


@dataclass(frozen=True)
class Program:
    """Instruction words starting at byte ``address``; equality and hash cover both.

    reads_twice: an instruction that reads a uniform through A and through B takes two words of the
    stream (the unknown "uniform_read_twice"). relative_b: a write of the uniforms address in the
    B space is relative to the pointer ("uniforms_address_b").
    """

    words: tuple[int, ...]
    address: int = 0
    problems: tuple[Problem, ...] = ()
    reads_twice: bool = False
    relative_b: bool = False

    @classmethod
    def from_bytes(cls, code: bytes, address: int = 0) -> Program:
        """All little-endian words of a byte string."""
        return cls(words_of(code), address)

    @classmethod
    def from_memory(
        cls,
        memory: GuestMemory,
        address: int,
        limit: int = DEFAULT_LIMIT,
        *,
        settings: Settings = DEFAULTS,
    ) -> Program:
        """The program at a guest address; see `read_program`."""
        return read_program(memory.read, address, limit).under(settings)

    def under(self, settings: Settings) -> Program:
        """The same words as the chip that `settings` describes takes them."""
        twice = settings["uniform_read_twice"] == "two"
        relative = settings["uniforms_address_b"] == "relative"
        if (twice, relative) == (self.reads_twice, self.relative_b):
            return self
        return replace(self, reads_twice=twice, relative_b=relative)

    def __len__(self) -> int:
        return len(self.words)

    @cached_property
    def instructions(self) -> tuple[AnyInstruction, ...]:
        """The decoded words."""
        return tuple(Instruction.decode(word) for word in self.words)

    @cached_property
    def has_branches(self) -> bool:
        return any(isinstance(instruction, Branch) for instruction in self.instructions)

    @cached_property
    def moves_stream(self) -> bool:
        """Whether uniforms may be read in another order than the text has them."""
        return self.has_branches or any(
            address == Write.UNIFORMS_ADDRESS
            for instruction in self.instructions
            for _, address in instruction.write_addresses()
        )

    @cached_property
    def digest(self) -> str:
        """Hex digest of the words; the address counts only if there are branches."""
        code = b"".join(word.to_bytes(8, "little") for word in self.words)
        state = hashlib.blake2b(code, digest_size=16)
        if self.has_branches:
            state.update(self.address.to_bytes(8, "little"))
        return state.hexdigest()

    def address_of(self, index: int) -> int:
        """Byte address of an instruction."""
        return self.address + INSTRUCTION_BYTES * index

    def zeroed(self, site: int) -> str:
        """How execution came to a zero word, in words."""
        if site and self.words[site - 1]:
            last = self.address_of(site - 1)
            return f"execution ran past the last instruction at 0x{last:08x} into zeroed memory"
        return "a branch led into zeroed memory"

    @cached_property
    def _streams(self) -> tuple[tuple[UniformSite, ...], tuple[TextureRequest, ...]]:
        sites: list[UniformSite] = []
        requests: list[TextureRequest] = []
        pending: list[list[tuple[str, int | None]]] = [[], []]  # (coordinate, stream index)
        done = [0, 0]
        for index, instruction in enumerate(self.instructions):
            read = sum(address == Read.UNIFORM for _, address in instruction.read_addresses())
            for _ in range(read if self.reads_twice else min(read, 1)):
                sites.append(UniformSite(index, "uniform", len(sites)))
            if isinstance(instruction, Branch):
                continue  # links go to registers only
            for _, address in instruction.write_addresses():
                if address not in TMU_WRITES:
                    continue
                unit, coordinate = TMU_WRITES[address]
                writes = pending[unit]
                word: int | None = None
                if coordinate != "s" or writes:
                    word = len(sites)
                    sites.append(UniformSite(index, "texture", word, unit, done[unit], len(writes)))
                writes.append((coordinate, word))
                if coordinate == "s":
                    requests.append(
                        TextureRequest(
                            unit,
                            done[unit],
                            index,
                            "".join(name for name, _ in writes),
                            tuple(word for _, word in writes if word is not None),
                        )
                    )
                    pending[unit] = []
                    done[unit] += 1
        return tuple(sites), tuple(requests)

    @property
    def uniform_sites(self) -> tuple[UniformSite, ...]:
        """Every uniform stream word the program consumes, in textual order.

        Writes whose condition is "never" count too: the address alone triggers the lookup.
        """
        return self._streams[0]

    @cached_property
    def texture_sites(self) -> dict[int, list[int]]:
        """For each instruction that brings about texture parameters, their words of the stream."""
        found: dict[int, list[int]] = {}
        for site in self.uniform_sites:
            if site.kind == "texture":
                found.setdefault(site.instruction_index, []).append(site.index)
        return found

    @property
    def texture_requests(self) -> tuple[TextureRequest, ...]:
        """Every TMU lookup, in textual order of the S writes."""
        return self._streams[1]


def read_program(
    read: Callable[[int, int], bytes], address: int, limit: int = DEFAULT_LIMIT
) -> Program:
    """Read a program of unknown length through ``read(address, length)``.

    Follows relative branches, so that code behind an early end belongs to the program when a
    branch reaches it. Branches to registers or backwards past the entry cannot be followed and
    are left to the executing side. A program without an end has a problem ``QPU-001`` and
    ``limit`` words, or ends with the first word of zeroed memory and has a problem ``QPU-047``.
    """
    words: list[int] = []

    def word(index: int) -> int | None:
        while index >= len(words) and len(words) < limit:
            count = min(_CHUNK, limit - len(words))
            at = (address + INSTRUCTION_BYTES * len(words)) & 0xFFFFFFFF
            words.extend(words_of(read(at, INSTRUCTION_BYTES * count)))
        return words[index] if index < len(words) else None

    problems: list[Problem] = []
    seen: set[tuple[int, int | None]] = set()  # (index, instructions left on this path)
    todo = [0]
    last = -1
    while todo:
        index = todo.pop()
        stop: int | None = None  # index of the last delay slot after which this path goes elsewhere
        while (state := (index, None if stop is None else stop - index)) not in seen:
            raw = word(index)
            if raw is None:
                text = f"no program end within {limit} instructions"
                problems.append(Problem("QPU-001", text, address))
                break
            seen.add(state)
            last = max(last, index)
            if not raw and not word(index + 1):  # a breakpoint after the other, as far as it goes
                at = address + INSTRUCTION_BYTES * index
                text = "no program end: from here the memory holds zeros"
                problems.append(Problem("QPU-047", text, at))
                break
            instruction = Instruction.decode(raw)
            if stop is None and instruction.ends_program:
                stop = index + END_DELAY_SLOTS
            elif isinstance(instruction, Branch):
                target = _branch_index(instruction, index, address)
                if target is None:
                    text = "branch target is outside the program or only known at run time"
                    at = address + INSTRUCTION_BYTES * index
                    problems.append(Problem("QPU-002", text, at))
                else:
                    todo.append(target)
                if any(address != Write.NOP for _, address in instruction.write_addresses()):
                    todo.append(index + 1 + BRANCH_DELAY_SLOTS)  # a call: somebody comes back
                if stop is None and instruction.condition == BranchCondition.ALWAYS:
                    stop = index + BRANCH_DELAY_SLOTS
            if index == stop:
                break
            index += 1
    return Program(tuple(words[: last + 1]), address, tuple(dict.fromkeys(problems)))


def _branch_index(branch: Branch, index: int, address: int) -> int | None:
    """Instruction index a branch goes to, None if it cannot be known or lies before the entry."""
    if branch.register:
        return None
    target = branch.target(address + INSTRUCTION_BYTES * index)
    offset = (target - address) & 0xFFFFFFFF
    if offset % INSTRUCTION_BYTES or offset >= INSTRUCTION_BYTES * DEFAULT_LIMIT:
        return None
    return offset // INSTRUCTION_BYTES
