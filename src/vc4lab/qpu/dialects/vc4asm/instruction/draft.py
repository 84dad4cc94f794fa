"""One instruction while it is written: operations are added until one finds no place.

vc4asm decides as it reads: the first operation takes the add ALU, a later one may move it to the
mul ALU, two register reads may change their files, and a line that begins with `;` joins the
instruction before it if all of this works out. The order of these decisions makes its words, so
they are taken in the same order here.
"""

from __future__ import annotations

from vc4lab.qpu.dialects.vc4asm.instruction.constants import ways
from vc4lab.qpu.dialects.vc4asm.instruction.fields import (
    ADD,
    COLOUR,
    MUL,
    PERIPHERALS,
    RELEASE_BIT,
    SHARED_WRITES,
    TO_ADD,
    TO_MUL,
    UNUSED,
    Role,
)
from vc4lab.qpu.dialects.vc4asm.instruction.operands import Operands, code_of
from vc4lab.qpu.dialects.vc4asm.values import Access, Label, Lanes, Packing, Register, Value, kind_of
from vc4lab.qpu.isa.accesses import accesses
from vc4lab.qpu.isa.encoding import LINK_OFFSET, NOP_WORD, Alu, Branch, LoadImmediate
from vc4lab.qpu.isa.operations import AddOp, BranchCondition, Condition, LoadMode, MulOp, Mux, Signal
from vc4lab.qpu.isa.registers import REGFILE_SIZE


class Draft(Operands):
    """An instruction while it is written."""

    # Operations ---------------------------------------------------------------------------------

    def begin(self, alu: int, column: int) -> None:
        self.alu, self.both, self.role, self.column = alu, False, Role.OPERATION, column
        self.rotated = Role(0)
        self.unpack_roles = Role(0)

    def add_operation(self, op: int, fixed: bool, column: int) -> int:
        """Take the add ALU (for operations that both have, any). The number of sources."""
        self.column = column
        if not self.is_alu:
            raise self.fail("a load immediate or branch leaves no room for another operation")
        if self.used(ADD):
            if self.used(MUL):
                raise self.fail("the add ALU has already an operation")
            if op in TO_MUL and not fixed:
                return self.mul_operation(TO_MUL[AddOp(op)], True, column)
            if not self.swap_alus():
                raise self.fail("the add ALU has already an operation")
        self.op[ADD] = op
        self.begin(ADD, column)
        return 0 if op == AddOp.NOP else 1 if self.is_unary() else 2

    def mul_operation(self, op: int, fixed: bool, column: int) -> int:
        """Take the mul ALU. The number of sources."""
        self.column = column
        if not self.is_alu:
            raise self.fail("a load immediate or branch leaves no room for another operation")
        if self.used(MUL):
            if self.used(ADD):
                raise self.fail("the mul ALU has already an operation")
            if op in TO_ADD and not fixed:
                return self.add_operation(TO_ADD[MulOp(op)], True, column)
            if not self.swap_alus():
                raise self.fail("the mul ALU has already an operation")
        self.op[MUL] = op
        self.begin(MUL, column)
        return 0 if op == MulOp.NOP else 2

    def take_signal(self, signal: Signal, column: int) -> None:
        self.column = column
        if self.signal in (Signal.BRANCH, Signal.LOAD_IMMEDIATE, Signal.SMALL_IMMEDIATE):
            raise self.fail("an immediate, a rotation or a branch leaves no room for a signal")
        if self.signal != Signal.NONE:
            raise self.fail("an instruction has only one signal")
        self.signal = int(signal)

    # Suffixes -----------------------------------------------------------------------------------

    def set_condition(self, condition: Condition) -> None:
        if self.signal == Signal.BRANCH:
            raise self.fail("a branch has conditions over all lanes, such as .allz or .anyn")
        if self.cond[self.alu] != Condition.ALWAYS:
            raise self.fail("an operation has only one condition")
        self.cond[self.alu] = int(condition)

    def set_branch_condition(self, condition: BranchCondition) -> None:
        if self.signal != Signal.BRANCH:
            raise self.fail("this condition belongs to branches; .ifz, .ifn and so on go here")
        if self.condition != BranchCondition.ALWAYS:
            raise self.fail("a branch has only one condition")
        self.condition = int(condition)

    def set_flags(self) -> None:
        busy = self.is_alu and self.alu == MUL and self.used(ADD)
        if busy and not self.swap_alus():
            raise self.fail("flags come from the add ALU here: put .setf there")
        if self.sf:
            raise self.fail("an instruction sets the flags only once")
        self.sf = True
        self.fixed_alus = True

    # Moves and loads ----------------------------------------------------------------------------

    def begin_move(self, name: str, targets: int, column: int) -> None:
        """`mov`, `ldi` or a semaphore operation, of one or two destinations."""
        self.column = column
        if self.signal == Signal.BRANCH:
            raise self.fail("a branch fills the whole instruction")
        load = self.signal == Signal.LOAD_IMMEDIATE
        add_used = self.has_nop or self.waddr[ADD] != UNUSED or (not load and self.op[ADD] != 0)
        mul_used = self.waddr[MUL] != UNUSED or (not load and self.op[MUL] != 0)
        if targets == 2:
            if add_used or mul_used:
                raise self.fail("two destinations need both ALUs")
            self.fixed_alus = True
            alu = ADD
        elif name == "mmov":
            if mul_used and (add_used or not self.swap_alus()):
                raise self.fail("the mul ALU has already an operation")
            self.fixed_alus = True
            alu = MUL
        elif name == "amov":
            if add_used and (mul_used or not self.swap_alus()):
                raise self.fail("the add ALU has already an operation")
            self.fixed_alus = True
            alu = ADD
        elif not add_used:
            alu = ADD
        elif not mul_used:
            alu = MUL
        else:
            raise self.fail("both ALUs have already an operation")
        self.begin(alu, column)

    def move(self, value: Value) -> bool:
        """The source of `mov` as an ALU operation; False if only a load immediate can do it."""
        if isinstance(value, Register):
            if value.is_semaphore:
                return False
            if self.signal == Signal.LOAD_IMMEDIATE:
                raise self.fail("a load immediate leaves no room for a register")
            self.set_mux(self.mux_of(value))
            self.op[self.alu] = int(MulOp.V8MIN if self.alu == MUL else AddOp.OR)
            self.packing(value.packing)
            self.rotate(-value.rotate)
            return True
        if isinstance(value, Label):
            raise self.fail("a label is an offset: subtract another label, or use brr and bra")
        if isinstance(value, Lanes):
            return False
        word = self.word(value)
        if self.signal == Signal.LOAD_IMMEDIATE or self.both:
            return False
        return self._constant(word)

    def _constant(self, word: int) -> bool:
        """Make a constant with an ALU operation on a small immediate."""
        if not word:
            self._set_operation(self.alu, int(MulOp.V8SUBS if self.alu == MUL else AddOp.XOR))
            return True
        if self.signal not in (Signal.NONE, Signal.SMALL_IMMEDIATE):
            raise self.fail("an immediate leaves no room for a signal")
        if self.signal == Signal.NONE and self.raddr_b != UNUSED:
            raise self.fail("an immediate takes the place of the file B read")
        other = None
        for way in ways().get(word, ()):
            if self.signal == Signal.SMALL_IMMEDIATE and self.raddr_b != way.code:
                continue
            if way.pack and not self._pack_fits(way.pack, way.is_colour):
                continue
            if way.is_mul == (self.alu == MUL):
                break
            other = other or way
        else:
            if other is None or not self.swap_alus():
                return False
            way = other
        self.signal, self.raddr_b = int(Signal.SMALL_IMMEDIATE), way.code
        if way.pack:
            self.pack = Packing(way.pack & 7, way.pack > 7, "f" if way.is_colour else "i")
            self.pm, self.fixed_pm = way.is_colour, True
        self._set_operation(int(way.is_mul), way.op)
        return True

    def _pack_fits(self, pack: int, colour: bool) -> bool:
        if self.pack.pack_code and (self.pack.pack_code != pack or self.pm != colour):
            return False
        return colour or (not self.sf and self.writes_file_a(self.alu))

    def _set_operation(self, alu: int, op: int) -> None:
        self.mux[alu] = [int(Mux.B), int(Mux.B)]
        self.op[alu] = op

    def load(self, value: Value, mode: LoadMode, acquires: bool) -> None:
        """A load immediate or semaphore operation."""
        if isinstance(value, Register):
            mode, word = self._semaphore(value, mode, acquires)
        elif isinstance(value, Label):
            raise self.fail(f"a constant is expected, not {kind_of(value)}")
        else:
            mode, word = self._load_word(value, mode, acquires)
        if self.signal == Signal.LOAD_IMMEDIATE:
            if (self.immediate, self.load_mode) != (word, mode):
                raise self.fail("both sides load the same value")
        elif self.signal != Signal.NONE:
            raise self.fail("a load immediate leaves no room for a signal or small immediate")
        elif self.op != [0, 0]:
            raise self.fail("a load immediate leaves no room for another operation")
        self.signal, self.load_mode, self.immediate = int(Signal.LOAD_IMMEDIATE), int(mode), word

    def _semaphore(self, register: Register, mode: LoadMode, acquires: bool) -> tuple[LoadMode, int]:
        if not register.is_semaphore:
            raise self.fail("a load immediate takes a constant or a semaphore")
        if mode == LoadMode.SEMAPHORE and acquires != bool(register.access & Access.ACQUIRE):
            raise self.fail("sacq takes sacq0..15, srel takes srel0..15")
        bit = RELEASE_BIT if register.access & Access.ACQUIRE else 0
        return LoadMode.SEMAPHORE, register.number | bit

    def _load_word(self, value: int | float | Lanes, mode: LoadMode, acquires: bool) -> tuple[LoadMode, int]:
        word = self.word(value)
        if isinstance(value, Lanes):
            if mode == LoadMode.SEMAPHORE:
                raise self.fail("a semaphore is a number from 0 to 15")
            wanted = LoadMode.PER_LANE_UNSIGNED if value.sign > 0 else LoadMode.PER_LANE_SIGNED
            if mode == LoadMode.WORD or not value.sign:
                mode = mode if mode == LoadMode.PER_LANE_UNSIGNED else wanted
            elif mode != wanted:
                raise self.fail("the lanes have values that this operation cannot load")
            return mode, word
        if mode == LoadMode.SEMAPHORE:
            if word & RELEASE_BIT and not acquires:
                raise self.fail("bit 4 of srel's number has to be 0")
            return mode, word | (RELEASE_BIT if acquires else 0)
        return mode, word

    def read(self, value: Value) -> None:
        """`read`: a register read or small immediate that no operand uses."""
        if not self.is_alu:
            raise self.fail("a load immediate or branch reads no register")
        if isinstance(value, Register):
            if self.mux_of(value) <= Mux.R5:
                raise self.fail("accumulators need no read")
        elif isinstance(value, int | float):
            self.take_immediate(code_of(self.word(value), self))
        else:
            raise self.fail(f"read takes a register or a small immediate, not {kind_of(value)}")

    # Branches -----------------------------------------------------------------------------------

    def begin_branch(self, relative: bool, column: int) -> None:
        self.column = column
        taken = self.op != [0, 0] or self.signal != Signal.NONE
        if taken or self.raddr_a != UNUSED or self.raddr_b != UNUSED:
            raise self.fail("a branch fills the whole instruction")
        self.begin(ADD, column)
        self.signal, self.relative = int(Signal.BRANCH), relative
        self.raddr_a = 0

    def branch_source(self, value: Value, address: int) -> None:
        """A target, or a part of it, of a branch that stands at a byte address."""
        if isinstance(value, Label):
            value = value.offset - (address + LINK_OFFSET if self.relative else 0)
        if isinstance(value, int):
            if value and self.immediate:
                raise self.fail("a branch has only one offset")
            self.immediate = self.word(value) if value else self.immediate
            return
        if not isinstance(value, Register):
            raise self.fail(f"a target is a label, a number or a register, not {kind_of(value)}")
        if value.is_nothing:
            return
        if not value.access & Access.A or value.number >= REGFILE_SIZE:
            raise self.fail("a branch register is one of ra0..ra31")
        if value.rotate or value.packing.pack_code:
            raise self.fail("a branch register is neither rotated nor unpacked")
        if self.by_register:
            raise self.fail("a branch has only one register")
        if self.sf and not value.number & 1:
            raise self.fail("with .setf the target register must be odd")
        self.by_register, self.raddr_a = True, value.number

    # The word -----------------------------------------------------------------------------------

    def several_peripherals(self) -> bool:
        """Whether the instruction uses more than one of the units that it may use one of."""
        kinds = accesses(self.fields().encode()).units
        count = sum(bool(kind & PERIPHERALS) for kind in kinds)
        return count + any(kind & COLOUR for kind in kinds) > 1

    def fields(self) -> Alu | LoadImmediate | Branch:
        """The instruction as it is now."""
        code = self.pack.pack_code
        if self.pm and code & 4:
            code ^= 8  # the colour pack saturates by itself, and vc4asm tells it apart by bit 3
        common = {"ws": self.ws, "waddr_add": self.waddr[ADD], "waddr_mul": self.waddr[MUL]}
        if self.signal == Signal.BRANCH:
            return Branch.make(
                signal=Signal.BRANCH,
                condition=self.condition,
                relative=self.relative,
                register=self.by_register,
                raddr_a=self.raddr_a | self.sf,
                immediate=self.immediate,
                **common,
            )
        common |= {"pm": self.pm, "pack": code, "sf": self.sf}
        common |= {"cond_add": self.cond[ADD], "cond_mul": self.cond[MUL], "signal": self.signal}
        if self.signal == Signal.LOAD_IMMEDIATE:
            mode, immediate = self.load_mode, self.immediate
            return LoadImmediate.make(mode=mode, immediate=immediate, **common)
        (add_a, add_b), (mul_a, mul_b) = self.mux
        return Alu(NOP_WORD).replace(
            unpack=self.unpack.code,
            op_add=self.op[ADD],
            op_mul=self.op[MUL],
            raddr_a=self.raddr_a,
            raddr_b=self.raddr_b,
            add_a=add_a,
            add_b=add_a if self.is_unary() else add_b,
            mul_a=mul_a,
            mul_b=mul_b,
            **common,
        )

    def encode(self) -> int:
        """The word, after what needs no ALU has become a load immediate."""
        self.settle()
        return self.fields().encode()

    def settle(self) -> None:
        """Conditions of what writes nothing, and constants that a load immediate gives as well."""
        if self.signal == Signal.BRANCH:
            return
        if self.is_alu and not self._become_load():
            if self.waddr[ADD] == UNUSED and not self.sf:
                self.cond[ADD] = int(Condition.NEVER)
            if self.waddr[MUL] == UNUSED and (not self.sf or self.op[ADD] != 0):
                self.cond[MUL] = int(Condition.NEVER)
            return
        if self.waddr[ADD] == UNUSED and not self.sf:
            self.cond[ADD] = int(Condition.NEVER)
        if self.waddr[MUL] == UNUSED:
            self.cond[MUL] = int(Condition.NEVER)

    def _become_load(self) -> bool:
        """Turn into a load immediate if all that happens is that a constant is written."""
        if self.raddr_a != UNUSED:
            return False
        word, keeps_pack = self._only_constant()
        if word is None:
            return False
        if not keeps_pack:
            self.pm, self.pack = False, Packing(0)
        self.op = [0, 0]
        self.signal, self.load_mode = int(Signal.LOAD_IMMEDIATE), int(LoadMode.WORD)
        self.immediate = word
        if self.waddr[ADD] == UNUSED and not self.pm:
            self.waddr.reverse()
            self.cond.reverse()
            self.ws = not self.ws and self.waddr[ADD] not in SHARED_WRITES
        return True

    def _only_constant(self) -> tuple[int | None, bool]:
        """The word that is all that the instruction writes, and whether it is packed then."""
        for alu, clears in ((ADD, (AddOp.XOR, AddOp.SUB)), (MUL, (MulOp.V8SUBS,))):
            other = 1 - alu
            if self.waddr[other] != UNUSED or self.op[other] != 0:
                continue
            if self.signal == Signal.SMALL_IMMEDIATE:
                whole = self.pack.pack_code in (0, 3, 8, 11)
                if whole and self.mux[alu] == [Mux.B, Mux.B] and not self.sf and self.op[alu]:
                    return self._packed_constant(alu), False
            elif self.signal == Signal.NONE and self.op[alu] in clears:
                same = self.mux[alu][0] == self.mux[alu][1]
                if same and self.raddr_b == UNUSED and not (alu == MUL and self.sf):
                    return 0, True
        return None, False

    def _packed_constant(self, alu: int) -> int | None:
        code = self.pack.pack_code
        for word, choices in ways().items():
            for way in choices:
                if (way.is_mul, way.op, way.code) != (alu == MUL, self.op[alu], self.raddr_b):
                    continue
                if way.pack == code and way.is_colour == (bool(code) and self.pm):
                    return word
        return None
