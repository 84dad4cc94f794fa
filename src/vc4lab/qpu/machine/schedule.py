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

from vc4lab.qpu.isa.accesses import Kind, accesses
from vc4lab.qpu.isa.builder import NOP, SMALL_IMMEDIATE_CODES, Half, alu, branch, load_immediate, with_signal
from vc4lab.qpu.isa.encoding import BRANCH_DELAY_SLOTS, SWITCH_DELAY_SLOTS
from vc4lab.qpu.isa.hazards import UNIFORM_POINTER
from vc4lab.qpu.isa.operations import AddOp, BranchCondition, Mux, Signal
from vc4lab.qpu.isa.registers import Read, Write
from vc4lab.qpu.machine.code import (
    STREAM_ADDRESS,
    Block,
    Branch,
    Const,
    Op,
    Reg,
    Streamed,
    StreamWord,
    TooComplex,
)
from vc4lab.qpu.machine.edges import connect
from vc4lab.qpu.machine.instruction import R0, Move, Plan, Slot
from vc4lab.qpu.machine.output import Scheduled
from vc4lab.qpu.machine.policies import Policy
from vc4lab.qpu.machine.progress import NEVER, Progress, reads_varying

SWITCH_DISTANCE = 3
"""Instructions between two thread switches at least."""
LOOP_WEIGHT = 8
"""How often a turn of a loop counts when programs are compared."""
ACCUMULATORS = Write.ACC0, Write.ACC1, Write.ACC2, Write.ACC3
PATIENCE = 64
"""Instructions without an operation after which a block counts as stuck."""


def schedule(
    blocks: Sequence[Block],
    inputs: Sequence[tuple[Reg, int]],
    *,
    half: bool,
    policy: Policy,
    base: Reg | None = None,
) -> Scheduled:
    """Schedule a program. inputs: registers that are there at the beginning, and where; half: only
    half of each file may be used; base: where the uniform stream begins, of a program that moves the
    pointer elsewhere. Raises TooComplex.
    """
    return _Scheduler(blocks, inputs, half, policy, base).run()


class _Scheduler:
    """A program on its way."""

    def __init__(
        self,
        blocks: Sequence[Block],
        inputs: Sequence[tuple[Reg, int]],
        half: bool,
        policy: Policy,
        base: Reg | None,
    ) -> None:
        self._blocks, self._base = blocks, base
        self._at = Progress(blocks, half, policy)
        self._out = Scheduled()
        self._uniforms_from = 0
        self._switched = -SWITCH_DISTANCE
        self._starts: dict[int, int] = {}
        self._branches: list[tuple[int, BranchCondition, int]] = []
        """Index of each branch among the instructions, its condition, and the block that it goes to."""
        self._pointer_at = -UNIFORM_POINTER
        """The last write of the uniform pointer by an operation."""
        self._ends_with_write = False
        """Whether a register is written just before the block at hand, an instruction later than the
        register knows: a branch came between."""
        for reg, place in inputs:
            if reg.uses:
                reg.place = place
                self._at.places.take(place)

    def run(self) -> Scheduled:
        connect(self._blocks)
        for block in self._blocks:
            self._block(block)
        if self._at.places.ends:
            # a branch back finds an address as the next word, also after the last reset
            self._out.uniforms.append(STREAM_ADDRESS)
        for at, condition, target in self._branches:
            self._out.words[at] = branch(condition, at, self._starts[target])
        return self._out

    # ---------------------------------------------------------------- blocks

    def _block(self, block: Block) -> None:
        self._at.places.loops = block.loops
        self._starts[block.number] = self._at.now
        self._out.weight = LOOP_WEIGHT ** len(block.loops)
        if block.number and not block.follows_switch:
            self._uniforms_from = NEVER
            if any(_reads_uniform(op) for op in block.ops):
                self._reset_uniforms()
            elif block.is_target or self._ends_with_write:
                self._emit(NOP, (), None)  # the last instruction before may have written a file
        self._ends_with_write = False
        self._at.begin(block)
        first, idle = self._at.now, 0
        while self._at.left:
            slot = self._fill()
            if slot.ops:
                idle = 0
                self._emit(slot.word(), tuple(slot.ops), slot.uniform or slot.takes)
            else:
                idle += 1
                if idle > PATIENCE:
                    line = next((op.line for op in block.ops if not op.is_done), 0)
                    raise TooComplex("TGSI-007", "the shader needs more registers than there are", line)
                self._emit(NOP, (), None)
        while self._at.now - self._pointer_at < UNIFORM_POINTER - 1:
            self._emit(NOP, (), None)
        if block.branch is not None:
            self._branch(block, block.branch, first)
        if block.repeats is not None:
            self._at.places.loops = block.loops[:-1]
        for reg in block.variables:
            self._at.places.use(reg)
        if block.switch is not None:
            self._switch(block.switch)
        self._at.places.end_block(block.number)

    def _reset_uniforms(self) -> None:
        """The stream goes on after its own address: a branch may have come here."""
        if self._base is not None:
            self._return_uniforms(self._base)
            return
        self._emit(load_immediate(4 * (len(self._out.uniforms) + 1), Write.ACC0), (), None)
        word = alu(Half(AddOp.ADD, Mux.R0, Mux.A, Write.UNIFORMS_ADDRESS), raddr_a=Read.UNIFORM)
        self._emit(word, (), STREAM_ADDRESS)
        self._uniforms_from = self._at.now - 1 + UNIFORM_POINTER

    def _return_uniforms(self, base: Reg) -> None:
        """The stream goes on, wherever the pointer is."""
        place = base.place
        assert place is not None
        assert place < R0
        self._emit(load_immediate(4 * len(self._out.uniforms), Write.ACC0), (), None)
        add = Half(AddOp.ADD, Mux.R0, Mux.A if place < 32 else Mux.B, Write.UNIFORMS_ADDRESS)
        a, b = (place, Read.NOP) if place < 32 else (Read.NOP, place - 32)
        self._emit(alu(add, raddr_a=a, raddr_b=b), (), None)
        self._uniforms_from = self._at.now - 1 + UNIFORM_POINTER

    def _branch(self, block: Block, branch: Branch, first: int) -> None:
        """To another block, as early as the last operations of this one allow, which began at `first`."""
        if branch.flags is not None:
            assert self._at.flags is branch.flags
            first = self._at.flags_at + 1
        at = max(first, self._at.now - BRANCH_DELAY_SLOTS)
        target = block.skips if block.repeats is None else block.repeats
        assert target is not None
        self._branches.append((at, branch.condition, target))
        self._out.words.insert(at, NOP)
        self._out.ops.insert(at, ())
        self._at.now += 1
        while self._at.now <= at + BRANCH_DELAY_SLOTS:
            self._emit(NOP, (), None)
        self._ends_with_write = bool(accesses(self._out.words[-1]).kinds & Kind.REGISTER_WRITE)
        self._at.forget_flags()

    def _switch(self, signal: Signal) -> None:
        """To the other thread: after the last request was sent, as early as instructions without a
        signal allow; two more are executed here.
        """
        early = self._at.now - 1 - SWITCH_DELAY_SLOTS
        at = max(early, self._at.sent, self._switched + SWITCH_DISTANCE)
        words = self._out.words
        while at < self._at.now and words[at] >> 60 != Signal.NONE:
            at += 1
        while self._at.now <= at + SWITCH_DELAY_SLOTS:
            self._emit(NOP, (), None)
        words[at] = with_signal(words[at], signal)
        self._switched = at
        self._at.forget_flags()
        if not self._at.places.are_accumulators_free:
            raise TooComplex("TGSI-007", "the shader needs accumulators across a thread switch")

    def _emit(self, word: int, ops: tuple[Op, ...], uniform: Streamed | None) -> None:
        self._out.emit(word, ops, uniform)
        if any(op.target == Write.UNIFORMS_ADDRESS and op.target_file == "a" for op in ops):
            self._pointer_at = self._at.now
        self._out.varyings += [op for op in ops if reads_varying(op)]
        self._at.now += 1

    # ---------------------------------------------------------------- instructions

    def _fill(self) -> Slot:
        """The next instruction."""
        slot = Slot()
        while True:
            if slot.add is not None and slot.mul is not None and slot.signal is not None:
                break
            if slot.alone is not None:
                break
            candidates = self._at.candidates()
            if any(self._try(op, slot) for op in candidates):
                continue
            if not self._at.evict(candidates):
                break
        return slot

    def _try(self, op: Op, slot: Slot) -> bool:
        """Put an operation into the instruction if it fits."""
        if op.loads is not None or op.semaphore is not None:
            return self._alone(op, slot)
        if op.peripheral and slot.peripheral:
            return False
        if op.sets is not None and self._at.flag_users:
            return False
        if op.sets is not None and self._at.flags is not None and slot.set_flags:
            return False
        if op.flags is not None and (op.flags is not self._at.flags or slot.set_flags):
            return False
        if op.signal is not None and (slot.signal is not None or slot.immediate >= 0 or slot.rotate):
            return False
        if op.request is not None:
            if not self._at.requests.may_go_on(op):
                return False
            if op.signal is None and op.request.parameters:
                op.takes = op.request.parameters[op.request.sent]
        if not self._at.places.unit_is_free(op):
            return False
        if op.takes is not None and (
            slot.uniform is not None or slot.takes is not None or self._at.now < self._uniforms_from
        ):
            return False
        if op.add is None and op.mul is None:
            slot.signal = op.signal
            slot.peripheral |= op.peripheral
            slot.ops.append(op)
            self._at.commit(op, None)
            return True
        for is_add in (True, False) if self._at.muls > self._at.adds else (False, True):
            if (op.add if is_add else op.mul) is None:
                continue
            if (slot.add if is_add else slot.mul) is not None:
                continue
            if is_add and slot.is_sealed:
                continue
            if not is_add and op.sets is not None and slot.add is not None:
                continue
            plan = self._plan(op, slot, is_add)
            if isinstance(plan, Move):
                self._at.copy(plan.reg, [op], plan.wants)
                return False
            if plan is not None and self._put(op, slot, plan):
                return True
        return False

    def _plan(self, op: Op, slot: Slot, is_add: bool) -> Plan | Move | None:
        """How the operation's operands are read, if need be with the stream read through the other file."""
        may_read = self._at.now >= self._uniforms_from
        plan = slot.plan(op, is_add, self._at.now, may_read)
        if not isinstance(plan, Plan) and slot.flip():
            other = slot.plan(op, is_add, self._at.now, may_read)
            if isinstance(other, Plan):
                return other
            slot.flip()
        return plan

    def _alone(self, op: Op, slot: Slot) -> bool:
        """An instruction of its own for a load immediate or a semaphore, if the one at hand is empty."""
        if slot.ops:
            return False
        place: int | None = None
        if isinstance(op.target, Reg):
            place = self._at.places.choose(op, op.target, slot, True)
            if place is None:
                return False
            slot.loads_to = ACCUMULATORS[place - R0] if place >= R0 else place % 32
            slot.swap = int(32 <= place < R0)
        elif op.target is not None:
            slot.loads_to, slot.swap = op.target, int(op.target_file == "b")
        slot.alone = op
        slot.ops.append(op)
        self._at.commit(op, place)
        return True

    # ---------------------------------------------------------------- results

    def _put(self, op: Op, slot: Slot, plan: Plan) -> bool:
        """Choose where the result goes; whether there is a place."""
        address, swap = int(Write.NOP), -1
        target = op.target
        place: int | None = None
        if isinstance(target, Reg):
            place = self._at.places.choose(op, target, slot, plan.is_add)
            if place is None:
                return False
            address = place if place < 32 else place - 32
            if place >= R0:
                address = ACCUMULATORS[place - R0]
            else:
                swap = int((place >= 32) == plan.is_add)
        elif target is not None:
            address = target
            if op.target_file:
                swap = int((op.target_file == "b") == plan.is_add)
                if slot.swap not in (-1, swap):
                    return False
        slot.take(op, plan, address, swap)
        self._at.commit(op, place)
        return True


def _reads_uniform(op: Op) -> bool:
    """Whether an operation needs the uniform stream, small immediates not counted."""
    takes = op.request is not None and op.signal is None and op.request.parameters
    return bool(takes) or any(
        isinstance(arg, StreamWord) or (isinstance(arg, Const) and arg.word not in SMALL_IMMEDIATE_CODES)
        for arg in op.args
    )
