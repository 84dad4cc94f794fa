"""Finds a program's texture parameters in memory, as far as that can be known before it runs.

The texture unit takes its parameters from the uniform stream, at the pointer that the program may
have moved: to an address that it read as a uniform, or back to its own stream, as drivers do where
paths through a program join. This follows the pointer along all paths at once. What depends on
computed values, or on the path taken, is not known.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from vc4lab.qpu.isa.encoding import BRANCH_DELAY_SLOTS, END_DELAY_SLOTS, INSTRUCTION_BYTES, Branch
from vc4lab.qpu.isa.operations import AddOp, BranchCondition, Condition, MulOp, Mux
from vc4lab.qpu.isa.registers import TMU_WRITES, Read, Write
from vc4lab.qpu.run.plan import Plan, Target, plan

if TYPE_CHECKING:
    from vc4lab.qpu.program.program import Program

WORD = 4
_MASK = 0xFFFFFFFF

MAX_VALUES = 8
MAX_INSTRUCTIONS = 1024
VISITS_PER_INSTRUCTION = 8
"""Limits of the search; beyond them nothing is known."""


class Number(NamedTuple):
    """A number that is known before the program runs: `offset`, plus the word of memory that lies
    `at` bytes from the start of the stream if that is given.
    """

    offset: int
    at: int | None = None


Numbers = frozenset[Number]
Places = frozenset[int]
"""Values that a number can have, and where the pointer can be in bytes from the start of the stream modulo
2^32: one element for each path that leads here."""


@dataclass(frozen=True)
class StreamLayout:
    """The places of a program's texture parameters, in bytes from the start of its stream.

    places: one for each word of the stream in textual order; None for a texture parameter whose
    place is not known. Other words, and those that no path reaches, are where the text has them.
    pointers: what that depends on: places of the words that become pointers, and how far from the
    start they lead. absolute: it depends on the address of the stream, too.
    """

    places: tuple[int | None, ...]
    pointers: tuple[tuple[int, int], ...] = ()
    absolute: bool = False


def stream_layout(program: Program, read: Callable[[int], int], start: int) -> StreamLayout:
    """Follows the pointer of a program whose uniforms begin at address `start`.

    `read(address)` gives a word of memory, whatever the address is.
    """
    found: list[int | None] = [WORD * site.index for site in program.uniform_sites]
    if not program.moves_stream:
        return StreamLayout(tuple(found))
    pointers = _Pointers(read, start)
    states = _states(program, pointers)
    for index, sites in program.texture_sites.items():
        places: list[Places | None] = []
        if states is not None:
            if index not in states:
                continue
            places = _Step(program, index, states[index], pointers).parameters
        for number, site in enumerate(sites):
            known = places[number] if number < len(places) else None
            found[site] = next(iter(known)) if known is not None and len(known) == 1 else None
    seen = tuple(sorted(pointers.seen.items()))
    return StreamLayout(tuple(found), seen, pointers.absolute)


class _Pointers:
    """Values that are written to the pointer."""

    def __init__(self, read: Callable[[int], int], start: int) -> None:
        self.read, self.start = read, start
        self.seen: dict[int, int] = {}
        self.absolute = False

    def place(self, number: Number) -> int:
        """Find where a number leads."""
        if number.at is None:
            self.absolute = True
            return (number.offset - self.start) & _MASK
        if number.at not in self.seen:
            word = self.read((self.start + number.at) & _MASK)
            self.seen[number.at] = (word - self.start) & _MASK
        return (self.seen[number.at] + number.offset) & _MASK


Register = tuple[str, int]


@dataclass
class _State:
    """Knowledge before an instruction. Registers that are missing hold anything; those in
    `fresh` were written by the instruction before, and may still read as they were."""

    pointer: Places | None
    registers: dict[Register, Numbers] = field(default_factory=dict)
    fresh: frozenset[Register] = frozenset()

    def joined(self, other: _State) -> _State:
        """Join two states: what is known if either of them may be the case."""
        registers = {
            key: both
            for key, numbers in self.registers.items()
            if (both := _either(numbers, other.registers.get(key))) is not None
        }
        pointer = _either(self.pointer, other.pointer)
        return _State(pointer, registers, self.fresh | other.fresh)


def _states(program: Program, pointers: _Pointers) -> dict[int, _State] | None:
    """Follow what is known before each instruction that can be reached; None if paths are unknown."""
    if len(program.words) > MAX_INSTRUCTIONS or program.pieces:
        return None
    following = _following(program)
    if following is None:
        return None
    states = {0: _State(frozenset((0,)))}
    todo = [0]
    visits = VISITS_PER_INSTRUCTION * len(program.words)
    while todo:
        visits -= 1
        if visits < 0:
            return None
        index = todo.pop()
        after = _Step(program, index, states[index], pointers).after
        for target in following[index]:
            known = states.get(target)
            new = after if known is None else known.joined(after)
            if new != known:
                states[target] = new
                todo.append(target)
    return states


def _following(program: Program) -> list[list[int]] | None:
    """Which instructions may follow each; None if a branch leads where the text does not say."""
    count = len(program.words)
    following = [[index + 1] if index + 1 < count else [] for index in range(count)]
    ways: list[tuple[int, int]] = []  # last delay slot of a branch, its target
    last: list[tuple[int, int]] = []  # delay slots after which the next instruction does not come
    for index, instruction in enumerate(program.instructions):
        if isinstance(instruction, Branch):
            target = _target(program, index, instruction)
            end = index + BRANCH_DELAY_SLOTS
            slots = program.instructions[index + 1 : end + 1]
            if target is None or any(isinstance(slot, Branch) for slot in slots):
                return None
            ways.append((end, target))
            if instruction.condition == BranchCondition.ALWAYS:
                last.append((index + 1, end))
        elif instruction.ends_program:
            last.append((index + 1, index + END_DELAY_SLOTS))
    entered = {target for _, target in ways}
    for first, end in last:
        # A jump into the delay slots from elsewhere continues after them.
        if end < count and not entered.intersection(range(first, end + 1)):
            following[end] = []
    for end, target in ways:
        if end < count:
            following[end].append(target)
    return following


def _target(program: Program, index: int, branch: Branch) -> int | None:
    """The instruction that a branch leads to, None if it is not one of the program."""
    if branch.register:
        return None
    way = (branch.target(program.address_of(index)) - program.address) & _MASK
    number, rest = divmod(way, INSTRUCTION_BYTES)
    return None if rest or number >= len(program.words) else number


class _Step:
    """One instruction: `parameters` are the places of the texture parameters that it brings about,
    `after` is what is known after it."""

    def __init__(self, program: Program, index: int, before: _State, pointers: _Pointers) -> None:
        self.program = program
        self.before = before
        self.pointers = pointers
        self.words_due = len(program.texture_sites.get(index, ()))
        self.pointer = before.pointer
        self.registers = dict(before.registers)
        self.fresh: set[Register] = set()
        self.parameters: list[Places | None] = []
        p = plan(program.words[index])
        if p.kind == "alu":
            self._alu(p)
        elif p.kind == "branch":
            if any(address == Read.UNIFORM for _, address in p.instruction.read_addresses()):
                self.pointer = None
            for target in (p.add, p.mul):
                self._store(target, None)
        else:
            number = frozenset((Number(p.lanes[0] & _MASK),))
            self._write(p, number, number)
        self.after = _State(self.pointer, self.registers, frozenset(self.fresh))

    def _alu(self, p: Plan) -> None:
        ports: list[Numbers | None] = []
        uniform = False
        for file, address in (("a", p.raddr_a), ("b", p.raddr_b)):
            if address is None:
                ports.append(frozenset((Number(p.immediate & _MASK),)))
            elif address < 32:
                key = (file, int(address))
                fresh = key in self.before.fresh
                ports.append(None if fresh else self.before.registers.get(key))
            elif address != Read.UNIFORM:
                ports.append(None)
            elif uniform and not self.program.reads_twice:
                ports.append(ports[0])
            else:
                uniform = True
                ports.append(self._uniform())

        def operand(mux: int) -> Numbers | None:
            if mux == Mux.A:
                return None if p.unpack_a else ports[0]
            if mux == Mux.B:
                return ports[1]
            return self.before.registers.get(("r", mux)) if mux <= Mux.R3 else None

        mul = None
        if p.mul_op in _MUL_COPIES and p.mul_mux[0] == p.mul_mux[1] and not p.rotation:
            mul = operand(p.mul_mux[0])
        self._write(p, _add_result(p, *(operand(mux) for mux in p.add_mux)), mul)

    def _uniform(self) -> Numbers | None:
        """The next word of the stream."""
        places = self.pointer
        self._take()
        return None if places is None else frozenset(Number(0, place) for place in places)

    def _take(self) -> None:
        if self.pointer is not None:
            self.pointer = frozenset((place + WORD) & _MASK for place in self.pointer)

    def _write(self, p: Plan, add: Numbers | None, mul: Numbers | None) -> None:
        if p.add.address == p.mul.address:  # which of them counts is a switch
            add = mul = None
        if p.add_op or p.kind != "alu":
            self._store(p.add, add)
        self._store(p.mul, mul)

    def _store(self, target: Target, value: Numbers | None) -> None:
        if not target.is_write:
            return
        address = int(target.address)
        if target.pack or target.colour:
            value = None
        if address in TMU_WRITES:
            if len(self.parameters) < self.words_due:
                self.parameters.append(self.pointer)
                self._take()
        elif address == Write.UNIFORMS_ADDRESS:
            self._move(target, value)
        elif address <= Write.ACC3:
            key = (target.file, address) if address < 32 else ("r", address - Write.ACC0)
            if target.condition != Condition.ALWAYS:
                value = _either(self.registers.get(key), value)
            self.registers.pop(key, None)
            if value is not None:
                self.registers[key] = value
            if address < 32:
                self.fresh.add(key)

    def _move(self, target: Target, value: Numbers | None) -> None:
        """A write of the pointer."""
        relative = target.file == "b" and self.program.relative_b
        if value is None or target.condition != Condition.ALWAYS or relative:
            self.pointer = None
        else:
            self.pointer = frozenset(self.pointers.place(number) for number in value)


_COPIES = {AddOp.OR, AddOp.AND, AddOp.MIN, AddOp.MAX}
_MUL_COPIES = {MulOp.V8MIN, MulOp.V8MAX}
"""Operations that give x for x and x."""


def _add_result(p: Plan, x: Numbers | None, y: Numbers | None) -> Numbers | None:
    """Follow what the add ALU gives, of a copy or a sum with a plain number."""
    if p.add_op in _COPIES and p.add_mux[0] == p.add_mux[1]:
        return x
    if p.add_op not in (AddOp.ADD, AddOp.SUB) or x is None or y is None:
        return None
    sign = 1 if p.add_op == AddOp.ADD else -1
    found = set()
    for one in x:
        for other in y:
            if other.at is None:
                found.add(Number((one.offset + sign * other.offset) & _MASK, one.at))
            elif one.at is None and sign > 0:
                found.add(Number((one.offset + other.offset) & _MASK, other.at))
            else:
                return None
    return frozenset(found) if len(found) <= MAX_VALUES else None


Element = TypeVar("Element")


def _either(x: frozenset[Element] | None, y: frozenset[Element] | None) -> frozenset[Element] | None:
    if x is None or y is None:
        return None
    both = x | y
    return both if len(both) <= MAX_VALUES else None
