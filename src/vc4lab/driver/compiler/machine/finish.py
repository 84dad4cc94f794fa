"""The end of a program: the signal that ends it, as early as its last instructions allow."""

from __future__ import annotations

from collections.abc import Sequence

from vc4lab.qpu.isa.accesses import Kind, accesses
from vc4lab.qpu.isa.builder import NOP, with_signal
from vc4lab.qpu.isa.encoding import END_DELAY_SLOTS
from vc4lab.qpu.isa.hazards import PLACEMENTS, Where
from vc4lab.qpu.isa.operations import Signal


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
    for distance in range(END_DELAY_SLOTS + 1):
        kinds = accesses(program[at + distance]).kinds
        if kinds & (Kind.BRANCH | Kind.SCOREBOARD_WAIT | Kind.THREAD_SWITCH):
            return False
        for placement in PLACEMENTS:
            if placement.where is not Where.FIRST and kinds & placement.kinds:
                if placement.where.holds(at, distance):
                    return False
    return True
