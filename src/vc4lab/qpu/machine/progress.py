"""How far a program is scheduled: what is done, what may come next, where registers lie."""

from __future__ import annotations

from collections.abc import Sequence

from vc4lab.qpu.isa.hazards import REGISTER_FILE, SFU
from vc4lab.qpu.isa.operations import AddOp, MulOp, Signal
from vc4lab.qpu.isa.registers import SFU_WRITES
from vc4lab.qpu.machine.code import Block, Flags, Op, Reg, StreamWord, Wants
from vc4lab.qpu.machine.instruction import R0, R4, Slot
from vc4lab.qpu.machine.policies import Policy
from vc4lab.qpu.machine.threads import SINGLE, THREADED, Requests

TMU_LOADS = (Signal.LOAD_TMU0, Signal.LOAD_TMU1)
"""Signals that write r4 even if nothing reads it."""


class Places:
    """The places of a program's registers while it is scheduled."""

    def __init__(self, blocks: Sequence[Block], half: bool, policy: Policy) -> None:
        self._blocks = blocks
        self._policy = policy
        count = 16 if half else 32
        self.files = [(1 << count) - 1, (1 << count) - 1]
        """Bits of the free registers of A and B."""
        self._accumulators = 15
        self.r4: Reg | None = None
        self.r5: Reg | None = None
        self.ends = {one.repeats: one.number for one in blocks if one.repeats is not None}
        """The last block of each loop, by its first."""
        self.loops: tuple[int, ...] = ()
        """The loops around the instruction at hand."""
        self._deferred: dict[int, list[Reg]] = {}

    def end_block(self, number: int) -> None:
        """Registers that live to the end of a block leave their places."""
        for reg in self._deferred.pop(number, []):
            self._free(reg)

    @property
    def are_accumulators_free(self) -> bool:
        """Whether nothing is in r0 to r3."""
        return self._accumulators == 15

    def take(self, place: int) -> None:
        if place >= R0:
            self._accumulators &= ~(1 << place - R0)
        else:
            self.files[place // 32] &= ~(1 << place % 32)

    def _accumulator(self) -> int | None:
        bits = self._accumulators
        return R0 + (bits & -bits).bit_length() - 1 if bits else None

    def _files_for(self, reg: Reg) -> tuple[int, ...]:
        """The files in which a register may be, the better one first."""
        if reg.wants is Wants.FILE_A:
            return (0,)
        if reg.avoid >= 0:
            return (32 - reg.avoid,)
        votes = 0
        for op in reg.readers:
            for arg in op.args:
                if arg is reg:
                    continue
                if isinstance(arg, Reg):
                    if arg.place is not None and arg.place < R0:
                        votes += 1 if arg.place < 32 else -1
                    elif arg.wants is Wants.FILE_A:
                        votes += 1
                elif not isinstance(arg, StreamWord):
                    votes -= 1
        if not votes:
            votes = self.files[1].bit_count() - self.files[0].bit_count()
        return (32, 0) if votes > 0 else (0, 32)

    def use(self, reg: Reg) -> None:
        """An operand is read."""
        reg.uses -= 1
        if reg.uses or reg.is_home:
            return
        block = self._release_block(reg)
        if block is None:
            self._free(reg)
        else:
            self._deferred.setdefault(block, []).append(reg)

    def _release_block(self, reg: Reg) -> int | None:
        """After which block a register's place is free when it is read last here; None: now."""
        around = self._blocks[reg.block].loops
        for loop in self.loops:
            if loop not in around:
                return self.ends[loop]
        return None

    def _free(self, reg: Reg) -> None:
        place = reg.place
        if place is None:
            return
        reg.place = None
        if place < R0:
            self.files[place // 32] |= 1 << place % 32
        elif place < R4:
            self._accumulators |= 1 << place - R0
        elif reg is self.r4:
            self.r4 = None
        elif reg is self.r5:
            self.r5 = None

    def _dies(self, reg: Reg, op: Op) -> bool:
        """Whether a register's place is free as soon as the operation has read it."""
        if reg.is_home or reg.uses != sum(1 for one in op.args if one is reg):
            return False
        return self._release_block(reg) is None

    def choose(self, op: Op, reg: Reg, slot: Slot, is_add: bool) -> int | None:
        """A place for a result."""
        if op.tied is not None:
            place = op.tied.place
            assert place is not None
            if place >= R4 or not self._may_write(place, slot, is_add):
                return None
            return place
        if reg.wants is Wants.ACCUMULATOR:
            return self._accumulator()
        if reg.wants is Wants.ANY and self._policy.is_near(reg):
            place = self._accumulator()
            if place is not None:
                return place
        freed = [one.place for one in set(op.reads) if self._dies(one, op)]
        for file in self._files_for(reg):
            if not self._may_write(file, slot, is_add):
                continue
            bits = self.files[file // 32]
            for place in freed:
                if place is not None and file <= place < file + 32:
                    bits |= 1 << place - file
            if bits:
                return file + (bits & -bits).bit_length() - 1
        return self._accumulator() if reg.wants is Wants.ANY else None

    @staticmethod
    def _may_write(place: int, slot: Slot, is_add: bool) -> bool:
        if place >= R0:
            return True
        return slot.swap in (-1, int((place >= 32) == is_add))

    def unit_is_free(self, op: Op) -> bool:
        """Whether r4 and r5 may be written by what the operation starts."""
        if op.second is not None and self._is_needed(self.r5, op):
            return False
        writes_r4 = op.target in SFU_WRITES or op.signal in TMU_LOADS
        writes_r4 |= isinstance(op.target, Reg) and op.target.wants is Wants.R4
        return not (writes_r4 and self._is_needed(self.r4, op))

    @staticmethod
    def _is_needed(reg: Reg | None, op: Op) -> bool:
        """Whether a value is read after the operation, too."""
        if reg is None or reg.place is None:
            return False
        return reg.uses > sum(1 for one in op.args if one is reg)


def copy_of(reg: Reg, readers: list[Op], wants: str, block: int, unpack: int = 0) -> Op:
    """Readers of a register read a copy of it instead; the move that makes it, in a block.

    wants: "a", "file", "accumulator", "not a", "not b", or nothing. unpack: what the move unpacks in
    place of the readers.
    """
    copy = Reg()
    copy.block = block
    if wants == "a":
        copy.wants = Wants.FILE_A
    elif wants == "accumulator":
        copy.wants = Wants.ACCUMULATOR
    elif wants == "file":
        copy.wants = Wants.FILE
    elif wants:
        copy.avoid = 0 if wants == "not a" else 32
    move = Op("mov", AddOp.OR, MulOp.V8MIN, [reg])
    move.target = copy
    copy.op = move
    move.number = min(one.number for one in readers)
    move.priority = max(one.priority for one in readers) + 0.5
    if unpack:
        move.unpacks, move.is_unpack = (unpack,), True
    for one in readers:
        if unpack:
            pairs = zip(one.args, one.unpacks, strict=True)
            one.unpacks = tuple(0 if arg is reg else code for arg, code in pairs)
        one.args = [copy if arg is reg else arg for arg in one.args]
        count = sum(1 for arg in one.args if arg is copy)
        copy.uses += count
        reg.uses -= count
        copy.readers.append(one)
        reg.readers = [other for other in reg.readers if other is not one]
        one.waiting += 1
        move.next.append((one, 1))
    reg.uses += 1
    reg.readers.append(move)
    return move


R5 = R0 + 5
NEVER = 1 << 30
WINDOWS = ((28, 1 << 30), (20, 160), (14, 64), (10, 24), (6, 8), (0, 2))
"""With more than so many free registers of both files, how many operations of the shader's own
order one may overtake: that order has few values at a time."""
IN_ORDER = 8
"""This limit for programs that are scheduled in order."""


class Progress:
    """The state of a program between two instructions."""

    def __init__(self, blocks: Sequence[Block], half: bool, policy: Policy) -> None:
        self.places = Places(blocks, half, policy)
        self.requests = Requests(THREADED if half else SINGLE)
        self.now = 0
        """The number of the instruction at hand."""
        self.flags: Flags | None = None
        self.flag_users = 0
        """Operations that have yet to read the flags."""
        self.flags_at = 0
        """The instruction that set them."""
        self.sent = 0
        """The instruction of the last word of a texture request."""
        self.left = 0
        """Operations of the block that are not done."""
        self.adds = self.muls = 0
        """Those of them that only one of the two ALUs can do."""
        self._policy = policy
        self._in_order = policy.in_order
        self._ready: list[Op] = []
        self._block = 0
        self._order: Sequence[Op] = ()
        self._oldest = 0

    def begin(self, block: Block) -> None:
        """The operations of a block are those to do."""
        first = block.ops[0].number if block.ops else 0
        for op in block.ops:
            late = self._policy.order * (op.number - first)
            op.priority = -op.number if self._in_order else op.height - late
        self._ready = [op for op in block.ops if not op.waiting]
        self.left = len(block.ops)
        self.adds = sum(1 for op in block.ops if op.mul is None)
        self.muls = sum(1 for op in block.ops if op.add is None)
        self._block, self._order, self._oldest = block.number, block.ops, 0

    def forget_flags(self) -> None:
        """Mark the flags as lost for what follows."""
        self.flags, self.flag_users = None, 0

    # ---------------------------------------------------------------- what comes next

    def candidates(self) -> list[Op]:
        """The operations whose operands are there, the most urgent first."""
        limit = self._limit()
        found = [
            op for op in self._ready if op.first <= self.now and (op.number <= limit or self._frees_unit(op))
        ]
        found.sort(key=self._urgency, reverse=True)
        return found

    def _urgency(self, op: Op) -> tuple[float, float]:
        """Large: soon."""
        if op.request is not None and op.request is self.requests.lock:
            return 4.0, op.priority
        if op.flags is not None:
            return 3.0, op.priority
        for arg in op.args:
            if isinstance(arg, Reg) and (arg is self.places.r4 or arg is self.places.r5):
                return 2.0, op.priority
        if op.signal is not None and self._is_waiting(op):
            return -1.0, op.priority
        return 0.0, op.priority

    def _is_waiting(self, op: Op) -> bool:
        return op.request is not None and op.soft > self.now

    def _frees_unit(self, op: Op) -> bool:
        """Whether it reads what others wait to write over: flags, r4, r5, a texture request."""
        if op.flags is not None or (op.request is not None and op.request is self.requests.lock):
            return True
        return any(arg is self.places.r4 or arg is self.places.r5 for arg in op.args if isinstance(arg, Reg))

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
        free = self.places.files[0].bit_count() + self.places.files[1].bit_count()
        window = next(window for least, window in WINDOWS if free >= least)
        return order[at].number + window

    # ---------------------------------------------------------------- what is done

    def commit(self, op: Op, place: int | None) -> None:
        """The operation is in the instruction at hand."""
        now = self.now
        op.is_done = True
        self._ready.remove(op)
        self.left -= 1
        self.adds -= op.mul is None
        self.muls -= op.add is None
        for arg in op.args:
            if isinstance(arg, Reg):
                self.places.use(arg)
        if op.tied is not None:
            old = op.tied
            old.uses -= 1
            if not old.is_home:
                old.place = None
        if op.flags is not None:
            self.flag_users -= 1
        if op.sets is not None:
            self.flags = op.sets
            self.flags_at = now
            self.flag_users = len(op.sets.users)
        target = op.target
        if isinstance(target, Reg):
            if target.wants is Wants.R4:
                target.place, target.ready = R4, now + 1
                self.places.r4 = target
            else:
                assert place is not None
                if op.tied is None:
                    self.places.take(place)
                target.place = place
                target.ready = now + (1 if place >= R0 else REGISTER_FILE)
        elif target in SFU_WRITES:
            assert op.second is not None
            self.places.r4 = op.second
            op.second.place, op.second.ready = R4, now + SFU
        if op.second is not None and reads_varying(op):
            op.second.place, op.second.ready = R5, now + 1
            self.places.r5 = op.second
        if op.request is not None:
            self.requests.put(op, now)
            if op.signal is None:
                self.sent = now
        for after, distance in op.next:
            after.waiting -= 1
            after.first = max(after.first, now + distance)
            if not after.waiting:
                self._ready.append(after)

    def copy(self, reg: Reg, readers: list[Op], wants: str, unpack: int = 0) -> None:
        """Copy a register to another place, where `readers` then read it."""
        move = copy_of(reg, readers, wants, self._block, unpack)
        self._ready = [op for op in self._ready if op not in readers] + [move]
        self.left += 1
        assert isinstance(move.target, Reg)
        for one in readers if wants == "a" else ():
            code = self._fixed_unpack(one, move.target)
            if code:
                second = copy_of(move.target, [one], "file", self._block, code)
                second.waiting += 1
                move.next.append((second, 1))
                self.left += 1

    def evict(self, candidates: list[Op]) -> bool:
        """Move r4 or r5 away if an operation waits for it, and what reads it waits for others."""
        for reg, wanted in ((self.places.r4, Wants.R4), (self.places.r5, Wants.R5)):
            if reg is None or reg.place is None or not reg.uses or reg.ready > self.now:
                continue
            if any(reg in op.args for op in candidates):
                continue
            if any(self._writes(op, wanted) for op in candidates):
                waiting = [op for op in dict.fromkeys(reg.readers) if reg in op.args]
                waiting = [op for op in waiting if op.waiting]
                fixed = [op for op in waiting if self._fixed_unpack(op, reg)]
                if fixed:
                    code = self._fixed_unpack(fixed[0], reg)
                    same = [op for op in fixed if self._fixed_unpack(op, reg) == code]
                    self.copy(reg, same, "file", code)
                    return True
                if waiting:
                    self.copy(reg, waiting, "a" if any(self._unpacked(op) for op in waiting) else "file")
                    return True
        return False

    @staticmethod
    def _fixed_unpack(op: Op, reg: Reg) -> int:
        """Return the code by which an operation unpacks a register, if it also packs as the mul ALU does:
        an instruction then unpacks nothing of file A. 0: none.
        """
        if not (op.pack and op.pm):
            return 0
        return next((code for arg, code in zip(op.args, op.unpacks, strict=True) if arg is reg and code), 0)

    @staticmethod
    def _unpacked(op: Op) -> bool:
        return any(op.unpacks)

    @staticmethod
    def _writes(op: Op, wanted: Wants) -> bool:
        if wanted is Wants.R5:
            return reads_varying(op)
        target = op.target
        return target in SFU_WRITES or (isinstance(target, Reg) and target.wants is Wants.R4)


def reads_varying(op: Op) -> bool:
    """Whether an operation fetches a varying, whose coefficient comes in r5."""
    return op.second is not None and op.second.wants is Wants.R5
