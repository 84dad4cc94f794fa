"""The JIT's view of a QPU thread: a core over staged words, and what a program reads."""

from __future__ import annotations

import copy
from typing import Any

from vc4lab.qpu.isa.operations import Mux
from vc4lab.qpu.isa.registers import Read
from vc4lab.qpu.isa.semantics import Flags, Semantics
from vc4lab.qpu.jit.simd_ops import SimdOps
from vc4lab.qpu.jit.words import FastWord
from vc4lab.qpu.run.environment import Environment
from vc4lab.qpu.run.execute import ALL_FLAGS, Core
from vc4lab.qpu.run.plan import Plan
from vc4lab.simd import Cell, Value, const, i32x16

Key = tuple[str, int | str]


class JitCore(Core):
    """A core over staged words. cells: where registers live between blocks (empty: a program
    without branches).
    """

    def __init__(
        self, semantics: Semantics, env: Environment, used_flags: str, cells: dict[Key, Cell]
    ) -> None:
        super().__init__(semantics, env, used_flags)
        self.cells = cells
        self.loaded: dict[Key, Any] = {}
        self.steps = 0  # instructions since the block began, for emitters that count them

    def load(self, key: Key) -> Any:
        cell = self.cells.get(key)
        word = self.adopt(cell.get()) if cell else self.ops.const(0)
        self.loaded[key] = word
        return word

    def adopt(self, value: Any, source: str = "") -> Any:
        ops: Any = self.ops
        if isinstance(ops, SimdOps):
            return ops.adopt(value, source)
        word = ops.adopt(value, source, source in self.env.nan_free)
        if source == "uniform":
            word.check = self.env.uniform_check()
        return word

    def export(self, value: Any) -> Value:
        ops: Any = self.ops
        bits: Value = ops.bits(value)
        return bits

    def fork(self) -> JitCore:
        """A copy for the other side of a branch: later findings about a word stay on one side."""
        flags = {name: self.flags.get(name) for name in self.used_flags}
        self.flags = Flags.known(flags)
        copies: dict[int, Any] = {}

        def twin(word: Any) -> Any:
            if not isinstance(word, FastWord):
                return word
            if id(word) not in copies:
                copies[id(word)] = copy.copy(word)
            return copies[id(word)]

        other = JitCore(self.semantics, self.env, self.used_flags, self.cells)
        other.track_last = self.track_last
        other.steps = self.steps
        other.values = {key: twin(word) for key, word in self.values.items()}
        other.loaded = {key: twin(word) for key, word in self.loaded.items()}
        other.old = {key: twin(word) for key, word in self.old.items()}
        other._visible = {key: twin(word) for key, word in self._visible.items()}
        other.sfu = [(n, twin(word)) for n, word in self.sfu]
        other.flags = Flags.known(flags)
        return other


class Final:
    """Registers and flags after the program, for code traced after it (complete only with
    observe=True).
    """

    def __init__(self, core: JitCore, cells: dict[Key, Cell], flags: dict[str, Cell]) -> None:
        self._core = core
        self._cells = cells
        self._flags = flags

    def read(self, key: Key) -> Value:
        """The i32x16 value of ("a", n), ("b", n) or ("r", n)."""
        if self._cells:
            cell = self._cells.get(key)
            return cell.get() if cell else const(i32x16, 0)
        return self._core.export(self._core.get(key))

    def flag(self, name: str) -> Value:
        """The mask16 of flag "z", "n" or "c"."""
        return self._flags[name].get() if self._cells else self._core.flag(name)


def flags_used(plans: list[Plan]) -> str:
    used = set()
    for p in plans:
        if p.branch is not None:
            if p.branch.condition < 12:
                used.add("znc"[int(p.branch.condition) >> 2])
            continue
        for target in (p.add, p.mul):
            if target.condition >= 2:
                used.add("znc"[(target.condition - 2) >> 1])
    return "".join(name for name in ALL_FLAGS if name in used)


def looks_back(plans: list[Plan]) -> bool:
    """Does anything read register 39 or the result of a mul NOP?"""
    return any(
        (p.raddr_a == Read.NOP and Mux.A in p.muxes)
        or (p.raddr_b == Read.NOP and Mux.B in p.muxes)
        or (not p.mul_op and p.mul.is_write)
        for p in plans
        if p.kind == "alu"
    )
