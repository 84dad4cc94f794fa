"""A VPU core: its registers and flags; it runs instructions until a function returns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from vc4lab.memory.guest import BUS_PERIPHERALS
from vc4lab.soc.devices.dma_transfer import ADDRESS_MASK
from vc4lab.soc.videocore.vpu.forms import LR, SP
from vc4lab.soc.videocore.vpu.instructions import Instruction, class_of, decode
from vc4lab.soc.videocore.vpu.memory import Fault, VpuMemory
from vc4lab.soc.videocore.vpu.operations import SIGN, WORD

RETURN = 0xFFFFFFF0
"""The start's value of lr; nothing lies there."""
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


def added(a: int, b: int) -> Flags:
    """Flags of a + b."""
    total = a + b
    word = total & WORD
    overflow = bool(~(a ^ b) & (a ^ word) & SIGN)
    return Flags(z=not word, n=bool(word & SIGN), c=total > WORD, v=overflow)


def compared(a: int, b: int) -> Flags:
    """Flags of a - b."""
    word = a - b & WORD
    overflow = bool((a ^ b) & (a ^ word) & SIGN)
    return Flags(z=not word, n=bool(word & SIGN), c=a < b, v=overflow)


class Core:
    """The state of all instructions: registers, memory with decoded code in front of it, the stack.

    Parameters
    ----------
    pass_time
        Called with the number of instructions executed since the last call, before a device is used
        and at the end.
    """

    def __init__(self, memory: VpuMemory, pass_time: Callable[[int], None] = lambda count: None) -> None:
        self.memory = memory
        self.state = State()
        self.executed = 0
        """Instructions."""
        self.stored = False
        """Whether RAM was written."""
        self._told = 0
        self._pass_time = pass_time
        self._decoded: dict[int, tuple[Instruction, Callable[[dict[str, int]], None]]] = {}
        self._code_pages: set[int] = set()
        self._at = 0
        """Address of the instruction that is executed."""

    # -- running -----------------------------------------------------------------------------------

    def call(self, function: int, arguments: Sequence[int], stack: int, budget: int) -> int:
        """r0 when `function` returns. Raises Refused, Fault or Endless (`state.pc` says where)."""
        state = self.state
        state.registers[: len(arguments)] = [value & WORD for value in arguments]
        state.registers[SP], state.registers[LR] = stack, RETURN
        state.pc = function & WORD
        decoded = self._decoded
        try:
            while state.pc != RETURN:
                if self.executed >= budget:
                    raise Endless(f"no return after {budget:,} instructions")
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

    def _load(self, address: int, size: int) -> int:
        address &= WORD
        if address >> 24 == BUS_PERIPHERALS:
            self._tell_time()
        return self.memory.load(address, size)

    def _store(self, address: int, size: int, value: int) -> None:
        address &= WORD
        device = address >> 24 == BUS_PERIPHERALS
        if device:
            self._tell_time()
        self.memory.store(address, size, value)
        self.stored = True
        if device or (address & ADDRESS_MASK) >> PAGE_SHIFT in self._code_pages:
            self._decoded.clear()  # code has changed, or a device has written RAM
            self._code_pages.clear()

    def _push(self, value: int) -> None:
        registers = self.state.registers
        registers[SP] = registers[SP] - 4 & WORD
        self._store(registers[SP], 4, value)

    def _pop(self) -> int:
        registers = self.state.registers
        value = self._load(registers[SP], 4)
        registers[SP] = registers[SP] + 4 & WORD
        return value

    def _holds(self, f: dict[str, int]) -> bool:
        return CONDITION_TESTS[f["c"]](self.state.flags)
