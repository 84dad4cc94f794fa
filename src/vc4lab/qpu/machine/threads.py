"""Two threads of a fragment program: while one waits for its texels, the other computes.

The program becomes parts with a thread switch after each but the last. A part ends with texture
requests, of which the texture unit takes half as many as of one thread, and their results are
fetched in the next part. What a switch loses (accumulators, flags) lives in one part; what lives on
is in half of the register files. Source: hardware reference 4.13.
"""

from __future__ import annotations

from typing import NamedTuple

from vc4lab.qpu.isa.operations import Signal
from vc4lab.qpu.machine.code import Block, Op, Reg, Request, Wants
from vc4lab.qpu.machine.edges import connect


class Capacity(NamedTuple):
    """Counts what a program may have in the texture unit's queues."""

    words: int
    requests: int


SINGLE, THREADED = Capacity(8, 4), Capacity(4, 2)
"""A program that is alone in its processor, and one of two threads."""
TEXTURE_LATENCY = 9
"""Instructions for which other work is preferred to waiting for a sample."""


class Requests:
    """Requests that are begun, and those whose results are not fetched."""

    def __init__(self, capacity: Capacity = SINGLE) -> None:
        self._capacity = capacity
        self.lock: Request | None = None
        """A request that is begun and not complete: no other may begin."""
        self._waiting: list[Request] = []
        """Those whose results are not fetched, in order."""

    def may_go_on(self, op: Op) -> bool:
        """Whether a texture request may begin or go on, or its result be fetched."""
        request = op.request
        assert request is not None
        if op.signal is not None:
            return bool(self._waiting) and self._waiting[0] is request and self.lock is not request
        if self.lock is not None:
            return self.lock is request
        if len(self._waiting) >= self._capacity.requests or any(one.waiting for one in request.writes[:-1]):
            return False
        words = sum(len(one.writes) for one in self._waiting)
        return not words or words + len(request.writes) <= self._capacity.words

    def put(self, op: Op, now: int) -> None:
        """A write or a fetch of a request is in instruction `now`."""
        request = op.request
        assert request is not None
        if op.signal is not None:
            self._waiting.pop(0)
            return
        request.sent += 1
        self.lock = None if op is request.writes[-1] else request
        if op is request.writes[-1]:
            self._waiting.append(request)
            assert request.load is not None
            request.load.soft = now + TEXTURE_LATENCY


MOST_SWITCHES = 8
_ROUNDS = 64
_SHORT_LIVED = (Wants.R4, Wants.R5, Wants.ACCUMULATOR)


def in_parts(blocks: list[Block]) -> list[Block] | None:
    """A lowered program of one block in parts; None if it samples nothing or cannot be cut."""
    if len(blocks) != 1 or not any(op.request is not None for op in blocks[0].ops):
        return None
    connect(blocks)
    left = set(blocks[0].ops)
    if any(op.request is not None and op.request.load not in left for op in left):
        return None  # a sample that nothing reads
    cut = _Cut(blocks[0].ops)
    parts = cut.parts() if cut.find() else None
    for op in blocks[0].ops:
        op.next, op.height, op.waiting = [], 0, 0
    return parts


class _Cut:
    """The part of each operation, on the way."""

    def __init__(self, ops: list[Op]) -> None:
        self._ops = ops
        self._group: dict[Op, Op] = {op: op for op in ops}
        """Operations of one part by one of them."""
        self._least: dict[Op, int] = {}
        """By the groups' first operations."""
        self._requests: dict[Request, None] = {}
        for op in ops:
            self._join_what_a_switch_would_part(op)
            if op.request is not None:
                self._requests[op.request] = None
        self._phase: dict[Op, int] = {}
        self._switches = 0

    def _of(self, op: Op) -> Op:
        while self._group[op] is not op:
            op = self._group[op]
        return op

    def _join(self, first: Op, other: Op) -> None:
        if first in self._group and other in self._group:
            self._group[self._of(other)] = self._of(first)

    def _join_what_a_switch_would_part(self, op: Op) -> None:
        target = op.target
        if isinstance(target, Reg) and target.wants in _SHORT_LIVED:
            for reader in target.readers:
                self._join(op, reader)
        if op.second is not None:
            for reader in op.second.readers:
                self._join(op, reader)
        if op.sets is not None:
            for user in op.sets.users:
                self._join(op, user)
        if op.request is not None and op.signal is None:
            self._join(op.request.writes[-1], op)

    def find(self) -> bool:
        """Give each operation its part; whether that is possible."""
        for _ in range(_ROUNDS):
            if not self._settle():
                return False
            late = self._too_many()
            if late is None:
                break
            group = self._of(late.writes[-1])
            self._least[group] = self._phase[group] + 1
        else:
            return False
        self._make_late()
        return all(
            request.load is not None and self._part(request.writes[-1]) < self._part(request.load)
            for request in self._requests
        )

    def _part(self, op: Op) -> int:
        return self._phase[self._of(op)]

    def _settle(self) -> bool:
        """The earliest parts: after what they need, a result after its request's part."""
        phase = {self._of(op): 0 for op in self._ops}
        phase.update(self._least)
        changed = True
        while changed:
            changed = False
            last = max(self._of_phase(phase, one.writes[-1]) for one in self._requests) + 1
            if last > MOST_SWITCHES:
                return False
            for op in self._ops:
                here = self._of_phase(phase, op)
                if op.signal is not None and op.request is not None:
                    here = max(here, self._of_phase(phase, op.request.writes[-1]) + 1)
                if op.signal in (Signal.SCOREBOARD_WAIT, Signal.LOAD_COLOUR):
                    here = max(here, last)
                if here > self._of_phase(phase, op):
                    phase[self._of(op)] = here
                    changed = True
                for after, _ in op.next:
                    if self._of_phase(phase, after) < here:
                        phase[self._of(after)] = here
                        changed = True
        self._phase, self._switches = phase, last
        return True

    def _of_phase(self, phase: dict[Op, int], op: Op) -> int:
        return phase[self._of(op)]

    def _too_many(self) -> Request | None:
        """A request that is too many in its part."""
        capacity: dict[int, Capacity] = {}
        for request in self._requests:
            part = self._part(request.writes[-1])
            words, count = capacity.get(part, (0, 0))
            words, count = words + len(request.writes), count + 1
            if count > 1 and (words > THREADED.words or count > THREADED.requests):
                return request
            capacity[part] = Capacity(words, count)
        return None

    def _make_late(self) -> None:
        """Make what needs no register of an earlier operation in the part where it is first read."""
        members: dict[Op, list[Op]] = {}
        for op in self._ops:
            members.setdefault(self._of(op), []).append(op)
        for op in reversed(self._ops):
            group = self._of(op)
            ops = members[group]
            if op is not ops[0] or any(one.request is not None or one.after for one in ops):
                continue
            inside = set(ops)
            needs = {reg for one in ops for reg in one.reads if reg.op is not None}
            needs |= {one.tied for one in ops if one.tied is not None}
            if any(reg.op not in inside for reg in needs):
                continue
            later = [self._part(after) for one in ops for after, _ in one.next if after not in inside]
            if later:
                self._phase[group] = max(self._phase[group], min(later))

    def parts(self) -> list[Block]:
        """The blocks."""
        made = [Block(number) for number in range(self._switches + 1)]
        for op in self._ops:
            made[self._part(op)].ops.append(op)
        for part in made:
            part.follows_switch = part.number > 0
            if part.number < self._switches:
                is_last = part.number == self._switches - 1
                part.switch = Signal.LAST_THREAD_SWITCH if is_last else Signal.THREAD_SWITCH
            for op in part.ops:
                for reg in (op.target, op.second):
                    if isinstance(reg, Reg):
                        reg.block = part.number
        for part in made:
            for op in part.ops:
                for reg in (*op.reads, *((op.tied,) if op.tied is not None else ())):
                    if reg.block != part.number and reg.wants is Wants.ANY:
                        reg.wants = Wants.FILE
        return made
