"""Executes scalar instructions of the VPU until a function returns."""

from __future__ import annotations

from vc4lab.soc.videocore.vpu.arithmetic_forms import ArithmeticForms
from vc4lab.soc.videocore.vpu.core import CONDITION_TESTS, Refused, compared
from vc4lab.soc.videocore.vpu.forms import LR
from vc4lab.soc.videocore.vpu.memory_forms import MemoryForms
from vc4lab.soc.videocore.vpu.operations import WORD

VERSION = 0x04000104
"""The value of `version`: mgottschlag's resim has it from a board."""
PROCESSOR_REGISTERS = {0: 8, 10: 3, 15: 7}
"""p registers that are not 0 (poizan42, read on a board under running firmware)."""
READABLE = 16


class Executor(MemoryForms, ArithmeticForms):
    """One core running one function: all instructions; branches and the rest are here."""

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
        """Entries are signed distances in halfwords from the table, which follows at once."""
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
        if CONDITION_TESTS[f["c"]](compared(left, right)):
            self._do_jump_relative(f)

    def _do_nop(self, f: dict[str, int]) -> None:
        pass

    def _do_version(self, f: dict[str, int]) -> None:
        self.state.registers[f["d"]] = VERSION

    def _do_read_p(self, f: dict[str, int]) -> None:
        number = f["u"]
        if number >= READABLE:
            raise Refused(
                f"mov from p{number} at 0x{self._at:08x}: a board hangs, or returns "
                "a different value each time"
            )
        self.state.registers[f["d"]] = PROCESSOR_REGISTERS.get(number, 0)
