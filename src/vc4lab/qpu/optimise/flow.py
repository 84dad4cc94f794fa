"""A program's blocks as they may be rearranged, and the registers that are read after each.

A block goes from an instruction that is entered to the end of what is executed in one go, delay
slots included. Blocks that nothing may be moved in are kept as they are, with the reason.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Final

from vc4lab.qpu.isa.accesses import Kind, accesses
from vc4lab.qpu.isa.encoding import (
    BRANCH_DELAY_SLOTS,
    END_DELAY_SLOTS,
    INSTRUCTION_BYTES,
    Branch,
    Instruction,
)
from vc4lab.qpu.isa.operations import BranchCondition, Signal
from vc4lab.qpu.isa.registers import REGFILE_SIZE, Write
from vc4lab.qpu.optimise.pieces import FLAGS, has_odd_flags, is_odd, piece_of

EVERY: Final = frozenset(
    {*(f"r{file}{n}" for file in "ab" for n in range(REGFILE_SIZE)), *(f"r{n}" for n in range(6)), FLAGS}
)
"""Names of all registers, and the flags."""
MOST_INSTRUCTIONS: Final = 400
"""Instructions of one block, at most; longer ones are cut, and nothing moves across."""


@dataclass(eq=False)
class Stretch:
    """Instructions `start` to `stop`, executed one after the other.

    Attributes
    ----------
    branch
        Index of the branch whose delay slots are the last three; None: none is.
    ends
        Index of the program end whose delay slots are the last two; None: none is.
    after
        Stretches that may follow; `leaves`: so may what is not known.
    kept
        Why it stays as it is; "" if it need not.
    live
        The registers that are read after it.
    is_entered
        Whether execution may come from where is not known: by a return, or a computed branch.
    """

    start: int
    stop: int
    branch: int | None = None
    ends: int | None = None
    after: list[Stretch] = field(default_factory=list)
    leaves: bool = False
    kept: str = ""
    live: frozenset[str] = EVERY
    is_entered: bool = False


@dataclass(frozen=True)
class Flow:
    """A program's stretches.

    Attributes
    ----------
    is_fixed
        Whether each has to begin where it did: addresses are computed from numbers, or data lies
        in between.
    why
        The reason for that.
    """

    stretches: list[Stretch]
    is_fixed: bool
    why: str = ""


def flow_of(
    words: Sequence[int],
    entries: Collection[int] = (),
    labels: Collection[int] = (),
    raw: Collection[int] = (),
) -> Flow:
    """The stretches of a program. entries: instructions that may be entered from outside; labels: by
    branches to computed addresses, if there are any; raw: words that are data.
    """
    instructions = [Instruction.decode(word) for word in words]
    leaders = {0, *(index for index in entries if index < len(words))}
    why = "data lies in the program" if raw else ""
    jumps: list[Branch] = []
    for index, instruction in enumerate(instructions):
        if index in raw:
            leaders |= {index, index + 1}
            continue
        if isinstance(instruction, Branch):
            leaders.add(index + 1 + BRANCH_DELAY_SLOTS)
            target = target_of(words, index)
            if target is not None:
                leaders.add(target)
            elif instruction.relative and not instruction.register:
                why = why or "a branch leads out of it"
            else:
                jumps.append(instruction)
        elif instruction.ends_program:
            leaders.add(index + 1 + END_DELAY_SLOTS)
    why = why or _computed(words, jumps)
    if why:
        leaders.update(labels)
    starts = sorted(leader for leader in leaders if leader < len(words))
    stretches = [
        _stretch(words, instructions, start, stop, raw)
        for begin, end in zip(starts, [*starts[1:], len(words)], strict=True)
        for start, stop in _cuts(instructions, begin, end)
    ]
    _follow(words, instructions, stretches)
    returns = _returns(instructions, raw)
    for stretch in stretches:
        stretch.is_entered = bool(jumps) and (stretch.start in returns or (bool(why) and stretch.start > 0))
    _set_live(words, stretches)
    for stretch in stretches:
        _keep_odd_flags(words, stretch)
    return Flow(stretches, bool(why), why)


def _returns(instructions: Sequence[Instruction], raw: Collection[int]) -> set[int]:
    """Return the indices to which branches that leave their address in a register are returned to."""
    return {
        index + 1 + BRANCH_DELAY_SLOTS
        for index, branch in enumerate(instructions)
        if isinstance(branch, Branch)
        and index not in raw
        and any(address != Write.NOP for _, address in branch.write_addresses())
    }


def target_of(words: Sequence[int], index: int) -> int | None:
    """The instruction that a branch leads to, if the branch says so and it is in the program."""
    branch = Instruction.decode(words[index])
    if not isinstance(branch, Branch) or branch.register or not branch.relative:
        return None
    target, rest = divmod(branch.target(INSTRUCTION_BYTES * index), INSTRUCTION_BYTES)
    return target if not rest and target < len(words) else None


def _computed(words: Sequence[int], jumps: Sequence[Branch]) -> str:
    """Why addresses must stay: a branch goes to one that the program computed. One that a branch
    has left in the register moves with the program.
    """
    wanted = {f"ra{jump.raddr_a}" for jump in jumps if jump.register}
    if any(not jump.register or jump.immediate for jump in jumps):
        return "it branches to an absolute address"
    for word in words:
        if (
            not isinstance(Instruction.decode(word), Branch)
            and accesses(word).at(Kind.REGISTER_WRITE) & wanted
        ):
            return "it branches to an address that it computes"
    return ""


def _cuts(instructions: Sequence[Instruction], start: int, stop: int) -> list[tuple[int, int]]:
    """A block in parts of a bounded length, none of which begins in delay slots."""
    found = []
    while stop - start > MOST_INSTRUCTIONS + BRANCH_DELAY_SLOTS + 1:
        found.append((start, start + MOST_INSTRUCTIONS))
        start += MOST_INSTRUCTIONS
    return [*found, (start, stop)]


def _stretch(
    words: Sequence[int], instructions: Sequence[Instruction], start: int, stop: int, raw: Collection[int]
) -> Stretch:
    found = Stretch(start, stop)
    if start in raw:
        found.kept = "data"
        return found
    for index in range(max(start - BRANCH_DELAY_SLOTS, 0), start):
        slots = BRANCH_DELAY_SLOTS if isinstance(instructions[index], Branch) else END_DELAY_SLOTS
        if _delays(instructions[index]) and index + slots >= start and index not in raw:
            found.kept = "it is entered in delay slots"
    for index in range(start, stop):
        instruction = instructions[index]
        if is_odd(words[index]) and not has_odd_flags(words[index]):
            found.kept = found.kept or f"instruction {index} reads what no register holds"
        if isinstance(instruction, Branch):
            if found.branch is not None or index + 1 + BRANCH_DELAY_SLOTS != stop:
                found.kept = found.kept or "a branch has other delay slots than three of its own"
            found.branch = index
        elif instruction.ends_program:
            if index + 1 + END_DELAY_SLOTS != stop or instruction.signal != Signal.PROGRAM_END:
                found.kept = found.kept or "the program end has no delay slots of its own"
            found.ends = index
        elif _delays(instruction):
            found.kept = found.kept or "threads are switched"
        elif instruction.signal == Signal.BREAKPOINT:
            found.kept = found.kept or "it has a breakpoint"
    if found.branch is not None and found.ends is not None:
        found.kept = found.kept or "the program ends beside a branch"
    return found


def _delays(instruction: Instruction) -> bool:
    return (
        isinstance(instruction, Branch)
        or instruction.ends_program
        or instruction.signal in (Signal.THREAD_SWITCH, Signal.LAST_THREAD_SWITCH)
    )


def _follow(words: Sequence[int], instructions: Sequence[Instruction], stretches: Sequence[Stretch]) -> None:
    by_start = {stretch.start: stretch for stretch in stretches}
    for stretch in stretches:
        falls = stretch.ends is None
        if stretch.branch is not None:
            branch = instructions[stretch.branch]
            assert isinstance(branch, Branch)
            falls = branch.condition != BranchCondition.ALWAYS
            target = target_of(words, stretch.branch)
            if target is None:
                stretch.leaves = True
            elif target in by_start:
                stretch.after.append(by_start[target])
        if stretch.kept:
            stretch.leaves = True  # what it does is not looked at
            falls = True
        if falls and stretch.stop in by_start:
            stretch.after.append(by_start[stretch.stop])
        elif falls:
            stretch.leaves = True


def _keep_odd_flags(words: Sequence[int], stretch: Stretch) -> None:
    """Keep a block in which flags are read that depend on more than registers."""
    odd = -1
    for index in range(stretch.start, stretch.stop):
        piece = piece_of(words[index], index, 0)
        if odd >= 0 and FLAGS in piece.reads:
            stretch.kept = stretch.kept or f"instruction {odd} sets flags of what no register holds"
        if FLAGS in piece.writes:
            odd = index if has_odd_flags(words[index]) else -1
    if odd >= 0 and FLAGS in stretch.live:
        stretch.kept = stretch.kept or f"instruction {odd} sets flags of what no register holds"


def _set_live(words: Sequence[int], stretches: Sequence[Stretch]) -> None:
    """Registers read later, backwards until nothing changes."""
    takes: dict[Stretch, frozenset[str]] = {}
    makes: dict[Stretch, frozenset[str]] = {}
    before: dict[Stretch, list[Stretch]] = {stretch: [] for stretch in stretches}
    for stretch in stretches:
        taken: set[str] = set()
        made: set[str] = set()
        for index in range(stretch.start, stretch.stop):
            piece = piece_of(words[index], index, 0)
            reads = piece.reads | (piece.writes if piece.is_partial else frozenset())
            taken |= reads - made
            if not piece.is_partial and not piece.touched.kinds & Kind.BRANCH:  # links, if it is taken
                made |= piece.writes
        takes[stretch], makes[stretch] = frozenset(taken), frozenset(made)
        stretch.live = EVERY if stretch.leaves else frozenset()
        for after in stretch.after:
            before[after].append(stretch)
    todo = list(stretches)
    while todo:
        stretch = todo.pop()
        needs = takes[stretch] | (stretch.live - makes[stretch])
        for other in before[stretch]:
            if needs - other.live:
                other.live |= needs
                todo.append(other)
