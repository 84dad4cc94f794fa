"""Runs user programs on one engine and shows everything they can have changed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from vc4lab.diagnostics import Reporter
from vc4lab.memory import GuestMemory
from vc4lab.options import GpuOptions
from vc4lab.qpu.text.assembler import assemble
from vc4lab.v3d.unknowns import DEFAULT_UNKNOWNS, Unknowns
from vc4lab.v3d.user_programs.scheduler import UserPrograms
from vc4lab.v3d.user_programs.state import vpm_bytes

CODE, UNIFORMS, DATA = 0x10000, 0x40000, 0x100000
ENGINES = ("interpreter", "jit")
END = "\nnop ; nop ; thrend\nnop\nnop\n"


@dataclass
class Outcome:
    """memory: 32-bit words from DATA on; vpm: rows of 16 words."""

    memory: Any
    vpm: Any
    codes: dict[str, int]
    completed: int
    instructions: list[int]
    interrupts: int
    messages: str

    def differences(self, other: Outcome) -> list[str]:
        """Names of what is not the same."""
        names = [
            name
            for name in ("codes", "completed", "instructions", "interrupts")
            if getattr(self, name) != getattr(other, name)
        ]
        names += [
            name
            for name in ("memory", "vpm")
            if not np.array_equal(getattr(self, name), getattr(other, name))
        ]
        return names


class Board:
    """Guest memory with user programs on it."""

    def __init__(
        self,
        engine: str,
        *,
        unknowns: Unknowns = DEFAULT_UNKNOWNS,
        budget: int | None = None,
        threads: int | None = None,
        words: int = 1 << 16,
    ) -> None:
        self.memory = GuestMemory(64 << 20)
        self.reporter = Reporter()
        self.words = words
        options = GpuOptions(engine, threads, unknowns, budget)
        self.programs = UserPrograms(self.memory, self.reporter, options)
        self.code = CODE

    def load(self, program: str | Sequence[int]) -> int:
        """Put a program into memory; its address."""
        words = assemble(program).words if isinstance(program, str) else program
        at = self.code
        self.memory.write(at, b"".join(word.to_bytes(8, "little") for word in words))
        self.code += 8 * len(words) + 64
        return at

    def start(
        self, program: str | Sequence[int] | int, uniforms: Sequence[int] = (), length: int = 0
    ) -> None:
        """Queue a program with its uniforms."""
        code = program if isinstance(program, int) else self.load(program)
        at = UNIFORMS + 0x1000 * (self.programs.made & 31)
        for index, word in enumerate(uniforms):
            self.memory.set_u32(at + 4 * index, word)
        self.programs.request(code, at, length)

    def finish(self) -> Outcome:
        """Run everything; what it did."""
        programs = self.programs
        programs.look()
        programs.look()
        unit = programs.unit
        counts = [qpu.instructions for _, qpu in sorted(programs.running.items())]
        return Outcome(
            self.memory.array(DATA, self.words, "u4").copy(),
            vpm_bytes(unit.shared).view(np.uint32).reshape(-1, 16).copy(),
            {code: count for code, count in self.reporter.counts.items() if code != "QPU-057"},
            programs.completed,
            [programs.instructions, *counts],
            programs.take_interrupts(),
            self.reporter.summary(),
        )


def run(
    engine: str,
    program: str | Sequence[int],
    uniforms: Sequence[int] = (),
    *,
    length: int = 0,
    data: Any = None,
    **options: Any,
) -> Outcome:
    """One program on one QPU. data: words put at DATA before."""
    board = Board(engine, **options)
    if data is not None:
        board.memory.array(DATA, len(data), "u4")[:] = data
    board.start(program, uniforms, length)
    return board.finish()
