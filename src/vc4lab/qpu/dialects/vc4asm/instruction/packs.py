"""Packs and unpacks of an instruction while it is written: the pm bit, and what they reach."""

from __future__ import annotations

from vc4lab.qpu.dialects.vc4asm.instruction.fields import ADD, MUL, Fields, Role
from vc4lab.qpu.dialects.vc4asm.values import Packing
from vc4lab.qpu.isa.operations import AddOp, Mux, Pack, Signal
from vc4lab.qpu.isa.registers import REGFILE_SIZE


class Packs(Fields):
    """The fields with their one pack and one unpack."""

    def packing(self, packing: Packing) -> None:
        """A pack or unpack, as the suffix or the place says."""
        if not (packing.pack_code or packing.kind):
            if self.role & Role.SOURCES and self.is_alu:
                self.no_unpack()
            return
        request = packing.request
        if request == "unpack" or (not request and self.role & Role.SOURCES and self.is_alu):
            if self.role & Role.TARGET:
                raise self.fail("a destination cannot be unpacked")
            self.set_unpack(packing)
        elif request == "pack" or self.role & Role.TARGET:
            if self.role & Role.SOURCES:
                raise self.fail("a source cannot be packed")
            self.set_pack(packing)

    def fix_pm(self, pm: bool) -> None:
        if not self.fixed_pm:
            self.pm, self.fixed_pm = pm, True
        elif self.pm != pm:
            raise self.fail(
                "pack and unpack disagree: regfile A packs and unpacks need pm=0, "
                "mul packs and r4 unpacks pm=1"
            )

    def set_pack(self, packing: Packing) -> None:
        if self.signal == Signal.BRANCH:
            raise self.fail("a branch packs nothing")
        if self.pack.pack_code:
            raise self.fail("an instruction has only one pack")
        code = packing.pack_code
        if packing.kind == "i" or code == Pack.SAT32 or code & 7 < 3:
            self.fix_pm(False)
        elif packing.kind == "f":
            if self.alu != MUL and not self.swap_alus():
                raise self.fail("this pack needs the mul ALU")
            self.fix_pm(True)
        elif self.role & Role.TARGET:
            self._pack_of_target()
        if self.role & Role.TARGET and not self.pm:
            if not self.writes_file_a(self.alu):
                raise self.fail("this pack works only into ra0..ra31")
            if packing.kind and packing.code in (1, 2):
                if self.float_result(self.alu) != (packing.kind == "f"):
                    kind = "an integer" if packing.kind == "i" else "a floating-point"
                    raise self.fail(f"this pack needs {kind} operation")
        self.pack = packing

    def _pack_of_target(self) -> None:
        """Which of both packs is meant where the suffix does not say."""
        if self.alu == MUL:
            if not self.unpack.code:
                self.fix_pm(not self.writes_file_a(MUL))
            return
        elsewhere = not self.writes_file_a(ADD)
        if not elsewhere and self.unpack.code:
            return
        if elsewhere and not self.swap_alus():
            raise self.fail("the add ALU can only pack into ra0..ra31")
        self.fix_pm(elsewhere)

    def unpackable(self, mux: int, packing: Packing) -> int | None:
        """The pm with which a source is unpacked; None: never; -1: its kind of number is wrong."""
        if mux == Mux.R4:
            return 1
        if mux != Mux.A or self.raddr_a >= REGFILE_SIZE:
            return None
        if packing.kind and packing.code != 3:
            is_float = self.float_input(ADD) or self.float_input(MUL)
            if is_float != (packing.kind != "i"):
                return -1
        return 0

    def no_unpack(self) -> None:
        """An operand without unpack: none of another operand may apply to it."""
        if not self.unpack.code:
            return
        here = self.unpackable(self.current_mux(), self.unpack)
        if here == int(self.pm) and self.unpack_alus - {self.alu}:
            raise self.fail("the unpack of the other operation would apply here too")
        if here == int(self.pm) and self.unpack_roles & Role.FIRST and self.role & Role.SECOND:
            self.notes.append(("the unpack of the first operand applies here too", self.column))

    def set_unpack(self, packing: Packing) -> None:
        if not self.is_alu:
            raise self.fail("branches and load immediates unpack nothing")
        if self.unpack_roles & (Role.OPERATION | (self.role & Role.SOURCES)):
            raise self.fail("an operand has only one unpack")
        whole = packing.code in (0, 3)
        pm = 0 if packing.kind == "i" and not whole else None
        if self.role & Role.SOURCES:
            found = self.unpackable(self.current_mux(), packing)
            if found is None:
                raise self.fail("only r4 and ra0..ra31 can be unpacked")
            if found < 0:
                self._make_float_move(packing)
                found = 0
            elif pm is not None and found != pm:
                raise self.fail("r4 is unpacked as a floating-point number only")
            pm = found
        if pm is not None:
            self.fix_pm(bool(pm))
        if self.unpack.code and self.unpack.code != packing.code:
            raise self.fail("an instruction has only one unpack mode")
        self.unpack = packing
        self.unpack_alus.add(self.alu)
        self.unpack_roles |= self.role

    def _make_float_move(self, packing: Packing) -> None:
        if packing.kind == "i":
            raise self.fail("a floating-point operation unpacks floating-point numbers")
        moves = self.role & Role.SOURCES == Role.SOURCES
        if moves and (self.alu == ADD or self.swap_alus()) and self.op[ADD] == AddOp.OR:
            self.op[ADD] = int(AddOp.FMIN)
        else:
            raise self.fail("an integer operation unpacks integers")

    def finish_operation(self) -> None:
        """The checks when all operands of an operation are there."""
        if not self.is_alu or not self.unpack.code:
            return
        if self.unpack_roles & Role.OPERATION:
            self._unpack_by_operation()
        other = 1 - self.alu
        if not self.used(other):
            return
        if self.unpack_alus == {self.alu}:
            sources = self.mux[other] if other == MUL or not self.is_unary() else self.mux[ADD][:1]
            if any(self.unpackable(mux, self.unpack) == int(self.pm) for mux in sources):
                raise self.fail("the unpack would apply to the other operation too")
        differs = self.float_input(self.alu) and not self.float_input(other)
        if other in self.unpack_alus and not self.pm and differs and self.unpack.code != 3:
            raise self.fail("an integer and a floating-point operation cannot share this unpack")

    def _unpack_by_operation(self) -> None:
        """`.unpack8a` after an operation: the operand that can be unpacked is meant."""
        wanted = 0 if self.unpack.kind == "i" and self.unpack.code not in (0, 3) else None
        sources = self.mux[self.alu]
        if self.alu == ADD and self.is_unary():
            sources = sources[:1]
        found = set()
        for mux in sources:
            pm = self.unpackable(mux, self.unpack)
            if pm is not None and pm >= 0 and wanted in (None, pm):
                found.add(pm)
        if len(found) > 1:
            raise self.fail("both r4 and a register of file A could be unpacked")
        if found:
            self.fix_pm(bool(found.pop()))
