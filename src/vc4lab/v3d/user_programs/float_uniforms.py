"""Uniforms that a program uses as floats, found in its first instructions.

`vc4lab run -u 2` gives the integer 2, which as a float is 2.8e-45: a denormal, which the QPU takes
for 0 (and -2, which is no number). So the instructions up to the first branch back are followed
with what each register holds: which uniforms are operands of float operations, directly or after
moves.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from vc4lab.qpu.isa.encoding import BRANCH_DELAY_SLOTS, Alu, Branch, Instruction, LoadImmediate, Semaphore
from vc4lab.qpu.isa.operations import FLOAT_INPUT_ADD_OPS, AddOp, Condition, MulOp, Mux
from vc4lab.qpu.isa.registers import REGFILE_SIZE, SFU_WRITES, TMU_WRITES, Read, Write

LONGEST = 4096
"""Instructions that are looked at."""
SMALLEST_NORMAL = 0x00800000
ACCUMULATORS = {Write.ACC0 + n: n for n in range(4)} | {Write.ACC5: 5}
"""Write addresses of r0 to r3 and r5."""

Place = tuple[str, int]
"""A register: file a or b, or "r" for accumulators, and its number."""


class FloatUse(NamedTuple):
    """A uniform, by its number in the list, that the instruction at an index uses as a float."""

    uniform: int
    at: int


def is_small_integer(word: int) -> bool:
    """Whether a word is an integer that as a float would be a denormal or no number: 0 to a QPU."""
    return 0 < word < SMALLEST_NORMAL or word > (1 << 32) - SMALLEST_NORMAL


def float_uses(words: Sequence[int], first: int = 0) -> Iterator[FloatUse]:
    """The uniforms that float operations read, in the order of the instructions.

    Followed from `first` to where a branch goes back, the uniforms' address is set, or a texture
    request takes uniforms by itself.
    """
    holds: dict[Place, int] = {}
    used = 0
    stop = min(len(words), first + LONGEST)
    index = first
    while index < stop:
        instruction = Instruction.decode(words[index])
        if isinstance(instruction, Branch):
            if instruction.register or not instruction.relative or instruction.immediate >> 31:
                stop = min(stop, index + 1 + BRANCH_DELAY_SLOTS)
        elif isinstance(instruction, LoadImmediate | Semaphore):
            for place in _written(instruction.ws, instruction.waddr_add, instruction.waddr_mul):
                holds.pop(place, None)
        elif isinstance(instruction, Alu):
            operands, used = _operands(instruction, holds, used)
            yield from (FloatUse(n, index) for n in _floats(instruction, operands))
            _move(instruction, operands, holds)
            if _ends(instruction):
                return
        index += 1


def _operands(alu: Alu, holds: dict[Place, int], used: int) -> tuple[dict[int, int], int]:
    """Which uniform each mux delivers, and how many uniforms have been read after it."""
    found = {n: holds["r", n] for n in range(Mux.A) if ("r", n) in holds}
    reads = False
    ports = [(int(Mux.A), "a", alu.raddr_a)]
    if not alu.has_small_immediate:
        ports.append((int(Mux.B), "b", alu.raddr_b))
    for mux, file, address in ports:
        if address == Read.UNIFORM:
            found[mux] = used
            reads = True
        elif (file, address) in holds:
            found[mux] = holds[file, address]
    if alu.unpack:
        found.pop(int(Mux.R4 if alu.pm else Mux.A), None)
    return found, used + reads


def _floats(alu: Alu, operands: dict[int, int]) -> list[int]:
    """The uniforms among the operands of float operations."""
    muxes: list[int] = []
    if alu.op_add in FLOAT_INPUT_ADD_OPS:
        muxes += [alu.add_a] if alu.op_add == AddOp.FTOI else [alu.add_a, alu.add_b]
    if alu.op_mul == MulOp.FMUL:
        muxes += [alu.mul_a, alu.mul_b]
    for moved, address in _moved(alu):
        if address in SFU_WRITES:
            muxes.append(moved)
    return list(dict.fromkeys(operands[mux] for mux in muxes if mux in operands))


def _moved(alu: Alu) -> Iterator[tuple[int, int]]:
    """Mux and write address of each plain move."""
    if alu.op_add == AddOp.OR and alu.add_a == alu.add_b:
        yield alu.add_a, alu.waddr_add
    if alu.op_mul == MulOp.V8MIN and alu.mul_a == alu.mul_b and alu.rotation is None:
        yield alu.mul_a, alu.waddr_mul


def _move(alu: Alu, operands: dict[int, int], holds: dict[Place, int]) -> None:
    """Follow what registers hold after an instruction."""
    add, mul = _places(alu.ws, alu.waddr_add, alu.waddr_mul)
    moves = dict.fromkeys((add, mul))
    if alu.op_add == AddOp.OR and alu.add_a == alu.add_b:
        moves[add] = operands.get(alu.add_a)
    if alu.op_mul == MulOp.V8MIN and alu.mul_a == alu.mul_b and alu.rotation is None:
        moves[mul] = operands.get(alu.mul_a)
    for place, condition, active in (
        (add, alu.cond_add, alu.op_add), (mul, alu.cond_mul, alu.op_mul)
    ):  # fmt: skip
        if place is None or not active or condition == Condition.NEVER:
            continue
        uniform = moves.get(place)
        if uniform is None or alu.pack:
            holds.pop(place, None)
        else:
            holds[place] = uniform


def _places(ws: int, waddr_add: int, waddr_mul: int) -> tuple[Place | None, Place | None]:
    files = "ba" if ws else "ab"
    return _place(files[0], waddr_add), _place(files[1], waddr_mul)


def _place(file: str, address: int) -> Place | None:
    if address < REGFILE_SIZE:
        return file, address
    number = ACCUMULATORS.get(address)
    return None if number is None else ("r", number)


def _written(ws: int, waddr_add: int, waddr_mul: int) -> list[Place]:
    return [place for place in _places(ws, waddr_add, waddr_mul) if place is not None]


def _ends(alu: Alu) -> bool:
    """Whether the next uniform is no longer the next of the list."""
    texture = {address for address, (_unit, coordinate) in TMU_WRITES.items() if coordinate != "s"}
    return not {Write.UNIFORMS_ADDRESS, *texture}.isdisjoint((alu.waddr_add, alu.waddr_mul))
