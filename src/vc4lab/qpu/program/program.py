"""A QPU program: the words from an entry point to its last delay slot, and what they consume.

`reader.py` finds them in memory.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Final, Literal

from vc4lab.qpu.isa.encoding import (
    BRANCH_DELAY_SLOTS,
    INSTRUCTION_BYTES,
    Alu,
    Branch,
    Instruction,
    LoadImmediate,
    Semaphore,
    words_of,
)
from vc4lab.qpu.isa.operations import Signal
from vc4lab.qpu.isa.qpu_unknowns import Settings
from vc4lab.qpu.isa.registers import TMU_WRITES, Read, Write

if TYPE_CHECKING:
    from vc4lab.memory import GuestMemory

AnyInstruction = Alu | LoadImmediate | Semaphore | Branch

DEFAULT_LIMIT: Final = 1 << 17
"""Instructions after which a program without an end is given up (the hardware has no limit)."""

Layout = tuple[tuple[tuple[int, int], ...], tuple[int, ...]]
NO_LAYOUT: Final[Layout] = ((), ())


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
    B space is relative to the pointer ("uniforms_address_b"). pieces: code that lies elsewhere, as
    (index of its first word, its address), in the order of the words. learned: addresses that
    branches to registers were seen to go to.
    """

    words: tuple[int, ...]
    address: int = 0
    problems: tuple[Problem, ...] = ()
    reads_twice: bool = False
    relative_b: bool = False
    pieces: tuple[tuple[int, int], ...] = ()
    learned: frozenset[int] = frozenset()

    @classmethod
    def from_bytes(cls, code: bytes, address: int = 0) -> Program:
        """All little-endian words of a byte string."""
        return cls(words_of(code), address)

    def under(self, settings: Settings) -> Program:
        """Give these words as the chip that `settings` describes takes them."""
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
    def fixed_address(self) -> int:
        """`address` if what the program does depends on it, else 0; for a program from memory.

        Compiled code is looked up by it: drivers put the same loop somewhere else in each run.
        """
        if not self.has_branches:
            return 0
        alone = not (self.pieces or self.learned or self.problems)
        branches = (i for i in self.instructions if isinstance(i, Branch))
        return 0 if alone and all(branch.stays_relative for branch in branches) else self.address

    @cached_property
    def moves_stream(self) -> bool:
        """Whether uniforms may be read in another order than the text has them."""
        return self.has_branches or self.writes(Write.UNIFORMS_ADDRESS)

    def reads(self, register: int) -> bool:
        """Whether any instruction reads this register address."""
        return any(register == n for i in self.instructions for _, n in i.read_addresses())

    def writes(self, register: int) -> bool:
        """Whether any instruction addresses this register for writing."""
        return any(register == n for i in self.instructions for _, n in i.write_addresses())

    @cached_property
    def digest(self) -> str:
        """Hex digest of the words; addresses count only if there are branches."""
        code = b"".join(word.to_bytes(8, "little") for word in self.words)
        state = hashlib.blake2b(code, digest_size=16)
        if self.has_branches:
            state.update(self.address.to_bytes(8, "little"))
        if self.layout != NO_LAYOUT:
            state.update(repr(self.layout).encode())
        return state.hexdigest()

    @property
    def layout(self) -> Layout:
        """`pieces` and `learned` in a form for keys."""
        return self.pieces, tuple(sorted(self.learned))

    def laid_out(self, layout: Layout) -> Program:
        """Give these words with the `layout` of another program."""
        pieces, learned = layout
        return replace(self, pieces=pieces, learned=frozenset(learned))

    @cached_property
    def _bounds(self) -> tuple[tuple[int, int, int], ...]:
        """(first index, index after the last, address) of all pieces."""
        firsts = [(0, self.address), *self.pieces]
        ends = [*(first for first, _ in self.pieces), len(self.words)]
        return tuple((first, end, at) for (first, at), end in zip(firsts, ends, strict=True))

    @cached_property
    def code(self) -> tuple[tuple[int, bytes], ...]:
        """List the code in memory: (address, bytes)."""
        return tuple(
            (at, b"".join(word.to_bytes(8, "little") for word in self.words[first:end]))
            for first, end, at in self._bounds
        )

    def lies_in(self, memory: GuestMemory) -> bool:
        """Whether memory still holds these words."""
        return all(memory.read(at, len(code)) == code for at, code in self.code)

    def address_of(self, index: int) -> int:
        """Byte address of an instruction."""
        if self.pieces and index >= self.pieces[0][0]:
            first, _, at = next(piece for piece in reversed(self._bounds) if index >= piece[0])
            return (at + INSTRUCTION_BYTES * (index - first)) & 0xFFFFFFFF
        return self.address + INSTRUCTION_BYTES * index

    def index_of(self, address: int) -> int | None:
        """The instruction at an address; None if there is none of the program."""
        for first, end, at in self._bounds:
            offset = (address - at) & 0xFFFFFFFF
            if offset < (end - first) * INSTRUCTION_BYTES and not offset % INSTRUCTION_BYTES:
                return first + offset // INSTRUCTION_BYTES
        return None

    def after(self, index: int) -> int | None:
        """The instruction that lies after another in memory."""
        following = index + 1
        if self.pieces and following in self._ends:
            return self.index_of(self.address_of(index) + INSTRUCTION_BYTES)
        return following if following < len(self.words) else None

    @cached_property
    def _ends(self) -> frozenset[int]:
        """Indices after the last instruction of each piece."""
        return frozenset(end for _, end, _ in self._bounds)

    @cached_property
    def targets(self) -> frozenset[int]:
        """`learned` as indices of instructions."""
        found = (self.index_of(address) for address in self.learned)
        return frozenset(index for index in found if index is not None)

    def left_by(self, last: int) -> int:
        """The instruction to blame if execution leaves the program after `last`: a branch, if
        `last` is the last one in its delay slots.
        """
        branch = last - BRANCH_DELAY_SLOTS
        if branch >= 0 and self.words[branch] >> 60 == Signal.BRANCH:
            return branch
        return last

    def zeroed(self, site: int) -> str:
        """How execution came to a zero word, in words."""
        before = self.index_of(self.address_of(site) - INSTRUCTION_BYTES)
        if before is not None and self.words[before]:
            last = self.address_of(before)
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
