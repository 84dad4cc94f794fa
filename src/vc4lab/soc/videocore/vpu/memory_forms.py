"""The instructions that read and write memory, and those of the stack."""

from __future__ import annotations

from vc4lab.soc.videocore.vpu.core import Core
from vc4lab.soc.videocore.vpu.forms import ACCESSES, BASES, FIRST, LR, PC, SP
from vc4lab.soc.videocore.vpu.operations import WORD


class MemoryForms(Core):
    """A handler for each kind of form, named after it."""

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
