"""User programs as they lie in memory: read and compiled once, until their bytes change."""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from vc4lab.qpu.environment import Unsupported
from vc4lab.qpu.isa import INSTRUCTION_BYTES
from vc4lab.qpu.plan import plan
from vc4lab.qpu.program import Program
from vc4lab.v3d.compute.needs import need_of

if TYPE_CHECKING:
    from vc4lab.memory import GuestMemory
    from vc4lab.simd import NativeFunction
    from vc4lab.v3d.compute.watch import Allowed, Watched
    from vc4lab.v3d.unknowns import Unknowns

KEPT = 64
"""Programs kept in memory."""

LONGEST_ENTRY = 16
"""Instructions of an entry in a table that register branches jump into."""


@dataclass
class UserProgram:
    """A program and its native code. verdict: why it cannot be compiled; waits: whether it has a
    mutex or semaphore instruction; learned: where its register branches went. allowed: what it may
    touch, if it is watched.
    """

    program: Program
    waits: bool
    verdict: Unsupported | None = None
    learned: frozenset[int] = frozenset()
    functions: dict[tuple[bool, frozenset[int]], NativeFunction] = field(default_factory=dict)
    allowed: Allowed | None = None
    lock: threading.Lock = field(default_factory=threading.Lock)
    _watched: tuple[Program, Watched] | None = None

    @property
    def watched(self) -> Watched | None:
        """What is watched in the program; None if it runs unwatched."""
        if self.allowed is None:
            return None
        if self._watched is None or self._watched[0] is not self.program:
            from vc4lab.v3d.compute.watch import Watched

            self._watched = self.program, Watched.of(self.program)
        return self._watched[1]

    def native(self, unknowns: Unknowns, limited: bool) -> NativeFunction | None:
        """(SharedState address, QpuState address) -> Status; None if it must be interpreted."""
        from vc4lab.v3d.compute.compiled import compile_user_program

        with self.lock:
            if self.verdict is not None:
                return None
            key = limited, self.learned
            found = self.functions.get(key)
            if found is None:
                try:
                    stops = self.allowed is not None and self.allowed.stops
                    found = compile_user_program(
                        self.program, unknowns, *key, watched=self.watched, stops=stops
                    )
                except Unsupported as verdict:
                    self.verdict = verdict
                    return None
                self.functions[key] = found
            return found

    def learn(self, address: int) -> bool:
        """A register branch went to this address; False if there is no instruction."""
        offset = (address - self.program.address) & 0xFFFFFFFF
        index, rest = divmod(offset, INSTRUCTION_BYTES)
        if rest or index >= len(self.program):
            return False
        with self.lock:
            if index in self.learned:
                return True
            before = max((known for known in self.learned if known < index), default=index)
            self.learned |= {index}
            step = index - before
            if 0 < step <= LONGEST_ENTRY:  # a table of entries: the next ones will come as well
                more = range(index + step, min(index + 12 * step, len(self.program)), step)
                self.learned |= set(more)
        return True


class CodeCache:
    """Programs by address, under one setting of the unknowns. allowed: they are watched."""

    def __init__(
        self, memory: GuestMemory, unknowns: Unknowns, allowed: Allowed | None = None
    ) -> None:
        self.allowed = allowed
        self.memory = memory
        self.unknowns = unknowns
        self.names = unknowns["sf_with_never"], unknowns["load_immediate_condition"]
        self._known: OrderedDict[int, tuple[bytes, UserProgram]] = OrderedDict()

    def read(self, address: int) -> UserProgram:
        """The program that lies at a guest address now."""
        known = self._known.get(address)
        if known is not None and self.memory.read(address, len(known[0])) == known[0]:
            self._known.move_to_end(address)
            return known[1]
        program = Program.from_memory(self.memory, address, settings=self.unknowns)
        waits = any(need_of(plan(word, *self.names)) is not None for word in program.words)
        found = UserProgram(program, waits, allowed=self.allowed)
        if any(problem.code == "QPU-001" for problem in program.problems):
            found.verdict = Unsupported("QPU-001", "the program has no end")
        code = self.memory.read(address, INSTRUCTION_BYTES * len(program))
        self._known[address] = code, found
        while len(self._known) > KEPT:
            self._known.popitem(last=False)
        return found
