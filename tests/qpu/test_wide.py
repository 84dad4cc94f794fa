"""Many runs side by side give what each gives alone."""

from typing import Any, ClassVar

import numpy as np
import pytest

from vc4lab.qpu.isa.qpu_unknowns import DEFAULTS
from vc4lab.qpu.program.program import Program
from vc4lab.qpu.run.environment import Environment, Unsupported
from vc4lab.qpu.run.interpreter import Interpreter
from vc4lab.qpu.run.wide import PROBE_AFTER, WideEnvironment, run_wide
from vc4lab.qpu.text.assembler import assemble

BLOCKS = 7


class Wide(WideEnvironment):
    """Register ra1 has the input of each block; what is written to the VPM is kept."""

    def __init__(self, inputs: np.ndarray) -> None:
        self.inputs = inputs
        self.rows, self.blocks = np.arange(len(inputs)), len(inputs)
        self.found: list[list[Any]] = [[] for _ in inputs]
        self.ended: list[int] = []

    def select(self, rows):
        new = object.__new__(type(self))
        new.__dict__.update(self.__dict__)
        new.rows, new.blocks = self.rows[rows], len(rows)
        return new

    def initial_registers(self):
        return {("a", 1): self.inputs[self.rows]}

    def uniform(self):
        return np.array([3], np.uint32)

    def vpm_write(self, value, mask):
        words = np.broadcast_to(value, (self.blocks, 16))
        lanes = np.broadcast_to(mask, (self.blocks, 16))
        for row, word, chosen in zip(self.rows, words, lanes, strict=True):
            self.found[row].append(np.where(chosen, word, 0).tolist())

    def element_number(self):
        return np.arange(16, dtype=np.uint32)

    def program_end(self):
        self.ended += self.rows.tolist()


class Alone(Environment):
    """The same for one block."""

    def __init__(self, inputs: np.ndarray) -> None:
        self.inputs = inputs
        self.found: list[Any] = []

    def initial_registers(self):
        return {("a", 1): self.inputs}

    def uniform(self):
        return np.full(16, 3, np.uint32)

    def vpm_write(self, value, mask):
        self.found.append(np.where(mask, value, 0).tolist())

    def element_number(self):
        return np.arange(16, dtype=np.uint32)


PROGRAMS = {
    "arithmetic, conditions, packs, special functions": """
        mov r0, ra1 ; nop
        add.setf r1, r0, unif ; fmul r2, r0, r0
        mov.ns rb3, r1 ; mov.nc r3, r2
        fadd r2, r0, 1.0 ; v8adds r1, r0, r1
        mov vpm, r2 ; nop
        mov recip, r0 ; nop
        mov vpm, r1 ; nop
        mov vpm, rb3 ; nop
        mov vpm, r4 ; nop
        itof r0, r0 ; nop
        nop
        mov ra2.16b, r0 ; nop
        nop
        mov vpm, ra2 ; nop
    """,
    "rotations by amounts of their own": """
        mov r0, elem_num ; nop
        and r5rep, ra1, 15 ; nop
        add r1, ra1, r0 ; nop
        nop
        nop ; mov r2, r1 >> r5
        nop
        mov vpm, r2 ; nop
        nop ; mov r3, r1 >> 5
        nop
        mov vpm, r3 ; nop
    """,
    "a loop as often as each block wants": """
        and r0, ra1, 7 ; nop
        mov r1, 0 ; nop
        and r5rep, r0, 7 ; nop
        nop
        mov r0, r5 ; nop
        :again
        add r1, r1, unif ; nop
        sub.setf r0, r0, 1 ; nop
        brr.allnn -, again
        nop
        nop
        nop
        mov.setf -, ra1 ; nop
        brr.anyz -, out
        nop
        nop
        nop
        mov vpm, ra1 ; nop
        :out
        mov vpm, r1 ; nop
    """,
    "a branch by register": """
        and r0, ra1, 1 ; nop
        shl ra2, r0, 5 ; nop
        nop
        brr -, ra2
        nop
        nop
        nop

        mov vpm, 1 ; nop
        mov vpm, 2 ; nop
        mov vpm, 3 ; nop
        mov vpm, 4 ; nop
        mov vpm, 5 ; nop
    """,
}
END = "\n nop ; nop ; thrend\n nop\n nop\n"


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("lane", ["0", "15"])
def test_each_block_as_if_it_were_alone(name: str, lane: str) -> None:
    words = tuple(assemble(PROGRAMS[name] + END).words)
    program = Program(words, 0)
    settings = {**DEFAULTS, "branch_register_lane": lane}
    rng = np.random.default_rng(4)
    inputs = rng.integers(0, 1 << 32, (BLOCKS, 16), np.uint32)
    inputs[2] = 0
    inputs[3] = inputs[4]
    env = Wide(inputs)
    run_wide(program, env, settings=settings)
    for row in range(BLOCKS):
        alone = Alone(inputs[row])
        Interpreter(program, alone, settings=settings).run()
        assert env.found[row] == alone.found
    assert sorted(env.ended) == list(range(BLOCKS))
    assert len({str(found) for found in env.found}) > 1


def test_a_run_without_end_is_given_up() -> None:
    text = ":again\n mov r0, 1 ; nop\n brr -, again\n nop\n nop\n nop\n"
    env = Wide(np.zeros((3, 16), np.uint32))
    with pytest.raises(Unsupported, match="QPU-041"):
        run_wide(Program(tuple(assemble(text).words), 0), env, budget=1000)


def test_one_block_finds_out_whether_a_program_ends() -> None:
    class Counting(Wide):
        limits: ClassVar[list[int]] = []

        def loop_limit(self):
            self.limits.append(self.blocks)
            super().loop_limit()

    text = ":again\n mov r0, 1 ; nop\n brr -, again\n nop\n nop\n nop\n"
    program = Program(tuple(assemble(text).words), 0)
    with pytest.raises(Unsupported, match="QPU-041"):
        run_wide(program, Counting(np.zeros((3, 16), np.uint32)), budget=2 * PROBE_AFTER)
    assert Counting.limits == [1]


def test_an_instruction_at_a_time_for_groups_that_the_environment_wants() -> None:
    """Each group is at its end before the next one begins."""
    order: list[list[int]] = []

    class Groups(Wide):
        whole = True

        def partition(self, p):
            return [np.array([0, 2]), np.array([1])] if self.whole and p.signal == 8 else None

        def select(self, rows):
            new = super().select(rows)
            new.whole = False
            return new

        def tlb_colour_load(self):
            order.append(self.rows.tolist())
            return np.zeros(1, np.uint32)

        def program_end(self):
            order.append([-1])

    text = "mov r0, ra1 ; nop\n nop ; nop ; loadc\n nop ; nop ; loadc" + END
    run_wide(Program(tuple(assemble(text).words), 0), Groups(np.zeros((3, 16), np.uint32)))
    assert order == [[0, 2], [0, 2], [-1], [1], [1], [-1]]
