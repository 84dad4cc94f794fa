"""Executes scalar instructions of the VPU until a function returns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from vc4lab.diagnostics.unknown import Unknowns
from vc4lab.soc.devices.dma_transfer import ADDRESS_MASK, DEVICES
from vc4lab.soc.videocore.vpu.floats import (
    FCMP,
    FUNCTIONS,
    convert,
    pattern_of,
    small_float,
    value_of,
)
from vc4lab.soc.videocore.vpu.forms import ACCESSES, BASES, FIRST, LR, PC, SP
from vc4lab.soc.videocore.vpu.instructions import Instruction, class_of, decode
from vc4lab.soc.videocore.vpu.memory import Fault, VpuMemory
from vc4lab.soc.videocore.vpu.operations import (
    BREV,
    BTEST,
    CMN,
    CMP,
    OPERATIONS,
    SIGN,
    WORD,
    DivisionByZero,
    signed,
)

RETURN = 0xFFFFFFF0
"""What lr holds at the start; nothing lies there."""
VERSION = 0x04000104
"""What `version` gives: mgottschlag's resim has it from a board."""
PROCESSOR_REGISTERS = {0: 8, 10: 3, 15: 7}
"""p registers that are not 0 (poizan42, read on a board under running firmware)."""
READABLE = 16
PAGE_SHIFT = 12


class Refused(Exception):  # noqa: N818 - becomes a sentence for the user
    """An instruction that is not done; the text names it."""


class Endless(Exception):  # noqa: N818 - becomes a sentence for the user
    """The budget of instructions is used up."""


@dataclass
class Flags:
    """The condition flags; c is the borrow of a comparison."""

    z: bool = False
    n: bool = False
    c: bool = False
    v: bool = False


Test = Callable[[Flags], bool]
CONDITION_TESTS: tuple[Test, ...] = (
    lambda f: f.z,
    lambda f: not f.z,
    lambda f: f.c,
    lambda f: not f.c,
    lambda f: f.n,
    lambda f: not f.n,
    lambda f: f.v,
    lambda f: not f.v,
    lambda f: not f.c and not f.z,
    lambda f: f.c or f.z,
    lambda f: f.n == f.v,
    lambda f: f.n != f.v,
    lambda f: f.n == f.v and not f.z,
    lambda f: f.n != f.v or f.z,
    lambda f: True,
    lambda f: False,
)
"""By number of the condition."""


@dataclass
class State:
    """The registers of one VPU core; pc apart."""

    registers: list[int] = field(default_factory=lambda: [0] * 32)
    flags: Flags = field(default_factory=Flags)
    pc: int = 0


class Executor:
    """One core running one function.

    Parameters
    ----------
    pass_time
        Is told how many instructions were executed since the last call, before a device is used
        and at the end.
    """

    def __init__(
        self,
        memory: VpuMemory,
        unknowns: Unknowns,
        pass_time: Callable[[int], None] = lambda count: None,
    ) -> None:
        self.memory = memory
        self.state = State()
        self.executed = 0
        """Instructions."""
        self.stored = False
        """Whether RAM was written."""
        self._told = 0
        self._pass_time = pass_time
        saturation = unknowns["vpu_saturation"]
        choices = {
            "signext": unknowns["vpu_signext"],
            "msb": unknowns["vpu_msb"],
            "brev": unknowns["vpu_brev"],
            "adds": saturation,
            "subs": saturation,
        }
        self._compute = [operation.chosen(choices) for operation in OPERATIONS]
        self._brev_shifts = choices["brev"] == "shifted"
        self._saturates = saturation == "saturate"
        self._carry_of_btest = unknowns["vpu_btest_carry"] == "zero"
        self._small_floats = unknowns["vpu_float_immediate"] == "small"
        self._float_flags = unknowns["vpu_float_flags"] == "result"
        self._float_conditions = unknowns["vpu_float_condition"] == "obeyed"
        self._to_int_saturates = unknowns["vpu_float_to_int"] == "saturate"
        self._zero_divides = unknowns["vpu_divide_by_zero"] == "zero"
        self._decoded: dict[int, tuple[Instruction, Callable[[dict[str, int]], None]]] = {}
        self._code_pages: set[int] = set()
        self._at = 0
        """Address of the instruction that is executed."""

    # -- running -----------------------------------------------------------------------------------

    def call(self, function: int, arguments: Sequence[int], stack: int, budget: int) -> int:
        """r0 when `function` returns. Raises Refused, Fault or Endless (`state.pc` tells where)."""
        state = self.state
        state.registers[: len(arguments)] = [value & WORD for value in arguments]
        state.registers[SP], state.registers[LR] = stack, RETURN
        state.pc = function & WORD
        decoded = self._decoded
        try:
            while state.pc != RETURN:
                if self.executed >= budget:
                    raise Endless(f"{budget:,} instructions and no return")
                self._at = at = state.pc
                found = decoded.get(at)
                if found is None:
                    found = self._fetch(at)
                instruction, handler = found
                state.pc = at + instruction.size & WORD
                self.executed += 1
                try:
                    handler(instruction.fields)
                except (Fault, Refused):
                    state.pc = at
                    raise
        finally:
            self._tell_time()
        return state.registers[0]

    def _tell_time(self) -> None:
        self._pass_time(self.executed - self._told)
        self._told = self.executed

    def _fetch(self, at: int) -> tuple[Instruction, Callable[[dict[str, int]], None]]:
        fetch = self.memory.fetch
        first = fetch(at)
        size, name = class_of(first)
        word = first
        if size == 4:
            word = first << 16 | fetch(at + 2 & WORD)
        elif size == 6:
            word = first << 32 | fetch(at + 4 & WORD) << 16 | fetch(at + 2 & WORD)
        elif size > 6:
            word = first << 8 * (size - 2)
        instruction = decode(word, size)
        if instruction.refused:
            raise Refused(
                f"0x{first:04x} at 0x{at:08x} is {name}"
                + (f" ({instruction.text(at)})" if instruction.form is not None else "")
                + f": {instruction.refused}"
            )
        assert instruction.form is not None
        found = instruction, getattr(self, "_do_" + instruction.form.kind)
        self._decoded[at] = found
        pages = at & ADDRESS_MASK, at + size - 1 & ADDRESS_MASK
        self._code_pages.update(page >> PAGE_SHIFT for page in pages)
        return found

    # -- memory ------------------------------------------------------------------------------------

    def _load(self, address: int, size: int) -> int:
        address &= WORD
        if address >> 24 == DEVICES:
            self._tell_time()
        return self.memory.load(address, size)

    def _store(self, address: int, size: int, value: int) -> None:
        address &= WORD
        device = address >> 24 == DEVICES
        if device:
            self._tell_time()
        self.memory.store(address, size, value)
        self.stored = True
        if device or (address & ADDRESS_MASK) >> PAGE_SHIFT in self._code_pages:
            self._decoded.clear()  # code has changed, or a device has written RAM
            self._code_pages.clear()

    def _access(self, number: int, register: int, address: int) -> None:
        access, registers = ACCESSES[number], self.state.registers
        if access.store:
            self._store(address, access.size, registers[register])
            return
        value = self._load(address, access.size)
        if access.signed and value >> 8 * access.size - 1:
            value -= 1 << 8 * access.size
        registers[register] = value & WORD

    def _do_access(self, f: dict[str, int]) -> None:
        self._access(f["w"], f["d"], self.state.registers[f["b"]])

    def _do_load_sp(self, f: dict[str, int]) -> None:
        self._access(0, f["d"], self.state.registers[SP] + f["v"])

    def _do_store_sp(self, f: dict[str, int]) -> None:
        self._access(1, f["d"], self.state.registers[SP] + f["v"])

    def _do_load_near(self, f: dict[str, int]) -> None:
        self._access(0, f["d"], self.state.registers[f["b"]] + f["v"])

    def _do_store_near(self, f: dict[str, int]) -> None:
        self._access(1, f["d"], self.state.registers[f["b"]] + f["v"])

    def _do_offset(self, f: dict[str, int]) -> None:
        self._access(f["w"], f["d"], self.state.registers[f["b"]] + f["o"])

    def _do_near_pc(self, f: dict[str, int]) -> None:
        self._access(f["w"], f["d"], self._at + f["o"])

    def _do_based(self, f: dict[str, int]) -> None:
        base = BASES[f["k"]]
        start = self._at if base == PC else self.state.registers[base]
        self._access(f["w"], f["d"], start + f["o"])

    def _do_indexed(self, f: dict[str, int]) -> None:
        if self._holds(f):
            registers = self.state.registers
            index = registers[f["b"]] * ACCESSES[f["w"]].size
            self._access(f["w"], f["d"], registers[f["a"]] + index)

    def _do_offset_if(self, f: dict[str, int]) -> None:
        if self._holds(f):
            self._access(f["w"], f["d"], self.state.registers[f["a"]] + f["u"])

    def _do_before(self, f: dict[str, int]) -> None:
        if self._holds(f):
            registers, base = self.state.registers, f["b"]
            address = registers[base] - ACCESSES[f["w"]].size & WORD
            value = registers[f["d"]]
            registers[base] = address
            self._move(f, address, value)

    def _do_after(self, f: dict[str, int]) -> None:
        if self._holds(f):
            registers, base = self.state.registers, f["b"]
            address, value = registers[base], registers[f["d"]]
            registers[base] = address + ACCESSES[f["w"]].size & WORD
            self._move(f, address, value)

    def _move(self, f: dict[str, int], address: int, value: int) -> None:
        """The access of a form that has changed its base already: `value` is what d held."""
        access = ACCESSES[f["w"]]
        if access.store:
            self._store(address, access.size, value)
        else:
            self._access(f["w"], f["d"], address)

    # -- stack -------------------------------------------------------------------------------------

    def _push(self, value: int) -> None:
        registers = self.state.registers
        registers[SP] = registers[SP] - 4 & WORD
        self._store(registers[SP], 4, value)

    def _pop(self) -> int:
        registers = self.state.registers
        value = self._load(registers[SP], 4)
        registers[SP] = registers[SP] + 4 & WORD
        return value

    def _do_push(self, f: dict[str, int]) -> None:
        first = FIRST[f["k"]]
        for number in range(first, first + f["n"] + 1):
            self._push(self.state.registers[number])

    def _do_pop(self, f: dict[str, int]) -> None:
        first = FIRST[f["k"]]
        for number in range(first + f["n"], first - 1, -1):
            self.state.registers[number] = self._pop()

    def _do_push_with_lr(self, f: dict[str, int]) -> None:
        self._do_push_lr(f)
        self._do_push(f)

    def _do_pop_with_pc(self, f: dict[str, int]) -> None:
        self._do_pop(f)
        self._do_pop_pc(f)

    def _do_push_lr(self, f: dict[str, int]) -> None:
        self._push(self.state.registers[LR])

    def _do_pop_pc(self, f: dict[str, int]) -> None:
        self.state.pc = self._pop()

    def _do_add_sp(self, f: dict[str, int]) -> None:
        self._do_lea_sp({"d": SP, **f})

    def _do_lea_sp(self, f: dict[str, int]) -> None:
        self.state.registers[f["d"]] = self.state.registers[SP] + f["o"] & WORD

    def _do_lea_pc(self, f: dict[str, int]) -> None:
        self.state.registers[f["d"]] = self._at + f["o"] & WORD

    # -- branches ----------------------------------------------------------------------------------

    def _holds(self, f: dict[str, int]) -> bool:
        return CONDITION_TESTS[f["c"]](self.state.flags)

    def _link(self) -> None:
        self.state.registers[LR] = self.state.pc

    def _do_branch(self, f: dict[str, int]) -> None:
        if self._holds(f):
            self._do_jump_relative(f)

    def _do_jump(self, f: dict[str, int]) -> None:
        self.state.pc = self.state.registers[f["d"]]

    def _do_jump_relative(self, f: dict[str, int]) -> None:
        self.state.pc = self._at + f["o"] & WORD

    def _do_jump_absolute(self, f: dict[str, int]) -> None:
        self.state.pc = f["u"]

    def _do_call(self, f: dict[str, int]) -> None:
        target = self.state.registers[f["d"]]
        self._link()
        self.state.pc = target

    def _do_call_relative(self, f: dict[str, int]) -> None:
        self._link()
        self._do_jump_relative(f)

    def _do_call_absolute(self, f: dict[str, int]) -> None:
        self._link()
        self._do_jump_absolute(f)

    def _do_switch_byte(self, f: dict[str, int]) -> None:
        self._switch(self.state.registers[f["d"]], 1)

    def _do_switch_half(self, f: dict[str, int]) -> None:
        self._switch(self.state.registers[f["d"]], 2)

    def _switch(self, index: int, size: int) -> None:
        """Entries are signed distances in halfwords from the table, which lies right behind."""
        table = self.state.pc
        entry = self._load(table + index * size, size)
        if entry >> 8 * size - 1:
            entry -= 1 << 8 * size
        self.state.pc = table + 2 * entry & WORD

    def _do_addcmpb(self, f: dict[str, int]) -> None:
        registers = self.state.registers
        left = registers[f["d"]] + (registers[f["a"]] if "a" in f else f["i"]) & WORD
        registers[f["d"]] = left
        right = registers[f["b"]] if "b" in f else f["u"]
        if CONDITION_TESTS[f["c"]](_compared(left, right)):
            self._do_jump_relative(f)

    # -- arithmetic --------------------------------------------------------------------------------

    def _operate(self, number: int, target: int, a: int, b: int) -> None:
        operation = OPERATIONS[number]
        if operation.compares:
            self._compare(number, a, b)
            return
        try:
            result = self._compute[number](a, b) & WORD
        except DivisionByZero:
            if not self._zero_divides:
                raise Fault("a division by zero") from None
            result = 0
        self.state.registers[target] = result
        if operation.like >= 0 and not self._saturates:
            self._compare(operation.like, a, b)

    def _compare(self, number: int, a: int, b: int) -> None:
        flags = self.state.flags
        if number == BTEST:
            flags.z, flags.n, flags.v = not self._compute[BTEST](a, b), False, False
            if self._carry_of_btest:
                flags.c = flags.z
        elif number == CMN:
            self.state.flags = _added(a, b)
        elif number == CMP:
            self.state.flags = _compared(a, b)

    def _two(self, number: int, f: dict[str, int], right: int) -> None:
        """A form whose left operand is its destination."""
        left = self.state.registers[f["d"]]
        if number == BREV and self._brev_shifts:
            left, right = right, 0
        self._operate(number, f["d"], left, right)

    def _do_alu_register(self, f: dict[str, int]) -> None:
        self._two(f["p"], f, self.state.registers[f["b"]])

    def _do_alu_small(self, f: dict[str, int]) -> None:
        self._two(2 * f["q"], f, f["u"])

    def _do_alu_number(self, f: dict[str, int]) -> None:
        self._two(f["p"], f, f["i"] & WORD)

    def _do_alu_word(self, f: dict[str, int]) -> None:
        self._two(f["p"], f, f["u"])

    def _do_alu_three(self, f: dict[str, int]) -> None:
        if self._holds(f):
            registers = self.state.registers
            right = registers[f["b"]] if "b" in f else f["i"] & WORD
            self._operate(f["p"], f["d"], registers[f["a"]], right)

    def _do_add_number(self, f: dict[str, int]) -> None:
        self.state.registers[f["d"]] = self.state.registers[f["b"]] + f["i"] & WORD

    def _do_add_word(self, f: dict[str, int]) -> None:
        self.state.registers[f["d"]] = self.state.registers[f["b"]] + f["u"] & WORD

    # -- floating point ----------------------------------------------------------------------------

    def _float_done(self, f: dict[str, int]) -> bool:
        return self._holds(f) or not self._float_conditions

    def _do_float(self, f: dict[str, int]) -> None:
        if not self._float_done(f):
            return
        registers = self.state.registers
        a = value_of(registers[f["a"]])
        if "b" in f:
            b = value_of(registers[f["b"]])
        else:
            b = small_float(f["i"] & 63) if self._small_floats else float(f["i"])
        if f["f"] == FCMP:
            self.state.flags = Flags(z=a == b, n=a < b, c=a < b)
            return
        result = registers[f["d"]] = pattern_of(FUNCTIONS[f["f"]](a, b))
        if self._float_flags:
            zero = not result & SIGN - 1
            self.state.flags = Flags(z=zero, n=bool(result & SIGN) and not zero)

    def _do_convert(self, f: dict[str, int]) -> None:
        if self._float_done(f):
            registers = self.state.registers
            shift = signed(registers[f["b"]]) if "b" in f else f["i"]
            word = registers[f["a"]]
            registers[f["d"]] = convert(f["f"], word, shift, self._to_int_saturates)

    # -- the rest ----------------------------------------------------------------------------------

    def _do_nop(self, f: dict[str, int]) -> None:
        pass

    def _do_version(self, f: dict[str, int]) -> None:
        self.state.registers[f["d"]] = VERSION

    def _do_read_p(self, f: dict[str, int]) -> None:
        number = f["u"]
        if number >= READABLE:
            raise Refused(
                f"mov from p{number} at 0x{self._at:08x}: a board stands still, or answers "
                "something else each time"
            )
        self.state.registers[f["d"]] = PROCESSOR_REGISTERS.get(number, 0)


def _added(a: int, b: int) -> Flags:
    """Flags of a + b."""
    total = a + b
    word = total & WORD
    overflow = bool(~(a ^ b) & (a ^ word) & SIGN)
    return Flags(z=not word, n=bool(word & SIGN), c=total > WORD, v=overflow)


def _compared(a: int, b: int) -> Flags:
    """Flags of a - b."""
    word = a - b & WORD
    overflow = bool((a ^ b) & (a ^ word) & SIGN)
    return Flags(z=not word, n=bool(word & SIGN), c=a < b, v=overflow)
