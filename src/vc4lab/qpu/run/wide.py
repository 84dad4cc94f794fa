"""The reference interpreter on many runs of a program at once: words of shape (blocks, 16).

The same `Core`, semantics and numpy operations as `interpreter.py`, one instruction at a time, on
wider arrays (`WideOps`). Where blocks part (a branch that only
some take, or what their environment asks for), the run is split and goes on with each part.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from vc4lab.qpu.isa.qpu_unknowns import DEFAULTS, Settings
from vc4lab.qpu.isa.semantics import Flags
from vc4lab.qpu.run.environment import REFERENCE_BUDGET, Environment
from vc4lab.qpu.run.execute import ALL_FLAGS, Core
from vc4lab.qpu.run.interpreter import Interpreter
from vc4lab.qpu.run.numpy_ops import WideOps, lane_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from vc4lab.qpu.program.program import Program
    from vc4lab.qpu.run.plan import Plan

    Rows = NDArray[np.intp]
    """Numbers of blocks."""
    Words = NDArray[np.uint32]
    Lanes = NDArray[np.bool_]


PROBE_AFTER = 1 << 10
"""Instructions after which one block goes ahead alone: if it never ends, the rest need not try."""


class WideEnvironment(Environment):
    """An environment with what `WideInterpreter` needs beyond an ordinary one. Nothing must be done to
    the outside before `program_end`, or before `partition` had the chance to split the run.
    """

    blocks: int
    """How many are run together."""

    def select(self, rows: Rows) -> WideEnvironment:
        """Select some of the blocks, at this moment."""
        raise NotImplementedError

    def partition(self, p: Plan) -> Sequence[Rows] | None:
        """Groups of blocks that must go through this instruction and all that follow one after the
        other; None: all can go together.
        """
        return None


def rows_of(word: Any, rows: Rows) -> Any:
    """A word or mask of some of the blocks."""
    return word if word.ndim == 1 else word[rows]


class WideInterpreter(Interpreter):
    """One group of blocks; `run_wide` runs them all."""

    env: WideEnvironment
    ops = WideOps

    def write(self, key: tuple[str, int], value: Any) -> None:
        """Set a register in all blocks."""
        self.core.values[key] = np.asarray(value, np.uint32)

    def advance(self, budget: int) -> list[WideInterpreter]:
        """Run to the end, or to where the blocks part: the parts, in the order to run them in."""
        while not self.finished:
            if self.env.blocks > 1 and (index := self.follow()) is not None:
                groups = self._groups(self.plans[index])
                if groups is None and self.count == PROBE_AFTER:
                    groups = np.split(np.arange(self.env.blocks), [1])
                    self.count += 1  # once is enough
                if groups is not None:
                    return [self.part(rows) for rows in groups]
            self.step()
            if self.count >= budget and not self.finished:
                self.env.loop_limit()
                self.finished = "limit"
        return []

    def part(self, rows: Rows) -> WideInterpreter:
        """This moment of some of the blocks."""
        new = object.__new__(type(self))
        new.__dict__.update(self.__dict__)
        new.env = self.env.select(rows)
        new.core = _core_of(self.core, new.env, rows)
        return new

    def _groups(self, p: Plan) -> Sequence[Rows] | None:
        """How the blocks part at an instruction, if they do."""
        if p.kind != "branch":
            return self.env.partition(p)
        assert p.branch is not None
        mask, every = self.core.branch_mask(p)
        blocks = self.env.blocks
        outcome = np.zeros(blocks, np.int64)
        if mask is not None:
            outcome[:] = mask.all(-1) if every else mask.any(-1)
            outcome -= 1  # 0: taken
        if p.branch.register:
            key = "a", int(p.branch.raddr_a)
            word = self.core.old[key] if key in self.core.old else self.core.get(key)
            lane = lane_of(word, int(self.settings["branch_register_lane"]))
            outcome = np.where(outcome == 0, lane.astype(np.int64), outcome)
        values, which = np.unique(outcome, return_inverse=True)
        if len(values) == 1:
            return None
        return [np.flatnonzero(which == k) for k in range(len(values))]


def _core_of(core: Core, env: Environment, rows: Rows) -> Core:
    """The state of some of the blocks."""
    new = type(core)(core.semantics, env, core.used_flags)
    new.values = {key: rows_of(word, rows) for key, word in core.values.items()}
    new.old = {key: rows_of(word, rows) for key, word in core.old.items()}
    new.sfu = [(left, rows_of(word, rows)) for left, word in core.sfu]
    flags = {name: core.flags.get(name) for name in ALL_FLAGS}
    new.flags = Flags.known(
        {name: None if mask is None else rows_of(mask, rows) for name, mask in flags.items()}
    )
    return new


def run_wide(
    program: Program,
    env: WideEnvironment,
    *,
    settings: Settings = DEFAULTS,
    budget: int = REFERENCE_BUDGET,
    kind: type[WideInterpreter] = WideInterpreter,
) -> None:
    """Runs all blocks of `env` to their end.

    Each group that blocks part into is finished before the next one begins. Raises what the
    environment raises: `Unsupported`, or `Diverged`, with nothing done to the outside.
    """
    groups = [kind(program, env, settings=settings)]
    while groups:
        groups.extend(reversed(groups.pop().advance(budget)))
