"""Finds where the clocks of user programs go: by instruction, by loop, in both ALUs.

An instruction slot can have an operation of the add ALU and one of the mul ALU, on 16 lanes each. The
chip's peak is both in every slot of every QPU.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from vc4lab.qpu.isa.encoding import BRANCH_DELAY_SLOTS, Alu, Branch, Instruction
from vc4lab.qpu.text.disassembler import disassemble
from vc4lab.timing.compute.kinds import Cause
from vc4lab.timing.result import AluUse, HotInstruction, LoopUse

if TYPE_CHECKING:
    from vc4lab.qpu.program.program import Program

Clocks = Sequence[int] | NDArray[np.signedinteger[Any]]
"""Clocks that were waited, by cause."""


@dataclass(frozen=True)
class ProgramUse:
    """A program: what was seen of each of its words, its ALUs, its loops."""

    program: Program
    seen: tuple[HotInstruction, ...]
    alus: AluUse
    loops: tuple[LoopUse, ...]


def seen_instruction(
    word: int, address: int, executed: int, stalls: Clocks, slot: int, texts: Mapping[Cause, str]
) -> HotInstruction:
    """An instruction with its counts. stalls: clocks by cause; texts: the causes that are named."""
    text = " ".join(disassemble(word, address).split("  #")[0].split())
    clocks = executed * slot + int(sum(stalls))
    return HotInstruction(address, text, executed, clocks, by_cause(stalls, texts))


def by_cause(stalls: Clocks, texts: Mapping[Cause, str]) -> dict[str, int]:
    """Clocks by cause, in words; causes that were none are left out."""
    return {text: int(stalls[cause]) for cause, text in texts.items() if stalls[cause]}


def alus_of(pairs: Iterable[tuple[int, HotInstruction]], slot: int, clocks: int | None = None) -> AluUse:
    """Sum the ALUs' use over instructions (word, its counts). clocks: if these are not all of them."""
    issued = add = mul = both = total = 0
    for word, one in pairs:
        has_add, has_mul = operations(word)
        issued += one.executed
        add += one.executed * has_add
        mul += one.executed * has_mul
        both += one.executed * (has_add and has_mul)
        total += one.clocks
    return AluUse(issued, add, mul, both, total if clocks is None else clocks, slot)


def operations(word: int) -> tuple[bool, bool]:
    """Whether an instruction has an operation of the add ALU, of the mul ALU."""
    instruction = Instruction.decode(word)
    if not isinstance(instruction, Alu):
        return False, False
    return bool(instruction.op_add), bool(instruction.op_mul)


def loops_of(program: Program, seen: Sequence[HotInstruction], slot: int) -> list[LoopUse]:
    """The loops of a program that were gone through more than once; seen: of each word."""
    found: dict[tuple[int, int], LoopUse] = {}
    for index, word in enumerate(program.words):
        branch = Instruction.decode(word)
        if not isinstance(branch, Branch) or branch.register or not seen[index].executed:
            continue
        target = program.index_of(branch.target(program.address_of(index)))
        last = index + BRANCH_DELAY_SLOTS
        if target is None or target > index or last >= len(seen):
            continue
        rounds = seen[target].executed
        if rounds < 2:
            continue
        parts = zip(program.words[target : last + 1], seen[target : last + 1], strict=True)
        first, end = program.address_of(target), program.address_of(last)
        found[first, end] = LoopUse(first, end, rounds, alus_of(parts, slot))
    return sorted(found.values(), key=lambda loop: -loop.clocks)


def listing(use: ProgramUse, line: Callable[[int], tuple[int, str] | None]) -> list[str]:
    """Each line of a program with what it took: clocks, their share, times, ALUs (a, m), waits.

    line: number and text of an instruction's source line, if it has one. Words of one line that follow
    each other are one row.
    """
    rows: list[tuple[tuple[int, str] | None, list[tuple[int, HotInstruction]]]] = []
    for word, one in zip(use.program.words, use.seen, strict=True):
        place = line(one.address)
        if place is not None and rows and rows[-1][0] == place:
            rows[-1][1].append((word, one))
        else:
            rows.append((place, [(word, one)]))
    total = max(use.alus.clocks, 1)
    found = ["    clocks  share     times ALUs  line"]
    for place, parts in rows:
        clocks = sum(one.clocks for _, one in parts)
        ops = [operations(word) for word, _ in parts]
        alus = ("a" if any(add for add, _ in ops) else ".") + ("m" if any(mul for _, mul in ops) else ".")
        text = (
            f"{place[0]:<5} {place[1].strip()}"
            if place
            else f"0x{parts[0][1].address:08x} {parts[0][1].text}"
        )
        waits: Counter[str] = Counter()
        for _, one in parts:
            waits.update(one.stalls)
        why = ", ".join(f"{cause} {number}" for cause, number in waits.most_common())
        times = max(one.executed for _, one in parts)
        row = f"{clocks:>10} {100 * clocks / total:5.1f} % {times:>9} {alus}    {text}"
        found.append(f"{row:<80}  {why}".rstrip())
    return found
