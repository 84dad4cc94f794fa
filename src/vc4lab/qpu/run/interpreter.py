"""The reference interpreter: runs a program one instruction at a time on numpy words, and can be
watched doing so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from vc4lab.qpu.isa.encoding import INSTRUCTION_BYTES, LINK_OFFSET
from vc4lab.qpu.isa.ops import Mask, Word
from vc4lab.qpu.isa.qpu_unknowns import DEFAULTS, Settings
from vc4lab.qpu.isa.semantics import Semantics
from vc4lab.qpu.run.environment import REFERENCE_BUDGET, Environment, RegisterKey
from vc4lab.qpu.run.execute import Core, SavedCore
from vc4lab.qpu.run.numpy_ops import NumpyOps
from vc4lab.qpu.run.plan import Event, Plan, age, branch_event, plan, signal_events

if TYPE_CHECKING:
    from vc4lab.qpu.program.program import Program


class Write(NamedTuple):
    """A register or peripheral write: its name, the 16 lanes, and the lanes that take part (None:
    all).
    """

    name: str
    value: Word
    mask: Mask | None


class Step(NamedTuple):
    """An executed instruction, as the trace hook gets it."""

    address: int
    text: str
    writes: tuple[Write, ...]


class SavedRun(NamedTuple):
    """A copy of a run, which `Interpreter.saved` returns."""

    core: SavedCore
    address: int
    executed: int
    last: int
    finished: str | None
    events: tuple[Event, ...]


TraceHook = Callable[[Step], None]


class Interpreter:
    """One QPU thread running `program` against `env`.

    ops: the back end that computes.
    registers: initial values by key ("a", n), ("b", n), ("r", n): a number for all lanes or 16 of
    them; on top of the environment's own. trace: called with a Step after each instruction.
    more: called with an address that is not in the program; gives the program with it, or None.
    """

    ops: type[NumpyOps] = NumpyOps
    core_type: type[Core] = Core
    last = 0
    """Index of the instruction executed last."""

    def __init__(
        self,
        program: Program,
        env: Environment,
        registers: Mapping[RegisterKey, int | Word] | None = None,
        *,
        settings: Settings = DEFAULTS,
        trace: TraceHook | None = None,
        more: Callable[[int], Program | None] = lambda address: None,
    ) -> None:
        self.program = program
        self.more = more
        self.env = env
        self.core = self.core_type(Semantics(self.ops(), settings), env)
        self.settings = settings
        self.address = program.address
        self.count = 0
        self.finished: str | None = None  # "end", "limit" or "left"
        self.trace = trace
        self._writes: list[Write] = []
        if trace:
            self.core.written = self._note
        self._events: tuple[Event, ...] = ()
        self.names = settings["sf_with_never"], settings["load_immediate_condition"]
        self.plans = [plan(word, *self.names) for word in program.words]
        for key, value in {**env.initial_registers(), **(registers or {})}.items():
            self.write(key, value)

    # ---------------------------------------------------------------- looking inside
    def read(self, key: RegisterKey) -> Word:
        """The 16 lanes of a register."""
        return self.core.get(key)

    def write(self, key: RegisterKey, value: int | Word) -> None:
        """Set a register between instructions."""
        lanes = np.empty(16, np.uint32)
        lanes[:] = np.asarray(value & 0xFFFFFFFF if isinstance(value, int) else value)
        self.core.values[key] = lanes

    def flag(self, name: str) -> Mask:
        """The 16 lanes of flag "z", "n" or "c"."""
        return self.core.flag(name)

    @property
    def due(self) -> tuple[Event, ...]:
        """Branches, thread switches and the end that wait for their delay slots."""
        return self._events

    def saved(self) -> SavedRun:
        """The state between two instructions; its environment's is not in it."""
        return SavedRun(self.core.saved(), self.address, self.count, self.last, self.finished, self._events)

    def restore(self, saved: SavedRun) -> None:
        """Back to a state of the same run."""
        self.core.restore(saved.core)
        self.address, self.count, self.last = saved.address, saved.executed, saved.last
        self.finished, self._events = saved.finished, saved.events

    def _note(self, name: str, value: Word, mask: Mask | None) -> None:
        self._writes.append(Write(name, value, mask))

    # ---------------------------------------------------------------- running
    def follow(self) -> int | None:
        """Index of the next instruction; None, if it is not in the program, not even after asking
        `more`.
        """
        index = self.program.index_of(self.address)
        if index is None and (grown := self.more(self.address)) is not None:
            new = grown.words[len(self.program.words) :]
            self.program = grown
            self.plans = [*self.plans, *(plan(word, *self.names) for word in new)]
            index = grown.index_of(self.address)
        return index

    def step(self) -> bool:
        """Execute one instruction; False if the program has finished."""
        if self.finished:
            return False
        index = self.follow()
        if index is None:
            self.env.site = self.program.left_by(self.last)
            self.finished = "left"
            self.env.left_program(self.address)
            return False
        self.last = index
        p = self.plans[index]
        at = self.address
        self.core.execute(p, index)
        if p.kind == "branch":
            new = self._branch(p)
            self.env.branched(index, new[0].target if new else None)
        else:
            new = signal_events(p)
        self.address = (at + INSTRUCTION_BYTES) & 0xFFFFFFFF
        self.count += 1
        if self.trace:
            self._report(at, p)
        if not self._events:  # as nearly always
            self._events = new
            return True
        due, self._events = age(self._events, new)
        ended = False
        for event in due:
            if event.kind == "branch":
                assert event.target is not None
                self.address = event.target
            elif event.kind == "switch":
                self.core.switch_threads(bool(event.target))
            else:
                ended = True
        if ended:
            self.env.program_end()
            self.finished = "end"
        return not ended

    def run(self, max_instructions: int = REFERENCE_BUDGET) -> str:
        """Run to the end; "end", "limit" (budget used up, see `env.loop_limit`) or "left"."""
        while self.step():
            if self.count >= max_instructions:
                self.env.loop_limit()
                self.finished = "limit"
        assert self.finished
        return self.finished

    def _branch(self, p: Plan) -> tuple[Event, ...]:
        assert p.branch is not None
        mask, every = self.core.branch_mask(p)
        if mask is not None and not (mask.all() if every else mask.any()):
            return ()
        register = 0
        if p.branch.register:
            word = self.core.branch_register(p)
            lane = int(self.settings["branch_register_lane"])
            register = int(np.broadcast_to(word, (*word.shape[:-1], 16)).flat[lane])
        target = p.branch.target(self.address, register)
        self.core.link(p, self.address + LINK_OFFSET)
        return (branch_event(target),)

    def _report(self, address: int, p: Plan) -> None:
        from vc4lab.qpu.text.disassembler import disassemble

        writes, self._writes = tuple(self._writes), []
        assert self.trace
        self.trace(Step(address, disassemble(p.instruction.encode(), address), writes))
