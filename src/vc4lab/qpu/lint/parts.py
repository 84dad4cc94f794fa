"""Programs in a sequence of words, and every way that execution can go through them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from vc4lab.qpu.isa.accesses import Accesses, Kind, accesses
from vc4lab.qpu.isa.encoding import (
    BRANCH_DELAY_SLOTS,
    END_DELAY_SLOTS,
    INSTRUCTION_BYTES,
    Branch,
    Instruction,
)
from vc4lab.qpu.isa.operations import BranchCondition
from vc4lab.qpu.isa.registers import Write

_NEVER: Final = -1 << 30
"""As a distance from the program end: there is none."""


def parts(words: Sequence[int]) -> Iterator[Part]:
    """The programs in a sequence of words."""
    instructions = [Instruction.decode(word) for word in words]
    touched = [accesses(word) for word in words]
    start = 0
    reach = 0  # a branch over an end shows that the program goes on after it
    for index, instruction in enumerate(instructions):
        if isinstance(instruction, Branch) and instruction.relative and not instruction.register:
            target = instruction.target(index * INSTRUCTION_BYTES) // INSTRUCTION_BYTES
            reach = max(reach, target if target < len(instructions) else 0)
        stop = min(index + END_DELAY_SLOTS + 1, len(instructions))
        if touched[index].kinds & Kind.PROGRAM_END and index >= start and reach < stop:
            yield Part(instructions, touched, start, stop)
            start = stop
    if start < len(instructions):
        yield Part(instructions, touched, start, len(instructions))


def reached(words: Sequence[int]) -> frozenset[int]:
    """Indices of the instructions that execution can come to from the first one on.

    A call comes back; where else a branch to a register leads is not known.
    """
    instructions = [Instruction.decode(word) for word in words]
    part = Part(instructions, [accesses(word) for word in words], 0, len(words))
    found: set[int] = set()
    todo = [0]
    while todo:
        index = todo.pop()
        if index in found or index >= part.stop:
            continue
        found.add(index)
        todo += part.successors(index)
        instruction = instructions[index]
        if isinstance(instruction, Branch) and any(
            address != Write.NOP for _, address in instruction.write_addresses()
        ):
            todo.append(index + BRANCH_DELAY_SLOTS + 1)
    return frozenset(found)


class Part:
    """One program: instructions ``start`` to ``stop`` of a sequence, and who follows whom."""

    def __init__(
        self, instructions: Sequence[Instruction], touched: Sequence[Accesses], start: int, stop: int
    ) -> None:
        self.all = instructions
        self.touched = touched
        self.start = start
        self.stop = stop
        self.ends = frozenset(
            index for index in range(start, stop) if touched[index].kinds & Kind.PROGRAM_END
        )
        self._after: dict[int, tuple[int, ...]] = {}

    def indices(self) -> range:
        return range(self.start, self.stop)

    def successors(self, index: int) -> tuple[int, ...]:
        """Indices of the instructions that may execute next; `stop` where the program has no more
        instructions.
        """
        found = self._after.get(index)
        if found is None:
            found = self._after[index] = tuple(self._successors(index))
        return found

    def _successors(self, index: int) -> Iterator[int]:
        source = index - BRANCH_DELAY_SLOTS
        branch = self.all[source] if source >= self.start else None
        falls_through = True
        if isinstance(branch, Branch):
            falls_through = branch.condition != BranchCondition.ALWAYS
            if branch.relative and not branch.register:
                address = branch.target(source * INSTRUCTION_BYTES)
                target = address // INSTRUCTION_BYTES
                if address % INSTRUCTION_BYTES == 0 and self.start <= target < self.stop:
                    yield target
        if index - END_DELAY_SLOTS in self.ends:
            return
        if falls_through:
            yield index + 1

    def following(self, index: int, distance: int) -> Iterator[tuple[int, int]]:
        """(index, distance) of every instruction that may execute so soon after one."""
        level = {index}
        for step in range(1, distance + 1):
            level = {after for before in level for after in self.successors(before) if after < self.stop}
            for after in sorted(level):
                yield after, step

    def after_end(self, index: int) -> int:
        """How many instructions after a program end; negative if there is none before it."""
        for distance in range(END_DELAY_SLOTS + 1):
            if index - distance in self.ends:
                return distance
        return _NEVER
