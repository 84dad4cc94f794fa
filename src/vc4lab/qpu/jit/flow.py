"""The control flow of a program as the JIT sees it: places (instruction + everything pending) and
where they lead.

A *place* is an instruction index together with what is still due when it is reached: branches and
ends in their delay slots, special function results on their way, registers whose old value is still
visible. With that in the key, delay slots and hazards need no code at run time: they are part of
the address.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from vc4lab.qpu.isa.encoding import INSTRUCTION_BYTES, LINK_OFFSET
from vc4lab.qpu.isa.registers import SFU_WRITES, Write
from vc4lab.qpu.program.program import Program
from vc4lab.qpu.run.environment import RegisterKey, Unsupported
from vc4lab.qpu.run.execute import SFU_LATENCY
from vc4lab.qpu.run.plan import Event, Plan, age, branch_event, signal_events

PLACES_PER_INSTRUCTION = 16
DYNAMIC_LIMIT = 256
MAX_PLACES = 3072
"""Instructions (places, with branches) that are compiled together at most: each takes one to three
milliseconds.
"""


class Place(NamedTuple):
    """The place of execution: instruction index `at`, pending events, registers read as they were, SFU
    latencies left.
    """

    at: int
    events: tuple[Event, ...] = ()
    old: tuple[RegisterKey, ...] = ()
    sfu: tuple[int, ...] = ()


class Exit(NamedTuple):
    """A way on from a place. place: None if it leads nowhere; taken: whether its branch was taken
    (None: no branch); due: the events that happen first; why: "end", "left" or "dynamic" when place
    is None; options: where a register branch may lead, by instruction index; pending: what is still
    due after it, wherever it leads; address: to which execution has left the program.
    """

    place: Place | None
    taken: bool | None
    due: tuple[Event, ...]
    why: str = ""
    options: tuple[Place, ...] = ()
    pending: Place | None = None
    address: int = 0


@dataclass
class Flow:
    """All places of a program that can be reached, and which of them are entered from more than one
    side.

    learned: instructions that register branches were seen to go to, if more of them can be learned
    while the program runs; None if all must be known now. start: the place to begin at (default:
    the program's entry). most: places, beyond which those found later are left out, if `partly`;
    what leads there is a way out. Raises Unsupported.
    """

    program: Program
    plans: list[Plan]
    keep_old: bool
    mul_nop_writes: bool
    learned: frozenset[int] | None = None
    start: Place | None = None
    most: int = MAX_PLACES
    partly: bool = False
    exits: dict[Place, tuple[Exit, ...]] = field(default_factory=dict)
    leaders: set[Place] = field(default_factory=set)

    def __post_init__(self) -> None:
        entry = self.start or self.place(0, (), (), ())
        self.entry = entry
        seen_from: dict[Place, int] = {entry: 1}
        todo = [entry]
        limit = PLACES_PER_INSTRUCTION * len(self.plans) + 64
        all_come = self.learned is not None and not self.partly  # no other verdict can come first
        while todo:
            place = todo.pop()
            if place in self.exits:
                continue
            if len(self.exits) >= self.most:
                if self.partly:
                    continue
                raise self._too_long()
            exits = self.exits[place] = self._leave(place)
            if len(self.exits) > limit:
                raise self._too_tangled()
            targets = [e.place for e in exits if e.place is not None]
            for e in exits:
                targets += e.options
                self.leaders.update(e.options)
            for target in targets:
                seen_from[target] = seen_from.get(target, 0) + 1
                todo.append(target)
            if all_come and len(seen_from) > min(limit, self.most):  # they need not be visited
                raise self._too_tangled() if limit < self.most else self._too_long()
        self.leaders.update(place for place, count in seen_from.items() if count > 1)
        self.leaders.discard(entry)
        if seen_from[entry] > 1:
            self.leaders.add(entry)

    @staticmethod
    def _too_long() -> Unsupported:
        return Unsupported("QPU-045", "the program is too long to be compiled")

    @staticmethod
    def _too_tangled() -> Unsupported:
        return Unsupported("QPU-043", "the program's branches and delay slots overlap too much")

    def place(
        self, index: int, events: tuple[Event, ...], old: tuple[RegisterKey, ...], sfu: tuple[int, ...]
    ) -> Place:
        """A place, keeping only what can matter there."""
        reads = self.plans[index].reads if index < len(self.plans) else ()
        return Place(index, events, tuple(sorted(set(old) & set(reads))), sfu)

    def writes(self, plan: Plan, taken: bool | None) -> tuple[tuple[RegisterKey, ...], int]:
        """(register-file registers written, number of special functions started)."""
        targets = [plan.add, plan.mul]
        if plan.kind == "branch":
            targets = targets if taken else []
        elif plan.kind == "alu":
            # an ALU without an operation writes nothing (the add ALU), or the last mul result
            targets = [plan.add] if plan.add_op else []
            targets += [plan.mul] if plan.mul_op or self.mul_nop_writes else []
        live = [t for t in targets if t.is_write]
        files = tuple((t.file, t.address) for t in live if t.address < 32)
        special = 0 if plan.kind == "branch" else sum(t.address in SFU_WRITES for t in live)
        return files, special

    def _leave(self, place: Place) -> tuple[Exit, ...]:
        if place.at >= len(self.plans):
            return (Exit(None, None, (), "left", (), Place(-1), self.program.address),)
        plan = self.plans[place.at]
        sfu = tuple(n - 1 for n in place.sfu if n)
        if plan.kind != "branch":
            return (self._follow(place, plan, sfu, None, signal_events(plan)),)
        assert plan.branch is not None
        branch = plan.branch
        condition = int(branch.condition)
        address = self.program.address_of(place.at)
        target = None if branch.register else branch.target(address)
        exits = []
        if condition == 15 or condition < 12:
            exits.append(self._follow(place, plan, sfu, True, (branch_event(target),)))
        if condition != 15:
            exits.append(self._follow(place, plan, sfu, False, ()))
        return tuple(exits)

    def _follow(
        self, place: Place, plan: Plan, sfu: tuple[int, ...], taken: bool | None, new: tuple[Event, ...]
    ) -> Exit:
        files, special = self.writes(plan, taken)
        due, later = age(place.events, new)
        if any(event.kind == "end" for event in due):
            return Exit(None, taken, due, "end")
        sfu += (SFU_LATENCY,) * special
        old = files if self.keep_old else ()
        pending = Place(-1, later, old, sfu)
        address = self.program.address_of(place.at) + INSTRUCTION_BYTES
        index = self.program.after(place.at)
        for event in due:
            if event.kind == "branch":
                if event.target is None:
                    options = self._options(pending)
                    return Exit(None, taken, due, "dynamic", options, pending)
                address = event.target
                index = self.program.index_of(address)
        if index is None:
            return Exit(None, taken, due, "left", (), pending, address & 0xFFFFFFFF)
        return Exit(self.arrival(index, pending), taken, due)

    def arrival(self, index: int, pending: Place) -> Place:
        """The place of an instruction that execution comes to with so much pending."""
        return self.place(index, *pending[1:])

    def _options(self, pending: Place) -> tuple[Place, ...]:
        """Every place a register branch may go to: any instruction of a small program; if more can
        be learned, only the likely ones.
        """
        indices: Sequence[int] = range(len(self.plans))
        if self.learned is not None:
            indices = sorted(self._likely | self.learned)
        elif len(self.plans) > DYNAMIC_LIMIT:
            raise Unsupported(
                "QPU-044", "a branch to a register in a program of this size cannot be compiled"
            )
        return tuple(self.arrival(index, pending) for index in indices)

    @cached_property
    def _likely(self) -> frozenset[int]:
        """List where calls come back to, and what stands after code that never goes on."""
        found: set[int | None] = set()
        for index, plan in enumerate(self.plans):
            if plan.branch is None:
                continue
            if links(plan) or (plan.branch.register and int(plan.branch.condition) == 15):
                found.add(self.program.index_of(self.program.address_of(index) + LINK_OFFSET))
        return frozenset(index for index in found if index is not None)


def links(plan: Plan) -> bool:
    """Whether a branch keeps the address after its delay slots in a register."""
    return plan.add.address != Write.NOP or plan.mul.address != Write.NOP
