"""Puts operations into instructions and registers into places, in one walk from the first
instruction to the last.

For each instruction, of the operations whose operands are there the most urgent that fit are
taken. A result goes into an accumulator if what reads it can follow soon, else into the file in
which the other operands of its readers are not. Where two operands are in one file, one is moved;
r4, r5 and the flags are given to one value after the other. Distances and pairs come from
`qpu.isa.hazards`.
"""

from __future__ import annotations

from collections.abc import Sequence

from vc4lab.driver.compiler.machine.code import (
    Block,
    Const,
    Flags,
    Op,
    Reg,
    TooComplex,
    Wants,
)
from vc4lab.driver.compiler.machine.copies import copy_of
from vc4lab.driver.compiler.machine.edges import connect
from vc4lab.driver.compiler.machine.instruction import R0, R4, Move, Plan, Slot
from vc4lab.driver.compiler.machine.output import BRANCHES, Scheduled
from vc4lab.driver.compiler.machine.places import Places
from vc4lab.driver.compiler.machine.policies import Policy
from vc4lab.driver.compiler.machine.requests import SINGLE, THREADED, Requests
from vc4lab.driver.compiler.result import Uniform, UniformKind
from vc4lab.qpu.isa.builder import (
    NOP,
    SMALL_IMMEDIATE_CODES,
    Half,
    alu,
    branch,
    load_immediate,
    with_signal,
)
from vc4lab.qpu.isa.encoding import BRANCH_DELAY_SLOTS, SWITCH_DELAY_SLOTS
from vc4lab.qpu.isa.hazards import REGISTER_FILE, SFU, UNIFORM_POINTER
from vc4lab.qpu.isa.operations import AddOp, Condition, Mux, Signal
from vc4lab.qpu.isa.registers import SFU_WRITES, Read, Write

R5 = R0 + 5
SWITCH_DISTANCE = 3
"""Instructions between two thread switches at least."""
NEVER = 1 << 30
LOOP_WEIGHT = 8
"""How often a turn of a loop counts when programs are compared."""
PATIENCE = 64
"""Instructions without an operation after which a block counts as stuck."""
WINDOWS = ((28, 1 << 30), (20, 160), (14, 64), (10, 24), (6, 8), (0, 2))
"""With more than so many free registers of both files, how many operations of the shader's own
order one may overtake: that order has few values at a time."""
IN_ORDER = 8
"""The same for programs that are scheduled in order."""


def schedule(
    blocks: Sequence[Block], inputs: Sequence[tuple[Reg, int]], *, half: bool, policy: Policy
) -> Scheduled:
    """Schedule a program. inputs: registers that are there at the beginning, and where; half: only
    half of each file may be used. Raises TooComplex.
    """
    return _Scheduler(blocks, inputs, half, policy).run()


class _Scheduler:
    """A program on its way."""

    def __init__(
        self,
        blocks: Sequence[Block],
        inputs: Sequence[tuple[Reg, int]],
        half: bool,
        policy: Policy,
    ) -> None:
        self._blocks = blocks
        self._policy = policy
        self._in_order = policy.in_order
        self._places = Places(blocks, half, policy)
        self._out = Scheduled()
        self._flags: Flags | None = None
        self._flag_users = 0
        self._flags_at = 0
        self._now = 0
        self._uniforms_from = 0
        self._requests = Requests(THREADED if half else SINGLE)
        self._sent = 0
        self._switched = -SWITCH_DISTANCE
        self._starts: dict[int, int] = {}
        self._ready: list[Op] = []
        self._left = 0
        for reg, place in inputs:
            if reg.uses:
                reg.place = place
                self._places.take(place)

    def run(self) -> Scheduled:
        connect(self._blocks)
        for block in self._blocks:
            self._block(block)
        if self._places.ends:
            # a branch back finds an address as the next word, also after the last reset
            self._out.uniforms.append(Uniform(UniformKind.UNIFORMS_ADDRESS))
        return self._out

    # ---------------------------------------------------------------- blocks

    def _block(self, block: Block) -> None:
        self._places.loops = block.loops
        self._current = block.number
        start = self._now
        self._starts[block.number] = start
        self._out.weight = LOOP_WEIGHT ** len(block.loops)
        if block.number and not block.follows_switch:
            self._uniforms_from = NEVER
            if any(_reads_uniform(op) for op in block.ops):
                self._reset_uniforms()
            elif block.begins_loop:
                self._emit(NOP, (), None)  # the loop's last instruction may have written a file
        first = block.ops[0].number if block.ops else 0
        for op in block.ops:
            late = self._policy.order * (op.number - first)
            op.priority = -op.number if self._in_order else op.height - late
        self._ready = [op for op in block.ops if not op.waiting]
        self._left = len(block.ops)
        self._adds = sum(1 for op in block.ops if op.mul is None)
        self._muls = sum(1 for op in block.ops if op.add is None)
        self._order, self._oldest = block.ops, 0
        idle = 0
        while self._left:
            slot = self._fill()
            if slot.ops:
                idle = 0
                self._emit(slot.word(), tuple(slot.ops), slot.uniform or slot.takes)
            else:
                idle += 1
                if idle > PATIENCE:
                    raise TooComplex("TGSI-007", "the shader needs more registers than there are")
                self._emit(NOP, (), None)
        if block.repeats is not None:
            self._branch(block)
            self._places.loops = block.loops[:-1]
            for reg in block.variables:
                self._places.use(reg)
        if block.switch is not None:
            self._switch(block.switch)
        self._places.end_block(block.number)

    def _reset_uniforms(self) -> None:
        """The stream goes on after its own address: a branch may have come here."""
        self._emit(load_immediate(4 * (len(self._out.uniforms) + 1), Write.ACC0), (), None)
        word = alu(
            Half(AddOp.ADD, Mux.R0, Mux.A, Write.UNIFORMS_ADDRESS),
            raddr_a=Read.UNIFORM,
        )
        self._emit(word, (), Uniform(UniformKind.UNIFORMS_ADDRESS))
        self._uniforms_from = self._now - 1 + UNIFORM_POINTER

    def _branch(self, block: Block) -> None:
        """Back to the beginning of the loop, as early as its last operations allow."""
        assert block.repeats is not None
        assert self._flags is block.repeat_flags
        condition = BRANCHES[Condition(block.repeat_condition)]
        at = max(self._flags_at + 1, self._now - BRANCH_DELAY_SLOTS)
        self._out.words.insert(at, branch(condition, at, self._starts[block.repeats]))
        self._out.ops.insert(at, ())
        self._now += 1
        while self._now <= at + BRANCH_DELAY_SLOTS:
            self._emit(NOP, (), None)
        self._flags, self._flag_users = None, 0

    def _switch(self, signal: Signal) -> None:
        """To the other thread: after the last request was sent, as early as instructions without a
        signal allow; two more are executed here.
        """
        at = max(self._now - 1 - SWITCH_DELAY_SLOTS, self._sent, self._switched + SWITCH_DISTANCE)
        words = self._out.words
        while at < self._now and words[at] >> 60 != Signal.NONE:
            at += 1
        while self._now <= at + SWITCH_DELAY_SLOTS:
            self._emit(NOP, (), None)
        words[at] = with_signal(words[at], signal)
        self._switched = at
        self._flags, self._flag_users = None, 0
        if not self._places.are_accumulators_free:
            raise TooComplex("TGSI-007", "the shader needs accumulators across a thread switch")

    def _emit(self, word: int, ops: tuple[Op, ...], uniform: Uniform | None) -> None:
        self._out.emit(word, ops, uniform)
        self._now += 1

    # ---------------------------------------------------------------- instructions

    def _fill(self) -> Slot:
        """The next instruction."""
        slot = Slot()
        while True:
            if slot.add is not None and slot.mul is not None and slot.signal is not None:
                break
            if slot.loads is not None:
                break
            limit = self._limit()
            candidates = [
                op
                for op in self._ready
                if op.first <= self._now and (op.number <= limit or self._frees_unit(op))
            ]
            candidates.sort(key=self._urgency, reverse=True)
            for op in candidates:
                if self._try(op, slot):
                    self._ready.remove(op)
                    break
            else:
                if self._evict(candidates):
                    continue
                break
        return slot

    def _urgency(self, op: Op) -> tuple[float, float]:
        """Large: soon."""
        if op.request is not None and op.request is self._requests.lock:
            return 4.0, op.priority
        if op.flags is not None:
            return 3.0, op.priority
        for arg in op.args:
            if isinstance(arg, Reg) and (arg is self._places.r4 or arg is self._places.r5):
                return 2.0, op.priority
        if op.signal is not None and self._is_waiting(op):
            return -1.0, op.priority
        return 0.0, op.priority

    def _is_waiting(self, op: Op) -> bool:
        return op.request is not None and op.soft > self._now

    def _frees_unit(self, op: Op) -> bool:
        """Whether it reads what others wait to write over: flags, r4, r5, a texture request."""
        if op.flags is not None or (op.request is not None and op.request is self._requests.lock):
            return True
        return any(
            arg is self._places.r4 or arg is self._places.r5
            for arg in op.args
            if isinstance(arg, Reg)
        )

    def _limit(self) -> int:
        """The last operation, in the shader's order, that may come now."""
        order, at = self._order, self._oldest
        while at < len(order) and order[at].is_done:
            at += 1
        self._oldest = at
        if at >= len(order):
            return NEVER
        if self._in_order:
            return order[at].number + IN_ORDER
        free = self._places.files[0].bit_count() + self._places.files[1].bit_count()
        window = next(window for least, window in WINDOWS if free >= least)
        return order[at].number + window

    def _try(self, op: Op, slot: Slot) -> bool:
        """Put an operation into the instruction if it fits."""
        if op.loads is not None:
            return self._load(op, slot)
        if op.peripheral and slot.peripheral:
            return False
        if op.sets is not None and self._flag_users:
            return False
        if op.sets is not None and self._flags is not None and slot.set_flags:
            return False
        if op.flags is not None and (op.flags is not self._flags or slot.set_flags):
            return False
        if op.signal is not None and (
            slot.signal is not None or slot.immediate >= 0 or slot.rotate
        ):
            return False
        if op.request is not None:
            if not self._requests.may_go_on(op):
                return False
            if op.signal is None and op.request.parameters:
                op.takes = op.request.parameters[op.request.sent]
        if not self._places.unit_is_free(op):
            return False
        if op.takes is not None and (
            slot.uniform is not None or slot.takes is not None or self._now < self._uniforms_from
        ):
            return False
        if op.add is None and op.mul is None:
            slot.signal = op.signal
            slot.peripheral |= op.peripheral
            slot.ops.append(op)
            self._commit(op, None, slot)
            return True
        for is_add in (True, False) if self._muls > self._adds else (False, True):
            if (op.add if is_add else op.mul) is None:
                continue
            if (slot.add if is_add else slot.mul) is not None:
                continue
            if is_add and slot.is_sealed:
                continue
            if not is_add and op.sets is not None and slot.add is not None:
                continue
            may_read = self._now >= self._uniforms_from
            plan = slot.plan(op, is_add, self._now, may_read)
            if isinstance(plan, Move):
                self._move(op, plan)
                return False
            if plan is not None and self._put(op, slot, plan):
                return True
        return False

    def _load(self, op: Op, slot: Slot) -> bool:
        """An instruction of its own for a load immediate, if the one at hand is empty."""
        if slot.ops:
            return False
        slot.loads = op
        slot.ops.append(op)
        self._commit(op, None, slot)
        return True

    # ---------------------------------------------------------------- results

    def _put(self, op: Op, slot: Slot, plan: Plan) -> bool:
        """Choose where the result goes; whether there is a place."""
        address, swap = int(Write.NOP), -1
        target = op.target
        place: int | None = None
        if isinstance(target, Reg):
            place = self._places.choose(op, target, slot, plan.is_add)
            if place is None:
                return False
            address = place if place < 32 else place - 32
            if place >= R0:
                address = (Write.ACC0, Write.ACC1, Write.ACC2, Write.ACC3)[place - R0]
            else:
                swap = int((place >= 32) == plan.is_add)
        elif target is not None:
            address = target
            if op.target_file:
                swap = int((op.target_file == "b") == plan.is_add)
                if slot.swap not in (-1, swap):
                    return False
        slot.take(op, plan, address, swap)
        self._commit(op, place, slot)
        return True

    def _commit(self, op: Op, place: int | None, slot: Slot) -> None:
        """The operation is in the instruction at hand."""
        now = self._now
        op.is_done = True
        self._left -= 1
        self._adds -= op.mul is None
        self._muls -= op.add is None
        for arg in op.args:
            if isinstance(arg, Reg):
                self._places.use(arg)
        if op.tied is not None:
            old = op.tied
            old.uses -= 1
            if not old.is_home:
                old.place = None
        if op.flags is not None:
            self._flag_users -= 1
        if op.sets is not None:
            self._flags = op.sets
            self._flags_at = now
            self._flag_users = len(op.sets.users)
        target = op.target
        if isinstance(target, Reg):
            if target.wants is Wants.R4:
                target.place, target.ready = R4, now + 1
                self._places.r4 = target
            else:
                assert place is not None
                if op.tied is None:
                    self._places.take(place)
                target.place = place
                target.ready = now + (1 if place >= R0 else REGISTER_FILE)
        elif target in SFU_WRITES:
            assert op.second is not None
            self._places.r4 = op.second
            op.second.place, op.second.ready = R4, now + SFU
        if op.second is not None and op.second.wants is Wants.R5:
            op.second.place, op.second.ready = R5, now + 1
            self._places.r5 = op.second
            self._out.varyings.append(op)
        if op.request is not None:
            self._requests.put(op, now)
            if op.signal is None:
                self._sent = now
        for after, distance in op.next:
            after.waiting -= 1
            after.first = max(after.first, now + distance)
            if not after.waiting:
                self._ready.append(after)

    # ---------------------------------------------------------------- moves

    def _move(self, op: Op, move: Move) -> None:
        """An operand gets a copy elsewhere, which the operation reads instead."""
        self._copy(move.reg, [op], move.wants)

    def _copy(self, reg: Reg, readers: list[Op], wants: str) -> None:
        move = copy_of(reg, readers, wants, self._current)
        self._ready = [op for op in self._ready if op not in readers] + [move]
        self._left += 1

    def _evict(self, candidates: list[Op]) -> bool:
        """Move r4 or r5 away if an operation waits for it, and what reads it waits for others."""
        for reg, wanted in ((self._places.r4, Wants.R4), (self._places.r5, Wants.R5)):
            if reg is None or reg.place is None or not reg.uses or reg.ready > self._now:
                continue
            if any(reg in op.args for op in candidates):
                continue
            if any(self._writes(op, wanted) for op in candidates):
                waiting = [op for op in dict.fromkeys(reg.readers) if reg in op.args]
                waiting = [op for op in waiting if op.waiting]
                if waiting:
                    self._copy(
                        reg, waiting, "a" if any(self._unpacked(op) for op in waiting) else "file"
                    )
                    return True
        return False

    @staticmethod
    def _unpacked(op: Op) -> bool:
        return any(op.unpacks)

    @staticmethod
    def _writes(op: Op, wanted: Wants) -> bool:
        if wanted is Wants.R5:
            return op.second is not None and op.second.wants is Wants.R5
        target = op.target
        return target in SFU_WRITES or (isinstance(target, Reg) and target.wants is Wants.R4)


def _reads_uniform(op: Op) -> bool:
    """Whether an operation needs the uniform stream, small immediates not counted."""
    takes = op.request is not None and op.signal is None and op.request.parameters
    return bool(takes) or any(
        isinstance(arg, Uniform)
        or (isinstance(arg, Const) and arg.word not in SMALL_IMMEDIATE_CODES)
        for arg in op.args
    )
