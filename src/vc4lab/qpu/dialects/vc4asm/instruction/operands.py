"""Destinations and sources of an instruction while it is written: ports, immediates, rotations."""

from __future__ import annotations

from vc4lab.qpu.dialects.vc4asm.instruction.constants import ROTATIONS, constant_of, ways
from vc4lab.qpu.dialects.vc4asm.instruction.fields import ADD, MUL, SHARED_READS, SHARED_WRITES, UNUSED, Role
from vc4lab.qpu.dialects.vc4asm.instruction.packs import Packs
from vc4lab.qpu.dialects.vc4asm.values import Access, Lanes, Register, Value, kind_of
from vc4lab.qpu.isa.operations import SMALL_IMMEDIATES, AddOp, Mux, Pack, Signal
from vc4lab.qpu.isa.registers import REGFILE_SIZE, Write
from vc4lab.qpu.text.expressions import ExpressionError, to_word


class Operands(Packs):
    """The fields with what the operations read and write."""

    # Destinations -------------------------------------------------------------------------------

    def target(self, value: Value) -> None:
        """The destination of the operation."""
        if not isinstance(value, Register):
            raise self.fail(f"a destination is a register, not {kind_of(value)}")
        if not value.access & Access.WRITE:
            raise self.fail(_not_writable(value))
        mul = self.alu == MUL
        if value.access & Access.AB != Access.AB:
            frozen = self.waddr[1 - self.alu] not in SHARED_WRITES
            if value.access & Access.A and (not frozen or self.ws == mul):
                self.ws = mul
            elif value.access & Access.B and (not frozen or self.ws != mul):
                self.ws = not mul
            else:
                raise self.fail("both results go to the same register file: one A, one B")
        self.waddr[self.alu] = value.number
        self._check_early_pack(mul)
        self.rotate(value.rotate)
        self.packing(value.packing)

    def _check_early_pack(self, mul: bool) -> None:
        """A pack that stood after the operation's name, now that its destination is known."""
        pack = self.pack
        if not (pack.pack_code or pack.kind) or self.signal == Signal.BRANCH:
            return
        if self.pm != mul or (not mul and self.ws):
            return
        if not mul:
            if self.waddr[ADD] >= REGFILE_SIZE:
                raise self.fail("the add ALU can only pack into ra0..ra31")
        elif self.ws and self.waddr[ADD] < REGFILE_SIZE and not self.fixed_pm:
            self.pm = False
        elif pack.pack_code < Pack.SAT8_ALL and not pack.kind:
            raise self.fail("the mul ALU packs only bytes, with saturation")

    # Sources ------------------------------------------------------------------------------------

    def mux_of(self, register: Register) -> int:
        """The mux that a register comes through, its read port taken."""
        if register.is_semaphore:
            raise self.fail("a semaphore is no operand: use mov, sacq or srel")
        if not register.access & Access.READ:
            number = register.number ^ 32
            if number <= 5:
                return number
            raise self.fail("this register can only be written")
        free_a = self.raddr_a == register.number or not self.reads_a()
        free_b = self.raddr_b == register.number or not self.reads_b()
        both = register.access & Access.AB == Access.AB
        if register.access & Access.A and free_a:
            return self._take_a(register.number, both)
        if register.access & Access.B:
            if self.signal >= Signal.SMALL_IMMEDIATE:
                raise self.fail("a small immediate or rotation takes the place of the file B read")
            if free_b:
                return self._take_b(register.number, both)
        if not both and not self.fixed_files:
            if register.access & Access.A and free_b and self.swap_files():
                return self._take_a(register.number, both)
            if register.access & Access.B and free_a and self.swap_files():
                return self._take_b(register.number, both)
        raise self.fail("both read ports are in use, or the one that this register needs")

    def _take_a(self, number: int, both: bool) -> int:
        self.fixed_files |= not both
        self.raddr_a = number
        return int(Mux.A)

    def _take_b(self, number: int, both: bool) -> int:
        self.fixed_files |= not both
        self.raddr_b = number
        return int(Mux.B)

    def swap_files(self) -> bool:
        """Let both reads change their register files, if both files have these registers."""
        if not self.is_alu or (self.unpack.code and not self.pm):
            return False
        if self.raddr_a not in SHARED_READS or self.raddr_b not in SHARED_READS:
            return False
        self.raddr_a, self.raddr_b = self.raddr_b, self.raddr_a
        turned = {int(Mux.A): int(Mux.B), int(Mux.B): int(Mux.A)}
        self.mux = [[turned.get(mux, mux) for mux in pair] for pair in self.mux]
        return True

    def source(self, value: Value) -> None:
        """An operand of an ALU operation."""
        if isinstance(value, Register):
            self.set_mux(self.mux_of(value))
            self.packing(value.packing)
            self.rotate(-value.rotate)
            return
        if not isinstance(value, int | float):
            text = f"an operand is a register or a small immediate, not {kind_of(value)}"
            raise self.fail(text)
        self.take_immediate(code_of(self._operand(self.word(value)), self))
        self.set_mux(int(Mux.B))

    def _operand(self, word: int) -> int:
        """The word that the small immediate has to deliver; add and sub may change places."""
        if self.alu == MUL or self.role & Role.SOURCES != Role.SECOND:
            return word
        op = self.op[ADD]
        if op in (AddOp.ADD, AddOp.SUB):
            taken = self.signal == Signal.SMALL_IMMEDIATE
            if word == 16 or (taken and SMALL_IMMEDIATES[self.raddr_b] == -word & 0xFFFFFFFF):
                self.op[ADD] = int(AddOp.SUB if op == AddOp.ADD else AddOp.ADD)
                return -word & 0xFFFFFFFF
        elif op in (AddOp.ASR, AddOp.SHL, AddOp.SHR, AddOp.ROR):  # only the low 5 bits count
            low = word & 31
            return low if low < 16 else low | 0xFFFFFFE0
        return word

    def word(self, value: int | float | Lanes) -> int:
        """The 32 bits of a constant."""
        if isinstance(value, Lanes):
            return value.bits
        try:
            return to_word(value)
        except ExpressionError as error:
            raise self.fail(str(error)) from None

    def take_immediate(self, code: int) -> None:
        """Give the small immediate's field a code; rotations deliver the words of 16 to 31."""
        if self.signal == Signal.SMALL_IMMEDIATE:
            if self.raddr_b == code:
                return
            if code & 16 and (self.raddr_b ^ code) & 31 == 0:
                self.raddr_b |= code
                return
            raise self.fail("an instruction has only one small immediate or rotation")
        if self.signal != Signal.NONE:
            raise self.fail("a small immediate or rotation leaves no room for a signal")
        if self.raddr_b != UNUSED:
            raise self.fail("a small immediate or rotation takes the place of the file B read")
        self.signal = int(Signal.SMALL_IMMEDIATE)
        self.raddr_b = code

    # Rotations ----------------------------------------------------------------------------------

    def rotate(self, count: int) -> None:
        """Rotate the result upward; 16: by r5."""
        if not count:
            return
        if self.rotated & (Role.OPERATION | (self.role & Role.SOURCES)):
            raise self.fail("an operation has only one rotation")
        if self.alu != MUL and not self.swap_alus():
            raise self.fail("only the mul ALU rotates, and it is not free")
        if count == 16:
            raise self.fail("r5 rotates one way only: << r5 at a source, >> r5 at a result")
        self.fixed_alus = True
        second = bool(self.role & Role.SECOND)
        mux = self.mux[MUL][1 if second else 0]
        code = ROTATIONS + (count & 15)
        accumulator = mux <= Mux.R3
        if self.signal == Signal.SMALL_IMMEDIATE:
            code = self._merged_rotation(code, accumulator, second)
        self.rotated |= self.role
        self.take_immediate(code)

    def _merged_rotation(self, code: int, accumulator: bool, second: bool) -> int:
        """The code of a rotation beside a small immediate that the add ALU uses already."""
        others = any(m == Mux.B for m in (*self.mux[ADD], *self.mux[MUL]))
        partial = not accumulator or (second and self.mux[MUL][0] > Mux.R3 and not others)
        mask = 0x13 if partial else 0x1F
        if (self.raddr_b ^ code) & mask and not self._change_constant(code, mask):
            raise self.fail("this rotation does not go together with the small immediate")
        if not accumulator:
            return self.raddr_b | 0x20
        self.raddr_b = code
        return code

    def _change_constant(self, code: int, mask: int) -> bool:
        """Make the add ALU's constant another way, so that the rotation's code has room."""
        moves = self.mux[ADD] == [Mux.B, Mux.B] and not self.sf and not self.pack.pack_code
        if not moves or Mux.B in self.mux[MUL]:
            return False
        word = constant_of(False, self.op[ADD], self.raddr_b)
        for way in ways().get(word, ()):
            if not way.is_mul and not way.pack and not (way.code ^ code) & mask:
                self.op[ADD], self.raddr_b = way.op, way.code
                return True
        return False


def code_of(word: int, draft: Operands) -> int:
    """The small immediate that delivers a word."""
    codes = SMALL_IMMEDIATES[:ROTATIONS]
    if word not in codes:
        text = f"0x{word:x} is no small immediate (-16..15, 2**-8..2**7 as floats): use mov before"
        raise draft.fail(text)
    return codes.index(word)


def _not_writable(register: Register) -> str:
    if register.number == Write.ACC5 and not register.access & Access.READ:
        return "r5 is written as r5quad (one value per quad) or r5rep (lane 0 everywhere)"
    return "this register can only be read"
