"""Where registers lie: the free places of both files and the accumulators, and until when a place
is taken.
"""

from __future__ import annotations

from collections.abc import Sequence

from vc4lab.driver.compiler.interface import Uniform
from vc4lab.driver.compiler.machine.code import Block, Op, Reg, Wants
from vc4lab.driver.compiler.machine.instruction import R0, R4, Slot
from vc4lab.driver.compiler.machine.policies import Policy
from vc4lab.qpu.isa.registers import SFU_WRITES


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
                elif not isinstance(arg, Uniform):
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
        writes_r4 = op.target in SFU_WRITES or (isinstance(op.target, Reg) and op.target.wants is Wants.R4)
        return not (writes_r4 and self._is_needed(self.r4, op))

    @staticmethod
    def _is_needed(reg: Reg | None, op: Op) -> bool:
        """Whether a value is read after the operation, too."""
        if reg is None or reg.place is None:
            return False
        return reg.uses > sum(1 for one in op.args if one is reg)
