"""Finds the words of a program in memory: from its entry on, and where execution has gone since.

Shader records only give an address, so the end has to be found as the hardware meets it: the
instruction with a program-end signal plus two delay slots, on every path that branches can take. A
branch to a register can go anywhere; where it went is added when it has happened (`reach`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from vc4lab.qpu.isa.encoding import (
    BRANCH_DELAY_SLOTS,
    END_DELAY_SLOTS,
    INSTRUCTION_BYTES,
    Branch,
    Instruction,
    words_of,
)
from vc4lab.qpu.isa.operations import BranchCondition
from vc4lab.qpu.isa.qpu_unknowns import DEFAULTS, Settings
from vc4lab.qpu.isa.registers import Write
from vc4lab.qpu.program.program import DEFAULT_LIMIT, Problem, Program

if TYPE_CHECKING:
    from vc4lab.memory import GuestMemory

Read = Callable[[int, int], bytes]
"""(address, bytes) -> what lies there."""

_CHUNK: Final = 64
_GAP: Final = 256
"""Instructions that nothing leads to, up to which two pieces of code are one piece."""
_LONGEST_ENTRY: Final = 16
"""Instructions of an entry in a table that register branches jump into."""
_WORD: Final = 0xFFFFFFFF


class _ControlFlow:
    """Follows execution from some addresses on."""

    def __init__(self, read: Read, entry: int, limit: int) -> None:
        self._read, self._entry, self._limit = read, entry, limit
        self._words: dict[int, int] = {}
        self._seen: set[tuple[int, int | None]] = set()  # (address, instructions left on this path)
        self.reached: set[int] = set()
        self.problems: list[Problem] = []

    def word(self, address: int) -> int:
        """The instruction at an address."""
        if address not in self._words:
            data = words_of(self._read(address, INSTRUCTION_BYTES * _CHUNK))
            for number, word in enumerate(data):
                self._words[(address + INSTRUCTION_BYTES * number) & _WORD] = word
        return self._words[address]

    def _problem(self, code: str, text: str, address: int) -> None:
        self.problems.append(Problem(code, text, address))

    def follow(self, start: int) -> None:
        """Notes every instruction that execution can reach from `start` on."""
        todo = [start]
        while todo:
            at, left = todo.pop(), None  # left: instructions after which this path goes elsewhere
            while (at, left) not in self._seen:
                if len(self.reached) >= self._limit and at not in self.reached:
                    text = f"no program end within {self._limit} instructions"
                    self._problem("QPU-001", text, self._entry)
                    return
                self._seen.add((at, left))
                self.reached.add(at)
                raw, following = self.word(at), (at + INSTRUCTION_BYTES) & _WORD
                if not raw and not self.word(following):
                    # zeros are breakpoints
                    self._problem("QPU-047", "no program end: from here the memory holds zeros", at)
                    break
                instruction = Instruction.decode(raw)
                if left is None and instruction.ends_program:
                    left = END_DELAY_SLOTS
                elif isinstance(instruction, Branch):
                    todo += self._targets(instruction, at)
                    if left is None and instruction.condition == BranchCondition.ALWAYS:
                        left = BRANCH_DELAY_SLOTS
                if left == 0:
                    break
                at, left = following, None if left is None else left - 1

    def _targets(self, branch: Branch, at: int) -> Iterator[int]:
        """List where a branch leads, if its instruction alone decides it."""
        if not branch.register:
            target = branch.target(at) & _WORD
            if (target - self._entry) % INSTRUCTION_BYTES:
                text = f"a branch leads to 0x{target:08x}, which is no instruction's address"
                self._problem("QPU-002", text, at)
            else:
                yield target
        if any(address != Write.NOP for _, address in branch.write_addresses()):
            # a call: execution comes back
            yield (at + INSTRUCTION_BYTES * (1 + BRANCH_DELAY_SLOTS)) & _WORD

    def pieces(self, addresses: Iterable[int]) -> list[tuple[int, tuple[int, ...]]]:
        """Contiguous code that has these addresses, the entry's piece first: (address, words)."""
        offsets = sorted((address - self._entry) & _WORD for address in addresses)
        for gap in (_GAP, 1):
            runs: list[list[int]] = []
            for offset in offsets:
                if not runs or offset - runs[-1][1] > INSTRUCTION_BYTES * gap:
                    runs.append([offset, offset])
                runs[-1][1] = offset
            if sum(last - first for first, last in runs) < INSTRUCTION_BYTES * self._limit:
                break
        found = []
        for first, last in runs:
            places = range(self._entry + first, self._entry + last + 1, INSTRUCTION_BYTES)
            words = tuple(self.word(place & _WORD) for place in places)
            found.append(((self._entry + first) & _WORD, words))
        return found


def read_program(read: Read, address: int, limit: int = DEFAULT_LIMIT) -> Program:
    """Read a program of unknown length through ``read(address, length)``.

    Follows all branches but those to registers, so that code after an early end, far away or
    before the entry belongs to the program when a branch reaches it. A program without an end has a
    problem ``QPU-001`` and ``limit`` words, or ends with the first word of zeroed memory and has a
    problem ``QPU-047``.
    """
    flow = _ControlFlow(read, address, limit)
    flow.follow(address)
    return _with(Program((), address), flow.pieces(flow.reached), tuple(flow.problems))


def program_at(
    memory: GuestMemory, address: int, limit: int = DEFAULT_LIMIT, *, settings: Settings = DEFAULTS
) -> Program:
    """The program at a guest address, as the chip that `settings` describes takes it."""
    return read_program(memory.read, address, limit).under(settings)


def reach(program: Program, read: Read, target: int, limit: int = DEFAULT_LIMIT) -> Program | None:
    """The program with the knowledge that execution goes to the address `target`, and the code it
    can reach from there.

    None if there is nothing new, if no instruction can lie there, or if it would be too long.
    Instructions keep their indices.
    """
    target &= _WORD
    if (target - program.address) % INSTRUCTION_BYTES:
        return None
    index, learned = program.index_of(target), {target}
    if index is None:
        flow = _ControlFlow(read, program.address, limit)
        flow.follow(target)
        new = [address for address in flow.reached if program.index_of(address) is None]
        if len(program) + len(new) > limit:
            return None
        program = _with(program, flow.pieces(new), program.problems)
    elif target in program.learned:
        return None
    else:
        before = max((other for other in program.targets if other < index), default=index)
        step = index - before
        if 0 < step <= _LONGEST_ENTRY:  # a table of entries: the next ones will come as well
            more = range(index + step, min(index + 12 * step, len(program)), step)
            learned.update(program.address_of(other) for other in more)
    return replace(program, learned=program.learned | learned)


def _with(
    program: Program, added: list[tuple[int, tuple[int, ...]]], problems: tuple[Problem, ...]
) -> Program:
    """A program with more pieces after those it has."""
    words, pieces = list(program.words), list(program.pieces)
    for address, more in added:
        if words:
            pieces.append((len(words), address))
        words += more
    problems = tuple(dict.fromkeys(problems))
    return replace(program, words=tuple(words), pieces=tuple(pieces), problems=problems)
