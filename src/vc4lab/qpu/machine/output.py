"""Holds what scheduling gives: words, the streams that they read, the signal that ends a program."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from vc4lab.qpu.isa.accesses import Kind, accesses
from vc4lab.qpu.isa.builder import NOP, with_signal
from vc4lab.qpu.isa.encoding import BRANCH_DELAY_SLOTS, END_DELAY_SLOTS
from vc4lab.qpu.isa.hazards import PLACEMENTS, Where
from vc4lab.qpu.isa.operations import Signal
from vc4lab.qpu.machine.code import Op, Streamed


@dataclass
class Scheduled:
    """A program with order and registers: words, the uniforms in the order in which they are
    read, varyings likewise (as given by their operations), and what each instruction is made of.

    cost: its instructions, each `weight` times; the scheduler sets that for what comes next.
    """

    words: list[int] = field(default_factory=list)
    uniforms: list[Streamed] = field(default_factory=list)
    varyings: list[Op] = field(default_factory=list)
    ops: list[tuple[Op, ...]] = field(default_factory=list)
    cost: int = 0
    weight: int = 1

    def emit(self, word: int, ops: tuple[Op, ...] = (), uniform: Streamed | None = None) -> None:
        """One more instruction."""
        self.words.append(word)
        self.cost += self.weight
        self.ops.append(ops)
        if uniform is not None:
            self.uniforms.append(uniform)


def end(words: Sequence[int]) -> list[int]:
    """The program with its end: the last three instructions are it and its delay slots."""
    program = list(words)
    while True:
        at = len(program) - 1 - END_DELAY_SLOTS
        if at >= 0 and _may_end(program, at):
            program[at] = with_signal(program[at], Signal.PROGRAM_END)
            return program
        program.append(NOP)


def _may_end(program: list[int], at: int) -> bool:
    if program[at] >> 60 != Signal.NONE:
        return False
    if any(accesses(one).kinds & Kind.BRANCH for one in program[max(at - BRANCH_DELAY_SLOTS, 0) : at]):
        return False
    for distance in range(END_DELAY_SLOTS + 1):
        kinds = accesses(program[at + distance]).kinds
        if kinds & (Kind.BRANCH | Kind.SCOREBOARD_WAIT | Kind.THREAD_SWITCH):
            return False
        for placement in PLACEMENTS:
            if placement.where is not Where.FIRST and kinds & placement.kinds:
                if placement.where.holds(at, distance):
                    return False
    return True
