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

from vc4lab.qpu.isa.builder import NOP, SMALL_IMMEDIATE_CODES, Half, alu, branch, load_immediate, with_signal
from vc4lab.qpu.isa.encoding import BRANCH_DELAY_SLOTS, SWITCH_DELAY_SLOTS
from vc4lab.qpu.isa.hazards import UNIFORM_POINTER
from vc4lab.qpu.isa.operations import AddOp, Condition, Mux, Signal
from vc4lab.qpu.isa.registers import Read, Write
from vc4lab.qpu.machine.code import STREAM_ADDRESS, Block, Const, Op, Reg, Streamed, StreamWord, TooComplex
from vc4lab.qpu.machine.edges import connect
from vc4lab.qpu.machine.instruction import R0, Move, Plan, Slot
from vc4lab.qpu.machine.output import BRANCHES, Scheduled
from vc4lab.qpu.machine.policies import Policy
from vc4lab.qpu.machine.progress import NEVER, Progress, reads_varying

SWITCH_DISTANCE = 3
"""Instructions between two thread switches at least."""
LOOP_WEIGHT = 8
"""How often a turn of a loop counts when programs are compared."""
PATIENCE = 64
"""Instructions without an operation after which a block counts as stuck."""


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
        self, blocks: Sequence[Block], inputs: Sequence[tuple[Reg, int]], half: bool, policy: Policy
    ) -> None:
        self._blocks = blocks
        self._at = Progress(blocks, half, policy)
        self._out = Scheduled()
        self._uniforms_from = 0
        self._switched = -SWITCH_DISTANCE
        self._starts: dict[int, int] = {}
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
            elif block.begins_loop:
                self._emit(NOP, (), None)  # the loop's last instruction may have written a file
        self._at.begin(block)
        idle = 0
        while self._at.left:
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
            self._at.places.loops = block.loops[:-1]
            for reg in block.variables:
                self._at.places.use(reg)
        if block.switch is not None:
            self._switch(block.switch)
        self._at.places.end_block(block.number)

    def _reset_uniforms(self) -> None:
        """The stream goes on after its own address: a branch may have come here."""
        self._emit(load_immediate(4 * (len(self._out.uniforms) + 1), Write.ACC0), (), None)
        word = alu(Half(AddOp.ADD, Mux.R0, Mux.A, Write.UNIFORMS_ADDRESS), raddr_a=Read.UNIFORM)
        self._emit(word, (), STREAM_ADDRESS)
        self._uniforms_from = self._at.now - 1 + UNIFORM_POINTER

    def _branch(self, block: Block) -> None:
        """Back to the beginning of the loop, as early as its last operations allow."""
        assert block.repeats is not None
        assert self._at.flags is block.repeat_flags
        condition = BRANCHES[Condition(block.repeat_condition)]
        at = max(self._at.flags_at + 1, self._at.now - BRANCH_DELAY_SLOTS)
        self._out.words.insert(at, branch(condition, at, self._starts[block.repeats]))
        self._out.ops.insert(at, ())
        self._at.now += 1
        while self._at.now <= at + BRANCH_DELAY_SLOTS:
            self._emit(NOP, (), None)
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
        self._out.varyings += [op for op in ops if reads_varying(op)]
        self._at.now += 1

    # ---------------------------------------------------------------- instructions

    def _fill(self) -> Slot:
        """The next instruction."""
        slot = Slot()
        while True:
            if slot.add is not None and slot.mul is not None and slot.signal is not None:
                break
            if slot.loads is not None:
                break
            candidates = self._at.candidates()
            if any(self._try(op, slot) for op in candidates):
                continue
            if not self._at.evict(candidates):
                break
        return slot

    def _try(self, op: Op, slot: Slot) -> bool:
        """Put an operation into the instruction if it fits."""
        if op.loads is not None:
            return self._load(op, slot)
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
            may_read = self._at.now >= self._uniforms_from
            plan = slot.plan(op, is_add, self._at.now, may_read)
            if isinstance(plan, Move):
                self._at.copy(plan.reg, [op], plan.wants)
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
        self._at.commit(op, None)
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
        self._at.commit(op, place)
        return True


def _reads_uniform(op: Op) -> bool:
    """Whether an operation needs the uniform stream, small immediates not counted."""
    takes = op.request is not None and op.signal is None and op.request.parameters
    return bool(takes) or any(
        isinstance(arg, StreamWord) or (isinstance(arg, Const) and arg.word not in SMALL_IMMEDIATE_CODES)
        for arg in op.args
    )
